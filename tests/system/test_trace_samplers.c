/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a sampler does not take leaves no trace: no span, no record, no loss. What it takes is all there,
 * whatever came before.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <pinhole/snapshot.h>

#include "contexts.h"
#include "trace/context.h"

static const ph_trace_policy policies[] = {PH_TRACE_COMPLETE, PH_TRACE_DROP, PH_TRACE_FLIGHT};
#define POLICIES (sizeof policies / sizeof policies[0])

/* Fails unless nothing was counted since (before). */
static void assert_nothing_new(const struct traced *traced, const ph_trace_stats *before) {
    const ph_trace_stats now = traced_stats(traced);

    assert_memory_equal(&now, before, sizeof now);
}

static uint64_t call_records(ph_sandbox *sandbox) {
    ph_call_stats stats = PH_CALL_STATS_INIT;

    assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_OK);
    assert_int_equal(stats.trace_dropped, 0);
    return stats.trace_records;
}

/* ---- one call ------------------------------------------------------------------------------------------ */

static void a_call_that_is_not_sampled_records_nothing(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < 2 * POLICIES; i++) {
        ph_tracer_config tracer = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct contexts contexts;
        char said[64], again[64];
        config.trace_policy = policies[i % POLICIES];
        tracer.synchronous = i >= POLICIES;
        contexts_begin(&contexts, &config, &tracer);
        traced_flush(&contexts.traced);
        const ph_trace_stats before = traced_stats(&contexts.traced);
        const size_t spans = contexts.traced.collect.span_count;

        contexts_set(&contexts, NOT_SAMPLED, "a=1");
        assert_false(contexts_work(&contexts, contexts.traced.sandbox));
        assert_int_equal(call_records(contexts.traced.sandbox), 0);
        /* It is passed on all the same, so that others leave it out too. */
        snprintf(again, sizeof again, "%s", contexts.visit.traceparent);
        assert_memory_equal(again, NOT_SAMPLED, sizeof "00-" TRACE - 1);
        assert_string_equal(again + PH_TRACEPARENT_SIZE - 3, "00");
        assert_memory_not_equal(again + 36, PARENT, sizeof PARENT - 1);
        assert_string_equal(contexts.visit.tracestate, "a=1");
        snprintf(said, sizeof said, "%s", contexts_asked(&contexts, contexts.traced.sandbox, "traceparent"));
        assert_true(ph_traceparent_is_valid(said));
        assert_string_equal(said + PH_TRACEPARENT_SIZE - 3, "00");
        assert_string_not_equal(said, again);

        traced_flush(&contexts.traced);
        assert_nothing_new(&contexts.traced, &before);
        assert_int_equal(contexts.traced.collect.span_count, spans);
        contexts_end(&contexts);
    }
}

static void calls_of_both_kinds_take_turns(void **state) {
    const unsigned turns = test_scaled(200);

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < 2 * POLICIES; i++) {
        ph_tracer_config tracer = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct contexts contexts;
        unsigned sampled = 0;
        const bool flight = policies[i % POLICIES] == PH_TRACE_FLIGHT;
        config.trace_policy = policies[i % POLICIES];
        tracer.synchronous = i >= POLICIES;
        contexts_begin(&contexts, &config, &tracer);
        for (unsigned turn = 0; turn < turns; turn++) {
            const bool on = turn * 7 % 5 < 2;
            contexts_set(&contexts, on ? SAMPLED : NOT_SAMPLED, NULL);
            assert_int_equal(contexts_work(&contexts, contexts.traced.sandbox), on);
            sampled += on;
        }
        traced_flush(&contexts.traced);
        const struct trace_collect *collect = &contexts.traced.collect;
        assert_int_equal(trace_spans_named(collect, "call work"), sampled);
        assert_int_equal(trace_spans_named(collect, "host visit"), sampled);
        assert_int_equal(trace_spans_named(collect, "work"), flight ? 0 : sampled);
        assert_int_equal(trace_spans_named(collect, "getppid"), flight ? 0 : 2 * sampled);
        assert_int_equal(trace_events_named(collect, "late"), flight ? 0 : sampled);
        assert_int_equal(trace_events_named(collect, "trace.gap"), 0);
        const ph_trace_stats stats = traced_stats(&contexts.traced);
        assert_int_equal(stats.malformed + stats.unknown_ends + stats.gaps + stats.lost_bytes, 0);
        contexts_end(&contexts);
    }
}

/* ---- what changes meanwhile ---------------------------------------------------------------------------- */

static void change_filter(struct visit *visit) {
    assert_int_equal(ph_tracer_set_filter(visit->context, "info,step=off", NULL), PH_OK);
}

