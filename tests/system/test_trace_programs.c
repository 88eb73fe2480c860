/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Programs of other kinds than test_trace_guest's: C++, -finstrument-functions, those that know nothing of
 * pinhole; what is off, what is compiled without tracing, and what all of them do natively.
 */
#include "system/trace_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const c_guests[] = {
    "trace",          "trace-O0",   "trace-pie",      "trace-lto",   "trace-gc",
    "trace-stripped", "trace-musl", "trace-musl-pie", "trace-clang", "trace-clang-O0",
};
static const char *const cxx_guests[] = {
    "trace-cxx", "trace-cxx-O0", "trace-cxx-pie", "trace-cxx-lto", "trace-cxx-clang", "trace-cxx-clang-pie",
};
static const char *const function_guests[] = {"trace-functions", "trace-functions-O0"};

/* ---- C++ ----------------------------------------------------------------------------------------------- */

/* Whether the log (format) in (span) has (message). */
static bool has_message(const struct traced *traced, const ph_trace_span *span, const char *format,
                        const char *message) {
    size_t at = 0;

    for (const ph_trace_event *line; (line = trace_event_find(&traced->collect, format, at, &at)); at++)
        if (line->span == span->id)
            return strcmp(line->message, message) == 0;
    return false;
}

static void cxx_has_sites_in_every_place(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(cxx_guests); i++) {
        struct traced traced;
        if (!guest_is_built(cxx_guests[i]))
            continue;
        filtered_begin(&traced, cxx_guests[i], "trace", NULL);
        const ph_trace_event *made =
            event_in(&traced, "constructed", trace_span_named(&traced.collect, "guest.init"));
        FIELDS_CHECK(made, {"value", I64(100)});
        source_check(&made->source, "constructed", "trace_cxx.cpp", "counted");

        traced_run(&traced, "shapes", NO_ARGS);
        const ph_trace_span *shapes =
            span_in(&traced, "shapes", 0, trace_span_named(&traced.collect, "guest shapes"));
        const ph_trace_span *in_line = span_in(&traced, "inline", 0, shapes);
        const ph_trace_span *lambda = span_in(&traced, "lambda", 0, shapes);
        const ph_trace_span *member = span_in(&traced, "member", 0, shapes);
        const ph_trace_event *generic = event_in(&traced, "generic", shapes);
        FIELDS_CHECK(in_line, {"n", I64(1)});
        FIELDS_CHECK(lambda, {"x", I64(3)});
        FIELDS_CHECK(member, {"by", I64(5)}, {"value", I64(105)});
        FIELDS_CHECK(generic, {"x", I64(4)});
        FIELDS_CHECK(event_in(&traced, "text", shapes), {"text", STR("from a string")},
                     {"bytes", BYTES("from a string", 13)});
        source_check(&shapes->source, "shapes", "trace_cxx.cpp", "shapes");
        source_check(&in_line->source, "inline", "trace_cxx.cpp", "in_line");
        source_check(&lambda->source, "lambda", "trace_cxx.cpp", "operator()");
        source_check(&member->source, "member", "trace_cxx.cpp", "add");
        source_check(&generic->source, "generic", "trace_cxx.cpp", "operator()");
        /* Two instances, two sites; the order in which C++ evaluates them is its own. */
        for (size_t j = 0; j < 2; j++) {
            const ph_trace_span *span = span_in(&traced, "template", j, shapes);
            bool is_first = span->fields[0].value.f64 == 2.0;
            FIELDS_CHECK(span, {"value", F64(is_first ? 2.0 : 1.5)});
            source_check(&span->source, "template", "trace_cxx.cpp", "twice");
            assert_true(has_message(&traced, span, "twice %g", is_first ? "twice 2" : "twice 1.5"));
        }
        assert_int_equal(trace_spans_named(&traced.collect, "template"), 2);
        traced_run(&traced, "handed", NO_ARGS);
        const ph_trace_span *parent = trace_span_named(&traced.collect, "guest handed");
        const ph_trace_span *async = span_in(&traced, "async", 0, parent);
        FIELDS_CHECK(async, {"cxx", BOOL(true)});
        for (size_t j = 0; j < 3; j++) {
            parent = span_in(&traced, "handed", 2 - j, parent);
            FIELDS_CHECK(parent, {"i", I64((int64_t)j)});
        }
        assert_int_equal(traced.collect.counter_count, 2);
        assert_int_equal(traced.collect.counters[0].counter.value.i64, 3);
        assert_true(traced.collect.counters[1].counter.value.f64 == 0.5);
        sound_end(&traced);
    }
}

