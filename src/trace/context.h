/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * W3C Trace Context (https://www.w3.org/TR/trace-context/): the two headers by which a caller says to which
 * trace its call belongs, and what a sampler makes of that. They come from the network: nothing here trusts
 * them, reads behind their NUL, or keeps state.
 */
#ifndef PH_TRACE_CONTEXT_H
#define PH_TRACE_CONTEXT_H

#include <stdbool.h>

#include <pinhole/trace.h>

#include "trace/ids.h"

#define PH__TRACESTATE_MAX 512u /* bytes; the specification's own limit below which all must carry it */

struct ph__traceparent {
    uint8_t trace_id[PH__TRACE_ID_SIZE];
    uint8_t parent[PH__SPAN_ID_SIZE];
    bool sampled;
};

/* Reads (text), which may be NULL. False, and nothing of use in (parent), when it is not valid. */
bool ph__traceparent_read(const char *text, struct ph__traceparent *parent);

/* Writes one of version 00, with its NUL. */
void ph__traceparent_write(char text[PH_TRACEPARENT_SIZE], const struct ph__traceparent *parent);

/* Whether (text), which may be NULL, is a tracestate to carry. */
bool ph__tracestate_is_valid(const char *text);

/* Who calls: nobody when zeroed. */
struct ph__caller {
    bool known;
    struct ph__traceparent parent;
    char traceparent[PH_TRACEPARENT_SIZE]; /* to pass on */
    char *tracestate;                      /* NULL for none */
};

/* Takes what the headers say, as ph_sandbox_set_traceparent has it, in place of what (caller) was. False when
 * there is no memory, and nothing has changed then. */
bool ph__caller_set(struct ph__caller *caller, const char *traceparent, const char *tracestate);
void ph__caller_end(struct ph__caller *caller);

/* What a tracer's configuration says. */
struct ph__sampling {
    ph_sampler sampler;
    uint64_t threshold; /* of ph__ratio_threshold */
};

/* Traces whose last 56 bits are a number from this one up are (ratio) of all, from 0 to 1. */
uint64_t ph__ratio_threshold(double ratio);

/* Whether a root of the trace (trace_id) is recorded, below (parent), NULL for none. */
bool ph__sampling_takes(const struct ph__sampling *sampling, const struct ph__traceparent *parent,
                        const uint8_t trace_id[PH__TRACE_ID_SIZE]);

#endif
