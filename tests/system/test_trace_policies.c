/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tracers and rings of every make: what a policy may lose is counted to the record, records come while a call
 * still runs, times are those of the host's clocks, and what cannot be is refused. PH_TEST_SECONDS asks for a
 * longer look at the clock.
 */
#include "support/traced.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GUEST "trace-work"

/* ---- what is lost -------------------------------------------------------------------------------------- */

static void policy_drop_accounts_for_every_record(void **state) {
    static const uint64_t rings[] = {16 << 10, 64 << 10, 256 << 10};
    static const uint64_t counts[] = {1, 100, 151, 1000, 5000, 20000};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        bool any = false;
        config.trace_ring = rings[i];
        config.trace_policy = PH_TRACE_DROP;
        tracer_config.synchronous = i != 1;
        traced_begin(&traced, GUEST, &config, &tracer_config);
        traced_flush(&traced);
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            const ph_trace_stats before = traced_stats(&traced);
            ph_value written;
            traced_call(&traced, "spans", ARGS(U64(counts[j])), PH_OK, &written);
            traced_flush(&traced);
            const ph_trace_stats after = traced_stats(&traced);
            const uint64_t told = after.records - before.records + after.dropped_ring - before.dropped_ring +
                                  after.dropped_queue - before.dropped_queue;
            /* The guest's own, the begin and the end of its call, and the records that tell of a loss: one
             * more than gaps when the end of the call before has told of it already. */
            const uint64_t gaps = after.gaps - before.gaps;
            if (told < written.u64 + 2 || told > written.u64 + 2 + gaps + 1)
                fail_msg("%" PRIu64 " records and %" PRIu64 " gaps, but the guest wrote %" PRIu64 " and 2",
                         told, gaps, written.u64);
            any = any || after.dropped_ring > 0;
            if (after.dropped_ring > before.dropped_ring)
                assert_true(gaps > 0);
        }
        const ph_trace_stats stats = traced_stats(&traced);
        assert_true(any);
        assert_int_equal(stats.exits, 0);
        assert_int_equal(stats.malformed, 0);
        traced_finish(&traced);
        /* Each loss is told where it happened; together they tell of all. */
        uint64_t told = 0;
        size_t at = 0;
        for (const ph_trace_event *gap; (gap = trace_event_find(&traced.collect, "trace.gap", at, &at)); at++)
            told += trace_number(gap->fields, gap->field_count, "records");
        assert_int_equal(told, stats.dropped_ring + stats.dropped_queue);
        traced_free(&traced);
    }
}

static void ends_of_spans_find_room_in_policy_drop(void **state) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    ph_value written;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 16 << 10;
    config.trace_policy = PH_TRACE_DROP;
    tracer_config.synchronous = true;
    traced_begin(&traced, GUEST, &config, &tracer_config);
    traced_call(&traced, "spans_in_spans", ARGS(U64(1), U32(10)), PH_OK, &written);
    traced_finish(&traced);
    assert_true(trace_spans_named(&traced.collect, "outer") > 100);
    /* Those whose begin came have their end, but for the few that the reserve did not hold. */
    assert_false(trace_span_named(&traced.collect, "guest spans_in_spans")->unfinished);
    traced_free(&traced);
}

/* The worker is as slow as a sink can be; the others wait, and nothing is lost. */
static void slow_span(void *context, const ph_trace_span *span) {
    const struct timespec pause = {0, 20000};

    (void)context;
    (void)span;
    nanosleep(&pause, NULL);
}

/* A started sandbox of (guest) whose tracer has a slow sink beside the collecting one. */
static void begin_slowly(struct traced *traced, const char *guest, ph_config *config) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_sink sink = PH_SINK_INIT;
    ph_error error;

    tracer_config.queue = 1; /* the least */
    trace_collect_init(&traced->collect);
    traced->tracer = trace_collect_tracer(&traced->collect, &tracer_config);
    sink.span = slow_span;
    assert_int_equal(ph_tracer_add_sink(traced->tracer, &sink, &error), PH_OK);
    config->tracer = traced->tracer;
    config->trace_ring = 16 << 10;
    traced->image = test_image(guest);
    traced->sandbox = test_sandbox(traced->image, config);
    test_status(traced->sandbox, ph_sandbox_start(traced->sandbox), PH_OK);
}

