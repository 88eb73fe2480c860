/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A machine without KVM, for the test's own process: ph__system.open with this in its place. What a whole
 * program does there is tried in a mount namespace (without-kvm.sh).
 */
#ifndef PH_TESTS_HIDDEN_KVM_H
#define PH_TESTS_HIDDEN_KVM_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* open, for which there is no /dev/kvm. It makes no files: it takes no mode. */
static inline int open_without_kvm(const char *path, int flags, ...) {
    if (strcmp(path, "/dev/kvm") == 0) {
        errno = ENOENT;
        return -1;
    }
    return open(path, flags); /* NOLINT(android-cloexec-open): as the library asks */
}

#endif
