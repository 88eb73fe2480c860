/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does it cost to put a guest back? A restore and the call behind it, against the same call without the
 * restore in a sandbox of the same snapshot, whose pages are as warm: `greet` of the example guest hello, and
 * calls that write 16, 64 and 256 pages. Nobody can undo written pages without copying them back, so those
 * have the copies of floor.c in their floor.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "floor.h"
#include "guest.h"

#define ROUNDS 40u
#define BATCH 50u
#define PAGE 4096u

/* One kind of call, with a sandbox that is put back before it and one that is not. */
struct restored {
    const struct bench_guest *guest;
    ph_value arg;
    ph_sandbox *put_back, *left;
    struct floor_copying copying; /* what a call writes, from a snapshot's place to a guest's */
};

static uint64_t restored_once(void *context) {
    const struct restored *restored = context;
    uint64_t start = bench_now_ns();

    bench_guest_restore(restored->guest, restored->put_back);
    bench_guest_call(restored->guest, restored->put_back, &restored->arg);
    return bench_now_ns() - start;
}

/* The floor: the same call, behind copies that bring back nothing. */
static uint64_t left_once(void *context) {
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

static void restored_open(struct restored *restored, const struct bench_guest *guest, ph_value arg,
                          size_t pages) {
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

static void restored_close(struct restored *restored) {
    if (restored->copying.times) {
        munmap(restored->copying.to, restored->copying.to_size);
        munmap((uint8_t *)restored->copying.from, restored->copying.from_size);
    }
    ph_sandbox_destroy(restored->put_back);
    ph_sandbox_destroy(restored->left);
}

enum { GREET, DIRTY_16, DIRTY_64, DIRTY_256, CASES };

void bench_restore(const struct bench_paths *paths, struct bench_report *report) {
    static const uint32_t pages[CASES] = {[DIRTY_16] = 16, [DIRTY_64] = 64, [DIRTY_256] = 256};
    static const char *const keys[CASES] = {"restore.call_ratio", "restore.dirty16_ratio",
                                            "restore.dirty64_ratio", "restore.dirty256_ratio"};
    static const double reach[CASES] = {2.0, 1.8, 1.6, 1.3};
    struct bench_guest hello = bench_guest_open(paths->guests, "hello", "greet", bench_register_weekday);
    struct bench_guest dirty = bench_guest_open(paths->bench_guests, "dirty", "dirty", NULL);
    struct restored cases[CASES];
    /* Each floor next to what is compared with it: the machine may be another one a batch later. */
    struct bench_subject subjects[2 * CASES];

    bench_guest_warm(&hello);
    bench_guest_warm(&dirty);
    restored_open(&cases[GREET], &hello, (ph_value){.type = PH_STR, .str = "bench"}, 0);
    for (size_t i = DIRTY_16; i < CASES; i++)
        restored_open(&cases[i], &dirty, (ph_value){.type = PH_U32, .u32 = pages[i]}, pages[i]);
    for (size_t i = 0; i < CASES; i++) {
        subjects[2 * i] = (struct bench_subject){.once = left_once, .context = &cases[i]};
        subjects[2 * i + 1] = (struct bench_subject){.once = restored_once, .context = &cases[i]};
    }
    bench_run(subjects, 2 * CASES, ROUNDS, BATCH);
    for (size_t i = 0; i < CASES; i++)
        bench_report_ratio(report, keys[i], &subjects[2 * i + 1], (struct bench_floor){&subjects[2 * i], 1},
                           reach[i]);
    bench_free(subjects, 2 * CASES);
    for (size_t i = 0; i < CASES; i++)
        restored_close(&cases[i]);
    bench_guest_close(&dirty);
    bench_guest_close(&hello);
}
