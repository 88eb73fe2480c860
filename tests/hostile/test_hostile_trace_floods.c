/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that flood their trace ring: what they can cost is bounded and counted, and nobody else notices.
 */
#include "hostile/lying.h"

#include <malloc.h>

#define MIB (1ull << 20)

/* ---- floods -------------------------------------------------------------------------------------------- */

static void garbage_is_counted_and_reading_goes_on(void **state) {
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        config.trace_ring = 64 << 10;
        lying_begin(&lying, &config, synchronous, true);
        for (uint64_t seed = 1; seed <= 20; seed++)
            lie(&lying, "garbage", ARGS(U64(seed), U32((uint32_t)seed * 1024), U32(5)));
        lie(&lying, "garbage", ARGS(U64(99), U32(65536), U32(5)));
        const ph_trace_stats stats = lying_stats(&lying);
        assert_true(stats.malformed > 10);
        assert_true(stats.lost_bytes > 0);
        /* At most one line for each power of ten. */
        assert_true(lying.complaints >= 1);
        assert_true(lying.complaints <= 20);
        lying_end(&lying, "garbage");
    }
}

static size_t heap(void) {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static uint64_t told(const ph_trace_stats *stats) {
    return stats->records + stats->dropped_queue + stats->dropped_budget + stats->malformed;
}

static void ten_million_records_cost_bounded_memory_and_are_all_counted(void **state) {
    const uint64_t count = test_scaled(10000000);
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        lying_begin(&lying, &config, synchronous, false);
        lie(&lying, "flood", ARGS(U64(1000)));
        const size_t before = heap();
        const ph_trace_stats first = lying_stats(&lying);
        const uint64_t start = test_now_ns();
        hostile_expect(&lying.hostile, hostile_call(&lying.hostile, "flood", ARGS(U64(count), U64(7)), NULL),
                       PH_OK, "flood");
        trace_collect_flush(lying.tracer);
        assert_true(test_now_ns() - start < TEST_TIMEOUT_NS);
        assert_true(heap() < before + 4 * MIB);
        const ph_trace_stats stats = lying_stats(&lying);
        assert_int_equal(told(&stats) - told(&first), count + 1);
        if (count > 1000000) {
            assert_int_equal(stats.records - first.records, 1000000);
            assert_int_equal(stats.dropped_budget, count + 1 - 1000000);
            assert_true(trace_events_named(&lying.collect, "trace.gap") > 0);
        }
        lie(&lying, "marks", ARGS(U64(1000))); /* the next call has a budget of its own */
        lying_end(&lying, "flood");
    }
}

static void budgets_of_calls_and_sandboxes_hold(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 16 << 10;
    config.trace_call_records = 100;
    lying_begin(&lying, &config, true, true);
    hostile_call(&lying.hostile, "flood", ARGS(U64(1000), U64(1)), NULL);
    ph_trace_stats stats = lying_stats(&lying);
    assert_int_equal(stats.records, STARTED + 100);
    assert_int_equal(stats.dropped_budget, 901);
    assert_int_equal(lying.collect.counter_count, 100);
    lie(&lying, "marks", ARGS(U64(50)));
    lying_end(&lying, "records of a call");

    config.trace_call_records = 0;
    config.trace_call_bytes = 48 << 10;
    lying_begin(&lying, &config, true, true);
    hostile_call(&lying.hostile, "flood", ARGS(U64(10000), U64(1)), NULL);
    stats = lying_stats(&lying);
    assert_true(stats.bytes <= 48 << 10);
    assert_true(stats.bytes > 16 << 10);
    assert_int_equal(told(&stats), STARTED + 10001);
    const uint64_t bytes = stats.bytes;
    hostile_call(&lying.hostile, "flood", ARGS(U64(100), U64(1)), NULL);
    assert_true(lying_stats(&lying).bytes > bytes);
    lying_end(&lying, "bytes of a call");

    config.trace_call_bytes = 0;
    config.trace_sandbox_bytes = 48 << 10;
    lying_begin(&lying, &config, true, true);
    for (int i = 0; i < 20; i++)
        hostile_call(&lying.hostile, "flood", ARGS(U64(1000), U64(1)), NULL);
    stats = lying_stats(&lying);
    assert_true(stats.bytes <= 48 << 10);
    assert_int_equal(told(&stats), STARTED + 20 * 1001);
    lying_end(&lying, "bytes of a sandbox");
}

static void records_at_the_end_of_all_positions_are_given_up_like_others(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 16 << 10;
    config.trace_call_bytes = 2048;
    lying_begin(&lying, &config, true, true);
    hostile_expect(&lying.hostile,
                   hostile_call(&lying.hostile, "head_to_the_end", ARGS(U64(255), U64(1)), NULL), PH_OK,
                   "head_to_the_end");
    const ph_trace_stats stats = lying_stats(&lying);
    assert_int_equal(stats.lost_bytes, 4096 - 8);
    assert_int_equal(stats.dropped_budget, 3);
    lie(&lying, "marks", ARGS(U64(10)));
    lying_end(&lying, "the end of all positions");
}

