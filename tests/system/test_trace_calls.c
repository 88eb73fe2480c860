/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest that traces, returns and is called again: each record comes once and under its own parent, through
 * exits of every kind, and nothing grows. PH_TEST_CALLS asks for more of the calls.
 */
#include "support/traced.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUEST "trace-work"
#define DEEPEST 255u
#define LONGEST 1024u

static uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* ---- calls without end --------------------------------------------------------------------------------- */

/* What the calls so far must have brought since the last look. */
struct due {
    uint64_t first; /* number of the first event `at` */
    uint64_t events;
    uint64_t calls;
};

static void call_random(struct traced *traced, uint64_t *seed, uint32_t depth, struct due *due) {
    char text[LONGEST + 1], data[LONGEST];
    ph_value result;
    size_t length = random_next(seed) % (LONGEST + 1);
    size_t size = random_next(seed) % (LONGEST + 1);

    for (size_t i = 0; i < length; i++)
        text[i] = (char)(' ' + random_next(seed) % 95);
    text[length] = 0;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)random_next(seed);
    traced_call(traced, "recurse", ARGS(U32(depth), STR(text), BYTES(data, size)), PH_OK, &result);
    assert_int_equal(result.bytes.size, size);
    assert_memory_equal(result.bytes.data, data, size);
    due->events += depth + 1;
    due->calls++;
}

/* Everything that is due has come, once and in order; then it is forgotten. */
static void due_check(struct traced *traced, struct due *due) {
    traced_flush(traced);
    trace_collect_check(&traced->collect);
    trace_sequence_check(&traced->collect, "at", due->first, due->events);
    assert_int_equal(trace_spans_named(&traced->collect, "level"), due->events);
    assert_int_equal(trace_events_named(&traced->collect, "the bottom says %s"), due->calls);
    assert_int_equal(trace_events_named(&traced->collect, "sum"), due->calls);
    assert_int_equal(trace_spans_named(&traced->collect, "guest recurse"), due->calls);
    assert_int_equal(trace_spans_named(&traced->collect, "call recurse"), due->calls);
    assert_int_equal(trace_events_named(&traced->collect, "trace.gap"), 0);
    due->first += due->events;
    due->events = due->calls = 0;
    trace_collect_clear(&traced->collect);
}

static uint64_t number_of(struct traced *traced, const char *name) {
    ph_value result;

    traced_call(traced, name, NO_ARGS, PH_OK, &result);
    return result.u64;
}

static size_t host_heap(void) {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

struct sizes {
    uint64_t end, used;
    size_t host;
};

static struct sizes sizes_of(struct traced *traced) {
    struct sizes sizes = {number_of(traced, "heap_end"), number_of(traced, "heap_used"), 0};

    traced_flush(traced);
    trace_collect_clear(&traced->collect);
    sizes.host = host_heap();
    return sizes;
}

static void run_calls(const ph_config *config, const ph_tracer_config *tracer_config, uint64_t count,
                      uint64_t deep) {
    struct due due = {0};
    struct traced traced;
    uint64_t seed = 7;

    traced_begin(&traced, GUEST, config, tracer_config);
    for (int i = 0; i < 20; i++)
        call_random(&traced, &seed, DEEPEST, &due);
    due_check(&traced, &due);
    const struct sizes before = sizes_of(&traced);
    for (uint64_t i = 0; i < count; i++) {
        call_random(&traced, &seed,
                    i % (count / deep + 1) == 0 ? DEEPEST : (uint32_t)(random_next(&seed) % 4), &due);
        if (due.events > 2000)
            due_check(&traced, &due);
    }
    due_check(&traced, &due);
    const struct sizes after = sizes_of(&traced);
    assert_int_equal(after.end, before.end);
    assert_int_equal(after.used, before.used);
    /* What malloc keeps for threads that may want it again counts as used, up to 1,032 bytes of each size. */
    if (after.host > before.host + (512 << 10))
        fail_msg("the host's heap grew from %zu to %zu bytes", before.host, after.host);
    const ph_trace_stats stats = traced_stats(&traced);
    assert_int_equal(stats.malformed + stats.unknown_ends + stats.gaps + stats.dropped_queue, 0);
    traced_finish(&traced);
    traced_free(&traced);
}

static void calls_without_end_lose_and_keep_nothing(void **state) {
    const char *text = getenv("PH_TEST_CALLS");
    const uint64_t count = text ? strtoull(text, NULL, 10) : test_scaled(2000);
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;

    (void)state;
    test_needs_kvm();
    run_calls(&config, &tracer_config, count, count / 60 + 1);
    config.trace_ring = 16 << 10;
    tracer_config.synchronous = true;
    run_calls(&config, &tracer_config, count / 4 + 1, count / 300 + 1);
}

/* ---- exits of every kind ------------------------------------------------------------------------------- */

static void exits_of_every_kind_deliver_each_record_once(void **state) {
    static const struct {
        uint32_t before, times, between;
    } shapes[] = {{0, 3, 0}, {0, 3, 1}, {5, 3, 0}, {3, 3, 2}, {900, 2, 900}, {682, 2, 1}};
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        ph_config config = PH_CONFIG_INIT;
        struct traced traced;
        uint64_t next = 0;
        tracer_config.synchronous = synchronous;
        config.trace_ring = 16 << 10; /* 682 events: full once, twice, never */
        config.keep_output = 4096;
        traced_begin(&traced, GUEST, &config, &tracer_config);
        for (uint32_t kind = 0; kind <= 8; kind++)
            for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
                trace_collect_clear(&traced.collect);
                ph_interrupt(traced.sandbox); /* too late, or too early: an exit at most */
                traced_call(
                    &traced, "exits",
                    ARGS(U32(kind), U32(shapes[i].before), U32(shapes[i].times), U32(shapes[i].between)),
                    PH_OK, NULL);
                traced_flush(&traced);
                uint64_t count = shapes[i].before + (uint64_t)shapes[i].times * shapes[i].between;
                if (kind == 6 || kind == 7) /* the handler's own */
                    count += shapes[i].times;
                trace_sequence_check(&traced.collect, "at", next, count);
                next += count;
                assert_int_equal(trace_spans_named(&traced.collect, "exits"), 1);
                assert_false(trace_span_named(&traced.collect, "exits")->unfinished);
                assert_int_equal(trace_spans_named(&traced.collect, "handler"),
                                 kind == 7 ? shapes[i].times : 0);
                assert_int_equal(trace_spans_named(&traced.collect, "host visit"),
                                 kind == 1 ? shapes[i].times : 0);
                trace_collect_check(&traced.collect);
            }
        const ph_trace_stats stats = traced_stats(&traced);
        assert_int_equal(stats.malformed + stats.unknown_ends + stats.gaps + stats.dropped_queue, 0);
        assert_true(stats.exits > 0);
        traced_end(&traced);
    }
}

