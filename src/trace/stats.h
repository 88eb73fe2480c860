/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Counts of a tracer for whoever watches it.
 */
#ifndef PH_TRACE_STATS_H
#define PH_TRACE_STATS_H

#include <pinhole/trace.h>

/* As ph_tracer_stats, and how many bytes wait in the queues of all its streams. Never waits for a sink. All
 * 0 in a child of the process that made it. */
void ph__tracer_look(ph_tracer *tracer, ph_trace_stats *stats, uint64_t *queued);

#endif
