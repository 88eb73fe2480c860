/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The table of system calls as it is in every program but a test: libc's functions (system.h). The only
 * source of the library that names them. Keeps no state but the table, and never looks at a result.
 */
#include "base/system.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What libc does not have, or has not had for long (glibc 2.30). */

static int system_tgkill(pid_t process, pid_t thread, int number) {
    return (int)syscall(SYS_tgkill, process, thread, number);
}

static int system_futex_wait(_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout) {
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}

static pid_t system_gettid(void) {
    return (pid_t)syscall(SYS_gettid);
}

struct ph__system ph__system = {
    .open = open,
    .close = close,
    .read = read,
    .pread = pread,
    .pwrite = pwrite,
    .lseek = lseek,
    .lstat = lstat,
    .fstat = fstat,
    .ftruncate = ftruncate,
    .fsync = fsync,
    .fcntl = fcntl,
    .ioctl = ioctl,
    .access = access,
    .readlink = readlink,
    .rename = rename,
    .unlink = unlink,
    .mkdir = mkdir,
    .isatty = isatty,
    .memfd_create = memfd_create,
    .mmap = mmap,
    .munmap = munmap,
    .madvise = madvise,
    .mprotect = mprotect,
    .process_vm_readv = process_vm_readv,
    .process_vm_writev = process_vm_writev,
    .pthread_create = pthread_create,
    .pthread_join = pthread_join,
    .pthread_sigmask = pthread_sigmask,
    .sigaction = sigaction,
    .tgkill = system_tgkill,
    .futex_wait = system_futex_wait,
    .getpid = getpid,
    .gettid = system_gettid,
    .clock_gettime = clock_gettime,
    .nanosleep = nanosleep,
    .getrusage = getrusage,
    .getrandom = getrandom,
    .sysconf = sysconf,
    .uname = uname,
};
