/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `--trace otlp`: what a collector gets of a call, in whose trace it is, and that a collector that is not
 * there, or does not answer, costs one warning and nothing else.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http_server.h"
#include "support/support.h"
#include "system/command_runner.h"

#define GUEST(name) test_guest_path(name)
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* A caller's trace, and its bytes. */
#define TRACE_BYTES "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"
#define SPAN_BYTES "\xb7\xad\x6b\x71\x69\x20\x33\x31"
#define SAMPLED "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define NOT_SAMPLED "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

/* `otlp:URL` of (server), in static storage. */
static const char *collector(const struct http_server *server) {
    static char word[80];

    snprintf(word, sizeof word, "otlp:%s", http_server_url(server));
    return word;
}

/* Whether any request to (path) has the (size) bytes at (bytes). */
static bool has_come(struct http_server *server, const char *path, const void *bytes, size_t size) {
    for (size_t i = 0; i < http_server_count(server, path); i++) {
        const struct http_request *request = http_server_request(server, path, i);
        if (memmem(request->body, request->size, bytes, size))
            return true;
    }
    return false;
}

static bool text_has_come(struct http_server *server, const char *path, const char *text) {
    return has_come(server, path, text, strlen(text));
}

/* Fails unless (outcome) is that of a call that went well, with one warning that has (part) in it. */
static void assert_one_warning(struct outcome outcome, const char *part) {
    assert_string_equal(outcome.out, "7\n");
    assert_int_equal(outcome.status, 0);
    assert_memory_equal(outcome.err, "pinhole: warning: ", 18);
    assert_ptr_equal(strchr(outcome.err, '\n'), outcome.err + outcome.err_size - 1);
    if (!strstr(outcome.err, part))
        fail_msg("'%s' is not in: %s", part, outcome.err);
    outcome_free(&outcome);
}

static void guests_spans_stand_in_the_callers_trace(void **state) {
    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", collector(server), "--traceparent", SAMPLED, "--host",
                              "weekday=\"Friday\"", GUEST("hello"), "greet", "\"World\""));
    assert_prints(outcome, 0, "\"Hello, World! Today is Friday.\"\n");
    static const char *const spans[] = {"create",  "start",   "guest.init",   "call greet", "guest greet",
                                        "compose", "destroy", "host weekday", "load"};
    for (size_t i = 0; i < COUNT(spans); i++)
        if (!text_has_come(server, "/v1/traces", spans[i]))
            fail_msg("no span '%s'", spans[i]);
    assert_true(has_come(server, "/v1/traces", TRACE_BYTES, 16));
    assert_true(has_come(server, "/v1/traces", SPAN_BYTES, 8));
    assert_true(text_has_come(server, "/v1/logs", "day.known"));
    assert_true(has_come(server, "/v1/logs", TRACE_BYTES, 16));
    assert_true(text_has_come(server, "/v1/metrics", "pinhole.call.duration"));
    http_server_stop(server);
}

static void a_call_that_the_caller_does_not_sample_sends_no_spans(void **state) {
    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    assert_one_warning(run_command(ARGUMENTS("call", "--trace", collector(server), "--traceparent",
                                             NOT_SAMPLED, GUEST("types"), "echo_i32", "7")),
                       ": nothing is traced\n");
    assert_int_equal(http_server_count(server, "/v1/traces"), 0);
    assert_int_equal(http_server_count(server, "/v1/logs"), 0);
    http_server_stop(server);
}

static void the_environment_thins_out_what_is_sent_and_nothing_else(void **state) {
    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
    struct outcome sent =
        run_command(ARGUMENTS("call", "--trace", collector(server), GUEST("types"), "echo_i32", "7"));
    struct outcome shown = run_command(ARGUMENTS("call", "--trace", "text", GUEST("types"), "echo_i32", "7"));
    unsetenv("OTEL_TRACES_SAMPLER");
    assert_prints(sent, 0, "7\n");
    assert_int_equal(http_server_count(server, "/v1/traces"), 0);
    assert_non_null(strstr(shown.err, "call echo_i32 "));
    outcome_free(&shown);
    http_server_stop(server);
}

