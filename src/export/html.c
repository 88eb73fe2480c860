/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for a page in HTML: the page itself (page/), and behind it the trace as JSON, in script elements
 * that no browser runs, of a few hundred items each. The page reads them when all is there, so a file that
 * ends early is a page too.
 *
 * Everything a guest has chosen is in a JSON text, where (markup) leaves nothing that HTML would see. An item
 * is a line: a text, which gets the next number, or an array that names texts by their numbers, or has them
 * itself where the table is full. model.js reads them.
 */
#include <inttypes.h>
#include <string.h>

#include <pinhole/export.h>
#include <pinhole/pinhole.h>

#include "base/time.h"
#include "export/file_sink.h"
#include "export/intern.h"
#include "export/page/page.h"
#include "trace/ids.h"

/* What a browser draws well. Behind these, and behind so many bytes of the file, things are only counted. */
#define KEPT_MOST 100000u
#define KEPT_BYTES_MOST (UINT64_C(64) << 20)

/* Spans around all others end last: so many of them are written also behind that. */
#define FRAMES_MOST 1000u

#define CHUNK_ITEMS 500u
#define CHUNK_BEGIN "<script type=\"application/json\" class=\"chunk\">[\n"
#define CHUNK_END "\n]</script>\n"

/* Of spans, events or counters. */
struct count {
    uint64_t came;
    uint64_t kept;
};

struct sink {
    struct ph__file_sink to;
    uint32_t items;   /* in the chunk under way */
    uint32_t frames;  /* spans written behind KEPT_MOST */
    uint64_t base_ns; /* since 1970; the trace's zero */
    struct count spans, events, counters;
    struct ph__intern texts;
};

static void begin_item(struct sink *sink) {
    if (sink->items == CHUNK_ITEMS) {
        ph__out_text(&sink->to.out, CHUNK_END);
        sink->items = 0;
    }
    ph__out_text(&sink->to.out, sink->items++ ? ",\n" : CHUNK_BEGIN);
}

static void end_item(struct sink *sink) {
    ph__out_text(&sink->to.out, "]");
    ph__out_flush(&sink->to.out);
}

static void add_string(struct sink *sink, const char *text) {
    ph__json_text(&sink->to.out, text, strlen(text));
}

/* ---- texts --------------------------------------------------------------------------------------------- */

/* Makes an item of (text) where it has no number yet and there is room. Not within another item. */
static void define(struct sink *sink, const char *text) {
    bool is_new = false;

    if (!text)
        return;
    ph__intern_number(&sink->texts, 0, text, strlen(text), &is_new);
    if (!is_new)
        return;
    begin_item(sink);
    add_string(sink, text);
}

/* The number of (text), or itself. What was not defined is not known here either: the table only fills up in
 * define. */
static void add_text(struct sink *sink, const char *text) {
    bool is_new = false;
    uint64_t number = text ? ph__intern_number(&sink->texts, 0, text, strlen(text), &is_new) : 0;

    if (number) {
        ph__out_u64(&sink->to.out, number);
        return;
    }
    add_string(sink, text ? text : "");
}

static void define_all(struct sink *sink, const char *name, const ph_source *source, const ph_field *fields,
                       size_t count) {
    define(sink, name);
    define(sink, source->file);
    define(sink, source->function);
    for (size_t i = 0; i < count; i++)
        define(sink, fields[i].name ? fields[i].name : "");
}

/* ---- parts of items ------------------------------------------------------------------------------------ */

static void add_number(struct sink *sink, uint64_t number) {
    ph__out_text(&sink->to.out, ",");
    ph__out_u64(&sink->to.out, number);
}

static void add_name(struct sink *sink, const char *name) {
    ph__out_text(&sink->to.out, ",");
    add_text(sink, name);
}

/* Since the trace's zero, so that a double has it to the nanosecond for the first hundred days. */
static void add_time(struct sink *sink, uint64_t time_ns) {
    ph__out_text(&sink->to.out, ",");
    ph__out_i64(&sink->to.out, (int64_t)(time_ns - sink->base_ns));
}

/* The object at an item's end: there is none when nothing is in it. */
struct extras {
    struct sink *sink;
    bool any;
};

static void add_key(struct extras *extras, const char *key) {
    ph__out_format(&extras->sink->to.out, extras->any ? ",\"%s\":" : ",{\"%s\":", key);
    extras->any = true;
}

