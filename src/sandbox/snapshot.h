/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The inside of a snapshot, and what a sandbox remembers of snapshots. snapshot.c takes them, restore.c puts
 * them back, sandbox.c makes sandboxes of them.
 *
 * A page that a snapshot does not hold is what it was when the sandbox was mapped: the image's content, or
 * zero.
 */
#ifndef PH_SANDBOX_SNAPSHOT_H
#define PH_SANDBOX_SNAPSHOT_H

#include <pinhole/snapshot.h>

#include "sandbox/page_store.h"
#include "sandbox/private_pages.h"
#include "sandbox/sandbox.h"
#include "sandbox/shared_pages.h"
#include "vm/paging_snapshot.h"

/* A snapshot that was taken of a sandbox on another one shares the larger part of that one's pages (its
 * base), and has the rest in a store of its own (its delta). One from a file has the pages of the system
 * region in a memfd, since the host looks at them through the sandbox's memory: those that ring 3 can write
 * as they were read when it was loaded, and the constant ones of this library's own monitor, which no file
 * brings. The rest is in the file. */
#define PH__STORES 2u

/* Each costs a new sandbox a page. */
#define PH__WRITTEN_MAX 5u

struct ph_snapshot {
    atomic_size_t references;
    uint64_t owner; /* ph__process_id */
    ph_image *image;
    struct ph__layout layout;
    uint64_t memory, stack, max_message; /* of the config that led to (layout) */
    uint64_t files; /* struct ph__files's number: open descriptors and mappings are by place */

    struct ph__features features; /* that its guest has seen */
    struct ph__processor processor;
    struct ph__protections protections;

    struct ph__page_list pages;
    uint64_t *places; /* where each is: PH__PLACE */
    struct ph__page_store *stores[PH__STORES];
    uint8_t digest[32]; /* of all pages, as the file has it that this one was loaded from */
    bool has_digest;

    /* Pages that a call has written: of the first sandbox on this snapshot that was restored or destroyed.
     * Whoever gets (learning) from 0 to 1 writes them, and then makes it 2. */
    _Atomic int learning;
    uint32_t written_count;
    uint64_t written[PH__WRITTEN_MAX];

    uint64_t seed_generation; /* no guest state in here has seen a later one */
    uint64_t trace_position;  /* nor a position in the trace at or behind this */
    uint64_t input_taken;
};

/* A page's place: the page (index) of store (store). */
#define PH__PLACE(store, index) ((uint64_t)(store) << 63 | (index))
#define PH__PLACE_STORE(place) ((place) >> 63)
#define PH__PLACE_INDEX(place) ((place)&UINT64_MAX >> 1)

/* What a sandbox knows about snapshots, from the first one on. */
struct ph__restore {
    bool plain; /* pagemap without the ioctl; for tests */
    struct ph__page_list pages;
    /* (watched): while the sandbox's thread_changes and its thread's count of page faults are these, (pages)
     * is right. */
    bool watched;
    uint64_t thread_changes, faults;
    struct ph__shared_pages shared;
    struct ph__page_list usual; /* what a restore found last that was no greedy call's */
    bool much;                  /* and the last call wrote far more than that */
    uint64_t restores;          /* in a row to the snapshot (protections) */
    ph_snapshot *mapped;        /* whose pages lie under the sandbox's own, or NULL */
    /* The snapshot that protections were last put back to (or taken for), and the memory's count of changes
     * then. */
    ph_snapshot *protections;
    uint64_t protections_changed;
};

/* A snapshot with everything of (sandbox) but its pages, processor and protections. NULL when there is no
 * memory. */
ph_snapshot *ph__snapshot_new(const ph_sandbox *sandbox);

/* Learns from what (sandbox) has written on the snapshot that it lies on, if nobody has yet. (own): its own
 * pages. */
void ph__snapshot_learn(ph_snapshot *snapshot, const struct ph__page_list *own);
static inline bool ph__snapshot_has_learnt(ph_snapshot *snapshot) {
    return atomic_load_explicit(&snapshot->learning, memory_order_acquire) == 2;
}

/* The page at position (i) of (snapshot)'s list: in place, or read into (buffer). NULL with the reason in
 * (error), PH_E_FILE or PH_E_SYSTEM. */
const uint8_t *ph__snapshot_page(const ph_snapshot *snapshot, size_t i, uint8_t *buffer, ph_error *error);

/* Whether its pages are in a file that can become shorter. */
bool ph__snapshot_in_file(const ph_snapshot *snapshot);

/* Whether that has happened. */
bool ph__snapshot_is_cut(const ph_snapshot *snapshot);

/* Makes (sandbox)->restore unless it is there. PH_E_MEMORY. */
ph_status ph__restore_open(ph_sandbox *sandbox, ph_error *error);

/* The guest's memory is about to go: what can be learnt of it. */
void ph__restore_leave(ph_sandbox *sandbox);

/* Frees it. */
void ph__restore_close(ph_sandbox *sandbox);

/* Maps (snapshot)'s pages copy-on-write into new memory with the same layout, and gives the new page tables
 * its protections. */
ph_status ph__snapshot_map(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error);

/* Maps the pages alone, over whatever is there, in a sandbox that lies on no snapshot yet. */
ph_status ph__snapshot_map_pages(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error);

/* The rest of making a sandbox of (snapshot), when its vCPU is there: processor, control page, trace. */
ph_status ph__snapshot_begin(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error);

/* Whether (sandbox) can be put to (snapshot): PH_OK, or PH_E_SNAPSHOT with the reason in (error). The vCPU is
 * looked at if there is one. */
ph_status ph__snapshot_check(const ph_sandbox *sandbox, const struct ph__layout *layout,
                             const ph_snapshot *snapshot, ph_error *error);

/* Takes the pages of the snapshot that (sandbox) lies on away from under it. Of what it holds there, only
 * what it was at first is left. */
ph_status ph__snapshot_unmap_pages(ph_sandbox *sandbox, ph_error *error);

/* Remembers that the protections are those of (snapshot) now. */
void ph__restore_note_protections(ph_sandbox *sandbox, ph_snapshot *snapshot);

/* The position of (page) in (list), or of the first behind it. */
size_t ph__page_list_find(const struct ph__page_list *list, uint64_t page);

#endif
