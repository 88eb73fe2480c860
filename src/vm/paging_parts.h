/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the files about page tables share, and nobody else uses.
 */
#ifndef PH_VM_PAGING_PARTS_H
#define PH_VM_PAGING_PARTS_H

#include "vm/paging.h"

#define PH__TABLE_ENTRIES 512u
#define PH__LEVEL_SHIFT(level) (12 + 9 * ((level)-1)) /* level 1: page table, 4: PML4 */

/* The table at (gpa), or NULL when it is not a whole page of guest memory. */
uint64_t *ph__table_at(const struct ph__memory *memory, uint64_t gpa);

/* A page of zeroes for a table. Returns its GPA, 0 when the region is full. */
uint64_t ph__table_take(struct ph__memory *memory);

/* Adds to the poke list that (entry), which translates (gva), becomes (value), unless it is. */
void ph__poke_add(struct ph__memory *memory, uint32_t *count, const uint64_t *entry, uint64_t value,
                  uint64_t gva);

#endif
