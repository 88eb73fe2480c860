/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The exporter to OpenTelemetry and collectors that are gone or slow: that nothing waits for them, that
 * memory is bounded, and that every loss is counted and told.
 */
#include "otlp_fixture.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct http_answer stall[] = {{.kind = HTTP_STALL}};

static void a_collector_that_is_not_there_is_told_of_once(void **state) {
    struct fixture fixture;
    char url[64];
    char text[160];

    (void)state;
    fixture_begin(&fixture);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", fixture_dead_port());
    fixture.config.endpoint = url;
    fixture.config.timeout_ns = 300000000;
    fixture_create(&fixture);
    for (unsigned round = 0; round < 3; round++) {
        fixture_span(&fixture, "span-one");
        fixture_span(&fixture, "span-two");
        fixture_flush(&fixture);
    }
    const ph_otlp_stats stats = fixture_stats(&fixture);
    assert_int_equal(stats.lost_spans, 6);
    assert_true(stats.retries > 0);
    /* Ten seconds are not over. */
    snprintf(text, sizeof text, "traces: %s/v1/traces: Connection refused; 2 spans lost", url);
    assert_int_equal(fixture_told(&fixture, text), 1);
    assert_int_equal(fixture_told(&fixture, "lost"), 1);
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "Connection refused; 4 spans lost"), 1);
    assert_int_equal(fixture.line_count, 2);
}

static void what_comes_after_a_recovery_arrives(void **state) {
    struct fixture fixture;
    char url[64];

    (void)state;
    fixture_begin(&fixture);
    const uint16_t port = http_server_port(fixture.server);
    snprintf(url, sizeof url, "%s", http_server_url(fixture.server));
    fixture.config.endpoint = url;
    fixture.config.timeout_ns = 2000000000; /* a busy machine answers in that too */
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    http_server_stop(fixture.server);
    fixture_span(&fixture, "span-two");
    fixture_flush(&fixture);
    assert_int_equal(fixture_stats(&fixture).lost_spans, 1);
    fixture.server = http_server_start(port);
    fixture_span(&fixture, "span-three");
    fixture_flush(&fixture);
    assert_int_equal(fixture_stats(&fixture).lost_spans, 1);
    assert_int_equal(fixture_stats(&fixture).sent_spans, 2);
    assert_int_equal(http_request_holds(http_server_request(fixture.server, TRACES, 0), "span-three"), 1);
    fixture_end(&fixture);
}

static void a_time_out_ends_a_request_that_nobody_answers(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.timeout_ns = 200000000;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    const ph_otlp_stats stats = fixture_stats(&fixture);
    assert_int_equal(stats.lost_spans, 1);
    assert_int_equal(stats.requests, 1);
    fixture_end(&fixture);
    assert_int_equal(fixture_told(&fixture, "no answer in time; 1 span lost"), 1);
}

/* A ph_diagnostics_fn that holds up the exporter's thread. */
static void take_long(void *context, const char *message) {
    const struct timespec pause = {.tv_nsec = 600000000};

    (void)context;
    (void)message;
    nanosleep(&pause, NULL);
}

