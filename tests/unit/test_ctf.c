/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A trace in the Common Trace Format comes out of babeltrace2 as it went in: names, parents, times to the
 * nanosecond, fields with their types, and any text of any size.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ctf_fixture.h"

/* ---- what comes out ------------------------------------------------------------------------------------ */

static void a_span_comes_out_as_it_went_in(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer);
    ph_trace_span span = span_of(7, 3, "prepare", 1001, 2003);
    span.sandbox = 12;
    span.source = (ph_source){"db/query.c", "prepare_one", 42};
    give(&writer, span);
    span = span_of(3, 0, "call query", 1, 123456789);
    span.unfinished = true;
    span.level = PH_LEVEL_ERROR;
    span.status = PH_E_TIMED_OUT;
    span.message = "it took too long";
    give(&writer, span);
    char *text = take(&writer);
    const char *at = text;
    assert_follows(&at,
                   "[1700000000.000002003] span: { name = \"prepare\", sandbox = 12, id = 7, parent = 3, "
                   "kind = ( \"user\" : container = 4 ), level = ( \"info\" : container = 3 ), "
                   "start_ns = 1700000000000001001, duration_ns = 1002, "
                   "unfinished = ( \"no\" : container = 0 ), status = \"\", message = \"\", "
                   "file = \"db/query.c\", line = 42, function = \"prepare_one\", field_count = 0,");
    assert_follows(&at,
                   "[1700000000.123456789] span: { name = \"call query\", sandbox = 1, id = 3, parent = 0, "
                   "kind = ( \"call\" : container = 1 ), level = ( \"error\" : container = 1 ), "
                   "start_ns = 1700000000000000001, duration_ns = 123456788, "
                   "unfinished = ( \"yes\" : container = 1 ), status = \"");
    assert_follows(&at, ph_status_kind(PH_E_TIMED_OUT));
    assert_follows(&at, "\", message = \"it took too long\"");
    assert_int_equal(lines_of(text), 2);
    free(text);
}

static void events_logs_and_counters_come_out_as_they_went_in(void **state) {
    const ph_trace_counter integer = {.size = sizeof integer,
                                      .sandbox = 1,
                                      .span = 3,
                                      .name = "pages",
                                      .time_ns = EPOCH + 3,
                                      .value = {.type = PH_I64, .i64 = -12}};
    ph_trace_counter real = integer;
    struct writer writer;

    (void)state;
    real.value = (ph_value){.type = PH_F64, .f64 = 1.5};
    writer_init(&writer);
    give_event(&writer, "cache.miss", NULL, 1, NULL, 0);
    give_event(&writer, "slow: %s", "slow: table scan", 2, NULL, 0);
    writer.sink.counter(writer.sink.context, &integer);
    writer.sink.counter(writer.sink.context, &real);
    char *text = take(&writer);
    const char *at = text;
    assert_follows(&at, "[1700000000.000000001] event: { name = \"cache.miss\", sandbox = 1, span = 3, "
                        "level = ( \"warn\" : container = 2 ), time_ns = 1700000000000000001,");
    assert_follows(&at,
                   "[1700000000.000000002] log: { message = \"slow: table scan\", name = \"slow: %s\", ");
    assert_follows(&at, "[1700000000.000000003] counter: { name = \"pages\", "
                        "type = ( \"i64\" : container = 0 ), value = { -12 }, sandbox = 1, span = 3,");
    assert_follows(&at, "type = ( \"f64\" : container = 2 ), value = { 1.5 }");
    free(text);
}

