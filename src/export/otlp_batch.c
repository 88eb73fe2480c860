/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Requests of OTLP under construction (otlp_batch.h). Items are encoded when they are added, into a buffer
 * for each scope; taking them copies these into what is around them. The resource, which every request has,
 * is encoded once.
 */
#include "export/otlp_batch.h"

#include <stdlib.h>
#include <string.h>

#include "export/otlp_fields.h"
#include "export/otlp_parts.h"
#include "export/span_kind.h"

/* Who says so: what a guest says of itself is in a scope of its own. */
enum scope { HOST = 0, GUEST = 1 };
#define SCOPES 2u

#define BYTES_LEAST 4096u       /* of items, however little the settings allow: any item fits, when cut */
#define BYTES_MOST (128u << 20) /* of a request: a message's length has 28 bits */
#define BYTES_FIRST 16384u      /* of a buffer, until it has to grow */
#define RESOURCE_BYTES 16384u   /* as above, of the resource */
#define AROUND_BYTES 1024u      /* more than what is around items and the resource */

struct ph__otlp_batch {
    ph_export_signal signal;
    struct ph__otlp_limits limits;
    size_t bytes_max; /* of all items together */
    size_t items;
    struct ph__otlp_writer resource;
    struct ph__otlp_writer scopes[SCOPES];
    struct ph__otlp_metric open[SCOPES]; /* of metrics: to which points are added */
    struct ph__otlp_metric next;         /* what will be, when there is room for what is being added */
};

static struct ph__otlp_limits limits_of(ph_export_signal signal, const struct ph__otlp_settings *settings) {
    const bool logs = signal == PH_EXPORT_LOGS;

    return (struct ph__otlp_limits){
        .attributes = logs ? settings->log_attributes_max : settings->span_attributes_max,
        .value_bytes = logs ? settings->log_value_bytes_max : settings->span_value_bytes_max,
        .events = settings->span_events_max,
        .event_attributes = settings->event_attributes_max,
        .text_bytes = SIZE_MAX,
    };
}

/* False without memory. */
static bool encode_resource(struct ph__otlp_writer *writer, const struct ph__otlp_settings *settings) {
    for (size_t size = RESOURCE_BYTES; ph__otlp_writer_grow(writer, size); size *= 2) {
        ph__otlp_writer_clear(writer);
        ph__otlp_put_resource(writer, settings);
        if (!ph__otlp_writer_is_cut(writer))
            return true;
    }
    return false;
}

/* What the resource leaves of a request. */
static size_t bytes_for_items(size_t request, size_t resource) {
    if (request > BYTES_MOST)
        request = BYTES_MOST;
    return request > resource + AROUND_BYTES + BYTES_LEAST ? request - resource - AROUND_BYTES : BYTES_LEAST;
}

struct ph__otlp_batch *ph__otlp_batch_create(ph_export_signal signal, enum ph__otlp_encoding encoding,
                                             const struct ph__otlp_settings *settings) {
    struct ph__otlp_batch *batch = calloc(1, sizeof *batch);

    if (!batch)
        return NULL;
    batch->signal = signal;
    batch->limits = limits_of(signal, settings);
    batch->resource.encoding = encoding;
    bool ok = encode_resource(&batch->resource, settings);
    batch->bytes_max = bytes_for_items(settings->batch_bytes, ph__otlp_writer_used(&batch->resource));
    for (unsigned i = 0; i < SCOPES && ok; i++)
        ok = ph__otlp_writer_init(&batch->scopes[i], encoding, BYTES_FIRST);
    if (!ok) {
        ph__otlp_batch_destroy(batch);
        return NULL;
    }
    return batch;
}

void ph__otlp_batch_destroy(struct ph__otlp_batch *batch) {
    if (!batch)
        return;
    ph__otlp_writer_free(&batch->resource);
    for (unsigned i = 0; i < SCOPES; i++)
        ph__otlp_writer_free(&batch->scopes[i]);
    free(batch);
}

/* ---- items --------------------------------------------------------------------------------------------- */

/* Appends (item) to the scope's buffer. */
typedef void put_fn(struct ph__otlp_batch *batch, enum scope scope, const struct ph__otlp_limits *limits,
                    const void *item);

