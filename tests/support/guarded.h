/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Memory that ends right before a page nobody may touch: a read or write past its end is a crash of the test,
 * with or without a sanitizer.
 */
#ifndef PH_TESTS_GUARDED_H
#define PH_TESTS_GUARDED_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct guarded {
    uint8_t *mapping;
    size_t mapped;
    size_t usable;
};

/* Room for up to (size) bytes. */
static inline void guarded_init(struct guarded *guarded, size_t size) {
    guarded->usable = (size + 4095) & ~(size_t)4095;
    guarded->mapped = guarded->usable + 4096;
    guarded->mapping =
        mmap(NULL, guarded->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded->mapping == MAP_FAILED || mprotect(guarded->mapping + guarded->usable, 4096, PROT_NONE) != 0)
        abort();
}

/* The (size) bytes before the forbidden page. */
static inline uint8_t *guarded_end(const struct guarded *guarded, size_t size) {
    if (size > guarded->usable)
        abort();
    return guarded->mapping + guarded->usable - size;
}

/* A copy of (size) bytes, right before the forbidden page. */
static inline uint8_t *guarded_copy(const struct guarded *guarded, const void *bytes, size_t size) {
    uint8_t *copy = guarded_end(guarded, size);

    if (size > 0)
        memmove(copy, bytes, size);
    return copy;
}

static inline void guarded_free(struct guarded *guarded) {
    munmap(guarded->mapping, guarded->mapped);
}

#endif
