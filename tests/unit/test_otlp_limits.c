/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Limits of requests of OTLP, and guests that say anything: what is more is cut or counted as dropped, names
 * of a guest's are none of ours and never twice the same, and both encodings can be read whatever is in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing.h"
#include "unit/otlp_tree.h"

#define BASE 1700000000000000000u
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static ph_trace_span span_of(const ph_field *fields, size_t count) {
    return (ph_trace_span){.size = sizeof(ph_trace_span),
                           .sandbox = 1,
                           .id = 2,
                           .kind = PH_SPAN_USER,
                           .name = "span",
                           .start_ns = BASE,
                           .end_ns = BASE + 1,
                           .fields = fields,
                           .field_count = count,
                           .trace_id = {1}};
}

static ph_trace_event log_of(const ph_field *fields, size_t count) {
    return (ph_trace_event){.size = sizeof(ph_trace_event),
                            .sandbox = 1,
                            .level = PH_LEVEL_INFO,
                            .name = "format",
                            .message = "text",
                            .time_ns = BASE,
                            .fields = fields,
                            .field_count = count};
}

static ph_field text_field(const char *name, const char *text) {
    return (ph_field){.name = name,
                      .value = {.type = PH_STR, .str = text},
                      .size = strlen(text),
                      .full_size = strlen(text)};
}

/* A tree with one span in the guest's scope, and that span. */
static json_t *tree_of(const ph_trace_span *span, const struct ph__otlp_settings *settings, json_t **item) {
    struct otlp_pair pair;

    otlp_open(&pair, PH_EXPORT_TRACES, settings);
    otlp_span(&pair, span);
    json_t *tree = otlp_finish(&pair);
    *item =
        json_array_get(otlp_items(tree, span->kind == PH_SPAN_CALL ? "pinhole.host" : "pinhole.guest"), 0);
    return tree;
}

static json_int_t number(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

/* ---- limits -------------------------------------------------------------------------------------------- */

static void attributes_beyond_the_limit_are_counted(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    ph_field fields[10];
    char names[10][8];
    json_t *item;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        fields[i] = text_field(names[i], "x");
    }
    const ph_trace_span span = span_of(fields, 10);
    /* Ours are two, and come first. */
    for (uint32_t most = 0; most <= 13; most++) {
        settings.span_attributes_max = most;
        json_t *tree = tree_of(&span, &settings, &item);
        size_t kept = json_array_size(json_object_get(item, "attributes"));
        assert_int_equal(kept, most < 12 ? most : 12);
        assert_int_equal(number(item, "droppedAttributesCount"), 12 - kept);
        if (most > 2)
            assert_attribute(item, "f0", "{\"stringValue\":\"x\"}");
        json_decref(tree);
    }
}

static void fields_that_the_tree_dropped_are_counted_too(void **state) {
    const ph_field fields[] = {text_field("a", "x"),
                               {.name = "fields_dropped", .value = {.type = PH_U64, .u64 = 5}}};
    struct ph__otlp_settings settings = otlp_settings();
    json_t *item;

    (void)state;
    ph_trace_span span = span_of(fields, 2);
    span.dropped_fields = 5;
    json_t *tree = tree_of(&span, NULL, &item);
    assert_int_equal(number(item, "droppedAttributesCount"), 5);
    assert_null(otlp_attribute(item, "fields_dropped"));
    assert_non_null(otlp_attribute(item, "a"));
    json_decref(tree);
    settings.span_attributes_max = 2;
    tree = tree_of(&span, &settings, &item);
    assert_int_equal(number(item, "droppedAttributesCount"), 6);
    json_decref(tree);

    /* A guest's own by that name is a field as any. */
    span.dropped_fields = 0;
    tree = tree_of(&span, NULL, &item);
    assert_attribute(item, "fields_dropped", "{\"intValue\":\"5\"}");
    assert_null(json_object_get(item, "droppedAttributesCount"));
    json_decref(tree);
}

