/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics of OTLP (otlp_parts.h): guests' counters, which are gauges since a guest may set them to anything,
 * and the host's own. Points of one metric that come one after another share its message.
 */
#include <stdio.h>
#include <string.h>

#include "export/field.h"
#include "export/otlp_fields.h"
#include "export/otlp_parts.h"

/* What of a metric its points share. */
struct head {
    ph_metric_kind kind;
    const char *name;
    const char *unit;
    const char *description;
};

/* Ends the metric that is open, and begins another one. A name that is too long to be remembered is that of
 * no other one. */
static void begin_metric(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                         const struct head *head, const struct ph__otlp_metric *open,
                         struct ph__otlp_metric *next) {
    const struct ph__otlp_field data = head->kind == PH_METRIC_COUNTER     ? METRIC_SUM
                                       : head->kind == PH_METRIC_HISTOGRAM ? METRIC_HISTOGRAM
                                                                           : METRIC_GAUGE;

    ph__otlp_end_metric(writer, open);
    next->is_open = true;
    next->kind = head->kind;
    const size_t length = strlen(head->name);
    const bool is_short = length < sizeof next->name;
    memcpy(next->name, is_short ? head->name : "", is_short ? length + 1 : 1);
    next->metric = ph__otlp_begin_item(writer, OF_SCOPE_METRICS);
    ph__otlp_put_text(writer, METRIC_NAME, head->name, limits->text_bytes);
    ph__otlp_put_text(writer, METRIC_DESCRIPTION, head->description, limits->text_bytes);
    ph__otlp_put_text(writer, METRIC_UNIT, head->unit, limits->text_bytes);
    next->data = ph__otlp_begin(writer, data);
    if (head->kind != PH_METRIC_GAUGE)
        ph__otlp_u32(writer, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
    if (head->kind == PH_METRIC_COUNTER)
        ph__otlp_bool(writer, DATA_IS_MONOTONIC, true);
    ph__otlp_begin_list(writer, DATA_POINTS);
}

static size_t begin_point(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                          const struct head *head, const struct ph__otlp_metric *open,
                          struct ph__otlp_metric *next) {
    if (open->is_open && open->kind == head->kind && *head->name && strcmp(open->name, head->name) == 0)
        *next = *open;
    else
        begin_metric(writer, limits, head, open, next);
    return ph__otlp_begin_item(writer, DATA_POINTS);
}

void ph__otlp_end_metric(struct ph__otlp_writer *writer, const struct ph__otlp_metric *open) {
    if (!open->is_open)
        return;
    ph__otlp_end_list(writer);
    ph__otlp_end(writer, open->data);
    ph__otlp_end(writer, open->metric);
}

/* Metrics of some readers have no scopes: what looks like ours there has something in front. */
static const char *counter_name(const char *own, char name[PH__FIELD_NAME_SIZE]) {
    if (!own)
        return "";
    if (!ph__otlp_is_ours(own))
        return own;
    snprintf(name, PH__FIELD_NAME_SIZE, "guest.%.*s", (int)ph__text_fit(own, strlen(own), 250), own);
    return name;
}

void ph__otlp_put_counter(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                          const ph_trace_counter *counter, const struct ph__otlp_metric *open,
                          struct ph__otlp_metric *next) {
    char name[PH__FIELD_NAME_SIZE];
    const struct head head = {.kind = PH_METRIC_GAUGE, .name = counter_name(counter->name, name)};

    size_t point = begin_point(writer, limits, &head, open, next);
    ph__otlp_fixed64(writer, POINT_TIME, counter->time_ns);
    if (counter->value.type == PH_F64)
        ph__otlp_double(writer, POINT_AS_DOUBLE, counter->value.f64);
    else
        ph__otlp_sfixed64(writer, POINT_AS_INT, counter->value.i64);
    struct ph__otlp_attributes attributes =
        ph__otlp_attributes_begin(writer, POINT_ATTRIBUTES, UINT32_MAX, UINT32_MAX);
    ph__otlp_attribute_i64(&attributes, "pinhole.sandbox", (int64_t)counter->sandbox);
    ph__otlp_attributes_end(&attributes);
    ph__otlp_end(writer, point);
}

static void put_metric_attribute(struct ph__otlp_writer *writer, struct ph__otlp_field field,
                                 const ph_metric *metric) {
    if (!metric->attribute)
        return;
    struct ph__otlp_attributes attributes = ph__otlp_attributes_begin(writer, field, UINT32_MAX, UINT32_MAX);
    ph__otlp_attribute_text(&attributes, metric->attribute,
                            metric->attribute_value ? metric->attribute_value : "");
    ph__otlp_attributes_end(&attributes);
}

static void put_histogram(struct ph__otlp_writer *writer, const ph_metric *metric) {
    const size_t buckets =
        metric->bucket_count < PH_METRIC_BUCKETS ? metric->bucket_count : PH_METRIC_BUCKETS;

    ph__otlp_fixed64(writer, HISTOGRAM_COUNT, metric->count);
    ph__otlp_double(writer, HISTOGRAM_SUM, metric->sum);
    if (buckets) {
        ph__otlp_fixed64_list(writer, HISTOGRAM_BUCKET_COUNTS, metric->buckets, buckets);
        ph__otlp_double_list(writer, HISTOGRAM_EXPLICIT_BOUNDS, metric->bounds, buckets - 1);
    }
    put_metric_attribute(writer, HISTOGRAM_ATTRIBUTES, metric);
}

void ph__otlp_put_metric(struct ph__otlp_writer *writer, const struct ph__otlp_limits *limits,
                         const ph_metric *metric, uint64_t time_ns, const struct ph__otlp_metric *open,
                         struct ph__otlp_metric *next) {
    const struct head head = {metric->kind, metric->name ? metric->name : "", metric->unit,
                              metric->description};

    size_t point = begin_point(writer, limits, &head, open, next);
    if (metric->kind != PH_METRIC_GAUGE)
        ph__otlp_fixed64(writer, POINT_START_TIME, metric->start_ns);
    ph__otlp_fixed64(writer, POINT_TIME, time_ns);
    if (metric->kind == PH_METRIC_HISTOGRAM) {
        put_histogram(writer, metric);
    } else {
        ph__otlp_sfixed64(writer, POINT_AS_INT,
                          metric->value < INT64_MAX ? (int64_t)metric->value : INT64_MAX);
        put_metric_attribute(writer, POINT_ATTRIBUTES, metric);
    }
    ph__otlp_end(writer, point);
}
