/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The text sink's trees: text.c keeps spans and events until their root has ended, text_draw.c draws them.
 */
#ifndef PH_EXPORT_TEXT_H
#define PH_EXPORT_TEXT_H

#include "export/out.h"

enum ph__node_type {
    PH__NODE_OPEN, /* a span whose children are here and that has not ended yet */
    PH__NODE_SPAN,
    PH__NODE_EVENT,
    PH__NODE_COUNTER,
};

/* One line of a tree. (label) and what follows are made printable, in one piece of memory. Children are in
 * the order in which they came until they are drawn. */
struct ph__node {
    enum ph__node_type type;
    ph_span_kind kind;
    ph_level level;
    bool failed;
    bool late; /* its parent has been drawn already */
    uint64_t id;
    uint64_t sandbox;
    uint64_t start_ns, end_ns;
    struct ph__node *parent;
    struct ph__node *first, *last; /* children */
    struct ph__node *next;         /* behind it among its parent's children, or in its forest */
    struct ph__node *chain;        /* in its forest's table */
    size_t bytes;                  /* of memory */
    uint16_t label_width;          /* in characters */
    const char *label;
    const char *details;
    const char *failure;
    char text[];
};

/* text_line.c: nodes, from malloc and in no tree; NULL when there is no memory. (ascii): characters beyond it
 * are escaped. */
struct ph__node *ph__node_create_open(void);
struct ph__node *ph__node_create_span(const ph_trace_span *span, bool ascii);
struct ph__node *ph__node_create_event(const ph_trace_event *event, bool ascii);
struct ph__node *ph__node_create_counter(const ph_trace_counter *counter, bool ascii);

struct ph__text_style {
    bool colour;
    bool ascii;
};

/* Draws (root) and all below it, whose children it sorts by time. (mark_sandbox): says which sandbox it is
 * from. */
void ph__text_draw(struct ph__out *out, const struct ph__text_style *style, struct ph__node *root,
                   bool mark_sandbox);

/* Draws (event), which is in no tree. */
void ph__text_draw_line(struct ph__out *out, const struct ph__text_style *style, const struct ph__node *event,
                        bool mark_sandbox);

/* Says that (missed) spans and events of the tree above were not kept. */
void ph__text_draw_missed(struct ph__out *out, const struct ph__text_style *style, uint64_t missed);

/* Whether to use colour for what ends up at the descriptor (fd). */
bool ph__text_wants_colour(ph_colour colour, int fd);

#endif
