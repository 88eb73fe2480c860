/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The trace that the spans of a tree belong to. The host says it with each root; it lasts until the root has
 * ended, and for asynchronous spans longer.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/tree_parts.h"

void ph__tree_trace_begin(struct ph__tree *tree, const struct ph__batch_begin *begin) {
    const struct ph__batch_root *root = (const struct ph__batch_root *)begin->words;
    const size_t size = begin->root_words * sizeof(uint64_t);

    if (size < sizeof *root)
        return;
    memcpy(tree->trace.id, root->trace_id, sizeof tree->trace.id);
    memcpy(tree->trace.remote_parent, root->remote_parent, sizeof tree->trace.remote_parent);
    tree->trace.state = NULL;
    if (size > sizeof *root) {
        size_t length = strnlen(root->trace_state, size - sizeof *root);
        length = length < PH__TRACESTATE_MAX ? length : PH__TRACESTATE_MAX;
        memcpy(tree->trace_state, root->trace_state, length);
        tree->trace_state[length] = '\0';
        tree->trace.state = tree->trace_state;
    }
    tree->has_trace = true;
}

const struct ph__trace *ph__tree_trace(struct ph__tree *tree) {
    if (!tree->has_trace) {
        tree->trace = (struct ph__trace){.state = NULL};
        ph__trace_id_next(&tree->trace_ids, tree->trace.id);
        tree->has_trace = true;
    }
    return &tree->trace;
}

struct ph__trace ph__trace_copy(const struct ph__trace *trace) {
    struct ph__trace copy = *trace;

    /* Without memory it is left out. */
    if (trace->state)
        copy.state = strdup(trace->state);
    return copy;
}

void ph__trace_free(struct ph__trace *trace) {
    free((void *)trace->state);
    trace->state = NULL;
}
