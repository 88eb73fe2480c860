/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A trace that goes to a collector of OpenTelemetry (trace_output.h). A collector that is not there is worth
 * one warning and no more: what the exporter says comes from its own thread, so the first of it is kept until
 * the end, and told then with what it has cost.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "cli/trace_output.h"

struct ph__collector {
    ph_otlp *otlp; /* NULL once it is finished */
    pthread_mutex_t lock;
    bool opening;      /* what is said now is about the settings */
    char reason[400];  /* under (lock) */
    ph_otlp_stats end; /* when it was finished */
};

/* A ph_diagnostics_fn. */
static void take_reason(void *context, const char *message) {
    struct ph__collector *collector = context;

    if (collector->opening) {
        ph__warn("%s", message);
        return;
    }
    pthread_mutex_lock(&collector->lock);
    if (!*collector->reason)
        snprintf(collector->reason, sizeof collector->reason, "%s", message);
    pthread_mutex_unlock(&collector->lock);
}

struct ph__collector *ph__collector_open(const char *url, ph_metrics *metrics, ph_sink *sink) {
    struct ph__collector *collector = calloc(1, sizeof *collector);
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    ph_error error;

    if (!collector) {
        ph__complain("no memory for the trace");
        return NULL;
    }
    pthread_mutex_init(&collector->lock, NULL);
    config.endpoint = url;
    config.metrics = metrics;
    config.diagnostics = take_reason;
    config.diagnostics_context = collector;
    collector->opening = true;
    ph_status status = ph_otlp_create(&config, &collector->otlp, &error);
    collector->opening = false;
    if (status == PH_OK) {
        ph_otlp_sink(collector->otlp, sink);
        return collector;
    }
    ph__complain("%s", error.message);
    ph__collector_free(collector);
    return NULL;
}

static void read_stats(const struct ph__collector *collector, ph_otlp_stats *stats) {
    *stats = (ph_otlp_stats)PH_OTLP_STATS_INIT;
    ph_otlp_get_stats(collector->otlp, stats);
}

uint64_t ph__collector_sent(const struct ph__collector *collector) {
    ph_otlp_stats stats;

    read_stats(collector, &stats);
    return stats.sent_spans + stats.sent_logs + stats.sent_points;
}

void ph__collector_finish(struct ph__collector *collector, uint64_t deadline_ns) {
    uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);

    /* What is not out then is given up, and is among what is lost below. */
    ph_otlp_shutdown(collector->otlp, deadline_ns > now_ns ? deadline_ns - now_ns : 1);
    read_stats(collector, &collector->end);
}

void ph__collector_warn(const struct ph__collector *collector) {
    const ph_otlp_stats *end = &collector->end;

    if (end->lost_spans + end->lost_logs + end->lost_points)
        ph__warn(
            "not all of the trace was sent: %llu spans, %llu log records and %llu metric points are lost%s%s",
            (unsigned long long)end->lost_spans, (unsigned long long)end->lost_logs,
            (unsigned long long)end->lost_points, *collector->reason ? "; " : "", collector->reason);
    else if (*collector->reason)
        ph__warn("%s", collector->reason);
}

void ph__collector_free(struct ph__collector *collector) {
    if (!collector)
        return;
    ph_otlp_destroy(collector->otlp);
    pthread_mutex_destroy(&collector->lock);
    free(collector);
}