static void fields_have_names_and_types(void **state) {
    static const uint8_t data[] = {0, 1, 255};
    const ph_field fields[] = {
        text_field("sql", "SELECT 1"),
        number_field("i", PH_I64, (uint64_t)INT64_MIN),
        number_field("u", PH_U64, UINT64_MAX),
        {.name = "f", .value = {.type = PH_F64, .f64 = 0.125}},
        {.name = "b", .value = {.type = PH_BOOL, .boolean = true}},
        number_field("p", PH_POINTER, 0x401136),
        {.name = "d", .value = {.type = PH_BYTES, .bytes = {data, 3}}, .size = 3, .full_size = 3},
        {.name = "d", .value = {.type = PH_BYTES, .bytes = {data, 2}}, .size = 2, .full_size = 5000},
        {.name = "t", .value = {.type = PH_STR, .str = "abcdef"}, .size = 3, .full_size = 9},
        number_field(NULL, PH_U32, 8),
    };
    struct writer writer;

    (void)state;
    writer_init(&writer);
    give_event(&writer, "e", NULL, 1, fields, COUNT(fields));
    char *text = take(&writer);
    const char *at = text;
    assert_follows(
        &at, "field_count = 10, fields = [ [0] = { name = \"sql\", type = ( \"text\" : container = 4 ), "
             "value = { \"SELECT 1\" } }, [1] = { name = \"i\", type = ( \"i64\" : container = 0 ), "
             "value = { -9223372036854775808 } }, [2] = { name = \"u\", ");
    assert_follows(&at, "value = { 18446744073709551615 } }, [3] = { name = \"f\", "
                        "type = ( \"f64\" : container = 2 ), value = { 0.125 } }, [4] = { name = \"b\", ");
    assert_follows(&at, "value = { ( \"yes\" : container = 1 ) } }, [5] = { name = \"p\", "
                        "type = ( \"pointer\" : container = 6 ), value = { 0x401136 } }, ");
    assert_follows(&at, "value = { { size = 3, data = [ [0] = 0x0, [1] = 0x1, [2] = 0xFF ] } } }, ");
    assert_follows(&at, "value = { { full_size = 5000, size = 2, data = [ [0] = 0x0, [1] = 0x1 ] } } }, ");
    assert_follows(&at, "value = { { full_size = 9, text = \"abc\" } } }, [9] = { name = \"\", ");
    assert_follows(&at, "value = { 8 } } ] }");
    free(text);
}

static void any_text_comes_out(void **state) {
    static const struct {
        const char *given, *shown;
    } texts[] = {
        {"", "\"\""},
        {"\"quoted\" \\ back", "\"\\\"quoted\\\" \\\\ back\""},
        {"line\nfeed\ttab", "\"line\\nfeed\\ttab\""},
        {"\x1b[31m", "\"\\e[31m\""},
        {"gr\u00fc\u00df \u65e5\u672c \U0001f600", "\"gr\u00fc\u00df \u65e5\u672c \U0001f600\""},
        {"not \xff\xc0\x80 UTF-8", "\"not \ufffd\ufffd\ufffd UTF-8\""},
    };
    const ph_field with_nul = {
        .name = "nul", .value = {.type = PH_STR, .str = "a\0b"}, .size = 3, .full_size = 3};
    struct writer writer;

    (void)state;
    writer_init(&writer);
    for (size_t i = 0; i < COUNT(texts); i++) {
        const ph_field field = text_field(texts[i].given, texts[i].given);
        give_event(&writer, texts[i].given, texts[i].given, i, &field, 1);
    }
    give_event(&writer, NULL, NULL, COUNT(texts), &with_nul, 1);
    char *text = take(&writer);
    const char *at = text;
    for (size_t i = 0; i < COUNT(texts); i++) {
        char wanted[256];
        snprintf(wanted, sizeof wanted, "log: { message = %s, name = %s, ", texts[i].shown, texts[i].shown);
        assert_follows(&at, wanted);
        snprintf(wanted, sizeof wanted, "name = %s, type = ( \"text\" : container = 4 ), value = { %s }",
                 texts[i].shown, texts[i].shown);
        assert_follows(&at, wanted);
    }
    assert_follows(&at, "event: { name = \"\", ");
    assert_follows(&at, "value = { \"a\ufffdb\" }");
    assert_int_equal(lines_of(text), COUNT(texts) + 1);
    free(text);
}

static void a_thousand_levels_keep_their_parents(void **state) {
    enum { DEPTH = 1000 };
    struct writer writer;
    char wanted[128];

    (void)state;
    writer_init(&writer);
    for (uint64_t id = DEPTH; id > 0; id--)
        give_span(&writer, id, id - 1, "level", id, 5000 - id);
    char *text = take(&writer);
    const char *at = text;
    for (unsigned id = DEPTH; id > 0; id--) {
        snprintf(wanted, sizeof wanted,
                 "[1700000000.%09u] span: { name = \"level\", sandbox = 1, id = %u, parent = %u, ", 5000 - id,
                 id, id - 1);
        assert_follows(&at, wanted);
        snprintf(wanted, sizeof wanted, "start_ns = %" PRIu64 ", duration_ns = %u,", EPOCH + id,
                 5000 - 2 * id);
        assert_follows(&at, wanted);
    }
    assert_int_equal(lines_of(text), DEPTH);
    free(text);
}

