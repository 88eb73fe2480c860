/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does it cost to put a guest back? A restore and the call behind it, after calls that wrote no page to
 * speak of, 16, 64 or 256, against the raw round trip of floor.c; and a sandbox made of a snapshot, called
 * once and destroyed, against a raw VM that is made, run once and closed.
 */
#include <stdlib.h>

#include <pinhole/snapshot.h>

#include "floor.h"

#define ROUNDS 40u
#define BATCH 50u
#define CREATE_BATCH 8u

/* A sandbox that is put back before each call. */
struct restored {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    const ph_function *dirty;
    ph_value pages;
};

static uint64_t restored_once(void *context) {
    const struct restored *restored = context;
    uint64_t start = bench_now_ns();

    bench_check(ph_sandbox_restore(restored->sandbox, restored->snapshot), "restoring",
                ph_sandbox_error(restored->sandbox));
    bench_check(ph_call(restored->sandbox, restored->dirty, &restored->pages, 1, NULL), "dirty",
                ph_sandbox_error(restored->sandbox));
    return bench_now_ns() - start;
}

static uint64_t create_once(void *context) {
    const struct restored *restored = context;
    ph_sandbox *sandbox;
    ph_error error;
    uint64_t start = bench_now_ns();

    bench_check(ph_sandbox_create_from(restored->snapshot, NULL, &sandbox, &error), "a sandbox", &error);
    bench_check(ph_call(sandbox, restored->dirty, &restored->pages, 1, NULL), "dirty",
                ph_sandbox_error(sandbox));
    ph_sandbox_destroy(sandbox);
    return bench_now_ns() - start;
}

enum { RAW, NONE, DIRTY_16, DIRTY_64, DIRTY_256, SUBJECTS };

static void measure_restores(const struct restored *base, struct bench_report *report) {
    static const uint32_t pages[SUBJECTS] = {[DIRTY_16] = 16, [DIRTY_64] = 64, [DIRTY_256] = 256};
    struct floor_vm *raw = floor_vm_new();
    struct restored cases[SUBJECTS];
    struct bench_subject subjects[SUBJECTS] = {[RAW] = {.once = floor_round_trip, .context = raw}};
    const struct bench_floor floor = {&subjects[RAW], 1};

    for (size_t i = NONE; i < SUBJECTS; i++) {
        ph_error error;
        cases[i] = *base;
        cases[i].pages = (ph_value){.type = PH_U32, .u32 = pages[i]};
        bench_check(ph_sandbox_create_from(base->snapshot, NULL, &cases[i].sandbox, &error), "a sandbox",
                    &error);
        subjects[i] = (struct bench_subject){.once = restored_once, .context = &cases[i]};
    }
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "restore.call_ratio", &subjects[NONE], floor, 2.0);
    bench_report_added(report, "restore.dirty16_us", &subjects[DIRTY_16], floor, 60);
    bench_report_added(report, "restore.dirty64_us", &subjects[DIRTY_64], floor, 80);
    bench_report_added(report, "restore.dirty256_us", &subjects[DIRTY_256], floor, 160);
    for (size_t i = NONE; i < SUBJECTS; i++)
        ph_sandbox_destroy(cases[i].sandbox);
    bench_free(subjects, SUBJECTS);
    floor_vm_free(raw);
}

static void measure_creation(struct restored *base, struct bench_report *report) {
    struct floor_create *raw = floor_create_new((size_t)ROUNDS * CREATE_BATCH);
    struct bench_subject subjects[] = {
        {.once = floor_create_once, .context = raw},
        {.once = create_once, .context = base},
    };
    const struct bench_floor floor = {&subjects[0], 1};

    bench_run(subjects, 2, ROUNDS, CREATE_BATCH);
    bench_report_ratio(report, "create.from_snapshot_ratio", &subjects[1], floor, 1.4);
    bench_free(subjects, 2);
    floor_create_free(raw);
}

void bench_restore(const struct bench_paths *paths, struct bench_report *report) {
    ph_image *image = bench_open(paths->bench_guests, "dirty");
    struct restored base = {.dirty = bench_export(image, "dirty"), .pages = {.type = PH_U32}};
    ph_error error;

    bench_check(ph_sandbox_create(image, NULL, &base.sandbox, &error), "a sandbox", &error);
    bench_check(ph_sandbox_start(base.sandbox), "starting", ph_sandbox_error(base.sandbox));
    bench_check(ph_snapshot_take(base.sandbox, &base.snapshot), "a snapshot", ph_sandbox_error(base.sandbox));
    measure_restores(&base, report);
    measure_creation(&base, report);
    ph_sandbox_destroy(base.sandbox);
    ph_snapshot_close(base.snapshot);
    ph_image_close(image);
}
