/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The pages of snapshots: a run of pages in a sealed memfd, or in a file that was opened and may become
 * shorter. Shared by the snapshots that were taken on top of each other, and constant once it is filled.
 *
 * Nothing reads a file's pages through a mapping: what it has lost would be a SIGBUS there.
 */
#ifndef PH_SANDBOX_PAGE_STORE_H
#define PH_SANDBOX_PAGE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pinhole/pinhole.h>

struct ph__page_store {
    atomic_size_t references;
    uint64_t owner; /* ph__process_id of who mapped (bytes) */
    int file;
    uint64_t start;       /* bytes into the file */
    uint64_t count;       /* pages */
    const uint8_t *bytes; /* all of it, mapped; NULL for a file, and for no pages */
    bool is_file;
};

/* An empty one, in a new memfd, to be filled by ph__page_store_add and sealed. PH_E_SYSTEM, PH_E_MEMORY. */
ph_status ph__page_store_create(struct ph__page_store **result, ph_error *error);

/* The (count) pages at (start) of the open (file), which is the store's from here on, whatever is returned.
 * PH_E_MEMORY. */
ph_status ph__page_store_open(int file, uint64_t start, uint64_t count, struct ph__page_store **result,
                              ph_error *error);

/* Adds the (count) pages at (bytes). */
ph_status ph__page_store_add(struct ph__page_store *store, const uint8_t *bytes, uint64_t count,
                             ph_error *error);

/* Ends the filling: nobody can change the pages any more, and (bytes) is there. */
ph_status ph__page_store_seal(struct ph__page_store *store, ph_error *error);

/* Reads page (index) into (page). PH_E_FILE when the file has lost it, PH_E_SYSTEM. */
ph_status ph__page_store_read(const struct ph__page_store *store, uint64_t index, uint8_t *page,
                              ph_error *error);

/* Sets (error) to what is to be said of pages that a file has lost. Returns PH_E_FILE. */
ph_status ph__page_store_lost(ph_error *error);

/* Whether (store) is a file that has lost some of its pages. */
bool ph__page_store_is_cut(const struct ph__page_store *store);

struct ph__page_store *ph__page_store_retain(struct ph__page_store *store);

/* (store) may be NULL. */
void ph__page_store_release(struct ph__page_store *store);

#endif
