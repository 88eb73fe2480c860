/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a C program says with each macro arrives as it was said, from every kind of static program that a
 * compiler makes of it: names, levels, fields, places in the source, parents.
 */
#include "system/trace_checks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const guests[] = {
    "trace",          "trace-O0",   "trace-pie",      "trace-lto",   "trace-gc",
    "trace-stripped", "trace-musl", "trace-musl-pie", "trace-clang", "trace-clang-O0",
};

static void spans_check(struct traced *traced) {
    traced_run(traced, "spans", NO_ARGS);
    const ph_trace_span *guest = trace_span_named(&traced->collect, "guest spans");
    const ph_trace_span *outer = span_in(traced, "outer", 0, guest);
    const ph_trace_span *first = span_in(traced, "inner", 0, outer);
    const ph_trace_span *second = span_in(traced, "inner", 1, outer);
    const ph_trace_event *event = event_in(traced, "between", outer);
    assert_int_equal(outer->kind, PH_SPAN_USER);
    assert_int_equal(outer->level, PH_LEVEL_INFO);
    assert_int_equal(outer->field_count, 0);
    FIELDS_CHECK(first, {"n", I64(1)});
    FIELDS_CHECK(second, {"n", I64(2)});
    assert_true(first->end_ns <= event->time_ns && event->time_ns <= second->start_ns);
    assert_null(event->message);
    source_check(&outer->source, "outer", "trace_c.c", "spans");
    source_check(&first->source, "inner", "trace_c.c", "inner");
    source_check(&event->source, "between", "trace_c.c", "spans");
    assert_int_equal(event->source.line, outer->source.line + 2);
}

static void spans_arrive_with_their_places_and_parents(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        spans_check(&traced);
        sound_end(&traced);
    }
}

static void fields_of_every_type_arrive(void **state) {
    static const char letters[] = "abcdefghijkl",
                      strings[12][10] = {"1",       "22",       "333",       "4444", "55555", "666666",
                                         "7777777", "88888888", "999999999", "j",    "k",     "l"};
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "fields", NO_ARGS);
        const ph_trace_span *span = trace_span_named(&traced.collect, "fields");
        FIELDS_CHECK(span, {"i64", I64(-1)}, {"u64", U64(UINT64_MAX)}, {"f64", F64(-0.5)},
                     {"yes", BOOL(true)}, {"no", BOOL(false)}, {"str", STR("text")},
                     {"bytes", BYTES("\0\1\xfe\xff", 4)}, {"ptr", POINTER(0x1234)}, {"later", I64(5)},
                     {"scalar", BOOL(true)}, {"latest", STR("more")}, {"null", STR("(null)")},
                     {"empty", STR("")});
        traced_run(&traced, "twelve", NO_ARGS);
        const ph_trace_event *scalars = trace_event_named(&traced.collect, "scalars");
        const ph_trace_event *texts = trace_event_named(&traced.collect, "strings");
        assert_int_equal(scalars->field_count, 12);
        assert_int_equal(texts->field_count, 12);
        for (size_t j = 0; j < 12; j++) {
            const char name[] = {letters[j], 0};
            fields_check("scalars", &scalars->fields[j], 1, WANT({name, I64((int64_t)j + 1)}));
            fields_check("strings", &texts->fields[j], 1, WANT({name, STR(strings[j])}));
        }
        sound_end(&traced);
    }
}

static void odd_numbers_arrive_bit_by_bit(void **state) {
    const double numbers[] = {0.0, -0.0, (double)NAN, -(double)NAN, (double)INFINITY, 5e-324, 1.0 / 3};
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        for (size_t j = 0; j < COUNT(numbers); j++) {
            traced_run(&traced, "values", ARGS(F64(numbers[j]), STR(""), BYTES("", 0)));
            const ph_trace_span *span = trace_span_named(&traced.collect, "values");
            const ph_trace_event *event = event_in(&traced, "values", span);
            FIELDS_CHECK(span, {"f64", F64(numbers[j])}, {"text", STR("")}, {"raw", STR("")});
            FIELDS_CHECK(event, {"f64", F64(numbers[j])}, {"minus", F64(-numbers[j])});
            assert_int_equal(traced.collect.counter_count, 1);
            const ph_trace_counter *counter = &traced.collect.counters[0].counter;
            assert_int_equal(counter->value.type, PH_F64);
            assert_memory_equal(&counter->value.f64, &numbers[j], sizeof numbers[j]);
        }
        sound_end(&traced);
    }
}

