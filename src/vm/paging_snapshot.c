/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Saving protections and putting them back (paging_snapshot.h). Entries are compared as they are: accessed
 * and dirty bits are preset, and the same page lies at the same place in every sandbox of a layout.
 */
#include "vm/paging_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vm/paging_parts.h"

/* The guest-virtual address of the 2 MiB number (slot) of those that image, arena and stack lie in; false
 * behind the last. */
static bool slot_gva(const struct ph__layout *layout, uint64_t slot, uint64_t *gva) {
    const struct ph__region *regions[] = {&layout->image, &layout->arena, &layout->stack};

    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++) {
        uint64_t first = regions[i]->gva / PH__LARGE_PAGE_SIZE;
        uint64_t end = regions[i]->gva + regions[i]->size + PH__LARGE_PAGE_SIZE - 1;
        uint64_t count = regions[i]->size ? end / PH__LARGE_PAGE_SIZE - first : 0;
        if (slot < count) {
            *gva = (first + slot) * PH__LARGE_PAGE_SIZE;
            return true;
        }
        slot -= count;
    }
    return false;
}

static uint64_t slot_count(const struct ph__layout *layout) {
    uint64_t slots = 0, gva;

    while (slot_gva(layout, slots, &gva))
        slots++;
    return slots;
}

/* The entry of the page directory for (gva), NULL where nothing is mapped. */
static uint64_t *directory_entry(const struct ph__memory *memory, uint64_t gva) {
    uint64_t table = ph__paging_root(memory).value;

    for (int level = 4;; level--) {
        uint64_t *entries = ph__table_at(memory, table);
        if (!entries)
            return NULL;
        uint64_t *entry = entries + (gva >> PH__LEVEL_SHIFT(level)) % PH__TABLE_ENTRIES;
        if (level == 2)
            return entry;
        if (!(*entry & PH__PTE_PRESENT))
            return NULL;
        table = *entry & PH__PTE_ADDRESS;
    }
}

/* The table that the directory's (entry) leads to, NULL when it is a large page (present or not) or empty. */
static uint64_t *split_table(const struct ph__memory *memory, uint64_t entry) {
    if ((entry & PH__PTE_LARGE) || !(entry & PH__PTE_PRESENT))
        return NULL;
    return ph__table_at(memory, entry & PH__PTE_ADDRESS);
}

ph_status ph__protections_save(const struct ph__memory *memory, struct ph__protections *saved,
                               ph_error *error) {
    uint64_t slots = 0, tables = 0, gva;

    for (; slot_gva(&memory->layout, slots, &gva); slots++) {
        const uint64_t *entry = directory_entry(memory, gva);
        tables += entry && split_table(memory, *entry);
    }
    saved->count = slots + tables * PH__TABLE_ENTRIES;
    saved->entries = calloc(saved->count + 1, sizeof *saved->entries);
    if (!saved->entries)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the protections of a snapshot");
    uint64_t *next = saved->entries + slots;
    for (uint64_t slot = 0; slot < slots && slot_gva(&memory->layout, slot, &gva); slot++) {
        const uint64_t *entry = directory_entry(memory, gva);
        saved->entries[slot] = entry ? *entry : 0;
        const uint64_t *table = entry ? split_table(memory, *entry) : NULL;
        if (!table)
            continue;
        memcpy(next, table, PH__PAGE_SIZE);
        next += PH__TABLE_ENTRIES;
    }
    return PH_OK;
}

/* Makes (entry) say (value), by a poke unless nobody has seen it. */
static void change(struct ph__memory *memory, const struct ph__protections_plan *plan, uint32_t *count,
                   uint64_t *entry, uint64_t value, uint64_t gva) {
    if (plan->unseen)
        *entry = value;
    else
        ph__poke_add(memory, count, entry, value, gva);
}

/* What the table under a slot should say at (index): the saved table's entry, or as much of the saved large
 * page. */
static uint64_t wanted_entry(uint64_t saved, const uint64_t *saved_table, uint32_t index) {
    return saved_table ? saved_table[index] : (saved & ~PH__PTE_LARGE) + index * PH__PAGE_SIZE;
}

/* Goes on with the table of the slot. True when it is done. */
static bool table_plan(struct ph__memory *memory, struct ph__protections_plan *plan, uint32_t *count,
                       uint64_t *table, uint64_t saved, const uint64_t *saved_table, uint64_t gva) {
    for (; plan->entry < PH__TABLE_ENTRIES; plan->entry++) {
        if (*count == PH__POKES_MAX)
            return false;
        change(memory, plan, count, &table[plan->entry], wanted_entry(saved, saved_table, plan->entry),
               gva + plan->entry * PH__PAGE_SIZE);
    }
    plan->entry = 0;
    return true;
}

/* A large page of this sandbox that was split in the snapshot's: a table that nobody has seen is filled. */
static ph_status split_plan(struct ph__memory *memory, const struct ph__protections_plan *plan,
                            uint32_t *count, uint64_t *directory, const uint64_t *saved_table, uint64_t gva,
                            ph_error *error) {
    uint64_t table = ph__table_take(memory);
    uint64_t *entries = table ? ph__table_at(memory, table) : NULL;

    if (!entries)
        return ph__error_set(error, PH_E_MEMORY, "the region for page tables is full");
    memcpy(entries, saved_table, PH__PAGE_SIZE);
    change(memory, plan, count, directory,
           table | PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_USER | PH__PTE_ACCESSED, gva);
    return PH_OK;
}

ph_status ph__protections_plan(struct ph__memory *memory, struct ph__protections_plan *plan, uint32_t *count,
                               ph_error *error) {
    const uint64_t slots = slot_count(&memory->layout);
    uint64_t gva;

    *count = 0;
    for (; slot_gva(&memory->layout, plan->slot, &gva); plan->slot++) {
        uint64_t saved = plan->saved->entries[plan->slot];
        const bool saved_split = (saved & PH__PTE_PRESENT) && !(saved & PH__PTE_LARGE);
        const uint64_t *saved_table =
            saved_split ? plan->saved->entries + slots + plan->tables * PH__TABLE_ENTRIES : NULL;
        uint64_t *directory = directory_entry(memory, gva);
        uint64_t *table = directory ? split_table(memory, *directory) : NULL;

        if (!directory || !saved) {
            /* A hole of the image, in both. */
        } else if (table) {
            if (!table_plan(memory, plan, count, table, saved, saved_table, gva))
                return PH_OK;
        } else if (*count == PH__POKES_MAX) {
            return PH_OK;
        } else if (saved_table) {
            ph_status status = split_plan(memory, plan, count, directory, saved_table, gva, error);
            if (status != PH_OK)
                return status;
        } else {
            change(memory, plan, count, directory, saved, gva);
        }
        plan->tables += saved_split;
    }
    return PH_OK;
}
