/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A small snapshot's head and tables, sound as they are made, for tests to damage: an image of four pages,
 * with a hole, an arena in one large page and one that is split, and a page of each region that a file holds.
 */
#ifndef PH_TESTS_SNAPSHOT_BYTES_H
#define PH_TESTS_SNAPSHOT_BYTES_H

#include <stdlib.h>
#include <string.h>

#include "abi/control.h"
#include "sandbox/snapshot_format.h"
#include "vm/boot.h"
#include "vm/paging.h"

#define SNAPSHOT_BYTES_MAX 65536u
#define SNAPSHOT_IMAGE_GVA 0x400000ull
#define SNAPSHOT_IMAGE_SIZE (4 * PH__PAGE_SIZE)
#define SNAPSHOT_PAGES 6u

struct snapshot_bytes {
    struct ph__snapshot_head head;
    struct ph__layout layout;
    uint64_t pages[SNAPSHOT_PAGES];
    struct ph__protections protections;
    ph_image image; /* as far as the format looks at one */
    _Alignas(8) uint8_t bytes[SNAPSHOT_BYTES_MAX];
    size_t size; /* of head and tables; pages of zeroes follow */
    uint64_t words[SNAPSHOT_BYTES_MAX / 8];
};

/* Encodes the parts again, as a library does that means them. */
static inline void snapshot_bytes_encode(struct snapshot_bytes *sample) {
    struct ph__snapshot_head *head = &sample->head;
    uint8_t *tables = sample->bytes + PH__SNAPSHOT_HEAD_SIZE;

    memset(sample->bytes, 0, sizeof sample->bytes);
    ph__snapshot_words_encode(sample->pages, head->page_count, tables);
    ph__snapshot_words_encode(sample->protections.entries, head->protection_count,
                              tables + head->page_count * 8);
    sample->size = PH__SNAPSHOT_HEAD_SIZE + ph__snapshot_tables_size(head);
    ph__snapshot_head_encode(head, sample->bytes);
    ph__snapshot_digest(sample->bytes, tables, ph__snapshot_tables_size(head), head->digest);
    ph__snapshot_head_encode(head, sample->bytes);
}

/* Stores a plan's pokes, where a guest's ring 0 would. */
static inline void snapshot_bytes_protect(struct ph__memory *memory, uint64_t gva, uint64_t size,
                                          struct ph__access access, bool present) {
    struct ph__protect change = {.gva = gva, .end = gva + size, .access = access, .present = present};
    uint32_t count;

    do {
        if (!ph__paging_plan(memory, &change, &count))
            abort();
        for (uint32_t i = 0; i < count; i++) {
            const struct ph__poke *poke = &ph__memory_pokes(memory)[i];
            memcpy(memory->base + (poke->entry_gva - PH__WINDOW_GVA), &poke->value, sizeof poke->value);
        }
    } while (count);
}

static inline void snapshot_bytes_map(struct ph__memory *memory, const struct ph__layout *layout) {
    const struct ph__access code = {.user = true, .executable = true};
    const struct ph__access data = {.user = true, .writable = true};
    const uint64_t image = layout->image.offset;

    if (ph__memory_map(memory, layout, -1, NULL, 0, NULL) != PH_OK ||
        ph__paging_build(memory, NULL) != PH_OK ||
        ph__paging_map(memory, SNAPSHOT_IMAGE_GVA, image, PH__PAGE_SIZE, code, NULL) != PH_OK ||
        ph__paging_map(memory, SNAPSHOT_IMAGE_GVA + 2 * PH__PAGE_SIZE, image + 2 * PH__PAGE_SIZE,
                       2 * PH__PAGE_SIZE, data, NULL) != PH_OK)
        abort();
}

