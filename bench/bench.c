/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measuring and failing (bench.h). The report is in report.c.
 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

static int compare(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

double bench_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_run(struct bench_subject *subjects, size_t count, size_t rounds, size_t batch) {
    double *turns = calloc(batch, sizeof *turns);

    for (size_t i = 0; i < count; i++) {
        subjects[i].medians = calloc(rounds, sizeof *subjects[i].medians);
        subjects[i].rounds = rounds;
        if (!turns || !subjects[i].medians)
            bench_fail("out of memory");
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            /* Whoever follows whom changes from round to round. */
            struct bench_subject *subject = &subjects[round % 2 ? count - 1 - i : i];
            for (size_t turn = 0; turn < batch; turn++)
                turns[turn] = (double)subject->once(subject->context);
            subject->medians[round] = bench_median(turns, batch);
        }
    }
    free(turns);
}

void bench_free(struct bench_subject *subjects, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(subjects[i].medians);
}
