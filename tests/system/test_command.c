/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole call` and what all subcommands share: what is printed where, and every exit status, on real
 * guests.
 */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"
#include "vm/backend.h"

#define GUEST(name) test_guest_path(name)

/* ---- usage --------------------------------------------------------------------------------------------- */

static void every_command_has_help(void **state) {
    static const char *const commands[] = {"run", "call", "functions", "snapshot", "doctor", "help"};

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct outcome outcome = run_command(ARGUMENTS(commands[i], "--help"));
        assert_int_equal(outcome.status, 0);
        assert_string_equal(outcome.err, "");
        assert_non_null(strstr(outcome.out, "usage: pinhole"));
        assert_non_null(strstr(outcome.out, commands[i]));
        outcome_free(&outcome);
    }
    struct outcome outcome = run_command(ARGUMENTS("--help"));
    assert_int_equal(outcome.status, 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        assert_non_null(strstr(outcome.out, commands[i]));
    outcome_free(&outcome);
}

/* Whatever way it is asked for. */
static void help_is_given_for_every_way_to_ask(void **state) {
    const struct {
        const char *const *asked, *const *same;
    } pairs[] = {
        {ARGUMENTS("-h"), ARGUMENTS("--help")},
        {ARGUMENTS("help"), ARGUMENTS("--help")},
        {ARGUMENTS("call", "-h"), ARGUMENTS("call", "--help")},
        {ARGUMENTS("help", "call"), ARGUMENTS("call", "--help")},
        {ARGUMENTS("help", "help"), ARGUMENTS("help", "--help")},
        {ARGUMENTS("snapshot", "-h"), ARGUMENTS("snapshot", "--help")},
        {ARGUMENTS("help", "snapshot"), ARGUMENTS("snapshot", "--help")},
        {ARGUMENTS("help", "snapshot", "save"), ARGUMENTS("snapshot", "save", "--help")},
        {ARGUMENTS("help", "snapshot", "info"), ARGUMENTS("snapshot", "info", "--help")},
        {ARGUMENTS("help", "snapshot", "verify"), ARGUMENTS("snapshot", "verify", "-h")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct outcome same = run_command(pairs[i].same);
        assert_string_equal(same.err, "");
        assert_int_equal(same.status, 0);
        assert_int_equal(strncmp(same.out, "usage: pinhole ", 15), 0);
        assert_prints(run_command(pairs[i].asked), 0, same.out);
        outcome_free(&same);
    }
    assert_fails(run_command(ARGUMENTS("help", "fly")), 2,
                 "pinhole: there is no command 'fly'; see 'pinhole --help'\n");
    assert_fails(run_command(ARGUMENTS("help", "snapshot", "fly")), 2,
                 "pinhole: there is no command 'snapshot fly'; see 'pinhole snapshot --help'\n");
    assert_fails(run_command(ARGUMENTS("help", "call", "greet")), 2,
                 "pinhole: call has no commands of its own; see 'pinhole help --help'\n");
}

static void the_version_is_printed(void **state) {
    char line[64];

    (void)state;
    snprintf(line, sizeof line, "pinhole %s\n", ph_version());
    assert_prints(run_command(ARGUMENTS("--version")), 0, line);
}

static void a_wrong_command_line_is_status_2_and_says_what_to_do(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS(NULL)), 2, "pinhole: which command?; see 'pinhole --help'\n");
    assert_fails(run_command(ARGUMENTS("fly")), 2,
                 "pinhole: there is no command 'fly'; see 'pinhole --help'\n");
    assert_fails(run_command(ARGUMENTS("--foo")), 2, "pinhole: unknown option --foo; see 'pinhole --help'\n");
    assert_fails(run_command(ARGUMENTS("call", "--foo")), 2,
                 "pinhole: unknown option --foo; see 'pinhole call --help'\n");
    assert_fails(run_command(ARGUMENTS("call", "--raw=1")), 2, "pinhole: --raw takes no value;");
    assert_fails(run_command(ARGUMENTS("call", "--memory")), 2, "pinhole: --memory needs a value;");
    assert_fails(run_command(ARGUMENTS("call", "--repeat", "0", "f")), 2,
                 "pinhole: --repeat wants a whole number");
    assert_fails(run_command(ARGUMENTS("call", GUEST("types"))), 2, "pinhole: which function?;");
    assert_fails(run_command(ARGUMENTS("call", "--backend", "hvf")), 2, "pinhole: there is no backend 'hvf'");
    assert_fails(run_command(ARGUMENTS("functions", GUEST("types"), "--json")), 2, "pinhole: one file only,");
    assert_fails(run_command(ARGUMENTS("call", GUEST("types"), "echo_i32")), 2,
                 "pinhole: echo_i32 takes 1 argument, 0 were given;");
    assert_fails(run_command(ARGUMENTS("call", "--host", "a=1", GUEST("types"), "echo_void")), 2,
                 "pinhole: the file imports no host function 'a';");
}

static void sizes_and_durations_have_units(void **state) {
    static const char *const wrong_sizes[] = {
        "", "0", "M", "-1", "1k", "1KB", "1.5M", "1 M", "99999999999999999999", "17179869184G"};
    static const char *const wrong_durations[] = {
        "", "5", "0s", "-1s", "1.s", ".5s", "1h", "1 s", "99999999999999m"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof wrong_sizes[0]; i++)
        assert_fails(run_command(ARGUMENTS("call", "--memory", wrong_sizes[i])), 2,
                     "pinhole: --memory wants a size");
    for (size_t i = 0; i < sizeof wrong_durations / sizeof wrong_durations[0]; i++)
        assert_fails(run_command(ARGUMENTS("call", "--timeout", wrong_durations[i])), 2,
                     "pinhole: --timeout wants a number with its unit");
}

static void a_bad_file_is_status_2(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("call", "/nonexistent/guest", "f")), 2,
                 "pinhole: /nonexistent/guest: ");
    assert_fails(run_command(ARGUMENTS("functions", "/")), 2, "pinhole: /: ");
    assert_fails(run_command(ARGUMENTS("functions", "/bin/sh")), 2,
                 "pinhole: /bin/sh: "); /* needs an interpreter */
    assert_fails(run_command(ARGUMENTS("call", GUEST("types"), "nothing")), 2, "pinhole: ");
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void a_call_prints_its_result_as_json(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("call", "--host", "weekday=\"Friday\"", GUEST("hello"), "greet", "\"W\"")), 0,
        "\"Hello, W! Today is Friday.\"\n");
    assert_prints(run_command(ARGUMENTS("call", "--host=weekday=\"Friday\"", "--raw", "--",
                                        GUEST("hello-musl"), "greet", "\"W\"")),
                  0, "Hello, W! Today is Friday.");
}

static void options_take_their_value_either_way(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("call", "--memory", "128M", "--timeout=1m", "--max-message=1M",
                                        test_is_soft() ? "--backend=soft" : "--backend=kvm", GUEST("types"),
                                        "echo_i32", "-7")),
                  0, "-7\n");
    assert_prints(
        run_command(ARGUMENTS("--backend", test_is_soft() ? "soft" : "auto", "call", "--memory=67108864",
                              "--timeout", "60000.5ms", GUEST("types"), "echo_i32", "7")),
        0, "7\n");
}

static void an_import_without_an_answer_is_named(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", GUEST("hello"), "greet", "\"W\"")), 2,
                 "pinhole: greet: unregistered: the guest calls the host function 'weekday'; answer it with "
                 "--host weekday=");
}

static void a_failed_call_says_its_function_and_kind_first(void **state) {
    static const struct {
        const char *function, *line;
    } cases[] = {
        {"null", "pinhole: null: page-fault: read of unmapped address 0x0 at 0x"},
        {"page_fault_write", "pinhole: page_fault_write: page-fault: "},
        {"undefined", "pinhole: undefined: undefined-instruction: "},
        {"divide", "pinhole: divide: divide-error: "},
        {"general_protection", "pinhole: general_protection: general-protection: "},
        {"stack_overflow", "pinhole: stack_overflow: stack-overflow: "},
        {"privileged", "pinhole: privileged: privileged-instruction: "},
        {"foreign_port", "pinhole: foreign_port: protocol: "},
        {"abort", "pinhole: abort: abort: "},
        {"exit", "pinhole: exit: exit: "},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_fails(run_command(ARGUMENTS("call", GUEST("faults"), cases[i].function)), 1, cases[i].line);
}

static void a_guest_error_shows_its_code_and_message(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", GUEST("sqlite"), "query", "\"select * from t\"")), 1,
                 "pinhole: query: guest-error: code 0x1: no such table: t\n");
}

static void a_call_that_takes_too_long_is_ended(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", "--timeout", "3s", GUEST("faults"), "spin")), 1,
                 "pinhole: spin: time-out: the time-out ended the guest in busy_loop\n");
}

static void a_call_that_goes_beyond_a_limit_is_ended(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", "--cpu-time", "500ms", GUEST("faults"), "spin")), 1,
                 "pinhole: spin: cpu-time: the limit of processor time ended the guest in busy_loop\n");
    assert_fails(run_command(ARGUMENTS("call", "--max-output=19", "--host=visit=1", GUEST("limits"),
                                       "write_often", "4", "5")),
                 1, "pinhole: write_often: output-limit: the limit of output ended the guest in write\n");
    assert_fails(
        run_command(
            ARGUMENTS("call", "--max-host-calls=3", "--host=visit=1", GUEST("limits"), "visit_often", "4")),
        1, "pinhole: visit_often: host-call-limit: the limit of host calls ended the guest in host_call\n");
    assert_prints(run_command(ARGUMENTS("call", "--max-host-calls=4", "--cpu-time=1m", "--max-output=1K",
                                        "--repeat=3", "--host=visit=1", GUEST("limits"), "visit_often", "4")),
                  0, "1\n");
    assert_fails(run_command(ARGUMENTS("call", "--cpu-time", "0", GUEST("faults"), "spin")), 2,
                 "pinhole: --cpu-time wants a number with its unit");
    assert_fails(run_command(ARGUMENTS("call", "--max-output", "x", GUEST("faults"), "spin")), 2,
                 "pinhole: --max-output wants a size");
    assert_fails(run_command(ARGUMENTS("call", "--max-host-calls", "0", GUEST("faults"), "spin")), 2,
                 "pinhole: --max-host-calls wants a whole number");
}

static void the_message_limit_grows_to_fit_the_arguments(void **state) {
    static char text[(17 << 20) + 1];
    char name[64];

    (void)state;
    test_needs_kvm();
    memset(text, 'x', sizeof text - 1);
    int file = memfd_create("text", 0);
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    snprintf(name, sizeof name, "@/proc/%d/fd/%d", (int)getpid(), file);
    assert_prints(run_command(ARGUMENTS("call", "--raw", GUEST("types"), "echo_str", name)), 0, text);
    assert_fails(run_command(ARGUMENTS("call", "--max-message", "4K", GUEST("types"), "echo_str", name)), 1,
                 "pinhole: echo_str: too-large: ");
    close(file);
}

static json_int_t stat_of(const json_t *stats, const char *name) {
    assert_true(json_is_integer(json_object_get(stats, name)));
    return json_integer_value(json_object_get(stats, name));
}

static void statistics_are_summed_over_repeats(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", "--stats", "--repeat", "5", "--host",
                                                   "weekday=\"Friday\"", GUEST("hello"), "greet", "\"W\""));
    json_t *stats = json_loads(outcome.err, 0, NULL);
    assert_non_null(stats);
    assert_int_equal(json_object_size(stats), 21);
    assert_int_equal(stat_of(stats, "calls"), 5);
    assert_int_equal(stat_of(stats, "host_calls"), 5);
    assert_true(stat_of(stats, "exits") >= 10);
    assert_true(stat_of(stats, "guest_ns") > 0);
    assert_true(stat_of(stats, "host_ns") >= 0);
    assert_true(stat_of(stats, "pages_touched") > 0);
    assert_int_equal(stat_of(stats, "exits_host_call"), 5);
    assert_int_equal(stat_of(stats, "exits_end"), 5);
    assert_true(stat_of(stats, "exits") >= 10 + stat_of(stats, "exits_kick"));
    assert_true(stat_of(stats, "cpu_ns") > 0);
    assert_int_equal(stat_of(stats, "sleep_ns"), 0);
    assert_int_equal(stat_of(stats, "output_bytes"), 0);
    assert_int_equal(stat_of(stats, "pages_copied"), 0);
    assert_string_equal(outcome.out, "\"Hello, W! Today is Friday.\"\n"); /* the last result only */
    assert_int_equal(outcome.status, 0);
    json_decref(stats);
    outcome_free(&outcome);
}

static void a_database_lives_as_long_as_its_sandbox(void **state) {
    static const char statements[] =
        "\"create table if not exists t (a); insert into t values (1); select count(*) as n from t\"";

    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("call", "--raw", "--repeat", "3", GUEST("sqlite"), "query", statements)), 0,
        "[{\"n\":3}]");
}

/* ---- what the guest prints -------------------------------------------------------------------------------
 */

static void what_the_guest_prints_goes_to_stderr_in_order(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", "--repeat", "2", GUEST("chatty"), "speak"));
    assert_string_equal(outcome.out, "7\n");
    assert_string_equal(outcome.err, "to stdout\nto stderr\nto stdout\nto stderr\n");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void the_line_of_a_failed_call_comes_before_it(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", GUEST("chatty"), "speak_and_fail")), 1,
                 "pinhole: speak_and_fail: guest-error: code 0x12: gone wrong\nbefore\n");
    assert_fails(
        run_command(ARGUMENTS("call", "--timeout", "300ms", GUEST("chatty"), "speak_and_spin")), 1,
        "pinhole: speak_and_spin: time-out: the time-out ended the guest in speak_and_spin\nbefore\n");
}

static void nothing_that_the_c_library_buffers_is_lost(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", GUEST("chatty"), "print_without_newline"));
    assert_string_equal(outcome.out, "3\n");
    assert_string_equal(outcome.err, "half a line");
    outcome_free(&outcome);
    outcome = run_command(ARGUMENTS("call", GUEST("chatty"), "print_and_fault"));
    assert_non_null(strstr(outcome.err, "\nbefore the fault\n"));
    assert_int_equal(outcome.status, 1);
    outcome_free(&outcome);
}

static void much_that_the_guest_prints_is_all_there(void **state) {
    const unsigned count = 200000; /* 3 MiB: more than is held back */
    char last[32];

    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", GUEST("chatty"), "speak_at_length", "200000"));
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.err_size, (size_t)count * 16);
    for (unsigned i = 0; i < count; i += 777) {
        snprintf(last, sizeof last, "line %10u\n", i);
        assert_memory_equal(outcome.err + (size_t)i * 16, last, 16);
    }
    outcome_free(&outcome);
}

/* ---- output that cannot be written, and signals -------------------------------------------------------- */

static void a_full_disk_is_noticed(void **state) {
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(full >= 0);
    struct running running = command_start_to(ARGUMENTS("functions", GUEST("types")), 0, full);
    assert_fails(command_wait(&running), 1,
                 "pinhole: writing to standard output failed: No space left on device\n");
}

/* What is larger than the stream's buffer fails long before the stream is closed. */
static void a_full_disk_is_noticed_at_once(void **state) {
    static char text[100000];
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    test_needs_kvm();
    assert_true(full >= 0);
    memset(text, 'a', sizeof text - 1);
    text[0] = text[sizeof text - 2] = '"';
    struct running running =
        command_start_to(ARGUMENTS("call", "--raw", GUEST("types"), "echo_str", text), 0, full);
    assert_fails(command_wait(&running), 1,
                 "pinhole: writing to standard output failed: No space left on device\n");
}

static void a_closed_pipe_ends_the_command_like_any_other(void **state) {
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    struct running running = command_start_to(ARGUMENTS("functions", GUEST("types")), 0, ends[1]);
    struct outcome outcome = command_wait(&running);
    assert_int_equal(outcome.status, 128 + SIGPIPE);
    assert_string_equal(outcome.err, "");
    outcome_free(&outcome);
}

static void a_signal_interrupts_the_guest(void **state) {
    static const int signals[] = {SIGINT, SIGTERM};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct running running = command_start(ARGUMENTS("call", GUEST("faults"), "spin"), 0);
        usleep(500000);
        assert_int_equal(kill(running.process, signals[i]), 0);
        assert_fails(command_wait(&running), 128 + signals[i], "pinhole: spin: interrupted: ");
    }
}

static void a_signal_between_two_calls_is_not_lost(void **state) {
    (void)state;
    test_needs_kvm();
    for (unsigned i = 0; i < test_scaled(20); i++) {
        struct running running =
            command_start(ARGUMENTS("call", "--repeat", "1000000000", GUEST("types"), "echo_i32", "1"), 0);
        usleep(60000 + i * 1111);
        assert_int_equal(kill(running.process, SIGTERM), 0);
        struct outcome outcome = command_wait(&running);
        assert_int_equal(outcome.status, 143);
        assert_string_equal(outcome.out, "");
        outcome_free(&outcome);
    }
}

/* Runs the command with PINHOLE_BACKEND as (backend), and leaves it as it is for the other tests. */
static struct outcome run_with_backend(const char *backend, const char *const *arguments) {
    setenv("PINHOLE_BACKEND", backend, 1);
    struct outcome outcome = run_command(arguments);
    if (test_is_soft())
        setenv("PINHOLE_BACKEND", "soft", 1);
    else
        unsetenv("PINHOLE_BACKEND");
    return outcome;
}

static void the_environment_chooses_the_backend(void **state) {
    (void)state;
    assert_fails(run_with_backend("hvf", ARGUMENTS("doctor")), 2, "pinhole: PINHOLE_BACKEND is 'hvf'");
    struct outcome outcome = run_with_backend("auto", ARGUMENTS("functions", GUEST("types")));
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void soft_runs_where_it_is_asked_for(void **state) {
    const struct ph__backend *backend;
    ph_error error;

    (void)state;
    if (ph__backend_find(PH_BACKEND_SOFT, NULL, NULL, &backend, &error) != PH_OK) {
        fprintf(stderr, "SKIPPED, there is no soft backend: %s\n", error.message);
        skip();
    }
    assert_prints(run_command(ARGUMENTS("--backend", "soft", "call", GUEST("types"), "echo_i32", "-7")), 0,
                  "-7\n");
    assert_prints(run_with_backend("soft", ARGUMENTS("call", GUEST("types"), "echo_i32", "-7")), 0, "-7\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soft_runs_where_it_is_asked_for),
        cmocka_unit_test(every_command_has_help),
        cmocka_unit_test(help_is_given_for_every_way_to_ask),
        cmocka_unit_test(the_version_is_printed),
        cmocka_unit_test(a_wrong_command_line_is_status_2_and_says_what_to_do),
        cmocka_unit_test(sizes_and_durations_have_units),
        cmocka_unit_test(a_bad_file_is_status_2),
        cmocka_unit_test(a_call_prints_its_result_as_json),
        cmocka_unit_test(options_take_their_value_either_way),
        cmocka_unit_test(an_import_without_an_answer_is_named),
        cmocka_unit_test(a_failed_call_says_its_function_and_kind_first),
        cmocka_unit_test(a_guest_error_shows_its_code_and_message),
        cmocka_unit_test(a_call_that_takes_too_long_is_ended),
        cmocka_unit_test(a_call_that_goes_beyond_a_limit_is_ended),
        cmocka_unit_test(the_message_limit_grows_to_fit_the_arguments),
        cmocka_unit_test(statistics_are_summed_over_repeats),
        cmocka_unit_test(a_database_lives_as_long_as_its_sandbox),
        cmocka_unit_test(what_the_guest_prints_goes_to_stderr_in_order),
        cmocka_unit_test(the_line_of_a_failed_call_comes_before_it),
        cmocka_unit_test(nothing_that_the_c_library_buffers_is_lost),
        cmocka_unit_test(much_that_the_guest_prints_is_all_there),
        cmocka_unit_test(a_full_disk_is_noticed),
        cmocka_unit_test(a_full_disk_is_noticed_at_once),
        cmocka_unit_test(a_closed_pipe_ends_the_command_like_any_other),
        cmocka_unit_test(a_signal_interrupts_the_guest),
        cmocka_unit_test(a_signal_between_two_calls_is_not_lost),
        cmocka_unit_test(the_environment_chooses_the_backend),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
