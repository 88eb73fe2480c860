/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a call used: the counts agree with what a guest is known to do, each call has its own, and a caller
 * may have been compiled with an older struct.
 */
#include "support/traced.h"

#include <stdlib.h>
#include <string.h>

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    uint64_t end = test_now_ns() + 1000000;

    (void)context;
    (void)call;
    while (test_now_ns() < end)
        ;
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

static ph_sandbox *started(ph_image *image, const ph_config *config) {
    ph_sandbox *sandbox = test_sandbox(image, config);

    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

static ph_call_stats stats_of(const ph_sandbox *sandbox) {
    ph_call_stats stats = PH_CALL_STATS_INIT;

    assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_OK);
    assert_int_equal(stats.exits, stats.exits_host_call + stats.exits_write + stats.exits_read +
                                      stats.exits_sleep + stats.exits_protect + stats.exits_zero +
                                      stats.exits_trace + stats.exits_end + stats.exits_exception +
                                      stats.exits_kick + stats.exits_other);
    return stats;
}

static void counts_are_those_of_the_guests_exits(void **state) {
    ph_image *image = test_image("limits");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = started(image, NULL);

    for (int i = 0; i < 2; i++) {
        uint64_t begin = test_now_ns();
        test_status(sandbox, test_call(sandbox, image, "known", NULL, 0, NULL), PH_OK);
        uint64_t took = test_now_ns() - begin;
        ph_call_stats stats = stats_of(sandbox);
        assert_int_equal(stats.exits_host_call, 3);
        assert_int_equal(stats.exits_write, 2);
        assert_int_equal(stats.exits_read, 1);
        assert_int_equal(stats.exits_sleep, 1);
        assert_int_equal(stats.exits_protect, 2);
        assert_int_equal(stats.exits_zero, 0);
        assert_int_equal(stats.exits_trace, 0);
        assert_int_equal(stats.exits_exception, 1);
        assert_int_equal(stats.exits_end, 1);
        assert_int_equal(stats.exits_other, 0);
        assert_int_equal(stats.host_calls, 3);
        assert_int_equal(stats.output_bytes, 10);
        assert_int_equal(stats.pages_copied, 0);
        assert_int_equal(stats.trace_records, 0);
        assert_int_equal(stats.trace_dropped, 0);
        assert_true(stats.host_ns >= 2900000);
        assert_true(stats.sleep_ns >= 19900000);
        assert_true(stats.guest_ns > 0);
        /* The clocks differ by a little. */
        assert_true(stats.guest_ns + stats.host_ns + stats.sleep_ns <= took + took / 100);
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void each_call_has_counts_of_its_own(void **state) {
    const ph_value one = {.type = PH_I32, .i32 = 1};
    ph_image *image = test_image("limits");
    ph_stats before, after;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_sandbox(image, NULL);

    assert_int_equal(stats_of(sandbox).exits, 0);
    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    assert_int_equal(stats_of(sandbox).exits_end, 1);
    test_status(sandbox, test_call(sandbox, image, "known", NULL, 0, NULL), PH_OK);
    ph_sandbox_stats(sandbox, &before);
    test_status(sandbox, test_call(sandbox, image, "nothing", &one, 1, NULL), PH_OK);
    ph_sandbox_stats(sandbox, &after);
    ph_call_stats stats = stats_of(sandbox);
    assert_int_equal(stats.exits - stats.exits_kick, 1);
    assert_int_equal(stats.exits, after.exits - before.exits);
    assert_int_equal(stats.host_calls, 0);
    assert_int_equal(stats.output_bytes, 0);
    assert_int_equal(stats.sleep_ns, 0);
    /* A call that is refused is none. */
    test_status(sandbox, test_call(sandbox, image, "nothing", NULL, 0, NULL), PH_E_SIGNATURE);
    assert_int_equal(stats_of(sandbox).exits_end, 1);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void an_interrupt_is_a_kick(void **state) {
    ph_image *image = test_image("limits");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = started(image, NULL);

    test_status(sandbox, ph_call_timeout(sandbox, test_export(image, "spin"), NULL, 0, NULL, 20000000),
                PH_E_TIMED_OUT);
    ph_call_stats stats = stats_of(sandbox);
    assert_true(stats.exits_kick >= 1);
    assert_int_equal(stats.exits, stats.exits_kick);
    assert_true(stats.guest_ns > 10000000);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void records_are_counted_by_call(bool synchronous) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;

    tracer_config.synchronous = synchronous;
    config.trace_call_records = 500;
    traced_begin(&traced, "trace-work", &config, &tracer_config);
    traced_call(&traced, "next_number", NO_ARGS, PH_OK, NULL);
    uint64_t least = stats_of(traced.sandbox).trace_records; /* the call's own span */
    ph_trace_stats before = traced_stats(&traced);
    const ph_value args[] = {U32(9), STR("x"), BYTES("y", 1)};
    traced_call(&traced, "recurse", args, 3, PH_OK, NULL);
    ph_call_stats stats = stats_of(traced.sandbox);
    ph_trace_stats after = traced_stats(&traced);
    assert_true(stats.trace_records >= least + 3 * 10);
    assert_int_equal(stats.trace_records, after.records - before.records);
    assert_int_equal(stats.trace_dropped, 0);
    const ph_value many[] = {U32(999), STR("x"), BYTES("y", 1)};
    traced_call(&traced, "recurse", many, 3, PH_OK, NULL);
    stats = stats_of(traced.sandbox);
    assert_true(stats.trace_records > 0);
    assert_true(stats.trace_dropped > 0);
    assert_int_equal(stats.trace_dropped, traced_stats(&traced).dropped_budget);
    traced_call(&traced, "next_number", NO_ARGS, PH_OK, NULL);
    assert_int_equal(stats_of(traced.sandbox).trace_records, least);
    assert_int_equal(stats_of(traced.sandbox).trace_dropped, 0);
    traced_end(&traced);
}

static void records_and_drops_are_counted(void **state) {
    (void)state;
    test_needs_kvm();
    records_are_counted_by_call(true);
    records_are_counted_by_call(false);
}

static void a_shorter_struct_is_filled_as_far_as_it_goes(void **state) {
    const ph_value one = {.type = PH_I32, .i32 = 1};
    ph_image *image = test_image("limits");
    ph_call_stats stats = PH_CALL_STATS_INIT;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = started(image, NULL);

    test_status(sandbox, test_call(sandbox, image, "nothing", &one, 1, NULL), PH_OK);
    stats.size = offsetof(ph_call_stats, trace_records);
    stats.trace_records = 0x1234;
    assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_OK);
    assert_int_equal(stats.exits_end, 1);
    assert_int_equal(stats.trace_records, 0x1234);
    assert_int_equal(stats.size, offsetof(ph_call_stats, trace_records));
    stats.size = 0;
    assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_E_ARGUMENT);
    stats.size = sizeof stats + 1;
    assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_E_ARGUMENT);
    assert_int_equal(ph_sandbox_call_stats(NULL, &stats), PH_E_ARGUMENT);
    assert_int_equal(ph_sandbox_call_stats(sandbox, NULL), PH_E_ARGUMENT);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_guests_exits),
        cmocka_unit_test(each_call_has_counts_of_its_own),
        cmocka_unit_test(an_interrupt_is_a_kick),
        cmocka_unit_test(records_and_drops_are_counted),
        cmocka_unit_test(a_shorter_struct_is_filled_as_far_as_it_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
