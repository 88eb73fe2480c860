/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Filters, also such that change while guests run, tracers with and without a worker, and many sandboxes of
 * one tracer in many threads. Also run under ThreadSanitizer.
 */
#include "support/traced.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define GUEST "trace-work"

static void sleep_ms(unsigned ms) {
    const struct timespec wanted = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&wanted, NULL);
}

static void set_filter(struct traced *traced, const char *filter) {
    ph_error error;

    if (ph_tracer_set_filter(traced->tracer, filter, &error) != PH_OK)
        fail_msg("%s: %s", filter, error.message);
}

/* ---- what is wanted ------------------------------------------------------------------------------------ */

/* The export `levels` brings these, as far as they are wanted. */
static const char *const names[] = {"levels",    "quiet.debug", "quiet.info", "loud.error",  "loud.warn",
                                    "loud.info", "loud.debug",  "loud.trace", "a line of %s"};
#define NAMES (sizeof names / sizeof names[0])

struct wanted {
    const char *filter;
    const char *which; /* an x for each that comes */
};

static void filter_check(struct traced *traced, const struct wanted *wanted) {
    trace_collect_clear(&traced->collect);
    traced_call(traced, "levels", NO_ARGS, PH_OK, NULL);
    traced_flush(traced);
    for (size_t i = 0; i < NAMES; i++) {
        size_t came =
            trace_spans_named(&traced->collect, names[i]) + trace_events_named(&traced->collect, names[i]);
        size_t due = wanted->which[i] == 'x';
        if (came != due)
            fail_msg("filter `%s`: `%s` came %zu times", wanted->filter, names[i], came);
    }
    trace_collect_check(&traced->collect);
}

static const struct wanted filters[] = {
    {"off", "........."},
    {"error", "...x....."},
    {"warn", "x..xx...."},
    {"info", "x.xxxx..."},
    {"debug", "xxxxxxx.x"},
    {"trace", "xxxxxxxxx"},
    {"info", "x.xxxx..."},
    {"off,quiet_function=trace", ".xx......"},
    {"trace,quiet_function=off", "x..xxxxxx"},
    {"off,loud.*=info", "...xxx..."},
    {"info,loud.debug=debug", "x.xxxxx.."},
    {"off,trace_work.c=info", "x.xxxx..."},
    {"off,*trace_work.c=info", "x.xxxx..."},
    {"off,other.c=trace", "........."},
    {"info,loud_function=off,loud.error=error", "x.x......"}, /* the function's name is the longer one */
    {"info,loud_fu*=off,loud.error=error", "x.xx....."},
    {"off,?oud.info=info", ".....x..."},
    {"info,loud.[ei]*=off", "x.x.x...."},
    {"off,*=warn", "x..xx...."},
    {"debug,*=warn", "x..xx...."},
};

static void filters_choose_by_level_file_function_and_name(void **state) {
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        struct traced traced;
        tracer_config.synchronous = synchronous;
        traced_begin(&traced, GUEST, NULL, &tracer_config);
        for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
            set_filter(&traced, filters[i].filter);
            filter_check(&traced, &filters[i]);
        }
        traced_end(&traced);
    }
}

/* From the first record on: the filter that the tracer was made with. */
static void the_first_filter_holds_from_the_start(void **state) {
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < 9; i++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        struct traced traced;
        tracer_config.filter = filters[i].filter;
        traced_begin(&traced, GUEST, NULL, &tracer_config);
        filter_check(&traced, &filters[i]);
        traced_end(&traced);
    }
}

static void what_is_off_is_not_recorded_at_all(void **state) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    struct traced traced;
    ph_value result;

    (void)state;
    test_needs_kvm();
    tracer_config.filter = "off";
    traced_begin(&traced, GUEST, NULL, &tracer_config);
    traced_call(&traced, "spans", ARGS(U64(1000)), PH_OK, &result);
    traced_call(&traced, "everything", ARGS(STR("text")), PH_OK, NULL);
    traced_flush(&traced);
    assert_int_equal(traced_stats(&traced).bytes, 0);
    traced_finish(&traced);
    assert_int_equal(traced.collect.span_count, 0);
    assert_int_equal(traced.collect.event_count, 0);
    traced_free(&traced);
}

