/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the exporter to OpenTelemetry sends to a collector that is well, and when: paths, headers,
 * compression, batches, flushes, the end, fork(). test_otlp_retry.c and test_otlp_loss.c have collectors that
 * are not well.
 */
#include "otlp_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void each_signal_goes_to_its_path(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_span(&fixture, "span-two");
    fixture_event(&fixture, "event-one");
    fixture_counter(&fixture, "counter-one");
    fixture_flush(&fixture);
    assert_int_equal(http_server_count(fixture.server, NULL), 3);
    const struct http_request *traces = http_server_request(fixture.server, TRACES, 0);
    assert_string_equal(traces->method, "POST");
    assert_int_equal(http_request_holds(traces, "span-one"), 1);
    assert_int_equal(http_request_holds(traces, "span-two"), 1);
    assert_int_equal(http_request_holds(traces, "event-one"), 0);
    assert_int_equal(http_request_holds(http_server_request(fixture.server, LOGS, 0), "event-one"), 1);
    assert_int_equal(http_request_holds(http_server_request(fixture.server, METRICS, 0), "counter-one"), 1);

    const ph_otlp_stats stats = fixture_stats(&fixture);
    assert_int_equal(stats.sent_spans, 2);
    assert_int_equal(stats.sent_logs, 1);
    assert_int_equal(stats.sent_points, 1);
    assert_int_equal(stats.lost_spans + stats.lost_logs + stats.lost_points, 0);
    assert_int_equal(stats.requests, 3);
    assert_int_equal(stats.retries, 0);
    fixture_end(&fixture);
    assert_int_equal(fixture.line_count, 0);
}

static void requests_say_what_they_are_and_who_sends_them(void **state) {
    struct fixture fixture;
    char agent[64];

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    const struct http_request *request = http_server_request(fixture.server, TRACES, 0);
    snprintf(agent, sizeof agent, "OTel-OTLP-Exporter-pinhole/%s", ph_version());
    assert_string_equal(http_request_header(request, "User-Agent"), agent);
    assert_string_equal(http_request_header(request, "Content-Type"), "application/x-protobuf");
    assert_null(http_request_header(request, "Content-Encoding"));
    assert_null(http_request_header(request, "Expect"));
    assert_null(http_request_header(request, "Transfer-Encoding"));
    fixture_end(&fixture);
}

static void headers_are_decoded(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.headers = "authorization=Basic%20dXNlcg==, x-tenant = a%2Cb ,x-empty=";
    fixture_create(&fixture);
    fixture_event(&fixture, "event-one");
    fixture_flush(&fixture);
    const struct http_request *request = http_server_request(fixture.server, LOGS, 0);
    assert_string_equal(http_request_header(request, "authorization"), "Basic dXNlcg==");
    assert_string_equal(http_request_header(request, "x-tenant"), "a,b");
    assert_string_equal(http_request_header(request, "x-empty"), "");
    fixture_end(&fixture);
}

static void gzip_bodies_unpack_to_what_was_sent(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.config.compression = "gzip";
    fixture_create(&fixture);
    for (unsigned i = 0; i < 100; i++)
        fixture_span(&fixture, "span-again");
    fixture_flush(&fixture);
    const struct http_request *request = http_server_request(fixture.server, TRACES, 0);
    assert_true(request->gzip);
    assert_int_equal(http_request_holds(request, "span-again"), 100);
    assert_true(strtoul(http_request_header(request, "Content-Length"), NULL, 10) < request->size);
    fixture_end(&fixture);
}

static void a_signals_own_endpoint_is_used_as_it_is(void **state) {
    struct fixture fixture;
    char url[128];

    (void)state;
    fixture_begin(&fixture);
    struct http_server *other = http_server_start(0);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", http_server_url(fixture.server), 1);
    snprintf(url, sizeof url, "%s/mine/", http_server_url(other));
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url, 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-of=traces", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-of=all", 1);
    fixture.config.endpoint = NULL;
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_event(&fixture, "event-one");
    fixture_flush(&fixture);
    const struct http_request *traces = http_server_request(other, "/mine/", 0);
    const struct http_request *logs = http_server_request(fixture.server, LOGS, 0);
    assert_string_equal(http_request_header(traces, "x-of"), "traces");
    assert_string_equal(http_request_header(logs, "x-of"), "all");
    assert_int_equal(http_server_count(other, NULL), 1);
    assert_int_equal(http_server_count(fixture.server, NULL), 1);
    fixture_end(&fixture);
    http_server_stop(other);
}

