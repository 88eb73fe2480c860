/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Packets that wait for the packet of the span around them.
 *
 * Perfetto's trace processor sorts packets by time, and those of one time by their place in the file
 * (src/trace_processor/sorter/trace_sorter.h): spans may be written in whatever order they end, unless a
 * child began in the same nanosecond as its parent, whose begin has to come first and is not known yet. That
 * can only be the first child, and those behind it that begin with it. So each open parent has one list of
 * packets here, in which a child's list is put in turn, of one start time.
 *
 * The memory is of a fixed size. What finds no room makes its owner write all that waits.
 */
#ifndef PH_EXPORT_PERFETTO_HOLD_H
#define PH_EXPORT_PERFETTO_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH__HOLD_BLOCKS 8192u
#define PH__HOLD_BLOCK_BYTES 248u
#define PH__HOLD_LISTS 4096u
#define PH__HOLD_BUCKETS 1024u

struct ph__hold_block {
    uint32_t next; /* index + 1; 0: none */
    uint32_t used;
    uint8_t bytes[PH__HOLD_BLOCK_BYTES];
};

/* Packets in order: chained blocks. */
struct ph__hold_chain {
    uint32_t first; /* index + 1; 0: empty */
    uint32_t last;
};

struct ph__hold_list {
    uint64_t parent;
    uint64_t start_ns;
    struct ph__hold_chain chain;
    uint32_t next; /* in its bucket, or of the free ones: index + 1 */
};

struct ph__hold {
    uint32_t free_block;
    uint32_t free_list;
    uint32_t blocks_used; /* those behind were never used, nor touched */
    uint32_t lists_used;
    uint32_t blocks_free;
    uint32_t buckets[PH__HOLD_BUCKETS]; /* index + 1 of the first list */
    struct ph__hold_list lists[PH__HOLD_LISTS];
    struct ph__hold_block blocks[PH__HOLD_BLOCKS];
};

/* Takes each part of what is written, in order. */
typedef void ph__hold_write_fn(void *context, const void *bytes, size_t size);

/* An all-zero struct becomes an empty one. */
void ph__hold_init(struct ph__hold *hold);

/* The list of (parent), NULL when it has none; valid until the next call here. */
struct ph__hold_list *ph__hold_find(struct ph__hold *hold, uint64_t parent);

/* Makes one, empty. NULL when there are too many. */
struct ph__hold_list *ph__hold_make(struct ph__hold *hold, uint64_t parent, uint64_t start_ns);

/* Takes the list of (parent) out, with the time at which its packets begin. Empty when it has none. */
struct ph__hold_chain ph__hold_take(struct ph__hold *hold, uint64_t parent, uint64_t *start_ns);

/* Whether (size) more bytes, in three pieces at most, are sure to find room. */
bool ph__hold_has_room(const struct ph__hold *hold, size_t size);

/* Where there is room for them. */
void ph__hold_add(struct ph__hold *hold, struct ph__hold_chain *chain, const void *bytes, size_t size);
void ph__hold_append(struct ph__hold *hold, struct ph__hold_chain *chain, struct ph__hold_chain more);

/* Writes (chain) and frees its memory. */
void ph__hold_write(struct ph__hold *hold, struct ph__hold_chain chain, ph__hold_write_fn *write,
                    void *context);

/* Writes all that waits. */
void ph__hold_write_all(struct ph__hold *hold, ph__hold_write_fn *write, void *context);

#endif