static void filters_that_make_no_sense_are_refused_and_change_nothing(void **state) {
    static const char *const bad[] = {"", "loud", "info,x=loud", "=info", "x="};
    struct traced traced;
    ph_error error;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (ph_tracer_set_filter(traced.tracer, bad[i], &error) != PH_E_ARGUMENT)
            fail_msg("`%s` was taken", bad[i]);
        filter_check(&traced, &(const struct wanted){"info", "x.xxxx..."});
    }
    traced_end(&traced);
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static void fields_of_every_type_arrive(void **state) {
    struct traced traced;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    set_filter(&traced, "debug");
    traced_call(&traced, "everything", ARGS(STR("h\xc3\xa9llo \xff")), PH_OK, NULL);
    traced_finish(&traced);
    const ph_trace_event *all = trace_event_named(&traced.collect, "all");
    assert_int_equal(all->field_count, 7);
    assert_int_equal(all->fields[0].value.i64, -1);
    assert_int_equal(all->fields[1].value.u64, 1);
    assert_true(all->fields[2].value.f64 == 1.5);
    assert_true(all->fields[3].value.boolean);
    assert_string_equal(all->fields[4].name, "s");
    assert_memory_equal(all->fields[4].value.str, "h\xc3\xa9llo ", 7);
    assert_int_equal(all->fields[5].value.bytes.size, 8);
    assert_memory_equal(all->fields[5].value.bytes.data, "h\xc3\xa9llo \xff", 8);
    assert_int_equal(all->fields[6].value.type, PH_POINTER);
    assert_int_equal(all->fields[6].value.u64, 0x1234);
    assert_non_null(strstr(all->source.file, "trace_work.c"));
    assert_string_equal(all->source.function, "everything");
    assert_true(all->source.line > 0);
    const ph_trace_span *span = trace_span_named(&traced.collect, "everything");
    assert_int_equal(span->field_count, 3);
    assert_string_equal(span->fields[2].name, "later");
    assert_int_equal(all->span, span->id);
    const ph_trace_event *line = trace_event_named(&traced.collect, "%s is %d of %.2f");
    assert_int_equal(line->level, PH_LEVEL_WARN);
    assert_non_null(strstr(line->message, " is 7 of 2.50"));
    assert_int_equal(trace_spans_named(&traced.collect, "by hand"), 1);
    assert_int_equal(traced.collect.counter_count, 2);
    assert_true(traced.collect.counters[1].counter.value.f64 == 0.25);
    traced_free(&traced);
}

/* ---- live ---------------------------------------------------------------------------------------------- */

struct running {
    struct traced *traced;
    ph_status status;
};

static void *run_for_ever(void *argument) {
    struct running *running = argument;

    running->status = ph_call(running->traced->sandbox,
                              ph_image_find_export(running->traced->image, "events_for_ever"), NULL, 0, NULL);
    return NULL;
}

/* Waits until more events come, or fails the test. */
static void events_come(struct traced *traced) {
    size_t before = traced->collect.event_count;

    for (int i = 0; i < 5000 && traced->collect.event_count < before + 3; i++)
        sleep_ms(1);
    assert_true(traced->collect.event_count >= before + 3);
}

