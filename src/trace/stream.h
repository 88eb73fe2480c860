/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How a sandbox is traced: the entrance of this folder. A stream takes one sandbox's records out of its ring
 * and puts the host's own spans between them; the tracer's worker does the rest (tracer.c).
 *
 * trace knows nothing of guest addresses: the sandbox resolves the ring through the page walk, and hands over
 * host pointers. Every function takes a NULL stream, for a sandbox that is not traced, and does nothing.
 *
 * Threads: those of the sandbox, one at a time. The worker drains the same ring while the guest runs, under
 * the stream's own lock.
 */
#ifndef PH_TRACE_STREAM_H
#define PH_TRACE_STREAM_H

#include "trace/batch.h"
#include "trace/context.h"
#include "trace/sites.h"

struct ph__stream;

/* Everything pointed at outlives the stream. */
struct ph__stream_options {
    const ph_config *config;
    const struct ph__site *sites;
    size_t site_count;
    const ph_function *exports;
    size_t export_count;
    const char *program;
    const char *(*symbol)(const void *context, uint64_t address);
    const void *symbol_context;
    /* Asked while records have to wait for the worker: true ends the wait. */
    bool (*stopped)(const void *context);
    const void *stopped_context;
};

/* Host pointers to what guest and host share: all of it mapped as long as the stream is attached. */
struct ph__ring_view {
    struct ph__ring *ring;             /* the guest's page */
    const uint8_t *bytes;              /* the ring: (size) bytes, once */
    uint64_t size;                     /* a power of two */
    struct ph__control_trace *control; /* the host's mapping */
    uint64_t *words;                   /* the host's mapping of the sites' words, NULL when there are none */
    uint64_t tsc_khz;                  /* 0: not known */
    int64_t tsc_offset;
};

/* Makes a stream of the configuration's tracer, NULL without one. PH_E_FORKED or PH_E_MEMORY. */
ph_status ph__stream_open(const struct ph__stream_options *options, struct ph__stream **result,
                          ph_error *error);

/* Begins a generation: an empty ring, and the filter in (view)'s words. */
void ph__stream_attach(struct ph__stream *stream, const struct ph__ring_view *view);

/* Takes what is left; the view is not touched afterwards. */
void ph__stream_detach(struct ph__stream *stream);

/* Takes what is left and begins another generation, as after ph__stream_attach with the same view: in an
 * empty ring, at a position above (least) and all that this stream has had. Only while no vCPU runs. */
void ph__stream_restart(struct ph__stream *stream, uint64_t least);

/* A position that no record of this generation is at or behind; 0 for a stream that is not attached. */
uint64_t ph__stream_position(struct ph__stream *stream);

/* Hands over what is left and frees it. (forked): in a child of the process that made it. */
void ph__stream_close(struct ph__stream *stream, bool forked);

/* Roots from here on belong to the trace of (caller), which is there until this is called again. */
void ph__stream_caller_set(struct ph__stream *stream, const struct ph__caller *caller);

/* The traceparent of the span that was begun last. False without a stream. */
bool ph__stream_traceparent(const struct ph__stream *stream, char text[PH_TRACEPARENT_SIZE]);

/* A span of the host begins: (function) and its (args), as ph__host_span says, or NULL. A root also decides
 * whether it is recorded, with all that is inside it. When it is not, nothing reaches the queue, the guest's
 * words are all off, and what it writes all the same is given up. */
void ph__stream_begin(struct ph__stream *stream, enum ph__host_span span, const ph_function *function,
                      const ph_value *args);

/* The innermost one ends. (error) is NULL or says more about (status). */
void ph__stream_end(struct ph__stream *stream, ph_status status, const ph_error *error);

/* At an exit: takes what is new in the ring. (bad_end): the guest has come to its end, which is what policy
 * `flight` waits for. */
void ph__stream_drain(struct ph__stream *stream, bool bad_end);

/* Serves TRACE_BATCH: makes room in the ring. */
void ph__stream_make_room(struct ph__stream *stream);

uint64_t ph__stream_number(const struct ph__stream *stream);
/* Records of the last call (or start, or run) that were delivered, and that were dropped, when all of them
 * have been looked at, which this waits for. */
void ph__stream_call_counts(const struct ph__stream *stream, uint64_t *records, uint64_t *dropped);
void ph__stream_stats(const struct ph__stream *stream, ph_trace_stats *stats);

#endif
