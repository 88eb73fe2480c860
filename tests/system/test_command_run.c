/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole run` on a program that knows nothing of pinhole, Debian's static busybox, and `pinhole doctor`.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

#define BUSYBOX busybox_path()

static void output_is_passed_on(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("run", BUSYBOX, "echo", "hi", "--help")), 0, "hi --help\n");
    assert_prints(run_command(ARGUMENTS("run", "--", BUSYBOX, "echo", "--", "x")), 0, "-- x\n");
}

static void both_streams_keep_their_order(void **state) {
    (void)state;
    test_needs_kvm();
    struct running running = command_start_to(
        ARGUMENTS("run", BUSYBOX, "sh", "-c", "echo 1; echo 2 >&2; echo 3; echo 4 >&2"), 0, -1);
    struct outcome outcome = command_wait(&running);
    assert_string_equal(outcome.err, "1\n2\n3\n4\n");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void programs_do_their_work(void **state) {
    static const char *const awk = "BEGIN { for (i = 0; i < 5; i++) s += i * i; print s }";

    (void)state;
    test_needs_kvm();
    assert_prints(run_command_with_input(ARGUMENTS("run", "--stdin", BUSYBOX, "sort"), "b\nc\na\n", 6), 0,
                  "a\nb\nc\n");
    assert_prints(run_command(ARGUMENTS("run", BUSYBOX, "awk", awk)), 0, "30\n");
    assert_prints(run_command_with_input(ARGUMENTS("run", "--stdin", BUSYBOX, "sha256sum"), "abc", 3), 0,
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  -\n");
    assert_prints(run_command_with_input(ARGUMENTS("run", "--stdin", BUSYBOX, "bc"), "2^100\n", 6), 0,
                  "1267650600228229401496703205376\n");
}

static void input_is_only_passed_on_when_asked_for(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command_with_input(ARGUMENTS("run", BUSYBOX, "cat"), "secret", 6), 0, "");
}

static void the_environment_is_empty_but_for_what_is_given(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("run", BUSYBOX, "env")), 0, "");
    assert_prints(run_command(ARGUMENTS("run", "--env", "A=1", "--env=B=x=y", BUSYBOX, "env")), 0,
                  "A=1\nB=x=y\n");
    assert_fails(run_command(ARGUMENTS("run", "--env", "A", BUSYBOX, "env")), 125,
                 "pinhole: --env wants NAME=VALUE");
}

static void the_exit_status_is_the_programs(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("run", BUSYBOX, "sh", "-c", "exit 7")), 7, "");
    assert_prints(run_command(ARGUMENTS("run", BUSYBOX, "false")), 1, "");
}

static void a_program_that_a_signal_ends_is_128_and_its_number(void **state) {
    char line[600];

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "pinhole: %s: signal: ", BUSYBOX);
    assert_fails(run_command(ARGUMENTS("run", BUSYBOX, "sh", "-c", "kill -9 $$")), 137, line);
    snprintf(line, sizeof line, "pinhole: %s: abort: ", BUSYBOX);
    assert_fails(run_command(ARGUMENTS("run", BUSYBOX, "sh", "-c", "kill -ABRT $$")), 134, line);
}

static void what_pinhole_fails_at_is_125(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("run", "/nonexistent")), 125, "pinhole: /nonexistent: No such file");
    assert_fails(run_command(ARGUMENTS("run", "/bin/sh")), 125, "pinhole: /bin/sh: ");
    assert_fails(run_command(ARGUMENTS("run", "--foo")), 125,
                 "pinhole: unknown option --foo; see 'pinhole run --help'");
    assert_fails(run_command(ARGUMENTS("run")), 125, "pinhole: which file?");
}

static void a_program_that_takes_too_long_is_124(void **state) {
    char line[600];

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "pinhole: %s: time-out: the time-out ended the guest", BUSYBOX);
    assert_fails(run_command(ARGUMENTS("run", "--timeout", "300ms", BUSYBOX, "sleep", "100")), 124, line);
    assert_fails(run_command(ARGUMENTS("run", "--timeout=300ms", BUSYBOX, "sh", "-c", "while :; do :; done")),
                 124, line);
}

static void a_program_that_goes_beyond_a_limit_is_124(void **state) {
    char line[600];
    const char *program = test_guest_path("limits-program");

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "pinhole: %s: cpu-time: the limit of processor time ended the guest",
             program);
    assert_fails(run_command(ARGUMENTS("run", "--cpu-time=500ms", program, "spin")), 124, line);
    assert_prints(
        run_command(ARGUMENTS("run", "--cpu-time=1m", "--max-output=3", "--max-host-calls=1", program, "3")),
        7, "xxx");
    struct outcome outcome = run_command(ARGUMENTS("run", "--max-output", "3", program, "4"));
    assert_int_equal(outcome.status, 124);
    assert_string_equal(outcome.out, "xxx");
    snprintf(line, sizeof line, "pinhole: %s: output-limit: the limit of output ended the guest", program);
    assert_memory_equal(outcome.err, line, strlen(line));
    outcome_free(&outcome);
    assert_fails(run_command(ARGUMENTS("run", "--cpu-time", "5", program)), 125,
                 "pinhole: --cpu-time wants a number with its unit");
}

/* A pipe that nobody writes to, or reads from. */
struct still_pipe {
    int ends[2];
};

static struct still_pipe still_pipe_make(void) {
    struct still_pipe made;

    assert_int_equal(pipe2(made.ends, O_CLOEXEC), 0);
    return made;
}

static void still_pipe_free(struct still_pipe *made) {
    close(made->ends[0]);
    close(made->ends[1]);
}

static void a_time_out_ends_a_read_that_waits(void **state) {
    struct still_pipe input = still_pipe_make();

    (void)state;
    test_needs_kvm();
    struct running running =
        command_start(ARGUMENTS("run", "--timeout", "300ms", "--stdin", BUSYBOX, "cat"), input.ends[0]);
    assert_fails(command_wait(&running), 124, "pinhole: ");
    still_pipe_free(&input);
}

static void a_time_out_ends_a_write_that_waits(void **state) {
    struct still_pipe output = still_pipe_make();

    (void)state;
    test_needs_kvm();
    struct running running =
        command_start_to(ARGUMENTS("run", "--timeout", "300ms", BUSYBOX, "yes"), 0, dup(output.ends[1]));
    assert_fails(command_wait(&running), 124, "pinhole: ");
    still_pipe_free(&output);
}

static void a_signal_ends_a_read_that_waits(void **state) {
    struct still_pipe input = still_pipe_make();

    (void)state;
    test_needs_kvm();
    struct running running = command_start(ARGUMENTS("run", "--stdin", BUSYBOX, "cat"), input.ends[0]);
    usleep(300000);
    kill(running.process, SIGTERM);
    assert_fails(command_wait(&running), 143, "pinhole: ");
    still_pipe_free(&input);
}

static void a_signal_at_any_moment_is_not_lost(void **state) {
    (void)state;
    test_needs_kvm();
    for (unsigned i = 0; i < test_scaled(60); i++) {
        struct running running = command_start(ARGUMENTS("run", BUSYBOX, "sleep", "1000"), 0);
        usleep(1000 + i * 500);
        kill(running.process, SIGINT);
        struct outcome outcome = command_wait(&running);
        assert_int_equal(outcome.status, 130);
        outcome_free(&outcome);
    }
}

static void a_second_signal_ends_the_command_at_once(void **state) {
    (void)state;
    test_needs_kvm();
    struct running running = command_start(ARGUMENTS("run", BUSYBOX, "sleep", "1000"), 0);
    usleep(300000);
    kill(running.process, SIGSTOP);
    kill(running.process, SIGINT);
    kill(running.process, SIGTERM);
    kill(running.process, SIGCONT);
    struct outcome outcome = command_wait(&running);
    assert_true(outcome.status == 130 || outcome.status == 143);
    outcome_free(&outcome);
}

static void a_full_disk_is_the_programs_business(void **state) {
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    test_needs_kvm();
    struct running running = command_start_to(ARGUMENTS("run", BUSYBOX, "echo", "hi"), 0, full);
    assert_fails(command_wait(&running), 1, "echo: write error: No space left on device\n");
}

/* What the command opens must not take the place of a closed stream, and be written to. */
static void a_closed_stream_is_not_written_to(void **state) {
    char line[2048];
    char said[256];

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "exec '%s' run '%s' echo hi 2>&1 >&-", getenv("PH_TEST_COMMAND"), BUSYBOX);
    FILE *pipe = popen(line, "r"); // NOLINT(cert-env33-c): a constant line, with paths of the build
    assert_non_null(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 1 << 8);
    assert_string_equal(said, "echo: write error: Bad file descriptor\n");
}

static void the_doctor_tells_about_this_machine(void **state) {
    (void)state;
    struct outcome outcome = run_command(ARGUMENTS("doctor", "--json"));
    json_t *report = json_loads(outcome.out, 0, NULL);
    assert_non_null(report);
    const json_t *backends = json_object_get(report, "backends");
    const json_t *kvm = json_array_get(backends, 0), *soft = json_array_get(backends, 1);
    const bool usable = json_is_true(json_object_get(kvm, "usable"));
    const bool soft_usable = json_is_true(json_object_get(soft, "usable"));
    assert_int_equal(json_is_true(json_object_get(report, "usable")), usable || soft_usable);
    assert_int_equal(outcome.status, usable || soft_usable ? 0 : 3);
    assert_string_equal(json_string_value(json_object_get(kvm, "name")), "kvm");
    assert_int_equal(json_is_null(json_object_get(kvm, "reason")), usable);
    assert_string_equal(json_string_value(json_object_get(soft, "name")), "soft");
    assert_int_equal(json_is_null(json_object_get(soft, "reason")), soft_usable);
    assert_true(json_is_object(json_object_get(report, "kernel")));
    assert_true(json_is_object(json_object_get(report, "tsc")));
    assert_true(json_is_array(json_object_get(report, "advice")));
    if (usable) {
        assert_true(json_integer_value(json_object_get(report, "exit_ns")) > 0);
        assert_true(json_is_boolean(json_object_get(json_object_get(report, "ring0"), "native")));
        assert_true(json_is_integer(json_object_get(report, "thread_move_ns")));
    }
    json_decref(report);
    outcome_free(&outcome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_passed_on),
        cmocka_unit_test(both_streams_keep_their_order),
        cmocka_unit_test(programs_do_their_work),
        cmocka_unit_test(input_is_only_passed_on_when_asked_for),
        cmocka_unit_test(the_environment_is_empty_but_for_what_is_given),
        cmocka_unit_test(the_exit_status_is_the_programs),
        cmocka_unit_test(a_program_that_a_signal_ends_is_128_and_its_number),
        cmocka_unit_test(what_pinhole_fails_at_is_125),
        cmocka_unit_test(a_program_that_takes_too_long_is_124),
        cmocka_unit_test(a_program_that_goes_beyond_a_limit_is_124),
        cmocka_unit_test(a_time_out_ends_a_read_that_waits),
        cmocka_unit_test(a_time_out_ends_a_write_that_waits),
        cmocka_unit_test(a_signal_ends_a_read_that_waits),
        cmocka_unit_test(a_signal_at_any_moment_is_not_lost),
        cmocka_unit_test(a_second_signal_ends_the_command_at_once),
        cmocka_unit_test(a_full_disk_is_the_programs_business),
        cmocka_unit_test(a_closed_stream_is_not_written_to),
        cmocka_unit_test(the_doctor_tells_about_this_machine),
    };
    return cmocka_run_group_tests_name("command run", tests, NULL, NULL);
}
