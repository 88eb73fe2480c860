/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The protection of the guest's pages in a snapshot: saved, and put back as changes to whatever tables there
 * are now. Tables themselves are not copied back. A table that a guest's mprotect has split off stays, with
 * other entries: a processor may have seen it, so it could never be handed out again, and would be lost.
 */
#ifndef PH_VM_PAGING_SNAPSHOT_H
#define PH_VM_PAGING_SNAPSHOT_H

#include "vm/paging.h"

/* The entries for image, arena and stack: one for each 2 MiB, and behind them, in the same order, the tables
 * of those that are no large page. */
struct ph__protections {
    uint64_t *entries;
    size_t count;
};

/* Fills (saved), whose entries the caller frees. PH_E_MEMORY. */
ph_status ph__protections_save(const struct ph__memory *memory, struct ph__protections *saved,
                               ph_error *error);

/* A run of pages of the image that are mapped from the start. */
struct ph__protections_range {
    uint64_t gva, size;
};

/* What protections of a file are held against. */
struct ph__protections_rules {
    const struct ph__protections_range *ranges; /* NULL: the image is not known */
    size_t range_count;
    bool allow_wx; /* pages that are writable and executable */
};

/* How many entries there can be at the most in a sandbox with (layout). */
uint64_t ph__protections_count_max(const struct ph__layout *layout);

/* Whether a guest with (layout) could have come to the protections in (untrusted), which may be anything:
 * every entry translates to the page that a new sandbox has there, for ring 3, or is absent, and none is
 * writable and executable unless (rules) allow it. Then ph__protections_plan may have them. NULL, or what is
 * wrong with them: a constant. */
const char *ph__protections_check(const struct ph__layout *layout, const struct ph__protections *untrusted,
                                  const struct ph__protections_rules *rules);

/* Putting protections back: where it has come to. */
struct ph__protections_plan {
    const struct ph__protections *saved; /* of a sandbox with the same layout and image */
    bool unseen;                         /* no processor has seen these tables: they are written at once */
    uint64_t slot;                       /* of 2 MiB */
    uint64_t tables;                     /* how many of (saved)'s tables are behind */
    uint32_t entry;                      /* in the table under way */
};

/* Fills the poke list with the next entries, at most PH__POKES_MAX; (*count) is 0 when nothing is left to do.
 * PH_E_MEMORY when the page-table region is full, which the layout's arithmetic excludes. */
ph_status ph__protections_plan(struct ph__memory *memory, struct ph__protections_plan *plan, uint32_t *count,
                               ph_error *error);

#endif
