/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Keeps the pages of snapshots (page_store.h). snapshot.c fills stores, restore.c reads them, and sandboxes
 * map them copy-on-write.
 */
#include "sandbox/page_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "abi/layout.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "sandbox/image.h"

static struct ph__page_store *store_new(int file, ph_error *error) {
    struct ph__page_store *store = calloc(1, sizeof *store);

    if (!store) {
        ph__error_set(error, PH_E_MEMORY, "no memory for a snapshot's pages");
        return NULL;
    }
    atomic_init(&store->references, 1);
    store->owner = ph__process_id();
    store->file = file;
    return store;
}

ph_status ph__page_store_create(struct ph__page_store **result, ph_error *error) {
    struct ph__page_store *store = store_new(-1, error);

    if (!store)
        return PH_E_MEMORY;
    store->file = ph__content_create("pinhole-snapshot");
    if (store->file < 0) {
        ph_status status = ph__error_set_system(error, PH_E_SYSTEM, errno, "memfd_create");
        ph__page_store_release(store);
        return status;
    }
    *result = store;
    return PH_OK;
}

ph_status ph__page_store_open(int file, uint64_t start, uint64_t count, struct ph__page_store **result,
                              ph_error *error) {
    struct ph__page_store *store = store_new(file, error);

    if (!store) {
        ph__system.close(file);
        return PH_E_MEMORY;
    }
    store->start = start;
    store->count = count;
    store->is_file = true;
    *result = store;
    return PH_OK;
}

ph_status ph__page_store_add(struct ph__page_store *store, const uint8_t *bytes, uint64_t count,
                             ph_error *error) {
    if (ph__content_write(store->file, bytes, count * PH__PAGE_SIZE, store->count * PH__PAGE_SIZE) != 0)
        return ph__error_set_system(error, errno == ENOMEM || errno == ENOSPC ? PH_E_MEMORY : PH_E_SYSTEM,
                                    errno, "writing the snapshot's memory");
    store->count += count;
    return PH_OK;
}

ph_status ph__page_store_seal(struct ph__page_store *store, ph_error *error) {
    const uint64_t size = store->count * PH__PAGE_SIZE;

    if (ph__system.fcntl(store->file, F_ADD_SEALS,
                         F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "sealing the snapshot's memory");
    if (size == 0)
        return PH_OK;
    void *bytes = ph__system.mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, store->file, 0);
    if (bytes == MAP_FAILED)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "mapping the snapshot's memory");
    store->bytes = bytes;
    if (ph__system.madvise(bytes, size, MADV_DONTFORK) != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "keeping a snapshot from children");
    return PH_OK;
}

ph_status ph__page_store_lost(ph_error *error) {
    return ph__error_set(error, PH_E_FILE, "the snapshot's file has become shorter since it was loaded");
}

bool ph__page_store_is_cut(const struct ph__page_store *store) {
    struct stat information;

    return store->is_file && ph__system.fstat(store->file, &information) == 0 &&
           (uint64_t)information.st_size < store->start + store->count * PH__PAGE_SIZE;
}

ph_status ph__page_store_read(const struct ph__page_store *store, uint64_t index, uint8_t *page,
                              ph_error *error) {
    size_t done = 0;

    while (done < PH__PAGE_SIZE) {
        ssize_t got = ph__system.pread(store->file, page + done, PH__PAGE_SIZE - done,
                                       (off_t)(store->start + index * PH__PAGE_SIZE + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ph__error_set_system(error, store->is_file ? PH_E_FILE : PH_E_SYSTEM, errno,
                                        "reading a snapshot's pages");
        if (got == 0)
            return ph__page_store_lost(error);
        done += (size_t)got;
    }
    return PH_OK;
}

struct ph__page_store *ph__page_store_retain(struct ph__page_store *store) {
    atomic_fetch_add_explicit(&store->references, 1, memory_order_relaxed);
    return store;
}

void ph__page_store_release(struct ph__page_store *store) {
    /* As ph_image_close. */
    if (!store || atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) != 1)
        return;
    /* In a child, the kernel has taken the mapping away. */
    if (store->bytes && store->owner == ph__process_id())
        ph__system.munmap((void *)store->bytes, store->count * PH__PAGE_SIZE);
    if (store->file >= 0)
        ph__system.close(store->file);
    free(store);
}
