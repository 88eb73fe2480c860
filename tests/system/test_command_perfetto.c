/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole call --trace perfetto:PATH` leaves a file that protoc reads by Perfetto's field numbers, with the
 * call, the guest's part of it and its system calls; also after the command was killed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* The bytes of whole packets in the file: of each the tag of a Trace's only field, and the length of what
 * follows. (*rest) are those behind them. */
static off_t whole_packets(off_t *rest) {
    FILE *file = fopen(path, "re");
    off_t whole = 0, size;

    assert_non_null(file);
    assert_int_equal(fseeko(file, 0, SEEK_END), 0);
    size = ftello(file);
    for (off_t next = 0; next <= size;) {
        unsigned shift = 0;
        off_t length = 0;
        whole = next;
        assert_int_equal(fseeko(file, next, SEEK_SET), 0);
        int byte = fgetc(file);
        if (byte == EOF)
            break;
        assert_int_equal(byte, 0x0a);
        do {
            byte = fgetc(file);
            length |= (off_t)(byte & 0x7f) << shift;
            shift += 7;
        } while (byte != EOF && byte & 0x80 && shift < 28);
        next = ftello(file) + length;
    }
    fclose(file);
    *rest = size - whole;
    return whole;
}

/* Whole packets, but for the last; no more than the first child of each of two open spans may have an end
 * and no begin. */
static void what_a_kill_leaves_behind_is_as_documented(void **state) {
    struct stat information = {0};
    off_t rest;

    (void)state;
    test_needs_kvm();
    struct running running = command_start(ARGUMENTS("call", "--trace", option, "--repeat", "100000000",
                                                     test_guest_path("types"), "echo_i32", "7"),
                                           0);
    for (int i = 0; i < 1000 && information.st_size < 200000; i++) {
        usleep(10000);
        if (stat(path, &information) != 0)
            information.st_size = 0;
    }
    assert_int_equal(kill(running.process, SIGKILL), 0);
    struct outcome outcome = command_wait(&running);
    assert_int_equal(outcome.status, 128 + SIGKILL);
    outcome_free(&outcome);

    assert_int_equal(truncate(path, whole_packets(&rest)), 0);
    assert_true(rest < 1000);
    char *text = decoded();
    size_t begins = count_of(text, "type: TYPE_SLICE_BEGIN"), ends = count_of(text, "type: TYPE_SLICE_END");
    assert_has(text, "primary_trace_clock: BUILTIN_CLOCK_REALTIME");
    assert_has(text, "name: \"call echo_i32\"");
    assert_has(text, "name: \"guest echo_i32\"");
    assert_true(begins > 100);
    assert_in_range(begins, ends - 2, ends + 2);
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
        cmocka_unit_test_setup_teardown(what_a_kill_leaves_behind_is_as_documented, set_up, tear_down),
        cmocka_unit_test(a_file_is_wanted),
    };

    return cmocka_run_group_tests_name("command_perfetto", tests, NULL, NULL);
}
