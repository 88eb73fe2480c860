/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Host functions: takes the guest's CALL frame, runs what was registered for it on this thread, and writes
 * the answer into the host inbox.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

struct allocation {
    struct allocation *next;
    max_align_t bytes[];
};

struct ph_host_call {
    const ph_sandbox *sandbox;
    int32_t code;
    char message[PH_ERROR_MESSAGE_MAX];
    struct allocation *allocations;
};

void *ph_host_alloc(ph_host_call *call, size_t size) {
    struct allocation *made = size <= SIZE_MAX - sizeof *made ? malloc(sizeof *made + size) : NULL;

    if (!made)
        return NULL;
    made->next = call->allocations;
    call->allocations = made;
    return made->bytes;
}

static void free_allocations(ph_host_call *call) {
    while (call->allocations) {
        struct allocation *next = call->allocations->next;
        free(call->allocations);
        call->allocations = next;
    }
}

ph_status ph_host_fail(ph_host_call *call, int32_t code, const char *format, ...) {
    va_list arguments;

    call->code = code;
    va_start(arguments, format);
    vsnprintf(call->message, sizeof call->message, format, arguments);
    va_end(arguments);
    return PH_E_HOST_FUNCTION;
}

bool ph_host_traceparent(const ph_host_call *call, char traceparent[PH_TRACEPARENT_SIZE]) {
    return ph__context_write(call->sandbox, traceparent);
}

const char *ph_host_tracestate(const ph_host_call *call) {
    return call->sandbox->caller->tracestate;
}

static enum ph__frame_status answer(ph_sandbox *sandbox, const struct ph__frame *head, const ph_value *values,
                                    size_t count) {
    const struct ph__layout *layout = &sandbox->memory.layout;
    return ph__frame_encode(ph__box(sandbox, PH__BOX_HOST_IN), layout->box_size, layout->max_message, head,
                            values, count);
}

/* Tells the guest that the host function failed. A message that does not fit a tiny message limit is left
 * out. */
static void answer_error(ph_sandbox *sandbox, int32_t code, const char *message) {
    const struct ph__frame head = {.kind = PH__FRAME_ERROR, .code = code};
    const ph_value text = {.type = PH_STR, .str = message};
    const ph_value none = {.type = PH_STR, .str = ""};

    ph__count(sandbox->counts, PH__CELL_HOST_FUNCTION_ERRORS, 1);
    sandbox->host_function_failed = true;
    sandbox->host_function_code = code;
    if (answer(sandbox, &head, &text, 1) != PH__FRAME_OK)
        answer(sandbox, &head, &none, 1);
}

static void answer_result(ph_sandbox *sandbox, const ph_function *import, const ph_value *result) {
    const struct ph__frame head = {.kind = PH__FRAME_RESULT};
    size_t count = import->signature.result == PH_VOID ? 0 : 1;
    char message[PH_ERROR_MESSAGE_MAX];

    if (result->type != import->signature.result) {
        snprintf(message, sizeof message, "the host function `%s` changed the type of its result",
                 import->name);
        answer_error(sandbox, PH__CODE_HOST, message);
    } else if (answer(sandbox, &head, result, count) != PH__FRAME_OK) {
        snprintf(message, sizeof message, "the result of the host function `%s` is larger than %llu bytes",
                 import->name, (unsigned long long)sandbox->memory.layout.max_message);
        answer_error(sandbox, PH__CODE_TOO_LARGE, message);
    }
}

/* Returns what the function did; the guest hears of it either way. */
static ph_status run(ph_sandbox *sandbox, uint32_t index, const ph_value *args) {
    const ph_function *import = &sandbox->image->imports[index];
    const struct ph__host_function *host = &sandbox->host_functions[index];
    ph_host_call call;
    ph_value result = {.type = import->signature.result};

    call.sandbox = sandbox;
    call.code = PH__CODE_HOST;
    call.message[0] = 0;
    call.allocations = NULL;
    uint64_t start = ph__clock_cycles();
    ph_status status = host->function(host->context, &call, args, &result);
    uint64_t cycles = ph__clock_elapsed(start);
    sandbox->stats.host_ns += cycles; /* cycles; converted when asked for */
    sandbox->used.host += cycles;
    ph__count_cycles(sandbox->counts, PH__CELL_HOST_FUNCTION, cycles);
    if (status == PH_OK)
        answer_result(sandbox, import, &result);
    else
        answer_error(sandbox, call.code, call.message[0] ? call.message : ph_status_message(status));
    free_allocations(&call);
    return status;
}

PH__HOT ph_status ph__host_call_serve(ph_sandbox *sandbox) {
    const ph_image *image = sandbox->image;
    const struct ph__frame *frame;
    ph_value args[PH_MAX_ARGS];

    ph_status status = ph__frame_receive(sandbox, "a host call without a frame", &frame);
    if (status != PH_OK)
        return status;
    if (frame->kind != PH__FRAME_CALL)
        return ph__fault_protocol(sandbox, "a host call without a frame");
    uint32_t untrusted_index = frame->index;
    if (untrusted_index >= image->import_entry_count)
        return ph__fault_protocol(sandbox, "a host call of a function that is not imported");
    uint32_t index = image->import_of_entry[untrusted_index];
    const ph_signature *signature = &image->imports[index].signature;
    if (!ph__frame_values(sandbox, signature->args, signature->count, args))
        return ph__fault_protocol(sandbox, "the arguments of a host call do not match its signature");
    if (sandbox->used.host_calls >= sandbox->host_calls_max)
        return ph__fault_stopped(sandbox, PH_E_HOST_CALL_LIMIT);
    sandbox->used.host_calls++;
    sandbox->stats.host_calls++;
    ph__stream_begin(sandbox->stream, PH__HOST_FUNCTION, &image->imports[index], args);
    status = run(sandbox, index, args);
    ph__stream_end(sandbox->stream, status, NULL);
    return PH_OK;
}
