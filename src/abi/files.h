/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The file window: where a guest finds the files that its host has mapped. A table comes first, then each
 * file at an address of its own. All of it is read-only, in the guest's page tables and where KVM looks, so a
 * guest cannot change a byte.
 */
#ifndef PH_ABI_FILES_H
#define PH_ABI_FILES_H

#include <stdint.h>

#include "layout.h"

/* Above the window, in entries of the PML4 of its own, up to the trace ring (trace.h). */
#define PH__FILES_GVA 0x7e8000000000ull
/* The most bytes of the window: table, files, and what rounds each of them up to large pages. */
#define PH__FILES_SIZE_MAX (256ull << 30)

#define PH__FILES_MAX 32u
#define PH__FILE_PATH_SIZE 256u /* with its NUL */

struct ph__file_entry {
    char path[PH__FILE_PATH_SIZE]; /* absolute, without "." and "..", single slashes, none at its end */
    uint64_t gva;                  /* divisible by PH__LARGE_PAGE_SIZE */
    uint64_t size;                 /* behind it, zeros up to a large page */
    int64_t modified_seconds;
    uint32_t modified_nanoseconds;
    uint32_t reserved;
};

/* At PH__FILES_GVA when the control page's file_count is not 0. No path is another's folder. */
struct ph__file_table {
    struct ph__file_entry entries[PH__FILES_MAX];
};
#define PH__FILE_TABLE_SIZE PH__LARGE_PAGE_SIZE

_Static_assert(sizeof(struct ph__file_table) <= PH__FILE_TABLE_SIZE, "the table has the first large page");

#endif
