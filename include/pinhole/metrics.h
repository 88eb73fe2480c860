/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Metrics of sandboxes: counters and histograms of what they do, as numbers, as text for Prometheus, or over
 * OTLP (otlp.h). docs/metrics.md lists them all.
 *
 *     ph_metrics *metrics;
 *     ph_metrics_create(&metrics, &error);
 *     config.metrics = metrics;
 *     ...
 *     char *text = ph_metrics_text(metrics, PH_METRICS_PROMETHEUS, &size);
 *
 * One ph_metrics counts for any number of sandboxes. Nothing that a guest chooses becomes the name or the
 * label of a metric, so that no guest can make them many.
 *
 * Threads: every function here may be called from any thread, at any time. Counting costs a call a few
 * additions, and never waits. After fork() the child may only destroy what it inherited: there is nothing to
 * visit, PH_E_FORKED to read, and no text.
 */
#ifndef PINHOLE_METRICS_H
#define PINHOLE_METRICS_H

#include <pinhole/pinhole.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Counts of sandboxes. It must live longer than the sandboxes and the exporters that count into it.
 */
typedef struct ph_metrics ph_metrics;

/**
 * What a metric is. PH_METRIC_COUNTER only grows; PH_METRIC_GAUGE goes up and down; PH_METRIC_HISTOGRAM
 * counts values by size.
 */
typedef enum ph_metric_kind {
    PH_METRIC_COUNTER = 0,
    PH_METRIC_GAUGE = 1,
    PH_METRIC_HISTOGRAM = 2,
} ph_metric_kind;

/** The buckets of every histogram: 21 from 1 us to 10 s, and one for what is larger. */
#define PH_METRIC_BUCKETS 22

/**
 * One series: a metric with the values of its attributes. (name), (unit) and (description) follow
 * OpenTelemetry's conventions ("pinhole.call.duration", "s"); series of one metric come one after another.
 * (attribute) is NULL, or the name of its one attribute, and (attribute_value) its value. A counter or gauge
 * has (value). A histogram has (count) and (sum), and how many values were in each of the (bucket_count)
 * buckets: at most bounds[0], more than that and at most bounds[1], ...; the last has no bound.
 * (start_ns) is since when it counts, nanoseconds since 1970.
 */
typedef struct ph_metric {
    size_t size;
    const char *name;
    const char *unit;
    const char *description;
    ph_metric_kind kind;
    const char *attribute;
    const char *attribute_value;
    uint64_t start_ns;
    uint64_t value;
    uint64_t count;
    double sum;
    const uint64_t *buckets;
    const double *bounds;
    size_t bucket_count;
} ph_metric;

/**
 * Makes a ph_metrics that has counted nothing. It is the caller's, to be destroyed with ph_metrics_destroy.
 * PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_metrics_create(ph_metrics **metrics, ph_error *error);

/**
 * Frees (metrics), which may be NULL.
 */
PH_API void ph_metrics_destroy(ph_metrics *metrics);

/**
 * Counts what the tracer (trace.h) records and drops from now on, and the depth of its queues, among
 * (metrics), until the tracer is destroyed, or this is called with NULL or another one; the counts stay.
 * The two may be destroyed in any order, also by two threads at once. Waits for no sink. PH_E_ARGUMENT,
 * PH_E_FORKED (also for a tracer that was made before fork(): nothing is watched then).
 */
PH_API ph_status ph_metrics_watch_tracer(ph_metrics *metrics, struct ph_tracer *tracer);

/**
 * Calls (visit) with (context) for every series, as they are now. The ph_metric is only valid during the
 * call.
 */
PH_API void ph_metrics_visit(ph_metrics *metrics, void (*visit)(void *context, const ph_metric *metric),
                             void *context);

/**
 * Prometheus' text format, version 0.0.4, or OpenMetrics 1.0.
 */
typedef enum ph_metrics_format {
    PH_METRICS_PROMETHEUS = 0,
    PH_METRICS_OPENMETRICS = 1,
} ph_metrics_format;

/** The Content-Type of each format. */
#define PH_METRICS_PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define PH_METRICS_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/**
 * All metrics as text, NUL-terminated, in memory of malloc() that is the caller's; (*size) gets its bytes
 * without the NUL, and may be NULL. NULL without memory, or metrics. Names are as Prometheus has them
 * (pinhole_call_duration_seconds).
 */
PH_API char *ph_metrics_text(ph_metrics *metrics, ph_metrics_format format, size_t *size);

/** What is exported, and its values of the attribute `signal`. */
typedef enum ph_export_signal {
    PH_EXPORT_TRACES = 0,
    PH_EXPORT_LOGS = 1,
    PH_EXPORT_METRICS = 2,
} ph_export_signal;

/**
 * For exporters: counts (sent) items of (signal) that were taken, and (failed) that were lost.
 */
PH_API void ph_metrics_count_export(ph_metrics *metrics, ph_export_signal signal, uint64_t sent,
                                    uint64_t failed);

/**
 * Counts as numbers; times are nanoseconds. (errors) and (faults) are sums over all codes. What each is,
 * docs/metrics.md says.
 */
typedef struct ph_metrics_values {
    /** sizeof(ph_metrics_values), set by PH_METRICS_VALUES_INIT: the struct may grow. */
    size_t size;
    uint64_t sandboxes;
    uint64_t sandboxes_created;
    uint64_t calls;
    uint64_t errors;
    uint64_t faults;
    uint64_t interrupts;
    uint64_t time_outs;
    uint64_t exits;
    uint64_t host_calls;
    uint64_t host_call_errors;
    uint64_t restores;
    uint64_t pages_copied;
    uint64_t output_bytes;
    uint64_t call_ns;
    uint64_t guest_ns;
    uint64_t host_ns;
    uint64_t trace_records;
    uint64_t trace_dropped;
    uint64_t trace_queued_bytes;
    uint64_t exported;
    uint64_t export_failures;
} ph_metrics_values;

/** The initial value of a ph_metrics_values. */
#define PH_METRICS_VALUES_INIT                                                                               \
    { sizeof(ph_metrics_values), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Fills (values), whose size is set, with what (metrics) has counted. PH_E_ARGUMENT for a NULL or a size that
 * is not one of this library, PH_E_FORKED.
 */
PH_API ph_status ph_metrics_read(ph_metrics *metrics, ph_metrics_values *values);

#ifdef __cplusplus
}
#endif

#endif