static void policy_complete_waits_for_slow_sinks(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;

    (void)state;
    test_needs_kvm();
    begin_slowly(&traced, "trace-ends", &config);
    for (int i = 0; i < 100; i++)
        traced_call(&traced, "end_by", ARGS(STR("nothing"), U64(1000)), PH_OK, NULL);
    traced_finish(&traced);
    trace_sequence_check(&traced.collect, "at", 0, 100000);
    assert_int_equal(trace_spans_named(&traced.collect, "call end_by"), 100);
    traced_free(&traced);
}

static void policy_drop_does_not_wait_and_counts(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    uint64_t written = 0;

    (void)state;
    test_needs_kvm();
    config.trace_policy = PH_TRACE_DROP;
    begin_slowly(&traced, "trace-ends", &config);
    traced_flush(&traced);
    const ph_trace_stats before = traced_stats(&traced);
    for (int i = 0; i < 1000; i++) {
        traced_call(&traced, "end_by", ARGS(STR("nothing"), U64(100)), PH_OK, NULL);
        written += 100 + 3 * 2 + 1; /* events, three spans, one event more */
    }
    traced_flush(&traced);
    const ph_trace_stats after = traced_stats(&traced);
    const uint64_t lost =
        after.dropped_queue - before.dropped_queue + after.dropped_ring - before.dropped_ring;
    assert_true(after.dropped_queue > 1000);
    const uint64_t told = after.records - before.records + lost;
    if (told != written)
        fail_msg("%" PRIu64 " records came or were lost, but %" PRIu64 " were written", told, written);
    traced_finish(&traced);
    uint64_t in_gaps = 0;
    size_t at = 0;
    for (const ph_trace_event *gap; (gap = trace_event_find(&traced.collect, "trace.gap", at, &at)); at++)
        in_gaps += trace_number(gap->fields, gap->field_count, "records");
    assert_int_equal(in_gaps, lost);
    traced_free(&traced);
}

/* ---- live ---------------------------------------------------------------------------------------------- */

struct running {
    struct traced *traced;
    const char *name;
    atomic_bool over;
    ph_status status;
};

static void *run_call(void *argument) {
    struct running *running = argument;

    running->status = ph_call(running->traced->sandbox,
                              ph_image_find_export(running->traced->image, running->name), NULL, 0, NULL);
    running->over = true;
    return NULL;
}

static void sleep_ms(unsigned ms) {
    const struct timespec wanted = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&wanted, NULL);
}

static void records_come_while_the_call_still_runs(void **state) {
    struct running running = {.name = "events_for_ever"};
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    pthread_t thread;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 64 << 20; /* not full before the test is over */
    traced_begin(&traced, GUEST, &config, NULL);
    running.traced = &traced;
    assert_int_equal(pthread_create(&thread, NULL, run_call, &running), 0);
    for (int i = 0; i < 3000 && traced.collect.event_count < 100; i++)
        sleep_ms(1);
    assert_true(traced.collect.event_count >= 100);
    assert_false(running.over);
    size_t before = traced.collect.event_count;
    for (int i = 0; i < 3000 && traced.collect.event_count == before; i++)
        sleep_ms(1);
    assert_true(traced.collect.event_count > before);
    assert_false(running.over);
    assert_int_equal(traced_stats(&traced).exits, 0);
    ph_interrupt(traced.sandbox);
    pthread_join(thread, NULL);
    assert_int_equal(running.status, PH_E_INTERRUPTED);
    traced_finish(&traced);
    trace_sequence_check(&traced.collect, "at", 0, trace_events_named(&traced.collect, "at"));
    assert_true(trace_span_named(&traced.collect, "for ever")->unfinished);
    traced_free(&traced);
}

/* ---- times --------------------------------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#define NEAR_NS 5000000ull /* clocks that are set meanwhile, threads that have to wait */

/* One call. True if the guest's own time was near that of its events: not so where the host has taken the
 * processor away in between. */
static bool call_clocks(void) {
    struct traced traced;
    bool near = true;

    traced_begin(&traced, GUEST, NULL, NULL);
    const uint64_t before = clock_ns(CLOCK_REALTIME);
    traced_call(&traced, "clocks", ARGS(U32(300)), PH_OK, NULL);
    const uint64_t after = clock_ns(CLOCK_REALTIME);
    traced_finish(&traced);
    static const char *const names[] = {"first", "last"};
    for (int i = 0; i < 2; i++) {
        const ph_trace_event *event = trace_event_named(&traced.collect, names[i]);
        const uint64_t told = trace_number(event->fields, event->field_count, "realtime");
        assert_true(event->time_ns + NEAR_NS > before);
        assert_true(event->time_ns < after + NEAR_NS);
        near = near && event->time_ns + NEAR_NS > told && event->time_ns < told + NEAR_NS;
    }
    const ph_trace_span *call = trace_span_named(&traced.collect, "call clocks");
    assert_true(call->start_ns + NEAR_NS > before);
    assert_true(call->end_ns < after + NEAR_NS);
    assert_true(call->end_ns - call->start_ns > 290000000);
    traced_free(&traced);
    return near;
}

