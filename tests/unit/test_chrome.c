/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink of Chrome's trace events writes what a JSON parser reads back as it was: names, fields, and times
 * to the nanosecond although they are microseconds; also what is there before its end.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/export.h>

#include "unit/sink_feed.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* The array that (text) with (end) behind it is. */
static json_t *array_of(const char *text, const char *end) {
    char *whole = NULL;
    json_error_t error;

    assert_true(asprintf(&whole, "%s%s", text, end) > 0);
    json_t *array = json_loads(whole, JSON_REJECT_DUPLICATES, &error);
    if (!array)
        fail_msg("%d: %s", error.line, error.text);
    free(whole);
    assert_true(json_is_array(array));
    return array;
}

/* What has been written so far, closed as a reader does. */
static json_t *read_now(struct sink_feed *feed) {
    feed->sink.flush(feed->sink.context);
    return array_of(feed->text, "]");
}

/* The trace's zero since 1970. */
static uint64_t zero_of(const json_t *array) {
    const json_t *first = json_array_get(array, 0);

    assert_string_equal(json_string_value(json_object_get(first, "ph")), "M");
    return strtoull(json_string_value(json_object_get(json_object_get(first, "args"), "zero_unix_ns")), NULL,
                    10);
}

/* The (skip)th object of phase (phase). */
static const json_t *object_of(const json_t *array, const char *phase, unsigned skip) {
    size_t i;
    const json_t *object;

    json_array_foreach(array, i, object) {
        if (strcmp(json_string_value(json_object_get(object, "ph")), phase) == 0 && skip-- == 0)
            return object;
    }
    fail_msg("no object of phase %s", phase);
    return NULL;
}

/* What a viewer makes of a number of microseconds, in nanoseconds. */
static int64_t ns_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_real(value));
    return llround(json_real_value(value) * 1000);
}

static void assert_text(const json_t *object, const char *key, const char *text) {
    assert_true(json_is_string(json_object_get(object, key)));
    assert_string_equal(json_string_value(json_object_get(object, key)), text);
}

static void assert_number(const json_t *object, const char *key, json_int_t number) {
    assert_true(json_is_integer(json_object_get(object, key)));
    assert_int_equal(json_integer_value(json_object_get(object, key)), number);
}