static void a_million_spans_in_each_other_cost_bounded_memory(void **state) {
    const uint64_t count = test_scaled(1000000);
    (void)state;
    test_needs_kvm();

    for (int ends = 0; ends < 2; ends++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        config.trace_call_records = UINT64_MAX;
        config.trace_call_bytes = UINT64_MAX;
        lying_begin(&lying, &config, true, true);
        const size_t before = heap();
        lie(&lying, "nest", ARGS(U64(count), BOOL(ends)));
        assert_true(heap() < before + 16 * MIB); /* what the test keeps of 4,096 spans included */
        const ph_trace_stats stats = lying_stats(&lying);
        assert_true(stats.too_deep >= count - 4096);
        assert_true(trace_spans_named(&lying.collect, "span") <= 4096);
        assert_true(trace_spans_named(&lying.collect, "span") > 4000);
        lie(&lying, "nest", ARGS(U64(3), BOOL(true)));
        size_t last = lying.collect.span_count;
        assert_true(last > 4);
        assert_string_equal(lying.collect.spans[last - 2].span.name, "span");
        assert_false(lying.collect.spans[last - 2].span.unfinished);
        lying_end(&lying, "nesting");
    }
}

static void ends_without_a_begin_are_counted(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    lie(&lying, "ends", ARGS(U64(1000), U64(0), U64(8)));
    lie(&lying, "ends", ARGS(U64(1000), U64(1ull << 54), U64(16)));
    assert_int_equal(lying_stats(&lying).unknown_ends, 2000);
    assert_int_equal(trace_spans_named(&lying.collect, "span"), 0);
    lying_end(&lying, "ends");
}

static void asynchronous_spans_and_fields_are_bounded(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    const size_t before = heap();
    lie(&lying, "asyncs", ARGS(U64(test_scaled(100000)), BOOL(false)));
    lie(&lying, "asyncs", ARGS(U64(test_scaled(100000)), BOOL(true)));
    lie(&lying, "fields", ARGS(U64(test_scaled(50000))));
    assert_true(heap() < before + 48 * MIB);
    assert_true(trace_spans_named(&lying.collect, "async") <= 2048);
    assert_true(lying_stats(&lying).too_deep > 0);
    lying_end(&lying, "asynchronous spans");
}

static void batches_without_need_are_answered_and_counted(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    lie(&lying, "batches", ARGS(U64(100)));
    assert_int_equal(lying_stats(&lying).exits, 100);
    lying_end(&lying, "batches");
}

/* Until the time-out, with the worker reading all the while. */
static void what_never_ends_ends_by_its_time_out(void **state) {
    static const char *const names[] = {"batches_for_ever", "garbage_for_ever", "changes_for_ever"};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int synchronous = 0; synchronous < 2; synchronous++) {
            ph_config config = PH_CONFIG_INIT;
            struct lying lying;
            config.timeout_ns = 200000000;
            config.trace_ring = 16 << 10;
            lying_begin(&lying, &config, synchronous, false);
            const size_t before = heap();
            hostile_expect(&lying.hostile, hostile_call(&lying.hostile, names[i], NO_ARGS, NULL),
                           PH_E_TIMED_OUT, names[i]);
            trace_collect_flush(lying.tracer);
            trace_collect_clear(&lying.collect);
            assert_true(heap() < before + 32 * MIB);
            lying_end(&lying, names[i]);
        }
}

/* ---- others -------------------------------------------------------------------------------------------- */

static void another_sandbox_of_the_tracer_does_not_notice(void **state) {
    const ph_config defaults = PH_CONFIG_INIT;
    struct lying lying;
    ph_config config = defaults;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 32 << 10;
    lying_begin(&lying, &config, false, false);
    struct hostile good;
    hostile_begin(&good, GUEST, &config);
    const uint64_t number = ph_sandbox_trace_number(good.sandbox);
    assert_true(number != ph_sandbox_trace_number(lying.hostile.sandbox));
    for (uint64_t i = 0; i < 20; i++) {
        lie(&lying, "garbage", ARGS(U64(i + 1), U32(8192), U32(5)));
        lie(&lying, "nest", ARGS(U64(5000), BOOL(false)));
        lie(&lying, "head_move", ARGS(I64(12345)));
        hostile_expect(&good, hostile_call(&good, "marks", ARGS(U64(500), U64(1000000 + 500 * i)), NULL),
                       PH_OK, "marks");
    }
    trace_collect_flush(lying.tracer);
    uint64_t wanted = 1000000;
    for (size_t i = 0; i < lying.collect.event_count; i++) {
        const ph_trace_event *event = &lying.collect.events[i].event;
        if (event->sandbox != number)
            continue;
        assert_string_equal(event->name, "mark");
        assert_int_equal(trace_number(event->fields, event->field_count, "n"), wanted);
        wanted++;
    }
    assert_int_equal(wanted, 1000000 + 20 * 500);
    ph_trace_stats stats;
    ph_sandbox_trace_stats(good.sandbox, &stats);
    assert_int_equal(stats.records, STARTED + 20 * 500);
    assert_int_equal(stats.malformed + stats.dropped_queue + stats.dropped_budget + stats.gaps, 0);
    hostile_end(&good, "the good one");
    lying_end(&lying, "the bad one");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_is_counted_and_reading_goes_on),
        cmocka_unit_test(ten_million_records_cost_bounded_memory_and_are_all_counted),
        cmocka_unit_test(budgets_of_calls_and_sandboxes_hold),
        cmocka_unit_test(records_at_the_end_of_all_positions_are_given_up_like_others),
        cmocka_unit_test(a_million_spans_in_each_other_cost_bounded_memory),
        cmocka_unit_test(ends_without_a_begin_are_counted),
        cmocka_unit_test(asynchronous_spans_and_fields_are_bounded),
        cmocka_unit_test(batches_without_need_are_answered_and_counted),
        cmocka_unit_test(what_never_ends_ends_by_its_time_out),
        cmocka_unit_test(another_sandbox_of_the_tracer_does_not_notice),
    };

    return cmocka_run_group_tests_name("hostile trace floods", tests, NULL, NULL);
}