static inline void snapshot_bytes_init(struct snapshot_bytes *sample) {
    const struct ph__access none = {.user = true};
    struct ph__processor *processor = &sample->head.processor;
    struct ph__memory memory;

    *sample = (struct snapshot_bytes){0};
    sample->image = (ph_image){
        .gva = SNAPSHOT_IMAGE_GVA,
        .size = SNAPSHOT_IMAGE_SIZE,
        .range_count = 2,
        .ranges = {{.gva = SNAPSHOT_IMAGE_GVA, .size = PH__PAGE_SIZE, .executable = true},
                   {.gva = SNAPSHOT_IMAGE_GVA + 2 * PH__PAGE_SIZE,
                    .size = 2 * PH__PAGE_SIZE,
                    .writable = true}},
    };
    struct ph__layout_request request = {
        .memory = 8 << 20,
        .stack = 2 << 20,
        .max_message = 4096,
        .image_gva = SNAPSHOT_IMAGE_GVA,
        .image_size = SNAPSHOT_IMAGE_SIZE,
    };
    if (ph__layout_compute(&request, &sample->layout, NULL) != PH_OK)
        abort();
    const struct ph__layout *layout = &sample->layout;
    snapshot_bytes_map(&memory, layout);
    snapshot_bytes_protect(&memory, layout->arena.gva + 3 * PH__PAGE_SIZE, 2 * PH__PAGE_SIZE, none, true);
    snapshot_bytes_protect(&memory, layout->arena.gva + 9 * PH__PAGE_SIZE, PH__PAGE_SIZE, none, false);
    if (ph__protections_save(&memory, &sample->protections, NULL) != PH_OK)
        abort();
    ph__memory_unmap(&memory, false);

    const uint64_t offsets[SNAPSHOT_PAGES] = {
        PH__MONITOR_GPA + ph__monitor()->data,
        PH__MONITOR_STACK_GPA + PH__MONITOR_STACK_SIZE - PH__PAGE_SIZE,
        layout->bookkeeping.offset,
        layout->image.offset + 2 * PH__PAGE_SIZE,
        layout->arena.offset + 5 * PH__PAGE_SIZE,
        layout->stack.offset + layout->stack.size - PH__PAGE_SIZE,
    };
    for (size_t i = 0; i < SNAPSHOT_PAGES; i++)
        sample->pages[i] = offsets[i] / PH__PAGE_SIZE;

    sample->head.format = PH__SNAPSHOT_FORMAT;
    sample->head.head_size = PH__SNAPSHOT_HEAD_SIZE;
    sample->head.abi = PH__ABI_VERSION;
    sample->head.page_size = PH__PAGE_SIZE;
    sample->head.page_count = SNAPSHOT_PAGES;
    sample->head.protection_count = sample->protections.count;
    sample->head.file_size = ph__snapshot_file_size(&sample->head);
    sample->head.features.xcr0 = 0xe7;
    for (uint32_t i = 0; i < PH__FEATURE_WORDS; i++)
        sample->head.features.words[i] = 0x9abcdef0 + i;
    for (uint32_t i = 0; i < PH__FEATURE_COMPONENTS; i++)
        sample->head.features.components[i] = 576 + i;
    sample->head.image = (struct ph__image_identity){.is_build_id = true, .size = 20, .bytes = {1, 2, 3}};
    memcpy(sample->head.image_name, "guest", 5);
    sample->head.request = ph__snapshot_request(&sample->image, layout);
    sample->head.trace_position = 4096;
    sample->head.seed_generation = 7;
    sample->head.saved_ns = 1600000000000000000;
    memset(sample->head.monitor, 0x6d, sizeof sample->head.monitor);
    processor->regs.rip = SNAPSHOT_IMAGE_GVA;
    processor->regs.rflags = 2;
    processor->xsave_size = 576;
    processor->xsave[512] = 3;
    snapshot_bytes_encode(sample);
}

static inline void snapshot_bytes_free(struct snapshot_bytes *sample) {
    free(sample->protections.entries);
    sample->protections.entries = NULL;
}

/* Decodes and checks head and tables at (bytes), as of a file that has all of its pages. */
static inline ph_status snapshot_bytes_check(const struct snapshot_bytes *sample, const uint8_t *bytes,
                                             const struct ph__snapshot_wanted *wanted, uint64_t *words,
                                             ph_error *error) {
    struct ph__snapshot_head head;
    struct ph__layout layout;

    ph_status status = ph__snapshot_head_decode(bytes, PH__SNAPSHOT_HEAD_SIZE,
                                                ph__snapshot_file_size(&sample->head), &head, error);
    if (status == PH_OK)
        status = ph__snapshot_format_check(bytes, &head, bytes + PH__SNAPSHOT_HEAD_SIZE, wanted, &layout,
                                           words, error);
    return status;
}

#endif
