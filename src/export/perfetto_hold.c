/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Packets that wait for the packet of the span around them (perfetto_hold.h).
 */
#include "export/perfetto_hold.h"

#include <string.h>

static struct ph__hold_block *block_at(struct ph__hold *hold, uint32_t number) {
    return &hold->blocks[number - 1];
}

static struct ph__hold_list *list_at(struct ph__hold *hold, uint32_t number) {
    return &hold->lists[number - 1];
}

/* Ids of spans are counted up. */
static uint32_t *bucket_of(struct ph__hold *hold, uint64_t parent) {
    return &hold->buckets[parent % PH__HOLD_BUCKETS];
}

/* Where there is one. */
static uint32_t take_block(struct ph__hold *hold) {
    uint32_t number = hold->free_block;

    if (number)
        hold->free_block = block_at(hold, number)->next;
    else
        number = ++hold->blocks_used;
    hold->blocks_free--;
    block_at(hold, number)->next = 0;
    block_at(hold, number)->used = 0;
    return number;
}

static void free_block(struct ph__hold *hold, uint32_t number) {
    block_at(hold, number)->next = hold->free_block;
    hold->free_block = number;
    hold->blocks_free++;
}

void ph__hold_init(struct ph__hold *hold) {
    hold->blocks_free = PH__HOLD_BLOCKS;
}

struct ph__hold_list *ph__hold_find(struct ph__hold *hold, uint64_t parent) {
    uint32_t number = *bucket_of(hold, parent);

    while (number && list_at(hold, number)->parent != parent)
        number = list_at(hold, number)->next;
    return number ? list_at(hold, number) : NULL;
}

struct ph__hold_list *ph__hold_make(struct ph__hold *hold, uint64_t parent, uint64_t start_ns) {
    uint32_t number = hold->free_list;
    uint32_t *bucket = bucket_of(hold, parent);

    if (number)
        hold->free_list = list_at(hold, number)->next;
    else if (hold->lists_used < PH__HOLD_LISTS)
        number = ++hold->lists_used;
    else
        return NULL;
    *list_at(hold, number) = (struct ph__hold_list){.parent = parent, .start_ns = start_ns, .next = *bucket};
    *bucket = number;
    return list_at(hold, number);
}

struct ph__hold_chain ph__hold_take(struct ph__hold *hold, uint64_t parent, uint64_t *start_ns) {
    uint32_t *link = bucket_of(hold, parent);

    while (*link && list_at(hold, *link)->parent != parent)
        link = &list_at(hold, *link)->next;
    if (!*link)
        return (struct ph__hold_chain){0};
    uint32_t number = *link;
    struct ph__hold_list *list = list_at(hold, number);
    struct ph__hold_chain chain = list->chain;
    *start_ns = list->start_ns;
    *link = list->next;
    list->next = hold->free_list;
    hold->free_list = number;
    return chain;
}

bool ph__hold_has_room(const struct ph__hold *hold, size_t size) {
    return size / PH__HOLD_BLOCK_BYTES + 3 <= hold->blocks_free;
}

void ph__hold_add(struct ph__hold *hold, struct ph__hold_chain *chain, const void *bytes, size_t size) {
    for (const uint8_t *from = bytes; size > 0;) {
        uint32_t number = take_block(hold);
        size_t part = size < PH__HOLD_BLOCK_BYTES ? size : PH__HOLD_BLOCK_BYTES;
        memcpy(block_at(hold, number)->bytes, from, part);
        block_at(hold, number)->used = (uint32_t)part;
        ph__hold_append(hold, chain, (struct ph__hold_chain){number, number});
        from += part;
        size -= part;
    }
}

void ph__hold_append(struct ph__hold *hold, struct ph__hold_chain *chain, struct ph__hold_chain more) {
    if (!more.first)
        return;
    if (chain->first)
        block_at(hold, chain->last)->next = more.first;
    else
        chain->first = more.first;
    chain->last = more.last;
}

void ph__hold_write(struct ph__hold *hold, struct ph__hold_chain chain, ph__hold_write_fn *write,
                    void *context) {
    for (uint32_t number = chain.first; number;) {
        uint32_t next = block_at(hold, number)->next;
        write(context, block_at(hold, number)->bytes, block_at(hold, number)->used);
        free_block(hold, number);
        number = next;
    }
}

void ph__hold_write_all(struct ph__hold *hold, ph__hold_write_fn *write, void *context) {
    for (uint32_t i = 0; i < PH__HOLD_BUCKETS; i++)
        while (hold->buckets[i]) {
            uint64_t start_ns;
            ph__hold_write(hold, ph__hold_take(hold, list_at(hold, hold->buckets[i])->parent, &start_ns),
                           write, context);
        }
}
