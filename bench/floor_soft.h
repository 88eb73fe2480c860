/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The floors of the soft backend: the Unicorn Engine alone, without libpinhole and without a hook that is not
 * needed. floor_soft.c lists each step by step.
 */
#ifndef BENCH_FLOOR_SOFT_H
#define BENCH_FLOOR_SOFT_H

#include "bench.h"

/* A static program's memory in an engine, and one function of it to be called. */
struct floor_soft_program;

/* The program at (folder)/(name). */
struct floor_soft_program *floor_soft_program_new(const char *folder, const char *name);
void floor_soft_program_free(struct floor_soft_program *program);

/* A call of (function), with (argument) as its only argument. */
struct floor_soft_run {
    struct floor_soft_program *program;
    const char *function;
    uint64_t argument;
    uint64_t result; /* what it has returned */
};

/* Calls it. For bench_subject; (context) is a struct floor_soft_run. */
uint64_t floor_soft_once(void *context);

/* How many instructions the call is, from the second one on. (run) has not been called yet, and is not timed
 * later: code that has been translated keeps its hooks, or does without. */
uint64_t floor_soft_count(struct floor_soft_run *run);

/* An engine with a guest that does `out` again and again. */
struct floor_soft_exit;

struct floor_soft_exit *floor_soft_exit_new(void);
void floor_soft_exit_free(struct floor_soft_exit *exit);

/* In, and out at the next `out`. For bench_subject; (context) is a struct floor_soft_exit. */
uint64_t floor_soft_exit_once(void *context);

#endif
