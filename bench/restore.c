/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does it cost to put a guest back? A restore and the call behind it, against the same call without the
 * restore in a sandbox of the same snapshot, whose pages are as warm: `greet` of the example guest hello, and
 * calls that write 16, 64 and 256 pages. Nobody can undo written pages without copying them back, so those
 * have the copies of floor.c in their floor.
 */
#include "restored.h"

#define ROUNDS 40u
#define BATCH 50u

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
        subjects[2 * i] = (struct bench_subject){.once = restored_floor_once, .context = &cases[i]};
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
