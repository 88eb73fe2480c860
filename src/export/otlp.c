/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The exporter to OpenTelemetry (pinhole/otlp.h): its life, its sink and its counts. What a sink does ends
 * in a batch; otlp_queue.c and otlp_send.c see to the rest.
 */
#include <pinhole/otlp.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "base/thread.h"
#include "base/time.h"
#include "export/otlp_exporter.h"

#define METRIC_QUEUE_MAX 2048u
#define METRIC_BATCH_MAX 512u

/* ---- the sink ------------------------------------------------------------------------------------------ */

static bool put_span(struct ph__otlp_batch *batch, const void *item) {
    return ph__otlp_batch_span(batch, item);
}

static bool put_event(struct ph__otlp_batch *batch, const void *item) {
    return ph__otlp_batch_event(batch, item);
}

static bool put_counter(struct ph__otlp_batch *batch, const void *item) {
    return ph__otlp_batch_counter(batch, item);
}

static void sink_add(ph_otlp *otlp, ph_export_signal signal,
                     bool (*put)(struct ph__otlp_batch *batch, const void *item), const void *item) {
    /* A child after fork() has no thread to send with, and the lock may be held for ever. */
    if (otlp->owner != ph__process_id() || otlp->settings.routes[signal].off)
        return;
    pthread_mutex_lock(&otlp->lock);
    if (!otlp->stop)
        ph__otlp_lane_add(otlp, &otlp->lanes[signal], put, item);
    pthread_mutex_unlock(&otlp->lock);
}

static void sink_span(void *context, const ph_trace_span *span) {
    sink_add(context, PH_EXPORT_TRACES, put_span, span);
}

static void sink_event(void *context, const ph_trace_event *event) {
    sink_add(context, PH_EXPORT_LOGS, put_event, event);
}

static void sink_counter(void *context, const ph_trace_counter *counter) {
    sink_add(context, PH_EXPORT_METRICS, put_counter, counter);
}

static void sink_flush(void *context) {
    ph_otlp *otlp = context;

    if (otlp->owner != ph__process_id())
        return;
    pthread_mutex_lock(&otlp->lock);
    otlp->send_asked = true;
    pthread_mutex_unlock(&otlp->lock);
    curl_multi_wakeup(otlp->multi);
}

void ph_otlp_sink(ph_otlp *otlp, ph_sink *sink) {
    const ph_sink none = PH_SINK_INIT;

    if (sink)
        *sink = none;
    if (!sink || !otlp || !otlp->has_thread)
        return;
    sink->context = otlp;
    sink->span = sink_span;
    sink->event = sink_event;
    sink->counter = sink_counter;
    sink->flush = sink_flush;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

/* Never undone: another library of the process may use curl too. */
static CURLcode curl_started;

static void curl_start(void) {
    curl_started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void lane_limits(struct ph__otlp_lane *lane, const struct ph__otlp_settings *settings) {
    lane->batch_max = METRIC_BATCH_MAX;
    lane->queue_max = METRIC_QUEUE_MAX;
    lane->delay_ns = settings->metric_interval_ns;
    /* A share of its own, which no other signal can use up. */
    lane->queue_bytes = settings->queue_bytes / PH__OTLP_SIGNALS;
    if (lane->signal == PH_EXPORT_TRACES) {
        lane->batch_max = settings->span_batch_max;
        lane->queue_max = settings->span_queue_max;
        lane->delay_ns = settings->span_delay_ns;
    } else if (lane->signal == PH_EXPORT_LOGS) {
        lane->batch_max = settings->log_batch_max;
        lane->queue_max = settings->log_queue_max;
        lane->delay_ns = settings->log_delay_ns;
    }
}

static bool lanes_init(ph_otlp *otlp) {
    for (unsigned i = 0; i < PH__OTLP_SIGNALS; i++) {
        struct ph__otlp_lane *lane = &otlp->lanes[i];
        lane->signal = (ph_export_signal)i;
        lane->end = &lane->first;
        lane_limits(lane, &otlp->settings);
        lane->batch = ph__otlp_batch_create(lane->signal, PH__OTLP_PROTOBUF, &otlp->settings);
        if (!lane->batch || !ph__otlp_transfer_init(lane, &otlp->settings.routes[i]))
            return false;
    }
    return true;
}

static ph_status start(ph_otlp *otlp, ph_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, curl_start);
    otlp->multi = curl_started == CURLE_OK ? curl_multi_init() : NULL;
    if (!otlp->multi || !lanes_init(otlp))
        return ph__error_set(error, PH_E_MEMORY, "libcurl gives no handle, or no memory");
    otlp->metrics_ns = ph__time_ns(CLOCK_MONOTONIC) + otlp->settings.metric_interval_ns;
    const int number = ph__thread_start(&otlp->thread, NULL, ph__otlp_send, otlp);
    if (number != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, number, "starting the exporter's thread failed");
    otlp->has_thread = true;
    return PH_OK;
}

static void locks_init(ph_otlp *otlp) {
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&otlp->flushed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&otlp->lock, NULL);
}

ph_status ph__otlp_create(const ph_otlp_config *config, struct ph__otlp_settings *settings, ph_otlp **result,
                          ph_error *error) {
    ph_otlp_config taken = PH_OTLP_CONFIG_INIT;
    ph_otlp *otlp = calloc(1, sizeof *otlp);

    if (!otlp) {
        ph__otlp_settings_free(settings);
        return ph__error_set(error, PH_E_MEMORY, "no memory for an exporter");
    }
    if (config)
        memcpy(&taken, config, config->size);
    otlp->settings = *settings;
    *settings = (struct ph__otlp_settings){0};
    otlp->metrics = taken.metrics;
    otlp->diagnostics = taken.diagnostics;
    otlp->diagnostics_context = taken.diagnostics_context;
    otlp->owner = ph__process_id();
    locks_init(otlp);
    ph_status status = otlp->settings.disabled ? PH_OK : start(otlp, error);
    if (status != PH_OK) {
        ph_otlp_destroy(otlp);
        return status;
    }
    *result = otlp;
    return PH_OK;
}

