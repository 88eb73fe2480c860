/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Taking a snapshot (snapshot.h): the processor's state, the protections, and a copy of every page that is
 * not what a new sandbox would have there, in a sealed memfd that sandboxes map copy-on-write.
 */
#include "sandbox/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* ---- what a sandbox remembers -------------------------------------------------------------------------- */

ph_status ph__restore_open(ph_sandbox *sandbox, ph_error *error) {
    if (sandbox->restore)
        return PH_OK;
    struct ph__restore *restore = calloc(1, sizeof *restore);
    if (!restore)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sandbox's snapshots");
    ph_status status = ph__private_pages_open(&restore->pagemap, error);
    if (status == PH_OK)
        sandbox->restore = restore;
    else
        free(restore);
    return status;
}

void ph__restore_close(ph_sandbox *sandbox) {
    struct ph__restore *restore = sandbox->restore;

    if (!restore)
        return;
    close(restore->pagemap);
    ph_snapshot_close(restore->mapped);
    ph_snapshot_close(restore->protections);
    free(restore->pages.pages);
    free(restore);
    sandbox->restore = NULL;
}

void ph__restore_note_protections(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    struct ph__restore *restore = sandbox->restore;

    if (restore->protections != snapshot) {
        ph_snapshot_retain(snapshot);
        ph_snapshot_close(restore->protections);
        restore->protections = snapshot;
    }
    restore->protections_changed = sandbox->memory.protections_changed;
}

size_t ph__page_list_find(const struct ph__page_list *list, uint64_t page) {
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->pages[middle] < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- taking -------------------------------------------------------------------------------------------- */

/* Whether a new sandbox has something else than zeroes at (page). */
static bool is_image_content(const ph_sandbox *sandbox, uint64_t page) {
    uint64_t distance = page * PH__PAGE_SIZE - sandbox->memory.layout.image.offset;
    uint64_t gva = sandbox->image->gva + distance;

    for (uint32_t i = 0; i < sandbox->image->extent_count; i++) {
        const struct ph__image_extent *extent = &sandbox->image->extents[i];
        if (gva >= extent->gva && gva - extent->gva < extent->size)
            return true;
    }
    return false;
}

/* The bytes of system calls under way are nobody's between calls. */
static bool is_io(uint64_t page) {
    return page * PH__PAGE_SIZE - PH__IO_GPA < PH__IO_SIZE;
}

/* Adds (page) to the snapshot's list, if it has to be there. */
static bool page_add(const ph_sandbox *sandbox, struct ph__page_list *list, uint64_t page) {
    const uint8_t *bytes = sandbox->memory.base + page * PH__PAGE_SIZE;

    if (is_io(page) || (ph__content_is_zero(bytes, PH__PAGE_SIZE) && !is_image_content(sandbox, page)))
        return true;
    return ph__page_list_add(list, page);
}

/* The pages that differ from a new sandbox's: the sandbox's own, and those of the snapshot below them. */
static ph_status find_pages(ph_sandbox *sandbox, struct ph__page_list *list, ph_error *error) {
    const struct ph__restore *restore = sandbox->restore;
    const struct ph__page_list *own = &restore->pages;
    const struct ph__page_list nothing = {0};
    const struct ph__page_list *below = restore->mapped ? &restore->mapped->pages : &nothing;
    size_t i = 0, j = 0;

    ph_status status = ph__private_pages_scan(restore->pagemap, &sandbox->memory, restore->plain,
                                              &sandbox->restore->pages, error);
    while (status == PH_OK && (i < own->count || j < below->count)) {
        uint64_t mine = i < own->count ? own->pages[i] : UINT64_MAX;
        uint64_t theirs = j < below->count ? below->pages[j] : UINT64_MAX;
        i += mine <= theirs;
        j += theirs <= mine;
        if (!page_add(sandbox, list, mine < theirs ? mine : theirs))
            status = ph__error_set(error, PH_E_MEMORY, "no memory for a list of pages");
    }
    return status;
}

/* How many pages in a row there are in (list) from (first) on. */
static size_t run_length(const struct ph__page_list *list, size_t first) {
    size_t count = 1;

    while (first + count < list->count && list->pages[first + count] == list->pages[first] + count)
        count++;
    return count;
}

static ph_status copy_pages(const ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const struct ph__page_list *pages = &snapshot->pages;
    const uint64_t size = pages->count * PH__PAGE_SIZE;
    size_t count;

    snapshot->content = ph__content_create("pinhole-snapshot");
    if (snapshot->content < 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "memfd_create");
    for (size_t i = 0; i < pages->count; i += count) {
        count = run_length(pages, i);
        if (ph__content_write(snapshot->content, sandbox->memory.base + pages->pages[i] * PH__PAGE_SIZE,
                              count * PH__PAGE_SIZE, i * PH__PAGE_SIZE) != 0)
            return ph__error_set_system(error, PH_E_SYSTEM, errno, "writing the snapshot's memory");
    }
    /* Sandboxes share these pages: nobody may change them from here on. */
    if (fcntl(snapshot->content, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "sealing the snapshot's memory");
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, snapshot->content, 0);
    if (bytes == MAP_FAILED)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "mapping the snapshot's memory");
    snapshot->bytes = bytes;
    if (madvise(bytes, size, MADV_DONTFORK) != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "keeping a snapshot from children");
    return PH_OK;
}

