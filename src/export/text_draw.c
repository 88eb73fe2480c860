/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Draws trees of spans for a terminal (text.h): a line each, with its duration in one column. Nothing here
 * recurses, since a guest decides how deep a tree is.
 */
#include <inttypes.h>
#include <string.h>

#include "export/text.h"

/* The column of labels is as wide as the widest in it, within these. */
#define COLUMN_MIN 40u
#define COLUMN_MAX 56u
/* "999.999 us" */
#define DURATION_WIDTH 10u
/* What is deeper is drawn at this depth, with a word of how deep it is: a line per span would otherwise be
 * mostly indentation. */
#define DEPTH_MAX 32u
/* Columns for each step of depth. */
#define STEP 3u

#define RESET "\033[0m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define BOLD "\033[1m"

struct drawing {
    struct ph__out *out;
    const struct ph__text_style *style;
    unsigned column;
    bool more[DEPTH_MAX + 1]; /* whether a line goes on below the node that was drawn last at a depth */
};

static void paint(struct drawing *drawing, const char *colour, const char *text) {
    bool use = drawing->style->colour && *colour && *text;

    if (use)
        ph__out_text(drawing->out, colour);
    ph__out_text(drawing->out, text);
    if (use)
        ph__out_text(drawing->out, RESET);
}

static const char *either(const struct drawing *drawing, const char *unicode, const char *ascii) {
    return drawing->style->ascii ? ascii : unicode;
}

static void pad(struct drawing *drawing, unsigned from, unsigned to) {
    for (; from < to; from++)
        ph__out_add(drawing->out, " ", 1);
}

/* What a span's kind looks like. Host spans say what they are in their names. */
static const char *colour_of(const struct ph__node *node) {
    if (node->failed || node->level == PH_LEVEL_ERROR)
        return RED;
    if (node->level == PH_LEVEL_WARN)
        return YELLOW;
    if (node->type != PH__NODE_SPAN)
        return "";
    switch (node->kind) {
    case PH_SPAN_HOST:
    case PH_SPAN_CALL:
        return BOLD;
    case PH_SPAN_HOST_FUNCTION:
        return "\033[35m"; /* magenta */
    case PH_SPAN_FUNCTION:
        return "\033[36m"; /* cyan */
    case PH_SPAN_SYSTEM_CALL:
        return "\033[34m"; /* blue */
    case PH_SPAN_ASYNC:
        return "\033[32m"; /* green */
    default:
        return "";
    }
}

static void draw_branches(struct drawing *drawing, const struct ph__node *node, unsigned depth) {
    unsigned steps = depth < DEPTH_MAX ? depth : DEPTH_MAX;
    char text[STEP * 2 * DEPTH_MAX + 64];
    size_t used = 0;

    for (unsigned i = 1; i <= steps; i++) {
        const char *branch = drawing->more[i] ? either(drawing, "\u2502  ", "|  ") : "   ";
        if (i == steps && node->type == PH__NODE_EVENT)
            branch = either(drawing, "\u00b7  ", "*  ");
        else if (i == steps && node->type == PH__NODE_COUNTER)
            branch = "~  ";
        else if (i == steps)
            branch = node->next ? either(drawing, "\u251c\u2500 ", "|- ")
                                : either(drawing, "\u2514\u2500 ", "`- ");
        size_t length = strlen(branch);
        memcpy(text + used, branch, length);
        used += length;
    }
    text[used] = 0;
    paint(drawing, DIM, text);
}

static void draw_duration(struct drawing *drawing, const struct ph__node *node, const char *sign,
                          uint64_t ns) {
    char text[32];
    struct ph__out duration = {.bytes = text, .capacity = sizeof text - 1};

    ph__out_text(&duration, sign);
    ph__shown_duration(&duration, ns);
    text[duration.used] = 0;
    pad(drawing, (unsigned)duration.used, DURATION_WIDTH + 1);
    paint(drawing, node->type == PH__NODE_SPAN ? "" : DIM, text);
}

/* A span's duration, or how long after its span's begin an event was. */
static void draw_time(struct drawing *drawing, const struct ph__node *node) {
    const struct ph__node *parent = node->parent;

    if (node->type == PH__NODE_SPAN)
        draw_duration(drawing, node, "", node->end_ns - node->start_ns);
    else if (node->type != PH__NODE_OPEN && parent && parent->type == PH__NODE_SPAN &&
             node->start_ns >= parent->start_ns)
        draw_duration(drawing, node, "+", node->start_ns - parent->start_ns);
    else if (*node->details || *node->failure)
        pad(drawing, 0, DURATION_WIDTH + 1);
}

