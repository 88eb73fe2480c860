/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * An exception at each instruction of the recorder, whose handler traces and returns, or leaves by
 * siglongjmp: no complete record is lost, told twice, torn or out of order, and spans that a jump has left
 * are closed where they were. The guest is trace_step.c.
 */
#include "support/traced.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GUEST "trace-step"

/* As in the guest. */
enum { EVENT, TEXT, SPAN, LOG, COUNTER, DEEP, KINDS };

struct step {
    uint32_t kind, does;
    uint32_t first, stride, most, left;
    bool jumps, dies;
};

/* (stride): every instruction takes too long for most; with PH_TEST_CALLS there is time. */
static uint32_t run(struct traced *traced, const struct step *step) {
    const uint32_t stride = getenv("PH_TEST_CALLS") ? 1 : step->stride;
    ph_value result = {.type = PH_U32};

    traced_call(traced, "step",
                ARGS(U32(step->kind), U32(step->does), BOOL(step->jumps), U32(step->first), U32(stride),
                     U32(step->most), U64(step->left), BOOL(step->dies)),
                step->dies ? PH_E_UNDEFINED_INSTRUCTION : PH_OK, &result);
    traced_flush(traced);
    return result.u32;
}

static uint64_t pass_of(const ph_field *fields, size_t count) {
    return trace_number(fields, count, "n");
}

/* Events called (name) have passes that only grow; where (all) says so, each pass of [0, passes) once. */
static void order_check(const struct trace_collect *collect, const char *name, uint64_t passes, bool all) {
    uint64_t wanted = 0, came = 0, time_ns = 0;
    size_t at = 0;

    for (const ph_trace_event *event; (event = trace_event_find(collect, name, at, &at)); at++, came++) {
        uint64_t n = pass_of(event->fields, event->field_count);
        if (n < wanted || (all && n != wanted))
            fail_msg("`%s` of pass %" PRIu64 " came where that of %" PRIu64 " was due", name, n, wanted);
        if (event->time_ns < time_ns)
            fail_msg("`%s` of pass %" PRIu64 ": time runs backwards", name, n);
        time_ns = event->time_ns;
        wanted = n + 1;
    }
    if (all && came != passes)
        fail_msg("%" PRIu64 " of `%s` came, not %" PRIu64, came, name, passes);
}

static void times_check(const struct trace_collect *collect) {
    uint64_t time_ns = 0;

    for (size_t i = 0; i < collect->event_count; i++) {
        assert_true(collect->events[i].event.time_ns >= time_ns);
        time_ns = collect->events[i].event.time_ns;
    }
}

/* The span around each pass is finished, and `after` is directly in it: nothing that the jump left is open
 * then. */
static void around_check(const struct trace_collect *collect, uint64_t passes) {
    size_t at = 0, after_at = 0;

    for (uint64_t i = 0; i < passes; i++, at++, after_at++) {
        const ph_trace_span *around = trace_span_find(collect, "around", at, &at);
        const ph_trace_event *after = trace_event_find(collect, "after", after_at, &after_at);
        assert_non_null(around);
        assert_non_null(after);
        assert_false(around->unfinished);
        assert_int_equal(pass_of(around->fields, around->field_count), i);
        if (after->span != around->id)
            fail_msg("pass %" PRIu64 ": the event behind the jump is in `%s`", i,
                     trace_span_by_id(collect, after->span)->name);
    }
    assert_null(trace_span_find(collect, "around", at, NULL));
}

/* Spans called (name): under (parent), and unfinished exactly where (jumps) and their pass is not the last.
 */
static void spans_check(const struct trace_collect *collect, const char *name, const char *parent) {
    size_t at = 0;

    for (const ph_trace_span *span; (span = trace_span_find(collect, name, at, &at)); at++) {
        const ph_trace_span *above = trace_span_by_id(collect, span->parent);
        assert_non_null(above);
        if (strcmp(above->name, parent) != 0)
            fail_msg("`%s` is under `%s`", name, above->name);
        assert_int_equal(span->status, PH_OK);
    }
}

