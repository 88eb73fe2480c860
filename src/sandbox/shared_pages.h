/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Clearing what guest and host share: the boxes for messages and the trace ring. A restore does it, so that a
 * guest reads nothing there of the one before it.
 */
#ifndef PH_SANDBOX_SHARED_PAGES_H
#define PH_SANDBOX_SHARED_PAGES_H

#include "vm/memory.h"

#define PH__SHARED_RUNS_MAX 8u

/* What is known of the shared pages. Zeroed to begin with. */
struct ph__shared_pages {
    uint64_t blocks; /* of the file, as the kernel counts them; 0: nothing is known */
    size_t count;
    struct {
        uint8_t *bytes;
        uint64_t size;
    } runs[PH__SHARED_RUNS_MAX]; /* pages that stay, to be cleared by hand */
};

/* Makes every byte of boxes and ring 0. The first pages of each stay, since calls are taken to use them,
 * others are given back. PH_E_SYSTEM. */
ph_status ph__shared_pages_clear(struct ph__shared_pages *pages, const struct ph__memory *memory,
                                 ph_error *error);

#endif
