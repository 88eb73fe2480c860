/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `--metrics-listen` of run and call: what is served while a guest works, to whom, and that no client can
 * harm the call. Requests are written as bytes, so that wrong ones can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/openmetrics.h"
#include "support/support.h"
#include "system/command_runner.h"

#define GREET "--host", "weekday=\"Friday\"", test_guest_path("hello"), "greet", "\"World\""
#define GREETING "\"Hello, World! Today is Friday.\"\n"
#define FOR_EVER "1000000000000"
#define WAIT_MS 20000

/* ---- a command that serves ----------------------------------------------------------------------------- */

static struct running start(const char *const *arguments) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct running running = command_start(arguments, nothing);

    close(nothing);
    return running;
}

/* The port that the command says it listens at. */
static in_port_t port_of(const struct running *running, const char *host) {
    char said[512], before[128];

    snprintf(before, sizeof before, "pinhole: metrics on http://%s:", host);
    for (unsigned waited = 0; waited < WAIT_MS; waited++) {
        ssize_t size = pread(running->err, said, sizeof said - 1, 0);
        assert_true(size >= 0);
        said[size] = 0;
        if (strchr(said, '\n')) {
            if (strncmp(said, before, strlen(before)) != 0 || !strstr(said, "/metrics\n"))
                fail_msg("it says: %s", said);
            return (in_port_t)strtol(said + strlen(before), NULL, 10);
        }
        usleep(1000);
    }
    fail_msg("it says nothing");
    return 0;
}

