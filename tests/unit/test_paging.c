/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guest memory without a VM: the layout, the tables that are built for it, walks of hostile tables, and plans
 * for a change of protection. Pokes are stored by the test where the guest's ring 0 would.
 */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/trace.h"
#include "vm/paging.h"

#define IMAGE_GVA 0x400000ull
#define IMAGE_SIZE (16 * PH__PAGE_SIZE)

static struct ph__layout layout_of(uint64_t memory) {
    const struct ph__layout_request request = {
        .memory = memory, .image_gva = IMAGE_GVA, .image_size = IMAGE_SIZE};
    struct ph__layout layout;

    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_OK);
    return layout;
}

static struct ph__memory memory_of(uint64_t size) {
    const struct ph__layout layout = layout_of(size);
    const struct ph__access image = {.user = true, .executable = true};
    struct ph__memory memory;

    assert_int_equal(ph__memory_map(&memory, &layout, -1, NULL, 0, NULL), PH_OK);
    assert_int_equal(ph__paging_build(&memory, NULL), PH_OK);
    assert_int_equal(ph__paging_map(&memory, IMAGE_GVA, layout.image.offset, IMAGE_SIZE / 2, image, NULL),
                     PH_OK);
    return memory;
}

static void regions_do_not_overlap_and_cover_their_requests(void **state) {
    static const uint64_t sizes[] = {16ull << 20, 64ull << 20, 4ull << 30, 16ull << 30, 1ull << 40};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct ph__layout l = layout_of(sizes[i]);
        const struct ph__region *regions[] = {&l.system, &l.page_tables, &l.messages, &l.bookkeeping,
                                              &l.image,  &l.arena,       &l.stack};
        for (size_t j = 1; j < 7; j++)
            assert_true(regions[j]->offset >= regions[j - 1]->offset + regions[j - 1]->size);
        assert_true(l.stack.offset + l.stack.size == l.size);
        assert_true(l.arena.gva >= IMAGE_GVA + IMAGE_SIZE);
        assert_true(l.stack.gva >= l.arena.gva + l.arena.size + PH__LARGE_PAGE_SIZE); /* the guard */
        assert_true(l.bookkeeping.size >= l.arena.size / PH__PAGE_SIZE / 4);
        assert_true(3 * l.box_size <= l.messages.size);
    }
}

static void memory_that_cannot_be_laid_out_is_refused(void **state) {
    struct ph__layout_request request = {.memory = 2 << 20, .image_gva = IMAGE_GVA, .image_size = IMAGE_SIZE};
    struct ph__layout layout;
    (void)state;

    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_E_ARGUMENT);
    request.memory = UINT64_MAX;
    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_E_ARGUMENT);
    request = (struct ph__layout_request){.image_gva = PH__WINDOW_GVA - (1 << 20), .image_size = 1 << 20};
    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_E_ARGUMENT);
    request =
        (struct ph__layout_request){.max_message = UINT64_MAX, .image_gva = IMAGE_GVA, .image_size = 4096};
    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_E_ARGUMENT);
}

static void physical_addresses_leave_the_hole_out(void **state) {
    struct ph__memory memory = {.layout = layout_of(8ull << 30), .base = (uint8_t *)(1ull << 40)};
    (void)state;

    assert_true(ph__gpa_of_offset(PH__HOLE_GPA - 1) == PH__HOLE_GPA - 1);
    assert_true(ph__gpa_of_offset(PH__HOLE_GPA) == PH__HIGH_GPA);
    assert_ptr_equal(ph__memory_at(&memory, (ph_gpa){PH__HIGH_GPA}, 1), memory.base + PH__HOLE_GPA);
    assert_null(ph__memory_at(&memory, (ph_gpa){PH__HOLE_GPA}, 1));
    assert_null(ph__memory_at(&memory, (ph_gpa){PH__HOLE_GPA - 1}, 2));
    assert_null(ph__memory_at(&memory, (ph_gpa){PH__HIGH_GPA - 1}, 1));
    assert_null(ph__memory_at(&memory, (ph_gpa){UINT64_MAX}, 1));
    assert_null(ph__memory_at(&memory, (ph_gpa){0}, UINT64_MAX));
    assert_null(ph__memory_at(&memory, (ph_gpa){ph__gpa_of_offset(memory.layout.size)}, 1));
    assert_non_null(ph__memory_at(&memory, (ph_gpa){ph__gpa_of_offset(memory.layout.size) - 1}, 1));
}

