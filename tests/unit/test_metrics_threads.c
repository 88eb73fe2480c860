/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics from many threads: sandboxes that come, count and go, while others read. Nothing is lost, and
 * nothing that was read ever becomes less; and tracers that end when their metrics do. Built a second time
 * under ThreadSanitizer.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/trace.h>

#include "metrics/counts.h"
#include "support/support.h"

#define THREADS 4
#define ROUNDS 200u
#define CALLS 50u
#define ENDINGS 1000u
#define STEPS 64u

struct shared {
    ph_metrics *metrics;
    atomic_uint working;
};

static void *work(void *context) {
    struct shared *shared = context;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ph__counts *counts;
        ph_error error;
        if (ph__counts_open(shared->metrics, 1000000, &counts, &error) != PH_OK)
            abort();
        for (unsigned j = 0; j < CALLS; j++) {
            ph__count_end(counts, PH__CELL_CALL, ph__count_begin(counts), 1000, j ? PH_OK : PH_E_GUEST);
            ph__count(counts, PH__CELL_EXITS + PH__COUNTED_END, 1);
            ph_metrics_count_export(shared->metrics, PH_EXPORT_TRACES, 2, 1);
        }
        ph__counts_close(counts, false);
    }
    atomic_fetch_sub(&shared->working, 1);
    return NULL;
}

static void nothing_is_lost_between_threads(void **state) {
    struct shared shared = {.working = THREADS};
    ph_metrics_values last = PH_METRICS_VALUES_INIT;
    pthread_t threads[THREADS];
    ph_error error;
    (void)state;

    assert_int_equal(ph_metrics_create(&shared.metrics, &error), PH_OK);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &shared), 0);
    while (atomic_load(&shared.working)) {
        ph_metrics_values values = PH_METRICS_VALUES_INIT;
        assert_int_equal(ph_metrics_read(shared.metrics, &values), PH_OK);
        assert_true(values.sandboxes <= THREADS);
        assert_true(values.calls >= last.calls && values.exits >= last.exits);
        assert_true(values.exported >= last.exported && values.errors >= last.errors);
        last = values;
        free(ph_metrics_text(shared.metrics, PH_METRICS_PROMETHEUS, NULL));
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(ph_metrics_read(shared.metrics, &last), PH_OK);
    assert_int_equal(last.sandboxes, 0);
    assert_int_equal(last.sandboxes_created, THREADS * ROUNDS);
    assert_int_equal(last.calls, THREADS * ROUNDS * CALLS);
    assert_int_equal(last.exits, THREADS * ROUNDS * CALLS);
    assert_int_equal(last.errors, THREADS * ROUNDS);
    assert_int_equal(last.guest_ns, THREADS * ROUNDS * CALLS * 1000ull);
    assert_int_equal(last.exported, 2ull * THREADS * ROUNDS * CALLS);
    assert_int_equal(last.export_failures, THREADS * ROUNDS * CALLS);
    ph_metrics_destroy(shared.metrics);
}

/* ---- the end of a tracer ------------------------------------------------------------------------------- */

struct ending {
    ph_tracer *tracer;
    atomic_uint ready;
};

/* Two threads that leave this do so at the same time: what they meet in takes less than to be woken. */
static void meet(struct ending *ending) {
    atomic_fetch_add(&ending->ready, 1);
    while (atomic_load(&ending->ready) < 2)
        __builtin_ia32_pause();
}

static void *end_tracer(void *context) {
    struct ending *ending = context;

    meet(ending);
    ph_tracer_destroy(ending->tracer);
    return NULL;
}

/* Returns when another thread begins to destroy a tracer that is watched, or in (later) steps from then. */
static pthread_t ending_begin(struct ending *ending, ph_metrics **metrics, unsigned later) {
    pthread_t thread;

    assert_int_equal(ph_metrics_create(metrics, NULL), PH_OK);
    assert_int_equal(ph_tracer_create(NULL, &ending->tracer, NULL), PH_OK);
    assert_int_equal(ph_metrics_watch_tracer(*metrics, ending->tracer), PH_OK);
    atomic_store(&ending->ready, 0);
    assert_int_equal(pthread_create(&thread, NULL, end_tracer, ending), 0);
    meet(ending);
    for (unsigned i = 0; i < later; i++)
        __builtin_ia32_pause();
    return thread;
}

static void a_tracer_and_its_metrics_may_go_at_once(void **state) {
    struct ending ending;
    ph_metrics *metrics;
    (void)state;

    for (unsigned i = 0; i < ENDINGS; i++) {
        pthread_t thread = ending_begin(&ending, &metrics, i % STEPS);
        ph_metrics_destroy(metrics);
        pthread_join(thread, NULL);
    }
}

/* What the end of one tracer does is not done to the next one. */
static void a_tracer_may_go_while_another_one_is_watched(void **state) {
    struct ending ending;
    ph_metrics *metrics;
    ph_tracer *next;
    (void)state;

    for (unsigned i = 0; i < ENDINGS; i++) {
        assert_int_equal(ph_tracer_create(NULL, &next, NULL), PH_OK);
        pthread_t thread = ending_begin(&ending, &metrics, i % STEPS);
        assert_int_equal(ph_metrics_watch_tracer(metrics, next), PH_OK);
        pthread_join(thread, NULL);
        ph_metrics_destroy(metrics);
        ph_tracer_destroy(next);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_between_threads),
        cmocka_unit_test(a_tracer_and_its_metrics_may_go_at_once),
        cmocka_unit_test(a_tracer_may_go_while_another_one_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