static void an_exception_ends_the_spans_that_it_leaves(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(cxx_guests); i++) {
        struct traced traced;
        if (!guest_is_built(cxx_guests[i]))
            continue;
        filtered_begin(&traced, cxx_guests[i], "trace", NULL);
        traced_run(&traced, "throws", ARGS(I64(20)));
        const ph_trace_span *throws =
            span_in(&traced, "throws", 0, trace_span_named(&traced.collect, "guest throws"));
        const ph_trace_span *parent = throws;
        assert_int_equal(trace_spans_named(&traced.collect, "level"), 21);
        for (int64_t depth = 20; depth >= 0; depth--) {
            parent = span_in(&traced, "level", (size_t)depth, parent);
            FIELDS_CHECK(parent, {"depth", I64(depth)});
        }
        /* Locals are destroyed from the innermost out, each in its own span. */
        size_t at = 0;
        for (int64_t depth = 0; depth <= 20; depth++, at++) {
            const ph_trace_event *event = trace_event_find(&traced.collect, "destroyed", at, &at);
            assert_non_null(event);
            FIELDS_CHECK(event, {"value", I64(depth)});
            assert_int_equal(event->span, span_number(&traced, "level", (size_t)depth)->id);
        }
        const ph_trace_event *line = event_in(&traced, "caught: %s", throws);
        assert_string_equal(line->message, "caught: thrown");
        assert_int_equal(line->level, PH_LEVEL_WARN);
        sound_end(&traced);
    }
}

/* ---- every function ------------------------------------------------------------------------------------ */

/* The (index)th span of the function (name) lies in one of (parent), whatever the compiler has put between.
 */
static const ph_trace_span *function_in(const struct traced *traced, const char *name, size_t index,
                                        const char *parent) {
    const ph_trace_span *span = span_number(traced, name, index);

    assert_int_equal(span->kind, PH_SPAN_FUNCTION);
    assert_string_equal(span->source.function, name);
    if (span->unfinished)
        fail_msg("`%s` is unfinished", name);
    if (strcmp(trace_span_by_id(&traced->collect, span->parent)->name, parent) != 0) {
        trace_collect_print(&traced->collect);
        fail_msg("`%s` is not in `%s`", name, parent);
    }
    return span;
}

static void functions_are_spans_by_their_symbols(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(function_guests); i++) {
        struct traced traced;
        filtered_begin(&traced, function_guests[i], "trace", NULL);
        traced_run(&traced, "tree", ARGS(I64(1)));
        function_in(&traced, "tree", 0, "guest tree");
        for (size_t j = 0; j < 2; j++)
            function_in(&traced, "branch", j, "tree");
        for (size_t j = 0; j < 4; j++) {
            const ph_trace_span *leaf = function_in(&traced, "leaf", j, "branch");
            assert_int_equal(leaf->parent, span_number(&traced, "branch", j / 2)->id);
        }
        assert_int_equal(trace_spans_named(&traced.collect, "leaf"), 4);

        traced_run(&traced, "fibonacci", ARGS(I64(12)));
        assert_int_equal(trace_spans_named(&traced.collect, "fibonacci"), 465);
        function_in(&traced, "fibonacci", 464, "guest fibonacci");
        for (size_t j = 0; j < 464; j++)
            function_in(&traced, "fibonacci", j, "fibonacci");

        traced_run(&traced, "down", ARGS(I64(100)));
        assert_int_equal(trace_spans_named(&traced.collect, "down"), 101);
        function_in(&traced, "down", 100, "guest down");
        for (size_t j = 0; j < 100; j++) {
            const ph_trace_span *span = function_in(&traced, "down", j, "down");
            assert_int_equal(span->parent, span_number(&traced, "down", j + 1)->id);
        }

        traced_run(&traced, "allocates", ARGS(I64(10)));
        assert_int_equal(trace_spans_named(&traced.collect, "allocates"), 10);
        assert_int_equal(trace_spans_named(&traced.collect, "leaf"), 10);
        for (size_t j = 0; j < 10; j++) {
            function_in(&traced, "leaf", j, "allocates");
            function_in(&traced, "allocates", j, j < 9 ? "allocates" : "guest allocates");
        }
        sound_end(&traced);
    }
}

