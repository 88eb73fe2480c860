/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A copy of all that a guest's memory holds and a restore puts back, to compare with later: everything but
 * page tables, what is shared with the host, and the bytes of system calls.
 */
#ifndef PH_TESTS_MEMORY_IMAGE_H
#define PH_TESTS_MEMORY_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "sandbox/sandbox.h"
#include "support/support.h"

static inline bool memory_image_counts(const struct ph__layout *layout, uint64_t offset) {
    const struct ph__region shared[] = {
        {.offset = 0, .size = PH__TABLES_GPA},
        {.offset = PH__IO_GPA, .size = PH__IO_SIZE},
        layout->page_tables,
        layout->messages,
        layout->trace,
        layout->site_words,
    };

    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        if (offset - shared[i].offset < shared[i].size)
            return false;
    return true;
}

static inline uint8_t *memory_image_take(const ph_sandbox *sandbox) {
    uint8_t *copy = malloc(sandbox->memory.layout.size);

    assert_non_null(copy);
    memcpy(copy, sandbox->memory.base, sandbox->memory.layout.size);
    return copy;
}

static inline void memory_image_check(const ph_sandbox *sandbox, const uint8_t *copy) {
    for (uint64_t offset = 0; offset < sandbox->memory.layout.size; offset += PH__PAGE_SIZE)
        if (memory_image_counts(&sandbox->memory.layout, offset) &&
            memcmp(copy + offset, sandbox->memory.base + offset, PH__PAGE_SIZE) != 0)
            fail_msg("the page at offset 0x%llx is not as it was", (unsigned long long)offset);
}

#endif