static void put_span(struct ph__otlp_batch *batch, enum scope scope, const struct ph__otlp_limits *limits,
                     const void *item) {
    ph__otlp_put_span(&batch->scopes[scope], limits, item);
}

static void put_event(struct ph__otlp_batch *batch, enum scope scope, const struct ph__otlp_limits *limits,
                      const void *item) {
    ph__otlp_put_event(&batch->scopes[scope], limits, item);
}

static void put_counter(struct ph__otlp_batch *batch, enum scope scope, const struct ph__otlp_limits *limits,
                        const void *item) {
    ph__otlp_put_counter(&batch->scopes[scope], limits, item, &batch->open[scope], &batch->next);
}

struct metric_item {
    const ph_metric *metric;
    uint64_t time_ns;
};

static void put_metric(struct ph__otlp_batch *batch, enum scope scope, const struct ph__otlp_limits *limits,
                       const void *item) {
    const struct metric_item *at = item;

    ph__otlp_put_metric(&batch->scopes[scope], limits, at->metric, at->time_ns, &batch->open[scope],
                        &batch->next);
}

/* Adds (item) where there is room for it, for which the buffer grows. Else nothing has changed. */
static bool try_item(struct ph__otlp_batch *batch, enum scope scope, put_fn *put,
                     const struct ph__otlp_limits *limits, const void *item) {
    struct ph__otlp_writer *writer = &batch->scopes[scope];
    const size_t most = batch->bytes_max - ph__otlp_writer_used(&batch->scopes[!scope]);

    for (;;) {
        ph__otlp_writer_limit(writer, most, PH__OTLP_METRIC_END);
        const struct ph__otlp_writer before = *writer;
        put(batch, scope, limits, item);
        if (!ph__otlp_writer_is_cut(writer))
            return true;
        *writer = before;
        if (writer->allocated >= most)
            return false;
        const size_t twice = 2 * writer->allocated;
        if (!ph__otlp_writer_grow(writer, twice < most ? twice : most))
            return false;
    }
}

/* Adds (item) with as much of its texts as there is room for, and then of its attributes. */
static bool add_cut(struct ph__otlp_batch *batch, enum scope scope, put_fn *put, const void *item) {
    struct ph__otlp_limits limits = batch->limits;

    limits.text_bytes = batch->bytes_max;
    if (limits.value_bytes > batch->bytes_max)
        limits.value_bytes = (uint32_t)batch->bytes_max;
    while (!try_item(batch, scope, put, &limits, item)) {
        if (!limits.text_bytes && !limits.attributes)
            return false;
        limits.text_bytes /= 2;
        limits.value_bytes /= 2;
        if (limits.value_bytes < 256)
            limits.attributes /= 2;
    }
    return true;
}

/* False when the batch has to be taken first. */
static bool add(struct ph__otlp_batch *batch, enum scope scope, put_fn *put, const void *item) {
    if (!try_item(batch, scope, put, &batch->limits, item)) {
        if (batch->items)
            return false;
        /* There is always room for what is left when all is cut; whoever tries again has to come to an end.
         */
        if (!add_cut(batch, scope, put, item))
            return true;
    }
    if (batch->signal == PH_EXPORT_METRICS)
        batch->open[scope] = batch->next;
    batch->items++;
    return true;
}

bool ph__otlp_batch_span(struct ph__otlp_batch *batch, const ph_trace_span *span) {
    return add(batch, ph__span_is_of_host(span->kind) ? HOST : GUEST, put_span, span);
}

/* Whether the host says so: of a loss, or of its clock. What a guest calls by these names has a place in its
 * source, if only an empty one. */
static bool is_of_host(const ph_trace_event *event) {
    return event->name && !event->source.file && !event->source.function &&
           (strcmp(event->name, "trace.gap") == 0 || strcmp(event->name, "trace.clock") == 0);
}

bool ph__otlp_batch_event(struct ph__otlp_batch *batch, const ph_trace_event *event) {
    return add(batch, is_of_host(event) ? HOST : GUEST, put_event, event);
}