static void a_filter_that_changes_within_is_for_the_next_that_is_sampled(void **state) {
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    traced_flush(&contexts.traced);
    const ph_trace_stats before = traced_stats(&contexts.traced);
    contexts_set(&contexts, NOT_SAMPLED, NULL);
    contexts.visit.during = change_filter;
    contexts.visit.context = contexts.traced.tracer;
    assert_false(contexts_work(&contexts, contexts.traced.sandbox));
    traced_flush(&contexts.traced);
    assert_nothing_new(&contexts.traced, &before);

    contexts.visit.during = NULL;
    contexts_set(&contexts, SAMPLED, NULL);
    assert_true(contexts_work(&contexts, contexts.traced.sandbox));
    traced_flush(&contexts.traced);
    assert_int_equal(trace_events_named(collect, "step"), 0);
    assert_int_equal(trace_events_named(collect, "late"), 1);
    contexts_end(&contexts);
}

static void a_bad_end_within_leaves_nothing_behind(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < POLICIES; i++) {
        ph_config config = PH_CONFIG_INIT;
        struct contexts contexts;
        const struct trace_collect *collect = &contexts.traced.collect;
        ph_snapshot *snapshot = NULL;
        ph_sandbox *sandbox;
        config.trace_policy = policies[i];
        config.timeout_ns = 1000000000; /* of the start too, which takes long where it is emulated */
        contexts_begin(&contexts, &config, NULL);
        sandbox = contexts.traced.sandbox;
        test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
        traced_flush(&contexts.traced);
        const ph_trace_stats before = traced_stats(&contexts.traced);
        contexts_set(&contexts, NOT_SAMPLED, NULL);
        traced_call(&contexts.traced, "crash", NO_ARGS, PH_E_UNDEFINED_INSTRUCTION, NULL);
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
        traced_call(&contexts.traced, "spin", NO_ARGS, PH_E_TIMED_OUT, NULL);
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
        traced_flush(&contexts.traced);
        assert_nothing_new(&contexts.traced, &before);
        assert_int_equal(trace_spans_named(collect, "restore"), 0);

        contexts_set(&contexts, SAMPLED, NULL);
        assert_true(contexts_work(&contexts, sandbox));
        traced_call(&contexts.traced, "crash", NO_ARGS, PH_E_UNDEFINED_INSTRUCTION, NULL);
        traced_flush(&contexts.traced);
        assert_int_equal(trace_spans_named(collect, "call work"), 1);
        assert_true(trace_span_named(collect, "crash")->unfinished);
        assert_int_equal(traced_stats(&contexts.traced).gaps, 0);
        contexts_end(&contexts);
        ph_snapshot_close(snapshot);
    }
}

static void an_asynchronous_span_is_of_the_call_that_began_it(void **state) {
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    contexts_set(&contexts, SAMPLED, "a=1");
    traced_call(&contexts.traced, "begin_job", ARGS(U64(1)), PH_OK, NULL);
    contexts_set(&contexts, NOT_SAMPLED, NULL);
    traced_call(&contexts.traced, "begin_job", ARGS(U64(2)), PH_OK, NULL);
    contexts_set(&contexts, "00-11111111111111111111111111111111-2222222222222222-01", NULL);
    traced_call(&contexts.traced, "end_job", ARGS(U64(1)), PH_OK, NULL);
    traced_call(&contexts.traced, "end_job", ARGS(U64(2)), PH_OK, NULL);
    traced_flush(&contexts.traced);
    assert_int_equal(trace_spans_named(collect, "job"), 1);
    assert_memory_equal(contexts_of(trace_span_named(collect, "job"), true), SAMPLED, sizeof "00-" TRACE - 1);
    assert_string_equal(trace_span_named(collect, "job")->trace_state, "a=1");
    assert_int_equal(traced_stats(&contexts.traced).unknown_ends, 1);
    contexts_end(&contexts);
}

static void a_sandbox_that_is_never_sampled_leaves_nothing(void **state) {
    ph_tracer_config tracer = PH_TRACER_CONFIG_INIT;
    ph_trace_stats stats, none = {0};
    struct contexts contexts;

    (void)state;
    test_needs_kvm();
    tracer.sampler = PH_SAMPLER_ALWAYS_OFF;
    contexts_begin(&contexts, NULL, &tracer);
    contexts_set(&contexts, SAMPLED, NULL);
    assert_false(contexts_work(&contexts, contexts.traced.sandbox));
    ph_sandbox_destroy(contexts.traced.sandbox);
    contexts.traced.sandbox = NULL;
    ph_tracer_stats(contexts.traced.tracer, &stats);
    assert_memory_equal(&stats, &none, sizeof stats);
    contexts_end(&contexts);
}

/* ---- samplers ------------------------------------------------------------------------------------------ */

/* Traces that a ratio of a half takes, and does not. */
#define TAKEN "00-00000000000000000080000000000000-" PARENT
#define NOT_TAKEN "00-ffffffffffffffffff7fffffffffffff-" PARENT