static void batches_of_two(struct ph__otlp_settings *settings) {
    settings->span_batch_max = 2;
}

static void a_full_batch_goes_by_itself(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.change = batches_of_two;
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_span(&fixture, "span-two");
    fixture_span(&fixture, "span-three");
    http_server_wait(fixture.server, TRACES, 1);
    assert_int_equal(http_request_holds(http_server_request(fixture.server, TRACES, 0), "span-"), 2);
    /* The third waits for five seconds, which are not over, or for this. */
    fixture_flush(&fixture);
    assert_int_equal(http_request_holds(http_server_request(fixture.server, TRACES, 1), "span-three"), 1);
    fixture_end(&fixture);
}

static void small_batches(struct ph__otlp_settings *settings) {
    settings->batch_bytes = 1; /* a batch takes 4 KiB of items at the least */
}

static void a_batch_without_room_goes_by_itself(void **state) {
    static char name[1500];
    struct fixture fixture;

    (void)state;
    memset(name, 'n', sizeof name - 1);
    fixture_begin(&fixture);
    fixture.change = small_batches;
    fixture_create(&fixture);
    for (unsigned i = 0; i < 6; i++)
        fixture_span(&fixture, name);
    fixture_flush(&fixture);
    assert_true(http_server_count(fixture.server, TRACES) >= 3);
    assert_int_equal(fixture_stats(&fixture).sent_spans, 6);
    fixture_end(&fixture);
}

static void short_delays(struct ph__otlp_settings *settings) {
    settings->span_delay_ns = 20000000;
    settings->log_delay_ns = 20000000;
    settings->metric_interval_ns = 20000000;
}

static void a_batch_goes_when_its_delay_is_over(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture.change = short_delays;
    fixture_create(&fixture);
    for (unsigned i = 1; i <= 3; i++) {
        fixture_span(&fixture, "span-one");
        fixture_event(&fixture, "event-one");
        fixture_counter(&fixture, "counter-one");
        http_server_wait(fixture.server, TRACES, i);
        http_server_wait(fixture.server, LOGS, i);
        http_server_wait(fixture.server, METRICS, i);
    }
    fixture_end(&fixture);
}

static void the_sinks_flush_asks_for_sending(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture.sink.flush(fixture.sink.context);
    http_server_wait(fixture.server, TRACES, 1);
    fixture_end(&fixture);
}

static void the_end_sends_what_is_left(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_event(&fixture, "event-one");
    fixture_destroy_otlp(&fixture, LONG_NS);
    assert_int_equal(http_server_count(fixture.server, NULL), 2);
    fixture_end(&fixture);
    assert_int_equal(fixture.line_count, 0);
}

static void the_hosts_metrics_go_with_a_flush_and_at_the_end(void **state) {
    ph_metrics_values values = PH_METRICS_VALUES_INIT;
    ph_metrics *metrics = NULL;
    struct fixture fixture;

    (void)state;
    assert_int_equal(ph_metrics_create(&metrics, NULL), PH_OK);
    fixture_begin(&fixture);
    fixture.config.metrics = metrics;
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    assert_int_equal(
        http_request_holds(http_server_request(fixture.server, METRICS, 0), "pinhole.sandbox.active"), 1);
    const uint64_t points = fixture_stats(&fixture).sent_points;
    assert_true(points > 1);
    /* What was exported is counted among them. */
    assert_int_equal(ph_metrics_read(metrics, &values), PH_OK);
    assert_int_equal(values.exported, points + 1);
    fixture_destroy_otlp(&fixture, LONG_NS);
    assert_int_equal(http_server_count(fixture.server, METRICS), 2);
    fixture_end(&fixture);
    ph_metrics_destroy(metrics);
}

/* The order of otlp.h: what is sent at the end no longer finds the tracer. */
static void the_end_sends_the_counts_of_a_tracer_that_is_gone(void **state) {
    ph_metrics *metrics = NULL;
    ph_tracer *tracer;
    struct fixture fixture;

    (void)state;
    assert_int_equal(ph_metrics_create(&metrics, NULL), PH_OK);
    fixture_begin(&fixture);
    fixture.config.metrics = metrics;
    fixture_create(&fixture);
    assert_int_equal(ph_tracer_create(NULL, &tracer, NULL), PH_OK);
    assert_int_equal(ph_tracer_add_sink(tracer, &fixture.sink, NULL), PH_OK);
    assert_int_equal(ph_metrics_watch_tracer(metrics, tracer), PH_OK);
    ph_tracer_destroy(tracer);
    fixture_destroy_otlp(&fixture, LONG_NS);
    const struct http_request *request = http_server_request(fixture.server, METRICS, 0);
    assert_int_equal(http_request_holds(request, "pinhole.trace.records"), 1);
    fixture_end(&fixture);
    ph_metrics_destroy(metrics);
}