static void functions_that_longjmp_left_hold_nothing_that_follows(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(function_guests); i++) {
        struct traced traced;
        filtered_begin(&traced, function_guests[i], "trace", NULL);
        for (int64_t depth = 0; depth < 6; depth++) {
            traced_run(&traced, "jump", ARGS(I64(depth)));
            assert_int_equal(trace_spans_named(&traced.collect, "leave"), depth + 1);
            for (size_t j = 0; j <= (size_t)depth; j++)
                assert_true(span_number(&traced, "leave", j)->unfinished);
            function_in(&traced, "leaf", 0, "jump");
            function_in(&traced, "jump", 0, "guest jump");
        }
        traced_run(&traced, "retry", ARGS(I64(30)));
        const ph_trace_span *retry = function_in(&traced, "retry", 0, "guest retry");
        size_t left = 0;
        for (size_t j = 0; j < 45; j++)
            left += span_number(&traced, "leave", j)->parent == retry->id;
        assert_int_equal(left, 30);
        assert_int_equal(trace_spans_named(&traced.collect, "leave"), 45);
        assert_int_equal(trace_spans_named(&traced.collect, "leaf"), 11);
        for (size_t j = 0; j < 11; j++)
            function_in(&traced, "leaf", j, "retry");
        sound_end(&traced);
    }
}

static void a_filter_picks_functions_on_the_host(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(function_guests); i++) {
        struct traced traced;
        filtered_begin(&traced, function_guests[i], "off,guest *=info,l*f=trace", NULL);
        traced_run(&traced, "tree", ARGS(I64(1)));
        assert_int_equal(trace_spans_named(&traced.collect, "leaf"), 4);
        assert_int_equal(traced.collect.span_count, 5);
        for (size_t j = 0; j < 4; j++)
            function_in(&traced, "leaf", j, "guest tree");
        assert_true(traced_stats(&traced).filtered >= 3);
        /* When nothing of their level is wanted, the guest writes none. */
        assert_int_equal(ph_tracer_set_filter(traced.tracer, "warn", NULL), PH_OK);
        uint64_t before = traced_stats(&traced).records;
        traced_run(&traced, "fibonacci", ARGS(I64(15)));
        assert_int_equal(traced.collect.span_count, 0);
        assert_int_equal(traced_stats(&traced).records, before);
        sound_end(&traced);
    }
}

/* ---- programs that know nothing ------------------------------------------------------------------------ */

