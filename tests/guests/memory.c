/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Uses memory by the gigabyte, sparsely: one byte in every 16 MiB block that malloc gives.
 */
#include <stdlib.h>

#include <pinhole/guest.h>

#define BLOCK ((size_t)16 << 20)

/* Takes blocks until there are none, writes to both ends of each, checks and frees them. Returns the bytes.
 */
static uint64_t fill_sparsely(void) {
    struct block {
        struct block *next;
        unsigned char bytes[BLOCK - sizeof(void *) - 4096];
    } *blocks = NULL, *block;
    uint64_t count = 0;

    while ((block = malloc(sizeof *block))) {
        block->next = blocks;
        block->bytes[sizeof block->bytes - 1] = (unsigned char)count++;
        blocks = block;
    }
    for (uint64_t i = count; blocks; blocks = block) {
        block = blocks->next;
        if (blocks->bytes[sizeof blocks->bytes - 1] != (unsigned char)--i)
            ph_fail(1, "block %u has changed", (unsigned)i);
        free(blocks);
    }
    return count * BLOCK;
}
PH_EXPORT(fill_sparsely, PH_U64);
