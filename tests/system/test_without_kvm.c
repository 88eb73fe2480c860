/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A machine that has no /dev/kvm: the command falls back and says so, or says what to do; the library falls
 * back where it is asked to; and the tests themselves run on the soft backend, or are skipped. Everything
 * runs in a mount namespace without the device (support/without-kvm.sh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

#define NOT_PERMITTED 77 /* the script's */

static char self[4096];
static const char *pinhole;

/* Hidden tests are no tests: whoever may not hide the device is told. */
static void needs_namespaces(void) {
    struct outcome outcome = run_command(ARGUMENTS("true"));

    if (outcome.status == NOT_PERMITTED) {
        fprintf(stderr, "SKIPPED, /dev/kvm cannot be hidden: %s", outcome.err);
        outcome_free(&outcome);
        skip();
    }
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void the_device_is_hidden(void **state) {
    (void)state;
    needs_namespaces();
    assert_prints(run_command(ARGUMENTS("sh", "-c", "test -e /dev/null && test ! -e /dev/kvm")), 0, "");
}

static void the_command_falls_back_with_one_line_and_the_right_result(void **state) {
    static const char line[] = "pinhole: running on the soft backend, which isolates less than KVM would: "
                               "cannot open /dev/kvm";

    (void)state;
    needs_namespaces();
    struct outcome outcome =
        run_command(ARGUMENTS(pinhole, "call", test_guest_path("types"), "echo_f64", "-7.25"));
    assert_string_equal(outcome.out, "-7.25\n");
    assert_memory_equal(outcome.err, line, sizeof line - 1);
    assert_ptr_equal(strchr(outcome.err, '\n'), outcome.err + outcome.err_size - 1);
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void who_asks_for_soft_is_told_nothing(void **state) {
    (void)state;
    needs_namespaces();
    assert_prints(run_command(ARGUMENTS(pinhole, "call", "--backend=soft", test_guest_path("types"),
                                        "echo_f64", "-7.25")),
                  0, "-7.25\n");
}

static void who_asks_for_kvm_is_told_what_to_do(void **state) {
    (void)state;
    needs_namespaces();
    struct outcome outcome = run_command(
        ARGUMENTS(pinhole, "call", "--backend", "kvm", test_guest_path("types"), "echo_f64", "-7.25"));
    assert_non_null(strstr(outcome.err, "cannot open /dev/kvm"));
    assert_non_null(strstr(outcome.err, "--device /dev/kvm"));
    assert_fails(outcome, 3, "pinhole: ");
}

static void the_doctor_shows_what_there_is(void **state) {
    (void)state;
    needs_namespaces();
    struct outcome outcome = run_command(ARGUMENTS(pinhole, "doctor"));
    assert_non_null(strstr(outcome.out, "\nbackend kvm             not usable: cannot open /dev/kvm"));
    assert_non_null(strstr(outcome.out, "\nbackend soft            usable, isolates less\n"));
    assert_string_equal(outcome.err, "");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

/* ---- the library --------------------------------------------------------------------------------------- */

static void show(void *context, const char *message) {
    (void)context;
    printf("said: %s\n", message);
}

/* What the library gives for (backend), as this program prints it where the device is hidden. */
static int library_child(ph_backend backend) {
    const ph_value number = {.type = PH_F64, .f64 = -7.25};
    ph_image *image = test_image("types");
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_value result = {0};
    ph_error error;

    config.backend = backend;
    config.diagnostics = show;
    config.timeout_ns = TEST_TIMEOUT_NS;
    ph_status status = ph_sandbox_create(image, &config, &sandbox, &error);
    if (status != PH_OK)
        printf("%s: %s\n", ph_status_kind(status), error.message);
    if (status == PH_OK)
        status = ph_sandbox_start(sandbox);
    if (status == PH_OK)
        status = ph_call(sandbox, ph_image_find_export(image, "echo_f64"), &number, 1, &result);
    if (status == PH_OK)
        printf("result: %g\n", result.f64);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
    return status == PH_OK ? 0 : 1;
}

static void the_library_falls_back_where_it_is_asked_to(void **state) {
    static const char said[] = "said: running on the soft backend, which isolates less than KVM would: ";

    (void)state;
    needs_namespaces();
    struct outcome outcome = run_command(ARGUMENTS(self, "auto"));
    assert_memory_equal(outcome.out, said, sizeof said - 1);
    assert_string_equal(strchr(outcome.out, '\n'), "\nresult: -7.25\n");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void the_library_does_not_where_it_is_not(void **state) {
    (void)state;
    needs_namespaces();
    struct outcome outcome = run_command(ARGUMENTS(self, "kvm"));
    assert_memory_equal(outcome.out, "backend: cannot open /dev/kvm", 29);
    assert_int_equal(outcome.status, 1);
    outcome_free(&outcome);
}

/* ---- the tests ----------------------------------------------------------------------------------------- */

static unsigned count_of(const char *text, const char *word) {
    unsigned count = 0;

    for (; (text = strstr(text, word)); text += strlen(word))
        count++;
    return count;
}

static void a_test_program_passes_on_the_soft_backend(void **state) {
    const char *program = getenv("PH_TEST_PROGRAM");

    (void)state;
    needs_namespaces();
    assert_non_null(program);
    struct outcome outcome = run_command(
        ARGUMENTS("env", "PH_TEST_BACKEND=soft", "PINHOLE_BACKEND=soft", "PH_TEST_SCALE=20", program));
    if (outcome.status != 0)
        fail_msg("status %d: %s", outcome.status, outcome.err);
    assert_true(count_of(outcome.out, "[       OK ]") > 10);
    assert_int_equal(count_of(outcome.out, "[  SKIPPED ]"), 0);
    outcome_free(&outcome);
}

static void a_test_program_without_a_backend_skips_and_says_why(void **state) {
    const char *program = getenv("PH_TEST_PROGRAM");

    (void)state;
    needs_namespaces();
    assert_non_null(program);
    struct outcome outcome = run_command(ARGUMENTS(program));
    assert_int_equal(outcome.status, 0);
    assert_true(count_of(outcome.out, "[  SKIPPED ]") > 10);
    assert_non_null(strstr(outcome.err, "SKIPPED, this test needs KVM: cannot open /dev/kvm"));
    outcome_free(&outcome);
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_is_hidden),
        cmocka_unit_test(the_command_falls_back_with_one_line_and_the_right_result),
        cmocka_unit_test(who_asks_for_soft_is_told_nothing),
        cmocka_unit_test(who_asks_for_kvm_is_told_what_to_do),
        cmocka_unit_test(the_doctor_shows_what_there_is),
        cmocka_unit_test(the_library_falls_back_where_it_is_asked_to),
        cmocka_unit_test(the_library_does_not_where_it_is_not),
        cmocka_unit_test(a_test_program_passes_on_the_soft_backend),
        cmocka_unit_test(a_test_program_without_a_backend_skips_and_says_why),
    };

    if (count == 2)
        return library_child(strcmp(words[1], "auto") == 0 ? PH_BACKEND_AUTO : PH_BACKEND_KVM);
    /* The runner starts the script, which starts the command. */
    pinhole = getenv("PH_TEST_COMMAND");
    const char *script = getenv("PH_TEST_WITHOUT_KVM");
    if (!pinhole || !script || readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        fprintf(stderr, "run this by `meson test`\n");
        return 1;
    }
    setenv("PH_TEST_COMMAND", script, 1);
    unsetenv("PINHOLE_BACKEND");
    unsetenv("PH_TEST_REQUIRE_KVM");
    return cmocka_run_group_tests_name("without KVM", tests, NULL, NULL);
}