/* Runs the program at (path), which ends with (status), and prints (out) unless that is NULL. */
static void program_run(const char *path, const char *const *arguments, int status, const char *out) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced = {0};
    int exit_status = -1;
    ph_error error;

    trace_collect_init(&traced.collect);
    traced.tracer = trace_collect_tracer(&traced.collect, NULL);
    config.tracer = traced.tracer;
    config.argv = arguments;
    config.keep_output = 4096;
    if (ph_image_open(path, 0, &traced.image, &error) != PH_OK)
        fail_msg("%s: %s", path, error.message);
    traced.sandbox = test_sandbox(traced.image, &config);
    test_status(traced.sandbox, ph_sandbox_run(traced.sandbox, &exit_status), PH_OK);
    assert_int_equal(exit_status, status);
    if (out) {
        ph_bytes printed = ph_sandbox_output(traced.sandbox, 1);
        assert_int_equal(printed.size, strlen(out));
        assert_memory_equal(printed.data, out, printed.size);
    }
    const ph_trace_stats stats = traced_stats(&traced);
    assert_int_equal(stats.malformed + stats.unknown_ends + stats.gaps + stats.exits, 0);
    traced_finish(&traced);

    char name[256];
    const char *slash = strrchr(path, '/');
    snprintf(name, sizeof name, "run %s", slash + 1);
    const ph_trace_span *run = trace_span_named(&traced.collect, name);
    snprintf(name, sizeof name, "guest %s", slash + 1);
    const ph_trace_span *guest = span_in(&traced, name, 0, run);
    assert_int_equal(run->kind, PH_SPAN_CALL);
    assert_int_equal(guest->kind, PH_SPAN_GUEST);
    assert_int_equal(trace_spans_named(&traced.collect, "create"), 1);
    assert_int_equal(trace_spans_named(&traced.collect, "destroy"), 1);
    size_t calls = 0;
    for (size_t i = 0; i < traced.collect.span_count; i++) {
        const ph_trace_span *span = &traced.collect.spans[i].span;
        if (span->kind != PH_SPAN_SYSTEM_CALL)
            continue;
        calls++;
        assert_int_equal(span->parent, guest->id);
        assert_false(span->unfinished);
        /* All but the last return. */
        bool is_last = strcmp(span->name, "exit_group") == 0;
        assert_int_equal(span->field_count > 0, !is_last);
        if (!is_last) {
            assert_string_equal(span->fields[0].name, "result");
            if (span->fields[0].value.i64 < 0)
                assert_string_equal(span->fields[1].name, "error");
        }
    }
    assert_true(calls > 3);
    assert_int_equal(trace_spans_named(&traced.collect, "exit_group"), 1);
    const ph_trace_event *exited = event_in(&traced, "exit", trace_span_named(&traced.collect, "exit_group"));
    FIELDS_CHECK(exited, {"status", I64(status)});
    if (out && *out) {
        const ph_trace_span *written = trace_span_find(&traced.collect, "write", 0, NULL);
        if (!written)
            written = trace_span_named(&traced.collect, "writev");
        FIELDS_CHECK(written, {"result", I64((int64_t)strlen(out))});
    }
    traced_free(&traced);
}

static void programs_show_their_system_calls_and_their_exit(void **state) {
    static const char *const arguments[] = {"7", NULL};
    (void)state;
    test_needs_kvm();
    program_run(test_guest_path("sys_process"), arguments, 7, NULL);
    program_run(test_guest_path("sys_process-musl"), arguments, 7, NULL);
}

static void busybox_shows_its_system_calls_and_its_exit(void **state) {
    static const char *const arguments[] = {"echo", "hi", NULL};
    static const char *const failing[] = {"false", NULL};
    char path[512];
    (void)state;
    test_needs_kvm();
    const char *cache = getenv("PH_TEST_CACHE");
    snprintf(path, sizeof path, "%s/busybox/bin/busybox", cache ? cache : "");
    if (access(path, R_OK) != 0)
        skip(); /* `make test` fetches it */
    program_run(path, arguments, 0, "hi\n");
    program_run(path, failing, 1, "");
}

/* ---- off, and natively --------------------------------------------------------------------------------- */