static void values_are_cut_between_characters(void **state) {
    static const uint8_t bytes[] = {1, 2, 3, 4, 5};
    const ph_field fields[] = {
        text_field("text", "ab\xe2\x82\xac"),
        {.name = "bytes", .value = {.type = PH_BYTES, .bytes = {bytes, 5}}, .size = 5, .full_size = 5},
        {.name = "number", .value = {.type = PH_I64, .i64 = 1234567}},
    };
    struct ph__otlp_settings settings = otlp_settings();
    json_t *item;

    (void)state;
    const ph_trace_span span = span_of(fields, 3);
    settings.span_value_bytes_max = 4;
    json_t *tree = tree_of(&span, &settings, &item);
    assert_attribute(item, "text", "{\"stringValue\":\"ab\"}");
    assert_attribute(item, "bytes", "{\"bytesValue\":\"AQIDBA==\"}");
    assert_attribute(item, "number", "{\"intValue\":\"1234567\"}");
    assert_null(json_object_get(item, "droppedAttributesCount"));
    json_decref(tree);
    settings.span_value_bytes_max = 0;
    tree = tree_of(&span, &settings, &item);
    assert_attribute(item, "text", "{\"stringValue\":\"\"}");
    assert_attribute(item, "bytes", "{\"bytesValue\":\"\"}");
    json_decref(tree);
}

static void an_exception_has_limits_of_its_own(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    json_t *item;

    (void)state;
    ph_trace_span span = span_of(NULL, 0);
    span.kind = PH_SPAN_CALL;
    span.status = PH_E_ABORTED;
    span.message = "a long message";
    settings.event_attributes_max = 1;
    settings.span_value_bytes_max = 3;
    json_t *tree = tree_of(&span, &settings, &item);
    json_t *event = json_array_get(json_object_get(item, "events"), 0);
    assert_attribute(event, "exception.type", "{\"stringValue\":\"abo\"}");
    assert_int_equal(number(event, "droppedAttributesCount"), 1);
    /* That is no attribute. */
    assert_string_equal(json_string_value(json_object_get(json_object_get(item, "status"), "message")),
                        "a long message");
    json_decref(tree);
    settings.span_events_max = 0;
    tree = tree_of(&span, &settings, &item);
    assert_null(json_object_get(item, "events"));
    assert_int_equal(number(item, "droppedEventsCount"), 1);
    json_decref(tree);
}

static void logs_have_limits_of_their_own(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    const ph_field fields[] = {text_field("a", "long"), text_field("b", "long")};
    const ph_trace_event event = log_of(fields, 2);
    struct otlp_pair pair;

    (void)state;
    settings.span_attributes_max = 0;
    settings.span_value_bytes_max = 0;
    settings.log_attributes_max = 3;
    settings.log_value_bytes_max = 2;
    otlp_open(&pair, PH_EXPORT_LOGS, &settings);
    otlp_event(&pair, &event);
    json_t *tree = otlp_finish(&pair);
    const json_t *item = json_array_get(otlp_items(tree, "pinhole.guest"), 0);
    assert_attribute(item, "a", "{\"stringValue\":\"lo\"}");
    assert_null(otlp_attribute(item, "b"));
    assert_int_equal(number(item, "droppedAttributesCount"), 1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(item, "body"), "stringValue")),
                        "text");
    json_decref(tree);
}

/* ---- hostile guests ------------------------------------------------------------------------------------ */

static void no_name_of_a_guests_is_ours_or_comes_twice(void **state) {
    static const char *const names[] = {
        "pinhole.sandbox",
        "pinhole.status",
        "code.file.path",
        "exception.type",
        "service.name",
        "host.name",
        "process.pid",
        "telemetry.sdk.name",
        "os.type",
        "otel.scope.name",
        "",
        NULL,
        "same",
        "same",
        "13:same",
    };
    ph_field fields[COUNT(names)];
    json_t *item, *each;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(names); i++)
        fields[i] = text_field(names[i], "lie");
    ph_trace_span span = span_of(fields, COUNT(names));
    json_t *tree = tree_of(&span, NULL, &item);
    assert_attribute(item, "pinhole.sandbox", "{\"intValue\":\"1\"}");
    assert_int_equal(json_array_size(json_object_get(item, "attributes")), 2 + COUNT(names));
    json_array_foreach(json_object_get(item, "attributes"), i, each) {
        const char *key = json_string_value(json_object_get(each, "key"));
        /* Fails when there are two. */
        assert_non_null(otlp_attribute(item, key));
        if (i >= 2 && i != 2 + 12)
            assert_true(*key >= '0' && *key <= '9');
    }
    assert_attribute(item, "0:pinhole.sandbox", "{\"stringValue\":\"lie\"}");
    assert_attribute(item, "10:", "{\"stringValue\":\"lie\"}");
    json_decref(tree);
}

