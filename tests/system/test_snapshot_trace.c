/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tracing goes on across restores: every record of every call comes, once and in order, and nothing of the
 * ring's old content comes again.
 */
#include <string.h>

#include <pinhole/snapshot.h>

#include "support/traced.h"

static void restore(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
}

/* The event "counted" has its numbers 0, 1, 2 ... (count) of them. */
static void check_numbers(const struct trace_collect *collect, uint64_t count) {
    size_t from = 0;

    for (uint64_t i = 0; i < count; i++) {
        const ph_trace_event *event = trace_event_find(collect, "counted", from, &from);
        assert_non_null(event);
        assert_int_equal(trace_number(event->fields, event->field_count, "number"), i);
        from++;
    }
    assert_int_equal(trace_events_named(collect, "counted"), count);
    assert_int_equal(trace_spans_named(collect, "work"), count);
}

static void records_come_once_across_restores(void **state) {
    static const ph_trace_policy policies[] = {PH_TRACE_COMPLETE, PH_TRACE_DROP};

    (void)state;
    test_needs_kvm();
    for (size_t p = 0; p < 2; p++) {
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        ph_snapshot *snapshot = NULL;
        const unsigned turns = test_scaled(300);
        config.trace_policy = policies[p];
        config.trace_ring = 16 << 10;
        traced_begin(&traced, "snapshot", &config, NULL);
        test_status(traced.sandbox, ph_snapshot_take(traced.sandbox, &snapshot), PH_OK);
        for (unsigned turn = 0; turn < turns; turn++) {
            ph_value result;
            traced_call(&traced, "traced", ARGS(U32(turn)), PH_OK, &result);
            if (turn % 3 == 2) {
                assert_int_equal(result.u32, 3);
                restore(traced.sandbox, snapshot);
            }
        }
        traced_flush(&traced);
        check_numbers(&traced.collect, turns);
        ph_trace_stats stats = traced_stats(&traced);
        assert_int_equal(stats.malformed, 0);
        assert_int_equal(stats.dropped_ring, 0);
        assert_int_equal(trace_spans_named(&traced.collect, "restore"), turns / 3);
        assert_int_equal(trace_spans_named(&traced.collect, "snapshot"), 1);
        traced_end(&traced);
        ph_snapshot_close(snapshot);
    }
}

static void a_sandbox_of_a_snapshot_is_traced(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    ph_snapshot *snapshot = NULL;
    ph_sandbox *other = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, "snapshot", NULL, NULL);
    traced_call(&traced, "traced", ARGS(U32(0)), PH_OK, NULL);
    test_status(traced.sandbox, ph_snapshot_take(traced.sandbox, &snapshot), PH_OK);
    traced_flush(&traced); /* between two sandboxes there is no order */
    config.tracer = traced.tracer;
    if (ph_sandbox_create_from(snapshot, &config, &other, &error) != PH_OK)
        fail_msg("%s", error.message);
    for (unsigned turn = 1; turn < 50; turn++) {
        test_status(other, test_call(other, traced.image, "traced", ARGS(U32(turn)), NULL), PH_OK);
        if (turn % 10 == 0)
            restore(other, snapshot);
    }
    ph_trace_stats stats;
    ph_sandbox_trace_stats(other, &stats);
    ph_sandbox_destroy(other);
    traced_flush(&traced);
    check_numbers(&traced.collect, 50);
    assert_int_equal(stats.malformed, 0);

    /* Without a tracer the layout is another. */
    assert_int_equal(ph_sandbox_create_from(snapshot, NULL, &other, &error), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, "traced"));
    traced_end(&traced);
    ph_snapshot_close(snapshot);
}

static void what_ends_the_guest_is_traced_before_the_restore(void **state) {
    struct traced traced;
    ph_snapshot *snapshot = NULL;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, "snapshot", NULL, NULL);
    test_status(traced.sandbox, ph_snapshot_take(traced.sandbox, &snapshot), PH_OK);
    for (unsigned turn = 0; turn < 20; turn++) {
        traced_call(&traced, "traced", ARGS(U32(turn)), PH_OK, NULL);
        traced_call(&traced, "undefined", NO_ARGS, PH_E_UNDEFINED_INSTRUCTION, NULL);
        restore(traced.sandbox, snapshot);
    }
    traced_flush(&traced);
    check_numbers(&traced.collect, 20);
    assert_int_equal(traced_stats(&traced).malformed, 0);
    traced_end(&traced);
    ph_snapshot_close(snapshot);
}

/* The ring is memory that a guest can fill, and the next must not read. */
static void the_ring_holds_nothing_of_the_last_guest(void **state) {
    struct traced traced;
    ph_snapshot *snapshot = NULL;
    ph_value result;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, "hostile_snapshot", NULL, NULL);
    test_status(traced.sandbox, ph_snapshot_take(traced.sandbox, &snapshot), PH_OK);
    traced_call(&traced, "fill_boxes", ARGS(U64(0x77)), PH_OK, NULL);
    traced_call(&traced, "boxes_sum", NO_ARGS, PH_OK, &result);
    assert_true(result.u64 != 0);
    restore(traced.sandbox, snapshot);
    traced_call(&traced, "boxes_sum", NO_ARGS, PH_OK, &result);
    assert_int_equal(result.u64, 0);
    traced_end(&traced);
    ph_snapshot_close(snapshot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_once_across_restores),
        cmocka_unit_test(a_sandbox_of_a_snapshot_is_traced),
        cmocka_unit_test(what_ends_the_guest_is_traced_before_the_restore),
        cmocka_unit_test(the_ring_holds_nothing_of_the_last_guest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
