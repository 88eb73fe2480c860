/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Taking a snapshot (snapshot.h): the processor's state, the protections, and a copy of every page that is
 * not what a new sandbox would have there, in a sealed memfd that sandboxes map copy-on-write.
 */
#include "sandbox/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---- what a sandbox remembers -------------------------------------------------------------------------- */

ph_status ph__restore_open(ph_sandbox *sandbox, ph_error *error) {
    if (sandbox->restore)
        return PH_OK;
    struct ph__restore *restore = calloc(1, sizeof *restore);
    if (!restore)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sandbox's snapshots");
    sandbox->restore = restore;
    return PH_OK;
}

void ph__restore_close(ph_sandbox *sandbox) {
    struct ph__restore *restore = sandbox->restore;

    if (!restore)
        return;
    ph_snapshot_close(restore->mapped);
    ph_snapshot_close(restore->protections);
    free(restore->pages.pages);
    free(restore->usual.pages);
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

void ph__snapshot_learn(ph_snapshot *snapshot, const struct ph__page_list *own) {
    int nobody = 0;

    if (own->count == 0 || !atomic_compare_exchange_strong(&snapshot->learning, &nobody, 1))
        return;
    snapshot->written_count = own->count < PH__WRITTEN_MAX ? (uint32_t)own->count : PH__WRITTEN_MAX;
    memcpy(snapshot->written, own->pages, snapshot->written_count * sizeof own->pages[0]);
    atomic_store_explicit(&snapshot->learning, 2, memory_order_release);
}

void ph__restore_leave(ph_sandbox *sandbox) {
    struct ph__restore *restore = sandbox->restore;
    ph_error error;

    if (restore && restore->mapped && sandbox->vcpu && sandbox->vcpu->shadow_paging &&
        !ph__snapshot_has_learnt(restore->mapped) &&
        ph__private_pages_scan(&sandbox->memory, restore->plain, &restore->pages, &error) == PH_OK)
        ph__snapshot_learn(restore->mapped, &restore->pages);
}

/* ---- which pages --------------------------------------------------------------------------------------- */

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

/* A snapshot under way: what it is taken of, and where its pages go. */
struct taking {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    const ph_snapshot *below; /* what the sandbox lies on, or NULL */
    unsigned base;            /* which of its stores becomes the base */
    size_t places;            /* allocated */
    uint8_t own[PH__PAGE_SIZE];
    ph_error *error;
};

static bool place_add(struct taking *taking, uint64_t page, uint64_t place) {
    ph_snapshot *snapshot = taking->snapshot;

    if (snapshot->pages.count == taking->places) {
        size_t capacity = taking->places ? 2 * taking->places : 256;
        uint64_t *places = realloc(snapshot->places, capacity * sizeof *places);
        if (!places)
            return false;
        snapshot->places = places;
        taking->places = capacity;
    }
    snapshot->places[snapshot->pages.count] = place;
    return ph__page_list_add(&snapshot->pages, page);
}

#define DELTA 1u

/* Pages in between that are taken along, so that pages before and behind them are mapped in one piece. Each
 * mapping costs a new sandbox some microseconds. */
#define GAP_MAX 8u

static bool is_in(const struct ph__region *region, uint64_t page) {
    return page * PH__PAGE_SIZE - region->offset < region->size;
}

/* Whether the pages [first, end) lie in one region of those that a snapshot can have. */
static bool is_fillable(const struct ph__layout *layout, uint64_t first, uint64_t end) {
    const struct ph__region *regions[] = {&layout->bookkeeping, &layout->image, &layout->arena,
                                          &layout->stack};

    for (uint64_t page = first; page < end; page++)
        if (is_in(&layout->site_words, page))
            return false;
    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++)
        if (is_in(regions[i], first) && is_in(regions[i], end - 1))
            return true;
    return first * PH__PAGE_SIZE >= PH__TABLES_GPA && end * PH__PAGE_SIZE <= PH__IO_GPA;
}

/* Fills the gap in front of (page), if it is small. There are zeroes, or the image's content, in the
 * sandbox's memory. */
