/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Says what is in a snapshot's file, and whether its pages are what they were (snapshot_file.h). No sandbox,
 * no image and no KVM is needed for that.
 */
#include <string.h>

#include "base/error.h"
#include "base/process.h"
#include "sandbox/snapshot.h"
#include "sandbox/snapshot_file.h"
#include "vm/boot.h"

_Static_assert(sizeof((ph_snapshot_info *)0)->image_id == PH__BUILD_ID_MAX,
               "there is room for every identity");
_Static_assert(sizeof((ph_snapshot_info *)0)->image_name == PH__SNAPSHOT_NAME_SIZE, "and every name");

/* The head may be damaged: what is copied is bounded, and texts are made printable. */
static ph_snapshot_info info_of(const struct ph__snapshot_head *untrusted_head, uint64_t file_size) {
    const struct ph__snapshot_head *head = untrusted_head;
    ph_snapshot_info info = {
        .format = head->format,
        .abi = head->abi,
        .image_id_is_build_id = head->image.is_build_id,
        .image_id_size = head->image.size < PH__BUILD_ID_MAX ? head->image.size : PH__BUILD_ID_MAX,
        .xcr0 = head->features.xcr0,
        .memory = head->request.memory,
        .stack = head->request.stack,
        .max_message = head->request.max_message,
        .trace_ring = head->request.trace_ring,
        .files = head->request.files,
        .file_size = file_size,
        .pages = head->page_count,
        .page_size = head->page_size,
        .saved_ns = head->saved_ns,
    };

    ph__features_name(&head->features, info.features, sizeof info.features);
    memcpy(info.image_id, head->image.bytes, sizeof info.image_id);
    ph__text_copy_printable(info.image_name, sizeof info.image_name, head->image_name,
                            strnlen(head->image_name, sizeof head->image_name));
    return info;
}

static ph_status examine(struct ph__snapshot_file *opened, const char *path, bool verify, ph_error *error) {
    uint8_t monitor[PH__SHA256_SIZE];
    const struct ph__snapshot_wanted wanted = {.monitor = monitor};

    ph__boot_digest(monitor);
    ph_status status = ph__snapshot_file_open(opened, path, &wanted, error);
    if (status == PH_OK && verify)
        status =
            ph__snapshot_pages_read(opened->file, ph__snapshot_data_offset(&opened->head),
                                    opened->head.page_count, opened->head.data_digest, NULL, NULL, error);
    return status == PH_OK ? PH_OK : ph__snapshot_file_name(path, error);
}

ph_status ph_snapshot_examine(const char *path, bool verify, ph_snapshot_info *info, ph_error *error) {
    ph_error ignored = {0};
    struct ph__snapshot_file opened = {.file = -1};

    if (!path || !info)
        return ph__error_set(error, PH_E_ARGUMENT, "a path and a place for what is found are needed");
    if (info->size < sizeof info->size || info->size > sizeof *info)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the size is not one of this library: use PH_SNAPSHOT_INFO_INIT");
    ph_status status = examine(&opened, path, verify, error ? error : &ignored);
    ph_snapshot_info found = {0};
    if (opened.decoded)
        found = info_of(&opened.head, opened.size);
    found.size = info->size;
    memcpy(info, &found, found.size);
    ph__snapshot_file_close(&opened);
    return status;
}

/* The store of a snapshot's file, NULL when it has none. */
static const struct ph__page_store *file_of(const ph_snapshot *snapshot) {
    for (unsigned i = 0; i < PH__STORES; i++)
        if (snapshot->stores[i] && snapshot->stores[i]->is_file)
            return snapshot->stores[i];
    return NULL;
}

ph_status ph_snapshot_verify(ph_snapshot *snapshot, ph_error *error) {
    if (!snapshot)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no snapshot");
    if (snapshot->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED, "the snapshot was made before fork()");
    const struct ph__page_store *store = file_of(snapshot);
    if (!store || !snapshot->has_digest)
        return PH_OK;
    return ph__snapshot_pages_read(store->file, store->start, store->count, snapshot->digest, NULL, NULL,
                                   error);
}
