/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How many spans a second does each format take, on one core? Spans with two attributes (spans.h), from the
 * opening of the sink to its closing, to a file in memory. The floor is writing the bytes that this came to
 * once more, to another file there, 64 KiB at a time.
 *
 * Both are processor time, the kernel's included: an encoder waits for nothing, and a busy machine does not
 * show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats.h"
#include "spans.h"

#define ROUNDS 15u
#define BATCH 3u
#define TREES 200u
#define WRITE_BYTES 65536u

/* One format, and what it wrote in its first turn. */
struct encoder {
    const struct format *format;
    char path[PATH_SIZE];
    char copy[PATH_SIZE];
    uint8_t *bytes;
    size_t size;
};

static uint64_t encode_once(void *context) {
    const struct encoder *encoder = context;
    struct spans spans = {0};
    uint64_t start = bench_processor_ns(NULL);

    ph_sink sink = format_open(encoder->format, encoder->path);
    spans_give(&spans, TREES, sink.span, sink.context);
    sink.close(sink.context);
    uint64_t end = bench_processor_ns(NULL);
    format_remove(encoder->format, encoder->path);
    return end - start;
}

static uint64_t write_once(void *context) {
    const struct encoder *encoder = context;
    uint64_t start = bench_processor_ns(NULL);
    int file = open(encoder->copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    for (size_t at = 0; at < encoder->size; at += WRITE_BYTES) {
        size_t part = encoder->size - at < WRITE_BYTES ? encoder->size - at : WRITE_BYTES;
        if (write(file, encoder->bytes + at, part) != (ssize_t)part)
            bench_fail("%s: %s", encoder->copy, strerror(errno));
    }
    close(file);
    uint64_t end = bench_processor_ns(NULL);
    unlink(encoder->copy);
    return end - start;
}

static void no_span(void *context, const ph_trace_span *span) {
    *(uint64_t *)context += span->id;
}

/* Making the spans alone, which is in all numbers here. */
static uint64_t make_once(void *context) {
    struct spans spans = {0};
    uint64_t start = bench_processor_ns(NULL);

    spans_give(&spans, TREES, no_span, context);
    return bench_processor_ns(NULL) - start;
}

/* Keeps what one turn of (encoder) writes. */
static void keep_bytes(struct encoder *encoder) {
    char path[PATH_SIZE];
    struct spans spans = {0};
    struct stat information;
    ph_sink sink = format_open(encoder->format, encoder->path);

    spans_give(&spans, TREES, sink.span, sink.context);
    sink.close(sink.context);
    format_file(encoder->format, encoder->path, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &information) != 0 || information.st_size == 0)
        bench_fail("%s: there is nothing in it", path);
    encoder->size = (size_t)information.st_size;
    encoder->bytes = malloc(encoder->size);
    if (!encoder->bytes || read(file, encoder->bytes, encoder->size) != information.st_size)
        bench_fail("%s: not all of it could be read", path);
    close(file);
    format_remove(encoder->format, encoder->path);
}

/* Thousands of spans a second, one a round of (subject). */
static double *rates_of(const struct bench_subject *subject) {
    double *rates = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        rates[i] = (double)TREES * SPANS_IN_TREE * 1e6 / subject->wall[i];
    return rates;
}

static void report_key(struct bench_report *report, const struct format *format,
                       const struct bench_subject *encoding, const struct bench_subject *writing) {
    static const struct {
        const char *format, *key;
        double reach;
    } keys[] = {
        {"perfetto", "export.perfetto_kspan_s", 1000},
        {"chrome", "export.chrome_kspan_s", 500},
        {"ctf", "export.ctf_kspan_s", 500},
        {"folded", "export.folded_kspan_s", 500},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i].format, format->name) != 0)
            continue;
        double *rates = rates_of(encoding);
        double *floors = bench_numbers(writing->rounds);
        memcpy(floors, writing->wall, writing->rounds * sizeof *floors);
        bench_report_number(report,
                            &(struct bench_number){.key = keys[i].key,
                                                   .unit = "k/s",
                                                   .values = rates,
                                                   .count = encoding->rounds,
                                                   .floor_us = bench_median(floors, writing->rounds) / 1000,
                                                   .reach = keys[i].reach,
                                                   .goal = BENCH_AT_LEAST});
        free(floors);
        free(rates);
    }
}

static void report_rows(struct bench_report *report, const struct encoder *encoder,
                        const struct bench_subject *encoding, const struct bench_subject *writing) {
    const char *name = encoder->format->name;
    double size = (double)encoder->size / (TREES * SPANS_IN_TREE);
    double *rates = rates_of(encoding);

    bench_report_row(report, "export_rate", name, "k/s", rates, encoding->rounds);
    bench_report_row(report, "export_size", name, "B/span", &size, 1);
    bench_report_ratio_row(report, "export_over_writing", name, encoding, writing);
    free(rates);
}

static void measure(const struct format *format, const char *folder, struct bench_report *report) {
    struct encoder encoder = {.format = format};
    enum { WRITE, ENCODE, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [WRITE] = {.once = write_once, .context = &encoder},
        [ENCODE] = {.once = encode_once, .context = &encoder},
    };

    snprintf(encoder.path, sizeof encoder.path, "%.64s/trace", folder);
    snprintf(encoder.copy, sizeof encoder.copy, "%.64s/copy", folder);
    keep_bytes(&encoder);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    report_rows(report, &encoder, &subjects[ENCODE], &subjects[WRITE]);
    report_key(report, format, &subjects[ENCODE], &subjects[WRITE]);
    bench_free(subjects, SUBJECTS);
    free(encoder.bytes);
}

static void measure_making(struct bench_report *report) {
    uint64_t sum = 0;
    struct bench_subject subject = {.once = make_once, .context = &sum};

    bench_run(&subject, 1, ROUNDS, BATCH);
    double *rates = rates_of(&subject);
    bench_report_row(report, "export_rate", "making the spans, no sink", "k/s", rates, subject.rounds);
    free(rates);
    bench_free(&subject, 1);
}

void bench_export_speed(const struct bench_paths *paths, struct bench_report *report) {
    char folder[PATH_SIZE];

    (void)paths;
    folder_make(folder);
    measure_making(report);
    for (size_t i = 0; i < format_count; i++)
        measure(&formats[i], folder, report);
    folder_remove(folder);
}
