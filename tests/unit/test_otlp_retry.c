/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the exporter to OpenTelemetry makes of a collector's answers: what is sent again and when, what is
 * never sent again, and that nothing in an answer does harm.
 */
#include "otlp_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char protobuf[] = "Content-Type: application/x-protobuf\r\n";

/* Sends one span to a collector that answers as (answers) say; gives the counts after a flush. */
static ph_otlp_stats one_span(struct fixture *fixture, const struct http_answer *answers, size_t count) {
    http_server_script(fixture->server, TRACES, answers, count);
    fixture_create(fixture);
    fixture_span(fixture, "span-one");
    fixture_flush(fixture);
    return fixture_stats(fixture);
}

/* ---- what is sent again -------------------------------------------------------------------------------- */

static void a_busy_collector_is_asked_again(void **state) {
    static const int statuses[] = {429, 502, 503, 504};

    (void)state;
    for (size_t i = 0; i < COUNT(statuses); i++) {
        const struct http_answer answers[] = {{.status = statuses[i]}, {.status = statuses[i]}, {0}};
        struct fixture fixture;
        fixture_begin(&fixture);
        const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
        assert_int_equal(stats.sent_spans, 1);
        assert_int_equal(stats.lost_spans, 0);
        assert_int_equal(stats.requests, 3);
        assert_int_equal(stats.retries, 2);
        const struct http_request *first = http_server_request(fixture.server, TRACES, 0);
        const struct http_request *third = http_server_request(fixture.server, TRACES, 2);
        assert_int_equal(first->size, third->size);
        assert_memory_equal(first->body, third->body, first->size);
        fixture_end(&fixture);
        assert_int_equal(fixture.line_count, 0);
    }
}

static void a_compressed_request_is_the_same_again(void **state) {
    const struct http_answer answers[] = {{.status = 503}, {0}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.compression = "gzip";
    assert_int_equal(one_span(&fixture, answers, COUNT(answers)).sent_spans, 1);
    const struct http_request *again = http_server_request(fixture.server, TRACES, 1);
    assert_true(again->gzip);
    assert_int_equal(http_request_holds(again, "span-one"), 1);
    fixture_end(&fixture);
}

static void a_connection_that_ends_without_an_answer_is_tried_again(void **state) {
    const struct http_answer answers[] = {{.kind = HTTP_CLOSE}, {0}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
    assert_int_equal(stats.sent_spans, 1);
    assert_int_equal(stats.retries, 1);
    fixture_end(&fixture);
}

static void the_collector_says_when_in_seconds(void **state) {
    const struct http_answer answers[] = {{.status = 429, .headers = "Retry-After: 1\r\n"}, {0}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    const uint64_t before = test_now_ns();
    assert_int_equal(one_span(&fixture, answers, COUNT(answers)).sent_spans, 1);
    /* Our own pause would have been a hundredth of that. */
    assert_true(test_now_ns() - before >= 900000000);
    fixture_end(&fixture);
}

static void the_collector_says_when_as_a_date(void **state) {
    char header[64];
    const time_t later = time(NULL) + 3;
    struct tm parts;
    const struct http_answer answers[] = {{.status = 503, .headers = header}, {0}};
    struct fixture fixture;

    (void)state;
    strftime(header, sizeof header, "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&later, &parts));
    fixture_begin(&fixture);
    const uint64_t before = test_now_ns();
    assert_int_equal(one_span(&fixture, answers, COUNT(answers)).sent_spans, 1);
    assert_true(test_now_ns() - before >= 900000000);
    fixture_end(&fixture);
}

static void a_wait_that_is_too_long_is_not_begun(void **state) {
    const struct http_answer answers[] = {{.status = 503, .headers = "Retry-After: 3600\r\n"}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
    assert_int_equal(stats.lost_spans, 1);
    assert_int_equal(stats.requests, 1);
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "HTTP status 503; 1 span lost"), 1);
}

/* ---- what is not --------------------------------------------------------------------------------------- */

static void a_refusal_is_final(void **state) {
    static const int statuses[] = {301, 302, 307, 400, 401, 404, 408, 413, 500, 501, 505};

    (void)state;
    for (size_t i = 0; i < COUNT(statuses); i++) {
        const struct http_answer answers[] = {
            {.status = statuses[i], .headers = "Location: /elsewhere\r\nRetry-After: 1\r\n"}};
        struct fixture fixture;
        char text[64];
        fixture_begin(&fixture);
        const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
        assert_int_equal(stats.sent_spans, 0);
        assert_int_equal(stats.lost_spans, 1);
        assert_int_equal(stats.requests, 1);
        assert_int_equal(http_server_count(fixture.server, NULL), 1);
        fixture_end(&fixture);
        snprintf(text, sizeof text, "HTTP status %d", statuses[i]);
        assert_int_equal(fixture_told(&fixture, text), 1);
        assert_int_equal(fixture.line_count, 1);
    }
}

static void the_collectors_words_are_told_and_cannot_forge_a_line(void **state) {
    const struct http_answer answers[] = {{.status = 400,
                                           .headers = protobuf,
                                           .body = "\x08\x03\x12\x0e"
                                                   "bad\nspan\x1b[2Jx!",
                                           .size = 18}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    one_span(&fixture, answers, COUNT(answers));
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "HTTP status 400: bad?span?[2Jx!; 1 span lost"), 1);
}

static void a_partial_success_is_counted_and_never_repeated(void **state) {
    /* partial_success: rejected_spans 2, error_message "too old" */
    const struct http_answer answers[] = {
        {.headers = protobuf, .body = "\x0a\x0b\x08\x02\x12\x07too old", .size = 13}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    http_server_script(fixture.server, TRACES, answers, COUNT(answers));
    fixture_create(&fixture);
    for (unsigned i = 0; i < 5; i++)
        fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    const ph_otlp_stats stats = fixture_stats(&fixture);
    assert_int_equal(stats.sent_spans, 3);
    assert_int_equal(stats.lost_spans, 2);
    assert_int_equal(stats.requests, 1);
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "rejected by the collector: too old; 2 spans lost"), 1);
}

static void a_warning_is_told_and_nothing_is_lost(void **state) {
    const struct http_answer answers[] = {{.headers = protobuf, .body = "\x0a\x06\x12\x04slow", .size = 8}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    assert_int_equal(one_span(&fixture, answers, COUNT(answers)).sent_spans, 1);
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "the collector says: slow"), 1);
    assert_int_equal(fixture_told(&fixture, "lost"), 0);
}