/* Walks to (gva) and gives what is allowed there; fails when it is not mapped to (offset). */
static struct ph__access walk(const struct ph__memory *memory, uint64_t gva, uint64_t offset) {
    struct ph__translation at;

    assert_true(ph__paging_walk(memory, ph__paging_root(memory), (ph_gva){gva}, &at));
    assert_true(at.gpa.value == ph__gpa_of_offset(offset));
    return at.access;
}

static bool is_mapped(const struct ph__memory *memory, uint64_t gva) {
    struct ph__translation at;
    return ph__paging_walk(memory, ph__paging_root(memory), (ph_gva){gva}, &at);
}

static void walks_find_each_region_with_its_rights(void **state) {
    struct ph__memory memory = memory_of(64ull << 20);
    const struct ph__layout *l = &memory.layout;
    (void)state;

    struct ph__access access = walk(&memory, PH__GVA(PH__CONTROL_GPA), PH__CONTROL_GPA);
    assert_true(access.user && !access.writable && !access.executable);
    access = walk(&memory, PH__GVA(PH__TABLES_GPA), PH__TABLES_GPA);
    assert_true(!access.user && !access.writable && !access.executable);
    access = walk(&memory, l->page_tables.gva + 5, l->page_tables.offset + 5);
    assert_true(!access.user && access.writable && !access.executable);
    access = walk(&memory, l->arena.gva + 12345, l->arena.offset + 12345);
    assert_true(access.user && access.writable && !access.executable);
    access = walk(&memory, l->stack.gva + l->stack.size - 1, l->size - 1);
    assert_true(access.user && access.writable && !access.executable);
    access = walk(&memory, IMAGE_GVA, l->image.offset);
    assert_true(access.user && !access.writable && access.executable);

    assert_false(is_mapped(&memory, 0));
    assert_false(is_mapped(&memory, IMAGE_GVA + IMAGE_SIZE / 2)); /* a hole of the image */
    assert_false(is_mapped(&memory, l->stack.gva - 1));           /* the guard */
    assert_false(is_mapped(&memory, PH__WINDOW_GVA));
    assert_false(is_mapped(&memory, 1ull << 47));
    assert_false(is_mapped(&memory, UINT64_MAX));
    ph__memory_unmap(&memory, false);
}

static void walks_of_hostile_tables_stay_inside(void **state) {
    static const uint64_t entries[] = {
        0x000ffffffffff007ull, /* beyond memory */
        PH__HOLE_GPA | 7,      /* in the hole */
        UINT64_MAX,            /* every bit */
        0x87,                  /* a large page where there is none */
        7,                     /* page 0 as a table */
    };
    struct ph__memory memory = memory_of(64ull << 20);
    uint64_t *root = (uint64_t *)(memory.base + memory.layout.page_tables.offset);
    (void)state;

    for (uint64_t i = 0; i < 512; i += 37) {
        const uint64_t saved = root[i];
        for (size_t j = 0; j < sizeof entries / sizeof entries[0]; j++) {
            struct ph__translation at;
            root[i] = entries[j];
            for (uint64_t gva = i << 39; gva < (i + 1) << 39; gva += 0x1234567000) {
                /* Whatever is found, it is guest memory. */
                if (ph__paging_walk(&memory, ph__paging_root(&memory), (ph_gva){gva}, &at))
                    assert_non_null(ph__memory_at(&memory, at.gpa, at.contiguous));
            }
        }
        /* A table that is its own next level: the walk ends after four. */
        root[i] = ph__paging_root(&memory).value | 7;
        is_mapped(&memory, i << 39 | i << 30 | i << 21 | i << 12);
        root[i] = saved;
    }
    ph__memory_unmap(&memory, false);
}

