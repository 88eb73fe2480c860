/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does a sandbox cost that is made of a snapshot for a single call? Create, one call that writes no page
 * to speak of, destroy, against a raw VM that is made, run once and closed; and the same with the snapshot
 * opened from a file, which the page cache has, and closed again. As in create.c, a table tells the
 * ratio with another VM alive, which is how a host that makes such sandboxes mostly has it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "floor.h"
#include "guest.h"

#define ROUNDS 40u
#define BATCH 8u

static const ph_value no_pages = {.type = PH_U32, .u32 = 0};

static uint64_t from_memory_once(void *context) {
    const struct bench_guest *guest = context;
    uint64_t start = bench_now_ns();
    ph_sandbox *sandbox = bench_guest_sandbox(guest);

    bench_guest_call(guest, sandbox, &no_pages);
    ph_sandbox_destroy(sandbox);
    return bench_now_ns() - start;
}

#define FOLDER_MAX 4096u

/* A snapshot in a file. */
struct saved {
    const struct bench_guest *guest;
    char folder[FOLDER_MAX];
    char path[FOLDER_MAX + 16];
};

static uint64_t from_file_once(void *context) {
    const struct saved *saved = context;
    struct bench_guest loaded = *saved->guest;
    ph_error error;
    uint64_t start = bench_now_ns();

    bench_check(ph_snapshot_load(loaded.image, saved->path, PH_SNAPSHOT_MAP, &loaded.snapshot, &error),
                "loading a snapshot", &error);
    ph_sandbox *sandbox = bench_guest_sandbox(&loaded);
    bench_guest_call(&loaded, sandbox, &no_pages);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(loaded.snapshot);
    return bench_now_ns() - start;
}

static void save(struct saved *saved, const struct bench_guest *guest) {
    const char *temporary = getenv("TMPDIR");
    ph_error error;

    saved->guest = guest;
    snprintf(saved->folder, sizeof saved->folder, "%s/pinhole-bench-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(saved->folder))
        bench_fail("%s: %s", saved->folder, strerror(errno));
    snprintf(saved->path, sizeof saved->path, "%s/snapshot", saved->folder);
    bench_check(ph_snapshot_save(guest->snapshot, saved->path, &error), "saving a snapshot", &error);
}

static void saved_remove(const struct saved *saved) {
    unlink(saved->path);
    rmdir(saved->folder);
}

enum { RAW, MEMORY, SAVED, SUBJECTS };

/* Measures all again while another VM lives. */
static void beside_another(struct bench_subject *subjects, struct bench_report *report) {
    struct floor_vm *another = floor_vm_new();

    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio_row(report, "create_beside_another_vm", "from a snapshot", &subjects[MEMORY],
                           &subjects[RAW]);
    bench_report_ratio_row(report, "create_beside_another_vm", "from a file", &subjects[SAVED],
                           &subjects[RAW]);
    bench_free(subjects, SUBJECTS);
    floor_vm_free(another);
}

void bench_create_from(const struct bench_paths *paths, struct bench_report *report) {
    struct bench_guest guest = bench_guest_open(paths->bench_guests, "dirty", "dirty", NULL);
    struct floor_create *raw = floor_create_new((size_t)ROUNDS * BATCH);
    struct saved saved;
    struct bench_subject subjects[SUBJECTS] = {
        [RAW] = {.once = floor_create_once, .processor_ns = bench_processor_ns, .context = raw},
        [MEMORY] = {.once = from_memory_once, .processor_ns = bench_processor_ns, .context = &guest},
        [SAVED] = {.once = from_file_once, .processor_ns = bench_processor_ns, .context = &saved},
    };
    const struct bench_floor floor = {&subjects[RAW], 1};

    bench_guest_warm(&guest);
    save(&saved, &guest);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "create.from_snapshot_ratio", &subjects[MEMORY], floor, 1.4);
    bench_report_ratio(report, "create.from_file_ratio", &subjects[SAVED], floor, 1.6);
    bench_free(subjects, SUBJECTS);
    beside_another(subjects, report);
    saved_remove(&saved);
    floor_create_free(raw);
    bench_guest_close(&guest);
}