static void times_are_those_of_the_hosts_clock(void **state) {
    bool near = false;

    (void)state;
    test_needs_kvm();
    for (unsigned i = 0; i < 10 && !near; i++)
        near = call_clocks();
    assert_true(near);
}

static void times_do_not_run_backwards_in_a_call(void **state) {
    struct traced traced;
    ph_value result;
    uint64_t time_ns = 0;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    traced_call(&traced, "spans", ARGS(U64(20000)), PH_OK, &result);
    traced_finish(&traced);
    for (size_t i = 0; i < traced.collect.event_count; i++) {
        assert_true(traced.collect.events[i].event.time_ns >= time_ns);
        time_ns = traced.collect.events[i].event.time_ns;
    }
    traced_free(&traced);
}

static ph_status note_time(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    uint64_t **next = context;

    (void)call;
    (void)args;
    *(*next)++ = clock_ns(CLOCK_MONOTONIC);
    result->u64 = 0;
    return PH_OK;
}

static void the_clock_drifts_less_than_50_ppm(void **state) {
    static const ph_signature signature = {.result = PH_U64, .count = 1, .args = {PH_U64}};
    const char *text = getenv("PH_TEST_SECONDS");
    const unsigned seconds = text ? (unsigned)strtoul(text, NULL, 10) : 3;
    uint64_t times[6], *next = times;
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    traced_create(&traced, GUEST, NULL, NULL);
    test_status(traced.sandbox, ph_sandbox_register(traced.sandbox, "visit", &signature, note_time, &next),
                PH_OK);
    test_status(traced.sandbox, ph_sandbox_start(traced.sandbox), PH_OK);
    traced_call(&traced, "visit_late", ARGS(U32(0)), PH_OK, &result);
    sleep_ms(1000 * seconds);
    traced_call(&traced, "visit_late", ARGS(U32(0)), PH_OK, &result);
    traced_finish(&traced);
    uint64_t starts[6];
    size_t at = 0;
    for (int i = 0; i < 6; i++, at++)
        starts[i] = trace_span_find(&traced.collect, "host visit", at, &at)->start_ns;
    /* The best of three pairs: the thread may have had to wait between the two looks at the clock. */
    double best = 1;
    for (int i = 0; i < 3; i++) {
        const double traced_ns = (double)(starts[3 + i] - starts[i]);
        const double real_ns = (double)(times[3 + i] - times[i]);
        const double drift = traced_ns > real_ns ? traced_ns / real_ns - 1 : 1 - traced_ns / real_ns;
        best = drift < best ? drift : best;
    }
    if (best >= 50e-6)
        fail_msg("the trace's clock drifts by %.1f ppm", best * 1e6);
    traced_free(&traced);
}

/* ---- makes of tracers ---------------------------------------------------------------------------------- */

static void rings_and_policies_that_cannot_be_are_refused(void **state) {
    static const uint64_t rings[] = {1, 4096, 8192, 16385, 24 << 10, 128 << 20, 1ull << 40, UINT64_MAX};
    ph_image *image = test_image("hello");
    ph_tracer *tracer;
    ph_error error;

    (void)state;
    test_needs_kvm();
    assert_int_equal(ph_tracer_create(NULL, &tracer, &error), PH_OK);
    for (size_t i = 0; i <= sizeof rings / sizeof rings[0]; i++) {
        ph_config config = PH_CONFIG_INIT;
        ph_sandbox *sandbox = NULL;
        config.tracer = tracer;
        if (i < sizeof rings / sizeof rings[0])
            config.trace_ring = rings[i];
        else
            config.trace_policy = (ph_trace_policy)3;
        assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
        assert_null(sandbox);
        assert_non_null(strstr(error.message, "trace"));
    }
    static const uint64_t good[] = {16 << 10, 1 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ph_config config = PH_CONFIG_INIT;
        config.tracer = tracer;
        config.trace_ring = good[i];
        ph_sandbox *sandbox = test_sandbox(image, &config);
        ph_sandbox_destroy(sandbox);
    }
    ph_tracer_destroy(tracer);
    ph_image_close(image);
}

