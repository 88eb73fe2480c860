/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Page tables: building them before the guest starts, walking them for every guest pointer that the host
 * follows, and planning a change of protection. Entry bits are those of the Intel SDM, volume 3, chapter 4.5.
 *
 * After start the host never stores into a page table that the processor may have seen: it plans pokes, and
 * ring 0 of the guest stores them (vcpu.h, poke). Under shadow paging nothing else is seen.
 */
#ifndef PH_VM_PAGING_H
#define PH_VM_PAGING_H

#include "vm/memory.h"

#define PH__PTE_PRESENT (1ull << 0)
#define PH__PTE_WRITABLE (1ull << 1)
#define PH__PTE_USER (1ull << 2)
#define PH__PTE_ACCESSED (1ull << 5)
#define PH__PTE_DIRTY (1ull << 6)
#define PH__PTE_LARGE (1ull << 7)
#define PH__PTE_NO_EXECUTE (1ull << 63)
#define PH__PTE_ADDRESS 0x000ffffffffff000ull

/* What a mapping allows. Everything present is readable. */
struct ph__access {
    bool user;
    bool writable;
    bool executable;
};

/* Builds the page tables of a new VM for its layout: system region, page tables, messages, bookkeeping, arena
 * and stack. The image's ranges are added with ph__paging_map. PH_E_MEMORY when the page-table region is
 * full, which the layout's arithmetic excludes. */
ph_status ph__paging_build(struct ph__memory *memory, ph_error *error);

/* Maps [gva, gva + size) to the memory at (offset), with 4 KiB pages. Before start only. */
ph_status ph__paging_map(struct ph__memory *memory, uint64_t gva, uint64_t offset, uint64_t size,
                         struct ph__access access, ph_error *error);

/* The physical address of the PML4. */
ph_gpa ph__paging_root(const struct ph__memory *memory);

/* Where a guest-virtual address leads. */
struct ph__translation {
    ph_gpa gpa;
    uint64_t contiguous; /* bytes from there to the end of the page */
    struct ph__access access;
};

/* Walks the page tables from (root). False when (gva) is not canonical, not mapped, or an entry leads outside
 * guest memory. Every step is bounded: nothing in the tables is trusted. */
bool ph__paging_walk(const struct ph__memory *memory, ph_gpa root, ph_gva gva,
                     struct ph__translation *translation);

/* A run of pages that ring 3 can use in one way, at one place of the host range. */
struct ph__range {
    uint64_t gva;
    uint64_t size;
    uint64_t offset; /* in the host range; pages of the file window count too */
    struct ph__access access;
};

#define PH__USER_END (1ull << 47) /* of the addresses that guests can have */

/* The first run of pages at or behind (*gva) that ring 3 can use, as long as it goes; (*gva) moves behind it.
 * False when there is none left. Bounded as the walk is. */
bool ph__paging_next(const struct ph__memory *memory, ph_gpa root, uint64_t *gva, struct ph__range *range);

/* What is left of the page at (gva), if ring 3 can use it. Bounded as the walk is. */
bool ph__paging_page(const struct ph__memory *memory, ph_gpa root, ph_gva gva, struct ph__range *range);

/* Copies (size) bytes of guest memory at (gva) to (bytes), as ring 3 of the guest could read it.
 * False, with part of the bytes copied, when it could not. */
bool ph__guest_read(const struct ph__memory *memory, ph_gva gva, void *bytes, size_t size);

/* A change of protection under way: the pages that are left. */
struct ph__protect {
    uint64_t gva;
    uint64_t end;
    struct ph__access access;
    bool present; /* false: PROT_NONE */
};

/* Fills the poke list with the next entries that turn [gva, end) to the wanted access, at most PH__POKES_MAX,
 * and moves gva on. (*count) is 0 when nothing is left to do. Large pages are split with tables that no
 * processor has seen. False when a page is not the guest's to change. */
bool ph__paging_plan(struct ph__memory *memory, struct ph__protect *change, uint32_t *count);

#endif
