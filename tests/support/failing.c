/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Stands between the library and the kernel (failing.h), in the library's own table of system calls, and
 * between the library and the allocator, by the linker's --wrap: a call of malloc comes to __wrap_malloc, and
 * __real_malloc is the true one. The table is changed before main, so before any thread is there.
 */
#include "support/failing.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/system.h"

#define PAGE_SCAN ('f' << 8 | 16) /* type and number of PAGEMAP_SCAN */
#define EXEC_SEAL 0x0008U         /* MFD_NOEXEC_SEAL */

struct failing failing;

static struct ph__system real;
static _Thread_local bool is_main_thread;
static const char *names[64]; /* of calls that have failed */
static unsigned names_count;

bool failing_has_failed(const char *name) {
    for (unsigned i = 0; i < names_count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool fails(const char *name, int error) {
    if (!is_main_thread)
        return false;
    failing.count++;
    if (failing.count != failing.at)
        return false;
    failing.failed = name;
    if (!failing_has_failed(name) && names_count < sizeof names / sizeof names[0])
        names[names_count++] = name;
    errno = failing.error ? failing.error : error;
    return true;
}

static bool interrupted(void) {
    static bool last;

    if (!is_main_thread || !failing.interrupted_transfers)
        return false;
    last = !last;
    if (last)
        errno = EINTR;
    return last;
}

static size_t part_of(size_t size) {
    return is_main_thread && failing.short_transfers && size > 1 ? size / 2 : size;
}

/* ---- system calls -------------------------------------------------------------------------------------- */

#define FAILING(type, name, parameters, arguments, error, failure)                                           \
    static type failing_##name parameters {                                                                  \
        return fails(#name, error) ? (failure) : real.name arguments;                                        \
    }

static int failing_open(const char *path, int flags, ...) {
    va_list arguments;

    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : real.open(path, flags, mode);
}

/* Linux lets go of the descriptor whatever it says. */
static int failing_close(int file) {
    int result = real.close(file);

    if (fails("close", EIO))
        return -1;
    if (is_main_thread && failing.closes_fail) {
        errno = EIO;
        return -1;
    }
    return result;
}

static ssize_t failing_read(int file, void *bytes, size_t size) {
    return interrupted() || fails("read", EIO) ? -1 : real.read(file, bytes, part_of(size));
}

static ssize_t failing_pread(int file, void *bytes, size_t size, off_t offset) {
    return interrupted() || fails("pread", EIO) ? -1 : real.pread(file, bytes, part_of(size), offset);
}

static ssize_t failing_pwrite(int file, const void *bytes, size_t size, off_t offset) {
    return interrupted() || fails("pwrite", ENOSPC) ? -1 : real.pwrite(file, bytes, part_of(size), offset);
}

static int failing_fstat(int file, struct stat *information) {
    if (fails("fstat", EIO) || real.fstat(file, information) != 0)
        return -1;
    information->st_size += (off_t)failing.file_grows_by;
    return 0;
}

static int failing_fcntl(int file, int command, ...) {
    va_list arguments;

    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    return fails("fcntl", EBUSY) ? -1 : real.fcntl(file, command, argument);
}

static int failing_ioctl(int file, unsigned long request, ...) {
    va_list arguments;

    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (failing.no_page_scan && (request & 0xffff) == PAGE_SCAN) {
        errno = ENOTTY;
        return -1;
    }
    return fails(request == KVM_RUN ? "KVM_RUN" : "ioctl", EINVAL) ? -1 : real.ioctl(file, request, argument);
}

static int failing_memfd_create(const char *name, unsigned flags) {
    if (failing.no_exec_seal && (flags & EXEC_SEAL)) {
        errno = EINVAL;
        return -1;
    }
    return fails("memfd_create", EMFILE) ? -1 : real.memfd_create(name, flags);
}

FAILING(int, lstat, (const char *path, struct stat *information), (path, information), EACCES, -1)
FAILING(off_t, lseek, (int file, off_t offset, int whence), (file, offset, whence), EINVAL, -1)
FAILING(int, ftruncate, (int file, off_t size), (file, size), ENOSPC, -1)
FAILING(long, sysconf, (int name), (name), EINVAL, -1)
FAILING(int, fsync, (int file), (file), EIO, -1)
FAILING(int, access, (const char *path, int mode), (path, mode), ENOENT, -1)
FAILING(int, rename, (const char *from, const char *to), (from, to), EACCES, -1)
FAILING(int, unlink, (const char *path), (path), EACCES, -1)
FAILING(int, isatty, (int file), (file), ENOTTY, 0)

FAILING(void *, mmap, (void *address, size_t size, int protection, int flags, int file, off_t offset),
        (address, size, protection, flags, file, offset), ENOMEM, MAP_FAILED)
FAILING(int, munmap, (void *address, size_t size), (address, size), ENOMEM, -1)
FAILING(int, madvise, (void *address, size_t size, int advice), (address, size, advice), EINVAL, -1)
FAILING(int, mprotect, (void *address, size_t size, int protection), (address, size, protection), ENOMEM, -1)
FAILING(ssize_t, process_vm_readv,
        (pid_t process, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
         unsigned long remote_count, unsigned long flags),
        (process, local, local_count, remote, remote_count, flags), EFAULT, -1)
FAILING(ssize_t, process_vm_writev,
        (pid_t process, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
         unsigned long remote_count, unsigned long flags),
        (process, local, local_count, remote, remote_count, flags), EFAULT, -1)

FAILING(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument),
        (thread, attributes, start, argument), EAGAIN, errno)
FAILING(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), EINVAL, errno)
FAILING(int, sigaction, (int number, const struct sigaction *action, struct sigaction *old),
        (number, action, old), EINVAL, -1)
