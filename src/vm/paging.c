/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Builds, walks and changes page tables (paging.h). The tables lie in guest memory, in a region that only
 * ring 0 can reach; the host still checks every entry that it follows.
 */
#include "vm/paging_parts.h"

#include <string.h>

#include "abi/monitor.h"
#include "abi/trace.h"
#include "base/error.h"
#include "vm/boot.h"

static uint64_t access_bits(struct ph__access access) {
    /* Accessed and dirty are preset: the processor then never writes to an entry of its own accord. */
    uint64_t bits = PH__PTE_PRESENT | PH__PTE_ACCESSED | PH__PTE_DIRTY;
    if (access.user)
        bits |= PH__PTE_USER;
    if (access.writable)
        bits |= PH__PTE_WRITABLE;
    if (!access.executable)
        bits |= PH__PTE_NO_EXECUTE;
    return bits;
}

uint64_t ph__table_take(struct ph__memory *memory) {
    const struct ph__region *region = &memory->layout.page_tables;
    if (memory->tables_used == region->size)
        return 0;
    uint64_t offset = region->offset + memory->tables_used;
    memory->tables_used += PH__PAGE_SIZE;
    return ph__gpa_of_offset(offset);
}

/* The entry for (gva) at (level), with the tables above it made as needed. NULL when there is no room. */
static uint64_t *entry_make(struct ph__memory *memory, uint64_t gva, int level) {
    uint64_t table = ph__paging_root(memory).value;

    for (int at = 4;; at--) {
        uint64_t *entry = ph__table_at(memory, table) + (gva >> PH__LEVEL_SHIFT(at)) % PH__TABLE_ENTRIES;
        if (at == level)
            return entry;
        if (!(*entry & PH__PTE_PRESENT)) {
            uint64_t next = ph__table_take(memory);
            if (!next)
                return NULL;
            *entry = next | PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_USER | PH__PTE_ACCESSED;
        }
        table = *entry & PH__PTE_ADDRESS;
    }
}

static ph_status tables_full(ph_error *error) {
    return ph__error_set(error, PH_E_MEMORY, "the region for page tables is full");
}

static ph_status map_pages(struct ph__memory *memory, uint64_t gva, uint64_t offset, uint64_t size, int level,
                           struct ph__access access, ph_error *error) {
    uint64_t page = 1ull << PH__LEVEL_SHIFT(level);
    uint64_t bits = access_bits(access) | (level == 2 ? PH__PTE_LARGE : 0);
    uint64_t *entry = NULL;

    for (uint64_t done = 0; done < size; done += page, entry++) {
        if (!entry || ((gva + done) >> PH__LEVEL_SHIFT(level)) % PH__TABLE_ENTRIES == 0)
            entry = entry_make(memory, gva + done, level);
        if (!entry)
            return tables_full(error);
        *entry = ph__gpa_of_offset(offset + done) | bits;
    }
    return PH_OK;
}

ph_status ph__paging_map(struct ph__memory *memory, uint64_t gva, uint64_t offset, uint64_t size,
                         struct ph__access access, ph_error *error) {
    return map_pages(memory, gva, offset, size, 1, access, error);
}

/* One run of pages of the system region. */
struct system_range {
    uint64_t gpa;
    uint64_t size;
    struct ph__access access;
};

