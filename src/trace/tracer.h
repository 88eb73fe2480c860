/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A tracer's inside, for the files of this folder: its streams, its filter, its sinks and its worker.
 *
 * Locks: the tracer's protects everything in it and every tree; a stream's protects its ring and the
 * producing end of its queue. Whoever holds a stream's lock may not take the tracer's. The list's own lock is
 * taken last, and held while the list is changed or counted, for a moment only.
 */
#ifndef PH_TRACE_TRACER_H
#define PH_TRACE_TRACER_H

#include <pthread.h>

#include "trace/lock.h"
#include "trace/queue.h"
#include "trace/stream.h"
#include "trace/tree.h"

#define PH__QUEUE_DEFAULT (1ull << 20)
#define PH__QUEUE_MAX (1ull << 30)
/* Room in a queue that only ends of spans may use: each has at most a head and an error's message, and four
 * spans of the host can be open at once. */
#define PH__QUEUE_KEPT (8ull << 10)
#define PH__CALL_BYTES_DEFAULT (64ull << 20)
#define PH__CALL_RECORDS_DEFAULT 1000000ull
#define PH__ARGUMENT_MAX 256u /* bytes of one string among a call's arguments that are kept */

/* What has been lost of a ring since the queue was told last. */
struct ph__lost {
    uint64_t records;
    uint64_t bytes;
    bool any;
    bool restarted; /* struct ph__batch_loss */
};
#define PH__LOSSES (PH__LOSS_RING + 1)

/* What the filter wants in the guest's words, also while they are off. */
struct ph__words {
    uint64_t calls, system_calls;
    uint64_t *sites; /* by number */
};

struct ph__stream {
    ph_tracer *tracer;
    struct ph__stream *next, *previous; /* the tracer's list; under its locks */
    uint64_t owner;                     /* ph__process_id */
    struct ph__stream_options options;
    uint64_t number;
    uint64_t call_bytes_max, sandbox_bytes_max;

    /* Of the sandbox's thread alone: what it has begun (stream_context.c). */
    const struct ph__caller *caller; /* NULL: nobody */
    struct ph__sampling sampling;    /* the tracer's */
    struct ph__ids ids;
    uint64_t span;                       /* the one that was begun last */
    uint32_t unrecorded;                 /* open spans of a root that is not recorded */
    uint8_t trace_id[PH__TRACE_ID_SIZE]; /* of the last root */
    bool recorded;                       /* and whether it is recorded */
    bool call_unrecorded;                /* the last call, start or run was not */

    /* Under (lock): */
    struct ph__lock lock;
    bool synchronous; /* the tracer's and the configuration's, near at hand */
    ph_trace_policy policy;
    uint64_t last_tsc; /* of the last batch of records */
    bool attached;
    bool quiet;    /* the last root is not recorded: the words are off, and the ring is given up */
    bool any_lost; /* any of (lost) */
    struct ph__ring_view view;
    struct ph__words wanted;
    uint64_t tail;         /* the truth behind view.control->tail */
    uint64_t flight_start; /* policy `flight`: where the call's records begin */
    uint64_t call_bytes, sandbox_bytes;
    uint64_t ring_dropped;            /* the guest's count of drops, as it was told last */
    uint64_t ring_dropped_bytes;      /* and of their bytes */
    struct ph__lost lost[PH__LOSSES]; /* by enum ph__loss */
    ph_trace_stats produced;
    struct ph__queue queue;
    uint32_t open;     /* spans of the host whose begin is in the queue, or was */
    uint32_t left_out; /* open ones for which it had no room */
    uint64_t stalled;  /* what of the queue was taken, plus one, when its worker was waited for in vain */

    /* Whether calls carry their arguments: the filter's highest level is debug or more. */
    atomic_bool arguments;
    /* The tree may be made: the counter's frequency is known, or never will be. */
    atomic_bool known;

    /* Under the tracer's lock: */
    struct ph__tree *tree;
    ph_trace_stats consumed;

    /* The sandbox's thread's again: last, so that what each call needs lies close together. */
    struct ph__trace_ids trace_ids;
};