static ph_field string_field(const char *name, const char *text) {
    size_t size = strlen(text);

    return (ph_field){.name = name, .value = {.type = PH_STR, .str = text}, .size = size, .full_size = size};
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static void times_are_to_the_nanosecond(void **state) {
    /* Up to a month behind the trace's zero, and before it. */
    static const int64_t starts[] = {0, 1, 999, 1000, 1001, 123456789, 2592000000000001, -1, -1001};
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    json_t *array = read_now(&feed);
    uint64_t zero = zero_of(array);
    json_decref(array);
    for (size_t i = 0; i < COUNT(starts); i++)
        feed_span(&feed, i + 1, 0, "call f", zero + (uint64_t)starts[i],
                  zero + (uint64_t)starts[i] + 1000000001 * i);
    feed_close(&feed);
    array = array_of(feed.text, "");
    for (unsigned i = 0; i < COUNT(starts); i++) {
        assert_int_equal(ns_of(object_of(array, "X", i), "ts"), starts[i]);
        assert_int_equal(ns_of(object_of(array, "X", i), "dur"), (int64_t)1000000001 * i);
    }
    json_decref(array);
    feed_free(&feed);
}

static void a_span_has_its_names_parents_and_reasons(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    ph_trace_span span = feed_span_of(2, 1, "step", 0, 1);
    span.unfinished = true;
    span.status = PH_E_PAGE_FAULT;
    span.message = "why";
    span.source = (ph_source){"file.c", "function", 7};
    feed_give(&feed, span);
    feed_span(&feed, 1, 0, "call f", 0, 2);
    feed_close(&feed);
    json_t *array = array_of(feed.text, "");
    const json_t *step = object_of(array, "X", 0), *call = object_of(array, "X", 1);
    const json_t *arguments = json_object_get(step, "args");
    assert_text(step, "name", "step");
    assert_number(step, "pid", 1);
    assert_number(arguments, "pinhole.id", 2);
    assert_number(arguments, "pinhole.parent", 1);
    assert_true(json_is_true(json_object_get(arguments, "pinhole.unfinished")));
    assert_text(arguments, "pinhole.status", "page-fault");
    assert_text(arguments, "pinhole.message", "why");
    assert_text(arguments, "pinhole.file", "file.c");
    assert_number(arguments, "pinhole.line", 7);
    assert_text(arguments, "pinhole.function", "function");
    assert_text(call, "name", "call f");
    assert_null(json_object_get(json_object_get(call, "args"), "pinhole.parent"));
    assert_int_not_equal(json_integer_value(json_object_get(call, "tid")),
                         json_integer_value(json_object_get(step, "tid")));
    json_decref(array);
    feed_free(&feed);
}

static void sandboxes_are_processes_with_names(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    for (uint64_t i = 0; i < 4; i++) {
        ph_trace_span span = feed_span_of(i + 1, 0, "call f", 0, 1);
        span.sandbox = 7 + i / 2;
        feed_give(&feed, span);
    }
    feed_close(&feed);
    json_t *array = array_of(feed.text, "");
    unsigned names = 0;
    size_t i;
    const json_t *object;
    json_array_foreach(array, i, object) {
        if (strcmp(json_string_value(json_object_get(object, "name")), "process_name") == 0)
            assert_text(json_object_get(object, "args"), "name", names++ ? "sandbox 8" : "sandbox 7");
    }
    assert_int_equal(names, 2);
    json_decref(array);
    feed_free(&feed);
}

static void an_asynchronous_span_is_a_pair(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    json_t *array = read_now(&feed);
    uint64_t zero = zero_of(array);
    json_decref(array);
    ph_trace_span job = feed_span_of(0xabc, 1, "job", zero + 5, zero + 1234567);
    job.kind = PH_SPAN_ASYNC;
    feed_give(&feed, job);
    feed_close(&feed);
    array = array_of(feed.text, "");
    const json_t *begin = object_of(array, "b", 0), *end = object_of(array, "e", 0);
    assert_int_equal(ns_of(begin, "ts"), 5);
    assert_int_equal(ns_of(end, "ts"), 1234567);
    for (int i = 0; i < 2; i++) {
        assert_text(i ? begin : end, "name", "job");
        assert_text(i ? begin : end, "id", "0xabc");
        assert_text(i ? begin : end, "cat", "async");
    }
    json_decref(array);
    feed_free(&feed);
}

static void a_thousand_levels_are_there(void **state) {
    struct sink_feed feed;
    char name[24];

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    for (uint64_t id = 1000; id > 0; id--) {
        snprintf(name, sizeof name, "level%u", (unsigned)id);
        feed_span(&feed, id, id - 1, name, id, 3000 - id);
    }
    feed_close(&feed);
    json_t *array = array_of(feed.text, "");
    for (unsigned i = 0; i < 1000; i++) {
        const json_t *object = object_of(array, "X", i);
        snprintf(name, sizeof name, "level%u", 1000 - i);
        const json_t *parent = json_object_get(json_object_get(object, "args"), "pinhole.parent");
        assert_text(object, "name", name);
        assert_int_equal(ns_of(object, "dur"), 3000 - 2 * (1000 - i));
        assert_int_equal(json_integer_value(parent), 999 - i);
    }
    json_decref(array);
    feed_free(&feed);
}

/* ---- events, counters, fields -------------------------------------------------------------------------- */

static void any_text_is_read_back(void **state) {
    static const struct {
        const char *text, *read_back;
    } texts[] = {{"\"\\/\b\f\n\r\t\x01\x1f\x7f", "\"\\/\b\f\n\r\t\x01\x1f\x7f"},
                 {"größe 大きさ 🔬", "größe 大きさ 🔬"},
                 {"\xe2\x80\xae\xe2\x80\xa8", "\xe2\x80\xae\xe2\x80\xa8"},
                 {"", ""},
                 {"\xff\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *text = texts[i].text, *read_back = texts[i].read_back;
        const ph_field fields[] = {string_field("value", text), string_field(*text ? text : "x", "v")};
        struct sink_feed feed;
        feed_open(&feed, ph_chrome_sink_open);
        ph_trace_span span = feed_span_of(1, 0, text, 0, 1);
        span.fields = fields;
        span.field_count = COUNT(fields);
        feed_give(&feed, span);
        const ph_trace_event event = {.size = sizeof event,
                                      .sandbox = 1,
                                      .span = 1,
                                      .level = PH_LEVEL_WARN,
                                      .name = "format",
                                      .message = text,
                                      .fields = fields,
                                      .field_count = COUNT(fields)};
        feed.sink.event(feed.sink.context, &event);
        const ph_trace_counter counter = {
            .size = sizeof counter, .sandbox = 1, .name = text, .value = {.type = PH_I64, .i64 = INT64_MIN}};
        feed.sink.counter(feed.sink.context, &counter);
        feed_close(&feed);
        json_t *array = array_of(feed.text, "");
        const json_t *arguments = json_object_get(object_of(array, "X", 0), "args");
        assert_text(object_of(array, "X", 0), "name", read_back);
        assert_text(arguments, "value", read_back);
        assert_text(arguments, *text ? read_back : "x", "v");
        assert_text(object_of(array, "i", 0), "name", read_back);
        assert_text(json_object_get(object_of(array, "i", 0), "args"), "pinhole.level", "warn");
        assert_number(json_object_get(object_of(array, "i", 0), "args"), "pinhole.span", 1);
        assert_text(object_of(array, "C", 0), "name", read_back);
        assert_number(json_object_get(object_of(array, "C", 0), "args"), "value", INT64_MIN);
        json_decref(array);
        feed_free(&feed);
    }
}

/* No key comes twice, and none of a guest's is taken for one of ours. */
static void fields_of_one_name_are_apart(void **state) {
    const ph_field fields[] = {string_field("rows", "a"), string_field("rows", "b"), string_field(NULL, "c"),
                               string_field("", "d"), string_field("pinhole.id", "e")};
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    ph_trace_span span = feed_span_of(1, 0, "call f", 0, 1);
    span.fields = fields;
    span.field_count = COUNT(fields);
    feed_give(&feed, span);
    feed_close(&feed);
    json_t *array = array_of(feed.text, "");
    const json_t *arguments = json_object_get(object_of(array, "X", 0), "args");
    assert_text(arguments, "rows", "a");
    assert_text(arguments, "1:rows", "b");
    assert_text(arguments, "2:", "c");
    assert_text(arguments, "3:", "d");
    assert_text(arguments, "4:pinhole.id", "e");
    assert_number(arguments, "pinhole.id", 1);
    json_decref(array);
    feed_free(&feed);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

/* A process killed leaves an array without its end, which a viewer supplies. */
static void what_is_there_is_whole_but_for_the_end(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    for (uint64_t id = 1; id <= 3; id++) {
        feed_span(&feed, id, 0, "call f", 0, 1);
        json_t *array = read_now(&feed);
        assert_number(json_object_get(object_of(array, "X", (unsigned)id - 1), "args"), "pinhole.id",
                      (json_int_t)id);
        json_decref(array);
    }
    feed_close(&feed);
    json_decref(array_of(feed.text, ""));
    feed_free(&feed);
}

static void nothing_is_an_array_too(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_chrome_sink_open);
    feed_close(&feed);
    json_decref(array_of(feed.text, ""));
    feed_free(&feed);
}

/* ---- all sinks of this library ------------------------------------------------------------------------- */

static sink_open_fn *const opens[] = {ph_chrome_sink_open, ph_folded_sink_open, ph_speedscope_sink_open};

static void options_that_are_wrong_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(opens); i++) {
        ph_file_sink options = PH_FILE_SINK_INIT;
        ph_error error;
        ph_sink sink;
        assert_int_equal(opens[i](&options, NULL, &error), PH_E_ARGUMENT);
        options.size = 0;
        assert_int_equal(opens[i](&options, &sink, &error), PH_E_ARGUMENT);
        assert_null(sink.close);
    }
}

