/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The report itself, for main.c alone: made before the first benchmark, printed and written after the last.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench.h"

struct bench_report *bench_report_new(void);

/* Prints every number and every table to stdout. */
void bench_report_print(const struct bench_report *report);

/* Writes the JSON file at (path): one object, key -> value, min, max, unit, floor (the median of the floor,
 * in microseconds), reach and goal; and under "tables" the tables. */
void bench_report_write(const struct bench_report *report, const char *path);

void bench_report_free(struct bench_report *report);

#endif
