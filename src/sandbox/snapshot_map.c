/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Lays a sandbox's memory on the pages of a snapshot, copy-on-write, and takes it off again (snapshot.h).
 * Called when a sandbox is made of a snapshot, and by restore.c.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/system.h"
#include "sandbox/snapshot.h"

/* How many pages in a row, from position (first) on, lie in a row in one store too. */
static size_t run_length(const ph_snapshot *snapshot, size_t first) {
    const uint64_t *pages = snapshot->pages.pages;
    const uint64_t *places = snapshot->places;
    size_t count = 1;

    while (first + count < snapshot->pages.count && pages[first + count] == pages[first] + count &&
           places[first + count] == places[first] + count)
        count++;
    return count;
}

static ph_status map_failed(ph_error *error) {
    return ph__error_set_system(error, errno == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM, errno,
                                "mapping a snapshot failed");
}

/* Maps (size) bytes at (offset) of the host range anew. */
static bool map(const ph_sandbox *sandbox, uint64_t offset, uint64_t size, int flags, int file,
                uint64_t file_offset) {
    return ph__system.mmap(sandbox->memory.base + offset, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | flags, file,
                           (off_t)file_offset) != MAP_FAILED;
}

/* What every mapping of guest memory is: not for children, and in small pages (vm/memory.c). */
static bool advise(const ph_sandbox *sandbox) {
    const uint64_t size = ph__memory_own(&sandbox->memory);

    ph__system.madvise(sandbox->memory.base, size, MADV_NOHUGEPAGE);
    return ph__system.madvise(sandbox->memory.base, size, MADV_DONTFORK) == 0;
}

/* What is mapped from a file is only looked at by way of the kernel, which a filter of system calls may
 * forbid. */
static ph_status check_access(const ph_sandbox *sandbox, ph_error *error) {
    uint8_t byte;

    if (ph__memory_copy(&sandbox->memory, &byte, sandbox->memory.base, 1))
        return PH_OK;
    return ph__error_set_system(
        error, PH_E_SYSTEM, errno,
        "process_vm_readv is needed for a snapshot that is mapped from a file; load it "
        "with PH_SNAPSHOT_COPY");
}

ph_status ph__snapshot_map_pages(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const struct ph__page_list *pages = &snapshot->pages;
    size_t count;

    for (size_t i = 0; i < pages->count; i += count) {
        const struct ph__page_store *store = snapshot->stores[PH__PLACE_STORE(snapshot->places[i])];
        count = run_length(snapshot, i);
        if (!map(sandbox, pages->pages[i] * PH__PAGE_SIZE, count * PH__PAGE_SIZE, 0, store->file,
                 store->start + PH__PLACE_INDEX(snapshot->places[i]) * PH__PAGE_SIZE))
            return map_failed(error);
    }
    if (!advise(sandbox))
        return map_failed(error);
    ph_snapshot_retain(snapshot);
    sandbox->restore->mapped = snapshot;
    sandbox->memory.in_file = ph__snapshot_in_file(snapshot);
    return sandbox->memory.in_file ? check_access(sandbox, error) : PH_OK;
}

/* Maps what the image has within [offset, offset + size) of the host range. */
static bool map_image(const ph_sandbox *sandbox, uint64_t offset, uint64_t size) {
    const ph_image *image = sandbox->image;
    const uint64_t base = sandbox->memory.layout.image.offset;

    for (uint32_t i = 0; i < image->extent_count; i++) {
        const struct ph__image_extent *extent = &image->extents[i];
        uint64_t start = base + (extent->gva - image->gva);
        uint64_t end = start + extent->size;
        uint64_t from = start > offset ? start : offset;
        uint64_t to = end < offset + size ? end : offset + size;
        if (from < to &&
            !map(sandbox, from, to - from, 0, image->content, extent->file_offset + (from - start)))
            return false;
    }
    return true;
}

ph_status ph__snapshot_unmap_pages(ph_sandbox *sandbox, ph_error *error) {
    ph_snapshot *below = sandbox->restore->mapped;
    size_t count;

    for (size_t i = 0; i < below->pages.count; i += count) {
        uint64_t offset = below->pages.pages[i] * PH__PAGE_SIZE;
        count = run_length(below, i);
        if (!map(sandbox, offset, count * PH__PAGE_SIZE, MAP_ANONYMOUS, -1, 0) ||
            !map_image(sandbox, offset, count * PH__PAGE_SIZE))
            return map_failed(error);
    }
    if (!advise(sandbox))
        return map_failed(error);
    sandbox->restore->mapped = NULL;
    sandbox->memory.in_file = false;
    ph_snapshot_close(below);
    return PH_OK;
}

ph_status ph__snapshot_map(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    struct ph__protections_plan plan = {.saved = &snapshot->protections, .unseen = true};
    uint32_t changed;

    if (ph__snapshot_is_cut(snapshot))
        return ph__page_store_lost(error);
    ph_status status = ph__restore_open(sandbox, error);
    if (status == PH_OK)
        status = ph__protections_plan(&sandbox->memory, &plan, &changed, error);
    if (status == PH_OK)
        status = ph__snapshot_map_pages(sandbox, snapshot, error);
    if (status == PH_OK)
        ph__restore_note_protections(sandbox, snapshot);
    return status;
}
