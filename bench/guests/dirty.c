/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes as many pages as it is told, for what it costs to undo that (bench/restore.c,
 * bench/greedy.c).
 */
#include <sys/mman.h>

#include <pinhole/guest.h>

#define PAGE 4096u
#define PAGES 1024u

static volatile unsigned char bytes[PAGES * PAGE];

static void dirty(uint32_t pages) {
    for (uint32_t i = 0; i < pages && i < PAGES; i++)
        bytes[i * PAGE + i]++;
}
PH_EXPORT(dirty, PH_VOID, PH_U32);

/* The same with pages that nobody has had. */
static void dirty_fresh(uint32_t pages) {
    unsigned char *fresh =
        mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fresh == MAP_FAILED)
        ph_fail(1, "no pages");
    for (uint32_t i = 0; i < pages; i++)
        fresh[(size_t)i * PAGE] = 1;
}
PH_EXPORT(dirty_fresh, PH_VOID, PH_U32);
