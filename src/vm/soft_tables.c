/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Page tables of our own, for the emulated processor alone (soft_parts.h). Unicorn 2.0.1 takes a physical
 * address to be the virtual one whatever a page table says, but it does look for each page there first, and
 * an access to one that is not there is a page fault of the processor: with the right RIP and flags, in which
 * an access to memory that Unicorn itself does not have leaves the last block's. So these tables have just
 * the pages of the mirror, with the same rights, and lead nowhere. The guest cannot reach them: they are not
 * in themselves.
 *
 * Rights to execute are not in them, since this processor has no such bit; Unicorn's own map has them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vm/paging_parts.h"
#include "vm/soft_parts.h"

#define CR0_PAGING 0x80000033ull /* soft_state.c, and PG */

/* Unicorn takes 32 bits of CR3, so the first table is where no guest has memory. Entries can hold 40 bits:
 * the others are above or below the guest's own, which end short of the window. */
#define ROOT_GPA 0x1000ull
#define TABLES_GPA 0x2000000000ull
#define FLUSH_GPA 0x3000ull /* nothing */
#define HIGH_TABLES_GPA 0xf000000000ull
_Static_assert(ROOT_GPA + PH__PAGE_SIZE <= PH__IMAGE_GVA_MIN, "no guest has memory there");

#define ENTRY (PH__PTE_PRESENT | PH__PTE_USER | PH__PTE_ACCESSED | PH__PTE_DIRTY)

/* The first of all tables; two that have all of their pages and stand in for any other like them; and what
 * the pages of the backend's own may need. */
enum { ROOT, FULL, FULL_WRITABLE, FIRST_FREE };
#define SPARE (FIRST_FREE + 3u)

static uint64_t *table_at(const struct ph__soft_tables *tables, size_t number) {
    return tables->entries + number * PH__TABLE_ENTRIES;
}

static uint64_t entry_to(const struct ph__soft_tables *tables, size_t number) {
    return (tables->gpa + number * PH__PAGE_SIZE) | ENTRY | PH__PTE_WRITABLE;
}

/* The table that (*entry) leads to, a new one if to none. NULL when there is no room. */
static uint64_t *table_below(struct ph__soft_tables *tables, uint64_t *entry) {
    if (!*entry) {
        if (tables->used == tables->capacity)
            return NULL;
        memset(table_at(tables, tables->used), 0, PH__PAGE_SIZE);
        *entry = entry_to(tables, tables->used++);
    }
    return table_at(tables, ((*entry & PH__PTE_ADDRESS) - tables->gpa) / PH__PAGE_SIZE);
}

static size_t position(uint64_t gva, int level) {
    return (gva >> PH__LEVEL_SHIFT(level)) % PH__TABLE_ENTRIES;
}

/* Adds [gva, end). False when there is no room. */
static bool add(struct ph__soft_tables *tables, uint64_t gva, uint64_t end, bool writable) {
    while (gva < end) {
        uint64_t *table = table_at(tables, ROOT);
        for (int level = 4; table && level > 2; level--)
            table = table_below(tables, table + position(gva, level));
        if (!table)
            return false;
        uint64_t *entry = table + position(gva, 2);
        if (gva % PH__LARGE_PAGE_SIZE == 0 && end - gva >= PH__LARGE_PAGE_SIZE) {
            *entry = entry_to(tables, writable ? FULL_WRITABLE : FULL);
            gva += PH__LARGE_PAGE_SIZE;
            continue;
        }
        table = table_below(tables, entry);
        if (!table)
            return false;
        do {
            table[position(gva, 1)] = ENTRY | (writable ? PH__PTE_WRITABLE : 0);
            gva += PH__PAGE_SIZE;
        } while (gva < end && gva % PH__LARGE_PAGE_SIZE);
    }
    return true;
}

