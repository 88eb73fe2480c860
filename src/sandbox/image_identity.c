/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What tells an image from others (image.h), so that a snapshot's file finds its image again, also in another
 * process. A build-id is what the linker says, and costs nothing; without one all that is loaded is read,
 * which only the users of such files should pay for: opening an image never comes here.
 */
#include "sandbox/image.h"

#include <errno.h>
#include <string.h>

#include "abi/layout.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/system.h"

_Static_assert(PH__SHA256_SIZE <= PH__BUILD_ID_MAX, "a digest takes the place of a build-id");

static void add_number(struct ph__sha256 *hash, uint64_t number) {
    uint8_t bytes[8];

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    ph__sha256_add(hash, bytes, sizeof bytes);
}

/* Where everything is: two programs may have the same bytes at different places. */
static void add_places(struct ph__sha256 *hash, const ph_image *image) {
    add_number(hash, image->gva);
    add_number(hash, image->size);
    add_number(hash, image->entry);
    for (uint32_t i = 0; i < image->range_count; i++) {
        add_number(hash, image->ranges[i].gva);
        add_number(hash, image->ranges[i].size);
        add_number(hash, image->ranges[i].writable | image->ranges[i].executable << 1);
    }
    for (uint32_t i = 0; i < image->extent_count; i++) {
        add_number(hash, image->extents[i].gva);
        add_number(hash, image->extents[i].size);
    }
}

/* The memfd is sealed: what is read is what it will always be. */
static ph_status add_content(struct ph__sha256 *hash, const ph_image *image, ph_error *error) {
    uint8_t bytes[4 * PH__PAGE_SIZE];
    off_t offset = 0;

    for (;;) {
        ssize_t got = ph__system.pread(image->content, bytes, sizeof bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ph__error_set_system(error, PH_E_SYSTEM, errno, "reading the image's memory failed");
        if (got == 0)
            return PH_OK;
        ph__sha256_add(hash, bytes, (size_t)got);
        offset += got;
    }
}

/* What is loaded, and where. */
static ph_status read_all(const ph_image *image, struct ph__image_identity *identity, ph_error *error) {
    struct ph__sha256 hash;

    *identity = (struct ph__image_identity){.size = PH__SHA256_SIZE};
    ph__sha256_begin(&hash);
    add_places(&hash, image);
    ph_status status = add_content(&hash, image, error);
    ph__sha256_end(&hash, identity->bytes);
    return status;
}

ph_status ph__image_identify(ph_image *image, struct ph__image_identity *identity, ph_error *error) {
    int nobody = 0;

    if (image->build_id_size) {
        *identity = (struct ph__image_identity){.is_build_id = true, .size = image->build_id_size};
        memcpy(identity->bytes, image->build_id, image->build_id_size);
        return PH_OK;
    }
    /* Pairs with the release below: whoever sees 2 sees the identity. */
    if (atomic_load_explicit(&image->identified, memory_order_acquire) == 2) {
        *identity = image->identity;
        return PH_OK;
    }
    ph_status status = read_all(image, identity, error);
    if (status == PH_OK && atomic_compare_exchange_strong(&image->identified, &nobody, 1)) {
        image->identity = *identity;
        atomic_store_explicit(&image->identified, 2, memory_order_release);
    }
    return status;
}
