/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The counts of all sandboxes together (pinhole/metrics.h). Its lock is for the list of sandboxes and for the
 * tracer: held to add numbers up and never longer, and never by who counts. While it is held, that of a
 * tracer's list may be taken, which is a leaf (trace/tracer.h).
 */
#include <pinhole/metrics.h>

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/process.h"
#include "base/time.h"
#include "metrics/table.h"
#include "trace/stats.h"

/* What is counted of a tracer. */
struct traced {
    uint64_t records;
    uint64_t drops[PH__DROP_CAUSES];
    uint64_t lost_bytes;
};

struct ph_metrics {
    uint64_t owner;
    uint64_t start_ns; /* since 1970 */

    /* What is no sandbox's alone: any thread adds to it. */
    _Atomic uint64_t shared[PH__CELLS_COUNTED];

    pthread_mutex_t lock;
    pthread_cond_t ended; /* a tracer's end has come to its end */
    struct ph__counts *list;
    uint64_t active;
    ph_tracer *tracer; /* NULL: none is watched */
    struct ph__tracer_watch watch;
    struct traced before;   /* what it had counted when that began */
    struct traced finished; /* of tracers that were watched */
};

/* ---- life ---------------------------------------------------------------------------------------------- */

ph_status ph_metrics_create(ph_metrics **metrics, ph_error *error) {
    if (!metrics)
        return ph__error_set(error, PH_E_ARGUMENT, "a place for the metrics is needed");
    *metrics = NULL;
    ph_status status = ph__process_init(error);
    if (status != PH_OK)
        return status;
    ph_metrics *made = calloc(1, sizeof *made);
    if (!made)
        return ph__error_set(error, PH_E_MEMORY, "no memory for metrics");
    made->owner = ph__process_id();
    made->start_ns = ph__time_ns(CLOCK_REALTIME);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->ended, NULL);
    *metrics = made;
    return PH_OK;
}

void ph_metrics_destroy(ph_metrics *metrics) {
    if (!metrics)
        return;
    /* In a child it may be held for ever. */
    if (metrics->owner == ph__process_id()) {
        ph_metrics_watch_tracer(metrics, NULL);
        pthread_cond_destroy(&metrics->ended);
        pthread_mutex_destroy(&metrics->lock);
    }
    free(metrics);
}

ph_status ph__counts_open(ph_metrics *metrics, uint64_t tsc_khz, struct ph__counts **counts,
                          ph_error *error) {
    *counts = NULL;
    if (!metrics)
        return PH_OK;
    if (metrics->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED, "the metrics were made before fork()");
    struct ph__counts *made = calloc(1, sizeof *made);
    if (!made)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the sandbox's metrics");
    made->metrics = metrics;
    made->cycle_ns = (1000000ull << 32) / tsc_khz;
    pthread_mutex_lock(&metrics->lock);
    made->next = metrics->list;
    if (made->next)
        made->next->previous = made;
    metrics->list = made;
    metrics->active++;
    pthread_mutex_unlock(&metrics->lock);
    ph__count_shared(metrics, PH__CELL_CREATIONS, 1);
    *counts = made;
    return PH_OK;
}

/* A number that another thread may be adding to. */
static uint64_t look(const _Atomic uint64_t *cell) {
    return atomic_load_explicit((_Atomic uint64_t *)cell, memory_order_relaxed);
}

void ph__counts_close(struct ph__counts *counts, bool forked) {
    if (!counts)
        return;
    ph_metrics *metrics = counts->metrics;
    if (!forked) {
        pthread_mutex_lock(&metrics->lock);
        for (unsigned i = 0; i < PH__CELLS_COUNTED; i++)
            if (look(&counts->cells[i]))
                ph__count_shared(metrics, i, look(&counts->cells[i]));
        if (counts->next)
            counts->next->previous = counts->previous;
        if (counts->previous)
            counts->previous->next = counts->next;
        else
            metrics->list = counts->next;
        metrics->active--;
        pthread_mutex_unlock(&metrics->lock);
    }
    free(counts);
}

void ph__count_shared(ph_metrics *metrics, unsigned cell, uint64_t more) {
    if (metrics)
        atomic_fetch_add_explicit(&metrics->shared[cell], more, memory_order_relaxed);
}

void ph_metrics_count_export(ph_metrics *metrics, ph_export_signal signal, uint64_t sent, uint64_t failed) {
    if ((unsigned)signal >= PH__SIGNALS)
        return;
    ph__count_shared(metrics, PH__CELL_SENT + (unsigned)signal, sent);
    ph__count_shared(metrics, PH__CELL_EXPORT_FAILURES + (unsigned)signal, failed);
}