static void texts_arrive_valid_and_bytes_as_they_are(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *shown; /* of the string in it */
    } cases[] = {
        {"a\0b", 3, "a"},
        {"gr\xc3\xbcn \xf0\x9f\x98\x80", 10, "gr\xc3\xbcn \xf0\x9f\x98\x80"},
        {"\xff", 1, "\xef\xbf\xbd"},
        {"a\xc3", 2, "a\xef\xbf\xbd"},
        {"\xed\xa0\x80.", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd."},
        {"\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\x1b[0m\n\x7f", 6, "\x1b[0m\n\x7f"}, /* whoever shows it escapes it */
    };
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        for (size_t j = 0; j < COUNT(cases); j++) {
            traced_run(&traced, "values", ARGS(F64(1), STR("text"), BYTES(cases[j].bytes, cases[j].size)));
            const ph_trace_span *span = trace_span_named(&traced.collect, "values");
            const ph_trace_event *event = event_in(&traced, "bytes", span);
            FIELDS_CHECK(span, {"f64", F64(1)}, {"text", STR("text")}, {"raw", STR(cases[j].shown)});
            FIELDS_CHECK(event, {"bytes", BYTES(cases[j].bytes, cases[j].size)}, {"none", BYTES(NULL, 0)},
                         {"null", STR("(null)")}, {"null", POINTER(0)});
            assert_string_equal(event_in(&traced, "%s", span)->message, cases[j].shown);
        }
        sound_end(&traced);
    }
}

/* The field (name) has (size) of (full) bytes, each an x. */
static void length_check(const ph_trace_event *event, const char *name, size_t size, size_t full) {
    const ph_field *field = trace_field(event->fields, event->field_count, name);

    assert_non_null(field);
    if (field->size != size || field->full_size != full)
        fail_msg("`%s` has %zu of %zu bytes, not %zu of %zu", name, field->size, field->full_size, size,
                 full);
    assert_int_equal(strspn(field->value.str, "x"), size);
    assert_int_equal(strlen(field->value.str), size);
}

static void long_texts_are_cut_and_say_so(void **state) {
    static const size_t sizes[] = {0, 1, 7, 8, 9, 900, 950, 1023, 1024, 1025, 5000, 100000};
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        for (size_t j = 0; j < COUNT(sizes); j++) {
            traced_run(&traced, "long_string", ARGS(I64((int64_t)sizes[j])));
            const ph_trace_event *one = trace_event_named(&traced.collect, "long");
            const ph_trace_event *two = trace_event_named(&traced.collect, "two long");
            length_check(one, "text", sizes[j] < 1024 ? sizes[j] : 1024, sizes[j]);
            assert_int_equal(trace_number(one->fields, one->field_count, "size"), sizes[j]);
            /* Together they have 249 words: two heads, "short" with its own, and twice 124. */
            size_t kept = sizes[j] < 124 * 8 ? sizes[j] : 124 * 8;
            length_check(two, "one", kept, sizes[j]);
            length_check(two, "two", kept, sizes[j]);
            fields_check("two long", &two->fields[2], 1, WANT({"short", STR("short")}));
        }
        sound_end(&traced);
    }
}

static void events_and_logs_have_their_levels(void **state) {
    static const struct {
        const char *name;
        ph_level level;
    } events[] = {{"plain", PH_LEVEL_INFO},    {"with fields", PH_LEVEL_INFO}, {"at error", PH_LEVEL_ERROR},
                  {"at warn", PH_LEVEL_WARN},  {"at info", PH_LEVEL_INFO},     {"at debug", PH_LEVEL_DEBUG},
                  {"at trace", PH_LEVEL_TRACE}};
    static const struct {
        ph_level level;
        const char *format, *message;
    } logs[] = {
        {PH_LEVEL_ERROR, "error", "error"},      {PH_LEVEL_WARN, "warn %d", "warn 1"},
        {PH_LEVEL_DEBUG, "debug %s", "debug d"}, {PH_LEVEL_TRACE, "trace", "trace"},
        {PH_LEVEL_WARN, "at warn\n", "at warn"},
    };
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "events", NO_ARGS);
        const ph_trace_span *guest = trace_span_named(&traced.collect, "guest events");
        size_t at = 0;
        for (size_t j = 0; j < COUNT(events); j++) {
            const ph_trace_event *event = event_next(&traced, &at);
            assert_string_equal(event->name, events[j].name);
            assert_int_equal(event->level, events[j].level);
            assert_int_equal(event->span, guest->id);
            source_check(&event->source, event->name, "trace_c.c", "events");
        }
        FIELDS_CHECK(trace_event_named(&traced.collect, "with fields"), {"key", STR("value")}, {"n", I64(7)});
        FIELDS_CHECK(trace_event_named(&traced.collect, "at trace"), {"deep", BOOL(true)});
        traced_run(&traced, "logs", NO_ARGS);
        for (size_t j = 0; j < COUNT(logs); j++) {
            const ph_trace_event *event = trace_event_named(&traced.collect, logs[j].format);
            assert_string_equal(event->message, logs[j].message);
            assert_int_equal(event->level, logs[j].level);
            assert_int_equal(event->span, trace_span_named(&traced.collect, "guest logs")->id);
            assert_string_equal(event->source.function, "logs");
        }
        assert_int_equal(traced.collect.event_count, 16);
        sound_end(&traced);
    }
}