struct ph__sinks {
    ph_sink *list;
    size_t count;
};

struct ph_tracer {
    uint64_t owner;
    ph_diagnostics_fn diagnostics;
    void *diagnostics_context;
    uint64_t queue_size;
    uint32_t poll_ms;
    bool synchronous;
    struct ph__sampling sampling;

    /* Held while sinks are called, for as long as these like. */
    pthread_mutex_t lock;
    bool started;   /* a stream was opened: no more sinks */
    bool abandoned; /* destroyed, but for what its last streams need */

    /* What is asked of the worker, under a lock that is never held for long: who waits for a time at most
     * must not wait for (lock). Neither is taken while the other is held. */
    pthread_mutex_t worker_lock;
    pthread_cond_t wake; /* the worker waits on it */
    pthread_cond_t done; /* those who wait for the worker do */
    bool stop;
    uint64_t flushes_asked;
    uint64_t flushes_done; /* of those, counted from the first */
    pthread_t worker;
    bool has_worker;

    /* Under (lock): */
    struct ph__filter filter;
    uint64_t filter_version;
    struct ph__sinks sinks;
    struct ph__trace_clock clock;
    struct ph__stream *streams; /* changed under (list_lock) too: either is enough to read */
    ph_trace_stats closed;      /* of streams that are gone; the same */
    uint64_t malformed_reported;

    pthread_mutex_t list_lock;
    struct ph__tracer_watch *watches; /* under (list_lock) */
};

/* tracer.c. All with the tracer's lock held but ph__tracer_add and ph__tracer_free. */

/* Puts (stream) on the list. */
void ph__tracer_add(ph_tracer *tracer, struct ph__stream *stream);
/* Decodes all that is queued of (stream), and makes its tree when that is due. True if there was something.
 */
bool ph__stream_consume(struct ph__stream *stream);
/* Delivers all that is left of (stream), frees its tree and takes it off the list. */
void ph__tracer_remove(ph_tracer *tracer, struct ph__stream *stream);
/* Has everything delivered that was recorded up to now, if that takes no longer than a second. Without the
 * lock. */
void ph__tracer_settle(ph_tracer *tracer);
/* Asks the worker to look now. Without the lock too. */
void ph__tracer_wake(ph_tracer *tracer);
/* Frees (tracer), which has neither worker nor streams. */
void ph__tracer_free(ph_tracer *tracer);

/* stream_context.c. */

/* Puts (filter) into the guest's words, with both locks held. */
void ph__stream_filter(struct ph__stream *stream, const struct ph__filter *filter);
/* On the sandbox's thread, without a lock. A span begins, or ends: whether it is recorded. */
bool ph__stream_context_begin(struct ph__stream *stream, enum ph__host_span span);
bool ph__stream_context_end(struct ph__stream *stream);
/* Words that a root's begin takes for its trace, and these written to (root). */
uint32_t ph__stream_root_words(const struct ph__stream *stream);
void ph__stream_root_write(const struct ph__stream *stream, struct ph__batch_root *root);

/* stats.c. Adds each count of (more) to (stats). */
void ph__trace_stats_add(ph_trace_stats *stats, const ph_trace_stats *more);

/* ring.c. With the stream's lock held. Copies what is new in the ring to the queue, or gives it up while the
 * stream is quiet. False when the queue has no room for it, and then it is still to be taken. */
bool ph__ring_take(struct ph__stream *stream, bool bad_end);
/* Policy `flight`: what is in the ring until now is not looked at any more. */
void ph__ring_flight_begin(struct ph__stream *stream);
/* Says in the queue what has been lost until now, where that leaves (kept) bytes free. False when it has no
 * room for all of it: it is told later. */
bool ph__ring_losses_tell(struct ph__stream *stream, uint64_t kept);
/* Gives what is new in the ring up. */
void ph__ring_give_up(struct ph__stream *stream, enum ph__loss cause);
/* Counts records that the guest itself has dropped since the last time. */
void ph__ring_dropped_report(struct ph__stream *stream);
/* The guest's own count begins at 0 again. */
void ph__ring_dropped_restart(struct ph__stream *stream);

#endif