static ph_status map_system(struct ph__memory *memory, ph_error *error) {
    const struct ph__access user_read = {.user = true};
    const struct ph__access user_write = {.user = true, .writable = true};
    const struct ph__access user_execute = {.user = true, .executable = true};
    const struct ph__access supervisor_read = {0};
    const struct ph__access supervisor_write = {.writable = true};
    const struct ph__access supervisor_execute = {.executable = true};
    const struct ph__monitor_header *monitor = ph__monitor();
    const uint64_t blob = PH__MONITOR_GPA;
    const struct system_range ranges[] = {
        {PH__CONTROL_GPA, PH__CONTROL_SIZE, user_read},
        {PH__POKES_GPA, PH__POKES_SIZE, supervisor_read},
        {PH__TABLES_GPA, PH__PAGE_SIZE, supervisor_read},
        {PH__RING0_STACK_GPA, PH__PAGE_SIZE, supervisor_write},
        {PH__IST_STACK_GPA, PH__PAGE_SIZE, supervisor_write},
        {blob, monitor->stubs, user_read},
        {blob + monitor->stubs, monitor->text - monitor->stubs, supervisor_execute},
        {blob + monitor->text, monitor->data - monitor->text, user_execute},
        {blob + monitor->data, monitor->bss_end - monitor->data, user_write},
        {PH__MONITOR_STACK_GPA, PH__MONITOR_STACK_SIZE, user_write},
        {PH__IO_GPA, PH__IO_SIZE, user_write},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        ph_status status = ph__paging_map(memory, PH__GVA(ranges[i].gpa), ranges[i].gpa, ranges[i].size,
                                          ranges[i].access, error);
        if (status != PH_OK)
            return status;
    }
    return PH_OK;
}

static ph_status map_region(struct ph__memory *memory, const struct ph__region *region,
                            struct ph__access access, ph_error *error) {
    return map_pages(memory, region->gva, region->offset, region->size, 2, access, error);
}

/* The page of the trace ring, and the ring twice in a row, so that no record wraps. */
static ph_status map_trace(struct ph__memory *memory, ph_error *error) {
    const struct ph__access user_write = {.user = true, .writable = true};
    const struct ph__layout *layout = &memory->layout;
    const uint64_t ring = layout->trace.offset + PH__PAGE_SIZE;
    ph_status status;

    if (!layout->trace_ring)
        return PH_OK;
    status = ph__paging_map(memory, PH__TRACE_GVA, layout->trace.offset, PH__PAGE_SIZE, user_write, error);
    for (int copy = 0; copy < 2 && status == PH_OK; copy++)
        status = ph__paging_map(memory, PH__TRACE_RING_GVA + (uint64_t)copy * layout->trace_ring, ring,
                                layout->trace_ring, user_write, error);
    return status;
}

static ph_status map_files(struct ph__memory *memory, ph_error *error) {
    const struct ph__access user_read = {.user = true};

    return map_region(memory, &memory->layout.files, user_read, error);
}

/* Tables that every VM fills: the PML4, and for the window and the image three or four each. */
#define TABLES_AT_LEAST 8u

ph_status ph__paging_build(struct ph__memory *memory, ph_error *error) {
    const struct ph__access user_write = {.user = true, .writable = true};
    const struct ph__access supervisor_write = {.writable = true};
    const struct ph__layout *layout = &memory->layout;
    ph_status status;

    ph__memory_touch(memory, layout->page_tables.offset, TABLES_AT_LEAST * PH__PAGE_SIZE);
    ph__table_take(memory); /* the PML4 */
    status = map_system(memory, error);
    if (status == PH_OK)
        status = map_region(memory, &layout->page_tables, supervisor_write, error);
    if (status == PH_OK)
        status = map_region(memory, &layout->messages, user_write, error);
    if (status == PH_OK)
        status = map_region(memory, &layout->bookkeeping, user_write, error);
    if (status == PH_OK)
        status = map_region(memory, &layout->arena, user_write, error);
    if (status == PH_OK)
        status = map_region(memory, &layout->stack, user_write, error);
    if (status == PH_OK)
        status = map_trace(memory, error);
    if (status == PH_OK)
        status = map_files(memory, error);
    return status;
}

bool ph__guest_read(const struct ph__memory *memory, ph_gva gva, void *bytes, size_t size) {
    uint8_t *to = bytes;

    while (size) {
        struct ph__translation at;
        if (!ph__paging_walk(memory, ph__paging_root(memory), gva, &at) || !at.access.user)
            return false;
        size_t step = size < at.contiguous ? size : at.contiguous;
        if (!ph__memory_copy(memory, to, ph__memory_at(memory, at.gpa, step), step))
            return false;
        to += step;
        size -= step;
        gva.value += step;
    }
    return true;
}

/* The offset in guest memory of the page at (gva), if its protection is the guest's to change. The image has
 * holes between its segments, which the walk of present entries does not tell from PROT_NONE: those have an
 * entry of 0. */