static void guest_reads_cross_pages_and_stop_at_what_is_not_mapped(void **state) {
    struct ph__memory memory = memory_of(64ull << 20);
    const struct ph__region *arena = &memory.layout.arena;
    char bytes[64];
    (void)state;

    memset(memory.base + arena->offset + PH__LARGE_PAGE_SIZE - 32, 'a', 64);
    assert_true(ph__guest_read(&memory, (ph_gva){arena->gva + PH__LARGE_PAGE_SIZE - 32}, bytes, 64));
    for (int i = 0; i < 64; i++)
        assert_int_equal(bytes[i], 'a');
    assert_false(ph__guest_read(&memory, (ph_gva){arena->gva + arena->size - 32}, bytes, 64));
    assert_false(ph__guest_read(&memory, (ph_gva){PH__GVA(PH__TABLES_GPA)}, bytes, 1)); /* supervisor */
    assert_false(ph__guest_read(&memory, (ph_gva){UINT64_MAX - 8}, bytes, 64));
    ph__memory_unmap(&memory, false);
}

/* Carries a change out as the guest's ring 0 would. Gives the number of pokes, or -1 when it is refused. */
static int change(struct ph__memory *memory, uint64_t gva, uint64_t size, struct ph__access access,
                  bool present) {
    struct ph__protect wanted = {.gva = gva, .end = gva + size, .access = access, .present = present};
    uint32_t count;
    int pokes = 0;

    do {
        const uint64_t before = wanted.gva;
        if (!ph__paging_plan(memory, &wanted, &count))
            return -1;
        assert_true(wanted.gva <= wanted.end); /* past it, the caller would go on for ever */
        assert_true(wanted.gva > before || wanted.gva == wanted.end);
        assert_true(count <= PH__POKES_MAX);
        for (uint32_t i = 0; i < count; i++) {
            const struct ph__poke *poke = &ph__memory_pokes(memory)[i];
            memcpy(memory->base + (poke->entry_gva - PH__WINDOW_GVA), &poke->value, sizeof poke->value);
        }
        pokes += (int)count;
    } while (count > 0);
    return pokes;
}

static void protection_changes_exactly_the_pages_that_were_named(void **state) {
    static const struct {
        uint64_t start, pages; /* from the arena's start */
    } ranges[] = {{0, 1},   {511, 1},    {511, 2},    {100, 412}, {0, 512},
                  {1, 511}, {300, 1500}, {512, 1024}, {1, 4096}};
    const struct ph__access none = {.user = true};
    const struct ph__access write = {.user = true, .writable = true};
    (void)state;

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        struct ph__memory memory = memory_of(64ull << 20);
        const struct ph__region *arena = &memory.layout.arena;
        uint64_t start = arena->gva + ranges[i].start * PH__PAGE_SIZE;
        uint64_t end = start + ranges[i].pages * PH__PAGE_SIZE;
        assert_true(change(&memory, start, end - start, none, true) > 0);
        assert_int_equal(change(&memory, start, end - start, none, true), 0); /* it is so already */
        for (uint64_t gva = arena->gva; gva < end + 4 * PH__PAGE_SIZE; gva += PH__PAGE_SIZE) {
            bool inside = gva >= start && gva < end;
            assert_true(walk(&memory, gva, arena->offset + (gva - arena->gva)).writable != inside);
        }
        assert_true(change(&memory, start, end - start, none, false) > 0);
        assert_false(is_mapped(&memory, start));
        assert_false(is_mapped(&memory, end - 1));
        assert_true(change(&memory, start, end - start, write, true) > 0);
        for (uint64_t gva = start; gva < end; gva += PH__PAGE_SIZE)
            assert_true(walk(&memory, gva, arena->offset + (gva - arena->gva)).writable);
        ph__memory_unmap(&memory, false);
    }
}

