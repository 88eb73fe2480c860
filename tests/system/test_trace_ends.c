/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a guest wrote last before it came to its end is delivered, whatever end that was, and the spans that
 * it left open are closed as unfinished, with the reason.
 */
#include "support/traced.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "sandbox/sandbox.h"
#include "vm/boot.h"

#define GUEST "trace-ends"
#define TIMEOUT_NS 250000000ull

static const struct {
    const char *how;
    ph_status status;
} ends[] = {
    {"page_fault_read", PH_E_PAGE_FAULT},
    {"page_fault_write", PH_E_PAGE_FAULT},
    {"page_fault_exec", PH_E_PAGE_FAULT},
    {"null", PH_E_PAGE_FAULT},
    {"undefined", PH_E_UNDEFINED_INSTRUCTION},
    {"divide", PH_E_DIVIDE},
    {"general_protection", PH_E_GENERAL_PROTECTION},
    {"breakpoint", PH_E_BREAKPOINT},
    {"privileged", PH_E_PRIVILEGED_INSTRUCTION},
    {"stack_overflow", PH_E_STACK_OVERFLOW},
    {"foreign_port", PH_E_PROTOCOL},
    {"double_fault", PH_E_DOUBLE_FAULT},
    {"ph_abort", PH_E_ABORTED},
    {"ph_fail", PH_E_GUEST},
    {"abort", PH_E_ABORTED},
    {"exit", PH_E_EXITED},
    {"_exit", PH_E_EXITED},
    {"kill", PH_E_SIGNALLED},
    {"spin", PH_E_TIMED_OUT},
    {"sleep", PH_E_TIMED_OUT},
};
#define ENDS (sizeof ends / sizeof ends[0])

/* The event `at` of a ring of 16 KiB: this many fill it, with what else is in it. */
#define FULL 678u

/* Both spans of the guest, and the call around them, say how it ended. */
static void spans_check(const struct traced *traced, const char *how, ph_status status) {
    static const char *const names[] = {"inner", "outer", "guest end_by"};
    const ph_trace_span *call = trace_span_named(&traced->collect, "call end_by");

    if (call->status != status || call->unfinished)
        fail_msg("%s: the call's status is %s", how, ph_status_kind(call->status));
    assert_non_null(call->message);
    const ph_trace_span *below = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const ph_trace_span *span = trace_span_named(&traced->collect, names[i]);
        /* ph_fail unwinds to the dispatch loop, which ends the span of the call. */
        bool ends_itself = status == PH_E_GUEST && i == 2;
        if (span->unfinished == ends_itself)
            fail_msg("%s: `%s` is %s", how, span->name, span->unfinished ? "unfinished" : "finished");
        if (!ends_itself && status != PH_E_GUEST && span->status != status)
            fail_msg("%s: the status of `%s` is %s", how, span->name, ph_status_kind(span->status));
        if (below)
            assert_int_equal(below->parent, span->id);
        below = span;
    }
    assert_int_equal(below->parent, call->id);
    assert_int_equal(trace_event_named(&traced->collect, "last")->span,
                     trace_span_named(&traced->collect, "inner")->id);
}

/* Has a guest come to the end (how) behind (count) events. */
static void end_by(struct traced *traced, const char *how, uint64_t count, ph_status status) {
    ph_status got =
        ph_call_timeout(traced->sandbox, test_export(traced->image, "end_by"), ARGS(STR(how), U64(count)),
                        NULL, status == PH_E_TIMED_OUT ? TIMEOUT_NS : TEST_TIMEOUT_NS);
    if (got != status)
        fail_msg("%s: %s instead of %s (%s)", how, ph_status_kind(got), ph_status_kind(status),
                 ph_sandbox_error(traced->sandbox)->message);
}

static void every_end_delivers_what_was_written_before_it(void **state) {
    static const uint64_t counts[] = {0, 3, FULL - 2, FULL, FULL + 2, 2000};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < ENDS; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
            ph_config config = PH_CONFIG_INIT;
            struct traced traced;
            if (j >= 2 && ends[i].status == PH_E_TIMED_OUT)
                continue;
            config.trace_ring = 16 << 10;
            tracer_config.synchronous = (i + j) % 2 == 0;
            traced_begin(&traced, GUEST, &config, &tracer_config);
            end_by(&traced, ends[i].how, counts[j], ends[i].status);
            traced_finish(&traced);
            trace_sequence_check(&traced.collect, "at", 0, counts[j]);
            spans_check(&traced, ends[i].how, ends[i].status);
            traced_free(&traced);
        }
}