static int connected(in_port_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(file >= 0);
    if (connect(file, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(file);
        return -1;
    }
    return file;
}

/* All that comes until the other side ends, in static memory. */
static const char *received(int file) {
    static char bytes[1 << 18];
    size_t size = 0;

    for (;;) {
        struct pollfd waited = {.fd = file, .events = POLLIN};
        if (poll(&waited, 1, WAIT_MS) != 1)
            fail_msg("no answer");
        ssize_t got = read(file, bytes + size, sizeof bytes - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    bytes[size] = 0;
    close(file);
    return bytes;
}

/* The answer to (request), which is sent as it is. */
static const char *answer(in_port_t port, const char *request) {
    int file = connected(port);

    assert_true(file >= 0);
    assert_int_equal(send(file, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return received(file);
}

#define REQUEST(method, path, headers)                                                                       \
    method " " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" headers "\r\n"

static void starts_with(const char *text, const char *start) {
    if (strncmp(text, start, strlen(start)) != 0)
        fail_msg("'%.200s' instead of '%s'", text, start);
}

/* What is behind the head of an answer. */
static const char *body(const char *text) {
    const char *end = strstr(text, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

static struct outcome ended_by_hand(struct running *running) {
    assert_int_equal(kill(running->process, SIGINT), 0);
    return command_wait(running);
}

/* ---- serving ------------------------------------------------------------------------------------------- */

static void a_call_that_goes_on_can_be_watched(void **state) {
    (void)state;
    test_needs_kvm();
    struct running running =
        start(ARGUMENTS("call", "--metrics-listen", "127.0.0.1:0", "--repeat", FOR_EVER, GREET));
    const in_port_t port = port_of(&running, "127.0.0.1");
    double before = 0;

    for (int i = 0; i < 3; i++) {
        double calls = 0;
        while (calls <= before) {
            const char *text = answer(port, REQUEST("GET", "/metrics", ""));
            starts_with(text, "HTTP/1.1 200 OK\r\n");
            assert_non_null(strstr(text, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
            assert_null(strstr(text, "# EOF"));
            calls = openmetrics_value(text, "pinhole_calls_total");
            assert_true(calls >= before);
        }
        before = calls;
    }
    const char *text = answer(
        port, REQUEST("GET", "/metrics?x=y", "Accept: application/openmetrics-text;version=1.0.0\r\n"));
    starts_with(text, "HTTP/1.1 200 OK\r\n");
    assert_non_null(
        strstr(text, "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    if (openmetrics_check(body(text)))
        fail_msg("%s", openmetrics_check(body(text)));
    assert_true(openmetrics_value(text, "pinhole_host_calls_total") >= before);
    struct outcome outcome = ended_by_hand(&running);
    assert_int_equal(outcome.status, 130);
    outcome_free(&outcome);
    assert_int_equal(connected(port), -1);
}

static void a_program_that_runs_on_can_be_watched(void **state) {
    (void)state;
    test_needs_kvm();
    struct running running = start(
        ARGUMENTS("run", "--metrics-listen=:0", "--trace", "jsonl:/dev/null", busybox_path(), "yes", "word"));
    const in_port_t port = port_of(&running, "127.0.0.1");
    double bytes = 0, records = 0;

    while (bytes <= 0 || records <= 0) {
        const char *text = answer(port, REQUEST("GET", "/metrics", ""));
        bytes = openmetrics_value(text, "pinhole_guest_output_bytes_total");
        records = openmetrics_value(text, "pinhole_trace_records_total");
        assert_int_equal(openmetrics_value(text, "pinhole_sandbox_creations_total"),
                         openmetrics_value(text, "pinhole_sandbox_active"));
    }
    assert_int_equal(kill(running.process, SIGINT), 0);
    struct outcome outcome = command_wait(&running);
    assert_int_equal(outcome.status, 130);
    outcome_free(&outcome);
}

static void all_else_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct running running =
        start(ARGUMENTS("call", "--metrics-listen", "localhost:0", "--repeat", FOR_EVER, GREET));
    const in_port_t port = port_of(&running, "127.0.0.1");

    const char *text = answer(port, REQUEST("HEAD", "/metrics", ""));
    starts_with(text, "HTTP/1.1 200 OK\r\n");
    assert_string_equal(body(text), "");
    starts_with(answer(port, REQUEST("GET", "/", "")), "HTTP/1.1 404 Not Found\r\n");
    starts_with(answer(port, REQUEST("GET", "/metrics/", "")), "HTTP/1.1 404 Not Found\r\n");
    starts_with(answer(port, REQUEST("GET", "/../metrics", "")), "HTTP/1.1 404 Not Found\r\n");
    starts_with(answer(port, REQUEST("DELETE", "/x", "")), "HTTP/1.1 404 Not Found\r\n");
    static const char *const others[] = {
        REQUEST("DELETE", "/metrics", ""),
        REQUEST("OPTIONS", "/metrics", ""),
        /* The bodies never come. */
        REQUEST("POST", "/metrics", "Content-Length: 1000000\r\n"),
        REQUEST("PUT", "/metrics", "Transfer-Encoding: chunked\r\n"),
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        text = answer(port, others[i]);
        starts_with(text, "HTTP/1.1 405 Method Not Allowed\r\n");
        assert_non_null(strstr(text, "\r\nAllow: GET, HEAD\r\n"));
    }
    struct outcome outcome = ended_by_hand(&running);
    assert_int_equal(outcome.status, 130);
    outcome_free(&outcome);
}

/* ---- hostile clients ----------------------------------------------------------------------------------- */

/* Sends (size) bytes as far as they are taken. */
static void pour(int file, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(file, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void a_request_without_an_end_is_cut_off(void **state) {
    static char header[1 << 20];
    (void)state;
    test_needs_kvm();
    struct running running = start(ARGUMENTS("call", "--metrics-listen", ":0", "--repeat", FOR_EVER, GREET));
    const in_port_t port = port_of(&running, "127.0.0.1");

    int size = snprintf(header, sizeof header, "GET /metrics HTTP/1.1\r\nX: ");
    memset(header + size, 'x', sizeof header - 1 - (size_t)size);
    int file = connected(port);
    assert_true(file >= 0);
    pour(file, header, sizeof header - 1);
    const char *text = received(file);
    if (text[0]) /* the answer may be lost with the bytes that nobody has read */
        starts_with(text, "HTTP/1.1 4");
    static const char nonsense[] = "\0\xff\r\n\r\n nonsense \r\n\r\n";
    file = connected(port);
    pour(file, nonsense, sizeof nonsense);
    shutdown(file, SHUT_WR);
    received(file);
    starts_with(answer(port, REQUEST("GET", "/metrics", "")), "HTTP/1.1 200 OK\r\n");
    struct outcome outcome = ended_by_hand(&running);
    assert_int_equal(outcome.status, 130);
    outcome_free(&outcome);
}

/* More of them than are let in: none says anything more, and none reads. */
static void clients_that_wait_hold_up_no_call_and_no_end(void **state) {
    int files[30]; /* and not more than may wait to be let in */
    (void)state;
    test_needs_kvm();
    /* A second or two: a call costs less on the soft backend. */
    const char *const calls = test_is_soft() ? "200000" : "20000";
    struct running running = start(ARGUMENTS("call", "--metrics-listen", ":0", "--repeat", calls, GREET));
    const in_port_t port = port_of(&running, "127.0.0.1");

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *part = i % 2 ? "GET /metrics HTTP/1.1\r\nHost: " : REQUEST("GET", "/metrics", "");
        files[i] = connected(port);
        assert_true(files[i] >= 0);
        pour(files[i], part, strlen(part));
    }
    struct outcome outcome = command_wait(&running);
    assert_string_equal(outcome.out, GREETING);
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        close(files[i]);
}

/* ---- where it listens ---------------------------------------------------------------------------------- */

static void an_address_in_use_is_said(void **state) {
    char listen_at[64], said[128];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;

    assert_int_equal(bind(file, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(file, 1), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
    snprintf(listen_at, sizeof listen_at, "127.0.0.1:%u", ntohs(address.sin_port));
    snprintf(said, sizeof said, "pinhole: --metrics-listen %s: Address already in use\n", listen_at);
    assert_fails(run_command(ARGUMENTS("call", "--metrics-listen", listen_at, GREET)), 2, said);
    assert_fails(run_command(ARGUMENTS("run", "--metrics-listen", listen_at, test_guest_path("hello"))), 125,
                 said);
    close(file);
}

static void what_is_no_address_is_refused(void **state) {
    static const char *const wrong[] = {
        "",         ":",      "9464",      "127.0.0.1",     "127.0.0.1:",    ":65536",
        ":-1",      ":+1",    ":1x",       ": 1",           "example.com:1", "127.0.0.256:1",
        "::1:9464", "[::1]",  "[::1]9464", "[127.0.0.1]:1", "[]:1",          "127.0.0.1:000001",
        "[::1:1",   "a\nb:1",
    };
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_fails(
            run_command(ARGUMENTS("call", "--metrics-listen", wrong[i], GREET)), 2,
            "pinhole: --metrics-listen wants ADDR:PORT, such as 127.0.0.1:9464 or [::1]:9464, not '");
        assert_fails(run_command(ARGUMENTS("run", "--metrics-listen", wrong[i], test_guest_path("hello"))),
                     125, "pinhole: --metrics-listen wants ADDR:PORT");
    }
    assert_fails(run_command(ARGUMENTS("call", "--metrics-listen", "192.0.2.1:0", GREET)), 2,
                 "pinhole: --metrics-listen 192.0.2.1:0: ");
}

static void it_listens_at_an_address_of_ipv6(void **state) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;

    test_needs_kvm();
    const bool there = file >= 0 && bind(file, (struct sockaddr *)&address, sizeof address) == 0;
    if (file >= 0)
        close(file);
    if (!there) {
        print_message("no IPv6 here\n");
        skip();
    }
    struct running running =
        start(ARGUMENTS("call", "--metrics-listen", "[::1]:0", "--repeat", FOR_EVER, GREET));
    address.sin6_port = htons(port_of(&running, "[::1]"));
    file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof address), 0);
    pour(file, REQUEST("GET", "/metrics", ""), strlen(REQUEST("GET", "/metrics", "")));
    starts_with(received(file), "HTTP/1.1 200 OK\r\n");
    struct outcome outcome = ended_by_hand(&running);
    assert_int_equal(outcome.status, 130);
    outcome_free(&outcome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_goes_on_can_be_watched),
        cmocka_unit_test(a_program_that_runs_on_can_be_watched),
        cmocka_unit_test(all_else_is_refused),
        cmocka_unit_test(a_request_without_an_end_is_cut_off),
        cmocka_unit_test(clients_that_wait_hold_up_no_call_and_no_end),
        cmocka_unit_test(an_address_in_use_is_said),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(it_listens_at_an_address_of_ipv6),
    };
    return cmocka_run_group_tests_name("command_metrics", tests, NULL, NULL);
}
