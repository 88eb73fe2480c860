/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does one greedy call cost those behind it? A call writes 256 MiB, and is put back. The restore behind
 * the next call, a small one, is compared with one before it all. Whoever writes 256 MiB leaves cold caches
 * behind, so the host writes as much itself before the restore that is the floor.
 */
#include <stdlib.h>
#include <string.h>

#include <pinhole/snapshot.h>

#include "bench.h"

#define ROUNDS 10u
#define USUAL 30u /* restores before each greedy call */
#define SMALL_PAGES 8u
#define GREEDY_PAGES 65536u
#define GREEDY_BYTES (256ull << 20)
#define MEMORY (320ull << 20)

struct greedy {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    const ph_function *function;
};

/* A call that writes (pages) pages, and the restore behind it, in microseconds. */
static double restore_us(const struct greedy *greedy, uint32_t pages) {
    const ph_value arg = {.type = PH_U32, .u32 = pages};

    bench_check(ph_call(greedy->sandbox, greedy->function, &arg, 1, NULL), "dirty_fresh",
                ph_sandbox_error(greedy->sandbox));
    uint64_t start = bench_now_ns();
    bench_check(ph_sandbox_restore(greedy->sandbox, greedy->snapshot), "restoring",
                ph_sandbox_error(greedy->sandbox));
    return (double)(bench_now_ns() - start) / 1000;
}

static struct greedy greedy_open(ph_image *image) {
    ph_config config = PH_CONFIG_INIT;
    struct greedy greedy = {.function = bench_export(image, "dirty_fresh")};
    ph_error error;

    config.memory = MEMORY;
    bench_check(ph_sandbox_create(image, &config, &greedy.sandbox, &error), "a sandbox", &error);
    bench_check(ph_sandbox_start(greedy.sandbox), "starting", ph_sandbox_error(greedy.sandbox));
    bench_check(ph_snapshot_take(greedy.sandbox, &greedy.snapshot), "a snapshot",
                ph_sandbox_error(greedy.sandbox));
    return greedy;
}

void bench_greedy(const struct bench_paths *paths, struct bench_report *report) {
    ph_image *image = bench_open(paths->bench_guests, "dirty");
    const struct greedy greedy = greedy_open(image);
    double *ratios = bench_numbers(ROUNDS), *first = bench_numbers(ROUNDS), *usual = bench_numbers(ROUNDS);
    double *cold = bench_numbers(ROUNDS), *third = bench_numbers(ROUNDS);
    uint8_t *bytes = malloc(GREEDY_BYTES);
    double times[USUAL];

    if (!bytes)
        bench_fail("out of memory");
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < USUAL; i++)
            times[i] = restore_us(&greedy, SMALL_PAGES);
        usual[round] = bench_median(times, USUAL);
        memset(bytes, (int)round + 1, GREEDY_BYTES);
        __asm__ volatile("" ::"r"(bytes) : "memory"); /* whoever reads it */
        cold[round] = restore_us(&greedy, SMALL_PAGES);
        first[round] = restore_us(&greedy, GREEDY_PAGES);
        ratios[round] = restore_us(&greedy, SMALL_PAGES) / cold[round];
        third[round] = restore_us(&greedy, SMALL_PAGES) / usual[round];
    }
    free(bytes);
    bench_report_number(report, &(struct bench_number){
                                    .key = "restore.after_greedy_ratio",
                                    .unit = "ratio",
                                    .values = ratios,
                                    .count = ROUNDS,
                                    .floor_us = bench_median(cold, ROUNDS),
                                    .reach = 1.2,
                                    .goal = BENCH_AT_MOST,
                                });
    bench_report_row(report, "greedy", "a restore before it, with warm caches", "us", usual, ROUNDS);
    bench_report_row(report, "greedy", "the same when the host has written 256 MiB", "us", cold, ROUNDS);
    bench_report_row(report, "greedy", "the restore of the call that wrote 256 MiB", "us", first, ROUNDS);
    bench_report_row(report, "greedy", "the third one, against the first line", "ratio", third, ROUNDS);
    free(cold);
    free(third);
    free(ratios);
    free(first);
    free(usual);
    ph_sandbox_destroy(greedy.sandbox);
    ph_snapshot_close(greedy.snapshot);
    ph_image_close(image);
}
