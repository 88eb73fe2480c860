/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What stands in a line of the text sink (text.h), made printable as soon as it comes: what the tracer hands
 * over is only valid during the call, and a line takes less memory than what it is made from.
 */
#include "export/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/level.h"

/* Of one line, its terminators included. */
#define LINE_MAX_BYTES 4096u
#define LABEL_CHARACTERS_MAX 120u
#define MESSAGE_CHARACTERS_MAX 512u

/* Builds the three texts of a line. The fields, which may be cut, come last. */
struct line {
    struct ph__out out;
    size_t failure, details; /* where they begin */
    char bytes[LINE_MAX_BYTES];
};

#define LINE_PARTS 3u
#define DOTS_BYTES 3u

static const char *dots(const struct ph__out *out) {
    return out->ascii ? "..." : "\u2026";
}

static void line_init(struct line *line, bool ascii) {
    line->out = (struct ph__out){
        .bytes = line->bytes, .capacity = sizeof line->bytes - LINE_PARTS * (1 + DOTS_BYTES), .ascii = ascii};
    line->failure = line->details = 0;
}

/* Ends a part with its NUL, and with dots where it was cut. Returns where the next one begins. */
static size_t end_part(struct line *line) {
    line->out.capacity += 1 + DOTS_BYTES;
    if (line->out.cut) {
        line->out.cut = false;
        ph__out_text(&line->out, dots(&line->out));
    }
    ph__out_add(&line->out, "", 1);
    return line->out.used;
}

static void add_fields(struct line *line, const ph_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (line->out.used > line->details)
            ph__out_text(&line->out, "  ");
        ph__shown_field(&line->out, &fields[i]);
    }
}

static void add_name(struct line *line, const char *name) {
    if (!name)
        name = "(no name)";
    if (!ph__shown_text(&line->out, name, strlen(name), LABEL_CHARACTERS_MAX, false))
        ph__out_text(&line->out, dots(&line->out));
}

static void add_message(struct line *line, const char *message) {
    if (!ph__shown_text(&line->out, message, strlen(message), MESSAGE_CHARACTERS_MAX, false))
        ph__out_text(&line->out, dots(&line->out));
}

/* Why a span failed. What a call left unfinished has the call's own message, which stands there. */
static void add_failure(struct line *line, const ph_trace_span *span) {
    if (!span->unfinished && span->status == PH_OK)
        return;
    ph__out_text(&line->out, "[");
    if (span->unfinished)
        ph__out_text(&line->out, span->status == PH_OK ? "unfinished" : "unfinished: ");
    if (span->status != PH_OK)
        ph__out_text(&line->out, ph_status_kind(span->status));
    if (span->message && *span->message && (!span->unfinished || !span->parent)) {
        ph__out_text(&line->out, ": ");
        add_message(line, span->message);
    }
    ph__out_text(&line->out, "]");
}

static void span_line(struct line *line, const ph_trace_span *span) {
    /* One without a name is "system call NUMBER". */
    if (span->kind == PH_SPAN_SYSTEM_CALL && span->name && !strchr(span->name, ' '))
        ph__out_text(&line->out, "syscall ");
    add_name(line, span->name);
    if (span->kind == PH_SPAN_FUNCTION)
        ph__out_text(&line->out, "()");
    if (span->kind == PH_SPAN_ASYNC)
        ph__out_text(&line->out, " (async)");
    line->failure = end_part(line);
    add_failure(line, span);
    line->details = end_part(line);
    add_fields(line, span->fields, span->field_count);
    end_part(line);
}

/* A log's values are in its message, unless they have names of their own. */
static void event_line(struct line *line, const ph_trace_event *event) {
    ph__out_text(&line->out, ph__level_name(event->level));
    if (!event->message) {
        ph__out_text(&line->out, " ");
        add_name(line, event->name);
    }
    line->failure = end_part(line);
    line->details = end_part(line);
    if (event->message)
        add_message(line, event->message);
    for (size_t i = 0; i < event->field_count; i++)
        if (!event->message || (event->fields[i].name && *event->fields[i].name))
            add_fields(line, &event->fields[i], 1);
    end_part(line);
}

static void counter_line(struct line *line, const ph_trace_counter *counter) {
    add_name(line, counter->name);
    ph__out_text(&line->out, " = ");
    ph__shown_value(&line->out, &counter->value, 0, 0);
    line->failure = end_part(line);
    line->details = end_part(line);
    end_part(line);
}

/* Characters of (text), which is printable: a terminal's columns, but for wide and combining ones. */
static uint16_t width_of(const char *text) {
    uint16_t width = 0;

    for (; *text; text++)
        if ((*text & 0xc0) != 0x80)
            width++;
    return width;
}

/* A node with the texts of (line), which are at most LINE_MAX_BYTES. NULL when there is no memory. */
static struct ph__node *node_create(const struct line *line) {
    size_t size = sizeof(struct ph__node) + line->out.used;
    struct ph__node *node = malloc(size);

    if (!node)
        return NULL;
    *node = (struct ph__node){.bytes = size};
    memcpy(node->text, line->bytes, line->out.used);
    node->label = node->text;
    node->label_width = width_of(node->text);
    node->failure = node->text + line->failure;
    node->details = node->text + line->details;
    return node;
}

struct ph__node *ph__node_create_open(void) {
    static const char label[] = "(a span that has not ended)";
    struct ph__node *node = malloc(sizeof *node);

    if (node)
        *node = (struct ph__node){.type = PH__NODE_OPEN,
                                  .level = PH_LEVEL_INFO,
                                  .bytes = sizeof *node,
                                  .label = label,
                                  .label_width = sizeof label - 1,
                                  .details = "",
                                  .failure = ""};
    return node;
}

struct ph__node *ph__node_create_span(const ph_trace_span *span, bool ascii) {
    struct line line;

    line_init(&line, ascii);
    span_line(&line, span);
    struct ph__node *node = node_create(&line);
    if (!node)
        return NULL;
    node->type = PH__NODE_SPAN;
    node->kind = span->kind;
    node->level = span->level;
    node->failed = span->unfinished || span->status != PH_OK;
    node->id = span->id;
    node->sandbox = span->sandbox;
    node->start_ns = span->start_ns;
    node->end_ns = span->end_ns > span->start_ns ? span->end_ns : span->start_ns;
    return node;
}

struct ph__node *ph__node_create_event(const ph_trace_event *event, bool ascii) {
    struct line line;

    line_init(&line, ascii);
    event_line(&line, event);
    struct ph__node *node = node_create(&line);
    if (!node)
        return NULL;
    node->type = PH__NODE_EVENT;
    node->level = event->level;
    node->sandbox = event->sandbox;
    node->start_ns = node->end_ns = event->time_ns;
    return node;
}

struct ph__node *ph__node_create_counter(const ph_trace_counter *counter, bool ascii) {
    struct line line;

    line_init(&line, ascii);
    counter_line(&line, counter);
    struct ph__node *node = node_create(&line);
    if (!node)
        return NULL;
    node->type = PH__NODE_COUNTER;
    node->level = PH_LEVEL_INFO;
    node->sandbox = counter->sandbox;
    node->start_ns = node->end_ns = counter->time_ns;
    return node;
}
