/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What is counted, and the counting itself. Each sandbox has counts of its own, which only the thread that
 * uses it changes: an addition is a load and a store, without a lock and without a line of memory that other
 * sandboxes write to. Whoever reads adds up the counts of all sandboxes (metrics.c).
 *
 * Every function takes NULL counts, for a sandbox that nobody counts, and does nothing.
 */
#ifndef PH_METRICS_COUNTS_H
#define PH_METRICS_COUNTS_H

#include <stdatomic.h>
#include <x86intrin.h>

#include <pinhole/metrics.h>

/* Statuses by their place in PH_STATUS_MAP. */
enum ph__status_index {
#define PH__STATUS_INDEX(name, number, kind, message) PH__STATUS_##name,
    PH_STATUS_MAP(PH__STATUS_INDEX)
#undef PH__STATUS_INDEX
        PH__STATUSES
};

/* Exits as ph_call_stats counts them: X(name, word). */
#define PH__COUNTED_EXIT_MAP(X)                                                                              \
    X(OTHER, "other") /* 0: what is nothing else */                                                          \
    X(HOST_CALL, "host-call")                                                                                \
    X(WRITE, "write")                                                                                        \
    X(READ, "read")                                                                                          \
    X(SLEEP, "sleep")                                                                                        \
    X(PROTECT, "protect")                                                                                    \
    X(ZERO, "zero")                                                                                          \
    X(TRACE, "trace")                                                                                        \
    X(END, "end")                                                                                            \
    X(EXCEPTION, "exception")                                                                                \
    X(KICK, "kick")
enum ph__counted_exit {
#define PH__COUNTED_EXIT(name, word) PH__COUNTED_##name,
    PH__COUNTED_EXIT_MAP(PH__COUNTED_EXIT)
#undef PH__COUNTED_EXIT
        PH__COUNTED_EXITS
};

#define PH__SIGNALS (PH_EXPORT_METRICS + 1)
#define PH__DROP_CAUSES 4u

/* A histogram is its buckets, and behind them the sum of nanoseconds. */
#define PH__HISTOGRAM_CELLS (PH_METRIC_BUCKETS + 1)
#define PH__HISTOGRAM_SUM PH_METRIC_BUCKETS

/* A cell is one number. A name is that of the first of its cells. */
enum ph__cell {
    /* Histograms. What each call needs stands together. */
    PH__CELL_CALL = 0,
    PH__CELL_GUEST = PH__CELL_CALL + PH__HISTOGRAM_CELLS,
    PH__CELL_EXITS = PH__CELL_GUEST + PH__HISTOGRAM_CELLS, /* by enum ph__counted_exit */
    PH__CELL_OUTPUT = PH__CELL_EXITS + PH__COUNTED_EXITS,
    PH__CELL_HOST_FUNCTION_ERRORS,
    PH__CELL_HOST_FUNCTION,                                          /* histogram */
    PH__CELL_RESTORE = PH__CELL_HOST_FUNCTION + PH__HISTOGRAM_CELLS, /* histogram */
    PH__CELL_RESTORE_PAGES = PH__CELL_RESTORE + PH__HISTOGRAM_CELLS,
    PH__CELL_RESTORE_ERRORS,
    PH__CELL_START,                                       /* histogram */
    PH__CELL_RUN = PH__CELL_START + PH__HISTOGRAM_CELLS,  /* histogram */
    PH__CELL_ERRORS = PH__CELL_RUN + PH__HISTOGRAM_CELLS, /* by enum ph__status_index */
    PH__CELL_CREATIONS = PH__CELL_ERRORS + PH__STATUSES,
    PH__CELL_SENT,                                          /* by ph_export_signal */
    PH__CELL_EXPORT_FAILURES = PH__CELL_SENT + PH__SIGNALS, /* the same */
    PH__CELLS_COUNTED = PH__CELL_EXPORT_FAILURES + PH__SIGNALS,

    /* Nobody counts these: they follow from the others, or are asked of the tracer, when metrics are read. */
    PH__CELL_ACTIVE = PH__CELLS_COUNTED,
    PH__CELL_CALLS,
    PH__CELL_HOST_CALLS,
    PH__CELL_RESTORES,
    PH__CELL_TRACE_RECORDS,
    PH__CELL_TRACE_DROPPED, /* by cause: ring, queue, budget, nonsense */
    PH__CELL_TRACE_LOST = PH__CELL_TRACE_DROPPED + PH__DROP_CAUSES,
    PH__CELL_TRACE_QUEUE,
    PH__CELLS
};

/* The counts of one sandbox. */
struct ph__counts {
    ph_metrics *metrics;
    struct ph__counts *next, *previous; /* the list of (metrics); under its lock */
    uint64_t cycle_ns;                  /* nanoseconds of a cycle of the time-stamp counter, times 2^32 */
    _Atomic uint64_t cells[PH__CELLS_COUNTED];
};

/* metrics.c. Makes counts for one more sandbox, whose time-stamp counter has (tsc_khz). NULL metrics are NULL
 * counts. PH_E_MEMORY, or PH_E_FORKED. */
ph_status ph__counts_open(ph_metrics *metrics, uint64_t tsc_khz, struct ph__counts **counts, ph_error *error);
/* The sandbox is gone, and what it has counted stays. (forked): in a child of the process that made it. */
void ph__counts_close(struct ph__counts *counts, bool forked);

/* From the thread that uses the sandbox. */
static inline void ph__count(struct ph__counts *counts, unsigned cell, uint64_t more) {
    if (counts)
        atomic_store_explicit(&counts->cells[cell],
                              atomic_load_explicit(&counts->cells[cell], memory_order_relaxed) + more,
                              memory_order_relaxed);
}

/* When something begins that has a histogram. */
static inline uint64_t ph__count_begin(const struct ph__counts *counts) {
    return counts ? __rdtsc() : 0;
}

/* counts.c. Adds (cycles) of the time-stamp counter to a histogram. */
void ph__count_cycles(struct ph__counts *counts, enum ph__cell histogram, uint64_t cycles);
/* Adds the time since (begin). */
void ph__count_since(struct ph__counts *counts, enum ph__cell histogram, uint64_t begin);

/* A call, start or run that was let in has come to its end with (status): its own time in (histogram), and
 * (guest) cycles of the guest's. */
void ph__count_end(struct ph__counts *counts, enum ph__cell histogram, uint64_t begin, uint64_t guest,
                   ph_status status);
/* One that was not begun, for the caller's mistake. */
void ph__count_error(struct ph__counts *counts, ph_status status);
/* Adds to a count from any thread: also that of a sandbox which somebody else is using. */
void ph__count_shared(ph_metrics *metrics, unsigned cell, uint64_t more);
/* The cell of errors with (status). */
unsigned ph__count_error_cell(ph_status status);

#endif