static void the_hosts_metrics_go_every_so_often(void **state) {
    ph_metrics *metrics = NULL;
    struct fixture fixture;

    (void)state;
    assert_int_equal(ph_metrics_create(&metrics, NULL), PH_OK);
    fixture_begin(&fixture);
    fixture.config.metrics = metrics;
    fixture.change = short_delays;
    fixture_create(&fixture);
    http_server_wait(fixture.server, METRICS, 3);
    assert_int_equal(http_server_count(fixture.server, TRACES), 0);
    fixture_end(&fixture);
    ph_metrics_destroy(metrics);
}

static void no_delay(struct ph__otlp_settings *settings) {
    settings->metric_interval_ns = 1;
}

static void metrics_that_are_always_due_hold_up_no_end(void **state) {
    ph_metrics *metrics = NULL;
    struct fixture fixture;

    (void)state;
    assert_int_equal(ph_metrics_create(&metrics, NULL), PH_OK);
    fixture_begin(&fixture);
    fixture.config.metrics = metrics;
    fixture.change = no_delay;
    fixture_create(&fixture);
    http_server_wait(fixture.server, METRICS, 2);
    /* In less than all of the time that there is. */
    fixture_end(&fixture);
    ph_metrics_destroy(metrics);
}

static void losses_are_counted_among_the_hosts_metrics(void **state) {
    ph_metrics_values values = PH_METRICS_VALUES_INIT;
    const struct http_answer answers[] = {{.status = 400}};
    ph_metrics *metrics = NULL;
    struct fixture fixture;

    (void)state;
    assert_int_equal(ph_metrics_create(&metrics, NULL), PH_OK);
    fixture_begin(&fixture);
    fixture.config.metrics = metrics;
    http_server_script(fixture.server, TRACES, answers, 1);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    assert_int_equal(ph_metrics_read(metrics, &values), PH_OK);
    assert_int_equal(values.export_failures, 1);
    fixture_end(&fixture);
    ph_metrics_destroy(metrics);
}

static void one_connection_serves_many_requests(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    for (unsigned i = 1; i <= 20; i++) {
        fixture_span(&fixture, "span-one");
        fixture_flush(&fixture);
        assert_int_equal(http_server_count(fixture.server, TRACES), i);
    }
    assert_int_equal(http_server_connections(fixture.server), 1);
    fixture_end(&fixture);
}

static void a_flush_of_nothing_sends_nothing(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_flush(&fixture);
    fixture_end(&fixture);
    assert_int_equal(fixture.line_count, 0);
}

static void disabled_takes_everything_and_sends_nothing(void **state) {
    struct fixture fixture;

    (void)state;
    fixture_begin(&fixture);
    setenv("OTEL_SDK_DISABLED", "TRUE", 1);
    fixture_create(&fixture);
    /* A tracer does not call what is not there. */
    assert_null(fixture.sink.span);
    fixture_flush(&fixture);
    fixture_destroy_otlp(&fixture, LONG_NS);
    assert_int_equal(http_server_connections(fixture.server), 0);
    fixture_end(&fixture);
}

static void a_signal_that_is_off_is_neither_sent_nor_lost(void **state) {
    ph_metrics *metrics = NULL;
    struct fixture fixture;

    (void)state;
    assert_int_equal(ph_metrics_create(&metrics, NULL), PH_OK);
    fixture_begin(&fixture);
    setenv("OTEL_LOGS_EXPORTER", "none", 1);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    fixture.config.metrics = metrics;
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_event(&fixture, "event-one");
    fixture_counter(&fixture, "counter-one");
    fixture_flush(&fixture);
    const ph_otlp_stats stats = fixture_stats(&fixture);
    assert_int_equal(stats.sent_spans, 1);
    assert_int_equal(stats.sent_logs + stats.sent_points, 0);
    assert_int_equal(stats.lost_logs + stats.lost_points, 0);
    fixture_destroy_otlp(&fixture, LONG_NS);
    assert_int_equal(http_server_count(fixture.server, TRACES), 1);
    assert_int_equal(http_server_count(fixture.server, NULL), 1);
    assert_int_equal(fixture.line_count, 0);
    fixture_end(&fixture);
    ph_metrics_destroy(metrics);
}

