/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where files lie in guest memory: behind everything else, out of the host's reach, in page tables that
 * suffice for as many bytes as there can be, with rights that no guest can have changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi/files.h"
#include "abi/trace.h"
#include "vm/paging.h"

#define IMAGE_GVA 0x400000ull
#define IMAGE_SIZE 0x10000ull

static struct ph__layout layout_of(uint64_t memory, uint64_t files) {
    const struct ph__layout_request request = {
        .memory = memory, .image_gva = IMAGE_GVA, .image_size = IMAGE_SIZE, .files = files};
    struct ph__layout layout;

    assert_int_equal(ph__layout_compute(&request, &layout, NULL), PH_OK);
    return layout;
}

static struct ph__memory memory_of(const struct ph__layout *layout) {
    struct ph__memory memory;

    assert_int_equal(ph__memory_map(&memory, layout, -1, NULL, 0, NULL), PH_OK);
    assert_int_equal(ph__paging_build(&memory, NULL), PH_OK);
    return memory;
}

static void the_window_is_last_and_below_the_trace_ring(void **state) {
    static const uint64_t sizes[] = {PH__LARGE_PAGE_SIZE, 5 * PH__LARGE_PAGE_SIZE, PH__FILES_SIZE_MAX};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct ph__layout with = layout_of(64ull << 20, sizes[i]);
        assert_true(with.files.offset == with.stack.offset + with.stack.size);
        assert_true(with.files.offset + with.files.size == with.size);
        assert_true(with.files.gva + with.files.size <= PH__TRACE_GVA);
        assert_true(with.bookkeeping.gva + with.bookkeeping.size <= with.files.gva);
    }
    /* A few files move nothing. */
    const struct ph__layout with = layout_of(64ull << 20, 1ull << 30);
    const struct ph__layout without = layout_of(64ull << 20, 0);
    assert_int_equal(without.files.size, 0);
    assert_int_equal(with.stack.offset, without.stack.offset);
    assert_int_equal(with.messages.gva, without.messages.gva);
}

/* The entry of the page directory for (gva), whatever it says. */
static uint64_t directory_entry(const struct ph__memory *memory, uint64_t gva) {
    uint64_t table = ph__paging_root(memory).value;

    for (int shift = 39;; shift -= 9) {
        const uint64_t *entries = ph__memory_at(memory, (ph_gpa){table}, PH__PAGE_SIZE);
        assert_non_null(entries);
        uint64_t entry = entries[gva >> shift & 511];
        if (shift == 21 || !(entry & PH__PTE_PRESENT))
            return entry;
        table = entry & PH__PTE_ADDRESS;
    }
}

static void every_page_can_be_read_and_nothing_else(void **state) {
    /* The last crosses the hole in physical memory. */
    static const uint64_t sizes[] = {PH__LARGE_PAGE_SIZE, 1ull << 30, PH__FILES_SIZE_MAX};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct ph__layout layout = layout_of(16ull << 20, sizes[i]);
        struct ph__memory memory = memory_of(&layout);
        for (uint64_t at = 0; at < sizes[i]; at += PH__LARGE_PAGE_SIZE) {
            uint64_t entry = directory_entry(&memory, PH__FILES_GVA + at);
            uint64_t wanted = PH__PTE_PRESENT | PH__PTE_USER | PH__PTE_LARGE | PH__PTE_NO_EXECUTE;
            assert_true((entry & (wanted | PH__PTE_WRITABLE)) == wanted);
            assert_true((entry & PH__PTE_ADDRESS) == ph__gpa_of_offset(layout.files.offset + at));
        }
        assert_int_equal(directory_entry(&memory, PH__FILES_GVA + sizes[i]) & PH__PTE_PRESENT, 0);
        ph__memory_unmap(&memory, false);
    }
}

static void neither_host_nor_guest_can_get_at_it(void **state) {
    const struct ph__layout layout = layout_of(16ull << 20, 2 * PH__LARGE_PAGE_SIZE);
    struct ph__memory memory = memory_of(&layout);
    struct ph__translation at;
    uint32_t count = 0;
    uint8_t byte;
    (void)state;

    for (uint64_t i = 0; i < layout.files.size; i += PH__PAGE_SIZE) {
        const ph_gva gva = {layout.files.gva + i};
        struct ph__protect change = {.gva = gva.value,
                                     .end = gva.value + PH__PAGE_SIZE,
                                     .access = {.user = true, .writable = true},
                                     .present = true};
        assert_null(ph__memory_at(&memory, (ph_gpa){layout.files.offset + i}, 1));
        assert_false(ph__paging_walk(&memory, ph__paging_root(&memory), gva, &at));
        assert_false(ph__guest_read(&memory, gva, &byte, 1));
        assert_false(ph__paging_plan(&memory, &change, &count));
        assert_int_equal(count, 0);
    }
    assert_non_null(ph__memory_at(&memory, (ph_gpa){layout.files.offset - 1}, 1));
    assert_null(ph__memory_at(&memory, (ph_gpa){layout.files.offset - 1}, 2));
    ph__memory_unmap(&memory, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_is_last_and_below_the_trace_ring),
        cmocka_unit_test(every_page_can_be_read_and_nothing_else),
        cmocka_unit_test(neither_host_nor_guest_can_get_at_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