static void a_collector_can_be_named_by_the_environment(void **state) {
    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", http_server_url(server), 1);
    setenv("OTEL_SERVICE_NAME", "shop", 1);
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", "otlp", GUEST("types"), "echo_i32", "7"));
    unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    unsetenv("OTEL_SERVICE_NAME");
    assert_prints(outcome, 0, "7\n");
    assert_true(text_has_come(server, "/v1/traces", "call echo_i32"));
    assert_true(text_has_come(server, "/v1/traces", "shop"));
    http_server_stop(server);
}

/* A port at which nobody listens: one that was just given back. */
static unsigned free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(file, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
    close(file);
    return ntohs(address.sin_port);
}

static void a_collector_that_is_not_there_is_one_warning(void **state) {
    char output[80];

    (void)state;
    test_needs_kvm();
    snprintf(output, sizeof output, "otlp:http://127.0.0.1:%u", free_port());
    assert_one_warning(run_command(ARGUMENTS("call", "--trace", output, "--flush-timeout", "200ms",
                                             GUEST("types"), "echo_i32", "7")),
                       " spans");
}

static void a_collector_that_does_not_answer_is_given_up(void **state) {
    static const struct http_answer stall = {.kind = HTTP_STALL};

    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    http_server_script(server, "/v1/traces", &stall, 1);
    assert_one_warning(run_command(ARGUMENTS("call", "--trace", collector(server), "--flush-timeout", "300ms",
                                             GUEST("types"), "echo_i32", "7")),
                       "lost on the way to the collector: ");
    http_server_stop(server);
}

/* The result is out before the collector is waited for, and Ctrl-C ends the wait. */
static void a_signal_ends_the_wait_for_a_collector(void **state) {
    static const struct http_answer stall = {.kind = HTTP_STALL};
    char result[8] = "";
    int ends[2];

    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    http_server_script(server, "/v1/traces", &stall, 1);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct running running =
        command_start_to(ARGUMENTS("call", "--trace", collector(server), "--flush-timeout", "10m",
                                   GUEST("types"), "echo_i32", "7"),
                         0, ends[1]);
    assert_int_equal(read(ends[0], result, sizeof result - 1), 2);
    assert_string_equal(result, "7\n");
    http_server_wait(server, "/v1/traces", 1);
    assert_int_equal(kill(running.process, SIGINT), 0);
    struct outcome outcome = command_wait(&running);
    assert_int_equal(outcome.status, 130);
    assert_non_null(strstr(outcome.err, "lost on the way to the collector: "));
    outcome_free(&outcome);
    close(ends[0]);
    http_server_stop(server);
}

static void a_collector_that_stalls_costs_another_nothing(void **state) {
    static const struct http_answer stall = {.kind = HTTP_STALL};
    char stalled[80];

    (void)state;
    test_needs_kvm();
    struct http_server *slow = http_server_start(0), *good = http_server_start(0);
    for (size_t i = 0; i < 3; i++)
        http_server_script(slow, ((const char *const[]){"/v1/traces", "/v1/logs", "/v1/metrics"})[i], &stall,
                           1);
    snprintf(stalled, sizeof stalled, "otlp:%s", http_server_url(slow));
    struct outcome outcome = run_command(ARGUMENTS("call", "--trace", stalled, "--trace", collector(good),
                                                   "--flush-timeout", "2s", GUEST("types"), "echo_i32", "7"));
    assert_one_warning(outcome, http_server_url(slow));
    assert_true(text_has_come(good, "/v1/traces", "call echo_i32"));
    assert_true(text_has_come(good, "/v1/metrics", "pinhole.call.duration"));
    http_server_stop(slow);
    http_server_stop(good);
}

