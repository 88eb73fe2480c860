/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Restores beside what nobody can do without (restored.h).
 */
#include "restored.h"

#include <sys/mman.h>

#define PAGE 4096u

uint64_t restored_once(void *context) {
    const struct restored *restored = context;
    uint64_t start = bench_now_ns();

    bench_guest_restore(restored->guest, restored->put_back);
    bench_guest_call(restored->guest, restored->put_back, &restored->arg);
    return bench_now_ns() - start;
}

uint64_t restored_floor_once(void *context) {
    struct restored *restored = context;
    uint64_t copying = restored->copying.times ? floor_copy(&restored->copying) : 0;
    uint64_t start = bench_now_ns();

    bench_guest_call(restored->guest, restored->left, &restored->arg);
    return copying + (bench_now_ns() - start);
}

/* (count) pages that are resident, and differ from others only by (content). */
static uint8_t *pages_new(size_t count, uint8_t content) {
    uint8_t *pages =
        mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (pages == MAP_FAILED)
        bench_fail("out of memory");
    for (size_t i = 0; i < count * PAGE; i++)
        pages[i] = content;
    return pages;
}

void restored_open(struct restored *restored, const struct bench_guest *guest, ph_value arg, size_t pages) {
    *restored = (struct restored){
        .guest = guest,
        .arg = arg,
        .put_back = bench_guest_sandbox(guest),
        .left = bench_guest_sandbox(guest),
        .copying = {.to_size = pages * PAGE, .from_size = pages * PAGE, .size = PAGE, .times = pages},
    };
    if (pages) {
        restored->copying.to = pages_new(pages, 1);
        restored->copying.from = pages_new(pages, 2);
    }
}

void restored_close(struct restored *restored) {
    if (restored->copying.times) {
        munmap(restored->copying.to, restored->copying.to_size);
        munmap((uint8_t *)restored->copying.from, restored->copying.from_size);
    }
    ph_sandbox_destroy(restored->put_back);
    ph_sandbox_destroy(restored->left);
}
