/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The parts of a request of OTLP (otlp_batch.h): one function for each kind of item, which appends it to a
 * writer. What does not fit shows in the writer, and the batch goes back to where it was.
 */
#ifndef PH_EXPORT_OTLP_PARTS_H
#define PH_EXPORT_OTLP_PARTS_H

#include "export/otlp_writer.h"

/* The version of the semantic conventions whose names are used (docs/exporting.md). */
#define PH__OTLP_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

/* How much of an item is written. (text_bytes) is for all that the settings have no limit for: SIZE_MAX but
 * for an item that is larger than a request may be. */
struct ph__otlp_limits {
    uint32_t attributes;
    uint32_t value_bytes;
    uint32_t events;
    uint32_t event_attributes;
    size_t text_bytes;
};

/* ---- attributes ---------------------------------------------------------------------------------------- */

/* Attributes under way. The first ones stay; what is more than (most) is counted in (dropped). */
struct ph__otlp_attributes {
    struct ph__otlp_writer *writer;
    struct ph__otlp_field field;
    uint32_t most;
    uint32_t value_bytes;
    uint32_t count;
    uint32_t dropped;
};

struct ph__otlp_attributes ph__otlp_attributes_begin(struct ph__otlp_writer *writer,
                                                     struct ph__otlp_field field, uint32_t most,
                                                     uint32_t value_bytes);
void ph__otlp_attributes_end(struct ph__otlp_attributes *attributes);

/* Names are ours, or the user's. Nothing for a NULL (text). */
void ph__otlp_attribute_text(struct ph__otlp_attributes *attributes, const char *name, const char *text);
void ph__otlp_attribute_i64(struct ph__otlp_attributes *attributes, const char *name, int64_t value);
void ph__otlp_attribute_bool(struct ph__otlp_attributes *attributes, const char *name, bool value);
void ph__otlp_attributes_source(struct ph__otlp_attributes *attributes, const ph_source *source);

/* A guest's fields, under names that are none of ours. */
void ph__otlp_attributes_fields(struct ph__otlp_attributes *attributes, const ph_field *fields, size_t count);

/* Whether (name) is one that no guest may use. */
bool ph__otlp_is_ours(const char *name);

/* ---- items --------------------------------------------------------------------------------------------- */

/* Nothing for a NULL (text). */
void ph__otlp_put_text(struct ph__otlp_writer *writer, struct ph__otlp_field field, const char *text,
                       size_t most);

void ph__otlp_put_span(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                       const ph_trace_span *span);
void ph__otlp_put_event(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                        const ph_trace_event *event);

/* A metric under way, to which more points of it can be added: the messages that are open, and its name. */
struct ph__otlp_metric {
    bool is_open;
    ph_metric_kind kind;
    size_t metric;
    size_t data;
    char name[256];
};

/* Puts a point into (open), or ends that and begins another metric: (next) is then the one that is open. */
void ph__otlp_put_counter(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                          const ph_trace_counter *counter, const struct ph__otlp_metric *open,
                          struct ph__otlp_metric *next);
void ph__otlp_put_metric(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                         const ph_metric *metric, uint64_t time_ns, const struct ph__otlp_metric *open,
                         struct ph__otlp_metric *next);
void ph__otlp_end_metric(struct ph__otlp_writer *writer, const struct ph__otlp_metric *open);

/* The most bytes that ending a metric takes. */
#define PH__OTLP_METRIC_END 8u

/* The resource, as a member of what has one: what (settings) say, and what is known of this process. */
void ph__otlp_put_resource(struct ph__otlp_writer *writer, const struct ph__otlp_settings *settings);

#endif
