/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which pages of guest memory are the sandbox's own, that is, have been written since they were mapped: asked
 * of the kernel, which knows without anything having been tracked.
 */
#ifndef PH_SANDBOX_PRIVATE_PAGES_H
#define PH_SANDBOX_PRIVATE_PAGES_H

#include "vm/memory.h"

/* Numbers of pages, ascending: an offset in the host range, divided by the size of a page. */
struct ph__page_list {
    uint64_t *pages;
    size_t count;
    size_t capacity;
};

/* Adds (page) behind the others. False when there is no memory. */
bool ph__page_list_add(struct ph__page_list *list, uint64_t page);

/* Fills (list) with the private pages of (memory) but those of page tables. Pages that the host swapped out
 * count; those of the shared mappings never do. (plain): without the ioctl of Linux 6.7. PH_E_SYSTEM or
 * PH_E_MEMORY. */
ph_status ph__private_pages_scan(const struct ph__memory *memory, bool plain, struct ph__page_list *list,
                                 ph_error *error);

#endif
