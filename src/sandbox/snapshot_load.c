/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Makes a snapshot of a file (snapshot_file.h). Pages of the system region, which the host looks at through a
 * sandbox's memory, are always copied: those that ring 3 can write from the file, the constant ones from this
 * library's own monitor. All others stay in the file, or are copied too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "sandbox/snapshot.h"
#include "sandbox/snapshot_file.h"
#include "vm/boot.h"

/* The stores of a snapshot that was loaded. */
#define IN_FILE 0u
#define IN_MEMORY 1u

/* A load under way. */
struct loading {
    ph_snapshot *snapshot;
    struct ph__snapshot_file *opened;
    const ph_image *image;
    ph_snapshot_mode mode;
    ph_error *error;
};

static ph_status no_memory(ph_error *error) {
    return ph__error_set(error, PH_E_MEMORY, "no memory for loading a snapshot");
}

/* Gives the list its next page. There is room. */
static void page_note(ph_snapshot *snapshot, uint64_t page, unsigned store, uint64_t index) {
    snapshot->places[snapshot->pages.count] = PH__PLACE(store, index);
    snapshot->pages.pages[snapshot->pages.count++] = page;
}

/* Copies (page), with its (bytes), into memory. */
static ph_status page_keep(ph_snapshot *snapshot, uint64_t page, const uint8_t *bytes, ph_error *error) {
    struct ph__page_store *store = snapshot->stores[IN_MEMORY];

    page_note(snapshot, page, IN_MEMORY, store->count);
    return ph__page_store_add(store, bytes, 1, error);
}

/* ---- pages --------------------------------------------------------------------------------------------- */

