/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that write into their trace ring while nothing is asked of them: in calls that the sampler does not
 * take. Nothing of it comes, not even as a loss, and the next call that is taken is as if it had not been.
 */
#include "hostile/lying.h"

#include <string.h>

#include "abi/trace.h"

#define SAMPLED "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define NOT_SAMPLED "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

static void set(struct lying *lying, const char *traceparent) {
    ph_sandbox *sandbox = lying->hostile.sandbox;

    test_status(sandbox, ph_sandbox_set_traceparent(sandbox, traceparent, NULL), PH_OK);
}

/* Fails unless all counts but those of bytes that were given up and of exits are as they were. */
static void assert_nothing_came(const struct lying *lying, const ph_trace_stats *before, size_t spans) {
    ph_trace_stats now = lying_stats(lying);

    now.lost_bytes = before->lost_bytes;
    now.exits = before->exits;
    assert_memory_equal(&now, before, sizeof now);
    assert_int_equal(lying->collect.span_count, spans);
    assert_int_equal(trace_events_named(&lying->collect, "trace.gap"), 0);
}

/* A lie in a call that is not sampled, and then a good call. Returns the bytes that were given up. */
static uint64_t lie_unasked(struct lying *lying, const char *name, const ph_value *args, size_t count) {
    trace_collect_flush(lying->tracer);
    const ph_trace_stats before = lying_stats(lying);
    const size_t spans = lying->collect.span_count;

    set(lying, NOT_SAMPLED);
    hostile_expect(&lying->hostile, hostile_call(&lying->hostile, name, args, count, NULL), PH_OK, name);
    trace_collect_flush(lying->tracer);
    assert_nothing_came(lying, &before, spans);
    const uint64_t lost = lying_stats(lying).lost_bytes - before.lost_bytes;

    set(lying, SAMPLED);
    lie(lying, "marks", ARGS(U64(1)));
    const ph_trace_stats after = lying_stats(lying);
    assert_int_equal(after.records, before.records + 1);
    assert_int_equal(after.malformed, before.malformed);
    assert_int_equal(after.gaps, before.gaps);
    return lost;
}

static void good_records_that_nobody_asked_for_do_not_come(void **state) {
    const uint64_t event = PH__RECORD_WORD(PH__RECORD_EVENT, 0, 3);
    const uint64_t begin = PH__RECORD_WORD(PH__RECORD_SYSTEM_CALL_BEGIN, 39, 2);

    (void)state;
    test_needs_kvm();
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        lying_begin(&lying, &config, synchronous, true);
        for (int turn = 0; turn < 20; turn++) {
            assert_int_equal(
                lie_unasked(&lying, "forge", ARGS(U64(event), U64(0), U64(7), U64(0), U32(3), U64(0))), 24);
            assert_int_equal(
                lie_unasked(&lying, "forge", ARGS(U64(begin), U64(0), U64(0), U64(0), U32(2), U64(0))), 16);
        }
        lying_end(&lying, "records unasked");
    }
}

static void neither_does_nonsense(void **state) {
    static const int64_t distances[] = {-8, 8, 4, 4096, -4096, INT64_MAX, INT64_MIN, 1LL << 40, 1LL << 20};

    (void)state;
    test_needs_kvm();
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        lying_begin(&lying, &config, synchronous, true);
        for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++)
            lie_unasked(&lying, "head_move", ARGS(I64(distances[i]), U64(0)));
        assert_true(lie_unasked(&lying, "garbage", ARGS(U64(3), U32(1024), U32(200), U64(0))) >= 200 * 1024);
        assert_true(lie_unasked(&lying, "garbage", ARGS(U64(4), U32(4096), U32(500), U64(0))) >= 500 * 4096);
        lie_unasked(&lying, "batches", ARGS(U64(1000), U64(0)));
        lying_end(&lying, "nonsense unasked");
    }
}

static void nor_what_is_written_up_to_a_bad_end(void **state) {
    static const ph_trace_policy policies[] = {PH_TRACE_COMPLETE, PH_TRACE_DROP, PH_TRACE_FLIGHT};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        config.trace_policy = policies[i];
        config.timeout_ns = 1000000000; /* of the start too, which takes long where it is emulated */
        lying_begin(&lying, &config, false, true);
        trace_collect_flush(lying.tracer);
        const ph_trace_stats before = lying_stats(&lying);
        const size_t spans = lying.collect.span_count;
        set(&lying, NOT_SAMPLED);
        hostile_expect(&lying.hostile, hostile_call(&lying.hostile, "garbage_for_ever", NO_ARGS, NULL),
                       PH_E_TIMED_OUT, "garbage");
        trace_collect_flush(lying.tracer);
        assert_nothing_came(&lying, &before, spans);
        lying_end(&lying, "garbage up to a bad end");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_records_that_nobody_asked_for_do_not_come),
        cmocka_unit_test(neither_does_nonsense),
        cmocka_unit_test(nor_what_is_written_up_to_a_bad_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
