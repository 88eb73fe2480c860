/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Self time by stack (stacks.h).
 *
 * A tree of nodes: below the root those of sandboxes, below these one for each stack. A span comes behind its
 * children, so what comes first makes a node for its parent that is only known by its id: it is pending, and
 * lies in no tree. When the parent ends, its node gets a name and goes below its own parent's, where it is
 * merged with a node of that name, child by child. A node is made for at most one span, and each merge
 * removes one, so a span costs a constant on average, whatever the depth.
 *
 * A leaf is only kept while all nodes together, the pending ones included, are fewer than the bound. A node
 * that was kept has room therefore when it becomes a stack, and those above it too.
 */
#include "export/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "export/frames.h"

/* Pending nodes may be that many more. */
#define NODES_MAX (2 * PH__STACKS_MAX)
#define NODES_FIRST 1024u
/* Frames in all stacks together: what a hostile guest can have written for each node is a path to it. */
#define LISTED_MAX (256ull * PH__STACKS_MAX)

/* Nodes go by their index. The root's is also "none": it is nobody's child. */
#define ROOT 0u
#define NONE 0u
/* In place of a parent: the node is pending. */
#define PENDING UINT32_MAX
/* The place behind the last sandbox, where what has none is listed. */
#define HOMELESS UINT32_MAX

/* (parent) and (key) are what the table finds it by. (key) is the frame, below the root the number of a
 * sandbox, and of a pending node the id of its span. (self_ns) of a sandbox is what has no stack. A node that
 * is free is in a list by (next). */
struct node {
    uint64_t key;
    uint64_t self_ns;
    uint64_t children_ns; /* of a pending node: the time of its children so far */
    uint32_t parent;
    uint32_t sandbox; /* of a pending node: the node of its sandbox */
    uint32_t first, last;
    uint32_t next;
    uint32_t chain;
};

struct ph__stacks {
    struct node *nodes;
    uint32_t *table; /* of the same size */
    uint32_t size;   /* a power of two */
    uint32_t made;   /* nodes that have ever been in use, the root among them */
    uint32_t used;
    uint32_t free;
    struct ph__frames *frames;
    uint32_t path[PH__STACKS_DEPTH_MAX];
};

/* ---- the table ----------------------------------------------------------------------------------------- */