static void what_is_not_the_guests_cannot_be_changed(void **state) {
    const struct ph__access write = {.user = true, .writable = true};
    struct ph__memory memory = memory_of(64ull << 20);
    const struct ph__layout *l = &memory.layout;
    (void)state;

    assert_int_equal(change(&memory, PH__GVA(PH__CONTROL_GPA), PH__PAGE_SIZE, write, true), -1);
    assert_int_equal(change(&memory, l->page_tables.gva, PH__PAGE_SIZE, write, true), -1);
    assert_int_equal(change(&memory, l->messages.gva, PH__PAGE_SIZE, write, true), -1);
    assert_int_equal(change(&memory, l->stack.gva - PH__PAGE_SIZE, PH__PAGE_SIZE, write, true), -1);
    assert_int_equal(change(&memory, IMAGE_GVA + IMAGE_SIZE / 2, PH__PAGE_SIZE, write, true), -1);
    assert_int_equal(change(&memory, 0, PH__PAGE_SIZE, write, true), -1);
    assert_int_equal(
        change(&memory, l->arena.gva + l->arena.size - PH__PAGE_SIZE, 2 * PH__PAGE_SIZE, write, true), -1);
    assert_true(change(&memory, IMAGE_GVA, PH__PAGE_SIZE, write, true) > 0);
    assert_true(change(&memory, l->stack.gva, PH__PAGE_SIZE, write, true) >= 0);
    ph__memory_unmap(&memory, false);
}

/* ---- tables by hand ------------------------------------------------------------------------------------ */

#define USER (PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_USER)
#define HAND_GVA 0x123456789000ull

/* A memory whose first four pages are tables, the PML4 first, that lead HAND_GVA to (target). */
struct hand {
    struct ph__memory memory;
    uint64_t *entries[5]; /* by level, 1 to 4 */
};

static struct hand hand_of(uint64_t size, uint64_t target) {
    struct hand hand = {.memory = {.layout = {.size = size}}};

    hand.memory.base =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(hand.memory.base, MAP_FAILED);
    for (int level = 4; level >= 1; level--) {
        uint64_t table = (uint64_t)(4 - level) * PH__PAGE_SIZE;
        hand.entries[level] =
            (uint64_t *)(hand.memory.base + table) + (HAND_GVA >> (12 + 9 * (level - 1)) & 511);
        *hand.entries[level] = (level == 1 ? target : table + PH__PAGE_SIZE) | USER;
    }
    return hand;
}

static void hand_free(struct hand *hand) {
    munmap(hand->memory.base, hand->memory.layout.size);
}

/* Walks; what it finds is always inside the memory, and is what a look for a page of ring 3 finds. */
static bool hand_walk(const struct hand *hand, uint64_t gva, struct ph__translation *at) {
    bool found = ph__paging_walk(&hand->memory, (ph_gpa){0}, (ph_gva){gva}, at);
    struct ph__range page;

    assert_int_equal(ph__paging_page(&hand->memory, (ph_gpa){0}, (ph_gva){gva}, &page),
                     found && at->access.user);
    if (found)
        assert_non_null(ph__memory_at(&hand->memory, at->gpa, at->contiguous));
    if (page.size) {
        assert_true(page.gva == gva && page.size == at->contiguous);
        assert_true(ph__gpa_of_offset(page.offset) == at->gpa.value);
        assert_memory_equal(&page.access, &at->access, sizeof page.access);
    }
    return found;
}

static void an_absent_entry_at_any_level_ends_the_walk(void **state) {
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 10 * PH__PAGE_SIZE);
    struct ph__translation at;
    (void)state;

    assert_true(hand_walk(&hand, HAND_GVA + 5, &at));
    assert_int_equal(at.gpa.value, 10 * PH__PAGE_SIZE + 5);
    assert_int_equal(at.contiguous, PH__PAGE_SIZE - 5);
    for (int level = 1; level <= 4; level++) {
        uint64_t saved = *hand.entries[level];
        *hand.entries[level] &= ~PH__PTE_PRESENT;
        assert_false(hand_walk(&hand, HAND_GVA, &at));
        *hand.entries[level] = 0;
        assert_false(hand_walk(&hand, HAND_GVA, &at));
        *hand.entries[level] = saved;
    }
    assert_false(hand_walk(&hand, HAND_GVA + PH__PAGE_SIZE, &at));
    hand_free(&hand);
}

