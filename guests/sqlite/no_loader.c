/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * SQLite loads extensions from shared libraries with dlopen; a static program has none, and the linker warns.
 * Linked with -Wl,--wrap=dlopen, this is what SQLite calls instead.
 */
#include <stddef.h>

void *no_dlopen(const char *path, int mode) __asm__("__wrap_dlopen");

void *no_dlopen(const char *path, int mode) {
    (void)path;
    (void)mode;
    return NULL;
}
