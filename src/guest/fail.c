/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How a call ends without a result: an ERROR frame with a code and a message. A call that fails is left by
 * guard.S, and the dispatch loop then sends what was thrown.
 */
#include "internal.h"

/* Not on the stack: a guest that fails may have little left of it. */
static struct ph__error thrown;

/* Shortens (text) to its first (length) bytes at most, and to whole UTF-8 characters. */
static void text_cut(char *text, size_t length) {
    while (length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
        length--;
    /* The character that began here may have lost its end. */
    if (length > 0 && (unsigned char)text[length - 1] >= 0xc0)
        length--;
    text[length] = 0;
}

static void error_format(struct ph__error *error, int32_t code, const char *format, va_list args) {
    int length = vsnprintf(error->message, sizeof error->message, format, args);

    error->code = code;
    if (length < 0)
        error->message[0] = 0;
    else if ((size_t)length >= sizeof error->message)
        text_cut(error->message, sizeof error->message - 1);
}

void ph__error_set(struct ph__error *error, int32_t code, const char *format, ...) {
    va_list args;

    va_start(args, format);
    error_format(error, code, format, args);
    va_end(args);
}

void ph__error_send(const struct ph__control *control, struct ph__error *error) {
    const struct ph__frame head = {.kind = PH__FRAME_ERROR, .code = error->code};
    const ph_value message = {.type = PH_STR, .str = error->message};
    const size_t room = control->box_size - sizeof head - sizeof(struct ph__slot);

    /* The box limits the message, not the message limit: a short one fits however tiny that is. */
    if (strlen(error->message) >= room)
        text_cut(error->message, room - 1);
    ph__frame_encode((void *)control->outbox_gva, control->box_size, control->box_size, &head, &message, 1);
}

/* Sends what was thrown as the end of everything. Natively it goes to stderr. */
static _Noreturn void thrown_abort(void) {
    const struct ph__control *control = ph__control_find();

    if (control) {
        ph__error_send(control, &thrown);
        ph__doorbell_ring(PH__DOORBELL_ABORT, 0, 0, 0);
        __builtin_trap(); /* the host does not come back from there */
    }
    if (write(2, thrown.message, strlen(thrown.message)) >= 0)
        (void)!write(2, "\n", 1);
    abort();
}

static _Noreturn void thrown_leave(void) {
    if (ph__guard_stack)
        ph__guard_leave();
    thrown_abort();
}

void ph__error_throw(const struct ph__error *error) {
    thrown = *error;
    thrown_leave();
}

struct ph__error *ph__error_thrown(void) {
    return &thrown;
}

void ph_fail(int32_t code, const char *format, ...) {
    va_list args;

    va_start(args, format);
    error_format(&thrown, code > 0 ? code : PH_GUEST_E_CODE, format, args);
    va_end(args);
    thrown_leave();
}

void ph_abort(int32_t code, const char *format, ...) {
    va_list args;

    va_start(args, format);
    error_format(&thrown, code, format, args);
    va_end(args);
    thrown_abort();
}