/* The host's text of each line is what the guest's own printf made of it. */
static void logs_are_what_printf_prints(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        config.keep_output = 16384;
        filtered_begin(&traced, guests[i], "trace", &config);
        traced_run(&traced, "formats", NO_ARGS);
        ph_bytes printed = ph_sandbox_output(traced.sandbox, 1);
        const char *line = printed.data;
        size_t left = printed.size, at = 0;
        assert_true(left > 500);
        while (left > 0) {
            const char *feed = memchr(line, '\n', left);
            size_t length = (size_t)(feed - line);
            const ph_trace_event *event = event_next(&traced, &at);
            assert_non_null(feed);
            if (strlen(event->message) != length || memcmp(event->message, line, length) != 0)
                fail_msg("%s: `%s` is `%s`, and printf prints `%.*s`", guests[i], event->name, event->message,
                         (int)length, line);
            line += length + 1;
            left -= length + 1;
        }
        assert_int_equal(at, traced.collect.event_count);
        sound_end(&traced);
    }
}

static void counters_have_their_values(void **state) {
    static const double loads[] = {0.0, 0.5, 1.0};
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "counters", NO_ARGS);
        const ph_trace_span *guest = trace_span_named(&traced.collect, "guest counters");
        assert_int_equal(traced.collect.counter_count, 6);
        for (size_t j = 0; j < 6; j++) {
            const ph_trace_counter *counter = &traced.collect.counters[j].counter;
            assert_string_equal(counter->name, j % 2 ? "load" : "rows");
            assert_int_equal(counter->value.type, j % 2 ? PH_F64 : PH_I64);
            if (j % 2)
                assert_true(counter->value.f64 == loads[j / 2]);
            else
                assert_int_equal(counter->value.i64, 10 * (int64_t)(j / 2) - 10);
            assert_int_equal(counter->span, guest->id);
            source_check(&counter->source, counter->name, "trace_c.c", "counters");
        }
        sound_end(&traced);
    }
}

static void asynchronous_spans_last_from_call_to_call(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "async_begin", ARGS(U64(7)));
        uint64_t began_in = trace_span_named(&traced.collect, "guest async_begin")->id;
        traced_call(&traced, "async_begin", ARGS(U64(UINT64_MAX)), PH_OK, NULL);
        traced_flush(&traced);
        assert_int_equal(trace_spans_named(&traced.collect, "request"), 0);
        traced_call(&traced, "async_end", ARGS(U64(UINT64_MAX)), PH_OK, NULL);
        traced_call(&traced, "async_end", ARGS(U64(7)), PH_OK, NULL);
        traced_flush(&traced);
        for (size_t j = 0; j < 2; j++) {
            const ph_trace_span *span = span_number(&traced, "request", j);
            assert_int_equal(span->kind, PH_SPAN_ASYNC);
            assert_false(span->unfinished);
            FIELDS_CHECK(span, {"kind", STR("test")}, {"answer", I64(42)});
            source_check(&span->source, "request", "trace_c.c", "async_begin");
        }
        assert_int_equal(span_number(&traced, "request", 1)->parent, began_in);
        traced_call(&traced, "async", NO_ARGS, PH_OK, NULL);
        traced_flush(&traced);
        const ph_trace_span *guest = trace_span_named(&traced.collect, "guest async");
        const ph_trace_span *first = span_in(&traced, "first", 0, guest);
        const ph_trace_span *second = span_in(&traced, "second", 0, guest);
        assert_true(first->start_ns <= second->start_ns && second->start_ns <= first->end_ns &&
                    first->end_ns <= second->end_ns);
        assert_int_equal(first->level, PH_LEVEL_INFO);
        assert_int_equal(second->level, PH_LEVEL_WARN);
        sound_end(&traced);
    }
}

static void spans_close_on_every_way_out_of_their_block(void **state) {
    static const size_t turns[] = {1, 1, 1, 2, 2};
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        for (int64_t how = 0; how < 5; how++) {
            traced_run(&traced, "early_return", ARGS(I64(how)));
            const ph_trace_span *guest = trace_span_named(&traced.collect, "guest early_return");
            const ph_trace_span *early = span_in(&traced, "early", 0, guest);
            FIELDS_CHECK(early, {"how", I64(how)});
            assert_int_equal(trace_spans_named(&traced.collect, "turn"), turns[how]);
            for (size_t j = 0; j < turns[how]; j++)
                FIELDS_CHECK(span_in(&traced, "turn", j, early), {"i", I64((int64_t)j)});
            assert_int_equal(trace_events_named(&traced.collect, "end of turn"), how == 4 ? 2 : 0);
            assert_int_equal(trace_events_named(&traced.collect, "out"), how == 0 ? 0 : 1);
            if (how != 0)
                event_in(&traced, "out", early);
        }
        sound_end(&traced);
    }
}

