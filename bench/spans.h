/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Trees of spans for the benchmarks of sinks, as a tracer would hand them over: a call, the guest's part of
 * it, 14 stages in that, 6 steps in each stage. Those are 100 spans of 100 stacks, each with a place in the
 * source and two attributes: an i64 and a string of 15 bytes, neither the same from one span to the next.
 */
#ifndef BENCH_SPANS_H
#define BENCH_SPANS_H

#include <pinhole/trace.h>

#include "bench.h"

#define SPANS_IN_TREE 100u

/* Who they go to: a function of a sink, or one like it. */
typedef void spans_take(void *context, const ph_trace_span *span);

/* The next tree to make. Zeroed to begin with. */
struct spans {
    uint64_t trees;
};

/* Makes (count) trees and hands each span to (take), in the order in which they end. */
void spans_give(struct spans *spans, uint64_t count, spans_take *take, void *context);

#endif
