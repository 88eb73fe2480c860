/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The text sink: keeps what it is given until the root above it has ended, and then has the tree drawn.
 *
 * A parent comes after its children, so whatever comes first makes an open node for its parent, which is
 * filled in when that ends. All that is not drawn yet of one sandbox is a forest. A forest takes no new
 * leaves once it is full, but still the parents of those that it has: at most as many more as spans are open
 * at a time, which the tracer bounds.
 */
#include "export/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/system.h"
#include "export/file_sink.h"

#define SPANS_DEFAULT 65536u
/* Memory for each of the most spans, on average; a single line may have much more. */
#define SPAN_BYTES 512u
#define OUT_BYTES 8192u
/* Sandboxes of which it is known how far they have been drawn. Each takes the place of another one's. */
#define DRAWN_COUNT 256u

struct forest {
    struct forest *next;
    uint64_t sandbox;
    struct ph__node *first;  /* those without a parent, so far */
    struct ph__node **table; /* spans by their id */
    size_t table_size, spans;
    size_t count, bytes; /* of nodes, and of their memory */
    uint64_t missed;
};

struct sink {
    FILE *file;
    bool close_file;
    struct ph__text_style style;
    uint32_t most_spans;
    bool any_sandbox;
    uint64_t first_sandbox; /* the one that needs no mark */
    struct forest *forests;
    struct {
        uint64_t sandbox, end_ns;
    } drawn[DRAWN_COUNT];
    struct ph__out out;
    char out_bytes[OUT_BYTES];
};

/* ---- forests ------------------------------------------------------------------------------------------- */

static struct forest *forest_get(struct sink *sink, uint64_t sandbox) {
    for (struct forest *forest = sink->forests; forest; forest = forest->next)
        if (forest->sandbox == sandbox)
            return forest;
    struct forest *forest = calloc(1, sizeof *forest);
    if (!forest)
        return NULL;
    forest->sandbox = sandbox;
    forest->next = sink->forests;
    sink->forests = forest;
    return forest;
}

static void forest_destroy(struct sink *sink, struct forest *forest) {
    struct forest **link = &sink->forests;

    while (*link != forest)
        link = &(*link)->next;
    *link = forest->next;
    free(forest->table);
    free(forest);
}

static struct ph__node **slot_of(struct forest *forest, uint64_t id) {
    return &forest->table[(id * 0x9e3779b97f4a7c15u) >> 32 & (forest->table_size - 1)];
}

static struct ph__node *span_find(struct forest *forest, uint64_t id) {
    struct ph__node *node = forest->table ? *slot_of(forest, id) : NULL;

    while (node && node->id != id)
        node = node->chain;
    return node;
}

static void chain_add(struct forest *forest, struct ph__node *node) {
    struct ph__node **slot = slot_of(forest, node->id);

    node->chain = *slot;
    *slot = node;
}

/* Makes room for one more. Without memory for a larger table, the chains just get longer. */
static bool table_reserve(struct forest *forest) {
    if (forest->table && forest->spans < forest->table_size)
        return true;
    struct forest larger = {.table_size = forest->table ? 4 * forest->table_size : 64};
    larger.table = calloc(larger.table_size, sizeof(struct ph__node *));
    if (!larger.table)
        return forest->table;
    for (size_t i = 0; i < forest->table_size; i++)
        for (struct ph__node *node = forest->table[i], *next; node; node = next) {
            next = node->chain;
            chain_add(&larger, node);
        }
    free(forest->table);
    forest->table = larger.table;
    forest->table_size = larger.table_size;
    return true;
}

static void unlink_top(struct forest *forest, struct ph__node *node) {
    struct ph__node **link = &forest->first;

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    node->next = NULL;
}

static void charge(struct forest *forest, const struct ph__node *node) {
    forest->count++;
    forest->bytes += node->bytes;
}

/* The open node for the span (id), made when nothing came of it yet. */
static struct ph__node *parent_get(struct forest *forest, uint64_t id) {
    struct ph__node *parent = span_find(forest, id);

    if (parent)
        return parent;
    if (!table_reserve(forest))
        return NULL;
    parent = ph__node_create_open();
    if (!parent)
        return NULL;
    parent->id = id;
    parent->sandbox = forest->sandbox;
    /* The span that was opened last ends first: it is found at the front. */
    parent->next = forest->first;
    forest->first = parent;
    chain_add(forest, parent);
    forest->spans++;
    charge(forest, parent);
    return parent;
}

static void chain_remove(struct forest *forest, struct ph__node *node) {
    struct ph__node **link = slot_of(forest, node->id);

    while (*link && *link != node)
        link = &(*link)->chain;
    if (!*link)
        return;
    *link = node->chain;
    forest->spans--;
}

/* Frees (root) and what is below it, which all are the forest's. */
static void tree_free(struct forest *forest, struct ph__node *root) {
    struct ph__node *node = root;

    while (node) {
        struct ph__node *child = node->first;
        if (child) {
            node->first = child->next;
            node = child;
            continue;
        }
        struct ph__node *parent = node == root ? NULL : node->parent;
        if (node->id && forest->table)
            chain_remove(forest, node);
        forest->count--;
        forest->bytes -= node->bytes;
        free(node);
        node = parent;
    }
}

/* ---- what comes in ------------------------------------------------------------------------------------- */

static bool needs_mark(struct sink *sink, uint64_t sandbox) {
    if (!sink->any_sandbox) {
        sink->any_sandbox = true;
        sink->first_sandbox = sandbox;
    }
    return sandbox != sink->first_sandbox;
}

static bool is_full(const struct sink *sink, const struct forest *forest) {
    return forest->count >= sink->most_spans || forest->bytes >= (uint64_t)sink->most_spans * SPAN_BYTES;
}

