/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the files of libpinhole-guest.a share. They run in the guest beside whatever C library the program
 * has, so they include no header of it: what they need from it is declared here, and is the same in glibc and
 * musl.
 */
#ifndef PH_GUEST_INTERNAL_H
#define PH_GUEST_INTERNAL_H

#include <stdarg.h>

#include <pinhole/guest.h>

#include "abi/control.h"
#include "abi/doorbell.h"
#include "abi/frame.h"
#include "abi/table.h"

_Static_assert(PH_GUEST_E_TOO_LARGE == PH__CODE_TOO_LARGE && PH_GUEST_E_NO_MEMORY == PH__CODE_NO_MEMORY &&
                   PH_GUEST_E_HOST == PH__CODE_HOST,
               "host and guest library report the same codes");

void *malloc(size_t size);
void free(void *memory);
void *memcpy(void *restrict to, const void *restrict from, size_t size);
size_t strlen(const char *text);
int vsnprintf(char *restrict text, size_t size, const char *restrict format, va_list args);
long write(int descriptor, const void *bytes, size_t size);
unsigned long getauxval(unsigned long type);
_Noreturn void abort(void);

/* Standard output, as an address: glibc and musl have different types behind the same names. */
extern void *stdout;
int fflush(void *stream);
int setvbuf(void *stream, char *buffer, int mode, size_t size);
#define PH__LINE_BUFFERED 1 /* _IOLBF of both */

/* Hidden: references from position-independent code then need no table of addresses. */
#pragma GCC visibility push(hidden)

/* note.c. The linker makes the start and the end of each table. */
extern const struct ph__note ph__note;
extern const struct ph__function_entry ph__exports[] __asm__("__start_ph_exports");
extern const struct ph__function_entry ph__exports_end[] __asm__("__stop_ph_exports");
extern const struct ph__function_entry ph__imports[] __asm__("__start_ph_imports");

/* control.c: the control page, or NULL where the program runs natively. */
const struct ph__control *ph__control_find(void);

/* arena.c: ends the life of everything that ph_alloc gave. */
void ph__arena_reset(void);

/* fail.c. One error at a time is on its way to the host: */
struct ph__error {
    int32_t code;
    char message[PH_ERROR_MESSAGE_SIZE];
};

/* Sets (error); what does not fit of the message is cut between characters. */
void ph__error_set(struct ph__error *error, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes (error) to the outbox as an ERROR frame; its message is shortened where the box is small. */
void ph__error_send(const struct ph__control *control, struct ph__error *error);

/* Ends the call with (error); where there is no call, it is ph_abort. */
_Noreturn void ph__error_throw(const struct ph__error *error);

/* The error that ended the call that ph__guard_call left. */
struct ph__error *ph__error_thrown(void);

/* host_call.c: forgets what ph_error_message gives. */
void ph__error_message_clear(void);

/* guard.S: calls (thunk). Returns 0 when it returned and 1 when it was left by ph__guard_leave, which
 * may only be called inside it: while ph__guard_stack is not NULL. Does not nest. */
int ph__guard_call(ph__thunk *thunk, const ph_value *args, ph_value *result);
_Noreturn void ph__guard_leave(void);
extern void *ph__guard_stack;

/* room.c: ph__ring_room of the ring's limit at (limit) bytes, for ph__trace_room_call. */
bool ph__trace_room(uint64_t bytes, uint64_t limit);

/* trace.c. All of them do nothing where the host does not trace. */

/* Begins the span of a call of export number (index). Returns its position, or 0. */
uint64_t ph__trace_call_begin(const struct ph__control *control, uint32_t index);

/* Ends the span that began at (position), unless that is 0. */
void ph__trace_span_end(uint64_t position);

/* Ends the span of the start, which the monitor began. */
void ph__trace_start_end(const struct ph__control *control);

#pragma GCC visibility pop

static inline const char *ph__entry_name(const struct ph__function_entry *entry) {
    return (const char *)&entry->name + entry->name;
}

static inline ph__thunk *ph__entry_thunk(const struct ph__function_entry *entry) {
    return (ph__thunk *)((uintptr_t)&entry->thunk + (uintptr_t)(intptr_t)entry->thunk);
}

#endif
