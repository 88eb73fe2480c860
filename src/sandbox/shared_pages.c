/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Clears the pages that guest and host share (shared_pages.h). A guest can have written any of them, and
 * nothing that it says about that counts: the kernel is asked which pages there are. It counts them per file,
 * and none ever goes away but by our own hand, so when the count is what it was, the pages are the same ones.
 */
#include "sandbox/shared_pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "abi/trace.h"
#include "base/error.h"
#include "base/system.h"

/* Bytes at the start of a box, or of the ring, that stay. */
#define KEPT (4 * PH__PAGE_SIZE)

static ph_status failed(ph_error *error, const char *what) {
    return ph__error_set_system(error, PH_E_SYSTEM, errno, "%s", what);
}

/* A part of the file that is mapped in one piece. */
struct part {
    uint8_t *bytes;
    uint64_t start; /* in the file */
    uint64_t size;
};

/* The page in front of the ring always stays: what it begins with has just been written (ph__stream_restart).
 */
static void find_parts(const struct ph__memory *memory, struct part parts[2]) {
    const struct ph__layout *layout = &memory->layout;
    const uint64_t start = ph__memory_shared_start(layout);
    const uint64_t page = layout->trace.size ? PH__PAGE_SIZE : 0;

    parts[0] = (struct part){memory->base + layout->messages.offset, start, layout->messages.size};
    parts[1] = (struct part){memory->base + layout->trace.offset + page, start + layout->messages.size + page,
                             layout->trace.size - page};
}

/* How much of what lies (distance) behind the start of part (index) stays. */
static uint64_t kept_at(const struct ph__memory *memory, int index, uint64_t distance) {
    const struct ph__layout *layout = &memory->layout;
    uint64_t within = distance;

    if (index == 0) {
        if (distance >= 3 * layout->box_size)
            return 0;
        within = distance % layout->box_size;
    }
    return within < KEPT ? KEPT - within : 0;
}

static bool keep(struct ph__shared_pages *pages, uint8_t *bytes, uint64_t size) {
    if (pages->count == PH__SHARED_RUNS_MAX)
        return false;
    pages->runs[pages->count].bytes = bytes;
    pages->runs[pages->count++].size = size;
    return true;
}

/* Keeps or gives back the pages [distance, end) of a part, which are there. */
static bool sort(struct ph__shared_pages *pages, const struct ph__memory *memory, int index,
                 const struct part *part, uint64_t distance, uint64_t end) {
    while (distance < end) {
        uint64_t size = kept_at(memory, index, distance);
        bool kept =
            size != 0 && keep(pages, part->bytes + distance, size < end - distance ? size : end - distance);
        if (!size) {
            /* Up to the next box, if there is one. */
            uint64_t box = memory->layout.box_size;
            size = index == 0 && distance < 3 * box ? box - distance % box : end - distance;
        }
        if (size > end - distance)
            size = end - distance;
        if (!kept && ph__system.madvise(part->bytes + distance, size, MADV_REMOVE) != 0)
            return false;
        distance += size;
    }
    return true;
}

/* Finds out which pages there are, and gives back those that do not stay. */
static ph_status look(struct ph__shared_pages *pages, const struct ph__memory *memory, ph_error *error) {
    struct part parts[2];

    find_parts(memory, parts);
    pages->count = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t end = parts[i].start + parts[i].size;
        for (uint64_t at = parts[i].start; at < end;) {
            off_t data = ph__system.lseek(memory->shared, (off_t)at, SEEK_DATA);
            if (data < 0 && errno == ENXIO)
                break;
            off_t hole = data < 0 ? data : ph__system.lseek(memory->shared, data, SEEK_HOLE);
            if (hole < 0)
                return failed(error, "looking for shared pages failed");
            if ((uint64_t)data >= end)
                break;
            at = (uint64_t)hole < end ? (uint64_t)hole : end;
            if (!sort(pages, memory, i, &parts[i], (uint64_t)data - parts[i].start, at - parts[i].start))
                return failed(error, "giving shared pages back failed");
        }
    }
    return PH_OK;
}

ph_status ph__shared_pages_clear(struct ph__shared_pages *pages, const struct ph__memory *memory,
                                 ph_error *error) {
    struct stat information;

    if (ph__system.fstat(memory->shared, &information) != 0)
        return failed(error, "looking at shared pages failed");
    if (pages->blocks == 0 || (uint64_t)information.st_blocks != pages->blocks) {
        pages->blocks = 0;
        ph_status status = look(pages, memory, error);
        if (status != PH_OK)
            return status;
        if (ph__system.fstat(memory->shared, &information) != 0)
            return failed(error, "looking at shared pages failed");
        pages->blocks = (uint64_t)information.st_blocks;
    }
    if (memory->layout.trace.size)
        memset(memory->base + memory->layout.trace.offset + sizeof(struct ph__ring), 0,
               PH__PAGE_SIZE - sizeof(struct ph__ring));
    for (size_t i = 0; i < pages->count; i++)
        memset(pages->runs[i].bytes, 0, pages->runs[i].size);
    return PH_OK;
}