/* What came is in order, and with what was dropped it is at least all of the events: others were dropped,
 * too. */
static void drop_check(const struct traced *traced, uint64_t count, uint64_t dropped) {
    uint64_t wanted = 0, came = 0;
    size_t at = 0;

    for (const ph_trace_event *event; (event = trace_event_find(&traced->collect, "at", at, &at));
         at++, came++) {
        uint64_t n = trace_number(event->fields, event->field_count, "n");
        assert_true(n >= wanted);
        wanted = n + 1;
    }
    assert_true(came + dropped >= count);
    assert_true(came <= count);
    if (dropped == 0)
        assert_int_equal(came, count);
}

static void policy_drop_counts_what_it_has_dropped_at_every_end(void **state) {
    static const uint64_t counts[] = {3, 2000};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < ENDS; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
            ph_config config = PH_CONFIG_INIT;
            struct traced traced;
            if (ends[i].status == PH_E_TIMED_OUT && j > 0)
                continue;
            config.trace_ring = 16 << 10;
            config.trace_policy = PH_TRACE_DROP;
            tracer_config.synchronous = true; /* nobody drains meanwhile */
            traced_begin(&traced, GUEST, &config, &tracer_config);
            end_by(&traced, ends[i].how, counts[j], ends[i].status);
            const ph_trace_stats stats = traced_stats(&traced);
            assert_int_equal(stats.exits, 0);
            assert_int_equal(stats.malformed, 0);
            if (j == 0) {
                assert_int_equal(stats.dropped_ring, 0);
            } else {
                assert_true(stats.dropped_ring > 1000);
                assert_true(stats.gaps > 0);
            }
            drop_check(&traced, counts[j], stats.dropped_ring);
            traced_finish(&traced);
            traced_free(&traced);
        }
}

/* The newest events come, without a hole, up to the last one. */
static void policy_flight_delivers_the_newest_at_a_bad_end(void **state) {
    static const uint64_t counts[] = {3, 600, 700, 2000, 5000};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < ENDS; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
            ph_config config = PH_CONFIG_INIT;
            struct traced traced;
            if (ends[i].status == PH_E_TIMED_OUT && j > 1)
                continue;
            config.trace_ring = 16 << 10;
            config.trace_policy = PH_TRACE_FLIGHT;
            tracer_config.synchronous = (i + j) % 2 == 0;
            traced_begin(&traced, GUEST, &config, &tracer_config);
            end_by(&traced, ends[i].how, counts[j], ends[i].status);
            traced_finish(&traced);
            const size_t came = trace_events_named(&traced.collect, "at");
            if (ends[i].status == PH_E_GUEST) {
                assert_int_equal(came, 0); /* no bad end */
            } else {
                if (came < (counts[j] < 600 ? counts[j] : 600))
                    fail_msg("%s: only %zu of %llu events came", ends[i].how, came,
                             (unsigned long long)counts[j]);
                trace_sequence_check(&traced.collect, "at", counts[j] - came, came);
                const ph_trace_span *inner = trace_span_named(&traced.collect, "inner");
                assert_true(inner->unfinished);
                assert_int_equal(inner->status, ends[i].status);
                assert_int_equal(trace_event_named(&traced.collect, "last")->span, inner->id);
                if (counts[j] > FULL)
                    assert_true(trace_events_named(&traced.collect, "trace.gap") > 0);
            }
            traced_free(&traced);
        }
}

/* What the last call may bring is as bounded as under the other policies, and what it may not is counted. */
static void policy_flight_keeps_to_the_budget(void **state) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 16 << 10;
    config.trace_policy = PH_TRACE_FLIGHT;
    config.trace_call_bytes = 1024;
    tracer_config.synchronous = true;
    traced_begin(&traced, GUEST, &config, &tracer_config);
    end_by(&traced, "undefined", 600, PH_E_UNDEFINED_INSTRUCTION);
    const ph_trace_stats stats = traced_stats(&traced);
    assert_int_equal(trace_events_named(&traced.collect, "at"), 0);
    assert_true(stats.bytes <= 1024);
    assert_true(stats.dropped_budget >= 600);
    assert_int_equal(trace_events_named(&traced.collect, "trace.gap"), 1);
    traced_end(&traced);
}