static void draw_tree(struct sink *sink, struct forest *forest, struct ph__node *root) {
    ph__text_draw(&sink->out, &sink->style, root, needs_mark(sink, root->sandbox));
    if (forest->missed)
        ph__text_draw_missed(&sink->out, &sink->style, forest->missed);
    forest->missed = 0;
    if (!root->late && root->type == PH__NODE_SPAN) {
        size_t slot = forest->sandbox % DRAWN_COUNT;
        sink->drawn[slot].sandbox = forest->sandbox;
        sink->drawn[slot].end_ns = root->end_ns;
    }
    tree_free(forest, root);
    if (!forest->count)
        forest_destroy(sink, forest);
}

/* Calls of a sandbox come one after the other, so an asynchronous span that began before the end of what was
 * drawn last had its parent there. */
static bool is_late(const struct sink *sink, const ph_trace_span *span) {
    size_t slot = span->sandbox % DRAWN_COUNT;

    return span->kind == PH_SPAN_ASYNC && span->parent && sink->drawn[slot].sandbox == span->sandbox &&
           sink->drawn[slot].end_ns > span->start_ns;
}

/* Puts (node), which is new or was a top, under (parent). */
static void attach(struct ph__node *parent, struct ph__node *node) {
    node->parent = parent;
    node->next = NULL;
    if (parent->first)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
}

/* Puts (node) in the place of (open), which is a top. What was below it stays. */
static void replace(struct forest *forest, struct ph__node *open, struct ph__node *node) {
    chain_remove(forest, open);
    unlink_top(forest, open);
    node->first = open->first;
    node->last = open->last;
    for (struct ph__node *child = node->first; child; child = child->next)
        child->parent = node;
    forest->count--;
    forest->bytes -= open->bytes;
    free(open);
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;
    struct forest *forest = forest_get(sink, span->sandbox);
    bool late = is_late(sink, span);
    bool is_root = !span->parent || late;

    if (!forest)
        return;
    struct ph__node *open = span_find(forest, span->id);
    if (!open && !is_root && is_full(sink, forest)) {
        forest->missed++;
        return;
    }
    struct ph__node *parent = is_root ? NULL : parent_get(forest, span->parent);
    struct ph__node *node = ph__node_create_span(span, sink->style.ascii);
    if ((!is_root && !parent) || !node || !table_reserve(forest)) {
        forest->missed++;
        free(node);
        return;
    }
    node->late = late;
    if (open && open->type == PH__NODE_OPEN)
        replace(forest, open, node);
    chain_add(forest, node);
    forest->spans++;
    charge(forest, node);
    if (parent)
        attach(parent, node);
    else
        draw_tree(sink, forest, node);
}

/* (node) is an event or a counter of the open span (span), or of none; NULL when there was no memory. */
static void take_leaf(struct sink *sink, uint64_t sandbox, uint64_t span, struct ph__node *node) {
    struct forest *forest = span ? forest_get(sink, sandbox) : NULL;

    if (!span && node)
        ph__text_draw_line(&sink->out, &sink->style, node, needs_mark(sink, sandbox));
    struct ph__node *parent = forest && node && !is_full(sink, forest) ? parent_get(forest, span) : NULL;
    if (parent) {
        charge(forest, node);
        attach(parent, node);
        return;
    }
    if (forest)
        forest->missed++;
    free(node);
}

static void take_event(void *context, const ph_trace_event *event) {
    struct sink *sink = context;

    take_leaf(sink, event->sandbox, event->span, ph__node_create_event(event, sink->style.ascii));
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct sink *sink = context;

    take_leaf(sink, counter->sandbox, counter->span, ph__node_create_counter(counter, sink->style.ascii));
}

static void flush(void *context) {
    struct sink *sink = context;

    fflush(sink->file);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    while (sink->forests) {
        struct forest *forest = sink->forests;
        struct ph__node *root = forest->first;
        if (!root) { /* all that came was missed */
            if (forest->missed)
                ph__text_draw_missed(&sink->out, &sink->style, forest->missed);
            forest_destroy(sink, forest);
            continue;
        }
        unlink_top(forest, root);
        draw_tree(sink, forest, root);
    }
    ph__file_sink_close(sink->file, sink->close_file);
    free(sink);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* What the environment says of the terminal's encoding, as setlocale(3) finds it: nothing is UTF-8, since
 * what runs without a locale is mostly a container. */
static bool is_ascii_wanted(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return !strcasestr(value, "utf-8") && !strcasestr(value, "utf8");
    }
    return false;
}

bool ph__text_wants_colour(ph_colour colour, int fd) {
    const char *no_colour = getenv("NO_COLOR");

    if (colour != PH_COLOUR_AUTO)
        return colour == PH_COLOUR_ALWAYS;
    return (!no_colour || !*no_colour) && fd >= 0 && ph__system.isatty(fd);
}

ph_status ph_text_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_file_sink taken;

    ph_status status = ph__file_sink_take(options, sink, &taken, error);
    if (status != PH_OK)
        return status;
    struct sink *opened = calloc(1, sizeof *opened);
    if (!opened)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a text sink");
    opened->file = taken.file;
    opened->close_file = taken.close_file;
    opened->most_spans = taken.most_spans ? taken.most_spans : SPANS_DEFAULT;
    opened->style.ascii = is_ascii_wanted();
    opened->style.colour = ph__text_wants_colour(taken.colour, fileno(taken.file));
    opened->out = (struct ph__out){.file = taken.file,
                                   .bytes = opened->out_bytes,
                                   .capacity = sizeof opened->out_bytes,
                                   .ascii = opened->style.ascii};
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = flush,
                      .close = close_sink};
    return PH_OK;
}