static void sinks_that_come_too_late_are_refused_and_closed(void **state) {
    struct trace_collect late;
    struct traced traced;
    ph_error error;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    trace_collect_init(&late);
    ph_sink sink = trace_collect_sink(&late);
    assert_int_equal(ph_tracer_add_sink(traced.tracer, &sink, &error), PH_E_STATE);
    assert_int_equal(late.closes, 1);
    traced_end(&traced);
    assert_int_equal(late.closes, 1);
    assert_int_equal(late.span_count, 0);
    trace_collect_free(&late);
}

static void a_tracer_without_sinks_only_counts(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_trace_stats stats;
    ph_tracer *tracer;
    ph_error error;

    (void)state;
    test_needs_kvm();
    assert_int_equal(ph_tracer_create(NULL, &tracer, &error), PH_OK);
    config.tracer = tracer;
    ph_image *image = test_image("hello");
    ph_sandbox *sandbox = test_sandbox(image, &config);
    ph_tracer_flush(tracer, 0);
    ph_sandbox_destroy(sandbox);
    ph_tracer_stats(tracer, &stats);
    assert_true(stats.spans >= 3);
    ph_tracer_destroy(tracer);
    ph_image_close(image);
}

static void every_sink_gets_everything(void **state) {
    struct trace_collect second;
    struct traced traced;
    ph_error error;

    (void)state;
    test_needs_kvm();
    trace_collect_init(&second);
    trace_collect_init(&traced.collect);
    traced.tracer = trace_collect_tracer(&traced.collect, NULL);
    ph_sink sink = trace_collect_sink(&second);
    assert_int_equal(ph_tracer_add_sink(traced.tracer, &sink, &error), PH_OK);
    ph_config config = PH_CONFIG_INIT;
    config.tracer = traced.tracer;
    traced.image = test_image("trace-ends");
    traced.sandbox = test_sandbox(traced.image, &config);
    test_status(traced.sandbox, ph_sandbox_start(traced.sandbox), PH_OK);
    traced_call(&traced, "end_by", ARGS(STR("nothing"), U64(10)), PH_OK, NULL);
    traced_finish(&traced);
    assert_int_equal(second.span_count, traced.collect.span_count);
    assert_int_equal(second.event_count, traced.collect.event_count);
    trace_sequence_check(&second, "at", 0, 10);
    trace_collect_free(&second);
    traced_free(&traced);
}