static void a_thread_that_was_held_up_does_not_repeat_too_late(void **state) {
    const struct http_answer refuse[] = {{.status = 400}};
    const struct http_answer busy[] = {{.status = 503}, {.kind = HTTP_STALL}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.diagnostics = take_long;
    fixture.config.timeout_ns = 300000000;
    http_server_script(fixture.server, LOGS, refuse, COUNT(refuse));
    http_server_script(fixture.server, TRACES, busy, COUNT(busy));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_event(&fixture, "event-one");
    fixture_flush(&fixture);
    assert_int_equal(fixture_stats(&fixture).lost_spans, 1);
    fixture_end(&fixture);
}

static void a_signal_that_stalls_holds_up_no_other(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.timeout_ns = LONG_NS;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture.sink.flush(fixture.sink.context);
    http_server_wait(fixture.server, TRACES, 1);
    fixture_event(&fixture, "event-one");
    fixture_counter(&fixture, "counter-one");
    fixture.sink.flush(fixture.sink.context);
    http_server_wait(fixture.server, LOGS, 1);
    http_server_wait(fixture.server, METRICS, 1);
    http_server_release(fixture.server);
    fixture_end(&fixture);
    assert_int_equal(fixture.line_count, 0);
}

static void a_flush_ends_in_time_and_goes_on_by_itself(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.timeout_ns = LONG_NS;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    assert_int_equal(ph_otlp_flush(fixture.otlp, 50000000), PH_E_TIMED_OUT);
    assert_int_equal(ph_otlp_flush(fixture.otlp, 0), PH_E_TIMED_OUT);
    http_server_release(fixture.server);
    fixture_flush(&fixture);
    assert_int_equal(fixture_stats(&fixture).sent_spans, 1);
    fixture_end(&fixture);
}

static void *flush_for_ever(void *context) {
    struct fixture *fixture = context;

    return ph_otlp_flush(fixture->otlp, UINT64_MAX) == PH_OK ? fixture : NULL;
}

/* Waits until (count) flushes were asked for. */
static void wait_for_flushes(const struct fixture *fixture, uint64_t count) {
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t asked = 0;

    while (asked < count) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&fixture->otlp->lock);
        asked = fixture->otlp->flushes_asked;
        pthread_mutex_unlock(&fixture->otlp->lock);
    }
}

static void the_end_ends_every_flush(void **state) {
    struct fixture fixture;
    pthread_t threads[2];

    (void)state;
    fixture_begin(&fixture);
    fixture.config.timeout_ns = 10 * LONG_NS;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    /* The second one has to wait for the first. */
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, flush_for_ever, &fixture), 0);
        if (i == 0)
            http_server_wait(fixture.server, TRACES, 1);
    }
    wait_for_flushes(&fixture, COUNT(threads));
    ph_otlp_shutdown(fixture.otlp, 1);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &fixture);
    }
    assert_int_equal(ph_otlp_flush(fixture.otlp, UINT64_MAX), PH_OK);
    assert_int_equal(fixture_stats(&fixture).lost_spans, 1);
    fixture_end(&fixture);
}

static void the_end_keeps_its_deadline(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.timeout_ns = 10 * LONG_NS;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture.sink.flush(fixture.sink.context);
    http_server_wait(fixture.server, TRACES, 1);
    fixture_span(&fixture, "span-two");
    fixture_event(&fixture, "event-one");
    const uint64_t before = test_now_ns();
    fixture_destroy_otlp(&fixture, 2000000000);
    assert_true(test_now_ns() - before < LONG_NS);
    /* The logs were not held up. */
    assert_int_equal(http_server_count(fixture.server, LOGS), 1);
    assert_int_equal(fixture_told(&fixture, "no answer in time; 2 spans lost"), 1);
    assert_int_equal(fixture.line_count, 1);
    fixture_end(&fixture);
}

static void the_end_without_time_loses_and_tells(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_event(&fixture, "event-one");
    fixture_destroy_otlp(&fixture, 0);
    assert_int_equal(http_server_count(fixture.server, NULL), 0);
    assert_int_equal(fixture_told(&fixture, "1 span lost"), 1);
    assert_int_equal(fixture_told(&fixture, "1 log record lost"), 1);
    fixture_end(&fixture);
}

static void pauses_of_an_hour(struct ph__otlp_settings *settings) {
    settings->backoff_ns = 3600000000000;
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++)
        settings->routes[i].timeout_ns = UINT64_MAX;
}