/* The constant pages of the system region: they come before all that are in the file. */
static ph_status boot_pages_keep(struct loading *loading) {
    struct ph__memory memory = {
        .base =
            ph__system.mmap(NULL, PH__BOOT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
    };
    ph_status status = PH_OK;

    if (memory.base == MAP_FAILED)
        return no_memory(loading->error);
    ph__boot_write(&memory);
    for (uint64_t gpa = 0; gpa < PH__BOOT_SIZE && status == PH_OK; gpa += PH__PAGE_SIZE)
        if (ph__boot_is_constant(gpa))
            status = page_keep(loading->snapshot, gpa / PH__PAGE_SIZE, memory.base + gpa, loading->error);
    ph__system.munmap(memory.base, PH__BOOT_SIZE);
    return status;
}

static bool is_system(const struct ph__layout *layout, uint64_t page) {
    return page * PH__PAGE_SIZE < layout->system.size;
}

/* The pages of the file, which stay where they are but for the first ones. */
static ph_status pages_map(struct loading *loading) {
    struct ph__snapshot_file *opened = loading->opened;
    const uint64_t start = ph__snapshot_data_offset(&opened->head);
    uint8_t bytes[PH__PAGE_SIZE];
    ph_snapshot *snapshot = loading->snapshot;

    for (uint64_t i = 0; i < opened->head.page_count; i++) {
        if (!is_system(&opened->layout, opened->words[i])) {
            page_note(snapshot, opened->words[i], IN_FILE, i);
            continue;
        }
        ssize_t got = ph__snapshot_read(opened->file, bytes, sizeof bytes, start + i * PH__PAGE_SIZE);
        if (got < 0)
            return ph__error_set_system(loading->error, PH_E_FILE, errno, "reading failed");
        if (got < (ssize_t)sizeof bytes)
            return ph__error_set(loading->error, PH_E_SNAPSHOT, "the file is cut off within its pages");
        ph_status status = page_keep(snapshot, opened->words[i], bytes, loading->error);
        if (status != PH_OK)
            return status;
    }
    memcpy(snapshot->digest, opened->head.data_digest, sizeof snapshot->digest);
    snapshot->has_digest = true;
    /* From here on the file is the store's. */
    int file = opened->file;
    opened->file = -1;
    return ph__page_store_open(file, start, opened->head.page_count, &snapshot->stores[IN_FILE],
                               loading->error);
}

/* The pages that have been read so far are the first ones, and these come next. */
struct taking {
    struct loading *loading;
    uint64_t next;
};

static ph_status pages_take(void *context, const uint8_t *pages, uint64_t count, ph_error *error) {
    struct taking *taking = context;
    ph_snapshot *snapshot = taking->loading->snapshot;
    struct ph__page_store *store = snapshot->stores[IN_MEMORY];

    for (uint64_t i = 0; i < count; i++)
        page_note(snapshot, taking->loading->opened->words[taking->next++], IN_MEMORY, store->count + i);
    return ph__page_store_add(store, pages, count, error);
}

static ph_status pages_copy(struct loading *loading) {
    const struct ph__snapshot_file *opened = loading->opened;
    struct taking taking = {.loading = loading};

    return ph__snapshot_pages_read(opened->file, ph__snapshot_data_offset(&opened->head),
                                   opened->head.page_count, opened->head.data_digest, pages_take, &taking,
                                   loading->error);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static ph_status tables_take(struct loading *loading) {
    const struct ph__snapshot_file *opened = loading->opened;
    ph_snapshot *snapshot = loading->snapshot;
    const uint64_t room = opened->head.page_count + PH__BOOT_SIZE / PH__PAGE_SIZE;
    const uint64_t protections = opened->head.protection_count;

    snapshot->pages.pages = malloc(room * sizeof *snapshot->pages.pages);
    snapshot->places = malloc(room * sizeof *snapshot->places);
    snapshot->protections.entries = malloc((protections + 1) * sizeof *snapshot->protections.entries);
    if (!snapshot->pages.pages || !snapshot->places || !snapshot->protections.entries)
        return no_memory(loading->error);
    snapshot->pages.capacity = room;
    snapshot->protections.count = protections;
    memcpy(snapshot->protections.entries, opened->words + opened->head.page_count,
           protections * sizeof *snapshot->protections.entries);
    return PH_OK;
}

static ph_status fill(struct loading *loading) {
    ph_snapshot *snapshot = loading->snapshot;
    ph_status status = tables_take(loading);

    if (status == PH_OK)
        status = ph__page_store_create(&snapshot->stores[IN_MEMORY], loading->error);
    if (status == PH_OK)
        status = boot_pages_keep(loading);
    if (status == PH_OK)
        status = loading->mode == PH_SNAPSHOT_COPY ? pages_copy(loading) : pages_map(loading);
    if (status == PH_OK)
        status = ph__page_store_seal(snapshot->stores[IN_MEMORY], loading->error);
    return status;
}

static ph_snapshot *snapshot_new(ph_image *image, const struct ph__snapshot_file *opened) {
    const struct ph__snapshot_head *head = &opened->head;
    ph_snapshot *snapshot = calloc(1, sizeof *snapshot);

    if (!snapshot)
        return NULL;
    atomic_init(&snapshot->references, 1);
    snapshot->owner = ph__process_id();
    ph__image_retain(image);
    snapshot->image = image;
    snapshot->layout = opened->layout;
    snapshot->memory = head->request.memory;
    snapshot->stack = head->request.stack;
    snapshot->max_message = head->request.max_message;
    snapshot->files = head->files;
    snapshot->features = head->features;
    snapshot->processor = head->processor;
    snapshot->seed_generation = head->seed_generation;
    snapshot->trace_position = head->trace_position;
    snapshot->input_taken = head->input_taken;
    return snapshot;
}

static ph_status load(struct loading *loading, ph_image *image, const char *path) {
    uint8_t monitor[PH__SHA256_SIZE];
    struct ph__image_identity identity;
    struct ph__snapshot_wanted wanted = {.monitor = monitor, .image = image, .identity = &identity};

    ph__boot_digest(monitor);
    ph_status status = ph__image_identify(image, &identity, loading->error);
    if (status != PH_OK)
        return status;
    status = ph__snapshot_file_open(loading->opened, path, &wanted, loading->error);
    if (status == PH_OK) {
        loading->snapshot = snapshot_new(image, loading->opened);
        status = loading->snapshot ? fill(loading) : no_memory(loading->error);
    }
    return status == PH_OK ? PH_OK : ph__snapshot_file_name(path, loading->error);
}

ph_status ph_snapshot_load(ph_image *image, const char *path, ph_snapshot_mode mode, ph_snapshot **result,
                           ph_error *error) {
    ph_error ignored = {0};
    struct ph__snapshot_file opened = {.file = -1};
    struct loading loading = {
        .opened = &opened,
        .image = image,
        .mode = mode,
        .error = error ? error : &ignored,
    };

    if (!result)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no place for the snapshot");
    *result = NULL;
    if (!image || !path || (mode != PH_SNAPSHOT_MAP && mode != PH_SNAPSHOT_COPY))
        return ph__error_set(error, PH_E_ARGUMENT, "an image, a path and a mode that there is are needed");
    ph_status status = ph__process_init(loading.error);
    if (status == PH_OK)
        status = load(&loading, image, path);
    ph__snapshot_file_close(&opened);
    if (status == PH_OK)
        *result = loading.snapshot;
    else
        ph_snapshot_close(loading.snapshot);
    return status;
}
