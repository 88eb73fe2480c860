/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Follows page tables and changes nothing: one address, or one run of pages after the other (paging.h). It
 * stands alone, so that a backend that is a plug-in has it too. The tables lie in guest memory, in a region
 * that only ring 0 can reach; every entry is checked all the same.
 */
#include "vm/paging_parts.h"

ph_gpa ph__paging_root(const struct ph__memory *memory) {
    return (ph_gpa){ph__gpa_of_offset(memory->layout.page_tables.offset)};
}

uint64_t *ph__table_at(const struct ph__memory *memory, uint64_t gpa) {
    return ph__memory_at(memory, (ph_gpa){gpa}, PH__PAGE_SIZE);
}

bool ph__paging_walk(const struct ph__memory *memory, ph_gpa root, ph_gva gva,
                     struct ph__translation *translation) {
    struct ph__access access = {.user = true, .writable = true, .executable = true};
    uint64_t table = root.value & PH__PTE_ADDRESS;

    /* Bits 63..47 of a canonical address are all the same; the upper half holds nothing of ours. */
    if (gva.value >> 47)
        return false;
    for (int level = 4; level >= 1; level--) {
        const uint64_t *entries = ph__table_at(memory, table);
        if (!entries)
            return false;
        uint64_t untrusted_entry = __atomic_load_n(
            entries + (gva.value >> PH__LEVEL_SHIFT(level)) % PH__TABLE_ENTRIES, __ATOMIC_RELAXED);
        if (!(untrusted_entry & PH__PTE_PRESENT))
            return false;
        access.user = access.user && (untrusted_entry & PH__PTE_USER);
        access.writable = access.writable && (untrusted_entry & PH__PTE_WRITABLE);
        access.executable = access.executable && !(untrusted_entry & PH__PTE_NO_EXECUTE);
        table = untrusted_entry & PH__PTE_ADDRESS;
        bool large = level > 1 && (untrusted_entry & PH__PTE_LARGE);
        if (large && level == 4)
            return false;
        if (level > 1 && !large)
            continue;
        uint64_t page = 1ull << PH__LEVEL_SHIFT(level);
        uint64_t within = gva.value & (page - 1);
        translation->gpa.value = (table & ~(page - 1)) + within;
        translation->contiguous = page - within;
        translation->access = access;
        return ph__memory_at(memory, translation->gpa, translation->contiguous) != NULL;
    }
    return false;
}

/* Where a physical address lies in the host range. False when it does not, or not all of (size) bytes. */
static bool offset_of(const struct ph__memory *memory, uint64_t gpa, uint64_t size, uint64_t *offset) {
    const uint64_t all = memory->layout.size;
    uint64_t end = all;

    *offset = gpa;
    if (gpa >= PH__HIGH_GPA)
        *offset = gpa - PH__HIGH_GPA + PH__HOLE_GPA;
    else if (end > PH__HOLE_GPA)
        end = PH__HOLE_GPA;
    return *offset <= end && size <= end - *offset;
}

/* One page that ring 3 can use, or (range) with a size of 0 and the bytes from (gva) on that have none. */
static uint64_t step(const struct ph__memory *memory, ph_gpa root, uint64_t gva, struct ph__range *range) {
    struct ph__access access = {.user = true, .writable = true, .executable = true};
    uint64_t table = root.value & PH__PTE_ADDRESS;

    *range = (struct ph__range){0};
    for (int level = 4;; level--) {
        const uint64_t page = 1ull << PH__LEVEL_SHIFT(level);
        const uint64_t left = page - (gva & (page - 1));
        const uint64_t *entries = ph__table_at(memory, table);
        if (!entries)
            return left;
        uint64_t untrusted_entry =
            __atomic_load_n(entries + (gva >> PH__LEVEL_SHIFT(level)) % PH__TABLE_ENTRIES, __ATOMIC_RELAXED);
        access.user = access.user && (untrusted_entry & PH__PTE_USER);
        access.writable = access.writable && (untrusted_entry & PH__PTE_WRITABLE);
        access.executable = access.executable && !(untrusted_entry & PH__PTE_NO_EXECUTE);
        if (!(untrusted_entry & PH__PTE_PRESENT) || !access.user)
            return left;
        table = untrusted_entry & PH__PTE_ADDRESS;
        bool large = level > 1 && (untrusted_entry & PH__PTE_LARGE);
        if (large && level == 4)
            return left;
        if (level > 1 && !large)
            continue;
        uint64_t gpa = (table & ~(page - 1)) + (gva & (page - 1));
        if (offset_of(memory, gpa, left, &range->offset)) {
            range->gva = gva;
            range->size = left;
            range->access = access;
        }
        return left;
    }
}

bool ph__paging_page(const struct ph__memory *memory, ph_gpa root, ph_gva gva, struct ph__range *range) {
    *range = (struct ph__range){0};
    if (gva.value < PH__USER_END)
        step(memory, root, gva.value, range);
    return range->size != 0;
}

static bool same_access(const struct ph__access *one, const struct ph__access *other) {
    return one->writable == other->writable && one->executable == other->executable;
}

bool ph__paging_next(const struct ph__memory *memory, ph_gpa root, uint64_t *gva, struct ph__range *range) {
    struct ph__range page;

    range->size = 0;
    while (*gva < PH__USER_END) {
        uint64_t left = step(memory, root, *gva, &page);
        if (range->size && (!page.size || page.offset != range->offset + range->size ||
                            !same_access(&page.access, &range->access)))
            return true;
        if (page.size && !range->size)
            *range = page;
        else
            range->size += page.size;
        *gva += left;
    }
    return range->size != 0;
}
