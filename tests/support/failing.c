/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Stands between the library and the C library (failing.h), by the linker's --wrap: a call of NAME comes to
 * __wrap_NAME, and __real_NAME is the true one. The functions with 64 in their names are the same ones, as
 * sources with _FILE_OFFSET_BITS=64 call them.
 */
#include "failing.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#define EXEC_SEAL 0x0008U /* MFD_NOEXEC_SEAL */

struct failing failing;

static bool fails(const char *name, int error) {
    failing.count++;
    if (failing.count != failing.at)
        return false;
    failing.failed = name;
    errno = failing.error ? failing.error : error;
    return true;
}

static bool interrupted(void) {
    static bool last;

    last = failing.interrupted_transfers && !last;
    if (last)
        errno = EINTR;
    return last;
}

static size_t part_of(size_t size) {
    return failing.short_transfers && size > 1 ? size / 2 : size;
}

#define WRAP(type, name, parameters)                                                                         \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters

WRAP(void *, malloc, (size_t size)) {
    return fails("malloc", ENOMEM) ? NULL : __real_malloc(size);
}

WRAP(void *, calloc, (size_t count, size_t size)) {
    return fails("calloc", ENOMEM) ? NULL : __real_calloc(count, size);
}

WRAP(void *, realloc, (void *memory, size_t size)) {
    return fails("realloc", ENOMEM) ? NULL : __real_realloc(memory, size);
}

WRAP(char *, strdup, (const char *text)) {
    return fails("strdup", ENOMEM) ? NULL : __real_strdup(text);
}

WRAP(int, memfd_create, (const char *name, unsigned flags)) {
    if (failing.no_exec_seal && (flags & EXEC_SEAL)) {
        errno = EINVAL;
        return -1;
    }
    return fails("memfd_create", EMFILE) ? -1 : __real_memfd_create(name, flags);
}

#define WRAP_FILE_FUNCTIONS(suffix)                                                                          \
    int __real_open##suffix(const char *path, int flags, ...);                                               \
    int __wrap_open##suffix(const char *path, int flags, ...);                                               \
    int __wrap_open##suffix(const char *path, int flags, ...) {                                              \
        va_list arguments;                                                                                   \
        va_start(arguments, flags);                                                                          \
        mode_t mode = va_arg(arguments, mode_t);                                                             \
        va_end(arguments);                                                                                   \
        return fails("open", EMFILE) ? -1 : __real_open##suffix(path, flags, mode);                          \
    }                                                                                                        \
    int __real_fcntl##suffix(int fd, int command, ...);                                                      \
    int __wrap_fcntl##suffix(int fd, int command, ...);                                                      \
    int __wrap_fcntl##suffix(int fd, int command, ...) {                                                     \
        va_list arguments;                                                                                   \
        va_start(arguments, command);                                                                        \
        long argument = va_arg(arguments, long);                                                             \
        va_end(arguments);                                                                                   \
        return fails("fcntl", EBUSY) ? -1 : __real_fcntl##suffix(fd, command, argument);                     \
    }                                                                                                        \
    WRAP(int, fstat##suffix, (int fd, struct stat *information)) {                                           \
        if (fails("fstat", EIO) || __real_fstat##suffix(fd, information) != 0)                               \
            return -1;                                                                                       \
        information->st_size += (off_t)failing.file_grows_by;                                                \
        return 0;                                                                                            \
    }                                                                                                        \
    WRAP(int, ftruncate##suffix, (int fd, off_t size)) {                                                     \
        return fails("ftruncate", ENOSPC) ? -1 : __real_ftruncate##suffix(fd, size);                         \
    }                                                                                                        \
    WRAP(ssize_t, pwrite##suffix, (int fd, const void *bytes, size_t size, off_t offset)) {                  \
        if (interrupted() || fails("pwrite", ENOSPC))                                                        \
            return -1;                                                                                       \
        return __real_pwrite##suffix(fd, bytes, part_of(size), offset);                                      \
    }

WRAP_FILE_FUNCTIONS()
WRAP_FILE_FUNCTIONS(64)

WRAP(ssize_t, read, (int fd, void *bytes, size_t size)) {
    if (interrupted() || fails("read", EIO))
        return -1;
    return __real_read(fd, bytes, part_of(size));
}

/* NOLINTBEGIN(cert-dcl37-c): the linker wants these names */
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fails("ioctl", EINVAL) ? -1 : __real_ioctl(fd, request, argument);
}
/* NOLINTEND(cert-dcl37-c) */

#define WRAP_MMAP(suffix)                                                                                    \
    WRAP(void *, mmap##suffix,                                                                               \
         (void *address, size_t size, int protection, int flags, int fd, off_t offset)) {                    \
        return fails("mmap", ENOMEM) ? MAP_FAILED                                                            \
                                     : __real_mmap##suffix(address, size, protection, flags, fd, offset);    \
    }

WRAP_MMAP()
WRAP_MMAP(64)

WRAP(int, madvise, (void *address, size_t size, int advice)) {
    return fails("madvise", EINVAL) ? -1 : __real_madvise(address, size, advice);
}

WRAP(int, mprotect, (void *address, size_t size, int protection)) {
    return fails("mprotect", ENOMEM) ? -1 : __real_mprotect(address, size, protection);
}

WRAP(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags)) {
    return fails("getrandom", ENOSYS) ? -1 : __real_getrandom(bytes, size, flags);
}

WRAP(int, sigaction, (int number, const struct sigaction *action, struct sigaction *old)) {
    return fails("sigaction", EINVAL) ? -1 : __real_sigaction(number, action, old);
}

WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)) {
    return fails("pthread_create", EAGAIN) ? EAGAIN
                                           : __real_pthread_create(thread, attributes, start, argument);
}

unsigned failing_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");

    if (folder) {
        /* The stream is this thread's own. */
        /* cppcheck-suppress readdirCalled */
        while (readdir(folder))
            count++;
        closedir(folder);
    }
    return count;
}
