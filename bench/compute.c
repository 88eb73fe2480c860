/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How fast does a guest compute? The same static file runs natively and in a sandbox (guests/sqlite_work.c
 * and guests/deflate_work.c), each a second's work at a time. The first turn of both, in which memory is
 * touched for the first time, is told apart in the table: there a VM pays for page faults what a process does
 * not.
 */
#include <stdio.h>

#include "floor.h"

#define ROUNDS 15u

struct work {
    ph_sandbox *sandbox;
    const ph_function *function;
    uint64_t result;
};

static uint64_t work_once(void *context) {
    struct work *work = context;
    ph_value result;
    uint64_t start = bench_now_ns();

    bench_check(ph_call(work->sandbox, work->function, NULL, 0, &result), "work",
                ph_sandbox_error(work->sandbox));
    work->result = result.u64;
    return bench_now_ns() - start;
}

enum { NATIVE, SANDBOX, SUBJECTS };

/* Measures (guest) and reports the ratio as (key), and the first turns as (native_first, sandbox_first). */
static void measure(const struct bench_paths *paths, struct bench_report *report, const char *guest,
                    const char *key, const char *native_first, const char *sandbox_first) {
    ph_image *image = bench_open(paths->bench_guests, guest);
    ph_config config = PH_CONFIG_INIT;
    struct work work = {.function = bench_export(image, "work")};
    char path[4096];
    ph_error error;

    snprintf(path, sizeof path, "%s/%s", paths->bench_guests, guest);
    struct floor_native *native = floor_native_new(path, NULL);
    config.memory = 256ull << 20;
    bench_check(ph_sandbox_create(image, &config, &work.sandbox, &error), "a sandbox", &error);
    bench_check(ph_sandbox_start(work.sandbox), "starting", ph_sandbox_error(work.sandbox));

    struct bench_subject subjects[SUBJECTS] = {
        [NATIVE] = {.once = floor_native_once, .processor_ns = floor_native_processor_ns, .context = native},
        [SANDBOX] = {.once = work_once, .processor_ns = bench_processor_ns, .context = &work},
    };
    double first[SUBJECTS];
    for (size_t i = 0; i < SUBJECTS; i++)
        first[i] = (double)subjects[i].once(subjects[i].context) / 1e6;
    bench_run(subjects, SUBJECTS, ROUNDS, 1);
    if (work.result != floor_native_result(native))
        bench_fail("%s came to another result in the sandbox than natively", guest);
    bench_report_ratio(report, key, &subjects[SANDBOX], (struct bench_floor){&subjects[NATIVE], 1}, 1.05);
    bench_report_row(report, "compute", native_first, "ms", &first[NATIVE], 1);
    bench_report_row(report, "compute", sandbox_first, "ms", &first[SANDBOX], 1);
    bench_free(subjects, SUBJECTS);
    ph_sandbox_destroy(work.sandbox);
    floor_native_free(native);
    ph_image_close(image);
}

void bench_compute(const struct bench_paths *paths, struct bench_report *report) {
    measure(paths, report, "sqlite-work", "compute.sqlite_ratio", "sqlite: first turn, native",
            "sqlite: first turn, sandbox");
    measure(paths, report, "deflate-work", "compute.deflate_ratio", "deflate: first turn, native",
            "deflate: first turn, sandbox");
}
