/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A trace that goes to a collector of OpenTelemetry (trace_output.h). A collector that is not there is worth
 * one warning and no more: what the exporter says comes from its own thread, so the first of it is kept until
 * the end, and told then with what it has cost.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/trace_output.h"

/* What a loss of a signal looks like in what an exporter says: "traces: REASON; 20 spans lost". */
static const char *const signals[] = {"traces", "logs", "metrics"}; /* by ph_export_signal */
#define SIGNALS (sizeof signals / sizeof signals[0])

struct ph__collector {
    ph_otlp *otlp;
    pthread_mutex_t lock;
    bool opened;                /* under (lock); what is said before is about the settings */
    char reasons[SIGNALS][256]; /* the first of each; under (lock) */
    ph_otlp_stats end;          /* when it was finished */

    /* While it is finished: */
    uint64_t deadline_ns;
    int done;
    bool has_thread;
    pthread_t thread;
};

/* A ph_diagnostics_fn. */
static void take_reason(void *context, const char *message) {
    struct ph__collector *collector = context;

    pthread_mutex_lock(&collector->lock);
    if (!collector->opened)
        ph__warn("%s", message);
    for (size_t i = 0; i < SIGNALS && collector->opened; i++) {
        const size_t length = strlen(signals[i]);
        if (strncmp(message, signals[i], length) == 0 && message[length] == ':' && !*collector->reasons[i])
            /* Without the count, which is not the last. */
            snprintf(collector->reasons[i], sizeof collector->reasons[i], "%.*s", (int)strcspn(message, ";"),
                     message);
    }
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
    ph_status status = ph_otlp_create(&config, &collector->otlp, &error);
    pthread_mutex_lock(&collector->lock);
    collector->opened = true;
    pthread_mutex_unlock(&collector->lock);
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

/* What is not out in time is given up, and is among what is lost. */
static void *finish(void *context) {
    struct ph__collector *collector = context;
    const uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);
    const uint64_t one = 1;

    ph_otlp_shutdown(collector->otlp, collector->deadline_ns > now_ns ? collector->deadline_ns - now_ns : 1);
    if (collector->done >= 0 && write(collector->done, &one, sizeof one) < 0)
        return NULL; /* an eventfd takes it */
    return NULL;
}

bool ph__collector_finish_begin(struct ph__collector *collector, uint64_t deadline_ns, int done) {
    collector->deadline_ns = deadline_ns;
    collector->done = done;
    collector->has_thread = pthread_create(&collector->thread, NULL, finish, collector) == 0;
    if (collector->has_thread)
        return true;
    collector->done = -1;
    finish(collector);
    return false;
}

void ph__collector_finish_hurry(struct ph__collector *collector) {
    ph_otlp_shutdown(collector->otlp, 1);
}

void ph__collector_finish_end(struct ph__collector *collector) {
    if (collector->has_thread)
        pthread_join(collector->thread, NULL);
    collector->has_thread = false;
    read_stats(collector, &collector->end);
}

/* Adds to (text), as far as there is room. */
static void add(char *text, size_t size, const char *format, ...) PH_PRINTF(3, 4);
static void add(char *text, size_t size, const char *format, ...) {
    const size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void ph__collector_warn(const struct ph__collector *collector) {
    const uint64_t lost[SIGNALS] = {collector->end.lost_spans, collector->end.lost_logs,
                                    collector->end.lost_points};
    static const char *const items[SIGNALS] = {"spans", "log records", "data points"};
    char text[900] = "";

    for (size_t i = 0; i < SIGNALS; i++)
        if (lost[i])
            add(text, sizeof text, "%s%llu %s", *text ? ", " : "", (unsigned long long)lost[i], items[i]);
    if (!*text)
        return;
    size_t shown = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        if (lost[i] && *collector->reasons[i])
            add(text, sizeof text, "%s%s", shown++ ? "; " : " (", collector->reasons[i]);
    ph__warn("lost on the way to the collector: %s%s", text, shown ? ")" : "");
}

void ph__collector_free(struct ph__collector *collector) {
    if (!collector)
        return;
    ph_otlp_destroy(collector->otlp);
    pthread_mutex_destroy(&collector->lock);
    free(collector);
}