/* Readers refuse a stream in which time goes back. */
static void time_does_not_go_back_and_fields_keep_it(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer);
    give_span(&writer, 1, 0, "late", 10, 2000);
    give_span(&writer, 2, 0, "early", 5, 1000);
    writer.sink.flush(writer.sink.context);
    give_event(&writer, "earlier", NULL, 7, NULL, 0);
    char *text = take(&writer);
    const char *at = text;
    assert_follows(&at, "[1700000000.000002000] span: { name = \"late\"");
    assert_follows(&at, "[1700000000.000002000] span: { name = \"early\"");
    assert_follows(&at, "start_ns = 1700000000000000005, duration_ns = 995,");
    assert_follows(&at, "[1700000000.000002000] event: { name = \"earlier\"");
    assert_follows(&at, "time_ns = 1700000000000000007,");
    free(text);
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

static void an_event_of_any_size_fits(void **state) {
    enum { FIELDS = 2000 };
    static ph_field fields[FIELDS];
    static char texts[FIELDS][8];
    struct writer writer;
    char *large = malloc(100001);
    const ph_field large_field = {
        .name = "large", .value = {.type = PH_STR, .str = large}, .size = 100000, .full_size = 100000};

    (void)state;
    assert_non_null(large);
    memset(large, 'x', 100000);
    large[100000] = 0;
    for (unsigned i = 0; i < FIELDS; i++) {
        snprintf(texts[i], sizeof texts[i], "f%u", i);
        fields[i] = number_field(texts[i], PH_U64, i);
    }
    writer_init(&writer);
    give_event(&writer, "before", NULL, 1, NULL, 0);
    give_event(&writer, "many", NULL, 2, fields, FIELDS);
    give_event(&writer, "between", NULL, 3, NULL, 0);
    give_event(&writer, large, large, 4, &large_field, 1);
    ph_field several[16];
    for (size_t i = 0; i < COUNT(several); i++)
        several[i] = large_field;
    give_event(&writer, "after", NULL, 5, several, COUNT(several));
    give_event(&writer, "last", NULL, 6, NULL, 0);
    char *text = take(&writer);
    const char *at = text;
    assert_follows(&at, "{ name = \"before\"");
    assert_follows(&at, "{ name = \"many\"");
    assert_follows(&at, "field_count = 2000,");
    assert_follows(&at,
                   "[1999] = { name = \"f1999\", type = ( \"u64\" : container = 1 ), value = { 1999 } } ] }");
    assert_follows(&at, "{ name = \"between\"");
    assert_follows(&at, "log: { message = \"xxx");
    assert_follows(
        &at, "{ name = \"large\", type = ( \"cut_text\" : container = 7 ), value = { { full_size = 100000, ");
    assert_follows(&at, "{ name = \"after\"");
    assert_follows(&at,
                   "{ name = \"pinhole.fields_left_out\", type = ( \"u64\" : container = 1 ), value = { 1");
    assert_follows(&at, "{ name = \"last\"");
    free(text);
    free(large);
}

static void memory_does_not_grow_with_the_trace(void **state) {
    struct rusage before, after;
    struct writer writer;

    (void)state;
    writer_init(&writer);
    getrusage(RUSAGE_SELF, &before);
    for (uint64_t i = 0; i < 300000; i++)
        give_span(&writer, i + 1, i, "a span of some length", i, i + 1);
    getrusage(RUSAGE_SELF, &after);
    writer_close(&writer);
    assert_int_equal(writer.system_error, 0);
    assert_true(stream_size(&writer) > 20 << 20);
    assert_true(after.ru_maxrss - before.ru_maxrss < 4096);
    writer_remove(&writer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_comes_out_as_it_went_in),
        cmocka_unit_test(events_logs_and_counters_come_out_as_they_went_in),
        cmocka_unit_test(fields_have_names_and_types),
        cmocka_unit_test(any_text_comes_out),
        cmocka_unit_test(a_thousand_levels_keep_their_parents),
        cmocka_unit_test(time_does_not_go_back_and_fields_keep_it),
        cmocka_unit_test(an_event_of_any_size_fits),
        cmocka_unit_test(memory_does_not_grow_with_the_trace),
    };

    return cmocka_run_group_tests_name("ctf", tests, NULL, NULL);
}
