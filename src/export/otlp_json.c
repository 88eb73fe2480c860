/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for OTLP's JSON lines, as the file exporter has them
 * (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/). A line is a batch: it has the resource
 * in it, so that one for each span would say little else.
 */
#include <stdlib.h>

#include <pinhole/otlp.h>

#include "base/error.h"
#include "export/file_sink.h"
#include "export/otlp_batch.h"

#define SIGNALS 3u

/* As many points as OpenTelemetry takes of the others by default. */
#define POINTS_MOST 512u

struct sink {
    FILE *file;
    bool close_file;
    struct ph__otlp_settings settings;
    struct ph__otlp_batch *batches[SIGNALS]; /* by ph_export_signal */
};

/* Without memory for it, the line is lost. Once a write has failed, nothing follows (out.h). */
static void write_line(struct sink *sink, ph_export_signal signal) {
    size_t size = 0;

    if (!ph__otlp_batch_items(sink->batches[signal]))
        return;
    uint8_t *line = ph__otlp_batch_take(sink->batches[signal], &size);
    if (line && !ferror(sink->file))
        fwrite(line, 1, size, sink->file);
    free(line);
}

/* A whole batch is written, and no item waits for another one. */
static void write_full(struct sink *sink, ph_export_signal signal, size_t most) {
    if (ph__otlp_batch_items(sink->batches[signal]) >= most)
        write_line(sink, signal);
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;

    if (!ph__otlp_batch_span(sink->batches[PH_EXPORT_TRACES], span)) {
        write_line(sink, PH_EXPORT_TRACES);
        ph__otlp_batch_span(sink->batches[PH_EXPORT_TRACES], span);
    }
    write_full(sink, PH_EXPORT_TRACES, sink->settings.span_batch_max);
}

static void take_event(void *context, const ph_trace_event *event) {
    struct sink *sink = context;

    if (!ph__otlp_batch_event(sink->batches[PH_EXPORT_LOGS], event)) {
        write_line(sink, PH_EXPORT_LOGS);
        ph__otlp_batch_event(sink->batches[PH_EXPORT_LOGS], event);
    }
    write_full(sink, PH_EXPORT_LOGS, sink->settings.log_batch_max);
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct sink *sink = context;

    if (!ph__otlp_batch_counter(sink->batches[PH_EXPORT_METRICS], counter)) {
        write_line(sink, PH_EXPORT_METRICS);
        ph__otlp_batch_counter(sink->batches[PH_EXPORT_METRICS], counter);
    }
    write_full(sink, PH_EXPORT_METRICS, POINTS_MOST);
}

static void write_all(struct sink *sink) {
    for (unsigned signal = 0; signal < SIGNALS; signal++)
        write_line(sink, (ph_export_signal)signal);
}

static void flush(void *context) {
    struct sink *sink = context;

    write_all(sink);
    fflush(sink->file);
}

static void free_sink(struct sink *sink) {
    for (unsigned signal = 0; signal < SIGNALS; signal++)
        ph__otlp_batch_destroy(sink->batches[signal]);
    ph__otlp_settings_free(&sink->settings);
    free(sink);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    write_all(sink);
    ph__file_sink_close(sink->file, sink->close_file);
    free_sink(sink);
}

/* False without memory. */
static bool make_batches(struct sink *sink) {
    for (unsigned signal = 0; signal < SIGNALS; signal++) {
        sink->batches[signal] =
            ph__otlp_batch_create((ph_export_signal)signal, PH__OTLP_JSON, &sink->settings);
        if (!sink->batches[signal])
            return false;
    }
    return true;
}

ph_status ph_otlp_json_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_file_sink taken;

    ph_status status = ph__file_sink_take(options, sink, &taken, error);
    if (status != PH_OK)
        return status;
    struct sink *opened = calloc(1, sizeof *opened);
    if (!opened)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink of OpenTelemetry's JSON");
    status = ph__otlp_settings_read_for_file(&opened->settings, error);
    if (status != PH_OK) {
        free(opened);
        return status;
    }
    if (!make_batches(opened)) {
        free_sink(opened);
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink of OpenTelemetry's JSON");
    }
    opened->file = taken.file;
    opened->close_file = taken.close_file;
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = flush,
                      .close = close_sink};
    return PH_OK;
}