static void what_is_off_records_and_evaluates_nothing(void **state) {
    static const char *const exports[] = {"spans", "fields",   "twelve", "events",
                                          "logs",  "counters", "async",  "by_hand"};
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(c_guests); i++) {
        struct traced traced;
        ph_value result;
        if (!guest_is_built(c_guests[i]))
            continue;
        filtered_begin(&traced, c_guests[i], "off", NULL);
        for (size_t j = 0; j < COUNT(exports); j++)
            traced_run(&traced, exports[j], NO_ARGS);
        traced_run(&traced, "loop", ARGS(I64(100000)));
        traced_call(&traced, "evaluate", NO_ARGS, PH_OK, &result);
        assert_int_equal(result.i64, 0);
        const ph_trace_stats stats = traced_stats(&traced);
        assert_int_equal(stats.records, 0);
        assert_int_equal(stats.bytes, 0);
        assert_int_equal(stats.exits, 0);
        assert_int_equal(
            traced.collect.span_count + traced.collect.event_count + traced.collect.counter_count, 0);
        assert_int_equal(ph_tracer_set_filter(traced.tracer, "trace", NULL), PH_OK);
        traced_call(&traced, "evaluate", NO_ARGS, PH_OK, &result);
        assert_int_equal(result.i64, 2);
        traced_flush(&traced);
        assert_true(traced_stats(&traced).records > 0);
        sound_end(&traced);
    }
}

static void a_program_compiled_without_tracing_has_none(void **state) {
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    filtered_begin(&traced, "trace-disabled", "trace", NULL);
    uint64_t before = traced_stats(&traced).records;
    traced_run(&traced, "spans", NO_ARGS);
    traced_call(&traced, "events", NO_ARGS, PH_OK, NULL);
    traced_call(&traced, "loop", ARGS(I64(1000)), PH_OK, NULL);
    traced_call(&traced, "evaluate", NO_ARGS, PH_OK, &result);
    assert_int_equal(result.i64, 0);
    traced_flush(&traced);
    assert_int_equal(traced.collect.event_count, 0);
    assert_int_equal(trace_spans_named(&traced.collect, "guest spans"), 1);
    assert_int_equal(trace_spans_named(&traced.collect, "outer"), 0);
    assert_int_equal(traced_stats(&traced).records - before, 8); /* begin and end of each call */
    sound_end(&traced);
}

/* What (guest) prints natively, after which it must end with 0. Returns its size. */
static size_t native_output(const char *guest, char *text, size_t size) {
    FILE *stream = popen(test_guest_path(guest), "r"); // NOLINT(cert-env33-c): a path of the build

    assert_non_null(stream);
    size_t length = fread(text, 1, size, stream);
    int status = pclose(stream);
    if (status != 0)
        fail_msg("%s ends with status %#x", guest, (unsigned)status);
    return length;
}

static void natively_guests_run_and_print_the_same(void **state) {
    static char text[16384];
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(c_guests) + 1; i++) {
        const char *guest = i < COUNT(c_guests) ? c_guests[i] : "trace-disabled";
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        if (!guest_is_built(guest))
            continue;
        config.keep_output = sizeof text;
        filtered_begin(&traced, guest, "trace", &config);
        traced_run(&traced, "formats", NO_ARGS);
        ph_bytes printed = ph_sandbox_output(traced.sandbox, 1);
        assert_int_equal(native_output(guest, text, sizeof text), printed.size);
        assert_memory_equal(text, printed.data, printed.size);
        sound_end(&traced);
    }
    for (size_t i = 0; i < COUNT(cxx_guests); i++)
        if (guest_is_built(cxx_guests[i]))
            assert_int_equal(native_output(cxx_guests[i], text, sizeof text), 0);
    for (size_t i = 0; i < COUNT(function_guests); i++)
        assert_int_equal(native_output(function_guests[i], text, sizeof text), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cxx_has_sites_in_every_place),
        cmocka_unit_test(an_exception_ends_the_spans_that_it_leaves),
        cmocka_unit_test(functions_are_spans_by_their_symbols),
        cmocka_unit_test(functions_that_longjmp_left_hold_nothing_that_follows),
        cmocka_unit_test(a_filter_picks_functions_on_the_host),
        cmocka_unit_test(programs_show_their_system_calls_and_their_exit),
        cmocka_unit_test(busybox_shows_its_system_calls_and_its_exit),
        cmocka_unit_test(what_is_off_records_and_evaluates_nothing),
        cmocka_unit_test(a_program_compiled_without_tracing_has_none),
        cmocka_unit_test(natively_guests_run_and_print_the_same),
    };

    return cmocka_run_group_tests_name("trace programs", tests, NULL, NULL);
}
