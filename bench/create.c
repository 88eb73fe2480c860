/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does a sandbox cost that is made for a single call? Create, start, one call, destroy, of the example
 * guest `hello` with musl and with glibc, against a raw VM that is made, run once and closed. Its call calls
 * the host once, so that the guest is left three times where the floor is left once.
 *
 * The first VM of a machine and the last one turn parts of KVM on and off (static keys), which costs a floor
 * as much as it costs a sandbox, and so makes ratios smaller. A table tells the ratios with another VM alive.
 */
#include <stdlib.h>

#include "floor.h"
#include "guest.h"

#define ROUNDS 40u
#define BATCH 8u
#define TURNS (ROUNDS * BATCH)

enum step { CREATE, START, CALL, DESTROY, STEPS };

/* One guest. */
struct cold {
    struct bench_guest guest;
    size_t turns;
    double steps[STEPS][TURNS]; /* microseconds */
};

static uint64_t cold_once(void *context) {
    const ph_value name = {.type = PH_STR, .str = "bench"};
    struct cold *cold = context;
    ph_sandbox *sandbox;
    ph_error error;
    uint64_t times[STEPS + 1];

    times[CREATE] = bench_now_ns();
    bench_check(ph_sandbox_create(cold->guest.image, NULL, &sandbox, &error), "a sandbox", &error);
    cold->guest.prepare(sandbox);
    times[START] = bench_now_ns();
    bench_check(ph_sandbox_start(sandbox), "starting", ph_sandbox_error(sandbox));
    times[CALL] = bench_now_ns();
    bench_guest_call(&cold->guest, sandbox, &name);
    times[DESTROY] = bench_now_ns();
    ph_sandbox_destroy(sandbox);
    times[STEPS] = bench_now_ns();

    for (size_t i = 0; i < STEPS; i++)
        cold->steps[i][cold->turns % TURNS] = (double)(times[i + 1] - times[i]) / 1000;
    cold->turns++;
    return times[STEPS] - times[CREATE];
}

static struct cold *cold_new(const struct bench_paths *paths, const char *guest) {
    struct cold *cold = calloc(1, sizeof *cold);

    if (!cold)
        bench_fail("out of memory");
    cold->guest = bench_guest_open(paths->guests, guest, "greet", bench_register_weekday);
    return cold;
}

static void cold_free(struct cold *cold) {
    bench_guest_close(&cold->guest);
    free(cold);
}

static void report_steps(struct cold *cold, struct bench_report *report, const char *const names[STEPS]) {
    size_t turns = cold->turns < TURNS ? cold->turns : TURNS;

    for (size_t i = 0; i < STEPS; i++)
        bench_report_row(report, "create", names[i], "us", cold->steps[i], turns);
}

enum { RAW, MUSL, GLIBC, SUBJECTS };

/* Measures all again while another VM lives. */
static void beside_another(struct bench_subject *subjects, struct bench_report *report) {
    struct floor_vm *another = floor_vm_new();

    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio_row(report, "create_beside_another_vm", "hello-musl", &subjects[MUSL], &subjects[RAW]);
    bench_report_ratio_row(report, "create_beside_another_vm", "hello", &subjects[GLIBC], &subjects[RAW]);
    bench_free(subjects, SUBJECTS);
    floor_vm_free(another);
}

void bench_create(const struct bench_paths *paths, struct bench_report *report) {
    static const char *const musl_names[STEPS] = {"hello-musl: create", "hello-musl: start",
                                                  "hello-musl: call", "hello-musl: destroy"};
    static const char *const glibc_names[STEPS] = {"hello: create", "hello: start", "hello: call",
                                                   "hello: destroy"};
    struct floor_create *raw = floor_create_new(TURNS);
    struct cold *musl = cold_new(paths, "hello-musl");
    struct cold *glibc = cold_new(paths, "hello");
    struct bench_subject subjects[SUBJECTS] = {
        [RAW] = {.once = floor_create_once, .processor_ns = bench_processor_ns, .context = raw},
        [MUSL] = {.once = cold_once, .processor_ns = bench_processor_ns, .context = musl},
        [GLIBC] = {.once = cold_once, .processor_ns = bench_processor_ns, .context = glibc},
    };
    const struct bench_floor floor = {&subjects[RAW], 1};

    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "create.cold_ratio", &subjects[MUSL], floor, 1.6);
    bench_report_ratio(report, "create.cold_glibc_ratio", &subjects[GLIBC], floor, 4.0);
    floor_create_report(raw, report, "create");
    report_steps(musl, report, musl_names);
    report_steps(glibc, report, glibc_names);
    bench_free(subjects, SUBJECTS);
    beside_another(subjects, report);
    cold_free(glibc);
    cold_free(musl);
    floor_create_free(raw);
}
