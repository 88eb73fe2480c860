/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does the soft backend cost beside the Unicorn Engine alone? A loop of a compressor, the same machine
 * code in both; a call of two integers beside a bare start and stop; and a restore of 64 pages beside copying
 * them. Three more loops have no goal: one of stores, of which a call has many; one without any; and the
 * smallest that there is, where the hook at the start of each block of code costs the most.
 */
#include <stdio.h>

#include "bench.h"

#ifdef BENCH_SOFT

#include "floor_soft.h"
#include "restored.h"

#define PAGES 64u

/* ---- computing ----------------------------------------------------------------------------------------- */

#define LOOP_ROUNDS 40u
#define LOOP_BATCH 3u

struct loop {
    ph_sandbox *sandbox;
    const ph_function *function;
    ph_value rounds;
    uint64_t result;
};

static uint64_t loop_once(void *context) {
    struct loop *loop = context;
    ph_value result;
    uint64_t start = bench_now_ns();

    bench_check(ph_call(loop->sandbox, loop->function, &loop->rounds, 1, &result), loop->function->name,
                ph_sandbox_error(loop->sandbox));
    loop->result = result.u64;
    return bench_now_ns() - start;
}

/* A loop of guests/loops.c, and the lines that it gets: (key) is NULL where there is no goal. */
struct kind {
    const char *function, *key, *what, *ours, *alone;
    uint64_t rounds;
};

static uint64_t count_instructions(const struct bench_paths *paths, const struct kind *kind) {
    struct floor_soft_program *program = floor_soft_program_new(paths->bench_guests, "loops");
    struct floor_soft_run run = {program, kind->function, kind->rounds, 0};

    uint64_t count = floor_soft_count(&run);
    floor_soft_program_free(program);
    return count;
}

static void report_mips(struct bench_report *report, const char *what, const struct bench_subject *subject,
                        uint64_t instructions) {
    double values[LOOP_ROUNDS];

    for (size_t i = 0; i < LOOP_ROUNDS; i++)
        values[i] = (double)instructions * 1000 / subject->wall[i];
    bench_report_row(report, "soft", what, "MIPS", values, LOOP_ROUNDS);
}

static void measure_loop(const struct bench_paths *paths, struct bench_report *report,
                         const struct kind *kind, struct loop loop) {
    struct floor_soft_program *program = floor_soft_program_new(paths->bench_guests, "loops");
    struct floor_soft_run run = {program, kind->function, kind->rounds, 0};
    enum { ALONE, OURS, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [ALONE] = {.once = floor_soft_once, .processor_ns = bench_processor_ns, .context = &run},
        [OURS] = {.once = loop_once, .processor_ns = bench_processor_ns, .context = &loop},
    };
    double ratios[LOOP_ROUNDS];

    bench_run(subjects, SUBJECTS, 1, 1);
    bench_free(subjects, SUBJECTS);
    bench_run(subjects, SUBJECTS, LOOP_ROUNDS, LOOP_BATCH);
    if (run.result != loop.result)
        bench_fail("`%s` came to another result in Unicorn alone", kind->function);
    const uint64_t instructions = count_instructions(paths, kind);
    report_mips(report, kind->alone, &subjects[ALONE], instructions);
    report_mips(report, kind->ours, &subjects[OURS], instructions);
    for (size_t i = 0; i < LOOP_ROUNDS; i++)
        ratios[i] = subjects[ALONE].processor[i] / subjects[OURS].processor[i];
    bench_report_row(report, kind->key ? "processor_time" : "soft", kind->what, "ratio", ratios, LOOP_ROUNDS);
    for (size_t i = 0; i < LOOP_ROUNDS; i++)
        ratios[i] = subjects[ALONE].wall[i] / subjects[OURS].wall[i];
    if (kind->key)
        bench_report_number(report, &(struct bench_number){
                                        .key = kind->key,
                                        .unit = "ratio",
                                        .values = ratios,
                                        .count = LOOP_ROUNDS,
                                        .floor_us = bench_median(subjects[ALONE].wall, LOOP_ROUNDS) / 1000,
                                        .reach = 0.9,
                                        .goal = BENCH_AT_LEAST,
                                    });
    bench_free(subjects, SUBJECTS);
    floor_soft_program_free(program);
}

static struct bench_guest open_guest(const struct bench_paths *paths, const char *name, const char *function,
                                     void (*prepare)(ph_sandbox *sandbox)) {
    struct bench_guest guest = bench_guest_open(paths->bench_guests, name, function, prepare);

    guest.backend = PH_BACKEND_SOFT;
    bench_guest_warm(&guest);
    return guest;
}