static void policy_flight_delivers_nothing_of_good_calls(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    config.trace_policy = PH_TRACE_FLIGHT;
    traced_begin(&traced, "trace-work", &config, NULL);
    for (int i = 0; i < 10; i++)
        traced_call(&traced, "spans", ARGS(U64(10000)), PH_OK, &result);
    assert_int_equal((traced_flush(&traced), traced.collect.event_count), 0);
    assert_int_equal(trace_spans_named(&traced.collect, "call spans"), 10);
    assert_int_equal(traced_stats(&traced).exits, 0);
    traced_end(&traced);
}

/* ---- ends from outside --------------------------------------------------------------------------------- */

static void *interrupt_later(void *argument) {
    const struct timespec wait = {0, 50000000};

    nanosleep(&wait, NULL);
    ph_interrupt(argument);
    return NULL;
}

static void an_interrupt_delivers_what_was_written_before_it(void **state) {
    static const char *const hows[] = {"spin", "sleep"};
    (void)state;
    test_needs_kvm();

    for (int policy = PH_TRACE_COMPLETE; policy <= PH_TRACE_FLIGHT; policy++)
        for (size_t i = 0; i < 2; i++) {
            ph_config config = PH_CONFIG_INIT;
            struct traced traced;
            pthread_t thread;
            config.trace_policy = (ph_trace_policy)policy;
            traced_begin(&traced, GUEST, &config, NULL);
            assert_int_equal(pthread_create(&thread, NULL, interrupt_later, traced.sandbox), 0);
            traced_call(&traced, "end_by", ARGS(STR(hows[i]), U64(100)), PH_E_INTERRUPTED, NULL);
            pthread_join(thread, NULL);
            traced_finish(&traced);
            trace_sequence_check(&traced.collect, "at", 0, 100);
            spans_check(&traced, hows[i], PH_E_INTERRUPTED);
            traced_free(&traced);
        }
}

static void events_up_to_a_time_out_all_come(void **state) {
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        config.trace_ring = 16 << 10;
        tracer_config.synchronous = synchronous;
        traced_begin(&traced, "trace-work", &config, &tracer_config);
        assert_int_equal(ph_call_timeout(traced.sandbox, test_export(traced.image, "events_for_ever"), NULL,
                                         0, NULL, TIMEOUT_NS),
                         PH_E_TIMED_OUT);
        const struct ph__ring *ring = (const struct ph__ring *)(traced.sandbox->memory.base +
                                                                traced.sandbox->memory.layout.trace.offset);
        const ph_trace_stats stats = traced_stats(&traced);
        /* All that was published was taken. */
        assert_int_equal(stats.bytes, ring->head - ph__memory_control(&traced.sandbox->memory)->trace.first);
        traced_finish(&traced);
        const size_t came = trace_events_named(&traced.collect, "at");
        assert_true(came > (test_is_soft() ? 10 : 100));
        trace_sequence_check(&traced.collect, "at", 0, came);
        traced_free(&traced);
    }
}

/* The processor can find no handler: the third fault resets it. */
static void a_triple_fault_delivers_what_was_written_before_it(void **state) {
    (void)state;
    test_needs_kvm();

    for (int policy = PH_TRACE_COMPLETE; policy <= PH_TRACE_FLIGHT; policy++) {
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        config.trace_policy = (ph_trace_policy)policy;
        traced_begin(&traced, GUEST, &config, NULL);
        memset(traced.sandbox->memory.base + PH__TABLES_GPA + PH__IDT_OFFSET, 0, PH__IDT_SIZE);
        ph_status status =
            test_call(traced.sandbox, traced.image, "end_by", ARGS(STR("undefined"), U64(50)), NULL);
        assert_true(status == PH_E_TRIPLE_FAULT || status == PH_E_UNDEFINED_INSTRUCTION);
        traced_finish(&traced);
        trace_sequence_check(&traced.collect, "at", 0, 50);
        spans_check(&traced, "triple fault", status);
        traced_free(&traced);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_delivers_what_was_written_before_it),
        cmocka_unit_test(policy_drop_counts_what_it_has_dropped_at_every_end),
        cmocka_unit_test(policy_flight_delivers_the_newest_at_a_bad_end),
        cmocka_unit_test(policy_flight_keeps_to_the_budget),
        cmocka_unit_test(policy_flight_delivers_nothing_of_good_calls),
        cmocka_unit_test(an_interrupt_delivers_what_was_written_before_it),
        cmocka_unit_test(events_up_to_a_time_out_all_come),
        cmocka_unit_test(a_triple_fault_delivers_what_was_written_before_it),
    };

    return cmocka_run_group_tests_name("trace ends", tests, NULL, NULL);
}