/* Of one site, open at several levels: each under that with the depth below its own. */
static void deep_check(const struct trace_collect *collect, bool jumps, uint64_t passes) {
    uint64_t unfinished = 0;
    size_t at = 0;

    for (const ph_trace_span *span; (span = trace_span_find(collect, "deep", at, &at)); at++) {
        uint64_t depth = trace_number(span->fields, span->field_count, "depth");
        const ph_trace_span *above = trace_span_by_id(collect, span->parent);
        assert_non_null(above);
        if (depth == 0)
            assert_string_equal(above->name, "around");
        else
            assert_int_equal(trace_number(above->fields, above->field_count, "depth"), depth - 1);
        assert_int_equal(pass_of(above->fields, above->field_count),
                         pass_of(span->fields, span->field_count));
        if (depth < 2 || !jumps)
            assert_false(span->unfinished);
        unfinished += span->unfinished;
    }
    if (jumps)
        assert_true(unfinished >= passes);
    at = 0;
    for (const ph_trace_event *event; (event = trace_event_find(collect, "landed", at, &at)); at++) {
        const ph_trace_span *span = trace_span_by_id(collect, event->span);
        assert_string_equal(span->name, "deep");
        assert_int_equal(trace_number(span->fields, span->field_count, "depth"), 1);
    }
}

static void check(const struct traced *traced, const struct step *step, uint64_t passes) {
    const struct trace_collect *collect = &traced->collect;

    trace_collect_check(collect);
    /* The last pass is over before the handler acts. */
    order_check(collect, "step", passes, true);
    order_check(collect, "at", passes + 1, !step->jumps);
    order_check(collect, "after", passes + 1, true);
    times_check(collect);
    around_check(collect, passes + 1);
    spans_check(collect, "stepped", "around");
    if (step->kind == DEEP)
        deep_check(collect, step->jumps, passes);
    assert_int_equal(trace_events_named(collect, "trace.gap"), 0);
}

static void all_steps(uint64_t ring, const struct step *steps, size_t count, bool synchronous) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;

    config.trace_ring = ring;
    if (getenv("PH_TEST_CALLS"))
        config.timeout_ns = 20 * TEST_TIMEOUT_NS;
    tracer_config.synchronous = synchronous;
    traced_begin(&traced, GUEST, &config, &tracer_config);
    for (size_t i = 0; i < count; i++) {
        trace_collect_clear(&traced.collect);
        uint32_t passes = run(&traced, &steps[i]);
        if (passes == steps[i].most)
            fail_msg("kind %u: the recorder was not passed in %u passes", steps[i].kind, passes);
        if (passes < 2)
            fail_msg("kind %u: the recorder was passed after %u steps", steps[i].kind, passes);
        check(&traced, &steps[i], passes);
    }
    const ph_trace_stats stats = traced_stats(&traced);
    assert_int_equal(stats.malformed + stats.unknown_ends + stats.gaps + stats.dropped_ring, 0);
    traced_end(&traced);
}

#define ALL_STEPS(ring, steps, synchronous)                                                                  \
    all_steps(ring, steps, sizeof(steps) / sizeof((steps)[0]), synchronous)

static void handlers_that_trace_and_return_lose_nothing(void **state) {
    static const struct step steps[] = {
        {EVENT, EVENT, 1, 1, 1000, 0, false, false}, {EVENT, SPAN, 1, 1, 1000, 0, false, false},
        {EVENT, TEXT, 2, 3, 1000, 0, false, false},  {SPAN, EVENT, 1, 1, 1000, 0, false, false},
        {SPAN, SPAN, 2, 5, 1000, 0, false, false},   {COUNTER, LOG, 1, 3, 1000, 0, false, false},
        {TEXT, EVENT, 1, 41, 1000, 0, false, false}, {TEXT, SPAN, 9, 53, 1000, 0, false, false},
        {LOG, EVENT, 5, 101, 1000, 0, false, false}, {LOG, LOG, 70, 113, 1000, 0, false, false},
        {DEEP, EVENT, 1, 1, 1000, 0, false, false},  {DEEP, SPAN, 1, 3, 1000, 0, false, false},
    };
    (void)state;
    test_needs_kvm();
    ALL_STEPS(0, steps, true);
}

static void handlers_that_leave_by_a_jump_lose_nothing(void **state) {
    static const struct step steps[] = {
        {EVENT, EVENT, 1, 1, 1000, 0, true, false}, {EVENT, SPAN, 1, 3, 1000, 0, true, false},
        {SPAN, EVENT, 1, 4, 1000, 0, true, false},  {SPAN, SPAN, 1, 1, 1000, 0, true, false},
        {TEXT, TEXT, 1, 47, 1000, 0, true, false},  {LOG, EVENT, 1, 131, 1000, 0, true, false},
        {DEEP, EVENT, 1, 1, 1000, 0, true, false},  {DEEP, SPAN, 2, 3, 1000, 0, true, false},
    };
    (void)state;
    test_needs_kvm();
    ALL_STEPS(0, steps, false);
}

