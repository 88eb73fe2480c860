/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The JSON-lines sink: an object for each span, event and counter, as they come. docs/tracing.md has the
 * keys.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/level.h"
#include "export/file_sink.h"
#include "export/out.h"
#include "export/span_kind.h"
#include "trace/ids.h"

static void add_string(struct ph__out *out, const char *text) {
    ph__json_text(out, text, strlen(text));
}

/* `,"key":` */
static void add_key(struct ph__out *out, const char *key) {
    ph__out_add(out, ",\"", 2);
    ph__out_text(out, key);
    ph__out_add(out, "\":", 2);
}

static void add_text(struct ph__out *out, const char *key, const char *text) {
    if (!text)
        return;
    add_key(out, key);
    add_string(out, text);
}

static void add_number(struct ph__out *out, const char *key, uint64_t number) {
    add_key(out, key);
    ph__out_u64(out, number);
}

/* The (size) bytes at (id) in hexadecimal, unless all are 0. */
static void add_id(struct ph__out *out, const char *key, const uint8_t *id, size_t size) {
    static const char digits[] = "0123456789abcdef";

    if (!ph__id_is_set(id, size))
        return;
    add_key(out, key);
    ph__out_add(out, "\"", 1);
    for (size_t i = 0; i < size; i++)
        ph__out_add(out, (const char[]){digits[id[i] >> 4], digits[id[i] & 15]}, 2);
    ph__out_add(out, "\"", 1);
}

/* Those of a root: its spans lead to it. */
static void add_trace(struct ph__out *out, const ph_trace_span *span) {
    add_id(out, "trace_id", span->trace_id, sizeof span->trace_id);
    add_id(out, "remote_parent", span->remote_parent, sizeof span->remote_parent);
}

static void add_source(struct ph__out *out, const ph_source *source) {
    add_text(out, "file", source->file);
    if (source->line)
        add_number(out, "line", source->line);
    add_text(out, "function", source->function);
}

/* ---- fields -------------------------------------------------------------------------------------------- */

/* A value without a name goes by its position. */
static const char *name_of(const ph_field *fields, size_t i, char number[24]) {
    if (fields[i].name && *fields[i].name)
        return fields[i].name;
    snprintf(number, 24, "%zu", i);
    return number;
}

static bool is_same_name(const ph_field *fields, size_t i, size_t j) {
    char one[24], other[24];

    return strcmp(name_of(fields, i, one), name_of(fields, j, other)) == 0;
}

/* The first field at (from) or behind it that has (i)'s name; (count) when there is none. */
static size_t same_name(const ph_field *fields, size_t from, size_t count, size_t i) {
    while (from < count && !is_same_name(fields, from, i))
        from++;
    return from;
}

static bool is_cut(const ph_field *field) {
    return (field->value.type == PH_STR || field->value.type == PH_BYTES) && field->full_size > field->size;
}

static void add_value(struct ph__out *out, const ph_field *field) {
    ph__json_value(out, &field->value, field->size);
}

static void add_full_size(struct ph__out *out, const ph_field *field) {
    ph__out_format(out, "%zu", is_cut(field) ? field->full_size : field->size);
}

/* One object with a member for each name: no name twice, since readers then take either. What several fields
 * say of one name is an array. */
static void add_members(struct ph__out *out, const char *key, const ph_field *fields, size_t count,
                        void (*add)(struct ph__out *out, const ph_field *field), bool cut_only) {
    bool any = false;
    char number[24];

    for (size_t i = 0; i < count; i++) {
        bool wanted = !cut_only;
        if (same_name(fields, 0, count, i) != i)
            continue;
        for (size_t j = i; j < count && !wanted; j = same_name(fields, j + 1, count, i))
            wanted = is_cut(&fields[j]);
        if (!wanted)
            continue;
        if (any)
            ph__out_text(out, ",");
        else
            add_key(out, key);
        ph__out_text(out, any ? "" : "{");
        any = true;
        add_string(out, name_of(fields, i, number));
        ph__out_text(out, ":");
        bool many = same_name(fields, i + 1, count, i) < count;
        ph__out_text(out, many ? "[" : "");
        for (size_t j = i; j < count; j = same_name(fields, j + 1, count, i)) {
            ph__out_text(out, j > i ? "," : "");
            add(out, &fields[j]);
        }
        ph__out_text(out, many ? "]" : "");
    }
    ph__out_text(out, any ? "}" : "");
}

static void add_fields(struct ph__out *out, const ph_field *fields, size_t count) {
    add_members(out, "fields", fields, count, add_value, false);
    add_members(out, "cut", fields, count, add_full_size, true);
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static void begin_line(struct ph__out *out, const char *type, uint64_t sandbox) {
    ph__out_text(out, "{\"type\":\"");
    ph__out_text(out, type);
    ph__out_text(out, "\"");
    add_number(out, "sandbox", sandbox);
}

/* To the file at once: the next line may not come for long, and a stream has a buffer of its own. */
static void end_line(struct ph__out *out) {
    ph__out_text(out, "}\n");
    ph__out_flush(out);
}

static void take_span(void *context, const ph_trace_span *span) {
    struct ph__out *out = &((struct ph__file_sink *)context)->out;

    begin_line(out, "span", span->sandbox);
    add_number(out, "id", span->id);
    if (span->parent)
        add_number(out, "parent", span->parent);
    else
        add_trace(out, span);
    add_text(out, "kind", ph__span_kind_name(span->kind));
    add_text(out, "level", ph__level_name(span->level));
    add_text(out, "name", span->name);
    add_number(out, "start_ns", span->start_ns);
    add_number(out, "end_ns", span->end_ns);
    add_number(out, "duration_ns", span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    if (span->unfinished)
        ph__out_text(out, ",\"unfinished\":true");
    if (span->status != PH_OK)
        add_text(out, "status", ph_status_kind(span->status));
    add_text(out, "message", span->message);
    add_source(out, &span->source);
    add_fields(out, span->fields, span->field_count);
    end_line(out);
}

static void take_event(void *context, const ph_trace_event *event) {
    struct ph__out *out = &((struct ph__file_sink *)context)->out;

    begin_line(out, "event", event->sandbox);
    if (event->span)
        add_number(out, "span", event->span);
    add_text(out, "level", ph__level_name(event->level));
    add_text(out, "name", event->name);
    add_number(out, "time_ns", event->time_ns);
    add_text(out, "message", event->message);
    add_source(out, &event->source);
    add_fields(out, event->fields, event->field_count);
    end_line(out);
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct ph__out *out = &((struct ph__file_sink *)context)->out;

    begin_line(out, "counter", counter->sandbox);
    if (counter->span)
        add_number(out, "span", counter->span);
    add_text(out, "name", counter->name);
    add_number(out, "time_ns", counter->time_ns);
    add_key(out, "value");
    ph__json_value(out, &counter->value, 0);
    add_source(out, &counter->source);
    end_line(out);
}

ph_status ph_jsonl_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_status status;
    struct ph__file_sink *opened =
        ph__file_sink_new(options, sizeof *opened, "a JSON-lines sink", sink, &status, error);

    if (!opened)
        return status;
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = ph__file_sink_flush,
                      .close = ph__file_sink_end};
    return PH_OK;
}
