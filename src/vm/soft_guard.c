/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Keeps the process alive where Unicorn would end it (soft_parts.h). Its translator calls abort() for some
 * instructions that a processor refuses, so that any guest could end the host. The functions that end a
 * process are here as well: the plug-in is opened so that its own names come first in what it brings along
 * (RTLD_DEEPBIND, plugin.c), and then libunicorn finds these. Called while a guest runs, they go back to
 * where it was entered, as Unicorn itself does from the same places for a page fault in a fetch. The engine
 * is then good for nothing but uc_close.
 *
 * Where the plug-in cannot be opened in that way (AddressSanitizer refuses it), or the program has linked
 * libunicorn itself, the process ends as before.
 */
#include <assert.h> /* __assert_fail */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "vm/soft_parts.h"

#define OVERRIDE __attribute__((visibility("default")))

/* Where this thread has entered a guest; NULL outside. */
static _Thread_local sigjmp_buf *entry;

/* Goes back there; outside the process ends as it would have. */
static _Noreturn void leave(void) {
    if (entry)
        siglongjmp(*entry, 1);
    void (*real)(void) = (void (*)(void))(uintptr_t)dlsym(RTLD_NEXT, "abort");
    if (real)
        real();
    __builtin_trap();
}

OVERRIDE _Noreturn void abort(void) {
    leave();
}

OVERRIDE _Noreturn void exit(int status) {
    (void)status; /* Unicorn has no status but that of a failure */
    leave();
}

OVERRIDE _Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line,
                                      const char *function) {
    (void)assertion;
    (void)file;
    (void)line;
    (void)function;
    leave();
}

/* What it says in front of that on standard error is the host's to say, in a status. */
/* NOLINTBEGIN(cert-dcl37-c,bugprone-reserved-identifier): it is the C library's name that is wanted */
OVERRIDE int __fprintf_chk(FILE *file, int flag, const char *format, ...);
OVERRIDE int __fprintf_chk(FILE *file, int flag, const char *format, ...) {
    va_list arguments;
    int count = 0;

    (void)flag;
    va_start(arguments, format);
    if (!entry)
        count = vfprintf(file, format, arguments);
    va_end(arguments);
    return count;
}
/* NOLINTEND(cert-dcl37-c,bugprone-reserved-identifier) */

bool ph__soft_guard(uc_engine *engine, uint64_t gva, uint64_t end, uc_err *result) {
    sigjmp_buf here;

    if (sigsetjmp(here, 0)) {
        entry = NULL;
        return false;
    }
    entry = &here;
    /* Neither Unicorn's counting nor its time-out is used: the one takes a gigabyte, the other a thread for
     * each run. */
    *result = uc_emu_start(engine, gva, end, 0, 0);
    entry = NULL;
    return true;
}
