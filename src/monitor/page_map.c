/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Two bits for each page of the arena: in use, and dirty. They lie in the bookkeeping pages that the host
 * gives, one of which describes a chunk of 64 MiB. A chunk whose pages are all alike is described by one byte
 * here instead, so that mapping many GiB touches no bookkeeping page: a first touch costs about as much as an
 * exit.
 */
#include "monitor/page_map.h"

#define GROUP_PAGES ((size_t)64)
#define CHUNK_GROUPS ((size_t)256)
#define CHUNK_PAGES (GROUP_PAGES * CHUNK_GROUPS)
#define CHUNKS_MAX ((size_t)2048) /* beyond these 128 GiB, all are mixed */

/* 64 pages. A page that is in use is never dirty. */
struct page_group {
    uint64_t used;
    uint64_t dirty;
};
_Static_assert(CHUNK_GROUPS * sizeof(struct page_group) == PH__PAGE_SIZE, "a chunk is a bookkeeping page");

enum chunk_state {
    UNTOUCHED = 0, /* free and clean, and its bookkeeping page is zero */
    CLEAN,         /* these three: whatever its bookkeeping page says */
    DIRTY,
    USED,
    MIXED, /* as its bookkeeping page says */
};

static uint8_t chunks[CHUNKS_MAX];

static struct page_group *group_of(size_t page) {
    return (struct page_group *)ph__control()->bookkeeping_gva + page / GROUP_PAGES;
}

static enum chunk_state chunk_get(size_t page) {
    size_t chunk = page / CHUNK_PAGES;
    return chunk < CHUNKS_MAX ? (enum chunk_state)chunks[chunk] : MIXED;
}

static size_t chunk_start(size_t page) {
    return page - page % CHUNK_PAGES;
}

/* The end of the chunk, or of the arena. */
static size_t chunk_end(size_t page) {
    size_t end = chunk_start(page) + CHUNK_PAGES;
    return end < ph__page_count() ? end : ph__page_count();
}

/* Has the bookkeeping page say what the byte said. */
static void chunk_mix(size_t page) {
    enum chunk_state state = chunk_get(page);
    if (state == MIXED)
        return;
    struct page_group *group = group_of(chunk_start(page));
    for (size_t i = 0; state != UNTOUCHED && i < CHUNK_GROUPS; i++)
        group[i] =
            (struct page_group){.used = state == USED ? ~0ull : 0, .dirty = state == DIRTY ? ~0ull : 0};
    chunks[page / CHUNK_PAGES] = MIXED;
}

/* The pages of [start, end) that lie in the group of (start), as bits. */
static uint64_t bits_in_group(size_t start, size_t end) {
    size_t first = start % GROUP_PAGES;
    size_t count = end - start;
    if (count > GROUP_PAGES - first)
        count = GROUP_PAGES - first;
    return (count == GROUP_PAGES ? ~0ull : (1ull << count) - 1) << first;
}

static size_t next_group(size_t page) {
    return (page / GROUP_PAGES + 1) * GROUP_PAGES;
}

/* ---------------------------------------------------------------- searching -- */

size_t ph__page_map_run_start(size_t low, size_t end, bool used) {
    while (end > low) {
        enum chunk_state state = chunk_get(end - 1);
        if (state != MIXED) {
            if ((state == USED) != used)
                return end;
            end = chunk_start(end - 1);
            continue;
        }
        size_t below = (end - 1) % GROUP_PAGES + 1;
        uint64_t word = group_of(end - 1)->used;
        uint64_t others = (used ? ~word : word) << (GROUP_PAGES - below);
        if (others != 0) {
            end -= (size_t)__builtin_clzll(others);
            break;
        }
        end -= below;
    }
    return end > low ? end : low;
}

size_t ph__page_map_find_dirty(size_t start, size_t end, bool dirty) {
    while (start < end) {
        enum chunk_state state = chunk_get(start);
        if (state != MIXED) {
            if ((state == DIRTY) == dirty)
                return start;
            start = chunk_end(start);
            continue;
        }
        uint64_t word = group_of(start)->dirty;
        uint64_t found = (dirty ? word : ~word) & bits_in_group(start, end);
        if (found != 0)
            return start - start % GROUP_PAGES + (size_t)__builtin_ctzll(found);
        start = next_group(start);
    }
    return end;
}

size_t ph__page_map_used(void) {
    size_t used = 0;
    for (size_t page = 0; page < ph__page_count();) {
        enum chunk_state state = chunk_get(page);
        if (state != MIXED) {
            used += state == USED ? chunk_end(page) - page : 0;
            page = chunk_end(page);
            continue;
        }
        /* Not __builtin_popcountll, which is a library call for a plain x86-64. */
        for (uint64_t word = group_of(page)->used; word != 0; word &= word - 1)
            used++;
        page = next_group(page);
    }
    return used;
}

/* ----------------------------------------------------------------- changing -- */

/* Makes all pages of a range alike. */
static void map_set(size_t start, size_t end, enum chunk_state state) {
    while (start < end) {
        size_t stop = chunk_end(start);
        if (start == chunk_start(start) && stop <= end && start / CHUNK_PAGES < CHUNKS_MAX) {
            chunks[start / CHUNK_PAGES] = (uint8_t)state;
            start = stop;
            continue;
        }
        chunk_mix(start);
        for (stop = stop < end ? stop : end; start < stop; start = next_group(start)) {
            uint64_t bits = bits_in_group(start, stop);
            struct page_group *group = group_of(start);
            group->used = state == USED ? group->used | bits : group->used & ~bits;
            group->dirty = state == DIRTY ? group->dirty | bits : group->dirty & ~bits;
        }
        start = stop;
    }
}

void ph__page_map_take(size_t start, size_t end) {
    map_set(start, end, USED);
}

void ph__page_map_release(size_t start, size_t end) {
    map_set(start, end, CLEAN);
}

void ph__page_map_give(size_t start, size_t end) {
    while (start < end) {
        size_t stop = chunk_end(start) < end ? chunk_end(start) : end;
        enum chunk_state state = chunk_get(start);
        if (state == USED) {
            map_set(start, stop, DIRTY);
        } else if (state == MIXED) {
            for (size_t page = start; page < stop; page = next_group(page)) {
                struct page_group *group = group_of(page);
                uint64_t given = group->used & bits_in_group(page, stop);
                group->used &= ~given;
                group->dirty |= given;
            }
        }
        start = stop;
    }
}