FAILING(int, tgkill, (pid_t process, pid_t thread, int number), (process, thread, number), EAGAIN, -1)
FAILING(int, futex_wait, (_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout),
        (word, expected, timeout), EINTR, -1)
FAILING(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), EINTR, -1)
FAILING(int, getrusage, (int who, struct rusage *usage), (who, usage), EINVAL, -1)
FAILING(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags), ENOSYS, -1)

/* The others cannot fail as the library calls them: getpid and gettid have no error, clock_gettime none for
 * the clocks of every kernel, and pthread_join none for a thread that is there. */
__attribute__((constructor)) static void replace_entries(void) {
    is_main_thread = true;
    real = ph__system;
#define REPLACE(name) ph__system.name = failing_##name
    REPLACE(open);
    REPLACE(close);
    REPLACE(read);
    REPLACE(pread);
    REPLACE(pwrite);
    REPLACE(lseek);
    REPLACE(lstat);
    REPLACE(fstat);
    REPLACE(ftruncate);
    REPLACE(fsync);
    REPLACE(sysconf);
    REPLACE(fcntl);
    REPLACE(ioctl);
    REPLACE(access);
    REPLACE(rename);
    REPLACE(unlink);
    REPLACE(isatty);
    REPLACE(memfd_create);
    REPLACE(mmap);
    REPLACE(munmap);
    REPLACE(madvise);
    REPLACE(mprotect);
    REPLACE(process_vm_readv);
    REPLACE(process_vm_writev);
    REPLACE(pthread_create);
    REPLACE(pthread_sigmask);
    REPLACE(sigaction);
    REPLACE(tgkill);
    REPLACE(futex_wait);
    REPLACE(nanosleep);
    REPLACE(getrusage);
    REPLACE(getrandom);
#undef REPLACE
}

/* ---- the allocator ------------------------------------------------------------------------------------- */

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

/* ---- what is left behind ------------------------------------------------------------------------------- */

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

unsigned failing_mappings(void) {
    unsigned count = 0;
    FILE *file = fopen("/proc/self/maps", "re");

    if (file) {
        for (int c; (c = getc(file)) != EOF;)
            count += c == '\n';
        fclose(file);
    }
    return count;
}