bool ph__otlp_batch_counter(struct ph__otlp_batch *batch, const ph_trace_counter *counter) {
    return add(batch, GUEST, put_counter, counter);
}

bool ph__otlp_batch_metric(struct ph__otlp_batch *batch, const ph_metric *metric, uint64_t time_ns) {
    return add(batch, HOST, put_metric, &(struct metric_item){metric, time_ns});
}

size_t ph__otlp_batch_items(const struct ph__otlp_batch *batch) {
    return batch->items;
}

/* ---- requests ------------------------------------------------------------------------------------------ */

/* The fields that lead to the items of a signal. */
struct around {
    struct ph__otlp_field resource;
    struct ph__otlp_field scope;
    struct ph__otlp_field items;
};

static struct around around_of(ph_export_signal signal) {
    switch (signal) {
    case PH_EXPORT_LOGS:
        return (struct around){DATA_RESOURCE_LOGS, OF_RESOURCE_SCOPE_LOGS, OF_SCOPE_LOG_RECORDS};
    case PH_EXPORT_METRICS:
        return (struct around){DATA_RESOURCE_METRICS, OF_RESOURCE_SCOPE_METRICS, OF_SCOPE_METRICS};
    case PH_EXPORT_TRACES:
    default:
        return (struct around){DATA_RESOURCE_SPANS, OF_RESOURCE_SCOPE_SPANS, OF_SCOPE_SPANS};
    }
}

static void put_scope(struct ph__otlp_writer *out, const struct around *around,
                      const struct ph__otlp_writer *items, const char *name) {
    if (!ph__otlp_writer_used(items))
        return;
    size_t message = ph__otlp_begin_item(out, around->scope);
    size_t scope = ph__otlp_begin(out, OF_SCOPE_SCOPE);
    ph__otlp_put_text(out, SCOPE_NAME, name, SIZE_MAX);
    ph__otlp_put_text(out, SCOPE_VERSION, ph_version(), SIZE_MAX);
    ph__otlp_end(out, scope);
    ph__otlp_begin_list(out, around->items);
    ph__otlp_raw(out, items);
    ph__otlp_end_list(out);
    ph__otlp_put_text(out, OF_SCOPE_SCHEMA_URL, PH__OTLP_SCHEMA_URL, SIZE_MAX);
    ph__otlp_end(out, message);
}

static void put_request(struct ph__otlp_writer *out, const struct ph__otlp_batch *batch) {
    const struct around around = around_of(batch->signal);

    ph__otlp_open(out);
    ph__otlp_begin_list(out, around.resource);
    size_t message = ph__otlp_begin_item(out, around.resource);
    ph__otlp_raw(out, &batch->resource);
    ph__otlp_begin_list(out, around.scope);
    put_scope(out, &around, &batch->scopes[HOST], "pinhole.host");
    put_scope(out, &around, &batch->scopes[GUEST], "pinhole.guest");
    ph__otlp_end_list(out);
    ph__otlp_put_text(out, OF_RESOURCE_SCHEMA_URL, PH__OTLP_SCHEMA_URL, SIZE_MAX);
    ph__otlp_end(out, message);
    ph__otlp_end_list(out);
    ph__otlp_close(out);
}

uint8_t *ph__otlp_batch_take(struct ph__otlp_batch *batch, size_t *size) {
    struct ph__otlp_writer out;
    size_t capacity = ph__otlp_writer_used(&batch->resource) + AROUND_BYTES;

    for (unsigned i = 0; i < SCOPES; i++) {
        ph__otlp_writer_limit(&batch->scopes[i], SIZE_MAX, 0);
        ph__otlp_end_metric(&batch->scopes[i], &batch->open[i]);
        batch->open[i].is_open = false;
        capacity += ph__otlp_writer_used(&batch->scopes[i]);
    }
    if (ph__otlp_writer_init(&out, batch->resource.encoding, capacity))
        put_request(&out, batch);
    for (unsigned i = 0; i < SCOPES; i++)
        ph__otlp_writer_clear(&batch->scopes[i]);
    batch->items = 0;
    *size = ph__otlp_writer_used(&out);
    return ph__otlp_writer_bytes(&out);
}
