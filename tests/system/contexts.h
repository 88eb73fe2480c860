/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox of the guest `context` and what it is told of its trace, for tests of W3C Trace Context.
 */
#ifndef PH_TESTS_CONTEXTS_H
#define PH_TESTS_CONTEXTS_H

#include "support/traced.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define SAMPLED "00-" TRACE "-" PARENT "-01"
#define NOT_SAMPLED "00-" TRACE "-" PARENT "-00"

/* What the host function `visit` was told when it ran last. */
struct visit {
    unsigned count;
    bool known;
    char traceparent[PH_TRACEPARENT_SIZE];
    char tracestate[520];                /* "none" for none */
    void (*during)(struct visit *visit); /* NULL, or what it does */
    void *context;
};

struct contexts {
    struct traced traced; /* without a tracer only image and sandbox */
    struct visit visit;
};

void contexts_create(struct contexts *contexts, const ph_config *config, const ph_tracer_config *tracer);
/* The same, started. */
void contexts_begin(struct contexts *contexts, const ph_config *config, const ph_tracer_config *tracer);
void contexts_begin_untraced(struct contexts *contexts, const ph_config *config);
void contexts_end(struct contexts *contexts);

/* Registers `visit`. */
void contexts_register(struct contexts *contexts, ph_sandbox *sandbox);

void contexts_set(struct contexts *contexts, const char *traceparent, const char *tracestate);

/* Calls `work`, and returns whether its span was on. */
bool contexts_work(struct contexts *contexts, ph_sandbox *sandbox);

/* What the export (name) of (sandbox)'s guest says: static storage. */
const char *contexts_asked(struct contexts *contexts, ph_sandbox *sandbox, const char *name);

/* The traceparent by which (span) is known: static storage. */
const char *contexts_of(const ph_trace_span *span, bool sampled);

#endif
