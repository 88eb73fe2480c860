/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every system call that the library makes, in one table: `ph__system.mmap(...)` where a program would write
 * `mmap(...)`. A test replaces an entry to make it fail, to count it, or to answer in the kernel's place; the
 * library itself never does. Entries are replaced while no other thread uses the library, since they are read
 * without a lock.
 *
 * An entry has the arguments, the result and the errno of the function in libc that it is named after. The
 * allocator and pthread's locks are not here: what they ask of the kernel is libc's own. Nor are streams
 * (FILE), which the user of the library has opened and can make fail. A test (tests/unit/test_system.c)
 * looks for calls that go around the table.
 */
#ifndef PH_BASE_SYSTEM_H
#define PH_BASE_SYSTEM_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

struct ph__system {
    /* Files. */
    int (*open)(const char *path, int flags, ...);
    int (*close)(int file);
    ssize_t (*read)(int file, void *bytes, size_t size);
    ssize_t (*pread)(int file, void *bytes, size_t size, off_t offset);
    ssize_t (*pwrite)(int file, const void *bytes, size_t size, off_t offset);
    off_t (*lseek)(int file, off_t offset, int whence);
    int (*lstat)(const char *path, struct stat *information);
    int (*fstat)(int file, struct stat *information);
    int (*ftruncate)(int file, off_t size);
    int (*fsync)(int file);
    int (*fcntl)(int file, int command, ...);
    int (*ioctl)(int file, unsigned long request, ...);
    int (*access)(const char *path, int mode);
    ssize_t (*readlink)(const char *path, char *target, size_t size);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, mode_t mode);
    int (*isatty)(int file);
    int (*memfd_create)(const char *name, unsigned flags);

    /* Memory. */
    void *(*mmap)(void *address, size_t size, int protection, int flags, int file, off_t offset);
    int (*munmap)(void *address, size_t size);
    int (*madvise)(void *address, size_t size, int advice);
    int (*mprotect)(void *address, size_t size, int protection);
    ssize_t (*process_vm_readv)(pid_t process, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count, unsigned long flags);
    ssize_t (*process_vm_writev)(pid_t process, const struct iovec *local, unsigned long local_count,
                                 const struct iovec *remote, unsigned long remote_count, unsigned long flags);

    /* Threads and signals. The functions of pthread give the error as their result. */
    int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                          void *argument);
    int (*pthread_join)(pthread_t thread, void **result);
    int (*pthread_sigmask)(int how, const sigset_t *set, sigset_t *old);
    int (*sigaction)(int number, const struct sigaction *action, struct sigaction *old);
    int (*tgkill)(pid_t process, pid_t thread, int number);
    /* FUTEX_WAIT_PRIVATE; without an end when (timeout) is NULL. */
    int (*futex_wait)(_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout);
    pid_t (*getpid)(void);
    pid_t (*gettid)(void);

    /* Time and the rest. */
    int (*clock_gettime)(clockid_t clock, struct timespec *now);
    int (*nanosleep)(const struct timespec *time, struct timespec *left);
    int (*getrusage)(int who, struct rusage *usage);
    ssize_t (*getrandom)(void *bytes, size_t size, unsigned flags);
    long (*sysconf)(int name);
    int (*uname)(struct utsname *names);
};

extern struct ph__system ph__system;

#endif