/* ---- the tracer ---------------------------------------------------------------------------------------- */

/* Adds what (tracer) has counted. */
static void traced_add(struct traced *sum, ph_tracer *tracer, uint64_t *queued) {
    ph_trace_stats stats;

    ph__tracer_look(tracer, &stats, queued);
    sum->records += stats.records;
    sum->drops[0] += stats.dropped_ring;
    sum->drops[1] += stats.dropped_queue;
    sum->drops[2] += stats.dropped_budget;
    sum->drops[3] += stats.malformed;
    sum->lost_bytes += stats.lost_bytes;
}

/* All of it is counts. */
static void traced_subtract(struct traced *sum, const struct traced *less) {
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)less;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] -= from[i];
}

/* Everything that was traced up to now. */
static struct traced traced_now(const ph_metrics *metrics, uint64_t *queued) {
    struct traced sum = metrics->finished;

    *queued = 0;
    if (metrics->tracer) {
        traced_add(&sum, metrics->tracer, queued);
        traced_subtract(&sum, &metrics->before);
    }
    return sum;
}

/* The tracer is about to be gone: its counts stay. */
static void tracer_ended(struct ph__tracer_watch *watch) {
    ph_metrics *metrics = (ph_metrics *)((char *)watch - offsetof(ph_metrics, watch));
    uint64_t queued;

    pthread_mutex_lock(&metrics->lock);
    metrics->finished = traced_now(metrics, &queued);
    metrics->tracer = NULL;
    /* Before the lock is given back: whoever waits may free (metrics) then. */
    pthread_cond_broadcast(&metrics->ended);
    pthread_mutex_unlock(&metrics->lock);
}

/* Stops watching; with the lock held, which is given back while another thread ends the tracer. */
static void unwatch(ph_metrics *metrics) {
    uint64_t queued;

    while (metrics->tracer) {
        /* Before it is let go, since it may be freed from then on. */
        const struct traced now = traced_now(metrics, &queued);
        if (ph__tracer_unwatch(metrics->tracer, &metrics->watch)) {
            metrics->finished = now;
            metrics->tracer = NULL;
        } else {
            pthread_cond_wait(&metrics->ended, &metrics->lock);
        }
    }
}

/* Begins to watch, when nothing is watched; with the lock held. */
static ph_status watch(ph_metrics *metrics, ph_tracer *tracer) {
    uint64_t queued;

    metrics->watch.ended = tracer_ended;
    ph_status status = ph__tracer_watch(tracer, &metrics->watch);
    if (status != PH_OK)
        return status;
    metrics->tracer = tracer;
    metrics->before = (struct traced){0};
    traced_add(&metrics->before, tracer, &queued);
    return PH_OK;
}

ph_status ph_metrics_watch_tracer(ph_metrics *metrics, ph_tracer *tracer) {
    if (!metrics)
        return PH_E_ARGUMENT;
    if (metrics->owner != ph__process_id())
        return PH_E_FORKED;
    pthread_mutex_lock(&metrics->lock);
    unwatch(metrics);
    ph_status status = tracer ? watch(metrics, tracer) : PH_OK;
    pthread_mutex_unlock(&metrics->lock);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const uint64_t *cells, size_t count) {
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += cells[i];
    return sum;
}

/* Fills in the PH__CELLS cells. False in a child of the process that made (metrics). */
static bool collect(ph_metrics *metrics, uint64_t *cells) {
    uint64_t queued = 0;

    memset(cells, 0, PH__CELLS * sizeof *cells);
    if (!metrics || metrics->owner != ph__process_id())
        return false;
    pthread_mutex_lock(&metrics->lock);
    for (unsigned i = 0; i < PH__CELLS_COUNTED; i++)
        cells[i] = look(&metrics->shared[i]);
    for (const struct ph__counts *counts = metrics->list; counts; counts = counts->next)
        for (unsigned i = 0; i < PH__CELLS_COUNTED; i++)
            cells[i] += look(&counts->cells[i]);
    cells[PH__CELL_ACTIVE] = metrics->active;
    const struct traced traced = traced_now(metrics, &queued);
    pthread_mutex_unlock(&metrics->lock);
    cells[PH__CELL_CALLS] = sum_of(&cells[PH__CELL_CALL], PH_METRIC_BUCKETS);
    cells[PH__CELL_HOST_CALLS] = sum_of(&cells[PH__CELL_HOST_FUNCTION], PH_METRIC_BUCKETS);
    cells[PH__CELL_RESTORES] = sum_of(&cells[PH__CELL_RESTORE], PH_METRIC_BUCKETS);
    cells[PH__CELL_TRACE_RECORDS] = traced.records;
    memcpy(&cells[PH__CELL_TRACE_DROPPED], traced.drops, sizeof traced.drops);
    cells[PH__CELL_TRACE_LOST] = traced.lost_bytes;
    cells[PH__CELL_TRACE_QUEUE] = queued;
    return true;
}