static void any_bytes_can_be_read(void **state) {
    char hostile[256];
    json_t *item;

    (void)state;
    /* Each byte but NUL: controls, and what is no UTF-8. */
    for (unsigned i = 0; i < 255; i++)
        hostile[i] = (char)(i + 1);
    hostile[255] = 0;
    const ph_field fields[] = {text_field(hostile, hostile), text_field("\xed\xa0\x80", "\xf4\x90\x80\x80")};
    ph_trace_span span = span_of(fields, 2);
    span.name = hostile;
    span.source = (ph_source){hostile, hostile, UINT32_MAX};
    span.status = PH_E_GUEST;
    span.message = hostile;
    span.trace_state = hostile;
    json_t *tree = tree_of(&span, NULL, &item);
    const char *name = json_string_value(json_object_get(item, "name"));
    assert_memory_equal(name, hostile, 127);
    assert_string_equal(name + strlen(name) - 3, "\xef\xbf\xbd");
    assert_attribute(item, "code.line.number", "{\"intValue\":\"4294967295\"}");
    json_decref(tree);

    struct otlp_pair pair;
    ph_trace_event event = log_of(fields, 2);
    event.message = hostile;
    otlp_open(&pair, PH_EXPORT_LOGS, NULL);
    otlp_event(&pair, &event);
    event.message = NULL;
    event.name = hostile;
    otlp_event(&pair, &event);
    json_decref(otlp_finish(&pair));

    ph_trace_counter counter = {.size = sizeof counter,
                                .sandbox = UINT64_MAX,
                                .name = hostile,
                                .value = {.type = PH_F64, .f64 = __builtin_nan("")}};
    otlp_open(&pair, PH_EXPORT_METRICS, NULL);
    otlp_counter(&pair, &counter);
    json_decref(otlp_finish(&pair));
}

static void a_thousand_levels_and_no_name(void **state) {
    struct otlp_pair pair;

    (void)state;
    otlp_open(&pair, PH_EXPORT_TRACES, NULL);
    for (uint64_t id = 1000; id > 0; id--) {
        ph_trace_span span = span_of(NULL, 0);
        span.id = id;
        span.parent = id - 1;
        span.name = id % 2 ? "" : NULL;
        otlp_span(&pair, &span);
    }
    json_t *tree = otlp_finish(&pair);
    const json_t *items = otlp_items(tree, "pinhole.guest");
    assert_int_equal(json_array_size(items), 1000);
    for (size_t i = 0; i + 1 < 1000; i++)
        assert_true(json_equal(json_object_get(json_array_get(items, i), "parentSpanId"),
                               json_object_get(json_array_get(items, i + 1), "spanId")));
    assert_null(json_object_get(json_array_get(items, 999), "parentSpanId"));
    json_decref(tree);
}

/* ---- room ---------------------------------------------------------------------------------------------- */

static void a_request_is_no_larger_than_it_may_be(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    static char text[3000];
    struct otlp_pair pair;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    const ph_field field = text_field("text", text);
    settings.batch_bytes = 100000;
    otlp_open(&pair, PH_EXPORT_TRACES, &settings);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned round = 0; round < 3; round++) {
            size_t added = 0, size;
            ph_trace_span span = span_of(&field, 1);
            while (span.kind = added % 2 ? PH_SPAN_CALL : PH_SPAN_USER,
                   ph__otlp_batch_span(pair.batches[i], &span))
                added++;
            assert_int_equal(ph__otlp_batch_items(pair.batches[i]), added);
            uint8_t *bytes = ph__otlp_batch_take(pair.batches[i], &size);
            assert_non_null(bytes);
            assert_true(size > settings.batch_bytes - 6000 && size <= settings.batch_bytes);
            json_t *tree = i == PH__OTLP_JSON ? otlp_tree_of_json(bytes, size)
                                              : otlp_tree_of_protobuf(PH_EXPORT_TRACES, bytes, size);
            assert_int_equal(json_array_size(otlp_items(tree, "pinhole.host")) +
                                 json_array_size(otlp_items(tree, "pinhole.guest")),
                             added);
            json_decref(tree);
            free(bytes);
        }
    otlp_close(&pair);
}

