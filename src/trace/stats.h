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

/* Who looks at a tracer as long as there is one. (ended) is called once, by ph_tracer_destroy, when the
 * counts are final and can still be looked at; the watch is then the caller's again. */
struct ph__tracer_watch {
    struct ph__tracer_watch *next; /* the tracer's; under its list_lock */
    void (*ended)(struct ph__tracer_watch *watch);
};

/* (watch) lives until it has ended, or is taken back. PH_E_FORKED in a child of the process that made
 * (tracer), whose locks may be held for ever there. */
ph_status ph__tracer_watch(ph_tracer *tracer, struct ph__tracer_watch *watch);
/* Takes (watch) back. False when it is too late for that: another thread is about to call (ended), and until
 * that has returned neither the tracer nor the watch may go. */
bool ph__tracer_unwatch(ph_tracer *tracer, struct ph__tracer_watch *watch);
/* Ends all watches of (tracer). */
void ph__tracer_watches_end(ph_tracer *tracer);

#endif
