/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Whether protections that come from a file are such as a guest's mprotect can have left (paging_snapshot.h).
 * They end up in page tables that ring 3 runs on: an entry that led elsewhere would give a guest another
 * page of its own VM, the page tables among them. Pure; what vm/paging.c stores is the measure.
 */
#include "vm/paging_parts.h"
#include "vm/paging_snapshot.h"

/* The regions whose protection is the guest's, in the order of paging_snapshot.c. */
#define REGIONS 3u

static const struct ph__region *region_at(const struct ph__layout *layout, unsigned index) {
    const struct ph__region *regions[REGIONS] = {&layout->image, &layout->arena, &layout->stack};

    return regions[index];
}

/* The 2 MiB that (region) lies in: the first one's number, and how many. */
static uint64_t slots_of(const struct ph__region *region, uint64_t *first) {
    uint64_t end = region->gva + region->size + PH__LARGE_PAGE_SIZE - 1;

    *first = region->gva / PH__LARGE_PAGE_SIZE;
    return region->size ? end / PH__LARGE_PAGE_SIZE - *first : 0;
}

static uint64_t all_slots(const struct ph__layout *layout) {
    uint64_t count = 0, first;

    for (unsigned i = 0; i < REGIONS; i++)
        count += slots_of(region_at(layout, i), &first);
    return count;
}

uint64_t ph__protections_count_max(const struct ph__layout *layout) {
    return all_slots(layout) * (1 + PH__TABLE_ENTRIES);
}

/* What every entry of a page of ring 3 has, and what mprotect changes. */
#define ALWAYS (PH__PTE_USER | PH__PTE_ACCESSED | PH__PTE_DIRTY)
#define CHANGES (PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_NO_EXECUTE)

/* An entry for the memory at (offset). */
static const char *check_entry(uint64_t untrusted_entry, uint64_t offset, uint64_t large, bool allow_wx) {
    if ((untrusted_entry & ~CHANGES) != (ph__gpa_of_offset(offset) | ALWAYS | large))
        return "an entry leads to another page";
    if ((untrusted_entry & (PH__PTE_WRITABLE | PH__PTE_NO_EXECUTE)) == PH__PTE_WRITABLE && !allow_wx)
        return "a page is writable and executable";
    return NULL;
}

/* Whether the page at (gva) of (region) is mapped from the start. */
static bool is_mapped(const struct ph__protections_rules *rules, uint64_t gva) {
    for (size_t i = 0; i < rules->range_count; i++)
        if (gva - rules->ranges[i].gva < rules->ranges[i].size)
            return true;
    return false;
}

/* Whether any page of the image in the 2 MiB at (gva) is. */
static bool is_any_mapped(const struct ph__protections_rules *rules, uint64_t gva) {
    for (size_t i = 0; i < rules->range_count; i++) {
        const struct ph__protections_range *range = &rules->ranges[i];
        if (range->gva < gva + PH__LARGE_PAGE_SIZE && range->gva + range->size > gva)
            return true;
    }
    return false;
}

/* The (table) of the 2 MiB at (gva). */
static const char *check_table(const struct ph__region *region, bool is_image,
                               const uint64_t *untrusted_table, uint64_t gva,
                               const struct ph__protections_rules *rules) {
    const char *wrong = NULL;

    for (unsigned i = 0; i < PH__TABLE_ENTRIES && !wrong; i++, gva += PH__PAGE_SIZE) {
        const uint64_t distance = gva - region->gva;
        const bool hole = is_image && rules->ranges && !is_mapped(rules, gva);
        if (hole || distance >= region->size)
            wrong = untrusted_table[i] ? "a page is mapped where the image has none" : NULL;
        else if (untrusted_table[i] || !is_image || rules->ranges)
            wrong = check_entry(untrusted_table[i], region->offset + distance, 0, rules->allow_wx);
    }
    return wrong;
}

/* The directory's entry of a table: only that there is one counts, its address is another one in every
 * sandbox. */
static bool is_table(const struct ph__layout *layout, uint64_t untrusted_entry) {
    const uint64_t bits = PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_USER | PH__PTE_ACCESSED;
    const struct ph__region *tables = &layout->page_tables;

    return (untrusted_entry & ~PH__PTE_ADDRESS) == bits &&
           (untrusted_entry & PH__PTE_ADDRESS) - ph__gpa_of_offset(tables->offset) < tables->size;
}

/* The list of tables behind the directory's entries: where it has come to. */
struct tables {
    const uint64_t *untrusted_next;
    size_t left;
};

/* One 2 MiB, which begins at (gva). */
static const char *check_slot(const struct ph__layout *layout, unsigned index, uint64_t gva,
                              uint64_t untrusted_entry, struct tables *tables,
                              const struct ph__protections_rules *rules) {
    const struct ph__region *region = region_at(layout, index);
    const bool is_image = index == 0;

    if (is_image && untrusted_entry == 0)
        return rules->ranges && is_any_mapped(rules, gva) ? "a part of the image is not mapped" : NULL;
    if (!is_image && (untrusted_entry & PH__PTE_LARGE))
        return check_entry(untrusted_entry, region->offset + (gva - region->gva), PH__PTE_LARGE,
                           rules->allow_wx);
    if (!is_table(layout, untrusted_entry))
        return "an entry leads to another page";
    if (is_image && rules->ranges && !is_any_mapped(rules, gva))
        return "a page is mapped where the image has none";
    if (tables->left < PH__TABLE_ENTRIES)
        return "a table is missing";
    const uint64_t *untrusted_table = tables->untrusted_next;
    tables->untrusted_next += PH__TABLE_ENTRIES;
    tables->left -= PH__TABLE_ENTRIES;
    return check_table(region, is_image, untrusted_table, gva, rules);
}

const char *ph__protections_check(const struct ph__layout *layout, const struct ph__protections *untrusted,
                                  const struct ph__protections_rules *rules) {
    const uint64_t slots = all_slots(layout);
    const uint64_t *untrusted_entry = untrusted->entries;
    const char *wrong = NULL;

    if (untrusted->count < slots)
        return "entries are missing";
    struct tables tables = {untrusted->entries + slots, untrusted->count - slots};
    for (unsigned i = 0; i < REGIONS; i++) {
        uint64_t first;
        uint64_t count = slots_of(region_at(layout, i), &first);
        for (uint64_t j = 0; j < count && !wrong; j++)
            wrong =
                check_slot(layout, i, (first + j) * PH__LARGE_PAGE_SIZE, *untrusted_entry++, &tables, rules);
    }
    if (!wrong && tables.left)
        wrong = "there is a table too many";
    return wrong;
}
