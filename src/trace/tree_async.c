/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Spans that are not nested: begun in one call and perhaps ended in another, known by name and id. They lie
 * in a table of fixed size that is made when the first one begins, and are found through chains by a hash.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/tree_parts.h"

#define HEADS 2048u /* a power of two, above PH__TREE_ASYNC_MAX */

/* A number for the name of site (number): the sites of begin and end are two, with the same text. */
static uint32_t name_hash(struct ph__tree *tree, uint32_t number) {
    uint32_t *hash = &tree->site_hashes[number];

    if (*hash == 0) {
        /* FNV-1a */
        uint32_t value = 2166136261u;
        for (const char *byte = tree->options.sites[number].name; *byte; byte++)
            value = (value ^ (uint8_t)*byte) * 16777619u;
        *hash = value ? value : 1;
    }
    return *hash;
}

static uint32_t full_hash(struct ph__tree *tree, uint32_t number, uint64_t id) {
    uint64_t hash = (id ^ name_hash(tree, number)) * 0x9e3779b97f4a7c15ull;

    return (uint32_t)(hash >> 32);
}

static bool table_make(struct ph__tree *tree) {
    struct ph__async *async = calloc(PH__TREE_ASYNC_MAX, sizeof *async);
    uint32_t *heads = malloc(HEADS * sizeof *heads);

    if (!async || !heads) {
        free(async);
        free(heads);
        return false;
    }
    for (uint32_t i = 0; i < PH__TREE_ASYNC_MAX; i++)
        async[i].next = i + 1 < PH__TREE_ASYNC_MAX ? i + 1 : PH__NO_SPAN;
    memset(heads, 0xff, HEADS * sizeof *heads); /* PH__NO_SPAN in each */
    tree->async = async;
    tree->async_heads = heads;
    tree->async_free = 0;
    return true;
}

struct ph__open *ph__tree_async_open(struct ph__tree *tree, uint32_t number, uint64_t id) {
    const struct ph__site *site = &tree->options.sites[number];

    if ((!tree->async && !table_make(tree)) || tree->async_free == PH__NO_SPAN)
        return NULL;
    uint32_t index = tree->async_free;
    struct ph__async *async = &tree->async[index];
    uint32_t hash = full_hash(tree, number, id);
    uint32_t *head = &tree->async_heads[hash % HEADS];
    tree->async_free = async->next;
    *async = (struct ph__async){
        .span =
            {
                .id = ph__id_next(&tree->ids),
                .parent = ph__tree_innermost(tree),
                .start = ph__tree_now_ns(tree),
                .site = site,
                .name = {.text = site->name, .naming = PH__NAME_TEXT},
                .judged = PH__NO_SPAN,
                .kind = PH_SPAN_ASYNC,
                .level = (ph_level)site->level,
            },
        .trace = ph__trace_copy(ph__tree_trace(tree)),
        .id = id,
        .hash = hash,
        .next = *head,
    };
    *head = index;
    return &async->span;
}

uint32_t ph__tree_async_find(struct ph__tree *tree, uint32_t number, uint64_t id) {
    if (!tree->async)
        return PH__NO_SPAN;
    const char *name = tree->options.sites[number].name;
    uint32_t hash = full_hash(tree, number, id);
    for (uint32_t i = tree->async_heads[hash % HEADS]; i != PH__NO_SPAN; i = tree->async[i].next) {
        const struct ph__async *async = &tree->async[i];
        if (async->hash == hash && async->id == id &&
            (async->span.name.text == name || strcmp(async->span.name.text, name) == 0))
            return i;
    }
    return PH__NO_SPAN;
}

void ph__tree_async_close(struct ph__tree *tree, uint32_t index, const struct ph__ending *ending) {
    struct ph__async *async = &tree->async[index];
    uint32_t *link = &tree->async_heads[async->hash % HEADS];

    /* Its start may be by the anchor of an earlier call: ph__tree_span_emit sees to it that the end is not
     * before it. */
    ph__tree_span_emit(tree, &async->span, &async->trace, async->span.start, ph__tree_now_ns(tree), ending);
    ph__trace_free(&async->trace);
    ph__tree_fields_free(tree, &async->span.fields);
    while (*link != index)
        link = &tree->async[*link].next;
    *link = async->next;
    async->next = tree->async_free;
    tree->async_free = index;
}

void ph__tree_async_end(struct ph__tree *tree) {
    static const struct ph__ending left = {true, PH_OK, "left open"};

    for (uint32_t head = 0; tree->async && head < HEADS; head++)
        while (tree->async_heads[head] != PH__NO_SPAN)
            ph__tree_async_close(tree, tree->async_heads[head], &left);
    free(tree->async);
    free(tree->async_heads);
}
