/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Spans, events and logs in requests of OTLP: what protoc reads by OpenTelemetry's field
 * numbers is what the JSON says, and both are what OpenTelemetry's conventions ask for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/otlp_tree.h"

#define BASE 1700000000000000000u

static ph_trace_span span_of(ph_span_kind kind, const char *name) {
    ph_trace_span span = {.size = sizeof span,
                          .sandbox = 3,
                          .id = 12,
                          .kind = kind,
                          .level = PH_LEVEL_INFO,
                          .name = name,
                          .start_ns = BASE + 1,
                          .end_ns = BASE + 1000000007};

    for (unsigned i = 0; i < 16; i++)
        span.trace_id[i] = (uint8_t)(0xa0 + i);
    return span;
}

static ph_trace_event event_of(ph_level level, const char *name, const char *message) {
    ph_trace_event event = {.size = sizeof event,
                            .sandbox = 3,
                            .span = 12,
                            .level = level,
                            .name = name,
                            .message = message,
                            .source = {"", "", 0},
                            .time_ns = BASE + 5};

    for (unsigned i = 0; i < 16; i++)
        event.trace_id[i] = (uint8_t)(0xa0 + i);
    return event;
}

static void id_text(uint64_t id, char text[17]) {
    uint8_t bytes[8];

    ph_trace_span_id(id, bytes);
    for (unsigned i = 0; i < 8; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* The only item of (scope). */
static json_t *only_item(const json_t *tree, const char *scope) {
    json_t *items = otlp_items(tree, scope);

    assert_int_equal(json_array_size(items), 1);
    return json_array_get(items, 0);
}

static json_t *tree_of_span(const ph_trace_span *span) {
    struct otlp_pair pair;

    otlp_open(&pair, PH_EXPORT_TRACES, NULL);
    otlp_span(&pair, span);
    return otlp_finish(&pair);
}

static json_t *tree_of_event(const ph_trace_event *event) {
    struct otlp_pair pair;

    otlp_open(&pair, PH_EXPORT_LOGS, NULL);
    otlp_event(&pair, event);
    return otlp_finish(&pair);
}

static void assert_is(json_t *tree, const char *expected, ...) {
    va_list arguments;
    char *text = NULL;

    va_start(arguments, expected);
    assert_true(vasprintf(&text, expected, arguments) > 0);
    va_end(arguments);
    json_error_t error;
    json_t *wanted = json_loads(text, 0, &error);
    if (!wanted)
        fail_msg("%s at %d of %s", error.text, error.position, text);
    assert_same_tree(tree, wanted);
    json_decref(wanted);
    free(text);
}

static void assert_text(const json_t *object, const char *key, const char *text) {
    const char *found = json_string_value(json_object_get(object, key));

    assert_non_null(found);
    assert_string_equal(found, text);
}

static json_int_t number(const json_t *object, const char *key) {
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static void a_span_is_whole(void **state) {
    ph_trace_span span = span_of(PH_SPAN_USER, "lookup");
    const ph_field fields[] = {
        {.name = "key", .value = {.type = PH_STR, .str = "k\xc3\xb6nig"}, .size = 6, .full_size = 6},
        {.name = "rows", .value = {.type = PH_I64, .i64 = -5}},
    };
    char id[17], parent[17];

    (void)state;
    span.parent = 11;
    span.source = (ph_source){"src/cache.c", "lookup", 42};
    span.fields = fields;
    span.field_count = 2;
    span.trace_state = "vendor=1";
    id_text(12, id);
    id_text(11, parent);
    json_t *tree = tree_of_span(&span);
    json_t *resource = json_array_get(json_object_get(tree, "resourceSpans"), 0);
    json_object_del(resource, "resource");
    assert_is(
        tree,
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"pinhole.guest\",\"version\":\"%s\"},"
        "\"spans\":[{\"traceId\":\"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\",\"spanId\":\"%s\","
        "\"traceState\":\"vendor=1\",\"parentSpanId\":\"%s\",\"flags\":257,\"name\":\"lookup\","
        "\"kind\":1,\"startTimeUnixNano\":\"1700000000000000001\","
        "\"endTimeUnixNano\":\"1700000001000000007\",\"attributes\":["
        "{\"key\":\"pinhole.sandbox\",\"value\":{\"intValue\":\"3\"}},"
        "{\"key\":\"pinhole.span.kind\",\"value\":{\"stringValue\":\"user\"}},"
        "{\"key\":\"code.file.path\",\"value\":{\"stringValue\":\"src/cache.c\"}},"
        "{\"key\":\"code.line.number\",\"value\":{\"intValue\":\"42\"}},"
        "{\"key\":\"code.function.name\",\"value\":{\"stringValue\":\"lookup\"}},"
        "{\"key\":\"key\",\"value\":{\"stringValue\":\"k\xc3\xb6nig\"}},"
        "{\"key\":\"rows\",\"value\":{\"intValue\":\"-5\"}}]}],"
        "\"schemaUrl\":\"https://opentelemetry.io/schemas/1.37.0\"}],"
        "\"schemaUrl\":\"https://opentelemetry.io/schemas/1.37.0\"}]}",
        ph_version(), id, parent);
    json_decref(tree);
}

static void a_root_has_no_parent_or_a_remote_one(void **state) {
    ph_trace_span span = span_of(PH_SPAN_CALL, "call f");
    static const uint8_t remote[] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    json_t *tree = tree_of_span(&span);
    assert_null(json_object_get(only_item(tree, "pinhole.host"), "parentSpanId"));
    assert_null(json_object_get(only_item(tree, "pinhole.host"), "traceState"));
    assert_int_equal(number(only_item(tree, "pinhole.host"), "flags"), 0x101);
    json_decref(tree);

    memcpy(span.remote_parent, remote, sizeof remote);
    tree = tree_of_span(&span);
    assert_text(only_item(tree, "pinhole.host"), "parentSpanId", "0102030405060708");
    assert_int_equal(number(only_item(tree, "pinhole.host"), "flags"), 0x301);
    json_decref(tree);
}

static void host_and_guest_have_scopes_of_their_own(void **state) {
    static const char *const names[] = {"host", "call",     "host-function", "guest",
                                        "user", "function", "system-call",   "async"};
    struct otlp_pair pair;

    (void)state;
    otlp_open(&pair, PH_EXPORT_TRACES, NULL);
    for (ph_span_kind kind = PH_SPAN_HOST; kind <= PH_SPAN_ASYNC; kind++) {
        ph_trace_span span = span_of(kind, names[kind]);
        otlp_span(&pair, &span);
    }
    json_t *tree = otlp_finish(&pair);
    json_t *host = otlp_items(tree, "pinhole.host"), *guest = otlp_items(tree, "pinhole.guest");
    assert_int_equal(json_array_size(host), 3);
    assert_int_equal(json_array_size(guest), 5);
    for (unsigned i = 0; i < 8; i++) {
        const json_t *span = i < 3 ? json_array_get(host, i) : json_array_get(guest, i - 3);
        char expected[64];
        assert_text(span, "name", names[i]);
        snprintf(expected, sizeof expected, "{\"stringValue\":\"%s\"}", names[i]);
        assert_attribute(span, "pinhole.span.kind", expected);
        assert_int_equal(number(span, "kind"), 1);
    }
    json_decref(tree);
}

static void a_failure_is_an_error_and_an_exception(void **state) {
    ph_trace_span span = span_of(PH_SPAN_GUEST, "guest f");

    (void)state;
    span.status = PH_E_PAGE_FAULT;
    span.message = "it read address 0x10";
    span.unfinished = true;
    json_t *tree = tree_of_span(&span);
    json_t *item = only_item(tree, "pinhole.guest");
    assert_is(json_object_get(item, "status"), "{\"code\":2,\"message\":\"it read address 0x10\"}");
    assert_attribute(item, "pinhole.status", "{\"stringValue\":\"page-fault\"}");
    assert_attribute(item, "pinhole.unfinished", "{\"boolValue\":true}");
    /* The call's span has it. */
    assert_null(json_object_get(item, "events"));
    json_decref(tree);
    span = span_of(PH_SPAN_CALL, "call f");
    span.status = PH_E_PAGE_FAULT;
    span.message = "it read address 0x10";
    tree = tree_of_span(&span);
    item = only_item(tree, "pinhole.host");
    assert_is(json_object_get(item, "events"),
              "[{\"timeUnixNano\":\"1700000001000000007\",\"name\":\"exception\",\"attributes\":["
              "{\"key\":\"exception.type\",\"value\":{\"stringValue\":\"page-fault\"}},"
              "{\"key\":\"exception.message\",\"value\":{\"stringValue\":\"it read address 0x10\"}}]}]");
    json_decref(tree);
}

static void every_status_is_an_error_and_only_a_guests_failure_an_exception(void **state) {
    static const ph_status statuses[] = {PH_E_ARGUMENT,      PH_E_SNAPSHOT,    PH_E_GUEST,
                                         PH_E_HOST_FUNCTION, PH_E_ABORTED,     PH_E_EXITED,
                                         PH_E_TIMED_OUT,     PH_E_INTERRUPTED, PH_E_TRIPLE_FAULT};
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        ph_trace_span span = span_of(PH_SPAN_CALL, "call f");
        span.status = statuses[i];
        json_t *tree = tree_of_span(&span);
        json_t *item = only_item(tree, "pinhole.host");
        /* Without a message of its own it has the status's. */
        assert_is(json_object_get(item, "status"), "{\"code\":2,\"message\":\"%s\"}",
                  ph_status_message(statuses[i]));
        assert_int_equal(json_array_size(json_object_get(item, "events")), i < 2 ? 0 : 1);
        json_decref(tree);
    }
    ph_trace_span span = span_of(PH_SPAN_USER, "left by longjmp");
    span.unfinished = true;
    json_t *tree = tree_of_span(&span);
    assert_null(json_object_get(only_item(tree, "pinhole.guest"), "status"));
    assert_null(json_object_get(only_item(tree, "pinhole.guest"), "events"));
    assert_attribute(only_item(tree, "pinhole.guest"), "pinhole.unfinished", "{\"boolValue\":true}");
    json_decref(tree);
}

static void values_keep_their_types(void **state) {
    static const uint8_t bytes[] = {0, 0xff, '"', '\n', 0x7f};
    const ph_field fields[] = {
        {.name = "i32", .value = {.type = PH_I32, .i32 = INT32_MIN}},
        {.name = "u32", .value = {.type = PH_U32, .u32 = UINT32_MAX}},
        {.name = "min", .value = {.type = PH_I64, .i64 = INT64_MIN}},
        {.name = "zero", .value = {.type = PH_I64, .i64 = 0}},
        {.name = "max", .value = {.type = PH_U64, .u64 = INT64_MAX}},
        {.name = "beyond", .value = {.type = PH_U64, .u64 = (uint64_t)INT64_MAX + 1}},
        {.name = "most", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
        {.name = "f32", .value = {.type = PH_F32, .f32 = 0.5f}},
        {.name = "f64", .value = {.type = PH_F64, .f64 = 0.1}},
        {.name = "whole", .value = {.type = PH_F64, .f64 = 1e300}},
        {.name = "nan", .value = {.type = PH_F64, .f64 = __builtin_nan("")}},
        {.name = "inf", .value = {.type = PH_F64, .f64 = -__builtin_inf()}},
        {.name = "no", .value = {.type = PH_BOOL, .boolean = false}},
        {.name = "yes", .value = {.type = PH_BOOL, .boolean = true}},
        {.name = "empty", .value = {.type = PH_STR, .str = ""}},
        {.name = "null", .value = {.type = PH_STR, .str = NULL}, .size = 3},
        {.name = "nul", .value = {.type = PH_STR, .str = "a\0b"}, .size = 3, .full_size = 3},
        {.name = "bytes", .value = {.type = PH_BYTES, .bytes = {bytes, 5}}, .size = 5, .full_size = 5},
        {.name = "none", .value = {.type = PH_BYTES, .bytes = {NULL, 0}}},
        {.name = "pointer", .value = {.type = PH_POINTER, .u64 = 0x401136}},
    };
    static const char *const expected[] = {
        "{\"intValue\":\"-2147483648\"}",
        "{\"intValue\":\"4294967295\"}",
        "{\"intValue\":\"-9223372036854775808\"}",
        "{\"intValue\":\"0\"}",
        "{\"intValue\":\"9223372036854775807\"}",
        "{\"stringValue\":\"9223372036854775808\"}",
        "{\"stringValue\":\"18446744073709551615\"}",
        "{\"doubleValue\":0.5}",
        "{\"doubleValue\":0.1}",
        "{\"doubleValue\":1e300}",
        "{\"doubleValue\":\"NaN\"}",
        "{\"doubleValue\":\"-Infinity\"}",
        "{\"boolValue\":false}",
        "{\"boolValue\":true}",
        "{\"stringValue\":\"\"}",
        "{\"stringValue\":\"\"}",
        NULL,
        "{\"bytesValue\":\"AP8iCn8=\"}",
        "{\"bytesValue\":\"\"}",
        "{\"stringValue\":\"0x401136\"}",
    };
    ph_trace_span span = span_of(PH_SPAN_USER, "values");

    (void)state;
    span.fields = fields;
    span.field_count = sizeof fields / sizeof fields[0];
    json_t *tree = tree_of_span(&span);
    json_t *item = only_item(tree, "pinhole.guest");
    for (size_t i = 0; i < span.field_count; i++)
        if (expected[i])
            assert_attribute(item, fields[i].name, expected[i]);
    const json_t *nul = json_object_get(otlp_attribute(item, "nul"), "stringValue");
    assert_int_equal(json_string_length(nul), 3);
    assert_memory_equal(json_string_value(nul), "a\0b", 3);
    json_decref(tree);
}

static void time_does_not_run_backwards(void **state) {
    ph_trace_span span = span_of(PH_SPAN_USER, "back");

    (void)state;
    span.end_ns = span.start_ns - 1;
    json_t *tree = tree_of_span(&span);
    assert_text(only_item(tree, "pinhole.guest"), "endTimeUnixNano", "1700000000000000001");
    json_decref(tree);
}

/* ---- logs ---------------------------------------------------------------------------------------------- */

static void an_event_has_a_name_and_a_log_a_text(void **state) {
    const ph_field field = {.name = "rows", .value = {.type = PH_U64, .u64 = 7}};
    ph_trace_event event = event_of(PH_LEVEL_WARN, "cache.miss", NULL);
    char id[17];

    (void)state;
    id_text(12, id);
    event.fields = &field;
    event.field_count = 1;
    json_t *tree = tree_of_event(&event);
    assert_is(only_item(tree, "pinhole.guest"),
              "{\"timeUnixNano\":\"1700000000000000005\",\"observedTimeUnixNano\":\"1700000000000000005\","
              "\"severityNumber\":13,\"severityText\":\"warn\",\"eventName\":\"cache.miss\",\"attributes\":["
              "{\"key\":\"pinhole.sandbox\",\"value\":{\"intValue\":\"3\"}},"
              "{\"key\":\"rows\",\"value\":{\"intValue\":\"7\"}}],"
              "\"flags\":1,\"traceId\":\"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\",\"spanId\":\"%s\"}",
              id);
    json_decref(tree);

    event = event_of(PH_LEVEL_INFO, "%d of %d", "2 of 3");
    event.source = (ph_source){"a.c", "f", 7};
    tree = tree_of_event(&event);
    json_t *item = only_item(tree, "pinhole.guest");
    assert_is(json_object_get(item, "body"), "{\"stringValue\":\"2 of 3\"}");
    assert_null(json_object_get(item, "eventName"));
    assert_attribute(item, "pinhole.format", "{\"stringValue\":\"%d of %d\"}");
    assert_attribute(item, "code.file.path", "{\"stringValue\":\"a.c\"}");
    assert_attribute(item, "code.line.number", "{\"intValue\":\"7\"}");
    assert_attribute(item, "code.function.name", "{\"stringValue\":\"f\"}");
    json_decref(tree);
}

static void levels_are_the_numbers_of_the_log_data_model(void **state) {
    static const json_int_t numbers[] = {17, 13, 9, 5, 1};

    (void)state;
    for (ph_level level = PH_LEVEL_ERROR; level <= PH_LEVEL_TRACE; level++) {
        ph_trace_event event = event_of(level, "e", NULL);
        json_t *tree = tree_of_event(&event);
        assert_int_equal(number(only_item(tree, "pinhole.guest"), "severityNumber"),
                         numbers[level - PH_LEVEL_ERROR]);
        json_decref(tree);
    }
}

static void what_is_in_no_trace_has_no_ids(void **state) {
    ph_trace_event event = event_of(PH_LEVEL_INFO, "early", NULL);

    (void)state;
    memset(event.trace_id, 0, sizeof event.trace_id);
    json_t *tree = tree_of_event(&event);
    assert_null(json_object_get(only_item(tree, "pinhole.guest"), "traceId"));
    assert_null(json_object_get(only_item(tree, "pinhole.guest"), "spanId"));
    json_decref(tree);
}

static void only_the_hosts_own_word_is_the_hosts(void **state) {
    ph_trace_event event = event_of(PH_LEVEL_WARN, "trace.gap", NULL);

    (void)state;
    /* A site of a guest's has a place in its source, if only an empty one. */
    json_t *tree = tree_of_event(&event);
    assert_non_null(otlp_items(tree, "pinhole.guest"));
    assert_null(otlp_items(tree, "pinhole.host"));
    json_decref(tree);
    event.source = (ph_source){0};
    tree = tree_of_event(&event);
    assert_non_null(otlp_items(tree, "pinhole.host"));
    assert_null(otlp_items(tree, "pinhole.guest"));
    json_decref(tree);
    event.name = "exit";
    tree = tree_of_event(&event);
    assert_non_null(otlp_items(tree, "pinhole.guest"));
    json_decref(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_is_whole),
        cmocka_unit_test(a_root_has_no_parent_or_a_remote_one),
        cmocka_unit_test(host_and_guest_have_scopes_of_their_own),
        cmocka_unit_test(a_failure_is_an_error_and_an_exception),
        cmocka_unit_test(every_status_is_an_error_and_only_a_guests_failure_an_exception),
        cmocka_unit_test(values_keep_their_types),
        cmocka_unit_test(time_does_not_run_backwards),
        cmocka_unit_test(an_event_has_a_name_and_a_log_a_text),
        cmocka_unit_test(levels_are_the_numbers_of_the_log_data_model),
        cmocka_unit_test(what_is_in_no_trace_has_no_ids),
        cmocka_unit_test(only_the_hosts_own_word_is_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
