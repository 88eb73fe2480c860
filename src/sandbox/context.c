/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The W3C trace context of a sandbox: who calls it, and what its guest and its host functions pass on. With a
 * tracer that is a span of ours; without one, the caller's own.
 */
#include <string.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

_Static_assert(PH__TRACEPARENT_SIZE == PH_TRACEPARENT_SIZE, "control.h cannot include trace.h");

static void caller_choose(ph_sandbox *sandbox, const struct ph__caller *caller) {
    sandbox->caller = caller;
    ph__stream_caller_set(sandbox->stream, caller);
}

ph_status ph__context_open(ph_sandbox *sandbox, ph_error *error) {
    ph_config *config = &sandbox->config;
    const bool taken = ph__caller_set(&sandbox->config_caller, config->traceparent, config->tracestate);

    config->traceparent = config->tracestate = NULL;
    caller_choose(sandbox, &sandbox->config_caller);
    return taken ? PH_OK : ph__error_set(error, PH_E_MEMORY, "no memory for the caller's tracestate");
}

void ph__context_close(ph_sandbox *sandbox) {
    ph__caller_end(&sandbox->config_caller);
    ph__caller_end(&sandbox->own_caller);
}

void ph__context_forget(ph_sandbox *sandbox) {
    ph_state state;

    if (ph__sandbox_acquire_restore(sandbox, &state) != PH_OK)
        return;
    caller_choose(sandbox, &sandbox->config_caller);
    ph__caller_end(&sandbox->own_caller);
    ph__sandbox_release(sandbox);
}

ph_status ph_sandbox_set_traceparent(ph_sandbox *sandbox, const char *traceparent, const char *tracestate) {
    ph_state state;

    if (!sandbox)
        return PH_E_ARGUMENT;
    ph_status status = ph__sandbox_acquire_restore(sandbox, &state);
    if (status != PH_OK)
        return status;
    if (ph__caller_set(&sandbox->own_caller, traceparent, tracestate))
        caller_choose(sandbox, &sandbox->own_caller);
    else
        status = ph__error_set(&sandbox->error, PH_E_MEMORY, "no memory for the caller's tracestate");
    ph__sandbox_release(sandbox);
    return status;
}

PH__HOT bool ph__context_write(const ph_sandbox *sandbox, char text[PH_TRACEPARENT_SIZE]) {
    if (ph__stream_traceparent(sandbox->stream, text))
        return true;
    memcpy(text, sandbox->caller->traceparent, PH_TRACEPARENT_SIZE);
    return sandbox->caller->known;
}

PH__HOT void ph__context_tell(ph_sandbox *sandbox) {
    if (!sandbox->image->asks_traceparent)
        return;
    if (!sandbox->stream && !sandbox->caller->known && !sandbox->context_told)
        return;
    sandbox->context_told = ph__context_write(sandbox, ph__memory_control(&sandbox->memory)->traceparent);
}