static void a_collector_cannot_reject_more_than_it_got(void **state) {
    static const struct {
        const char *body;
        size_t size;
        uint64_t lost;
    } cases[] = {
        {"\x0a\x06\x08\xff\xff\xff\xff\x0f", 8, 1},                          /* four billion */
        {"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, 0},     /* -1 */
        {"\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12, 1},         /* the largest */
        {"\x0a\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14, 0}, /* no varint */
        {"\x0a\x02\x08\x01", 4, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct http_answer answers[] = {
            {.headers = protobuf, .body = cases[i].body, .size = cases[i].size}};
        struct fixture fixture;
        fixture_begin(&fixture);
        const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
        assert_int_equal(stats.lost_spans, cases[i].lost);
        assert_int_equal(stats.sent_spans, 1 - cases[i].lost);
        fixture_end(&fixture);
    }
}

static void bytes_of_another_type_are_not_read(void **state) {
    const struct http_answer answers[] = {
        {.headers = "Content-Type: text/plain\r\n", .body = "\x0a\x02\x08\x01", .size = 4}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    assert_int_equal(one_span(&fixture, answers, COUNT(answers)).sent_spans, 1);
    fixture_end(&fixture);
    assert_int_equal(fixture.line_count, 0);
}

static void what_was_taken_is_not_sent_again_when_the_answer_is_cut(void **state) {
    const struct http_answer answers[] = {
        {.kind = HTTP_CUT, .headers = protobuf, .body = "\x0a\x02\x08\x01", .size = 4}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
    assert_int_equal(stats.requests, 1);
    assert_int_equal(stats.lost_spans, 1); /* what of it could be read says so */
    fixture_end(&fixture);
}

static void an_answer_without_an_end_is_left(void **state) {
    const struct http_answer answers[] = {{.kind = HTTP_ENDLESS}, {0}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.timeout_ns = LONG_NS;
    assert_int_equal(one_span(&fixture, answers, COUNT(answers)).sent_spans, 1);
    fixture_span(&fixture, "span-two");
    fixture_flush(&fixture);
    assert_int_equal(fixture_stats(&fixture).sent_spans, 2);
    fixture_end(&fixture);
    assert_int_equal(fixture.line_count, 0);
}

static void what_is_no_http_is_a_loss(void **state) {
    const struct http_answer answers[] = {
        {.kind = HTTP_GARBAGE, .body = "SSH-2.0-OpenSSH_9.2\r\n\x00\xff", .size = 23}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    const ph_otlp_stats stats = one_span(&fixture, answers, COUNT(answers));
    assert_int_equal(stats.lost_spans, 1);
    assert_int_equal(stats.requests, 1);
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "1 span lost"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_collector_is_asked_again),
        cmocka_unit_test(a_compressed_request_is_the_same_again),
        cmocka_unit_test(a_connection_that_ends_without_an_answer_is_tried_again),
        cmocka_unit_test(the_collector_says_when_in_seconds),
        cmocka_unit_test(the_collector_says_when_as_a_date),
        cmocka_unit_test(a_wait_that_is_too_long_is_not_begun),
        cmocka_unit_test(a_refusal_is_final),
        cmocka_unit_test(the_collectors_words_are_told_and_cannot_forge_a_line),
        cmocka_unit_test(a_partial_success_is_counted_and_never_repeated),
        cmocka_unit_test(a_warning_is_told_and_nothing_is_lost),
        cmocka_unit_test(a_collector_cannot_reject_more_than_it_got),
        cmocka_unit_test(bytes_of_another_type_are_not_read),
        cmocka_unit_test(what_was_taken_is_not_sent_again_when_the_answer_is_cut),
        cmocka_unit_test(an_answer_without_an_end_is_left),
        cmocka_unit_test(what_is_no_http_is_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