static void filters_change_while_a_guest_runs(void **state) {
    struct running running = {0};
    struct traced traced;
    pthread_t thread;

    (void)state;
    test_needs_kvm();
    traced_begin(&traced, GUEST, NULL, NULL);
    running.traced = &traced;
    assert_int_equal(pthread_create(&thread, NULL, run_for_ever, &running), 0);
    for (int i = 0; i < 5; i++) {
        events_come(&traced);
        set_filter(&traced, "off");
        traced_flush(&traced);
        /* Neither told nor recorded, but for the one record that the guest may have been at. */
        const size_t before = traced.collect.event_count;
        const uint64_t bytes = traced_stats(&traced).bytes;
        sleep_ms(30);
        traced_flush(&traced);
        assert_int_equal(traced.collect.event_count, before);
        assert_true(traced_stats(&traced).bytes <= bytes + 24);
        set_filter(&traced, i % 2 ? "info" : "off,at=info");
    }
    events_come(&traced);
    ph_interrupt(traced.sandbox);
    pthread_join(thread, NULL);
    assert_int_equal(running.status, PH_E_INTERRUPTED);
    traced_finish(&traced);
    /* In order, with holes where they were off. */
    uint64_t next = 0;
    size_t at = 0;
    for (const ph_trace_event *event; (event = trace_event_find(&traced.collect, "at", at, &at)); at++) {
        uint64_t n = trace_number(event->fields, event->field_count, "n");
        assert_true(n >= next);
        next = n + 1;
    }
    traced_free(&traced);
}

/* ---- with a worker and without ------------------------------------------------------------------------- */

static void record_some(struct traced *traced, bool synchronous) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    ph_value result;

    tracer_config.synchronous = synchronous;
    config.trace_ring = 32 << 10;
    config.keep_output = 100;
    traced_begin(traced, GUEST, &config, &tracer_config);
    traced_call(traced, "visit_late", ARGS(U32(2)), PH_OK, &result);
    traced_call(traced, "spans_in_spans", ARGS(U64(2), U32(6)), PH_OK, &result);
    traced_call(traced, "everything", ARGS(STR("text")), PH_OK, NULL);
    traced_call(traced, "fails", ARGS(I32(7)), PH_E_GUEST, NULL);
    traced_call(traced, "async_begin", ARGS(U64(1)), PH_OK, NULL);
    traced_call(traced, "async_end", ARGS(U64(1)), PH_OK, NULL);
    traced_call(traced, "exits", ARGS(U32(7), U32(2), U32(2), U32(2)), PH_OK, NULL);
    traced_finish(traced);
}

static const char *name_of_parent(const struct trace_collect *collect, uint64_t id) {
    const ph_trace_span *span = trace_span_by_id(collect, id);
    return span ? span->name : "";
}

static void both_kinds_of_tracer_tell_the_same(void **state) {
    struct traced one, two;

    (void)state;
    test_needs_kvm();
    record_some(&one, true);
    record_some(&two, false);
    assert_int_equal(one.collect.span_count, two.collect.span_count);
    assert_int_equal(one.collect.event_count, two.collect.event_count);
    assert_int_equal(one.collect.counter_count, two.collect.counter_count);
    for (size_t i = 0; i < one.collect.span_count; i++) {
        const ph_trace_span *a = &one.collect.spans[i].span, *b = &two.collect.spans[i].span;
        assert_string_equal(a->name, b->name);
        assert_string_equal(name_of_parent(&one.collect, a->parent), name_of_parent(&two.collect, b->parent));
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->unfinished, b->unfinished);
        assert_int_equal(a->status, b->status);
        assert_int_equal(a->field_count, b->field_count);
        assert_int_equal(one.collect.spans[i].order, two.collect.spans[i].order);
    }
    for (size_t i = 0; i < one.collect.event_count; i++) {
        const ph_trace_event *a = &one.collect.events[i].event, *b = &two.collect.events[i].event;
        assert_string_equal(a->name, b->name);
        assert_string_equal(name_of_parent(&one.collect, a->span), name_of_parent(&two.collect, b->span));
        assert_int_equal(a->field_count, b->field_count);
    }
    traced_free(&one);
    traced_free(&two);
}

/* ---- many threads -------------------------------------------------------------------------------------- */

#define THREADS 4
#define CALLS 40

struct worker {
    ph_tracer *tracer;
    ph_image *image;
    uint64_t numbers[2];
    ph_status status;
    atomic_bool *stop;
};

