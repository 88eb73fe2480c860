/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes as many pages as it is told, for what it costs to undo that (bench/restore.c).
 */
#include <pinhole/guest.h>

#define PAGE 4096u
#define PAGES 1024u

static volatile unsigned char bytes[PAGES * PAGE];

static void dirty(uint32_t pages) {
    for (uint32_t i = 0; i < pages && i < PAGES; i++)
        bytes[i * PAGE + i]++;
}
PH_EXPORT(dirty, PH_VOID, PH_U32);
