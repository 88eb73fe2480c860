/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does a call cost, beside the exit that nobody can avoid? Three calls of guests/calls.c against the raw
 * round trip of floor.c: two integers, a string there and back, and one that calls the host on its way.
 */
#include <stdlib.h>
#include <string.h>

#include "floor.h"
#include "guest.h"

#define ROUNDS 60u
#define BATCH 200u
#define WARM_UP 1000u

/* One kind of call. */
struct call {
    ph_sandbox *sandbox;
    const ph_function *function;
    const ph_value *args;
    size_t count;
    ph_value expected;
};

static void check_result(const struct call *call, const ph_value *result) {
    bool same = call->expected.type == PH_STR ? strcmp(result->str, call->expected.str) == 0
                                              : result->i64 == call->expected.i64;

    if (result->type != call->expected.type || !same)
        bench_fail("`%s` gave a wrong answer", call->function->name);
}

static uint64_t call_once(void *context) {
    const struct call *call = context;
    ph_value result;
    uint64_t start = bench_now_ns();
    ph_status status = ph_call(call->sandbox, call->function, call->args, call->count, &result);
    uint64_t end = bench_now_ns();

    bench_check(status, call->function->name, ph_sandbox_error(call->sandbox));
    check_result(call, &result);
    return end - start;
}

static ph_sandbox *start(ph_image *image) {
    ph_sandbox *sandbox;
    ph_error error;

    bench_check(ph_sandbox_create(image, NULL, &sandbox, &error), "a sandbox", &error);
    bench_register_next(sandbox);
    bench_check(ph_sandbox_start(sandbox), "starting", ph_sandbox_error(sandbox));
    return sandbox;
}

enum { RAW, ADD, ECHO, ASK, SUBJECTS };

void bench_call(const struct bench_paths *paths, struct bench_report *report) {
    const ph_value numbers[] = {{.type = PH_I64, .i64 = 40}, {.type = PH_I64, .i64 = 2}};
    const ph_value text = {.type = PH_STR,
                           .str = "sixty-four bytes of text, one of which is this full stop: . Done."};
    ph_image *image = bench_open(paths->bench_guests, "calls");
    ph_sandbox *sandbox = start(image);
    struct floor_vm *raw = floor_vm_new();
    struct call add = {sandbox, bench_export(image, "add"), numbers, 2, {.type = PH_I64, .i64 = 42}};
    struct call echo = {sandbox, bench_export(image, "echo"), &text, 1, text};
    struct call ask = {sandbox, bench_export(image, "ask"), numbers, 1, {.type = PH_I64, .i64 = 41}};
    struct bench_subject subjects[SUBJECTS] = {
        [RAW] = {.once = floor_round_trip, .context = raw},
        [ADD] = {.once = call_once, .context = &add},
        [ECHO] = {.once = call_once, .context = &echo},
        [ASK] = {.once = call_once, .context = &ask},
    };
    const struct bench_floor one = {&subjects[RAW], 1};
    const struct bench_floor two = {&subjects[RAW], 2};

    for (size_t i = 0; i < WARM_UP; i++)
        for (size_t j = 0; j < SUBJECTS; j++)
            subjects[j].once(subjects[j].context);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "call.ratio", &subjects[ADD], one, 1.10);
    bench_report_added(report, "call.added_us", &subjects[ADD], one, 0.6);
    bench_report_ratio(report, "call.string_ratio", &subjects[ECHO], one, 1.15);
    bench_report_added(report, "call.string_added_us", &subjects[ECHO], one, 0.8);
    bench_report_ratio(report, "call.host_call_ratio", &subjects[ASK], two, 1.10);
    bench_report_added(report, "call.host_call_added_us", &subjects[ASK], two, 1.0);
    bench_free(subjects, SUBJECTS);
    floor_vm_free(raw);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}
