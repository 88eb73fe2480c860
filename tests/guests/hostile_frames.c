/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Sends the frames that it is given, bit for bit: as the answer to a call, as a host call, as an abort. The
 * test makes the frame, so that each lie is written down in one place, next to what must come of it.
 */
#include "hostile.h"

PH_IMPORT(take_i32, PH_VOID, PH_I32);
PH_IMPORT(take_text, PH_VOID, PH_STR);
PH_IMPORT(take_bytes, PH_VOID, PH_BYTES);
PH_IMPORT(take_bool_f32, PH_VOID, PH_BOOL, PH_F32);
PH_IMPORT(take_nothing, PH_VOID);

/* The library's side of a host call. Nobody makes one; a row exists because something in the program could,
 * so the compiler must not see that this does nothing. */
__attribute__((noipa)) void ph__host_call(const void *entry, ph_value *values) {
    (void)entry;
    (void)values;
}

__attribute__((noipa)) int32_t ph__host_call_try(const void *entry, ph_value *values) {
    (void)entry;
    (void)values;
    return 0;
}

static void imports_use(void) {
    take_i32(0);
    take_text("");
    take_bytes((ph_bytes){NULL, 0});
    take_bool_f32(false, 0);
    take_nothing();
}
PH_EXPORT(imports_use, PH_VOID);

static void put(ph_bytes frame) {
    memcpy(outbox(), frame.data, frame.size);
}

/* The frame becomes the answer to the call. One export for each type that a result can have. */
static void answer_void(ph_bytes frame) {
    put(frame);
    answered = true;
}
PH_EXPORT(answer_void, PH_VOID, PH_BYTES);

#define ANSWER(name, c_type, zero, type)                                                                     \
    static c_type name(ph_bytes frame) {                                                                     \
        answer_void(frame);                                                                                  \
        return zero;                                                                                         \
    }                                                                                                        \
    PH_EXPORT(name, type, PH_BYTES)

ANSWER(answer_i32, int32_t, 0, PH_I32);
ANSWER(answer_u32, uint32_t, 0, PH_U32);
ANSWER(answer_i64, int64_t, 0, PH_I64);
ANSWER(answer_f32, float, 0, PH_F32);
ANSWER(answer_f64, double, 0, PH_F64);
ANSWER(answer_bool, bool, false, PH_BOOL);
ANSWER(answer_text, const char *, "", PH_STR);
ANSWER(answer_bytes, ph_bytes, ((ph_bytes){NULL, 0}), PH_BYTES);

/* The answer is whatever the outbox holds: the argument of the last call, at the most. */
static const char *answer_nothing(void) {
    answered = true;
    return "";
}
PH_EXPORT(answer_nothing, PH_STR);

/* The frame becomes a host call. */
static uint64_t host_call(ph_bytes frame) {
    put(frame);
    return ph__doorbell_ring(PH__DOORBELL_HOST_CALL, 0, 0, 0);
}
PH_EXPORT(host_call, PH_U64, PH_BYTES);

/* The frame becomes the reason of an abort. */
static void abort_with(ph_bytes frame) {
    put(frame);
    ph__doorbell_ring(PH__DOORBELL_ABORT, 0, 0, 0);
}
PH_EXPORT(abort_with, PH_VOID, PH_BYTES);

/* What the host wrote for the last host call, as it lies in the box. */
static ph_bytes host_answer(void) {
    const struct ph__frame *frame = (const struct ph__frame *)control->host_inbox_gva;
    return (ph_bytes){frame, frame->size};
}
PH_EXPORT(host_answer, PH_BYTES);
