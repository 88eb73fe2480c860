/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does a sandbox cost that is made of a snapshot for a single call? Create, one call that writes no page
 * to speak of, destroy, against a raw VM that is made, run once and closed. As in create.c, a table tells the
 * ratio with another VM alive, which is how a host that makes such sandboxes mostly has it.
 */
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

enum { RAW, MEMORY, SUBJECTS };

/* Measures all again while another VM lives. */
static void beside_another(struct bench_subject *subjects, struct bench_report *report) {
    struct floor_vm *another = floor_vm_new();

    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio_row(report, "create_beside_another_vm", "from a snapshot", &subjects[MEMORY],
                           &subjects[RAW]);
    bench_free(subjects, SUBJECTS);
    floor_vm_free(another);
}

void bench_create_from(const struct bench_paths *paths, struct bench_report *report) {
    struct bench_guest guest = bench_guest_open(paths->bench_guests, "dirty", "dirty", NULL);
    struct floor_create *raw = floor_create_new((size_t)ROUNDS * BATCH);
    struct bench_subject subjects[SUBJECTS] = {
        [RAW] = {.once = floor_create_once, .processor_ns = bench_processor_ns, .context = raw},
        [MEMORY] = {.once = from_memory_once, .processor_ns = bench_processor_ns, .context = &guest},
    };
    const struct bench_floor floor = {&subjects[RAW], 1};

    bench_guest_warm(&guest);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "create.from_snapshot_ratio", &subjects[MEMORY], floor, 1.4);
    bench_free(subjects, SUBJECTS);
    beside_another(subjects, report);
    floor_create_free(raw);
    bench_guest_close(&guest);
}