static void the_end_does_not_wait_for_a_pause_that_is_too_long(void **state) {
    const struct http_answer answers[] = {{.status = 503}};
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.change = pauses_of_an_hour;
    http_server_script(fixture.server, TRACES, answers, COUNT(answers));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture.sink.flush(fixture.sink.context);
    http_server_wait(fixture.server, TRACES, 1);
    const uint64_t before = test_now_ns();
    fixture_destroy_otlp(&fixture, 10 * LONG_NS);
    assert_true(test_now_ns() - before < LONG_NS);
    assert_int_equal(fixture_told(&fixture, "HTTP status 503; 1 span lost"), 1);
    fixture_end(&fixture);
}

static void little_room(struct ph__otlp_settings *settings) {
    settings->span_batch_max = 2;
    settings->span_queue_max = 6;
}

static void a_full_queue_drops_the_newest_and_counts_them(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.change = little_room;
    fixture.config.timeout_ns = LONG_NS;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    fixture_span(&fixture, "span-first");
    fixture_span(&fixture, "span-first");
    http_server_wait(fixture.server, TRACES, 1);
    /* The collector does not answer, and all of this returns. */
    for (unsigned i = 0; i < 3; i++) {
        fixture_span(&fixture, "span-waits");
        fixture_span(&fixture, "span-waits");
    }
    for (unsigned i = 0; i < 1000; i++)
        fixture_span(&fixture, "span-dropped");
    assert_int_equal(fixture_stats(&fixture).lost_spans, 1000);
    assert_int_equal(fixture_stats(&fixture).sent_spans, 0);
    http_server_release(fixture.server);
    fixture_flush(&fixture);
    assert_int_equal(fixture_stats(&fixture).sent_spans, 8);
    assert_int_equal(fixture_stats(&fixture).lost_spans, 1000);
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(http_request_holds(http_server_request(fixture.server, TRACES, i), "span-waits"), 2);
    assert_int_equal(http_server_count(fixture.server, TRACES), 4);
    fixture_end(&fixture);
    assert_true(fixture_told(&fixture, "the queue is full") >= 1);
    assert_true(fixture.line_count <= 2);
}

static void few_bytes(struct ph__otlp_settings *settings) {
    settings->span_batch_max = 1;
    settings->queue_bytes = 3 * 10000;
}

static void what_waits_is_bounded_in_bytes(void **state) {
    static char name[1000];
    struct fixture fixture;

    (void)state;
    memset(name, 'n', sizeof name - 1);
    fixture_begin(&fixture);
    fixture.change = few_bytes;
    fixture.config.timeout_ns = LONG_NS;
    http_server_script(fixture.server, TRACES, stall, COUNT(stall));
    fixture_create(&fixture);
    for (unsigned i = 0; i < 100; i++)
        fixture_span(&fixture, name);
    assert_true(fixture_stats(&fixture).lost_spans >= 89);
    http_server_release(fixture.server);
    fixture_flush(&fixture);
    const ph_otlp_stats stats = fixture_stats(&fixture);
    assert_int_equal(stats.sent_spans + stats.lost_spans, 100);
    assert_true(stats.sent_spans > 0);
    fixture_end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_that_is_not_there_is_told_of_once),
        cmocka_unit_test(what_comes_after_a_recovery_arrives),
        cmocka_unit_test(a_time_out_ends_a_request_that_nobody_answers),
        cmocka_unit_test(a_thread_that_was_held_up_does_not_repeat_too_late),
        cmocka_unit_test(a_signal_that_stalls_holds_up_no_other),
        cmocka_unit_test(a_flush_ends_in_time_and_goes_on_by_itself),
        cmocka_unit_test(the_end_ends_every_flush),
        cmocka_unit_test(the_end_keeps_its_deadline),
        cmocka_unit_test(the_end_without_time_loses_and_tells),
        cmocka_unit_test(the_end_does_not_wait_for_a_pause_that_is_too_long),
        cmocka_unit_test(a_full_queue_drops_the_newest_and_counts_them),
        cmocka_unit_test(what_waits_is_bounded_in_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
