/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Taking a frame out of the outbox: its size is read once, its bytes are copied once, and only the copy is
 * looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

/* Keeps a buffer as large as the frames that came so far: a malloc per call would be felt. */
static bool reserve(ph_sandbox *sandbox, size_t size) {
    if (size <= sandbox->received_capacity)
        return true;
    size_t capacity = (size + 4095) / 4096 * 4096;
    uint8_t *buffer = malloc(capacity);
    if (!buffer)
        return false;
    uint8_t *old = sandbox->received;
    sandbox->received = buffer; /* before the old one goes: a child of fork() frees what it finds here */
    sandbox->received_capacity = capacity;
    free(old);
    return true;
}

PH__HOT ph_status ph__frame_receive(ph_sandbox *sandbox, const char *what,
                                    const struct ph__frame **received) {
    const uint8_t *box = ph__box(sandbox, PH__BOX_OUT);
    uint32_t untrusted_size = __atomic_load_n(&((const struct ph__frame *)box)->size, __ATOMIC_RELAXED);

    if (untrusted_size < sizeof(struct ph__frame) || untrusted_size > sandbox->memory.layout.box_size)
        return ph__fault_protocol(sandbox, what);
    uint32_t size = untrusted_size;
    if (!reserve(sandbox, size)) {
        ph__error_set(&sandbox->error, PH_E_MEMORY, "no memory for a message of the guest");
        return ph__sandbox_poison(sandbox, PH_E_MEMORY);
    }
    memcpy(sandbox->received, box, size);
    struct ph__frame *frame = (struct ph__frame *)sandbox->received;
    frame->size = size; /* the copy may have caught another value */
    *received = frame;
    return PH_OK;
}

PH__HOT bool ph__frame_values(const ph_sandbox *sandbox, const ph_type *types, size_t count,
                              ph_value *values) {
    const struct ph__frame *frame = (const struct ph__frame *)sandbox->received;
    return ph__frame_decode(sandbox->received, frame->size, types, count, values) == PH__FRAME_OK;
}

const char *ph__frame_message(const ph_sandbox *sandbox) {
    const ph_type type = PH_STR;
    ph_value message;
    return ph__frame_values(sandbox, &type, 1, &message) ? message.str : NULL;
}
