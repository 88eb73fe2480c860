/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the benchmarks of tracing share: sandboxes of guests/trace.c, and loops that this guest times itself.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <pinhole/trace.h>

#include "bench.h"

/* How a guest is traced. */
struct trace_way {
    bool traced;
    bool synchronous; /* no worker: records are decoded at the end of a call */
    ph_trace_policy policy;
};

/* A sandbox of guests/trace.c with a tracer of its own that has no sinks: (tracer) is NULL without one. */
struct trace_guest {
    ph_image *image;
    ph_tracer *tracer;
    ph_sandbox *sandbox;
};

struct trace_guest trace_guest_open(const struct bench_paths *paths, const struct trace_way *way);
void trace_guest_close(struct trace_guest *guest);

/* An export that does something (count) times and returns how many cycles that took. */
struct trace_loop {
    ph_sandbox *sandbox;
    const ph_function *function;
    uint64_t count;
};

struct trace_loop trace_loop_of(const struct trace_guest *guest, const char *name, uint64_t count);

/* Runs it. For bench_subject; (context) is a struct trace_loop. */
uint64_t trace_loop_once(void *context);

/* Records that a loop of begins may write: less than the default ring holds, and no deeper than spans may be.
 */
#define TRACE_RECORDS 4000u

#endif