ph_status ph_otlp_create(const ph_otlp_config *config, ph_otlp **otlp, ph_error *error) {
    struct ph__otlp_settings settings;

    if (!otlp)
        return ph__error_set(error, PH_E_ARGUMENT, "a place for the exporter is needed");
    *otlp = NULL;
    ph_status status = ph__process_init(error);
    if (status == PH_OK)
        status = ph__otlp_settings_read(config, &settings, error);
    if (status == PH_OK)
        status = ph__otlp_create(config, &settings, otlp, error);
    return status;
}

static uint64_t deadline_ns(uint64_t timeout_ns) {
    const uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);
    return timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
}

/* Of several that do it, the first one counts, and the others wait for nothing. */
static void thread_stop(ph_otlp *otlp, uint64_t timeout_ns) {
    const uint64_t stop_ns = deadline_ns(timeout_ns);

    pthread_mutex_lock(&otlp->lock);
    const bool first = otlp->has_thread && !otlp->stop;
    if (first || (otlp->stop && stop_ns < otlp->stop_ns))
        otlp->stop_ns = stop_ns;
    otlp->stop |= first;
    if (otlp->has_thread)
        curl_multi_wakeup(otlp->multi);
    pthread_mutex_unlock(&otlp->lock);
    if (!first)
        return;
    ph__system.pthread_join(otlp->thread, NULL);
    ph__otlp_tell(otlp, ph__time_ns(CLOCK_MONOTONIC), true);
}

static void lanes_free(ph_otlp *otlp) {
    for (size_t i = 0; i < PH__OTLP_SIGNALS; i++) {
        struct ph__otlp_request *request;
        while ((request = ph__otlp_lane_take(&otlp->lanes[i])) != NULL)
            ph__otlp_request_free(request);
        if (otlp->lanes[i].batch)
            ph__otlp_batch_destroy(otlp->lanes[i].batch);
    }
}

void ph_otlp_shutdown(ph_otlp *otlp, uint64_t timeout_ns) {
    if (otlp && otlp->owner == ph__process_id())
        thread_stop(otlp, timeout_ns);
}

void ph_otlp_destroy(ph_otlp *otlp) {
    if (!otlp)
        return;
    if (otlp->owner == ph__process_id()) {
        thread_stop(otlp, 0);
        lanes_free(otlp);
        for (size_t i = 0; i < PH__OTLP_SIGNALS; i++)
            ph__otlp_transfer_free(&otlp->lanes[i].transfer);
        curl_multi_cleanup(otlp->multi);
        pthread_cond_destroy(&otlp->flushed);
        pthread_mutex_destroy(&otlp->lock);
    } else if (pthread_mutex_trylock(&otlp->lock) == 0) {
        /* In a child, curl's handles stay: to close a connection of TLS is to say so to the collector, which
         * still talks to the parent. Batches are whole when nobody was at them at the fork. */
        lanes_free(otlp);
    }
    ph__otlp_settings_free(&otlp->settings);
    free(otlp);
}

ph_status ph_otlp_flush(ph_otlp *otlp, uint64_t timeout_ns) {
    ph_status status = PH_OK;

    if (!otlp)
        return PH_E_ARGUMENT;
    if (otlp->owner != ph__process_id())
        return PH_E_FORKED;
    if (!otlp->has_thread)
        return PH_OK;
    const struct timespec until = ph__timespec_of(deadline_ns(timeout_ns));
    pthread_mutex_lock(&otlp->lock);
    const uint64_t wanted = ++otlp->flushes_asked;
    curl_multi_wakeup(otlp->multi);
    while (otlp->flushes_done < wanted && !otlp->gone && status == PH_OK)
        if (pthread_cond_timedwait(&otlp->flushed, &otlp->lock, &until) != 0)
            status = otlp->flushes_done < wanted && !otlp->gone ? PH_E_TIMED_OUT : PH_OK;
    pthread_mutex_unlock(&otlp->lock);
    return status;
}

ph_status ph_otlp_get_stats(ph_otlp *otlp, ph_otlp_stats *stats) {
    ph_otlp_stats now = PH_OTLP_STATS_INIT;

    if (!otlp || !stats || stats->size < sizeof stats->size || stats->size > sizeof *stats)
        return PH_E_ARGUMENT;
    if (otlp->owner != ph__process_id())
        return PH_E_FORKED;
    const struct ph__otlp_lane *lanes = otlp->lanes;
    pthread_mutex_lock(&otlp->lock);
    now.sent_spans = lanes[PH_EXPORT_TRACES].sent;
    now.sent_logs = lanes[PH_EXPORT_LOGS].sent;
    now.sent_points = lanes[PH_EXPORT_METRICS].sent;
    now.lost_spans = lanes[PH_EXPORT_TRACES].lost;
    now.lost_logs = lanes[PH_EXPORT_LOGS].lost;
    now.lost_points = lanes[PH_EXPORT_METRICS].lost;
    now.requests = otlp->requests;
    now.retries = otlp->retries;
    pthread_mutex_unlock(&otlp->lock);
    now.size = stats->size;
    memcpy(stats, &now, stats->size);
    return PH_OK;
}
