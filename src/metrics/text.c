/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Prometheus' text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/) and
 * OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/). They differ in the name of a
 * counter, in what is said of units, and at the end.
 */
#include "metrics/text.h"

#include <stdlib.h>
#include <string.h>

#include "metrics/table.h"

#define ROOM_AT_FIRST ((size_t)32 << 10) /* all that there is takes some 20 KiB */

/* ---- names --------------------------------------------------------------------------------------------- */

static bool is_name_character(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9' && !first);
}

/* (name) with an underscore for each run of what no name may have. */
static void add_name(struct ph__out *out, const char *name) {
    for (const char *at = name; *at; at++) {
        if (is_name_character(*at, at == name))
            ph__out_add(out, at, 1);
        else if (at == name || is_name_character(at[-1], false))
            ph__out_text(out, "_");
    }
}

/* What Prometheus calls the unit of (metric), NULL when that goes into no name. */
static const char *unit_of(const ph_metric *metric) {
    if (strcmp(metric->unit, "s") == 0)
        return "seconds";
    if (strcmp(metric->unit, "By") == 0)
        return "bytes";
    return strcmp(metric->unit, "1") == 0 && metric->kind == PH_METRIC_GAUGE ? "ratio" : NULL;
}

void ph__metrics_text_name(struct ph__out *out, const ph_metric *metric) {
    const char *unit = unit_of(metric);
    const size_t length = strlen(metric->name);

    add_name(out, metric->name);
    if (!unit)
        return;
    const size_t unit_length = strlen(unit);
    if (length > unit_length && strcmp(metric->name + length - unit_length, unit) == 0 &&
        !is_name_character(metric->name[length - unit_length - 1], true))
        return;
    ph__out_text(out, "_");
    ph__out_text(out, unit);
}

/* (text) with its backslashes and line ends escaped, and with (quotes) those too. */
static void add_escaped(struct ph__out *out, const char *text, bool quotes) {
    for (; *text; text++) {
        if (*text == '\n')
            ph__out_text(out, "\\n");
        else if (*text == '\\' || (*text == '"' && quotes))
            ph__out_format(out, "\\%c", *text);
        else
            ph__out_add(out, text, 1);
    }
}

/* ---- samples ------------------------------------------------------------------------------------------- */

static void add_head(struct ph__out *out, ph_metrics_format format, const ph_metric *metric) {
    static const char *const types[] = {"counter", "gauge", "histogram"}; /* by ph_metric_kind */
    const bool open = format == PH_METRICS_OPENMETRICS;
    const char *total = metric->kind == PH_METRIC_COUNTER && !open ? "_total" : "";

    ph__out_text(out, "# HELP ");
    ph__metrics_text_name(out, metric);
    ph__out_format(out, "%s ", total);
    add_escaped(out, metric->description, open);
    ph__out_text(out, "\n# TYPE ");
    ph__metrics_text_name(out, metric);
    ph__out_format(out, "%s %s\n", total, types[metric->kind]);
    if (open && unit_of(metric)) {
        ph__out_text(out, "# UNIT ");
        ph__metrics_text_name(out, metric);
        ph__out_format(out, " %s\n", unit_of(metric));
    }
}

/* The name of one sample, with what is added to it, and its labels; (bound) is that of a bucket, or NULL. */
static void add_sample(struct ph__out *out, const ph_metric *metric, const char *added, const char *bound) {
    ph__metrics_text_name(out, metric);
    ph__out_text(out, added);
    if (metric->attribute || bound)
        ph__out_text(out, "{");
    if (metric->attribute) {
        add_name(out, metric->attribute);
        ph__out_text(out, "=\"");
        add_escaped(out, metric->attribute_value, true);
        ph__out_text(out, bound ? "\"," : "\"");
    }
    if (bound)
        ph__out_format(out, "le=\"%s\"", bound);
    ph__out_text(out, metric->attribute || bound ? "} " : " ");
}

static void add_line(struct ph__out *out, const ph_metric *metric, const char *added, const char *bound,
                     uint64_t number) {
    add_sample(out, metric, added, bound);
    ph__out_u64(out, number);
    ph__out_text(out, "\n");
}

/* Each bucket holds those below it too here. */
static void add_histogram(struct ph__out *out, const ph_metric *metric) {
    uint64_t sum = 0;

    for (size_t i = 0; i < metric->bucket_count; i++) {
        sum += metric->buckets[i];
        const bool last = i + 1 == metric->bucket_count;
        add_line(out, metric, "_bucket", last ? "+Inf" : ph__metric_bound_texts[i], sum);
    }
    add_sample(out, metric, "_sum", NULL);
    ph__out_f64(out, metric->sum);
    ph__out_text(out, "\n");
    add_line(out, metric, "_count", NULL, metric->count);
}

void ph__metrics_text_series(struct ph__out *out, ph_metrics_format format, const ph_metric *metric,
                             bool first) {
    if (first)
        add_head(out, format, metric);
    if (metric->kind == PH_METRIC_HISTOGRAM)
        add_histogram(out, metric);
    else
        add_line(out, metric, metric->kind == PH_METRIC_COUNTER ? "_total" : "", NULL, metric->value);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

struct text {
    struct ph__out out;
    ph_metrics_format format;
    const char *name; /* of the series before */
    bool failed;
};

static bool grow(struct text *text) {
    const size_t capacity = text->out.capacity ? 2 * text->out.capacity : ROOM_AT_FIRST;
    char *bytes = realloc(text->out.bytes, capacity);

    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->out.bytes = bytes;
    text->out.capacity = capacity;
    return true;
}

static void add_series(void *context, const ph_metric *metric) {
    struct text *text = context;
    const bool first = !text->name || strcmp(text->name, metric->name) != 0;
    const size_t before = text->out.used;

    text->name = metric->name;
    while (!text->failed) {
        ph__metrics_text_series(&text->out, text->format, metric, first);
        if (!text->out.cut)
            return;
        text->out.used = before;
        text->out.cut = false;
        grow(text);
    }
}

/* The last line, and a NUL. */
static bool end(struct text *text) {
    static const char last[] = "# EOF\n";
    const size_t length = text->format == PH_METRICS_OPENMETRICS ? sizeof last - 1 : 0;

    if (text->failed || (text->out.capacity - text->out.used < sizeof last && !grow(text)))
        return false;
    memcpy(text->out.bytes + text->out.used, last, length);
    text->out.used += length;
    text->out.bytes[text->out.used] = 0;
    return true;
}

char *ph_metrics_text(ph_metrics *metrics, ph_metrics_format format, size_t *size) {
    struct text text = {.format = format, .failed = (unsigned)format > PH_METRICS_OPENMETRICS};

    if (size)
        *size = 0;
    if (grow(&text))
        ph_metrics_visit(metrics, add_series, &text);
    /* Nothing was visited: there are no metrics, or they are another process's. */
    if (!text.name || !end(&text)) {
        free(text.out.bytes);
        return NULL;
    }
    if (size)
        *size = text.out.used;
    return text.out.bytes;
}
