/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Snapshots by the command, on real guests: `call --restore`.
 */
#include <jansson.h>

#include "support/support.h"
#include "system/command_runner.h"

#define GUEST(name) test_guest_path(name)

/* ---- call --restore ------------------------------------------------------------------------------------ */

static void restore_forgets_what_each_repeat_has_done(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "5", GUEST("snapshot"), "count")), 0, "5\n");
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "5", "--restore", GUEST("snapshot"), "count")), 0,
                  "1\n");
    /* What the guest has for such an event runs each time, and is put back too. */
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "3", "--restore", GUEST("snapshot"), "hooks")), 0,
                  "12\n");
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "1", "--restore", GUEST("snapshot"), "hooks")), 0,
                  "0\n");
}

static void pages_that_are_copied_back_are_counted(void **state) {
    (void)state;
    test_needs_kvm();
    for (int restore = 0; restore < 2; restore++) {
        struct outcome outcome = run_command(ARGUMENTS(
            "call", "--stats", "--repeat=3", restore ? "--restore" : "--raw", GUEST("snapshot"), "count"));
        json_t *stats = json_loads(outcome.err, 0, NULL);
        assert_non_null(stats);
        assert_int_equal(json_integer_value(json_object_get(stats, "calls")), 3);
        assert_int_equal(json_integer_value(json_object_get(stats, "pages_copied")) > 0, restore);
        json_decref(stats);
        outcome_free(&outcome);
    }
}

static void restore_wants_something_to_restore_for(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("call", "--restore", GUEST("snapshot"), "count")), 2,
                 "pinhole: --restore does nothing without --repeat;");
}

static void a_failed_call_ends_the_repeats(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", "--repeat", "3", "--restore", GUEST("snapshot"), "undefined")),
                 1, "pinhole: undefined: undefined-instruction: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_forgets_what_each_repeat_has_done),
        cmocka_unit_test(pages_that_are_copied_back_are_counted),
        cmocka_unit_test(restore_wants_something_to_restore_for),
        cmocka_unit_test(a_failed_call_ends_the_repeats),
    };
    return cmocka_run_group_tests_name("command snapshot", tests, NULL, NULL);
}