static void calls_with_few_records_cause_no_exit(void **state) {
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    for (int i = 0; i < 50; i++)
        traced_call(&traced, "spans", ARGS(U64(100)), PH_OK, &result);
    assert_int_equal(traced_stats(&traced).exits, 0);
    traced_end(&traced);
}

/* ---- no orphans ---------------------------------------------------------------------------------------- */

static const ph_trace_span *parent_of(const struct traced *traced, const ph_trace_span *span) {
    const ph_trace_span *parent = trace_span_by_id(&traced->collect, span->parent);

    if (!parent)
        fail_msg("`%s` has no parent", span->name);
    return parent;
}

static void start_up_is_a_span_with_all_that_happens_in_it(void **state) {
    struct traced traced;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    traced_finish(&traced);
    const ph_trace_span *init = trace_span_named(&traced.collect, "guest.init");
    assert_int_equal(init->kind, PH_SPAN_GUEST);
    assert_false(init->unfinished);
    assert_string_equal(parent_of(&traced, init)->name, "start");
    assert_int_equal(parent_of(&traced, init)->kind, PH_SPAN_HOST);
    static const char *const spans[] = {"construct", "prepare"};
    static const char *const events[] = {"constructing", "preparing"};
    for (int i = 0; i < 2; i++) {
        const ph_trace_span *span = trace_span_named(&traced.collect, spans[i]);
        assert_int_equal(span->parent, init->id);
        assert_false(span->unfinished);
        assert_int_equal(trace_event_named(&traced.collect, events[i])->span, span->id);
    }
    static const char *const hosts[] = {"create", "load", "start", "destroy"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(trace_spans_named(&traced.collect, hosts[i]), 1);
    traced_free(&traced);
}

static void host_calls_lie_under_the_guests_span_that_was_open(void **state) {
    (void)state;
    test_needs_kvm();

    for (uint32_t exits = 0; exits < 3; exits++) {
        struct traced traced;
        ph_value result;
        traced_begin(&traced, GUEST, NULL, NULL);
        traced_call(&traced, "visit_late", ARGS(U32(exits)), PH_OK, &result);
        assert_int_equal(result.u64, 1 + 2 + 3 + 3);
        traced_finish(&traced);
        const ph_trace_span *around = trace_span_named(&traced.collect, "around");
        const ph_trace_span *inside = trace_span_named(&traced.collect, "inside");
        const ph_trace_span *guest = trace_span_named(&traced.collect, "guest visit_late");
        const ph_trace_span *call = trace_span_named(&traced.collect, "call visit_late");
        assert_int_equal(inside->parent, around->id);
        assert_int_equal(around->parent, guest->id);
        assert_int_equal(guest->parent, call->id);
        assert_int_equal(call->parent, 0);
        assert_int_equal(guest->kind, PH_SPAN_GUEST);
        assert_int_equal(call->kind, PH_SPAN_CALL);
        assert_int_equal(trace_spans_named(&traced.collect, "host visit"), 3);
        size_t at = 0;
        for (int i = 0; i < 3; i++, at++) {
            const ph_trace_span *host = trace_span_find(&traced.collect, "host visit", at, &at);
            assert_int_equal(host->parent, i == 1 ? inside->id : around->id);
            assert_int_equal(host->kind, PH_SPAN_HOST_FUNCTION);
            assert_false(host->unfinished);
        }
        const ph_trace_event *event = trace_event_named(&traced.collect, "at");
        assert_int_equal(event->span, around->id);
        traced_free(&traced);
    }
}

static void spans_that_are_open_while_the_ring_is_drained_keep_their_children(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    config.trace_ring = 16 << 10;
    traced_begin(&traced, GUEST, &config, NULL);
    traced_call(&traced, "spans_in_spans", ARGS(U64(3), U32(9)), PH_OK, &result);
    traced_finish(&traced);
    assert_int_equal(result.u64, 3 * 3 * 1023);
    assert_int_equal(trace_spans_named(&traced.collect, "outer"), 3 * 1023);
    for (size_t i = 0; i < traced.collect.span_count; i++)
        assert_false(traced.collect.spans[i].span.unfinished);
    traced_free(&traced);
}

static void a_guests_error_leaves_no_span_open(void **state) {
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    for (int32_t i = 0; i < 3; i++) {
        traced_call(&traced, "fails", ARGS(I32(40 + i)), PH_E_GUEST, NULL);
        traced_call(&traced, "spans", ARGS(U64(2)), PH_OK, &result);
    }
    traced_finish(&traced);
    size_t at = 0;
    for (int i = 0; i < 3; i++, at++) {
        const ph_trace_span *span = trace_span_find(&traced.collect, "failing", at, &at);
        assert_non_null(span);
        assert_true(span->unfinished);
    }
    at = 0;
    for (int i = 0; i < 3; i++, at++) {
        const ph_trace_span *call = trace_span_find(&traced.collect, "call fails", at, &at);
        assert_non_null(call);
        assert_int_equal(call->status, PH_E_GUEST);
        assert_false(call->unfinished);
        assert_string_equal(call->message, "as it was asked");
    }
    at = 0;
    for (int i = 0; i < 6; i++, at++) {
        const ph_trace_span *work = trace_span_find(&traced.collect, "work", at, &at);
        assert_non_null(work);
        assert_false(work->unfinished);
        assert_string_equal(parent_of(&traced, work)->name, "guest spans");
    }
    trace_sequence_check(&traced.collect, "at", 0, 9);
    traced_free(&traced);
}

static void asynchronous_spans_outlive_their_call(void **state) {
    struct traced traced;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    for (uint64_t id = 1; id <= 4; id++)
        traced_call(&traced, "async_begin", ARGS(U64(id)), PH_OK, NULL);
    for (uint64_t id = 3; id >= 1; id--)
        traced_call(&traced, "async_end", ARGS(U64(id)), PH_OK, NULL);
    traced_call(&traced, "async_end", ARGS(U64(99)), PH_OK, NULL);
    assert_int_equal((traced_flush(&traced), traced_stats(&traced).unknown_ends), 1);
    traced_finish(&traced);
    assert_int_equal(trace_spans_named(&traced.collect, "job"), 4);
    static const uint64_t order[] = {3, 2, 1, 4}; /* the one that nobody has ended comes last */
    size_t at = 0;
    for (int i = 0; i < 4; i++, at++) {
        const ph_trace_span *job = trace_span_find(&traced.collect, "job", at, &at);
        assert_int_equal(trace_number(job->fields, job->field_count, "id"), order[i]);
        assert_int_equal(job->kind, PH_SPAN_ASYNC);
        assert_int_equal(job->unfinished, order[i] == 4);
        assert_string_equal(parent_of(&traced, job)->name, "guest async_begin");
    }
    traced_free(&traced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_without_end_lose_and_keep_nothing),
        cmocka_unit_test(exits_of_every_kind_deliver_each_record_once),
        cmocka_unit_test(calls_with_few_records_cause_no_exit),
        cmocka_unit_test(start_up_is_a_span_with_all_that_happens_in_it),
        cmocka_unit_test(host_calls_lie_under_the_guests_span_that_was_open),
        cmocka_unit_test(spans_that_are_open_while_the_ring_is_drained_keep_their_children),
        cmocka_unit_test(a_guests_error_leaves_no_span_open),
        cmocka_unit_test(asynchronous_spans_outlive_their_call),
    };

    return cmocka_run_group_tests_name("trace calls", tests, NULL, NULL);
}