static void every_level_takes_rights_away_and_none_gives_them(void **state) {
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 10 * PH__PAGE_SIZE);
    struct ph__translation at;
    char byte;
    (void)state;

    for (int level = 1; level <= 4; level++) {
        uint64_t saved = *hand.entries[level];
        *hand.entries[level] = saved & ~PH__PTE_USER;
        assert_true(hand_walk(&hand, HAND_GVA, &at));
        assert_true(!at.access.user && at.access.writable && at.access.executable);
        assert_false(ph__guest_read(&hand.memory, (ph_gva){HAND_GVA}, &byte, 1));
        *hand.entries[level] = saved & ~PH__PTE_WRITABLE;
        assert_true(hand_walk(&hand, HAND_GVA, &at));
        assert_true(at.access.user && !at.access.writable && at.access.executable);
        assert_true(ph__guest_read(&hand.memory, (ph_gva){HAND_GVA}, &byte, 1));
        *hand.entries[level] = saved | PH__PTE_NO_EXECUTE;
        assert_true(hand_walk(&hand, HAND_GVA, &at));
        assert_true(at.access.user && at.access.writable && !at.access.executable);
        *hand.entries[level] = saved;
    }
    hand_free(&hand);
}

static void addresses_that_are_not_canonical_are_not_walked(void **state) {
    static const uint64_t bits[] = {1ull << 47, 1ull << 48, 1ull << 55, 1ull << 63, 0xffff800000000000ull};
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 10 * PH__PAGE_SIZE);
    struct ph__translation at;
    (void)state;

    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        assert_false(hand_walk(&hand, HAND_GVA | bits[i], &at));
    hand_free(&hand);
}

static void large_pages_are_walked_where_there_can_be_some(void **state) {
    const uint64_t large = 2ull << 20, huge = 1ull << 30;
    struct hand hand = hand_of(2 * huge, 10 * PH__PAGE_SIZE);
    struct ph__translation at;
    (void)state;

    *hand.entries[2] = 3 * large | USER | PH__PTE_LARGE;
    assert_true(hand_walk(&hand, HAND_GVA + 7, &at));
    assert_int_equal(at.gpa.value, 3 * large + (HAND_GVA + 7) % large);
    assert_int_equal(at.contiguous, large - (HAND_GVA + 7) % large);
    /* Bits of the address below the page's size are reserved, and take no part. */
    *hand.entries[2] |= 5 * PH__PAGE_SIZE;
    assert_true(hand_walk(&hand, HAND_GVA + 7, &at));
    assert_int_equal(at.gpa.value, 3 * large + (HAND_GVA + 7) % large);
    *hand.entries[2] = (2 * huge - large) | USER | PH__PTE_LARGE; /* the last */
    assert_true(hand_walk(&hand, HAND_GVA, &at));
    *hand.entries[2] = 2 * huge | USER | PH__PTE_LARGE;
    assert_false(hand_walk(&hand, HAND_GVA, &at));

    *hand.entries[3] = huge | USER | PH__PTE_LARGE;
    assert_true(hand_walk(&hand, HAND_GVA + 7, &at));
    assert_int_equal(at.gpa.value, huge + (HAND_GVA + 7) % huge);
    assert_int_equal(at.contiguous, huge - (HAND_GVA + 7) % huge);
    *hand.entries[3] = 2 * huge | USER | PH__PTE_LARGE;
    assert_false(hand_walk(&hand, HAND_GVA, &at));
    *hand.entries[4] |= PH__PTE_LARGE; /* there is no page of 512 GiB */
    assert_false(hand_walk(&hand, HAND_GVA, &at));
    hand_free(&hand);
}

