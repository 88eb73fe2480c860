/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * From batches to spans: one tree for each sandbox. It keeps the open spans, gives ids, puts the host's spans
 * and the guest's under each other, converts times, applies the filter again, and hands what is complete to
 * an output. One thread at a time. Memory is bounded whatever the guest writes.
 *
 * Rules. A guest's record belongs to the innermost open span; spans of the guest end by the position of their
 * begin record, and an end also closes what is open above it, as unfinished. A record with a stack pointer
 * closes the open spans whose stack pointer is below it, as unfinished. The end of a host's span closes all
 * of the guest's above it, as unfinished and with its status if that is not PH_OK. A host function's span
 * lies under the guest's innermost open span. Asynchronous spans are matched by name and id, may outlive a
 * call, and have the parent that was innermost at their begin; what is open at the tree's end is closed as
 * unfinished. A guest's times are moved into [time of the record before it, time of its batch], so no child
 * is outside its parent and time never runs backwards.
 */
#ifndef PH_TRACE_TREE_H
#define PH_TRACE_TREE_H

#include "trace/batch.h"
#include "trace/clock.h"
#include "trace/filter.h"
#include "trace/sites.h"

#define PH__TREE_DEPTH_MAX 4096u
#define PH__TREE_ASYNC_MAX 1024u

/* Where what is complete goes: what a ph_sink is, with everything in it valid during the call. */
struct ph__tree_output {
    void *context;
    void (*span)(void *context, const ph_trace_span *span);
    void (*event)(void *context, const ph_trace_event *event);
    void (*counter)(void *context, const ph_trace_counter *counter);
};

/* Everything pointed at outlives the tree. */
struct ph__tree_options {
    uint64_t sandbox; /* its number */
    const struct ph__site *sites;
    size_t site_count;
    const ph_function *exports;
    size_t export_count;
    const char *program; /* the image's name */
    /* The function around (address), NULL when it is not known. */
    const char *(*symbol)(const void *context, uint64_t address);
    const void *symbol_context;
    int64_t tsc_offset;            /* guest's TSC minus the host's */
    uint64_t call_records;         /* the most records of one call that are looked at */
    struct ph__trace_clock *clock; /* of the tracer */
    uint64_t tsc_khz;
    bool tsc_varies; /* the counter may change its speed: an event "trace.clock" in the first root says so */
    ph_trace_stats *stats; /* counted into with ph__trace_count: records, spans, events, counters,
                              dropped_budget, dropped_ring, dropped_queue, lost_bytes, filtered, malformed,
                              unknown_ends, too_deep, gaps */
    struct ph__tree_output output;
};

struct ph__tree;

/* NULL when there is no memory. */
struct ph__tree *ph__tree_create(const struct ph__tree_options *options);

/* Closes what is open, and frees (tree), which may be NULL. */
void ph__tree_destroy(struct ph__tree *tree, const struct ph__filter *filter);

/* Takes one batch. (filter) is what is wanted now; (version) changes whenever it does. */
void ph__tree_take(struct ph__tree *tree, const struct ph__batch *batch, const struct ph__filter *filter,
                   uint64_t version);

/* Records of the last call, start or run that have been taken and dropped so far. */
void ph__tree_call_counts(const struct ph__tree *tree, uint64_t *records, uint64_t *dropped);

/* Counts that one thread changes and any reads. */
/* NOLINTNEXTLINE(readability-non-const-parameter): clang-tidy does not see the store */
static inline void ph__trace_count(uint64_t *count, uint64_t more) {
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

#endif
