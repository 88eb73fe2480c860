/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Calling an export: check, encode, enter, decode. One KVM_RUN when the guest calls nothing back. This is the
 * path that users repeat, so it makes no system call of its own and allocates nothing once its buffer has
 * grown.
 */
#include <string.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

static const char *type_name(ph_type type) {
    static const char *const names[] = {"void", "i32", "u32",  "i64",    "u64",
                                        "f32",  "f64", "bool", "string", "bytes"};
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

/* Whether (function) is an export of this sandbox's image, by its place alone: it need not be readable. */
static bool is_export(const ph_image *image, const ph_function *function) {
    uintptr_t first = (uintptr_t)image->exports;
    uintptr_t place = (uintptr_t)function;

    return place >= first && place < first + image->export_count * sizeof *function &&
           (place - first) % sizeof *function == 0;
}

static ph_status check_arguments(ph_sandbox *sandbox, const ph_function *function, const ph_value *args,
                                 size_t count) {
    ph_error *error = &sandbox->error;

    if (!is_export(sandbox->image, function))
        return ph__error_set(error, PH_E_NOT_FOUND, "the function is not an export of this sandbox's image");
    const ph_signature *signature = &function->signature;
    if (count != signature->count)
        return ph__error_set(error, PH_E_SIGNATURE, "`%s` takes %u arguments, %zu were given", function->name,
                             signature->count, count);
    for (uint32_t i = 0; i < signature->count; i++)
        if (args[i].type != signature->args[i])
            return ph__error_set(error, PH_E_SIGNATURE, "argument %u of `%s` is %s, %s was given", i + 1,
                                 function->name, type_name(signature->args[i]), type_name(args[i].type));
    return PH_OK;
}

/* Writes the CALL frame. */
static ph_status send(ph_sandbox *sandbox, const ph_function *function, const ph_value *args, size_t count) {
    const struct ph__layout *layout = &sandbox->memory.layout;
    const struct ph__frame head = {.kind = PH__FRAME_CALL, .index = function->index};

    if (ph__frame_encode(ph__box(sandbox, PH__BOX_IN), layout->box_size, layout->max_message, &head, args,
                         count) != PH__FRAME_OK)
        return ph__error_set(&sandbox->error, PH_E_TOO_LARGE,
                             "the arguments of `%s` are larger than %llu bytes; raise max_message",
                             function->name, (unsigned long long)layout->max_message);
    return PH_OK;
}

/* The guest said no. */
static ph_status guest_error(ph_sandbox *sandbox, int32_t code, const char *message) {
    bool from_host = sandbox->host_function_failed && sandbox->host_function_code == code;
    ph_status status = from_host ? PH_E_HOST_FUNCTION : PH_E_GUEST;

    ph__error_set(&sandbox->error, status, "%s", message[0] ? message : ph_status_message(status));
    sandbox->error.code = code;
    return status;
}

/* Reads the frame that answers the call. */
static ph_status take_result(ph_sandbox *sandbox, const ph_function *function, ph_value *result) {
    const struct ph__frame *frame;
    ph_value value = {.type = PH_VOID};

    ph_status status = ph__frame_receive(sandbox, "the answer is not a frame", &frame);
    if (status != PH_OK)
        return status;
    if (frame->kind == PH__FRAME_ERROR) {
        const char *message = ph__frame_message(sandbox);
        if (!message)
            return ph__fault_protocol(sandbox, "the error has no message");
        return guest_error(sandbox, frame->code, message);
    }
    size_t count = function->signature.result == PH_VOID ? 0 : 1;
    if (frame->kind != PH__FRAME_RESULT ||
        !ph__frame_values(sandbox, &function->signature.result, count, &value))
        return ph__fault_protocol(sandbox, "the result does not match the signature");
    if (result)
        *result = value;
    return PH_OK;
}

/* The call inside its window. */
static ph_status call(ph_sandbox *sandbox, const ph_function *function, const ph_value *args, size_t count,
                      ph_value *result) {
    ph_status status = send(sandbox, function, args, count);

    if (status != PH_OK)
        return status;
    sandbox->stats.calls++;
    ph__limits_begin(sandbox);
    sandbox->host_function_failed = false;
    status = ph__sandbox_enter(sandbox, PH__DOORBELL_RETURN);
    if (status == PH_OK)
        status = take_result(sandbox, function, result);
    return status;
}

/* Whether a mark still matters: the guest has answered, and the host side has not refused the call. */
static bool has_answered(ph_status status) {
    return status == PH_OK || status == PH_E_GUEST || status == PH_E_HOST_FUNCTION;
}

/* Before the first call of a sandbox that was never started. */
PH__COLD static ph_status check_imports_once(ph_sandbox *sandbox) {
    ph_status status = ph__imports_check(sandbox);

    if (status == PH_OK)
        atomic_store_explicit(&sandbox->unentered, false, memory_order_relaxed);
    return status;
}

PH__HOT ph_status ph_call_timeout(ph_sandbox *sandbox, const ph_function *function, const ph_value *args,
                                  size_t count, ph_value *result, uint64_t timeout_ns) {
    if (!sandbox || !function || (count && !args))
        return PH_E_ARGUMENT;
    ph_status status = ph__sandbox_acquire(sandbox, PH_STATE_READY, "a call");
    if (status != PH_OK)
        return ph__refused_count(sandbox, status);
    const uint64_t begin = ph__count_begin(sandbox->counts);
    status = check_arguments(sandbox, function, args, count);
    if (status == PH_OK && atomic_load_explicit(&sandbox->unentered, memory_order_relaxed))
        status = check_imports_once(sandbox);
    if (status == PH_OK)
        status = ph__window_open(&sandbox->window, timeout_ns, sandbox->processor_max != 0, &sandbox->error);
    if (status == PH_OK) {
        ph__stream_begin(sandbox->stream, PH__HOST_CALL, function, args);
        ph__context_tell(sandbox);
        status = call(sandbox, function, args, count, result);
        uint32_t marks = ph__window_close(&sandbox->window);
        if (marks && has_answered(status))
            status = ph__fault_stopped(sandbox, ph__window_status(marks));
        ph__stream_end(sandbox->stream, status, &sandbox->error);
        ph__count_end(sandbox->counts, PH__CELL_CALL, begin, sandbox->used.processor, status);
    } else {
        ph__count_error(sandbox->counts, status);
    }
    ph__sandbox_release(sandbox);
    return status;
}

PH__HOT ph_status ph_call(ph_sandbox *sandbox, const ph_function *function, const ph_value *args,
                          size_t count, ph_value *result) {
    return ph_call_timeout(sandbox, function, args, count, result, sandbox ? sandbox->config.timeout_ns : 0);
}
