/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Requests of OTLP under construction, in either of its encodings
 * (https://opentelemetry.io/docs/specs/otlp/, opentelemetry-proto 1.x). One description of the messages
 * serves both: protocol buffers for a collector, JSON for files. Nothing here sends or writes.
 */
#ifndef PH_EXPORT_OTLP_BATCH_H
#define PH_EXPORT_OTLP_BATCH_H

#include <pinhole/metrics.h>
#include <pinhole/trace.h>

#include "export/otlp_settings.h"

enum ph__otlp_encoding {
    PH__OTLP_PROTOBUF = 0, /* a body for HTTP: ExportTraceServiceRequest and its siblings */
    PH__OTLP_JSON = 1,     /* one line, with its newline: TracesData and its siblings */
};

/* What is under way for one signal: a request of at most the settings' batch_bytes, in twice as much memory
 * at most. One thread at a time. */
struct ph__otlp_batch;

/* (settings) outlives it. NULL without memory. */
struct ph__otlp_batch *ph__otlp_batch_create(ph_export_signal signal, enum ph__otlp_encoding encoding,
                                             const struct ph__otlp_settings *settings);
void ph__otlp_batch_destroy(struct ph__otlp_batch *batch);

/* Each adds one item, to a batch of its signal. False when there is no room for it: take the batch and add it
 * again. An item that has no room in an empty batch either is added cut. */
bool ph__otlp_batch_span(struct ph__otlp_batch *batch, const ph_trace_span *span);
bool ph__otlp_batch_event(struct ph__otlp_batch *batch, const ph_trace_event *event);
bool ph__otlp_batch_counter(struct ph__otlp_batch *batch, const ph_trace_counter *counter);
/* A series of the host's own metrics, as of (time_ns). */
bool ph__otlp_batch_metric(struct ph__otlp_batch *batch, const ph_metric *metric, uint64_t time_ns);

/* Items in it: spans, log records, or data points. */
size_t ph__otlp_batch_items(const struct ph__otlp_batch *batch);

/* Completes it to a request, in memory of malloc() that is the caller's, and empties it. NULL, and empty,
 * without memory. */
uint8_t *ph__otlp_batch_take(struct ph__otlp_batch *batch, size_t *size);

#endif
