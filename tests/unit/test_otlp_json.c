/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for OTLP's JSON lines: each line is a request of one signal, nothing is lost, and what is in the
 * file before its end are whole lines.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/otlp.h>

#include "support/failing.h"
#include "unit/otlp_tree.h"
#include "unit/sink_feed.h"

/* Items of a signal in all lines of (text), which are whole. */
struct content {
    size_t lines;
    size_t spans, logs, points;
};

static size_t count_items(const json_t *tree) {
    return json_array_size(otlp_items(tree, "pinhole.host")) +
           json_array_size(otlp_items(tree, "pinhole.guest"));
}

static struct content content_of(const char *text, size_t size) {
    struct content content = {0};

    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        assert_non_null(end);
        const size_t length = (size_t)(end - text) + 1;
        json_t *tree = otlp_tree_of_json((const uint8_t *)text, length);
        assert_int_equal(json_object_size(tree), 1);
        content.lines++;
        if (json_object_get(tree, "resourceSpans"))
            content.spans += count_items(tree);
        else if (json_object_get(tree, "resourceLogs"))
            content.logs += count_items(tree);
        else if (json_object_get(tree, "resourceMetrics"))
            content.points += count_items(tree);
        json_decref(tree);
        text += length;
        size -= length;
    }
    return content;
}

static void give_event(struct sink_feed *feed) {
    const ph_trace_event event = {
        .size = sizeof event, .sandbox = 1, .level = PH_LEVEL_INFO, .name = "hit", .source = {"", "", 0}};

    feed->sink.event(feed->sink.context, &event);
}

static void give_counter(struct sink_feed *feed, const char *name) {
    const ph_trace_counter counter = {
        .size = sizeof counter, .sandbox = 1, .name = name, .value = {.type = PH_I64, .i64 = 1}};

    feed->sink.counter(feed->sink.context, &counter);
}

static void each_signal_has_lines_of_its_own(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_otlp_json_sink_open);
    feed_span(&feed, 2, 1, "inner", 10, 20);
    feed_span(&feed, 1, 0, "call f", 10, 20);
    give_event(&feed);
    give_counter(&feed, "a");
    feed_close(&feed);
    const struct content content = content_of(feed.text, feed.size);
    assert_int_equal(content.lines, 3);
    assert_int_equal(content.spans, 2);
    assert_int_equal(content.logs, 1);
    assert_int_equal(content.points, 1);
    feed_free(&feed);
}

static void a_line_is_a_batch_and_what_is_there_is_whole(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_otlp_json_sink_open);
    for (uint64_t id = 1; id <= 2000; id++) {
        feed_span(&feed, id, 0, "call f", id, id + 1);
        give_event(&feed);
        give_counter(&feed, id % 2 ? "a" : "b");
    }
    fflush(feed.file);
    struct content content = content_of(feed.text, feed.size);
    assert_int_equal(content.lines, 3 * 3);
    assert_int_equal(content.spans, 3 * 512);
    feed.sink.flush(feed.sink.context);
    content = content_of(feed.text, feed.size);
    assert_int_equal(content.lines, 4 * 3);
    assert_int_equal(content.spans, 2000);
    assert_int_equal(content.logs, 2000);
    assert_int_equal(content.points, 2000);
    /* Nothing is left for the end. */
    feed_close(&feed);
    assert_int_equal(content_of(feed.text, feed.size).lines, 4 * 3);
    feed_free(&feed);
}

static void large_spans_end_a_line_earlier(void **state) {
    static char text[60000];
    struct sink_feed feed;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    const ph_field field = {.name = "text", .value = {.type = PH_STR, .str = text}, .size = sizeof text - 1};
    feed_open(&feed, ph_otlp_json_sink_open);
    for (uint64_t id = 1; id <= 200; id++) {
        ph_trace_span span = feed_span_of(id, 0, "call f", id, id + 1);
        span.fields = &field;
        span.field_count = 1;
        feed_give(&feed, span);
    }
    feed_close(&feed);
    const struct content content = content_of(feed.text, feed.size);
    assert_int_equal(content.spans, 200);
    assert_true(content.lines > 2);
    feed_free(&feed);
}

static void nothing_is_an_empty_file(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_otlp_json_sink_open);
    feed_close(&feed);
    assert_int_equal(feed.size, 0);
    feed_free(&feed);
}

static void options_are_checked(void **state) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_sink sink;
    ph_error error;

    (void)state;
    options.size = 1;
    assert_int_equal(ph_otlp_json_sink_open(&options, &sink, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_otlp_json_sink_open(NULL, NULL, &error), PH_E_ARGUMENT);
}

static void without_memory_it_does_not_open(void **state) {
    struct sink_feed feed;

    (void)state;
    for (unsigned at = 1;; at++) {
        ph_file_sink options = PH_FILE_SINK_INIT;
        ph_error error;
        feed.file = options.file = open_memstream(&feed.text, &feed.size);
        assert_non_null(feed.file);
        failing = (struct failing){.at = at};
        ph_status status = ph_otlp_json_sink_open(&options, &feed.sink, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (status != PH_OK) {
            assert_int_equal(status, PH_E_MEMORY);
            assert_true(error.message[0]);
            assert_null(feed.sink.close);
        } else {
            feed_close(&feed);
        }
        feed_free(&feed);
        if (!failed)
            break;
        assert_true(at < 100);
    }
    assert_true(failing_has_failed("calloc"));
    assert_true(failing_has_failed("realloc"));
}

static void what_is_about_a_collector_does_not_matter(void **state) {
    struct sink_feed feed;

    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://nowhere", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "no pair", 1);
    setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", 1);
    feed_open(&feed, ph_otlp_json_sink_open);
    feed_span(&feed, 1, 0, "call f", 10, 20);
    feed_close(&feed);
    assert_int_equal(content_of(feed.text, feed.size).spans, 1);
    feed_free(&feed);
    unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    unsetenv("OTEL_EXPORTER_OTLP_PROTOCOL");
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
    unsetenv("OTEL_EXPORTER_OTLP_COMPRESSION");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_signal_has_lines_of_its_own),
        cmocka_unit_test(a_line_is_a_batch_and_what_is_there_is_whole),
        cmocka_unit_test(large_spans_end_a_line_earlier),
        cmocka_unit_test(nothing_is_an_empty_file),
        cmocka_unit_test(what_is_about_a_collector_does_not_matter),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(without_memory_it_does_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