static bool fill(struct ph__soft_vcpu *vcpu) {
    struct ph__soft_tables *tables = &vcpu->tables;
    const struct ph__soft_ranges *mirror = &vcpu->mirror;

    memset(table_at(tables, ROOT), 0, PH__PAGE_SIZE);
    for (size_t i = 0; i < PH__TABLE_ENTRIES; i++) {
        table_at(tables, FULL)[i] = ENTRY;
        table_at(tables, FULL_WRITABLE)[i] = ENTRY | PH__PTE_WRITABLE;
    }
    tables->used = FIRST_FREE;
    for (size_t i = 0; i < mirror->count; i++) {
        const struct ph__soft_range *range = &mirror->ranges[i];
        if (!add(tables, range->gva, range->gva + range->size, range->protection & UC_PROT_WRITE))
            return false;
    }
    return add(tables, PH__SOFT_CODE_GVA, PH__SOFT_CODE_GVA + PH__PAGE_SIZE, false) &&
           add(tables, PH__SOFT_DATA_GVA, PH__SOFT_DATA_GVA + PH__PAGE_SIZE, true);
}

/* Whether the guest can have anything in the (size) bytes at (gpa), which is a virtual address to Unicorn. */
static bool is_taken(const struct ph__layout *layout, uint64_t gpa, uint64_t size) {
    return layout->image.gva < gpa + size && gpa < layout->stack.gva + layout->stack.size;
}

/* There are never more than the guest's own page tables, which these are like, could be. */
static ph_status make(struct ph__soft_vcpu *vcpu, ph_error *error) {
    struct ph__soft_tables *tables = &vcpu->tables;
    const struct ph__layout *layout = &vcpu->memory->layout;
    const uint32_t protection = UC_PROT_READ | UC_PROT_WRITE;

    tables->capacity = layout->page_tables.size / PH__PAGE_SIZE + SPARE;
    const size_t size = tables->capacity * PH__PAGE_SIZE;
    tables->gpa = is_taken(layout, TABLES_GPA, size) ? HIGH_TABLES_GPA : TABLES_GPA;
    if (is_taken(layout, tables->gpa, size))
        return ph__error_set(
            error, PH_E_ARGUMENT,
            "the soft backend has no room for page tables beside this image and its %llu MiB "
            "of memory",
            (unsigned long long)(ph__layout_memory(layout) >> 20));
    tables->entries = aligned_alloc(PH__PAGE_SIZE, size);
    if (!tables->entries ||
        uc_mem_map_ptr(vcpu->engine, ROOT_GPA, PH__PAGE_SIZE, protection, tables->entries) != UC_ERR_OK ||
        uc_mem_map_ptr(vcpu->engine, tables->gpa, size, protection, tables->entries) != UC_ERR_OK)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the emulator's page tables");
    return PH_OK;
}

static bool write_control(struct ph__soft_vcpu *vcpu, int number, uint64_t value) {
    return uc_reg_write(vcpu->engine, number, &value) == UC_ERR_OK;
}

ph_status ph__soft_tables_make(struct ph__soft_vcpu *vcpu, ph_error *error) {
    ph_status status = vcpu->tables.entries ? PH_OK : make(vcpu, error);

    if (status != PH_OK)
        return status;
    if (!fill(vcpu))
        return ph__error_set(error, PH_E_MEMORY, "more page tables than there is room for");
    /* A new mapping has Unicorn forget what it knows of pages; a store to CR3 of the same value does not. */
    if (uc_mem_map_ptr(vcpu->engine, FLUSH_GPA, PH__PAGE_SIZE, UC_PROT_READ, vcpu->tables.entries) !=
            UC_ERR_OK ||
        uc_mem_unmap(vcpu->engine, FLUSH_GPA, PH__PAGE_SIZE) != UC_ERR_OK)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the emulator's page tables");
    if (!write_control(vcpu, UC_X86_REG_CR3, ROOT_GPA) || !write_control(vcpu, UC_X86_REG_CR0, CR0_PAGING))
        return ph__error_set(error, PH_E_SYSTEM, "the emulator does not take page tables");
    return PH_OK;
}

void ph__soft_tables_free(struct ph__soft_vcpu *vcpu) {
    free(vcpu->tables.entries);
    vcpu->tables = (struct ph__soft_tables){0};
}
