/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How many spans a second does each format take, on one core? Spans with two attributes (spans.h), from the
 * opening of the sink to its closing, to a file in memory. The floor is writing the bytes that this came to
 * once more (encoding.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "encoding.h"
#include "formats.h"

#define MAKING_ROUNDS 15u
#define MAKING_BATCH 3u
#define CLOCK_ROUNDS 15u
#define CLOCK_TURNS 10000000u

static const struct {
    const char *format, *key;
    double reach;
} keys[] = {
    {"perfetto", "export.perfetto_kspan_s", 1000},
    {"chrome", "export.chrome_kspan_s", 500},
    {"ctf", "export.ctf_kspan_s", 500},
    {"folded", "export.folded_kspan_s", 500},
};

struct encoder {
    const struct format *format;
    char path[PATH_SIZE];
};

static void write_trace(const struct encoder *encoder) {
    struct spans spans = {0};
    ph_sink sink = format_open(encoder->format, encoder->path);

    spans_give(&spans, ENCODING_TREES, sink.span, sink.context);
    sink.close(sink.context);
}

static uint64_t encode_once(void *context) {
    const struct encoder *encoder = context;
    uint64_t start = bench_processor_ns(NULL);

    write_trace(encoder);
    uint64_t end = bench_processor_ns(NULL);
    format_remove(encoder->format, encoder->path);
    return end - start;
}

/* What one turn of (encoder) writes, (*size) bytes. To be freed. */
static uint8_t *bytes_of(const struct encoder *encoder, size_t *size) {
    char path[PATH_SIZE];
    struct stat information;

    write_trace(encoder);
    format_file(encoder->format, encoder->path, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &information) != 0 || information.st_size == 0)
        bench_fail("%s: there is nothing in it", path);
    *size = (size_t)information.st_size;
    uint8_t *bytes = malloc(*size);
    if (!bytes || read(file, bytes, *size) != information.st_size)
        bench_fail("%s: not all of it could be read", path);
    close(file);
    format_remove(encoder->format, encoder->path);
    return bytes;
}

static void measure(const struct format *format, const char *folder, struct bench_report *report) {
    struct encoder encoder = {.format = format};
    struct encoding encoding = {.name = format->name, .once = encode_once, .context = &encoder};

    snprintf(encoder.path, sizeof encoder.path, "%.64s/trace", folder);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i].format, format->name) == 0) {
            encoding.key = keys[i].key;
            encoding.reach = keys[i].reach;
        }
    uint8_t *bytes = bytes_of(&encoder, &encoding.size);
    encoding.bytes = bytes;
    encoding_measure(&encoding, folder, report);
    free(bytes);
}

/* ---- beside it ----------------------------------------------------------------------------------------- */

static void no_span(void *context, const ph_trace_span *span) {
    *(uint64_t *)context += span->id;
}

/* Making the spans alone, which is in all numbers here. */
static uint64_t make_once(void *context) {
    struct spans spans = {0};
    uint64_t start = bench_processor_ns(NULL);

    spans_give(&spans, ENCODING_TREES, no_span, context);
    return bench_processor_ns(NULL) - start;
}

static void measure_making(struct bench_report *report) {
    uint64_t sum = 0;
    struct bench_subject subject = {.once = make_once, .context = &sum};

    bench_run(&subject, 1, MAKING_ROUNDS, MAKING_BATCH);
    encoding_report_rate("making the spans, no sink", &subject, report);
    bench_free(&subject, 1);
}

/* How fast the core is meanwhile: a 32-bit multiplication that waits for the one before it takes three cycles
 * on the processors of the last ten years. */
static void measure_clock(struct bench_report *report) {
    double values[CLOCK_ROUNDS];

    for (size_t i = 0; i < CLOCK_ROUNDS; i++) {
        uint32_t product = (uint32_t)i;
        uint64_t start = bench_processor_ns(NULL);
        for (uint64_t turn = 0; turn < CLOCK_TURNS; turn++)
            __asm__ volatile("imul %0, %0" : "+r"(product));
        values[i] = 3.0 * CLOCK_TURNS / (double)(bench_processor_ns(NULL) - start);
    }
    bench_report_row(report, "export_rate", "the core's clock", "GHz", values, CLOCK_ROUNDS);
}

void bench_export_speed(const struct bench_paths *paths, struct bench_report *report) {
    char folder[PATH_SIZE];

    (void)paths;
    folder_make(folder);
    measure_clock(report);
    measure_making(report);
    for (size_t i = 0; i < format_count; i++)
        measure(&formats[i], folder, report);
    folder_remove(folder);
}