/* Each is ended when the next one has begun, so that one is in it. */
static void spans_by_hand_end_where_they_are_ended(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "by_hand", NO_ARGS);
        assert_int_equal(trace_spans_named(&traced.collect, "by hand"), 3);
        const ph_trace_span *warn =
            span_in(&traced, "warn by hand", 0, trace_span_named(&traced.collect, "guest by_hand"));
        assert_int_equal(warn->level, PH_LEVEL_WARN);
        traced_end(&traced);
    }
}

static void a_deep_recursion_keeps_its_shape(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "deep", ARGS(I64(300), STR("some text")));
        const ph_trace_span *parent = trace_span_named(&traced.collect, "guest deep");
        assert_int_equal(trace_spans_named(&traced.collect, "level"), 301);
        for (int64_t depth = 300; depth >= 0; depth--) {
            parent = span_in(&traced, "level", (size_t)depth, parent);
            FIELDS_CHECK(parent, {"depth", I64(depth)});
        }
        sound_end(&traced);
    }
}

static void longjmp_leaves_spans_unfinished_and_the_rest_as_it_is(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        traced_run(&traced, "jump", ARGS(I64(30), I64(10)));
        const ph_trace_span *guest = trace_span_named(&traced.collect, "guest jump");
        assert_int_equal(trace_spans_named(&traced.collect, "jump"), 31);
        for (size_t j = 0; j < 31; j++) {
            const ph_trace_span *span = span_number(&traced, "jump", j);
            uint64_t depth = trace_number(span->fields, span->field_count, "depth");
            if (span->unfinished != (depth < 10))
                fail_msg("%s: depth %d is %s", guests[i], (int)depth,
                         span->unfinished ? "unfinished" : "finished");
            if (depth == 10)
                event_in(&traced, "landed", span);
        }
        event_in(&traced, "after the jump", guest);
        sound_end(&traced);
    }
}

static void ends_of_the_guest_leave_spans_unfinished(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(guests); i++) {
        struct traced traced;
        if (!guest_is_built(guests[i]))
            continue;
        filtered_begin(&traced, guests[i], "trace", NULL);
        trace_collect_clear(&traced.collect);
        traced_call(&traced, "fail_inside", NO_ARGS, PH_E_GUEST, NULL);
        traced_call(&traced, "crash_inside", NO_ARGS, PH_E_UNDEFINED_INSTRUCTION, NULL);
        traced_flush(&traced);
        const ph_trace_span *failed = trace_span_named(&traced.collect, "about to fail");
        const ph_trace_span *crashed = trace_span_named(&traced.collect, "about to crash");
        assert_true(failed->unfinished);
        assert_true(crashed->unfinished);
        assert_int_equal(crashed->status, PH_E_UNDEFINED_INSTRUCTION);
        event_in(&traced, "last words", failed);
        assert_int_equal(trace_events_named(&traced.collect, "last words"), 2);
        const ph_trace_span *call = trace_span_named(&traced.collect, "call fail_inside");
        assert_int_equal(call->status, PH_E_GUEST);
        assert_non_null(strstr(call->message, "failed inside"));
        assert_true(trace_span_is_below(&traced.collect, failed, "call fail_inside"));
        assert_true(trace_span_is_below(&traced.collect, crashed, "call crash_inside"));
        sound_end(&traced);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_arrive_with_their_places_and_parents),
        cmocka_unit_test(fields_of_every_type_arrive),
        cmocka_unit_test(odd_numbers_arrive_bit_by_bit),
        cmocka_unit_test(texts_arrive_valid_and_bytes_as_they_are),
        cmocka_unit_test(long_texts_are_cut_and_say_so),
        cmocka_unit_test(events_and_logs_have_their_levels),
        cmocka_unit_test(logs_are_what_printf_prints),
        cmocka_unit_test(counters_have_their_values),
        cmocka_unit_test(asynchronous_spans_last_from_call_to_call),
        cmocka_unit_test(spans_close_on_every_way_out_of_their_block),
        cmocka_unit_test(spans_by_hand_end_where_they_are_ended),
        cmocka_unit_test(a_deep_recursion_keeps_its_shape),
        cmocka_unit_test(longjmp_leaves_spans_unfinished_and_the_rest_as_it_is),
        cmocka_unit_test(ends_of_the_guest_leave_spans_unfinished),
    };

    return cmocka_run_group_tests_name("trace guest", tests, NULL, NULL);
}