static void a_child_may_destroy_and_the_parent_goes_on(void **state) {
    struct fixture fixture;
    int status = 0;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    fixture_span(&fixture, "span-two");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ph_otlp_stats stats = PH_OTLP_STATS_INIT;
        fixture_span(&fixture, "span-of-child");
        fixture.sink.flush(fixture.sink.context);
        const bool ok = ph_otlp_flush(fixture.otlp, LONG_NS) == PH_E_FORKED &&
                        ph_otlp_get_stats(fixture.otlp, &stats) == PH_E_FORKED;
        ph_otlp_shutdown(fixture.otlp, LONG_NS);
        ph_otlp_destroy(fixture.otlp);
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fixture_flush(&fixture);
    assert_int_equal(http_server_count(fixture.server, TRACES), 2);
    assert_int_equal(http_request_holds(http_server_request(fixture.server, TRACES, 1), "span-of-child"), 0);
    assert_int_equal(http_server_connections(fixture.server), 1);
    fixture_end(&fixture);
}

static void wrong_arguments_are_refused(void **state) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    ph_otlp_stats stats = PH_OTLP_STATS_INIT;
    struct fixture fixture;
    ph_error error;

    (void)state;
    fixture_begin(&fixture);
    fixture_create(&fixture);
    assert_int_equal(ph_otlp_create(&config, NULL, &error), PH_E_ARGUMENT);
    config.size++;
    ph_otlp *none = NULL;
    assert_int_equal(ph_otlp_create(&config, &none, &error), PH_E_ARGUMENT);
    assert_null(none);
    assert_int_equal(ph_otlp_flush(NULL, 0), PH_E_ARGUMENT);
    assert_int_equal(ph_otlp_get_stats(fixture.otlp, NULL), PH_E_ARGUMENT);
    stats.size++;
    assert_int_equal(ph_otlp_get_stats(fixture.otlp, &stats), PH_E_ARGUMENT);
    ph_otlp_shutdown(NULL, 0);
    ph_otlp_destroy(NULL);
    fixture_end(&fixture);
}

static void the_public_way_works(void **state) {
    struct fixture fixture;
    ph_error error;

    (void)state;
    fixture_begin(&fixture);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", http_server_url(fixture.server), 1);
    assert_int_equal(ph_otlp_create(NULL, &fixture.otlp, &error), PH_OK);
    ph_otlp_sink(fixture.otlp, &fixture.sink);
    fixture_span(&fixture, "span-one");
    fixture_flush(&fixture);
    assert_int_equal(http_server_count(fixture.server, TRACES), 1);
    fixture_end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_signal_goes_to_its_path),
        cmocka_unit_test(requests_say_what_they_are_and_who_sends_them),
        cmocka_unit_test(headers_are_decoded),
        cmocka_unit_test(gzip_bodies_unpack_to_what_was_sent),
        cmocka_unit_test(a_signals_own_endpoint_is_used_as_it_is),
        cmocka_unit_test(a_full_batch_goes_by_itself),
        cmocka_unit_test(a_batch_without_room_goes_by_itself),
        cmocka_unit_test(a_batch_goes_when_its_delay_is_over),
        cmocka_unit_test(the_sinks_flush_asks_for_sending),
        cmocka_unit_test(the_end_sends_what_is_left),
        cmocka_unit_test(the_hosts_metrics_go_with_a_flush_and_at_the_end),
        cmocka_unit_test(the_end_sends_the_counts_of_a_tracer_that_is_gone),
        cmocka_unit_test(the_hosts_metrics_go_every_so_often),
        cmocka_unit_test(metrics_that_are_always_due_hold_up_no_end),
        cmocka_unit_test(losses_are_counted_among_the_hosts_metrics),
        cmocka_unit_test(one_connection_serves_many_requests),
        cmocka_unit_test(a_flush_of_nothing_sends_nothing),
        cmocka_unit_test(disabled_takes_everything_and_sends_nothing),
        cmocka_unit_test(a_signal_that_is_off_is_neither_sent_nor_lost),
        cmocka_unit_test(a_child_may_destroy_and_the_parent_goes_on),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(the_public_way_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