static ph_status fill_gap(struct taking *taking, uint64_t page) {
    const ph_snapshot *snapshot = taking->snapshot;
    struct ph__page_store *delta = snapshot->stores[DELTA];
    const size_t count = snapshot->pages.count;

    if (count == 0 || PH__PLACE_STORE(snapshot->places[count - 1]) != DELTA)
        return PH_OK;
    /* In the gap may be zeroes that were written over pages of a file, and such a page can be lost. */
    if (taking->sandbox->memory.in_file)
        return PH_OK;
    const uint64_t first = snapshot->pages.pages[count - 1] + 1;
    if (page == first || page - first > GAP_MAX || !is_fillable(&taking->sandbox->memory.layout, first, page))
        return PH_OK;
    for (uint64_t i = first; i < page; i++)
        if (!place_add(taking, i, PH__PLACE(DELTA, delta->count + (i - first))))
            return ph__error_set(taking->error, PH_E_MEMORY, "no memory for a list of pages");
    return ph__page_store_add(delta, taking->sandbox->memory.base + first * PH__PAGE_SIZE, page - first,
                              taking->error);
}

/* Takes (bytes) into the delta. */
static ph_status page_copy(struct taking *taking, uint64_t page, const uint8_t *bytes) {
    struct ph__page_store *delta = taking->snapshot->stores[DELTA];
    ph_status status = fill_gap(taking, page);

    if (status != PH_OK)
        return status;
    if (!place_add(taking, page, PH__PLACE(DELTA, delta->count)))
        return ph__error_set(taking->error, PH_E_MEMORY, "no memory for a list of pages");
    return ph__page_store_add(delta, bytes, 1, taking->error);
}

/* Takes the page that the snapshot below has at position (i), unless the sandbox has (own) bytes there that
 * differ. In the base it is shared. */
static ph_status page_share(struct taking *taking, size_t i, const uint8_t *own) {
    const ph_snapshot *below = taking->below;
    const uint64_t page = below->pages.pages[i];
    const uint64_t place = below->places[i];
    uint8_t buffer[PH__PAGE_SIZE];

    if (own && ph__content_is_zero(own, PH__PAGE_SIZE) && !is_image_content(taking->sandbox, page))
        return PH_OK;
    if (own && PH__PLACE_STORE(place) != taking->base)
        return page_copy(taking, page, own);
    const uint8_t *bytes = NULL;
    if (own || PH__PLACE_STORE(place) != taking->base) {
        bytes = ph__snapshot_page(below, i, buffer, taking->error);
        if (!bytes)
            return taking->error->status;
    }
    if (own && memcmp(own, bytes, PH__PAGE_SIZE) != 0)
        return page_copy(taking, page, own);
    if (PH__PLACE_STORE(place) != taking->base)
        return page_copy(taking, page, bytes);
    if (!place_add(taking, page, PH__PLACE(0, PH__PLACE_INDEX(place))))
        return ph__error_set(taking->error, PH_E_MEMORY, "no memory for a list of pages");
    return PH_OK;
}

/* The bytes of (page), which the sandbox has written. If it lies on a file they are a copy: of a page that
 * the file has lost the kernel takes what was written on it, too. NULL when it has. */
static const uint8_t *own_bytes(struct taking *taking, uint64_t page) {
    const struct ph__memory *memory = &taking->sandbox->memory;
    const uint8_t *bytes = memory->base + page * PH__PAGE_SIZE;

    if (!memory->in_file)
        return bytes;
    return ph__memory_copy(memory, taking->own, bytes, PH__PAGE_SIZE) ? taking->own : NULL;
}

/* Takes (page), which the sandbox has written, as (bytes), and no snapshot below holds. */
static ph_status page_take(struct taking *taking, uint64_t page, const uint8_t *bytes) {
    if (is_io(page) ||
        (ph__content_is_zero(bytes, PH__PAGE_SIZE) && !is_image_content(taking->sandbox, page)))
        return PH_OK;
    return page_copy(taking, page, bytes);
}

/* Takes the pages that differ from a new sandbox's: the sandbox's own, and those of the snapshot below them.
 */