static void entries_that_lead_outside_memory_end_the_walk(void **state) {
    static const uint64_t addresses[] = {64 * PH__PAGE_SIZE,   65 * PH__PAGE_SIZE, PH__HOLE_GPA,
                                         PH__HIGH_GPA,         1ull << 40,         1ull << 51,
                                         0x000ffffffffff000ull};
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 10 * PH__PAGE_SIZE);
    struct ph__translation at;
    (void)state;

    for (int level = 1; level <= 4; level++)
        for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
            uint64_t saved = *hand.entries[level];
            *hand.entries[level] = addresses[i] | USER;
            assert_false(hand_walk(&hand, HAND_GVA, &at));
            *hand.entries[level] = saved;
        }
    assert_false(ph__paging_walk(&hand.memory, (ph_gpa){64 * PH__PAGE_SIZE}, (ph_gva){HAND_GVA}, &at));
    assert_false(ph__paging_walk(&hand.memory, (ph_gpa){UINT64_MAX}, (ph_gva){HAND_GVA}, &at));
    hand_free(&hand);
}

static void the_last_byte_of_memory_can_be_read_and_none_behind_it(void **state) {
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 63 * PH__PAGE_SIZE);
    const ph_gva last = {HAND_GVA + PH__PAGE_SIZE - 1};
    struct ph__translation at;
    char bytes[2];
    (void)state;

    hand.memory.base[64 * PH__PAGE_SIZE - 1] = 'z';
    assert_true(hand_walk(&hand, last.value, &at));
    assert_int_equal(at.gpa.value, 64 * PH__PAGE_SIZE - 1);
    assert_int_equal(at.contiguous, 1);
    assert_true(ph__guest_read(&hand.memory, last, bytes, 1));
    assert_int_equal(bytes[0], 'z');
    assert_false(ph__guest_read(&hand.memory, last, bytes, 2));
    /* A memory that ends in the middle of the page that is named. */
    hand.memory.layout.size -= 1;
    assert_false(hand_walk(&hand, HAND_GVA, &at));
    hand.memory.layout.size += 1;
    hand_free(&hand);
}

static void a_range_over_pages_that_lie_apart_is_read_in_pieces(void **state) {
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 20 * PH__PAGE_SIZE);
    static const uint64_t pages[] = {20, 10, 63, 10};
    char *bytes = malloc(4 * PH__PAGE_SIZE);
    (void)state;

    assert_non_null(bytes);
    for (unsigned i = 0; i < 4; i++) {
        hand.entries[1][i] = pages[i] * PH__PAGE_SIZE | USER;
        memset(hand.memory.base + pages[i] * PH__PAGE_SIZE, (int)pages[i], PH__PAGE_SIZE);
    }
    assert_true(ph__guest_read(&hand.memory, (ph_gva){HAND_GVA + 100}, bytes, 4 * PH__PAGE_SIZE - 100));
    for (unsigned i = 0; i < 4 * PH__PAGE_SIZE - 100; i++)
        assert_int_equal(bytes[i], pages[(i + 100) / PH__PAGE_SIZE]);
    hand.entries[1][2] &= ~PH__PTE_USER; /* one page of them */
    assert_true(ph__guest_read(&hand.memory, (ph_gva){HAND_GVA}, bytes, 2 * PH__PAGE_SIZE));
    assert_false(ph__guest_read(&hand.memory, (ph_gva){HAND_GVA}, bytes, 2 * PH__PAGE_SIZE + 1));
    free(bytes);
    hand_free(&hand);
}

