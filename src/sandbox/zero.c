/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Zeroing a large run of the guest's heap that is handed out again: the pages are given back to the kernel,
 * which costs nothing for those that were never touched, and they read as zero afterwards. The monitor zeroes
 * small runs itself.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/system.h"
#include "sandbox/snapshot.h"

/* Zeroes the pages of [offset, offset + size) under which a snapshot lies, and which have just been given
 * back: its content is to be seen there now. They become the sandbox's own. The snapshot stays below, since a
 * restore may give them back once more. False when a file has lost them. */
static bool cover(ph_sandbox *sandbox, uint64_t offset, uint64_t size) {
    static const uint8_t zeroes[PH__PAGE_SIZE];
    const ph_snapshot *below = sandbox->restore ? sandbox->restore->mapped : NULL;
    uint64_t end = (offset + size) / PH__PAGE_SIZE;

    if (!below)
        return true;
    const struct ph__page_list *list = &below->pages;
    for (size_t i = ph__page_list_find(list, offset / PH__PAGE_SIZE); i < list->count && list->pages[i] < end;
         i++)
        if (!ph__memory_store(&sandbox->memory, sandbox->memory.base + list->pages[i] * PH__PAGE_SIZE, zeroes,
                              PH__PAGE_SIZE))
            return false;
    return true;
}

ph_status ph__zero_serve(ph_sandbox *sandbox, uint64_t gva, uint64_t size) {
    const struct ph__region *arena = &sandbox->memory.layout.arena;
    uint64_t start = gva - arena->gva; /* wraps, and is then too large, for an address below */
    int64_t answer = 0;

    if ((gva | size) % PH__PAGE_SIZE != 0 || start > arena->size || size > arena->size - start)
        answer = -EINVAL;
    /* The arena is anonymous memory, so what was dropped is zero, and not some older content; but for what a
     * snapshot has below it. */
    else if (ph__system.madvise(sandbox->memory.base + arena->offset + start, size, MADV_DONTNEED) != 0 ||
             !cover(sandbox, arena->offset + start, size))
        answer = -ENOMEM;
    ph__answer(sandbox, answer);
    return PH_OK;
}