/* On a terminal, which script(1) makes. */
static void a_person_who_waits_is_told_so(void **state) {
    static const struct http_answer stall = {.kind = HTTP_STALL};
    char line[4096], text[16384] = "";

    (void)state;
    test_needs_kvm();
    if (access("/usr/bin/script", X_OK) != 0) {
        print_message("there is no script(1) here\n");
        skip();
    }
    struct http_server *server = http_server_start(0);
    http_server_script(server, "/v1/traces", &stall, 1);
    snprintf(line, sizeof line,
             "script -qec \"'%s' call --trace %s --flush-timeout 2500ms '%s' echo_i32 7\" /dev/null",
             getenv("PH_TEST_COMMAND"), collector(server), GUEST("types"));
    FILE *output = popen(line, "re"); /* NOLINT(cert-env33-c): of paths of our own */
    assert_non_null(output);
    size_t size = fread(text, 1, sizeof text - 1, output);
    assert_int_equal(pclose(output), 0);
    assert_true(size > 0);
    assert_memory_equal(text, "7\r\n", 3);
    const char *progress = strstr(text, "\r\033[Kwriting the trace: ");
    assert_non_null(progress);
    /* It is taken away before what is left to be said. */
    assert_non_null(strstr(progress, "\r\033[Kpinhole: warning: lost on the way to the collector: "));
    http_server_stop(server);
}

static void a_collector_that_refuses_is_one_warning_with_its_reason(void **state) {
    static const struct http_answer refusal = {.status = 401};

    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    http_server_script(server, "/v1/traces", &refusal, 1);
    assert_one_warning(
        run_command(ARGUMENTS("call", "--trace", collector(server), GUEST("types"), "echo_i32", "7")), "401");
    assert_int_equal(http_server_count(server, "/v1/traces"), 1);
    http_server_stop(server);
}

static void a_failed_call_keeps_its_status_and_says_so_in_its_span(void **state) {
    (void)state;
    test_needs_kvm();
    struct http_server *server = http_server_start(0);
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", collector(server), GUEST("faults"), "page_fault_read"));
    assert_int_equal(outcome.status, 1);
    assert_non_null(strstr(outcome.err, ": page-fault: "));
    outcome_free(&outcome);
    assert_true(text_has_come(server, "/v1/traces", "exception.type"));
    assert_true(text_has_come(server, "/v1/traces", "page-fault"));
    http_server_stop(server);
}

static void what_is_no_url_is_refused_before_anything_runs(void **state) {
    (void)state;
    assert_fails(
        run_command(ARGUMENTS("call", "--trace", "otlp:ftp://host", GUEST("types"), "echo_i32", "7")), 2,
        "pinhole: ");
    assert_fails(run_command(ARGUMENTS("run", "--trace", "otlp:localhost", GUEST("hello"))), 125,
                 "pinhole: ");
}

static void a_traceparent_that_is_not_valid_is_warned_of_and_ignored(void **state) {
    (void)state;
    test_needs_kvm();
    assert_one_warning(
        run_command(ARGUMENTS("call", "--traceparent", "00-nonsense", GUEST("types"), "echo_i32", "7")),
        "--traceparent '00-nonsense' is not valid, and is ignored\n");
}

/* What a developer has set is not for these tests. */
static void forget_environment(void) {
    char name[128];

    for (char **entry = environ; *entry;) {
        const size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "OTEL_", 5) == 0 && length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = 0;
            unsetenv(name);
            entry = environ;
        } else {
            entry++;
        }
    }
}

int main(void) {
    forget_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_spans_stand_in_the_callers_trace),
        cmocka_unit_test(a_call_that_the_caller_does_not_sample_sends_no_spans),
        cmocka_unit_test(the_environment_thins_out_what_is_sent_and_nothing_else),
        cmocka_unit_test(a_collector_can_be_named_by_the_environment),
        cmocka_unit_test(a_collector_that_is_not_there_is_one_warning),
        cmocka_unit_test(a_collector_that_does_not_answer_is_given_up),
        cmocka_unit_test(a_signal_ends_the_wait_for_a_collector),
        cmocka_unit_test(a_collector_that_stalls_costs_another_nothing),
        cmocka_unit_test(a_person_who_waits_is_told_so),
        cmocka_unit_test(a_collector_that_refuses_is_one_warning_with_its_reason),
        cmocka_unit_test(a_failed_call_keeps_its_status_and_says_so_in_its_span),
        cmocka_unit_test(what_is_no_url_is_refused_before_anything_runs),
        cmocka_unit_test(a_traceparent_that_is_not_valid_is_warned_of_and_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