/* The way for a batch, and back, in each pass. */
static void a_full_ring_changes_nothing(void **state) {
    static const struct step steps[] = {
        {EVENT, EVENT, 1, 1, 1000, 24, false, false}, {EVENT, TEXT, 1, 5, 1000, 40, false, false},
        {SPAN, EVENT, 1, 9, 1000, 24, false, false},  {SPAN, SPAN, 1, 11, 1000, 24, true, false},
        {TEXT, EVENT, 1, 61, 1000, 48, false, false}, {DEEP, SPAN, 1, 3, 1000, 64, true, false},
    };
    (void)state;
    test_needs_kvm();
    ALL_STEPS(16 << 10, steps, true);
    ALL_STEPS(16 << 10, steps, false);
}

/* Whatever does not come has been counted, by the handler and by what it interrupts. */
static void policy_drop_counts_under_exceptions_too(void **state) {
    static const struct step steps[] = {
        {EVENT, EVENT, 1, 1, 500, 24, false, false},
        {EVENT, SPAN, 1, 1, 500, 40, false, false},
        {SPAN, EVENT, 1, 3, 500, 64, false, false},
        {EVENT, EVENT, 1, 2, 500, 24, true, false},
    };
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        config.trace_ring = 16 << 10;
        config.trace_policy = PH_TRACE_DROP;
        tracer_config.synchronous = true;
        traced_begin(&traced, GUEST, &config, &tracer_config);
        /* Its system calls are exits, at which the ring is drained, so that some records come and some do
         * not. */
        run(&traced, &steps[i]);
        order_check(&traced.collect, "at", 0, false);
        order_check(&traced.collect, "step", 0, false);
        order_check(&traced.collect, "after", 0, false);
        times_check(&traced.collect);
        const ph_trace_stats stats = traced_stats(&traced);
        assert_int_equal(stats.malformed, 0);
        assert_int_equal(stats.exits, 0);
        traced_end(&traced);
    }
}

/* The newest events of the passes, without a hole, when the guest dies behind the last. */
static void policy_flight_holds_under_exceptions_too(void **state) {
    static const struct step steps[] = {
        {EVENT, EVENT, 1, 1, 40, 0, false, true},   {EVENT, EVENT, 1, 1, 40, 24, false, true},
        {SPAN, TEXT, 1, 1, 60, 64, false, true},    {EVENT, SPAN, 1, 1, 40, 24, true, true},
        {TEXT, EVENT, 1, 4, 100, 100, false, true}, {DEEP, SPAN, 1, 1, 60, 64, true, true},
    };
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        config.trace_ring = 16 << 10;
        config.trace_policy = PH_TRACE_FLIGHT;
        tracer_config.synchronous = i % 2;
        traced_begin(&traced, GUEST, &config, &tracer_config);
        run(&traced, &steps[i]);
        traced_finish(&traced);
        /* Up to the last pass, none is missing from where they begin. */
        const size_t after = trace_events_named(&traced.collect, "after");
        const ph_trace_event *first = trace_event_named(&traced.collect, "after");
        assert_true(after > 5);
        trace_sequence_check(&traced.collect, "after", pass_of(first->fields, first->field_count), after);
        order_check(&traced.collect, "at", 0, false);
        order_check(&traced.collect, "step", 0, false);
        times_check(&traced.collect);
        traced_free(&traced);
    }
}

static void a_fault_in_the_recorder_leaves_it_as_it_was(void **state) {
    struct traced traced;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    for (int i = 0; i < 3; i++)
        traced_call(&traced, "bad_strings", NO_ARGS, PH_OK, NULL);
    traced_finish(&traced);
    assert_int_equal(trace_events_named(&traced.collect, "faulted"), 6);
    assert_int_equal(trace_events_named(&traced.collect, "bad"), 0);
    assert_int_equal(trace_spans_named(&traced.collect, "stepped"), 6);
    spans_check(&traced.collect, "stepped", "around");
    size_t at = 0;
    for (const ph_trace_event *after; (after = trace_event_find(&traced.collect, "after", at, &at)); at++)
        assert_string_equal(trace_span_by_id(&traced.collect, after->span)->name, "around");
    traced_free(&traced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_that_trace_and_return_lose_nothing),
        cmocka_unit_test(handlers_that_leave_by_a_jump_lose_nothing),
        cmocka_unit_test(a_full_ring_changes_nothing),
        cmocka_unit_test(policy_drop_counts_under_exceptions_too),
        cmocka_unit_test(policy_flight_holds_under_exceptions_too),
        cmocka_unit_test(a_fault_in_the_recorder_leaves_it_as_it_was),
    };

    return cmocka_run_group_tests_name("trace step", tests, NULL, NULL);
}