static void each_sampler_decides_for_the_guest(void **state) {
    static const char *const callers[] = {NULL, TAKEN "-00", TAKEN "-01", NOT_TAKEN "-00", NOT_TAKEN "-01"};
    static const struct {
        ph_sampler sampler;
        double ratio;
        const char *records; /* of each caller: y, n, or ? for what chance says */
    } samplers[] = {
        {PH_SAMPLER_PARENT_ALWAYS_ON, 0, "ynyny"},
        {PH_SAMPLER_PARENT_ALWAYS_OFF, 0, "nnyny"},
        {PH_SAMPLER_PARENT_RATIO, 0.5, "?nyny"},
        {PH_SAMPLER_PARENT_RATIO, 0, "nnyny"},
        {PH_SAMPLER_PARENT_RATIO, 1, "ynyny"},
        {PH_SAMPLER_ALWAYS_ON, 0, "yyyyy"},
        {PH_SAMPLER_ALWAYS_OFF, 0, "nnnnn"},
        {PH_SAMPLER_RATIO, 0.5, "?yynn"},
        {PH_SAMPLER_RATIO, 0, "nnnnn"},
        {PH_SAMPLER_RATIO, 1, "yyyyy"},
        {PH_SAMPLER_ALWAYS_ON, 7, "yyyyy"}, /* which has no ratio */
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof samplers / sizeof samplers[0]; i++) {
        ph_tracer_config tracer = PH_TRACER_CONFIG_INIT;
        struct contexts contexts;
        tracer.sampler = samplers[i].sampler;
        tracer.sampler_ratio = samplers[i].ratio;
        contexts_begin(&contexts, NULL, &tracer);
        for (size_t j = 0; j < sizeof callers / sizeof callers[0]; j++) {
            contexts_set(&contexts, callers[j], NULL);
            const bool on = contexts_work(&contexts, contexts.traced.sandbox);
            if (samplers[i].records[j] != '?' && on != (samplers[i].records[j] == 'y'))
                fail_msg("sampler %d, ratio %f, caller %zu", (int)samplers[i].sampler, samplers[i].ratio, j);
            assert_string_equal(contexts.visit.traceparent + PH_TRACEPARENT_SIZE - 3, on ? "01" : "00");
        }
        contexts_end(&contexts);
    }
}

static void half_of_all_traces_are_half(void **state) {
    ph_tracer_config tracer = PH_TRACER_CONFIG_INIT;
    struct contexts contexts;
    const unsigned turns = 400;
    unsigned taken = 0;

    (void)state;
    test_needs_kvm();
    tracer.sampler = PH_SAMPLER_PARENT_RATIO;
    tracer.sampler_ratio = 0.5;
    contexts_begin(&contexts, NULL, &tracer);
    for (unsigned turn = 0; turn < turns; turn++) {
        const bool on = contexts_work(&contexts, contexts.traced.sandbox);
        struct ph__traceparent parent;
        /* As its id says, so that all who see it decide alike. */
        assert_true(ph__traceparent_read(contexts.visit.traceparent, &parent));
        assert_int_equal(on, parent.trace_id[9] >= 0x80);
        taken += on;
    }
    assert_in_range(taken, turns / 2 - 100, turns / 2 + 100); /* ten standard deviations */
    contexts_end(&contexts);
}

static void samplers_that_are_none_are_refused(void **state) {
    static const struct {
        int sampler;
        double ratio;
    } wrong[] = {
        {6, 0},
        {-1, 0},
        {PH_SAMPLER_RATIO, -0.001},
        {PH_SAMPLER_RATIO, 1.001},
        {PH_SAMPLER_PARENT_RATIO, NAN},
        {PH_SAMPLER_PARENT_RATIO, INFINITY},
    };
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ph_tracer_config config = PH_TRACER_CONFIG_INIT;
        ph_tracer *tracer = NULL;
        ph_error error;
        config.sampler = (ph_sampler)wrong[i].sampler;
        config.sampler_ratio = wrong[i].ratio;
        assert_int_equal(ph_tracer_create(&config, &tracer, &error), PH_E_ARGUMENT);
        assert_null(tracer);
        assert_true(error.message[0] != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_not_sampled_records_nothing),
        cmocka_unit_test(calls_of_both_kinds_take_turns),
        cmocka_unit_test(a_filter_that_changes_within_is_for_the_next_that_is_sampled),
        cmocka_unit_test(a_bad_end_within_leaves_nothing_behind),
        cmocka_unit_test(an_asynchronous_span_is_of_the_call_that_began_it),
        cmocka_unit_test(a_sandbox_that_is_never_sampled_leaves_nothing),
        cmocka_unit_test(each_sampler_decides_for_the_guest),
        cmocka_unit_test(half_of_all_traces_are_half),
        cmocka_unit_test(samplers_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
