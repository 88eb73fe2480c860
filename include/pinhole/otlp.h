/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * OpenTelemetry: what sandboxes do, sent to a collector by OTLP over HTTP, or written as its JSON lines. Link
 * with -lpinhole-export.
 *
 *     ph_otlp *otlp;
 *     ph_sink sink;
 *     ph_otlp_create(NULL, &otlp, &error);
 *     ph_otlp_sink(otlp, &sink);
 *     ph_tracer_add_sink(tracer, &sink, &error);
 *     ...
 *     ph_tracer_destroy(tracer);
 *     ph_otlp_shutdown(otlp, 5000000000);
 *     ph_otlp_destroy(otlp);
 *
 * Spans go to /v1/traces, events and logs to /v1/logs, the guest's counters and a ph_metrics to /v1/metrics.
 * A thread of the exporter's own sends them: no call ever waits for the network. What does not fit into its
 * queue, and what a collector refuses or does not answer for, is lost, counted, and told to (diagnostics), at
 * most once in a while.
 *
 * What a guest says of itself stands in a scope of its own ("pinhole.guest"), under attributes that cannot
 * pass for the host's: no guest sets what is said of the resource. docs/exporting.md has the conventions.
 *
 * Every setting that is left out is taken from OpenTelemetry's environment variables
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/), and else has their
 * default. The environment is read by ph_otlp_create, once.
 *
 * Threads: as trace.h. After fork() the child may only destroy what it inherited.
 */
#ifndef PINHOLE_OTLP_H
#define PINHOLE_OTLP_H

#include <pinhole/metrics.h>
#include <pinhole/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An exporter.
 */
typedef struct ph_otlp ph_otlp;

/**
 * How an exporter is made. Initialise with PH_OTLP_CONFIG_INIT; what is 0 or NULL comes from the environment.
 * All of it is copied.
 */
typedef struct ph_otlp_config {
    /** sizeof(ph_otlp_config), set by PH_OTLP_CONFIG_INIT: the struct may grow. */
    size_t size;
    /** The collector, "http://localhost:4318": /v1/traces and so on are added to it. */
    const char *endpoint;
    /** "NAME=VALUE,NAME=VALUE": more HTTP headers, values percent-encoded. */
    const char *headers;
    /** Nanoseconds that one request and its repetitions may take. Default 10 s. */
    uint64_t timeout_ns;
    /** "gzip" or "none". */
    const char *compression;
    /** The resource: service.name, and "NAME=VALUE,..." of more, values percent-encoded. */
    const char *service_name;
    const char *resource_attributes;
    /** Sent every so often, OTEL_METRIC_EXPORT_INTERVAL (60 s), and at the end; also counts what this
     * exporter sends and loses. It must live longer than the exporter. NULL: no metrics but guests'
     * counters. */
    ph_metrics *metrics;
    /** One line when something was lost or refused, and what: at most one in ten seconds for each signal, and
     * one at the end. Called on the exporter's thread, or by ph_otlp_shutdown. */
    ph_diagnostics_fn diagnostics;
    void *diagnostics_context;
} ph_otlp_config;

/** The initial value of a ph_otlp_config: every default. */
#define PH_OTLP_CONFIG_INIT                                                                                  \
    { sizeof(ph_otlp_config), NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL }

/**
 * Makes an exporter and starts its thread. (config) may be NULL. Nothing is sent yet, and the collector need
 * not be there. On success (*otlp) is the caller's, to be destroyed with ph_otlp_destroy. PH_E_ARGUMENT (an
 * endpoint that is no http or https URL, a header or compression that makes no sense; the message names the
 * setting, or the variable), PH_E_MEMORY or PH_E_SYSTEM. A number in the environment that makes no sense
 * counts as not set, and diagnostics says so, as the specification asks.
 */
PH_API ph_status ph_otlp_create(const ph_otlp_config *config, ph_otlp **otlp, ph_error *error);

/**
 * Fills (sink) with one for a tracer. The exporter must live longer than the tracer. Its flush asks for what
 * is queued to be sent and does not wait.
 */
PH_API void ph_otlp_sink(ph_otlp *otlp, ph_sink *sink);

/**
 * Sends what is queued, metrics included, and waits at most (timeout_ns) for all of it. PH_E_TIMED_OUT when
 * that was too short.
 */
PH_API ph_status ph_otlp_flush(ph_otlp *otlp, uint64_t timeout_ns);

/**
 * What an exporter has done over its life, in items: spans, log records, data points.
 */
typedef struct ph_otlp_stats {
    /** sizeof(ph_otlp_stats), set by PH_OTLP_STATS_INIT: the struct may grow. */
    size_t size;
    /** Taken by the collector. */
    uint64_t sent_spans;
    uint64_t sent_logs;
    uint64_t sent_points;
    /** Lost: no room in the queue, refused, or not answered in time. */
    uint64_t lost_spans;
    uint64_t lost_logs;
    uint64_t lost_points;
    /** Requests, and those of them that repeated another. */
    uint64_t requests;
    uint64_t retries;
} ph_otlp_stats;

/** The initial value of a ph_otlp_stats. */
#define PH_OTLP_STATS_INIT                                                                                   \
    { sizeof(ph_otlp_stats), 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Fills (stats), whose size is set. PH_E_ARGUMENT.
 */
PH_API ph_status ph_otlp_get_stats(ph_otlp *otlp, ph_otlp_stats *stats);

/**
 * Sends what is left and waits at most (timeout_ns) for that; what is not out then is lost, counted, and
 * told. Nothing more is taken afterwards. Called by another thread meanwhile, it can shorten the wait, and
 * does not wait itself.
 */
PH_API void ph_otlp_shutdown(ph_otlp *otlp, uint64_t timeout_ns);

/**
 * Frees (otlp), which may be NULL, after ph_otlp_shutdown; without that before, as after one that waits for
 * nothing.
 */
PH_API void ph_otlp_destroy(ph_otlp *otlp);

/**
 * What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG say, for the sampler and sampler_ratio of a
 * ph_tracer_config: (*sampler) and (*ratio) stay as they are when the first is not set. It is always_on,
 * always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio; all
 * else, and a ratio that is not from 0 to 1, counts as not set and is told to (diagnostics), which may be
 * NULL.
 */
PH_API void ph_otlp_sampler_from_environment(ph_sampler *sampler, double *ratio,
                                             ph_diagnostics_fn diagnostics, void *diagnostics_context);

/**
 * Fills (sink) with one that writes OTLP's JSON lines, as the collector's file exporter does
 * (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/): one TracesData, LogsData or MetricsData
 * a line. Resource and limits come from the environment. A process killed leaves whole lines but for the
 * last. (options) may be NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_otlp_json_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

#ifdef __cplusplus
}
#endif

#endif
