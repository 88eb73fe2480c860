/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measuring encoders of spans (encoding.h).
 */
#include "encoding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats.h"

#define ROUNDS 15u
#define BATCH 3u
#define WRITE_BYTES 65536u

struct writing {
    char path[PATH_SIZE];
    const struct encoding *encoding;
};

/* 64 KiB at a time. */
static uint64_t write_once(void *context) {
    const struct writing *writing = context;
    const struct encoding *encoding = writing->encoding;
    uint64_t start = bench_processor_ns(NULL);
    int file = open(writing->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    for (size_t at = 0; at < encoding->size; at += WRITE_BYTES) {
        size_t part = encoding->size - at < WRITE_BYTES ? encoding->size - at : WRITE_BYTES;
        if (write(file, encoding->bytes + at, part) != (ssize_t)part)
            bench_fail("%s: %s", writing->path, strerror(errno));
    }
    close(file);
    uint64_t end = bench_processor_ns(NULL);
    unlink(writing->path);
    return end - start;
}

/* Thousands of spans a second, one a round of (subject). */
static double *rates_of(const struct bench_subject *subject) {
    double *rates = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        rates[i] = (double)ENCODING_TREES * SPANS_IN_TREE * 1e6 / subject->wall[i];
    return rates;
}

void encoding_report_rate(const char *name, const struct bench_subject *subject,
                          struct bench_report *report) {
    double *rates = rates_of(subject);

    bench_report_row(report, "export_rate", name, "k/s", rates, subject->rounds);
    free(rates);
}

static void report_key(const struct encoding *encoding, const struct bench_subject *encode,
                       const struct bench_subject *floor, struct bench_report *report) {
    double *rates = rates_of(encode);
    double *floors = bench_numbers(floor->rounds);

    memcpy(floors, floor->wall, floor->rounds * sizeof *floors);
    bench_report_number(report, &(struct bench_number){.key = encoding->key,
                                                       .unit = "k/s",
                                                       .values = rates,
                                                       .count = encode->rounds,
                                                       .floor_us = bench_median(floors, floor->rounds) / 1000,
                                                       .reach = encoding->reach,
                                                       .goal = BENCH_AT_LEAST});
    free(floors);
    free(rates);
}

void encoding_measure(const struct encoding *encoding, const char *folder, struct bench_report *report) {
    struct writing writing = {.encoding = encoding};
    double size = (double)encoding->size / (ENCODING_TREES * SPANS_IN_TREE);
    enum { WRITE, ENCODE, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [WRITE] = {.once = write_once, .context = &writing},
        [ENCODE] = {.once = encoding->once, .context = encoding->context},
    };

    snprintf(writing.path, sizeof writing.path, "%.64s/copy", folder);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    encoding_report_rate(encoding->name, &subjects[ENCODE], report);
    bench_report_row(report, "export_size", encoding->name, "B/span", &size, 1);
    bench_report_ratio_row(report, "export_over_writing", encoding->name, &subjects[ENCODE],
                           &subjects[WRITE]);
    if (encoding->key)
        report_key(encoding, &subjects[ENCODE], &subjects[WRITE], report);
    bench_free(subjects, SUBJECTS);
}
