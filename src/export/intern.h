/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Numbers for keys that come again and again, in a table of a fixed size: a key that is in it keeps its
 * number. When it is full, its owner empties it. A number is never given twice, also not after that, as
 * Perfetto wants it (interned_data.proto).
 */
#ifndef PH_EXPORT_INTERN_H
#define PH_EXPORT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH__INTERN_SLOTS 4096u
#define PH__INTERN_ENTRIES                                                                                   \
    (PH__INTERN_SLOTS / 2) /* half of the slots stay empty, so that a look stays short */
#define PH__INTERN_TEXT 131072u
#define PH__INTERN_KEY_MOST 2048u

struct ph__intern_slot {
    uint64_t number; /* 0: empty */
    uint32_t hash;
    uint32_t text;
    uint32_t size;
    uint32_t kind;
};

struct ph__intern {
    uint64_t last;
    uint32_t count;
    uint32_t text_used;
    struct ph__intern_slot slots[PH__INTERN_SLOTS];
    char text[PH__INTERN_TEXT];
};

/* Whether (count) keys of (size) bytes together are sure to find room. */
bool ph__intern_has_room(const struct ph__intern *intern, size_t count, size_t size);

/* Forgets all keys, and goes on counting. */
void ph__intern_empty(struct ph__intern *intern);

/* The number of a key of a (kind); (*is_new) when it was not there. 0 when there is no room, or when it is
 * longer than PH__INTERN_KEY_MOST. */
uint64_t ph__intern_number(struct ph__intern *intern, uint32_t kind, const void *key, size_t size,
                           bool *is_new);

#endif
