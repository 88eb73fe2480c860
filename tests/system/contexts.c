/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox of the guest `context` (contexts.h).
 */
#include "contexts.h"

#include <stdio.h>
#include <string.h>

#include "trace/context.h"

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    struct visit *visit = context;
    const char *tracestate = ph_host_tracestate(call);

    visit->count++;
    memset(visit->traceparent, 'x', sizeof visit->traceparent);
    visit->known = ph_host_traceparent(call, visit->traceparent);
    snprintf(visit->tracestate, sizeof visit->tracestate, "%s", tracestate ? tracestate : "none");
    if (visit->during)
        visit->during(visit);
    result->u64 = args[0].u64;
    return PH_OK;
}

void contexts_register(struct contexts *contexts, ph_sandbox *sandbox) {
    static const ph_signature signature = {.result = PH_U64, .count = 1, .args = {PH_U64}};

    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &signature, visit, &contexts->visit), PH_OK);
}

void contexts_create(struct contexts *contexts, const ph_config *config, const ph_tracer_config *tracer) {
    memset(contexts, 0, sizeof *contexts);
    traced_create(&contexts->traced, "context", config, tracer);
    contexts_register(contexts, contexts->traced.sandbox);
}

void contexts_begin(struct contexts *contexts, const ph_config *config, const ph_tracer_config *tracer) {
    contexts_create(contexts, config, tracer);
    test_status(contexts->traced.sandbox, ph_sandbox_start(contexts->traced.sandbox), PH_OK);
}

void contexts_begin_untraced(struct contexts *contexts, const ph_config *config) {
    memset(contexts, 0, sizeof *contexts);
    contexts->traced.image = test_image("context");
    contexts->traced.sandbox = test_sandbox(contexts->traced.image, config);
    contexts_register(contexts, contexts->traced.sandbox);
    test_status(contexts->traced.sandbox, ph_sandbox_start(contexts->traced.sandbox), PH_OK);
}

void contexts_end(struct contexts *contexts) {
    if (contexts->traced.tracer) {
        traced_end(&contexts->traced);
        return;
    }
    ph_sandbox_destroy(contexts->traced.sandbox);
    ph_image_close(contexts->traced.image);
}

void contexts_set(struct contexts *contexts, const char *traceparent, const char *tracestate) {
    ph_sandbox *sandbox = contexts->traced.sandbox;

    test_status(sandbox, ph_sandbox_set_traceparent(sandbox, traceparent, tracestate), PH_OK);
}

bool contexts_work(struct contexts *contexts, ph_sandbox *sandbox) {
    ph_value result = {.type = PH_VOID};

    test_status(sandbox, test_call(sandbox, contexts->traced.image, "work", ARGS(U64(1)), &result), PH_OK);
    return result.boolean;
}

const char *contexts_asked(struct contexts *contexts, ph_sandbox *sandbox, const char *name) {
    static char said[64];
    ph_value result = {.type = PH_VOID};

    test_status(sandbox, test_call(sandbox, contexts->traced.image, name, NO_ARGS, &result), PH_OK);
    snprintf(said, sizeof said, "%s", result.str);
    return said;
}

const char *contexts_of(const ph_trace_span *span, bool sampled) {
    static char text[PH_TRACEPARENT_SIZE];
    struct ph__traceparent parent = {.sampled = sampled};

    memcpy(parent.trace_id, span->trace_id, sizeof parent.trace_id);
    ph_trace_span_id(span->id, parent.parent);
    ph__traceparent_write(text, &parent);
    return text;
}
