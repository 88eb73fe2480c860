/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Feeds any page tables, in a small guest memory, to the walk: it must find what a plain one finds, and what
 * it finds must lie inside the memory. The input is an address, and entries of ten bytes each: in which page,
 * at which of the places that the walk of this address looks at, and the entry. libFuzzer finds the bytes;
 * replay.c takes them from files. By hand, from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iinclude -Isrc
 *     tests/fuzz/fuzz_walk.c src/vm/paging.c src/base/error.c -o fuzz_walk && ./fuzz_walk -max_len=256
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/boot.h"
#include "vm/paging.h"

#define PAGES 12u
#define SIZE (PAGES * PH__PAGE_SIZE)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What paging.c needs for building tables, which nobody does here. */
__attribute__((weak)) const struct ph__monitor_header *ph__monitor(void) {
    abort();
}
__attribute__((weak)) void ph__memory_touch(const struct ph__memory *memory, uint64_t offset, uint64_t size) {
    (void)memory;
    (void)offset;
    (void)size;
    abort();
}

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static uint64_t word(const uint8_t *data) {
    uint64_t value;
    memcpy(&value, data, sizeof value);
    return value;
}

/* The walk as the SDM has it (volume 3, chapter 4.5), for a memory that begins at 0. */
static bool plain_walk(const uint8_t *base, uint64_t root, uint64_t gva, struct ph__translation *at) {
    uint64_t table = root;
    uint64_t all = ~0ull, none = 0;

    if (gva >= 1ull << 47)
        return false;
    for (int shift = 39; shift >= 12; shift -= 9) {
        if (table > SIZE - PH__PAGE_SIZE)
            return false;
        uint64_t entry = word(base + table + 8 * (gva >> shift & 511));
        if (!(entry & 1) || (shift == 39 && (entry & 128)))
            return false;
        all &= entry;
        none |= entry;
        table = entry & 0x000ffffffffff000;
        if (shift == 12 || (entry & 128)) {
            uint64_t page = 1ull << shift;
            at->gpa.value = table / page * page + gva % page;
            at->contiguous = page - gva % page;
            at->access = (struct ph__access){all & 4, all & 2, !(none >> 63)};
            return at->gpa.value < SIZE && at->contiguous <= SIZE - at->gpa.value;
        }
    }
    return false;
}

static void check(const struct ph__memory *memory, uint64_t gva) {
    struct ph__translation at, plain;
    bool found = ph__paging_walk(memory, ph__paging_root(memory), (ph_gva){gva}, &at);

    expect(found == plain_walk(memory->base, 0, gva, &plain), "the walk finds what there is");
    if (!found)
        return;
    expect(at.gpa.value == plain.gpa.value && at.contiguous == plain.contiguous,
           "it leads to the right place");
    expect(at.access.user == plain.access.user && at.access.writable == plain.access.writable &&
               at.access.executable == plain.access.executable,
           "every level has its say on the rights");
    const uint8_t *bytes = ph__memory_at(memory, at.gpa, at.contiguous);
    expect(bytes != NULL && bytes >= memory->base && at.contiguous <= SIZE &&
               bytes + at.contiguous <= memory->base + SIZE,
           "what is found is guest memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t to[3 * PH__PAGE_SIZE];

    if (size < 8)
        return 0;
    /* Of just this size, so that a sanitizer sees any step outside. */
    struct ph__memory memory = {.layout = {.size = SIZE}, .base = calloc(1, SIZE)};
    if (!memory.base)
        return 0;
    uint64_t gva = word(data) & ~(word(data) & 1 ? 0xffff800000000000 : 0);
    for (data += 8, size -= 8; size >= 10; data += 10, size -= 10) {
        uint64_t entry = word(data + 2);
        unsigned shift = 12 + 9 * (data[1] & 3);
        uint64_t index = (gva >> shift & 511) + (data[1] >> 2 & 1);
        /* Half of the entries lead to a page that is there or nearly so. */
        if (data[1] & 8)
            entry = (entry & ~0x000ffffffffff000ull) | (entry >> 12) % (PAGES + 2) * PH__PAGE_SIZE;
        memcpy(memory.base + (data[0] % PAGES) * PH__PAGE_SIZE + 8 * (index & 511), &entry, sizeof entry);
    }
    check(&memory, gva);
    check(&memory, gva + PH__PAGE_SIZE);
    for (size_t length = 1; length <= sizeof to; length *= 3) {
        struct ph__translation at;
        if (ph__guest_read(&memory, (ph_gva){gva}, to, length))
            expect(ph__paging_walk(&memory, ph__paging_root(&memory), (ph_gva){gva}, &at) && at.access.user,
                   "what was read can be read");
    }
    free(memory.base);
    return 0;
}