static void end_extras(struct extras *extras) {
    if (extras->any)
        ph__out_text(&extras->sink->to.out, "}");
}

static void add_message(struct extras *extras, const char *message) {
    if (!message)
        return;
    add_key(extras, "m");
    add_string(extras->sink, message);
}

static void add_source(struct extras *extras, const ph_source *source) {
    if (source->file) {
        add_key(extras, "f");
        add_text(extras->sink, source->file);
    }
    if (source->line) {
        add_key(extras, "l");
        ph__out_u64(&extras->sink->to.out, source->line);
    }
    if (source->function) {
        add_key(extras, "n");
        add_text(extras->sink, source->function);
    }
}

static const char *type_name(ph_type type) {
    switch (type) {
    case PH_I32:
    case PH_I64:
        return "i64";
    case PH_U32:
    case PH_U64:
        return "u64";
    case PH_F32:
    case PH_F64:
        return "f64";
    case PH_BOOL:
        return "bool";
    case PH_STR:
        return "string";
    case PH_BYTES:
        return "bytes";
    case PH_POINTER:
        return "pointer";
    default:
        return "void";
    }
}

/* Always a text: a script's number would round a large one. */
static void add_value(struct sink *sink, const ph_value *value, size_t size) {
    bool has_quotes = value->type == PH_STR || value->type == PH_BYTES || value->type == PH_POINTER ||
                      (value->type == PH_U64 && value->u64 > INT64_MAX);

    if (has_quotes) {
        ph__json_value(&sink->to.out, value, size);
    } else if (value->type == PH_F64 || value->type == PH_F32) {
        ph__out_text(&sink->to.out, "\"");
        ph__out_f64(&sink->to.out, value->type == PH_F64 ? value->f64 : (double)value->f32);
        ph__out_text(&sink->to.out, "\"");
    } else {
        ph__out_text(&sink->to.out, "\"");
        ph__json_value(&sink->to.out, value, size);
        ph__out_text(&sink->to.out, "\"");
    }
}

/* `[NAME,TYPE,VALUE]`, and the full size behind it when it was cut. */
static void add_field(struct sink *sink, const ph_field *field) {
    ph__out_text(&sink->to.out, "[");
    add_text(sink, field->name);
    ph__out_format(&sink->to.out, ",\"%s\",", type_name(field->value.type));
    add_value(sink, &field->value, field->size);
    if (field->full_size > field->size)
        add_number(sink, field->full_size);
    ph__out_text(&sink->to.out, "]");
}

static void add_fields(struct extras *extras, const ph_field *fields, size_t count) {
    if (!count)
        return;
    add_key(extras, "v");
    for (size_t i = 0; i < count; i++) {
        ph__out_text(&extras->sink->to.out, i ? "," : "[");
        add_field(extras->sink, &fields[i]);
    }
    ph__out_text(&extras->sink->to.out, "]");
}

/* ---- items --------------------------------------------------------------------------------------------- */

/* Counts one more, and whether it is to be written. */
static bool take(struct sink *sink, struct count *count) {
    count->came++;
    if (count->kept >= KEPT_MOST || sink->to.out.written >= KEPT_BYTES_MOST)
        return false;
    count->kept++;
    return true;
}

/* A span of the host's that has all others inside. */
static bool take_frame(struct sink *sink, const ph_trace_span *span) {
    bool is_frame = span->kind == PH_SPAN_HOST || span->kind == PH_SPAN_CALL || span->kind == PH_SPAN_GUEST;

    if (!is_frame || sink->frames >= FRAMES_MOST)
        return false;
    sink->frames++;
    sink->spans.kept++;
    return true;
}

/* Bytes in hexadecimal, unless all are 0. */
static void add_hex(struct extras *extras, const char *key, const uint8_t *bytes, size_t size) {
    if (!ph__id_is_set(bytes, size))
        return;
    add_key(extras, key);
    ph__out_text(&extras->sink->to.out, "\"");
    for (size_t i = 0; i < size; i++)
        ph__out_format(&extras->sink->to.out, "%02x", bytes[i]);
    ph__out_text(&extras->sink->to.out, "\"");
}

/* Of a root: whose trace it is in. */
static void add_context(struct extras *extras, const ph_trace_span *span) {
    if (span->parent)
        return;
    add_hex(extras, "t", span->trace_id, sizeof span->trace_id);
    add_hex(extras, "r", span->remote_parent, sizeof span->remote_parent);
    if (span->trace_state) {
        add_key(extras, "w");
        add_string(extras->sink, span->trace_state);
    }
}