static void draw_node(struct drawing *drawing, const struct ph__node *node, unsigned depth,
                      bool mark_sandbox) {
    unsigned steps = depth < DEPTH_MAX ? depth : DEPTH_MAX;
    unsigned width = STEP * steps + node->label_width;

    draw_branches(drawing, node, depth);
    paint(drawing, colour_of(node), node->label);
    if (node->type == PH__NODE_SPAN || *node->details || *node->failure || node->parent)
        pad(drawing, width, drawing->column);
    draw_time(drawing, node);
    if (*node->details) {
        ph__out_text(drawing->out, "  ");
        ph__out_text(drawing->out, node->details);
    }
    if (*node->failure) {
        ph__out_text(drawing->out, "  ");
        paint(drawing, RED, node->failure);
    }
    if (node->late)
        paint(drawing, DIM, "  [outlived its parent, which is above]");
    if (depth > DEPTH_MAX) {
        char text[48] = "";
        struct ph__out word = {.bytes = text, .capacity = sizeof text - 1};
        ph__out_format(&word, "  (depth %u)", depth);
        paint(drawing, DIM, text);
    }
    if (mark_sandbox) {
        char text[48] = "";
        struct ph__out word = {.bytes = text, .capacity = sizeof text - 1};
        ph__out_format(&word, "  [sandbox %" PRIu64 "]", node->sandbox);
        paint(drawing, DIM, text);
    }
    ph__out_text(drawing->out, "\n");
}

/* ---- order --------------------------------------------------------------------------------------------- */

static struct ph__node *merge(struct ph__node *left, struct ph__node *right) {
    struct ph__node *list = NULL;
    struct ph__node **end = &list;

    while (left && right) {
        struct ph__node **from = right->start_ns < left->start_ns ? &right : &left;
        *end = *from;
        end = &(*from)->next;
        *from = *end;
    }
    *end = left ? left : right;
    return list;
}

/* Sorts a list by time, and by order of arrival where that is the same: a merge sort from the bottom up, in
 * which (runs[i]) is a sorted list of 2^i nodes, or none. */
static struct ph__node *sort(struct ph__node *list) {
    struct ph__node *runs[33] = {NULL};
    struct ph__node *sorted = NULL;

    while (list) {
        struct ph__node *run = list;
        unsigned i = 0;
        list = run->next;
        run->next = NULL;
        for (; i < 32 && runs[i]; i++) {
            run = merge(runs[i], run);
            runs[i] = NULL;
        }
        runs[i] = merge(runs[i], run);
    }
    for (unsigned i = 0; i < 33; i++)
        sorted = merge(runs[i], sorted);
    return sorted;
}

/* The node that is drawn after (node), which is at (*depth); NULL behind the last one. */
static struct ph__node *following(struct ph__node *node, const struct ph__node *root, unsigned *depth) {
    if (node->first) {
        *depth += 1;
        return node->first;
    }
    while (node != root && !node->next) {
        node = node->parent;
        *depth -= 1;
    }
    return node == root ? NULL : node->next;
}

/* ---- trees --------------------------------------------------------------------------------------------- */

static unsigned column_of(struct ph__node *root) {
    unsigned column = COLUMN_MIN;
    unsigned depth = 0;

    for (struct ph__node *node = root; node; node = following(node, root, &depth)) {
        unsigned width = STEP * (depth < DEPTH_MAX ? depth : DEPTH_MAX) + node->label_width;
        if (width > column)
            column = width < COLUMN_MAX ? width : COLUMN_MAX;
        node->first = sort(node->first);
    }
    return column;
}

void ph__text_draw(struct ph__out *out, const struct ph__text_style *style, struct ph__node *root,
                   bool mark_sandbox) {
    struct drawing drawing = {.out = out, .style = style, .column = column_of(root)};
    unsigned depth = 0;

    for (struct ph__node *node = root; node; node = following(node, root, &depth)) {
        draw_node(&drawing, node, depth, mark_sandbox && node == root);
        /* What is deeper than DEPTH_MAX shares its column, which shows no lines. */
        if (depth <= DEPTH_MAX)
            drawing.more[depth] = depth > 0 && node->next;
    }
    ph__out_flush(out);
}

void ph__text_draw_line(struct ph__out *out, const struct ph__text_style *style, const struct ph__node *event,
                        bool mark_sandbox) {
    struct drawing drawing = {.out = out, .style = style, .column = COLUMN_MIN};

    paint(&drawing, DIM, event->type == PH__NODE_COUNTER ? "~  " : either(&drawing, "\u00b7  ", "*  "));
    drawing.column -= STEP;
    draw_node(&drawing, event, 0, mark_sandbox);
    ph__out_flush(out);
}

void ph__text_draw_missed(struct ph__out *out, const struct ph__text_style *style, uint64_t missed) {
    struct drawing drawing = {.out = out, .style = style};

    paint(&drawing, "", either(&drawing, "\u2026", "..."));
    ph__out_format(out, " %" PRIu64 " more spans and events not shown; a trace as jsonl has them all\n",
                   missed);
    ph__out_flush(out);
}