static ph_status fill(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const struct ph__vcpu *vcpu = sandbox->vcpu;
    ph_status status = ph__restore_open(sandbox, error);

    if (status != PH_OK)
        return status;
    snapshot->processor = calloc(1, vcpu->backend->state_size);
    if (!snapshot->processor)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a snapshot");
    status = vcpu->backend->save(sandbox->vcpu, snapshot->processor, error);
    if (status == PH_OK)
        status = find_pages(sandbox, &snapshot->pages, error);
    if (status == PH_OK)
        status = copy_pages(sandbox, snapshot, error);
    if (status == PH_OK)
        status = ph__protections_save(&sandbox->memory, &snapshot->protections, error);
    return status;
}

static ph_snapshot *snapshot_new(ph_sandbox *sandbox) {
    ph_snapshot *snapshot = calloc(1, sizeof *snapshot);

    if (!snapshot)
        return NULL;
    atomic_init(&snapshot->references, 1);
    snapshot->owner = sandbox->owner;
    ph__image_retain(sandbox->image);
    snapshot->image = sandbox->image;
    snapshot->layout = sandbox->memory.layout;
    snapshot->memory = sandbox->config.memory;
    snapshot->stack = sandbox->config.stack;
    snapshot->max_message = sandbox->config.max_message;
    snapshot->backend = sandbox->vcpu->backend;
    snapshot->features = sandbox->vcpu->features;
    snapshot->content = -1;
    snapshot->seed_generation = sandbox->seed_generation;
    snapshot->trace_position = ph__stream_position(sandbox->stream);
    snapshot->input_taken = sandbox->input_taken;
    return snapshot;
}

ph_status ph_snapshot_take(ph_sandbox *sandbox, ph_snapshot **result) {
    if (!sandbox || !result)
        return PH_E_ARGUMENT;
    *result = NULL;
    ph_status status = ph__sandbox_acquire(sandbox, PH_STATE_READY, "a snapshot");
    if (status != PH_OK)
        return status;
    ph__stream_begin(sandbox->stream, PH__HOST_SNAPSHOT, NULL, NULL);
    ph_snapshot *snapshot = snapshot_new(sandbox);
    if (snapshot)
        status = fill(sandbox, snapshot, &sandbox->error);
    else
        status = ph__error_set(&sandbox->error, PH_E_MEMORY, "no memory for a snapshot");
    if (status == PH_OK) {
        ph__restore_note_protections(sandbox, snapshot);
        *result = snapshot;
    } else {
        ph_snapshot_close(snapshot);
    }
    ph__stream_end(sandbox->stream, status, &sandbox->error);
    ph__sandbox_release(sandbox);
    return status;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

void ph_snapshot_retain(ph_snapshot *snapshot) {
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
}

void ph_snapshot_close(ph_snapshot *snapshot) {
    /* As ph_image_close. */
    if (!snapshot || atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) != 1)
        return;
    /* In a child, the kernel has taken the mapping away. */
    if (snapshot->bytes && snapshot->owner == ph__process_id())
        munmap((void *)snapshot->bytes, snapshot->pages.count * PH__PAGE_SIZE);
    if (snapshot->content >= 0)
        close(snapshot->content);
    free(snapshot->pages.pages);
    free(snapshot->protections.entries);
    free(snapshot->processor);
    ph_image_close(snapshot->image);
    free(snapshot);
}

uint64_t ph_snapshot_size(const ph_snapshot *snapshot) {
    return snapshot->pages.count * PH__PAGE_SIZE;
}

/* ---- memory on a snapshot ------------------------------------------------------------------------------ */

ph_status ph__snapshot_map_pages(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const struct ph__page_list *pages = &snapshot->pages;
    size_t count;

    for (size_t i = 0; i < pages->count; i += count) {
        uint8_t *address = sandbox->memory.base + pages->pages[i] * PH__PAGE_SIZE;
        count = run_length(pages, i);
        uint64_t size = count * PH__PAGE_SIZE;
        if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 snapshot->content, (off_t)(i * PH__PAGE_SIZE)) == MAP_FAILED ||
            madvise(address, size, MADV_DONTFORK) != 0)
            return ph__error_set_system(error, errno == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM, errno,
                                        "mapping a snapshot failed");
    }
    ph_snapshot_retain(snapshot);
    sandbox->restore->mapped = snapshot;
    return PH_OK;
}

ph_status ph__snapshot_map(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    struct ph__protections_plan plan = {.saved = &snapshot->protections, .unseen = true};
    uint32_t changed;

    ph_status status = ph__restore_open(sandbox, error);
    if (status == PH_OK)
        status = ph__protections_plan(&sandbox->memory, &plan, &changed, error);
    if (status == PH_OK)
        status = ph__snapshot_map_pages(sandbox, snapshot, error);
    if (status == PH_OK)
        ph__restore_note_protections(sandbox, snapshot);
    return status;
}
