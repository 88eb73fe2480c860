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

#include "sandbox/private_pages.h"
#include "sandbox/sandbox.h"
#include "vm/paging_snapshot.h"

struct ph_snapshot {
    atomic_size_t references;
    uint64_t owner; /* ph__process_id */
    ph_image *image;
    struct ph__layout layout;
    uint64_t memory, stack, max_message; /* of the config that led to (layout) */

    const struct ph__backend *backend;
    uint64_t features; /* struct ph__vcpu's */
    void *processor;   /* what (backend) saved */
    struct ph__protections protections;

    int content;          /* sealed memfd: the pages, in the order of (pages) */
    const uint8_t *bytes; /* it, mapped */
    struct ph__page_list pages;

    uint64_t seed_generation; /* no guest state in here has seen a later one */
    uint64_t trace_position;  /* nor a position in the trace at or behind this */
    uint64_t input_taken;
};

/* What a sandbox knows about snapshots, from the first one on. */
struct ph__restore {
    int pagemap;
    bool plain; /* pagemap without the ioctl; for tests */
    struct ph__page_list pages;
    uint64_t restores;   /* in a row to the snapshot (protections) */
    ph_snapshot *mapped; /* whose pages lie under the sandbox's own, or NULL */
    /* The snapshot that protections were last put back to (or taken for), and the memory's count of changes
     * then. */
    ph_snapshot *protections;
    uint64_t protections_changed;
};

/* Makes (sandbox)->restore unless it is there. PH_E_MEMORY or PH_E_SYSTEM. */
ph_status ph__restore_open(ph_sandbox *sandbox, ph_error *error);

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

/* Remembers that the protections are those of (snapshot) now. */
void ph__restore_note_protections(ph_sandbox *sandbox, ph_snapshot *snapshot);

/* The position of (page) in (list), or of the first behind it. */
size_t ph__page_list_find(const struct ph__page_list *list, uint64_t page);

#endif