/* Two sandboxes, one after the other; asserts nothing, since a failed assert may not jump out of a thread. */
static void *work(void *argument) {
    struct worker *worker = argument;

    for (int round = 0; round < 2 && worker->status == PH_OK; round++) {
        ph_config config = PH_CONFIG_INIT;
        ph_sandbox *sandbox = NULL;
        ph_trace_stats stats;
        ph_error error;
        const ph_value count = {.type = PH_STR, .str = "nothing"};
        const ph_value events = {.type = PH_U64, .u64 = 20};
        config.tracer = worker->tracer;
        config.trace_ring = 16 << 10;
        config.timeout_ns = TEST_TIMEOUT_NS;
        worker->status = ph_sandbox_create(worker->image, &config, &sandbox, &error);
        if (worker->status == PH_OK)
            worker->status = ph_sandbox_start(sandbox);
        for (int i = 0; i < CALLS && worker->status == PH_OK; i++) {
            const ph_value args[] = {count, events};
            worker->status = ph_call(sandbox, ph_image_find_export(worker->image, "end_by"), args, 2, NULL);
            ph_sandbox_trace_stats(sandbox, &stats);
        }
        worker->numbers[round] = sandbox ? ph_sandbox_trace_number(sandbox) : 0;
        ph_sandbox_destroy(sandbox);
    }
    return NULL;
}

static void *change_filters(void *argument) {
    struct worker *worker = argument;

    while (!*worker->stop) {
        ph_trace_stats stats;
        ph_error error;
        /* Each of them wants the events that are counted. */
        ph_tracer_set_filter(worker->tracer, "info", &error);
        ph_tracer_set_filter(worker->tracer, "debug,other=off", &error);
        ph_tracer_flush(worker->tracer, 0);
        ph_tracer_stats(worker->tracer, &stats);
        sleep_ms(1);
    }
    return NULL;
}

static void one_tracer_takes_many_sandboxes_in_many_threads(void **state) {
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
        struct worker workers[THREADS + 1];
        struct trace_collect collect;
        pthread_t threads[THREADS + 1];
        atomic_bool stop = false;
        tracer_config.synchronous = synchronous;
        trace_collect_init(&collect);
        ph_tracer *tracer = trace_collect_tracer(&collect, &tracer_config);
        ph_image *image = test_image("trace-ends");
        for (int i = 0; i <= THREADS; i++) {
            workers[i] = (struct worker){.tracer = tracer, .image = image, .stop = &stop};
            assert_int_equal(
                pthread_create(&threads[i], NULL, i < THREADS ? work : change_filters, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        stop = true;
        pthread_join(threads[THREADS], NULL);
        ph_tracer_destroy(tracer);
        ph_image_close(image);
        trace_collect_check(&collect);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(workers[i].status, PH_OK);
            for (int round = 0; round < 2; round++) {
                uint64_t next = 0;
                for (size_t j = 0; j < collect.event_count; j++) {
                    const ph_trace_event *event = &collect.events[j].event;
                    if (event->sandbox != workers[i].numbers[round] || strcmp(event->name, "at") != 0)
                        continue;
                    assert_int_equal(trace_number(event->fields, event->field_count, "n"), next);
                    next++;
                }
                assert_int_equal(next, 20 * CALLS);
            }
        }
        trace_collect_free(&collect);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_choose_by_level_file_function_and_name),
        cmocka_unit_test(the_first_filter_holds_from_the_start),
        cmocka_unit_test(what_is_off_is_not_recorded_at_all),
        cmocka_unit_test(filters_that_make_no_sense_are_refused_and_change_nothing),
        cmocka_unit_test(fields_of_every_type_arrive),
        cmocka_unit_test(filters_change_while_a_guest_runs),
        cmocka_unit_test(both_kinds_of_tracer_tell_the_same),
        cmocka_unit_test(one_tracer_takes_many_sandboxes_in_many_threads),
    };

    return cmocka_run_group_tests_name("trace filter", tests, NULL, NULL);
}
