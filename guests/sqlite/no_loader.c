/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * SQLite loads extensions from shared libraries with dlopen; a static program has none, and the linker warns. Linked with
 * -Wl,--wrap=dlopen, this is what SQLite calls instead.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *path, int mode);

void *__wrap_dlopen(const char *path, int mode) {
    (void)path;
    (void)mode;
    return NULL;
}
