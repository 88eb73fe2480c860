/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measuring, shared by every benchmark: subjects that take turns, so that what the machine does meanwhile
 * hits all of them alike; and the report, a table for people and a JSON file for programs.
 *
 * A subject is timed in small batches. A round gives each subject one batch, each round in another order, and
 * takes the median of its batch. What is reported is the median over the rounds of the ratio (or the
 * difference) within a round, with the smallest and the largest.
 *
 * Time is what a clock on the wall says. On a busy machine that is also what others did meanwhile; where a
 * turn is long enough to be asked, its processor time is reported beside it.
 *
 * A benchmark that cannot go on says why on stderr and ends the program: it is no part of the library.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include <pinhole/pinhole.h>

/* Where the guests are, from the command line. */
struct bench_paths {
    const char *guests;       /* the example guests, build/guests */
    const char *bench_guests; /* those of bench/guests */
};

struct bench_report;

/* The questions, one file each. */
void bench_call(const struct bench_paths *paths, struct bench_report *report);
void bench_create(const struct bench_paths *paths, struct bench_report *report);
void bench_create_from(const struct bench_paths *paths, struct bench_report *report);
void bench_greedy(const struct bench_paths *paths, struct bench_report *report);
void bench_restore(const struct bench_paths *paths, struct bench_report *report);
void bench_memory(const struct bench_paths *paths, struct bench_report *report);
void bench_interrupt(const struct bench_paths *paths, struct bench_report *report);
void bench_pool(const struct bench_paths *paths, struct bench_report *report);
void bench_compute(const struct bench_paths *paths, struct bench_report *report);
void bench_trace(const struct bench_paths *paths, struct bench_report *report);
void bench_trace_drain(const struct bench_paths *paths, struct bench_report *report);
void bench_trace_decode(const struct bench_paths *paths, struct bench_report *report);
void bench_trace_policy(const struct bench_paths *paths, struct bench_report *report);
void bench_trace_lttng(const struct bench_paths *paths, struct bench_report *report);
void bench_soft(const struct bench_paths *paths, struct bench_report *report);
void bench_export_otlp(const struct bench_paths *paths, struct bench_report *report);
void bench_export_speed(const struct bench_paths *paths, struct bench_report *report);
void bench_export_call(const struct bench_paths *paths, struct bench_report *report);
void bench_export_memory(const struct bench_paths *paths, struct bench_report *report);

/* ---- measuring ----------------------------------------------------------------------------------------- */

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);

/* (cycles) of the time-stamp counter as nanoseconds. The first turn takes 20 ms to see how fast it counts. */
double bench_cycles_ns(uint64_t cycles);

/* Nanoseconds of processor time that this thread has had, its vCPU included. For bench_subject. */
uint64_t bench_processor_ns(void *context);

/* One thing that is measured. */
struct bench_subject {
    /* Does it once and returns how many nanoseconds that took, without what belongs to setting it up. */
    uint64_t (*once)(void *context);
    /* Processor time that it has had so far, or NULL: it is not asked for then. */
    uint64_t (*processor_ns)(void *context);
    void *context;
    /* Medians, one a round, in nanoseconds; allocated by bench_run and freed by bench_free. */
    double *wall;
    double *processor; /* NULL without processor_ns */
    size_t rounds;
};

/* Runs (rounds) rounds of (batch) turns for each of the (count) subjects. */
void bench_run(struct bench_subject *subjects, size_t count, size_t rounds, size_t batch);
void bench_free(struct bench_subject *subjects, size_t count);

/* Room for (count) numbers, all 0; the caller frees it. */
double *bench_numbers(size_t count);

/* Sorts the (count) numbers at (values), of which there is at least one, and returns the middle one. */
double bench_median(double *values, size_t count);

/* ---- reporting ----------------------------------------------------------------------------------------- */

/* What a number is compared to: (times) turns of (floor). */
struct bench_floor {
    const struct bench_subject *subject;
    double times;
};

/* Reports how many times as long as its floor (subject) takes, under (key), and in the table "processor_time"
 * the same for that. (reach) is what it should not exceed. */
void bench_report_ratio(struct bench_report *report, const char *key, const struct bench_subject *subject,
                        struct bench_floor floor, double reach);

/* Reports how many microseconds (subject) takes more than its floor, under (key). */
void bench_report_added(struct bench_report *report, const char *key, const struct bench_subject *subject,
                        struct bench_floor floor, double reach);

/* What a number should be beside its reach. */
enum bench_goal { BENCH_AT_MOST, BENCH_AT_LEAST, BENCH_NO_GOAL };

/* A number that is neither of the two above. */
struct bench_number {
    const char *key;
    const char *unit;
    double *values; /* one a round, (count) of them, of which there is at least one; they are sorted */
    size_t count;
    double floor_us; /* 0: it has none */
    double reach;
    enum bench_goal goal;
};

/* Reports median, smallest and largest of (number)'s values. */
void bench_report_number(struct bench_report *report, const struct bench_number *number);

/* Adds a line to the table (table): what it is, and the median, smallest and largest of (count) numbers at
 * (values), which are sorted. */
void bench_report_row(struct bench_report *report, const char *table, const char *what, const char *unit,
                      double *values, size_t count);

/* Adds the line (what) to the table (table): how many times as long as (floor) (subject) takes. */
void bench_report_ratio_row(struct bench_report *report, const char *table, const char *what,
                            const struct bench_subject *subject, const struct bench_subject *floor);

/* Ends the program with a message. */
__attribute__((noreturn)) void bench_fail(const char *format, ...) PH_PRINTF(1, 2);

/* Ends the program when (status) is a failure of (what); (error) may be NULL. */
void bench_check(ph_status status, const char *what, const ph_error *error);

/* The image at (folder)/(name). */
ph_image *bench_open(const char *folder, const char *name);

/* The export (name), which must be there. */
const ph_function *bench_export(const ph_image *image, const char *name);

#endif