/* By which other systems know the span. Guests have too many spans to write it for each. */
static void add_w3c_id(struct extras *extras, const ph_trace_span *span) {
    uint8_t bytes[8];

    if (span->kind != PH_SPAN_HOST && span->kind != PH_SPAN_CALL && span->kind != PH_SPAN_HOST_FUNCTION)
        return;
    ph_trace_span_id(span->id, bytes);
    add_hex(extras, "i", bytes, sizeof bytes);
}

static void add_span_extras(struct sink *sink, const ph_trace_span *span) {
    struct extras extras = {.sink = sink};

    if (span->unfinished) {
        add_key(&extras, "u");
        ph__out_text(&sink->to.out, "1");
    }
    if (span->status != PH_OK) {
        add_key(&extras, "s");
        add_string(sink, ph_status_kind(span->status));
    }
    add_message(&extras, span->message);
    add_source(&extras, &span->source);
    add_context(&extras, span);
    add_w3c_id(&extras, span);
    if (span->dropped_fields) {
        add_key(&extras, "d");
        ph__out_u64(&sink->to.out, span->dropped_fields);
    }
    add_fields(&extras, span->fields, span->field_count);
    end_extras(&extras);
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;

    if (!take(sink, &sink->spans) && !take_frame(sink, span))
        return;
    define_all(sink, span->name, &span->source, span->fields, span->field_count);
    begin_item(sink);
    ph__out_text(&sink->to.out, "[\"s\"");
    add_number(sink, span->sandbox);
    add_number(sink, span->id);
    add_number(sink, span->parent);
    add_number(sink, (uint64_t)span->kind);
    add_number(sink, (uint64_t)span->level);
    add_name(sink, span->name);
    add_time(sink, span->start_ns);
    add_number(sink, span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    add_span_extras(sink, span);
    end_item(sink);
}

static void take_event(void *context, const ph_trace_event *event) {
    struct sink *sink = context;
    struct extras extras = {.sink = sink};

    if (!take(sink, &sink->events))
        return;
    define_all(sink, event->name, &event->source, event->fields, event->field_count);
    begin_item(sink);
    ph__out_text(&sink->to.out, "[\"v\"");
    add_number(sink, event->sandbox);
    add_number(sink, event->span);
    add_number(sink, (uint64_t)event->level);
    add_name(sink, event->name);
    add_time(sink, event->time_ns);
    add_message(&extras, event->message);
    add_source(&extras, &event->source);
    add_fields(&extras, event->fields, event->field_count);
    end_extras(&extras);
    end_item(sink);
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct sink *sink = context;

    if (!take(sink, &sink->counters))
        return;
    define(sink, counter->name);
    begin_item(sink);
    ph__out_text(&sink->to.out, "[\"c\"");
    add_number(sink, counter->sandbox);
    add_number(sink, counter->span);
    add_name(sink, counter->name);
    add_time(sink, counter->time_ns);
    ph__out_text(&sink->to.out, ",");
    add_value(sink, &counter->value, 0);
    end_item(sink);
}

/* ---- begin and end ------------------------------------------------------------------------------------- */

static void add_left_out(struct sink *sink, const struct count *count) {
    add_number(sink, count->came - count->kept);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    begin_item(sink);
    ph__out_text(&sink->to.out, "[\"end\"");
    add_left_out(sink, &sink->spans);
    add_left_out(sink, &sink->events);
    add_left_out(sink, &sink->counters);
    end_item(sink);
    ph__out_text(&sink->to.out, CHUNK_END "</body>\n</html>\n");
    ph__file_sink_end(sink);
}

/* The page, the trace's zero since 1970, and who wrote it. */
static void begin(struct sink *sink) {
    ph__out_add(&sink->to.out, ph__page, ph__page_size);
    begin_item(sink);
    ph__out_format(&sink->to.out, "[\"zero\",\"%" PRIu64 "\",", sink->base_ns);
    add_string(sink, ph_version());
    end_item(sink);
}

ph_status ph_html_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_status status;
    struct sink *opened =
        ph__file_sink_new(options, sizeof *opened, "a sink of a page", sink, &status, error);

    if (!opened)
        return status;
    opened->base_ns = ph__time_ns(CLOCK_REALTIME);
    opened->to.out.markup = true;
    begin(opened);
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = ph__file_sink_flush,
                      .close = close_sink};
    return PH_OK;
}
