/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The open spans of a tree: one stack, in which spans of the guest and of the host lie as they are nested.
 * A guest only reaches its own spans above the host's innermost one. Whatever it writes, opening, closing and
 * finding cost little: each span is closed once, and finding is a binary search, since positions increase.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/tree_parts.h"

#define SPANS_MAX (PH__TREE_DEPTH_MAX + PH__TREE_HOST_SPARE)

/* How far the caller of a function is looked for. What is between the two was left although its stack pointer
 * is not below, or is inlined: few. */
#define CALLERS_PROBED 32u

uint64_t ph__tree_now_ns(const struct ph__tree *tree) {
    return ph__trace_anchor_ns(&tree->anchor, tree->now);
}

uint64_t ph__tree_innermost(const struct ph__tree *tree) {
    if (tree->depth == 0)
        return 0;
    const struct ph__open *top = &tree->spans[tree->depth - 1];
    return top->id ? top->id : top->parent;
}

static bool grow(struct ph__tree *tree) {
    uint32_t capacity = tree->capacity ? 2 * tree->capacity : 32;

    if (capacity > SPANS_MAX)
        capacity = SPANS_MAX;
    struct ph__open *spans = realloc(tree->spans, capacity * sizeof *spans);
    if (!spans)
        return false;
    tree->spans = spans;
    tree->capacity = capacity;
    return true;
}

struct ph__open *ph__tree_span_open(struct ph__tree *tree, const struct ph__open *span, bool wanted,
                                    bool host) {
    if (tree->depth >= (host ? SPANS_MAX : PH__TREE_DEPTH_MAX))
        return NULL;
    if (tree->depth == tree->capacity && !grow(tree))
        return NULL;
    uint64_t parent = ph__tree_innermost(tree);
    struct ph__open *top = &tree->spans[tree->depth++];
    const struct ph__open *below = top > tree->spans ? top - 1 : NULL;
    *top = *span;
    top->parent = parent;
    if (!wanted)
        top->id = 0;
    else if (!host)
        top->id = ph__id_next(&tree->ids);
    top->start = tree->now;
    top->judged = PH__NO_SPAN;
    if (host) {
        top->position = below ? below->position : 0;
        top->outer_host = tree->host;
        top->outer_too_deep = tree->too_deep;
        tree->host = tree->depth;
        tree->too_deep = 0;
    } else if (top->stack != 0) {
        top->judged = tree->depth - 1;
    } else if (below && tree->depth - 1 > tree->host) {
        top->judged = below->judged;
    }
    return top;
}

void ph__tree_span_emit(struct ph__tree *tree, const struct ph__open *span, const struct ph__trace *trace,
                        uint64_t start_ns, uint64_t end_ns, const struct ph__ending *ending) {
    const struct ph__site *site = span->site;
    ph_trace_span out = {
        .size = sizeof out,
        .sandbox = tree->options.sandbox,
        .id = span->id,
        .parent = span->parent,
        .kind = span->kind,
        .level = span->level,
        .name = ph__tree_name_text(tree, &span->name),
        .start_ns = start_ns,
        .end_ns = end_ns > start_ns ? end_ns : start_ns,
        .unfinished = ending->unfinished,
        .status = ending->status,
        .message = ending->message,
        .trace_state = trace->state,
        .dropped_fields = span->fields.dropped,
    };

    memcpy(out.trace_id, trace->id, sizeof out.trace_id);
    if (span->parent == 0)
        memcpy(out.remote_parent, trace->remote_parent, sizeof out.remote_parent);

    if (site)
        out.source = (ph_source){site->file, site->function, site->line};
    else if (span->kind == PH_SPAN_FUNCTION)
        out.source.function = span->name.text;
    out.fields = ph__tree_fields_join(tree, &span->fields, &out.field_count);
    ph__trace_count(&tree->options.stats->spans, 1);
    if (tree->options.output.span)
        tree->options.output.span(tree->options.output.context, &out);
}

/* Closes the innermost span. */
static void close_top(struct ph__tree *tree, const struct ph__ending *ending) {
    struct ph__open *top = &tree->spans[tree->depth - 1];

    if (top->id)
        ph__tree_span_emit(tree, top, ph__tree_trace(tree), ph__trace_anchor_ns(&tree->anchor, top->start),
                           ph__tree_now_ns(tree), ending);
    ph__tree_fields_free(tree, &top->fields);
    /* What was begun above a span of the guest, and left out, is gone with it. */
    tree->too_deep = 0;
    if (tree->host == tree->depth) {
        tree->host = top->outer_host;
        tree->too_deep = top->outer_too_deep;
    }
    tree->depth--;
    if (tree->depth == 0)
        tree->has_trace = false;
}

void ph__tree_spans_close(struct ph__tree *tree, uint32_t depth, const struct ph__ending *ending) {
    while (tree->depth > depth)
        close_top(tree, ending);
}

static const struct ph__ending left = {true, PH_OK, "left by a longjmp"};

void ph__tree_spans_leave(struct ph__tree *tree, uint32_t stack) {
    while (tree->depth > tree->host) {
        uint32_t judged = tree->spans[tree->depth - 1].judged;
        if (judged == PH__NO_SPAN || tree->spans[judged].stack >= stack)
            return;
        ph__tree_spans_close(tree, judged, &left);
    }
}

/* The index of the innermost function's span that has (call_site), or is of the function whose symbol is
 * (caller), or PH__NO_SPAN. */
static uint32_t caller_find(const struct ph__tree *tree, uint32_t depth, uint64_t call_site,
                            const char *caller) {
    uint32_t lowest = depth - tree->host > CALLERS_PROBED ? depth - CALLERS_PROBED : tree->host;

    for (uint32_t index = depth; index > lowest; index--) {
        const struct ph__open *span = &tree->spans[index - 1];
        if (span->kind == PH_SPAN_FUNCTION &&
            (span->call_site == call_site || (caller && span->name.text == caller)))
            return index - 1;
    }
    return PH__NO_SPAN;
}

void ph__tree_call_enter(struct ph__tree *tree, uint64_t function, uint64_t call_site, bool is_again) {
    /* Of those too deep, nothing is known. */
    if (call_site == 0 || tree->too_deep > 0)
        return;
    /* A call that is the last thing in a function returns behind it. */
    const char *caller = ph__tree_name_find(tree, PH__NAME_FUNCTION, call_site - 1)->name.text;
    uint32_t index = caller_find(tree, tree->depth, call_site, caller);
    while (is_again && index != PH__NO_SPAN && tree->spans[index].call_site == call_site) {
        if (tree->spans[index].name.value == function) {
            ph__tree_spans_close(tree, index, &left);
            return;
        }
        index = caller_find(tree, index, call_site, caller);
    }
    /* With the same call site, one is inlined into the other, or it is a recursion. */
    if (index == PH__NO_SPAN || tree->spans[index].call_site == call_site)
        return;
    uint64_t caller_site = tree->spans[index].call_site;
    while (++index < tree->depth)
        if (tree->spans[index].kind == PH_SPAN_FUNCTION && tree->spans[index].call_site != caller_site)
            ph__tree_spans_close(tree, index, &left);
}

uint32_t ph__tree_span_find(const struct ph__tree *tree, uint64_t position) {
    uint32_t low = tree->host;
    uint32_t high = tree->depth;

    if (high > low && tree->spans[high - 1].position == position)
        return high - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tree->spans[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tree->depth && tree->spans[low].position == position ? low : PH__NO_SPAN;
}