static bool changeable(const struct ph__layout *layout, uint64_t gva, uint64_t *offset) {
    const struct ph__region *regions[] = {&layout->image, &layout->arena, &layout->stack};

    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++) {
        if (gva >= regions[i]->gva && gva - regions[i]->gva < regions[i]->size) {
            *offset = regions[i]->offset + (gva - regions[i]->gva);
            return true;
        }
    }
    return false;
}

/* The GVA at which ring 0 reaches a table. */
static uint64_t table_gva(const struct ph__memory *memory, const uint64_t *entry) {
    return PH__WINDOW_GVA + (uint64_t)((const uint8_t *)entry - memory->base);
}

static uint64_t wanted_entry(const struct ph__protect *change, uint64_t offset, uint64_t extra) {
    uint64_t bits = access_bits(change->access) | extra;
    if (!change->present)
        bits &= ~PH__PTE_PRESENT;
    return ph__gpa_of_offset(offset) | bits;
}

void ph__poke_add(struct ph__memory *memory, uint32_t *count, const uint64_t *entry, uint64_t value,
                  uint64_t gva) {
    if (*entry == value)
        return;
    ph__memory_pokes(memory)[(*count)++] =
        (struct ph__poke){.entry_gva = table_gva(memory, entry), .value = value, .gva = gva};
}

/* A table of single pages that says what the large entry (old) said, but for the pages of (change). Nobody
 * has seen it yet, so the host may fill it. Returns its GPA, 0 when there is no room. */
static uint64_t split(struct ph__memory *memory, uint64_t old, uint64_t base_gva, uint64_t base_offset,
                      const struct ph__protect *change) {
    uint64_t table = ph__table_take(memory);
    uint64_t *entries = table ? ph__table_at(memory, table) : NULL;

    if (!entries)
        return 0;
    for (uint64_t i = 0; i < PH__TABLE_ENTRIES; i++) {
        uint64_t gva = base_gva + i * PH__PAGE_SIZE;
        uint64_t offset = base_offset + i * PH__PAGE_SIZE;
        bool inside = gva >= change->gva && gva < change->end;
        uint64_t kept = ph__gpa_of_offset(offset) | (old & ~(PH__PTE_ADDRESS | PH__PTE_LARGE));
        entries[i] = inside ? wanted_entry(change, offset, 0) : kept;
    }
    return table;
}

bool ph__paging_plan(struct ph__memory *memory, struct ph__protect *change, uint32_t *count) {
    const uint64_t large = PH__LARGE_PAGE_SIZE;

    *count = 0;
    memory->protections_changed++;
    while (change->gva < change->end && *count < PH__POKES_MAX) {
        uint64_t offset;
        if (!changeable(&memory->layout, change->gva, &offset))
            return false;
        uint64_t *directory = entry_make(memory, change->gva, 2);
        if (!directory)
            return false;
        /* PROT_NONE keeps the large bit without the present bit. */
        if (!(*directory & PH__PTE_LARGE)) {
            uint64_t *entry = entry_make(memory, change->gva, 1);
            if (!entry || *entry == 0)
                return false;
            ph__poke_add(memory, count, entry, wanted_entry(change, offset, 0), change->gva);
            change->gva += PH__PAGE_SIZE;
            continue;
        }
        uint64_t base_gva = change->gva & ~(large - 1);
        uint64_t next_gva = base_gva + large;
        if (change->gva == base_gva && change->end >= next_gva) {
            ph__poke_add(memory, count, directory, wanted_entry(change, offset, PH__PTE_LARGE), change->gva);
        } else {
            uint64_t table = split(memory, *directory, base_gva, offset - (change->gva - base_gva), change);
            if (!table)
                return false;
            uint64_t value = table | PH__PTE_PRESENT | PH__PTE_WRITABLE | PH__PTE_USER | PH__PTE_ACCESSED;
            ph__poke_add(memory, count, directory, value, change->gva);
        }
        change->gva = next_gva < change->end ? next_gva : change->end;
    }
    return true;
}
