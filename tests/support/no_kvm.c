/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A machine without KVM, for a test of the command: preloaded, it has every open of /dev/kvm fail, and passes
 * on all others.
 */
#undef _FILE_OFFSET_BITS /* it makes open another name for open64, and both are wanted */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int no_kvm_open(const char *path, int flags, mode_t mode) {
    if (strcmp(path, "/dev/kvm") == 0) {
        errno = ENOENT;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) { /* NOLINT(readability-inconsistent-declaration-parameter-name) */
    va_list arguments;
    mode_t mode = 0;

    va_start(arguments, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return no_kvm_open(path, flags, mode);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