static void a_failed_write_is_seen_at_the_file(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(opens); i++) {
        ph_file_sink options = PH_FILE_SINK_INIT;
        struct sink_feed feed = {0};
        feed.file = options.file = fopen("/dev/full", "w");
        assert_non_null(feed.file);
        assert_int_equal(opens[i](&options, &feed.sink, NULL), PH_OK);
        feed_span(&feed, 1, 0, "call f", 0, 1);
        feed_close(&feed);
        assert_true(ferror(feed.file));
        fclose(feed.file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_to_the_nanosecond),
        cmocka_unit_test(a_span_has_its_names_parents_and_reasons),
        cmocka_unit_test(sandboxes_are_processes_with_names),
        cmocka_unit_test(an_asynchronous_span_is_a_pair),
        cmocka_unit_test(a_thousand_levels_are_there),
        cmocka_unit_test(any_text_is_read_back),
        cmocka_unit_test(fields_of_one_name_are_apart),
        cmocka_unit_test(what_is_there_is_whole_but_for_the_end),
        cmocka_unit_test(nothing_is_an_array_too),
        cmocka_unit_test(options_that_are_wrong_are_refused),
        cmocka_unit_test(a_failed_write_is_seen_at_the_file),
    };
    return cmocka_run_group_tests_name("chrome", tests, NULL, NULL);
}
