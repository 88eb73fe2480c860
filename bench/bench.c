/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measuring and failing (bench.h). The report is in report.c.
 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

void bench_fail(const char *format, ...) {
    va_list arguments;

    fputs("bench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void bench_check(ph_status status, const char *what, const ph_error *error) {
    if (status != PH_OK)
        bench_fail("%s: %s", what,
                   error && error->status == status ? error->message : ph_status_message(status));
}

ph_image *bench_open(const char *folder, const char *name) {
    char path[4096];
    ph_image *image;
    ph_error error;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    bench_check(ph_image_open(path, 0, &image, &error), path, &error);
    return image;
}

const ph_function *bench_export(const ph_image *image, const char *name) {
    const ph_function *function = ph_image_find_export(image, name);

    if (!function)
        bench_fail("a guest has no function `%s`", name);
    return function;
}

uint64_t bench_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define CALIBRATION_NS 20000000u

double bench_cycles_ns(uint64_t cycles) {
    static double ns_per_cycle;

    if (ns_per_cycle == 0) {
        uint64_t start_ns = bench_now_ns();
        uint64_t start = __rdtsc();
        uint64_t now_ns = start_ns;
        while (now_ns - start_ns < CALIBRATION_NS)
            now_ns = bench_now_ns();
        ns_per_cycle = (double)(now_ns - start_ns) / (double)(__rdtsc() - start);
    }
    return (double)cycles * ns_per_cycle;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

double bench_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

uint64_t bench_processor_ns(void *context) {
    struct timespec now;

    (void)context;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double *bench_numbers(size_t count) {
    double *numbers = calloc(count, sizeof *numbers);

    if (!numbers)
        bench_fail("out of memory");
    return numbers;
}

/* One batch of (subject): its times go to (wall) and (processor). */
static void take_turns(const struct bench_subject *subject, size_t batch, double *wall, double *processor) {
    for (size_t turn = 0; turn < batch; turn++) {
        uint64_t before = subject->processor_ns ? subject->processor_ns(subject->context) : 0;
        wall[turn] = (double)subject->once(subject->context);
        if (subject->processor_ns)
            processor[turn] = (double)(subject->processor_ns(subject->context) - before);
    }
}

void bench_run(struct bench_subject *subjects, size_t count, size_t rounds, size_t batch) {
    double *wall = bench_numbers(batch);
    double *processor = bench_numbers(batch);

    for (size_t i = 0; i < count; i++) {
        subjects[i].wall = bench_numbers(rounds);
        subjects[i].processor = subjects[i].processor_ns ? bench_numbers(rounds) : NULL;
        subjects[i].rounds = rounds;
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            /* Whoever follows whom changes from round to round. */
            struct bench_subject *subject = &subjects[round % 2 ? count - 1 - i : i];
            take_turns(subject, batch, wall, processor);
            subject->wall[round] = bench_median(wall, batch);
            if (subject->processor)
                subject->processor[round] = bench_median(processor, batch);
        }
    }
    free(wall);
    free(processor);
}

void bench_free(struct bench_subject *subjects, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(subjects[i].wall);
        free(subjects[i].processor);
    }
}