/* Where (parent)'s (key) is looked for. */
static uint32_t *bucket_of(const struct ph__stacks *stacks, uint32_t parent, uint64_t key) {
    uint64_t hash = (key + (uint64_t)parent * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

    return &stacks->table[(hash ^ hash >> 32) & (stacks->size - 1)];
}

static uint32_t find(const struct ph__stacks *stacks, uint32_t parent, uint64_t key) {
    uint32_t at = *bucket_of(stacks, parent, key);

    while (at != NONE && (stacks->nodes[at].parent != parent || stacks->nodes[at].key != key))
        at = stacks->nodes[at].chain;
    return at;
}

static void enter(struct ph__stacks *stacks, uint32_t at) {
    uint32_t *bucket = bucket_of(stacks, stacks->nodes[at].parent, stacks->nodes[at].key);

    stacks->nodes[at].chain = *bucket;
    *bucket = at;
}

static void leave(struct ph__stacks *stacks, uint32_t at) {
    uint32_t *link = bucket_of(stacks, stacks->nodes[at].parent, stacks->nodes[at].key);

    while (*link != at)
        link = &stacks->nodes[*link].chain;
    *link = stacks->nodes[at].chain;
}

/* Twice as many nodes. Without memory all stays as it was. */
static bool grow(struct ph__stacks *stacks) {
    uint32_t size = stacks->size * 2;

    if (size > NODES_MAX)
        return false;
    struct node *nodes = realloc(stacks->nodes, size * sizeof *nodes);
    if (!nodes)
        return false;
    stacks->nodes = nodes;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(stacks->table);
    stacks->table = table;
    stacks->size = size;
    /* Free nodes are found by nobody: whether they are in the table does not matter, but that the list of
     * them goes on does. */
    for (uint32_t at = 1; at < stacks->made; at++)
        if (stacks->nodes[at].parent != NONE || stacks->nodes[at].key != 0)
            enter(stacks, at);
    return true;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

/* Puts (at) behind the children of (parent), where none has its (key). */
static void attach(struct ph__stacks *stacks, uint32_t parent, uint64_t key, uint32_t at) {
    struct node *above = &stacks->nodes[parent];
    struct node *node = &stacks->nodes[at];

    node->parent = parent;
    node->key = key;
    node->next = NONE;
    if (above->last != NONE)
        stacks->nodes[above->last].next = at;
    else
        above->first = at;
    above->last = at;
    enter(stacks, at);
}

/* A node that is in no tree and no table; NONE beyond (most). */
static uint32_t make(struct ph__stacks *stacks, uint32_t most) {
    uint32_t at = stacks->free;

    if (stacks->used >= most)
        return NONE;
    if (at != NONE)
        stacks->free = stacks->nodes[at].next;
    else if (stacks->made < stacks->size || grow(stacks))
        at = stacks->made++;
    else
        return NONE;
    stacks->nodes[at] = (struct node){0};
    stacks->used++;
    return at;
}

/* Of one that is in no table any more. Parent and key 0 mark it, for grow(): sandbox 0 is none. */
static void release(struct ph__stacks *stacks, uint32_t at) {
    stacks->nodes[at] = (struct node){.next = stacks->free};
    stacks->free = at;
    stacks->used--;
}

/* Adds (from), which is in no table, and all below it to (to). Those that are still to be added are a list by
 * (next), each with the node that it goes to in (parent): a recursion would be as deep as the guest likes. */
static void merge(struct ph__stacks *stacks, uint32_t to, uint32_t from) {
    struct node *nodes = stacks->nodes;
    uint32_t work = from;

    nodes[from].parent = to;
    nodes[from].next = NONE;
    while (work != NONE) {
        uint32_t source = work, target = nodes[source].parent, next;
        work = nodes[source].next;
        nodes[target].self_ns += nodes[source].self_ns;
        for (uint32_t child = nodes[source].first; child != NONE; child = next) {
            next = nodes[child].next;
            leave(stacks, child);
            uint32_t same = find(stacks, target, nodes[child].key);
            if (same == NONE) {
                attach(stacks, target, nodes[child].key, child);
            } else {
                nodes[child].parent = same;
                nodes[child].next = work;
                work = child;
            }
        }
        release(stacks, source);
    }
}

/* Frees (from), which is in no table, and all below it. */
static void drop(struct ph__stacks *stacks, uint32_t from) {
    struct node *nodes = stacks->nodes;
    uint32_t work = from;

    nodes[from].next = NONE;
    while (work != NONE) {
        uint32_t source = work, next;
        work = nodes[source].next;
        for (uint32_t child = nodes[source].first; child != NONE; child = next) {
            next = nodes[child].next;
            leave(stacks, child);
            nodes[child].next = work;
            work = child;
        }
        release(stacks, source);
    }
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static uint32_t sandbox_node(struct ph__stacks *stacks, uint64_t sandbox) {
    uint32_t at = find(stacks, ROOT, sandbox);

    if (at != NONE || sandbox == 0)
        return at;
    at = make(stacks, PH__STACKS_MAX);
    if (at != NONE)
        attach(stacks, ROOT, sandbox, at);
    return at;
}

/* The node of a span that has not ended; NONE when there is no room. */
static uint32_t pending_node(struct ph__stacks *stacks, uint64_t id, uint32_t sandbox) {
    uint32_t at = find(stacks, PENDING, id);

    if (at != NONE)
        return at;
    at = make(stacks, NODES_MAX);
    if (at == NONE)
        return NONE;
    stacks->nodes[at].parent = PENDING;
    stacks->nodes[at].key = id;
    stacks->nodes[at].sandbox = sandbox;
    enter(stacks, at);
    return at;
}

/* A span with nothing kept below it. */
static void take_leaf(struct ph__stacks *stacks, const ph_trace_span *span, uint32_t sandbox, uint32_t parent,
                      uint64_t self_ns) {
    uint32_t frame = ph__frames_find(stacks->frames, span, stacks->used < PH__STACKS_MAX);
    uint32_t at = frame != PH__FRAME_OTHER ? find(stacks, parent, frame) : NONE;

    if (at == NONE && frame != PH__FRAME_OTHER) {
        at = make(stacks, PH__STACKS_MAX);
        if (at != NONE)
            attach(stacks, parent, frame, at);
    }
    stacks->nodes[at != NONE ? at : sandbox].self_ns += self_ns;
}

/* A span whose node is (at), with children below it. */
static void take_inner(struct ph__stacks *stacks, const ph_trace_span *span, uint32_t parent, uint32_t at,
                       uint64_t self_ns) {
    uint32_t frame = ph__frames_find(stacks->frames, span, true);
    uint32_t same = find(stacks, parent, frame);

    stacks->nodes[at].self_ns = self_ns;
    if (same != NONE)
        merge(stacks, same, at);
    else
        attach(stacks, parent, frame, at);
}

void ph__stacks_take(struct ph__stacks *stacks, const ph_trace_span *span) {
    uint64_t duration_ns = span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0;

    if (span->kind == PH_SPAN_ASYNC || span->id == span->parent)
        return;
    uint32_t sandbox = sandbox_node(stacks, span->sandbox);
    if (sandbox == NONE) {
        /* Roots have the time of all below them. */
        stacks->nodes[ROOT].self_ns += span->parent ? 0 : duration_ns;
        return;
    }
    uint32_t parent = span->parent ? pending_node(stacks, span->parent, sandbox) : sandbox;
    uint32_t at = find(stacks, PENDING, span->id);
    uint64_t self_ns = duration_ns;
    if (at != NONE) {
        uint64_t children_ns = stacks->nodes[at].children_ns;
        self_ns = duration_ns > children_ns ? duration_ns - children_ns : 0;
        leave(stacks, at);
    }
    if (parent == NONE) {
        if (at != NONE)
            drop(stacks, at);
        return;
    }
    if (span->parent)
        stacks->nodes[parent].children_ns += duration_ns;
    if (at != NONE && stacks->nodes[at].first != NONE) {
        take_inner(stacks, span, parent, at, self_ns);
        return;
    }
    if (at != NONE)
        release(stacks, at);
    take_leaf(stacks, span, sandbox, parent, self_ns);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* The node behind (at) in the tree below (top), a parent before its children; NONE behind the last. Keeps
 * (*depth), the number of nodes from below (top) to it. */
static uint32_t step(const struct ph__stacks *stacks, uint32_t top, uint32_t at, size_t *depth) {
    if (stacks->nodes[at].first != NONE) {
        ++*depth;
        return stacks->nodes[at].first;
    }
    while (at != top && stacks->nodes[at].next == NONE) {
        at = stacks->nodes[at].parent;
        --*depth;
    }
    return at == top ? NONE : stacks->nodes[at].next;
}

/* A span that was above others and never came. */
static void adopt(struct ph__stacks *stacks, uint32_t at) {
    const ph_trace_span unknown = {.name = "[unknown]", .kind = PH_SPAN_USER};
    uint32_t sandbox = stacks->nodes[at].sandbox;

    leave(stacks, at);
    if (stacks->nodes[at].first != NONE)
        take_inner(stacks, &unknown, sandbox, at, 0);
    else
        release(stacks, at);
}

void ph__stacks_finish(struct ph__stacks *stacks) {
    uint64_t listed = 0;

    for (uint32_t at = 1; at < stacks->made; at++)
        if (stacks->nodes[at].parent == PENDING)
            adopt(stacks, at);
    for (uint32_t top = stacks->nodes[ROOT].first; top != NONE; top = stacks->nodes[top].next) {
        size_t depth = 0;
        for (uint32_t at = step(stacks, top, top, &depth); at != NONE; at = step(stacks, top, at, &depth)) {
            if (stacks->nodes[at].self_ns == 0)
                continue;
            if (depth <= PH__STACKS_DEPTH_MAX && depth <= LISTED_MAX - listed) {
                listed += depth;
                continue;
            }
            stacks->nodes[top].self_ns += stacks->nodes[at].self_ns;
            stacks->nodes[at].self_ns = 0;
        }
    }
}

struct ph__stacks *ph__stacks_create(void) {
    struct ph__stacks *stacks = calloc(1, sizeof *stacks);

    if (!stacks)
        return NULL;
    stacks->nodes = calloc(NODES_FIRST, sizeof *stacks->nodes);
    stacks->table = calloc(NODES_FIRST, sizeof *stacks->table);
    stacks->frames = ph__frames_create();
    if (!stacks->nodes || !stacks->table || !stacks->frames) {
        ph__stacks_free(stacks);
        return NULL;
    }
    stacks->size = NODES_FIRST;
    stacks->made = 1;
    return stacks;
}

void ph__stacks_free(struct ph__stacks *stacks) {
    if (!stacks)
        return;
    ph__frames_free(stacks->frames);
    free(stacks->table);
    free(stacks->nodes);
    free(stacks);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

uint32_t ph__stacks_frame_count(const struct ph__stacks *stacks) {
    return ph__frames_count(stacks->frames);
}

const char *ph__stacks_frame(const struct ph__stacks *stacks, uint32_t frame) {
    return ph__frames_text(stacks->frames, frame);
}

static uint64_t total_of(const struct ph__stacks *stacks, uint32_t top) {
    uint64_t total_ns = stacks->nodes[top].self_ns;
    size_t depth = 0;

    if (top == ROOT)
        return total_ns;
    for (uint32_t at = step(stacks, top, top, &depth); at != NONE; at = step(stacks, top, at, &depth))
        total_ns += stacks->nodes[at].self_ns;
    return total_ns;
}

bool ph__stacks_next(const struct ph__stacks *stacks, uint32_t *at, uint64_t *sandbox, uint64_t *total_ns) {
    while (*at != HOMELESS) {
        uint32_t top = *at == ROOT ? stacks->nodes[ROOT].first : stacks->nodes[*at].next;
        *at = top != NONE ? top : HOMELESS;
        *sandbox = stacks->nodes[top].key;
        *total_ns = total_of(stacks, top);
        if (*total_ns > 0)
            return true;
    }
    return false;
}

void ph__stacks_list(struct ph__stacks *stacks, uint32_t at, ph__stacks_visit *visit, void *context) {
    const uint32_t other = PH__FRAME_OTHER;
    uint32_t top = at == HOMELESS ? ROOT : at;
    size_t depth = 0;

    if (top != ROOT)
        for (at = step(stacks, top, top, &depth); at != NONE; at = step(stacks, top, at, &depth)) {
            if (depth <= PH__STACKS_DEPTH_MAX)
                stacks->path[depth - 1] = (uint32_t)stacks->nodes[at].key;
            if (stacks->nodes[at].self_ns > 0)
                visit(context, stacks->path, depth, stacks->nodes[at].self_ns);
        }
    if (stacks->nodes[top].self_ns > 0)
        visit(context, &other, 1, stacks->nodes[top].self_ns);
}
