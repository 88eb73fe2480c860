/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * An opened image: what the ELF file says, copied and checked, and its loaded content in a sealed memfd that
 * every sandbox maps copy-on-write. Immutable once opened, so it needs no lock; only the reference count
 * changes, and what identifies it is found out when somebody asks.
 */
#ifndef PH_SANDBOX_IMAGE_H
#define PH_SANDBOX_IMAGE_H

#include <stdatomic.h>

#include <pinhole/pinhole.h>

#include "trace/sites.h"
#include "vm/elf.h"

/* A run of pages with one protection: all of a segment, in whole pages. */
struct ph__image_range {
    uint64_t gva;
    uint64_t size;
    bool writable, executable;
};

/* A run of whole pages whose first content is in the memfd. What no extent covers is zero at start: a memfd
 * holds file content only, since reading a hole of it would allocate memory for good. */
struct ph__image_extent {
    uint64_t gva;
    uint64_t size;
    uint64_t file_offset;
    bool writable;
};

#define PH__UNDERSCORES_MAX 8u

struct ph__symbol {
    uint64_t address; /* load bias added */
    uint64_t size;
    uint32_t name;        /* position in (symbol_names) */
    uint32_t underscores; /* before the name, at most PH__UNDERSCORES_MAX */
};

/* What tells an image from others: its build-id, or where the linker gave it none, the SHA-256 of what is
 * loaded and where. The bytes behind (size) are zero. */
struct ph__image_identity {
    bool is_build_id;
    uint32_t size;
    uint8_t bytes[PH__BUILD_ID_MAX];
};

struct ph_image {
    atomic_size_t references;
    char *name; /* the path, or what the caller called it */
    uint32_t flags;

    uint32_t build_id_size; /* 0: none */
    uint8_t build_id[PH__BUILD_ID_MAX];
    /* Without a build-id, what ph__image_identify found: whoever gets (identified) from 0 to 1 writes it, and
     * then makes it 2. */
    _Atomic int identified;
    struct ph__image_identity identity;

    uint64_t gva; /* the span, in whole pages */
    uint64_t size;
    uint64_t entry;
    uint64_t headers_gva;
    uint32_t header_count;

    uint32_t range_count;
    struct ph__image_range ranges[PH__ELF_SEGMENTS_MAX];
    uint32_t extent_count;
    struct ph__image_extent extents[PH__ELF_SEGMENTS_MAX];
    int content; /* memfd, sealed, CLOEXEC */

    bool asks_traceparent; /* the guest can read the control page's traceparent */

    bool has_tables; /* linked with the guest library */
    size_t export_count;
    ph_function *exports; /* in the order of the table: a frame's index is the position here */
    size_t import_count;
    ph_function *imports; /* each name once */
    size_t import_entry_count;
    uint32_t *import_of_entry; /* a frame's index -> position in (imports) */
    char *names;               /* what the names point into */

    size_t site_count;
    struct ph__site *sites; /* a site's number is its position here */
    char *site_texts;       /* what their texts point into */
    uint64_t words_gva;     /* the sites' words, 0 when there are none */
    uint32_t word_count;

    size_t symbol_count;
    struct ph__symbol *symbols; /* functions, sorted by address */
    char *symbol_names;
};

/* Another reference. */
void ph__image_retain(ph_image *image);

/* image_identity.c: fills (identity). Reads all of an image without a build-id the first time. PH_E_SYSTEM.
 */
ph_status ph__image_identify(ph_image *image, struct ph__image_identity *identity, ph_error *error);

/* image_content.c: content in a memfd that sandboxes map, of images and snapshots alike. A new one, to be
 * sealed once it is filled; -1 with errno. Writes all of (bytes) at (offset); -1 with errno. Whether all are
 * 0. */
int ph__content_create(const char *name);
int ph__content_write(int file, const uint8_t *bytes, uint64_t size, uint64_t offset);
bool ph__content_is_zero(const uint8_t *bytes, uint64_t size);

/* The function around (gva): its name, and in (*offset) the distance from its start. NULL when the symbol
 * table has none that covers it. The name belongs to (image). */
const char *ph__image_symbol(const ph_image *image, uint64_t gva, uint64_t *offset);

#endif
