/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measuring encoders of spans, for the benchmarks of export: how many spans a second, beside writing the
 * bytes that they come to. Both are processor time, the kernel's included: an encoder waits for nothing, and
 * a busy machine does not show.
 */
#ifndef BENCH_ENCODING_H
#define BENCH_ENCODING_H

#include "bench.h"
#include "spans.h"

/* Trees of spans in a turn. */
#define ENCODING_TREES 200u

struct encoding {
    const char *name; /* of its lines in the tables */
    const char *key;  /* NULL: it is in the tables alone */
    double reach;     /* of the key, thousands of spans a second */
    /* Encodes ENCODING_TREES trees and returns how much processor time that took. For bench_subject. */
    uint64_t (*once)(void *context);
    void *context;
    /* What that comes to. */
    const uint8_t *bytes;
    size_t size;
};

/* Runs it in turns with a write of its bytes to a new file in (folder), and reports its rate, its bytes a
 * span, and the ratio of the two. */
void encoding_measure(const struct encoding *encoding, const char *folder, struct bench_report *report);

/* Adds a line to the table export_rate: (subject) takes so long for ENCODING_TREES trees. */
void encoding_report_rate(const char *name, const struct bench_subject *subject, struct bench_report *report);

#endif
