/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Numbers for keys (intern.h): open addressing. A guest can make its keys collide, and then pays the
 * host a look at PH__INTERN_ENTRIES slots for each, no more.
 */
#include "export/intern.h"

#include <string.h>

/* FNV-1a, folded. */
static uint32_t hash_of(uint32_t kind, const uint8_t *key, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u ^ kind;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ key[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

bool ph__intern_has_room(const struct ph__intern *intern, size_t count, size_t size) {
    return count <= PH__INTERN_ENTRIES - intern->count && size <= PH__INTERN_TEXT - intern->text_used;
}

void ph__intern_empty(struct ph__intern *intern) {
    memset(intern->slots, 0, sizeof intern->slots);
    intern->count = 0;
    intern->text_used = 0;
}

static bool is_key(const struct ph__intern *intern, const struct ph__intern_slot *slot, uint32_t hash,
                   uint32_t kind, const void *key, size_t size) {
    return slot->hash == hash && slot->kind == kind && slot->size == size &&
           (!size || memcmp(intern->text + slot->text, key, size) == 0);
}

uint64_t ph__intern_number(struct ph__intern *intern, uint32_t kind, const void *key, size_t size,
                           bool *is_new) {
    *is_new = false;
    if (size > PH__INTERN_KEY_MOST)
        return 0;
    uint32_t hash = hash_of(kind, key, size);
    uint32_t at = hash % PH__INTERN_SLOTS;
    for (; intern->slots[at].number; at = (at + 1) % PH__INTERN_SLOTS)
        if (is_key(intern, &intern->slots[at], hash, kind, key, size))
            return intern->slots[at].number;
    if (!ph__intern_has_room(intern, 1, size))
        return 0;
    intern->slots[at] = (struct ph__intern_slot){.number = ++intern->last,
                                                 .hash = hash,
                                                 .text = intern->text_used,
                                                 .size = (uint32_t)size,
                                                 .kind = kind};
    if (size)
        memcpy(intern->text + intern->text_used, key, size);
    intern->text_used += (uint32_t)size;
    intern->count++;
    *is_new = true;
    return intern->last;
}