static void tables_in_a_loop_end_after_four_levels(void **state) {
    struct hand hand = hand_of(64 * PH__PAGE_SIZE, 10 * PH__PAGE_SIZE);
    uint64_t *root = (uint64_t *)hand.memory.base;
    struct ph__translation at;
    (void)state;

    /* Every entry of the root leads to the root, which is what is found in the end. */
    for (int i = 0; i < 512; i++)
        root[i] = USER;
    for (uint64_t gva = 0; gva < 1ull << 47; gva += 0x123456789000ull / 7) {
        assert_true(hand_walk(&hand, gva, &at));
        assert_int_equal(at.gpa.value, gva % PH__PAGE_SIZE);
    }
    /* Two tables that lead to each other. */
    for (int i = 0; i < 512; i++) {
        root[i] = PH__PAGE_SIZE | USER;
        root[512 + i] = USER;
    }
    assert_true(hand_walk(&hand, HAND_GVA, &at));
    assert_int_equal(at.gpa.value, 0);
    hand_free(&hand);
}

/* The trace ring is one piece of memory in two places, neither of which is its physical address. */
static void the_trace_ring_is_mapped_twice_and_nowhere_by_its_physical_address(void **state) {
    const struct ph__layout_request request = {
        .memory = 64ull << 20, .image_gva = IMAGE_GVA, .image_size = IMAGE_SIZE, .trace_ring = 64 << 10};
    struct ph__translation first, second;
    struct ph__memory memory;
    struct ph__layout layout;
    (void)state;

    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_OK);
    assert_int_equal(ph__memory_map(&memory, &layout, -1, NULL, 0, NULL), PH_OK);
    assert_int_equal(ph__paging_build(&memory, NULL), PH_OK);
    const ph_gpa root = ph__paging_root(&memory);
    assert_true(ph__paging_walk(&memory, root, (ph_gva){PH__TRACE_GVA}, &first));
    assert_true(first.gpa.value != PH__TRACE_GVA);
    for (uint64_t at = 0; at < request.trace_ring; at += PH__PAGE_SIZE) {
        const ph_gva one = {PH__TRACE_RING_GVA + at};
        const ph_gva two = {PH__TRACE_RING_GVA + request.trace_ring + at};
        assert_true(ph__paging_walk(&memory, root, one, &first));
        assert_true(ph__paging_walk(&memory, root, two, &second));
        assert_int_equal(first.gpa.value, second.gpa.value);
        assert_true(first.gpa.value != one.value && first.gpa.value != two.value);
        assert_true(first.access.user && first.access.writable && !first.access.executable);
        assert_true(second.access.user && second.access.writable && !second.access.executable);
        /* The same number as an address of the guest, if it is one, is another place. */
        if (ph__paging_walk(&memory, root, (ph_gva){first.gpa.value}, &second))
            assert_true(second.gpa.value != first.gpa.value);
    }
    assert_false(is_mapped(&memory, PH__TRACE_GVA - 1));
    assert_false(is_mapped(&memory, PH__TRACE_RING_GVA + 2 * request.trace_ring));
    ph__memory_unmap(&memory, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_do_not_overlap_and_cover_their_requests),
        cmocka_unit_test(memory_that_cannot_be_laid_out_is_refused),
        cmocka_unit_test(physical_addresses_leave_the_hole_out),
        cmocka_unit_test(walks_find_each_region_with_its_rights),
        cmocka_unit_test(walks_of_hostile_tables_stay_inside),
        cmocka_unit_test(an_absent_entry_at_any_level_ends_the_walk),
        cmocka_unit_test(every_level_takes_rights_away_and_none_gives_them),
        cmocka_unit_test(addresses_that_are_not_canonical_are_not_walked),
        cmocka_unit_test(large_pages_are_walked_where_there_can_be_some),
        cmocka_unit_test(entries_that_lead_outside_memory_end_the_walk),
        cmocka_unit_test(the_last_byte_of_memory_can_be_read_and_none_behind_it),
        cmocka_unit_test(a_range_over_pages_that_lie_apart_is_read_in_pieces),
        cmocka_unit_test(tables_in_a_loop_end_after_four_levels),
        cmocka_unit_test(the_trace_ring_is_mapped_twice_and_nowhere_by_its_physical_address),
        cmocka_unit_test(guest_reads_cross_pages_and_stop_at_what_is_not_mapped),
        cmocka_unit_test(protection_changes_exactly_the_pages_that_were_named),
        cmocka_unit_test(what_is_not_the_guests_cannot_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
