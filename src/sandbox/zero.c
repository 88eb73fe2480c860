/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Zeroing a large run of the guest's heap that is handed out again: the pages are given back to the kernel,
 * which costs nothing for those that were never touched, and they read as zero afterwards. The monitor zeroes
 * small runs itself.
 */
#include <errno.h>
#include <sys/mman.h>

#include "sandbox/sandbox.h"

ph_status ph__zero_serve(ph_sandbox *sandbox, uint64_t gva, uint64_t size) {
    const struct ph__region *arena = &sandbox->memory.layout.arena;
    uint64_t start = gva - arena->gva; /* wraps, and is then too large, for an address below */
    int64_t answer = 0;

    if ((gva | size) % PH__PAGE_SIZE != 0 || start > arena->size || size > arena->size - start)
        answer = -EINVAL;
    /* The arena is anonymous memory, so what was dropped is zero, and not some older content. */
    else if (madvise(sandbox->memory.base + arena->offset + start, size, MADV_DONTNEED) != 0)
        answer = -ENOMEM;
    ph__answer(sandbox, answer);
    return PH_OK;
}