static ph_status take_pages(struct taking *taking) {
    const struct ph__page_list nothing = {0};
    const struct ph__page_list *own = &taking->sandbox->restore->pages;
    const struct ph__page_list *below = taking->below ? &taking->below->pages : &nothing;
    ph_status status = PH_OK;
    size_t i = 0, j = 0;

    while (status == PH_OK && (i < own->count || j < below->count)) {
        uint64_t mine = i < own->count ? own->pages[i] : UINT64_MAX;
        uint64_t theirs = j < below->count ? below->pages[j] : UINT64_MAX;
        const uint8_t *bytes = mine <= theirs ? own_bytes(taking, mine) : NULL;
        if (mine <= theirs && !bytes)
            status = ph__page_store_lost(taking->error);
        else if (taking->below && theirs <= mine)
            status = page_share(taking, j, bytes);
        else
            status = page_take(taking, mine, bytes);
        i += mine <= theirs;
        j += theirs <= mine;
    }
    return status;
}

/* Which store of (snapshot) has more of its pages. */
static unsigned larger_store(const ph_snapshot *snapshot) {
    size_t second = 0;

    for (size_t i = 0; i < snapshot->pages.count; i++)
        second += PH__PLACE_STORE(snapshot->places[i]);
    return 2 * second > snapshot->pages.count;
}

/* ---- taking -------------------------------------------------------------------------------------------- */

static ph_status take_memory(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    struct ph__restore *restore = sandbox->restore;
    struct taking taking = {
        .sandbox = sandbox, .snapshot = snapshot, .below = restore->mapped, .error = error};

    if (taking.below) {
        taking.base = larger_store(taking.below);
        struct ph__page_store *base = taking.below->stores[taking.base];
        snapshot->stores[0] = base ? ph__page_store_retain(base) : NULL;
    }
    ph_status status = ph__page_store_create(&snapshot->stores[DELTA], error);
    if (status == PH_OK) {
        status = ph__private_pages_scan(&sandbox->memory, restore->plain, &restore->pages, error);
        /* The list is a part of what it should be, and no restore may go by it. */
        if (status != PH_OK)
            restore->watched = false;
    }
    if (status == PH_OK)
        status = take_pages(&taking);
    if (status == PH_OK)
        status = ph__page_store_seal(snapshot->stores[DELTA], error);
    return status;
}

static ph_status fill(ph_sandbox *sandbox, ph_snapshot *snapshot, ph_error *error) {
    const struct ph__vcpu *vcpu = sandbox->vcpu;
    ph_status status = ph__restore_open(sandbox, error);

    if (status == PH_OK)
        status = vcpu->backend->save(sandbox->vcpu, &snapshot->processor, error);
    if (status == PH_OK)
        status = take_memory(sandbox, snapshot, error);
    if (status == PH_OK)
        status = ph__protections_save(&sandbox->memory, &snapshot->protections, error);
    return status;
}

ph_snapshot *ph__snapshot_new(const ph_sandbox *sandbox) {
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
    snapshot->files = sandbox->files.number;
    snapshot->features = *sandbox->vcpu->features;
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
    ph_snapshot *snapshot = ph__snapshot_new(sandbox);
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
    for (unsigned i = 0; i < PH__STORES; i++)
        ph__page_store_release(snapshot->stores[i]);
    free(snapshot->pages.pages);
    free(snapshot->protections.entries);
    free(snapshot->places);
    ph_image_close(snapshot->image);
    free(snapshot);
}

uint64_t ph_snapshot_size(const ph_snapshot *snapshot) {
    return snapshot->pages.count * PH__PAGE_SIZE;
}

const uint8_t *ph__snapshot_page(const ph_snapshot *snapshot, size_t i, uint8_t *buffer, ph_error *error) {
    const struct ph__page_store *store = snapshot->stores[PH__PLACE_STORE(snapshot->places[i])];
    const uint64_t index = PH__PLACE_INDEX(snapshot->places[i]);

    if (store->bytes)
        return store->bytes + index * PH__PAGE_SIZE;
    return ph__page_store_read(store, index, buffer, error) == PH_OK ? buffer : NULL;
}

bool ph__snapshot_in_file(const ph_snapshot *snapshot) {
    for (unsigned i = 0; i < PH__STORES; i++)
        if (snapshot->stores[i] && snapshot->stores[i]->is_file)
            return true;
    return false;
}

bool ph__snapshot_is_cut(const ph_snapshot *snapshot) {
    for (unsigned i = 0; i < PH__STORES; i++)
        if (snapshot->stores[i] && ph__page_store_is_cut(snapshot->stores[i]))
            return true;
    return false;
}