static void an_item_larger_than_a_request_is_added_cut(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    static char text[100000];
    ph_field fields[40];
    char names[40][8];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        fields[i] = text_field(names[i], text);
    }
    /* From little more than fits down to nothing but the least. */
    static const size_t sizes[] = {4u << 20, 1u << 20, 65536, 10000, 1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        settings.batch_bytes = sizes[i];
        for (unsigned encoding = 0; encoding < 2; encoding++) {
            size_t size;
            struct ph__otlp_batch *batch =
                ph__otlp_batch_create(PH_EXPORT_TRACES, (enum ph__otlp_encoding)encoding, &settings);
            ph_trace_span span = span_of(fields, 40);
            span.name = span.message = span.trace_state = text;
            span.source = (ph_source){text, text, 1};
            span.status = PH_E_GUEST;
            assert_true(ph__otlp_batch_span(batch, &span));
            assert_int_equal(ph__otlp_batch_items(batch), 1);
            uint8_t *bytes = ph__otlp_batch_take(batch, &size);
            assert_non_null(bytes);
            assert_true(size <= (sizes[i] < 10000 ? 10000 : sizes[i]));
            json_t *tree = encoding == PH__OTLP_JSON ? otlp_tree_of_json(bytes, size)
                                                     : otlp_tree_of_protobuf(PH_EXPORT_TRACES, bytes, size);
            const json_t *item = json_array_get(otlp_items(tree, "pinhole.guest"), 0);
            const json_int_t kept = (json_int_t)json_array_size(json_object_get(item, "attributes"));
            /* Texts are cut before attributes are left out. */
            assert_true(kept == 46 || sizes[i] <= 10000);
            assert_int_equal(kept + number(item, "droppedAttributesCount"), 46);
            /* A part of it would be another one. */
            const json_t *trace_state = json_object_get(item, "traceState");
            assert_true(!trace_state || json_string_length(trace_state) == sizeof text - 1);
            json_decref(tree);
            free(bytes);
            ph__otlp_batch_destroy(batch);
        }
    }
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void without_memory_nothing_is_half_made(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    static char text[20000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    const ph_field field = text_field("text", text);
    const ph_trace_span span = span_of(&field, 1);
    for (unsigned at = 1;; at++) {
        size_t size = 0, added = 0;
        failing = (struct failing){.at = at};
        struct ph__otlp_batch *batch = ph__otlp_batch_create(PH_EXPORT_TRACES, PH__OTLP_JSON, &settings);
        for (unsigned i = 0; batch && i < 4; i++)
            added += ph__otlp_batch_span(batch, &span);
        uint8_t *bytes = batch ? ph__otlp_batch_take(batch, &size) : NULL;
        const bool failed = failing.failed;
        failing = (struct failing){0};
        if (bytes) {
            json_t *tree = otlp_tree_of_json(bytes, size);
            assert_int_equal(json_array_size(otlp_items(tree, "pinhole.guest")), added);
            assert_true(added >= 1);
            json_decref(tree);
        }
        if (batch)
            assert_int_equal(ph__otlp_batch_items(batch), 0);
        free(bytes);
        ph__otlp_batch_destroy(batch);
        if (!failed) {
            assert_non_null(bytes);
            assert_int_equal(added, 4);
            assert_true(at > 5);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_beyond_the_limit_are_counted),
        cmocka_unit_test(fields_that_the_tree_dropped_are_counted_too),
        cmocka_unit_test(values_are_cut_between_characters),
        cmocka_unit_test(an_exception_has_limits_of_its_own),
        cmocka_unit_test(logs_have_limits_of_their_own),
        cmocka_unit_test(no_name_of_a_guests_is_ours_or_comes_twice),
        cmocka_unit_test(any_bytes_can_be_read),
        cmocka_unit_test(a_thousand_levels_and_no_name),
        cmocka_unit_test(a_request_is_no_larger_than_it_may_be),
        cmocka_unit_test(an_item_larger_than_a_request_is_added_cut),
        cmocka_unit_test(without_memory_nothing_is_half_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