/* The child's share can be destroyed, and nothing else; the parent's goes on. */
static void a_child_after_fork_can_only_destroy(void **state) {
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        struct traced traced;
        ph_sink sink = PH_SINK_INIT;
        tracer_config.synchronous = synchronous;
        traced_begin(&traced, GUEST, NULL, &tracer_config);
        traced_call(&traced, "events", ARGS(U64(5)), PH_OK, NULL);
        const pid_t child = fork();
        if (child == 0) {
            ph_trace_stats stats;
            const size_t spans = traced.collect.span_count;
            bool good = ph_tracer_flush(traced.tracer, 0) == PH_E_FORKED;
            good = good && ph_tracer_set_filter(traced.tracer, "off", NULL) == PH_E_FORKED;
            good = good && ph_tracer_add_sink(traced.tracer, &sink, NULL) == PH_E_FORKED;
            ph_tracer_stats(traced.tracer, &stats);
            ph_sandbox_trace_stats(traced.sandbox, &stats);
            good = good && ph_call(traced.sandbox, test_export(traced.image, "next_number"), NULL, 0, NULL) ==
                               PH_E_FORKED;
            ph_sandbox_destroy(traced.sandbox);
            ph_tracer_destroy(traced.tracer);
            _exit(good && traced.collect.span_count == spans && traced.collect.closes == 0 ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        traced_call(&traced, "events", ARGS(U64(5)), PH_OK, NULL);
        traced_finish(&traced);
        trace_sequence_check(&traced.collect, "at", 0, 10);
        traced_free(&traced);
    }
}

/* ---- sinks that stop, tracers that go first -------------------------------------------------------------
 */

struct gate {
    atomic_bool closed;
    atomic_uint waiting;
};

static void wait_at_gate(void *context, const ph_trace_span *span) {
    struct gate *gate = context;

    (void)span;
    gate->waiting++;
    while (gate->closed)
        sleep_ms(1);
    gate->waiting--;
}

static void a_flush_ends_by_its_time_out_though_a_sink_has_stopped(void **state) {
    struct gate gate = {0};
    ph_sink sink = PH_SINK_INIT;
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    ph_error error;

    (void)state;
    test_needs_kvm();
    trace_collect_init(&traced.collect);
    traced.tracer = trace_collect_tracer(&traced.collect, NULL);
    sink.span = wait_at_gate;
    sink.context = &gate;
    assert_int_equal(ph_tracer_add_sink(traced.tracer, &sink, &error), PH_OK);
    config.tracer = traced.tracer;
    traced.image = test_image("trace-ends");
    traced.sandbox = test_sandbox(traced.image, &config);
    test_status(traced.sandbox, ph_sandbox_start(traced.sandbox), PH_OK);
    traced_flush(&traced);
    for (int round = 0; round < 2; round++) {
        gate.closed = true;
        traced_call(&traced, "end_by", ARGS(STR("nothing"), U64(10)), PH_OK, NULL);
        /* The first time the sink stops during the flush, or before; the second time before. */
        for (int i = 0; round == 1 && i < 3000 && gate.waiting == 0; i++)
            sleep_ms(1);
        const uint64_t before = clock_ns(CLOCK_MONOTONIC);
        assert_int_equal(ph_tracer_flush(traced.tracer, 50000000), PH_E_TIMED_OUT);
        const uint64_t took = clock_ns(CLOCK_MONOTONIC) - before;
        assert_true(took >= 50000000);
        assert_true(took < 5000000000);
        gate.closed = false;
        assert_int_equal(ph_tracer_flush(traced.tracer, 0), PH_OK);
    }
    traced_finish(&traced);
    assert_int_equal(trace_events_named(&traced.collect, "at"), 20);
    traced_free(&traced);
}

/* A mistake, but what happens is defined: the sinks have got what there was and are closed, nothing comes
 * after that, and the sandboxes go on. */
static void a_tracer_that_is_destroyed_first_stays_until_its_sandboxes_are_gone(void **state) {
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        ph_trace_stats stats;
        tracer_config.synchronous = synchronous;
        config.trace_ring = 16 << 10;
        traced_begin(&traced, GUEST, &config, &tracer_config);
        ph_sandbox *second = NULL;
        config.tracer = traced.tracer;
        assert_int_equal(ph_sandbox_create(traced.image, &config, &second, NULL), PH_OK);
        traced_call(&traced, "events", ARGS(U64(5)), PH_OK, NULL);
        ph_tracer_destroy(traced.tracer);
        assert_int_equal(traced.collect.closes, 1);
        const size_t events = traced.collect.event_count;
        /* More than its queue holds. */
        traced_call(&traced, "events", ARGS(U64(200000)), PH_OK, NULL);
        ph_sandbox_trace_stats(traced.sandbox, &stats);
        assert_true(stats.records > 200000);
        assert_int_equal(stats.dropped_queue, 0);
        ph_sandbox_destroy(second);
        traced_call(&traced, "events", ARGS(U64(5)), PH_OK, NULL);
        ph_sandbox_destroy(traced.sandbox);
        ph_image_close(traced.image);
        assert_int_equal(traced.collect.event_count, events);
        assert_int_equal(traced.collect.closes, 1);
        traced_free(&traced);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_drop_accounts_for_every_record),
        cmocka_unit_test(ends_of_spans_find_room_in_policy_drop),
        cmocka_unit_test(policy_complete_waits_for_slow_sinks),
        cmocka_unit_test(policy_drop_does_not_wait_and_counts),
        cmocka_unit_test(records_come_while_the_call_still_runs),
        cmocka_unit_test(times_are_those_of_the_hosts_clock),
        cmocka_unit_test(times_do_not_run_backwards_in_a_call),
        cmocka_unit_test(the_clock_drifts_less_than_50_ppm),
        cmocka_unit_test(rings_and_policies_that_cannot_be_are_refused),
        cmocka_unit_test(sinks_that_come_too_late_are_refused_and_closed),
        cmocka_unit_test(a_tracer_without_sinks_only_counts),
        cmocka_unit_test(every_sink_gets_everything),
        cmocka_unit_test(a_child_after_fork_can_only_destroy),
        cmocka_unit_test(a_flush_ends_by_its_time_out_though_a_sink_has_stopped),
        cmocka_unit_test(a_tracer_that_is_destroyed_first_stays_until_its_sandboxes_are_gone),
    };

    return cmocka_run_group_tests_name("trace policies", tests, NULL, NULL);
}