ph_status ph_metrics_read(ph_metrics *metrics, ph_metrics_values *values) {
    uint64_t cells[PH__CELLS];

    if (!metrics || !values || values->size != sizeof *values)
        return PH_E_ARGUMENT;
    if (!collect(metrics, cells))
        return PH_E_FORKED;
    const uint64_t *errors = &cells[PH__CELL_ERRORS];
    *values = (ph_metrics_values){
        .size = sizeof *values,
        .sandboxes = cells[PH__CELL_ACTIVE],
        .sandboxes_created = cells[PH__CELL_CREATIONS],
        .calls = cells[PH__CELL_CALLS],
        .errors = sum_of(errors, PH__STATUSES),
        .faults = sum_of(&errors[PH__STATUS_E_PAGE_FAULT], PH__STATUSES - PH__STATUS_E_PAGE_FAULT),
        .interrupts = errors[PH__STATUS_E_INTERRUPTED],
        .time_outs = errors[PH__STATUS_E_TIMED_OUT],
        .exits = sum_of(&cells[PH__CELL_EXITS], PH__COUNTED_EXITS),
        .host_calls = cells[PH__CELL_HOST_CALLS],
        .host_call_errors = cells[PH__CELL_HOST_FUNCTION_ERRORS],
        .restores = cells[PH__CELL_RESTORES],
        .pages_copied = cells[PH__CELL_RESTORE_PAGES],
        .output_bytes = cells[PH__CELL_OUTPUT],
        .call_ns = cells[PH__CELL_CALL + PH__HISTOGRAM_SUM],
        .guest_ns = cells[PH__CELL_GUEST + PH__HISTOGRAM_SUM],
        .host_ns = cells[PH__CELL_HOST_FUNCTION + PH__HISTOGRAM_SUM],
        .trace_records = cells[PH__CELL_TRACE_RECORDS],
        .trace_dropped = sum_of(&cells[PH__CELL_TRACE_DROPPED], PH__DROP_CAUSES),
        .trace_queued_bytes = cells[PH__CELL_TRACE_QUEUE],
        .exported = sum_of(&cells[PH__CELL_SENT], PH__SIGNALS),
        .export_failures = sum_of(&cells[PH__CELL_EXPORT_FAILURES], PH__SIGNALS),
    };
    return PH_OK;
}

/* Fills in what (metric) of (family) is now, from its first cell at (cells). */
static void fill(ph_metric *metric, const struct ph__metric_family *family, const uint64_t *cells) {
    if (family->kind != PH_METRIC_HISTOGRAM) {
        metric->value = *cells;
        return;
    }
    metric->count = sum_of(cells, PH_METRIC_BUCKETS);
    metric->sum = (double)cells[PH__HISTOGRAM_SUM] / 1e9;
    metric->buckets = cells;
    metric->bounds = ph__metric_bounds;
    metric->bucket_count = PH_METRIC_BUCKETS;
}

void ph_metrics_visit(ph_metrics *metrics, void (*visit)(void *context, const ph_metric *metric),
                      void *context) {
    uint64_t cells[PH__CELLS];

    /* Added up first: (visit) may take its time, and use sandboxes. */
    if (!visit || !collect(metrics, cells))
        return;
    for (size_t i = 0; i < PH__METRIC_FAMILIES; i++) {
        const struct ph__metric_family *family = &ph__metric_families[i];
        for (size_t j = 0; j < family->count; j++) {
            ph_metric metric = {
                .size = sizeof metric,
                .name = family->name,
                .unit = family->unit,
                .description = family->description,
                .kind = family->kind,
                .attribute = family->attribute,
                .attribute_value = family->attribute ? family->values[j] : NULL,
                .start_ns = metrics->start_ns,
            };
            fill(&metric, family, &cells[family->cell + family->skipped + j]);
            visit(context, &metric);
        }
    }
}
