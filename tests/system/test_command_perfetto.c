/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole call --trace perfetto:PATH` leaves a file that protoc reads by Perfetto's field numbers, with the
 * call, the guest's part of it and its system calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/support.h"
#include "system/command_runner.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static char path[64];
static char option[96];

static int set_up(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/pinhole-perfetto-%d", (int)getpid());
    snprintf(option, sizeof option, "perfetto:%s", path);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

/* The trace as protoc prints it. To be freed. */
static char *decoded(void) {
    char command[512];
    char *text = NULL;
    size_t size = 0;

    snprintf(command, sizeof command, "protoc -I '%s' --decode=perfetto.protos.Trace perfetto.proto <'%s'",
             getenv("PH_TEST_PROTOS"), path);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): of paths of our own */
    assert_non_null(pipe);
    assert_true(getdelim(&text, &size, 0, pipe) > 0);
    assert_int_equal(pclose(pipe), 0);
    return text;
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        count++;
    }
    return count;
}

static void a_call_is_in_the_file(void **state) {
    static const char *const parts[] = {
        "primary_trace_clock: BUILTIN_CLOCK_REALTIME",
        "process_name: \"sandbox 1\"",
        "thread_name: \"host\"",
        "thread_name: \"guest\"",
        "name: \"call query\"",
        "name: \"guest query\"",
        "name: \"system-call\"",
        "name: \"result\"",
        "terminating_flow_ids: ",
    };

    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("call", "--trace", option, test_guest_path("sqlite"), "query", "\"SELECT 1\"")),
        0, "\"[{\\\"1\\\":1}]\"\n");
    char *text = decoded();
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_has(text, parts[i]);
    assert_true(count_of(text, "type: TYPE_SLICE_BEGIN") > 5);
    assert_int_equal(count_of(text, "type: TYPE_SLICE_BEGIN"), count_of(text, "type: TYPE_SLICE_END"));
    free(text);
}

static void a_file_is_wanted(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("call", "--trace", "perfetto", "x", "f")), 2,
                 "pinhole: --trace perfetto wants a file: perfetto:PATH");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_is_in_the_file, set_up, tear_down),
        cmocka_unit_test(a_file_is_wanted),
    };

    return cmocka_run_group_tests_name("command_perfetto", tests, NULL, NULL);
}