static void measure_loops(const struct bench_paths *paths, struct bench_report *report) {
    static const struct kind kinds[] = {
        {"matches", "soft.mips_ratio", "soft.mips_ratio", "loop of a compressor",
         "loop of a compressor, Unicorn alone", 1},
        {"stores", NULL, "loop of stores, beside Unicorn alone", "loop of stores",
         "loop of stores, Unicorn alone", 1},
        {"checksum", NULL, "loop without a store, beside Unicorn alone", "loop without a store",
         "loop without a store, Unicorn alone", 10},
        {"spin", NULL, "loop of two instructions, beside Unicorn alone", "loop of two instructions",
         "loop of two instructions, Unicorn alone", 50},
    };
    struct bench_guest guest = open_guest(paths, "loops", "matches", NULL);
    ph_sandbox *sandbox = bench_guest_sandbox(&guest);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        measure_loop(paths, report, &kinds[i],
                     (struct loop){
                         .sandbox = sandbox,
                         .function = bench_export(guest.image, kinds[i].function),
                         .rounds = {.type = PH_U64, .u64 = kinds[i].rounds},
                     });
    ph_sandbox_destroy(sandbox);
    bench_guest_close(&guest);
}

/* ---- calling ------------------------------------------------------------------------------------------- */

#define CALL_ROUNDS 40u
#define CALL_BATCH 500u

struct call {
    ph_sandbox *sandbox;
    const ph_function *function;
};

static uint64_t call_once(void *context) {
    const struct call *call = context;
    const ph_value numbers[] = {{.type = PH_I64, .i64 = 40}, {.type = PH_I64, .i64 = 2}};
    ph_value result;
    uint64_t start = bench_now_ns();
    ph_status status = ph_call(call->sandbox, call->function, numbers, 2, &result);
    uint64_t end = bench_now_ns();

    bench_check(status, "add", ph_sandbox_error(call->sandbox));
    if (result.i64 != 42)
        bench_fail("`add` gave a wrong answer");
    return end - start;
}

static void measure_call(const struct bench_paths *paths, struct bench_report *report) {
    struct bench_guest guest = open_guest(paths, "calls", "add", bench_register_next);
    struct floor_soft_exit *exit = floor_soft_exit_new();
    struct call call = {bench_guest_sandbox(&guest), guest.function};
    enum { ALONE, OURS, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [ALONE] = {.once = floor_soft_exit_once, .context = exit},
        [OURS] = {.once = call_once, .context = &call},
    };

    bench_run(subjects, SUBJECTS, CALL_ROUNDS, CALL_BATCH);
    bench_report_ratio(report, "soft.call_us_ratio", &subjects[OURS],
                       (struct bench_floor){&subjects[ALONE], 1}, 3);
    for (size_t i = 0; i < CALL_ROUNDS; i++)
        subjects[OURS].wall[i] /= 1000;
    bench_report_row(report, "soft", "call of two i64", "us", subjects[OURS].wall, CALL_ROUNDS);
    bench_free(subjects, SUBJECTS);
    floor_soft_exit_free(exit);
    ph_sandbox_destroy(call.sandbox);
    bench_guest_close(&guest);
}

/* ---- restoring ----------------------------------------------------------------------------------------- */

#define RESTORE_ROUNDS 40u
#define RESTORE_BATCH 50u

static void measure_restore(const struct bench_paths *paths, struct bench_report *report) {
    struct bench_guest guest = open_guest(paths, "dirty", "dirty", NULL);
    struct restored restored;
    enum { LEFT, PUT_BACK, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [LEFT] = {.once = restored_floor_once, .context = &restored},
        [PUT_BACK] = {.once = restored_once, .context = &restored},
    };

    restored_open(&restored, &guest, (ph_value){.type = PH_U32, .u32 = PAGES}, PAGES);
    bench_run(subjects, SUBJECTS, RESTORE_ROUNDS, RESTORE_BATCH);
    bench_report_ratio(report, "soft.restore_ratio", &subjects[PUT_BACK],
                       (struct bench_floor){&subjects[LEFT], 1}, 2);
    bench_free(subjects, SUBJECTS);
    restored_close(&restored);
    bench_guest_close(&guest);
}

void bench_soft(const struct bench_paths *paths, struct bench_report *report) {
    measure_loops(paths, report);
    measure_call(paths, report);
    measure_restore(paths, report);
}

#else

void bench_soft(const struct bench_paths *paths, struct bench_report *report) {
    (void)paths;
    (void)report;
    fputs("bench: the soft backend is left out: it was not built, for want of libunicorn-dev or by -Dsoft\n",
          stderr);
}

#endif
