/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Bad pointers in system calls are EFAULT, wherever they point, and the program goes on.
 */
#include "sys_check.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

/* What may not be read or written: null, low, kernel half, non-canonical, the top, a page without rights. */
static void *bad[7];
enum { BAD_COUNT = sizeof bad / sizeof *bad };

static void bad_pointers_are_efault(void *pointer) {
    struct iovec vector = {pointer, 10};
    CHECK_ERROR(syscall(SYS_write, 1, pointer, 10), EFAULT);
    CHECK_ERROR(syscall(SYS_writev, 1, &vector, 1), EFAULT);
    CHECK_ERROR(syscall(SYS_writev, 1, pointer, 1), EFAULT);
    CHECK_ERROR(syscall(SYS_uname, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_clock_gettime, 1, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_nanosleep, pointer, NULL), EFAULT);
    CHECK_ERROR(syscall(SYS_getrandom, pointer, 16, 0), EFAULT);
    CHECK_ERROR(syscall(SYS_open, pointer, 0), EFAULT);
    CHECK_ERROR(syscall(SYS_openat, -100, pointer, 0), EFAULT);
    CHECK_ERROR(syscall(SYS_stat, pointer, &vector), EFAULT);
    CHECK_ERROR(syscall(SYS_fstat, 1, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_getcwd, pointer, 100), EFAULT);
    CHECK_ERROR(syscall(SYS_rt_sigaction, SIGHUP, pointer, NULL, 8), EFAULT);
    CHECK_ERROR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, pointer, NULL, 8), EFAULT);
    CHECK_ERROR(syscall(SYS_sigaltstack, pointer, NULL), EFAULT);
    CHECK_ERROR(syscall(SYS_poll, pointer, 1, 0), EFAULT);
    CHECK_ERROR(syscall(SYS_prlimit64, 0, 3, pointer, NULL), EFAULT);
    CHECK_ERROR(syscall(SYS_prlimit64, 0, 3, NULL, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_sysinfo, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_sched_getaffinity, 0, 128, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_arch_prctl, 0x1003, pointer), EFAULT);
    CHECK_ERROR(syscall(SYS_futex, pointer, 0, 0, NULL), EFAULT);
}

/* A buffer that runs from a good page into a bad one. */
static void half_a_buffer_is_efault(void) {
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(pages + PAGE, PAGE, PROT_NONE) == 0);
    CHECK_ERROR(syscall(SYS_uname, pages + PAGE - 8), EFAULT);
    CHECK_ERROR(syscall(SYS_clock_gettime, 1, pages + PAGE - 8), EFAULT);
    memset(pages, 'x', PAGE);
    CHECK_ERROR(syscall(SYS_open, pages + PAGE - 3, 0), EFAULT);
    pages[PAGE - 1] = 0;
    CHECK_ERROR(syscall(SYS_open, pages + PAGE - 3, 0), ENOENT);
    /* Read-only is enough to read from. */
    CHECK(mprotect(pages, PAGE, PROT_READ) == 0);
    CHECK_ERROR(syscall(SYS_open, pages + PAGE - 3, 0), ENOENT);
    CHECK_ERROR(syscall(SYS_uname, pages), EFAULT);
    CHECK(munmap(pages, 3 * PAGE) == 0);
}

int main(void) {
    void *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t numbers[BAD_COUNT] = {
        8,
        0x2000,
        0xffff800000000000,
        0x8000000000000000,
        UINTPTR_MAX - 3,
        (uintptr_t)none,
        in_pinhole() ? 0x7e0000060000 : 0x10, /* the monitor's own stack */
    };
    for (int i = 0; i < BAD_COUNT; i++) {
        bad[i] = (void *)numbers[i];
        bad_pointers_are_efault(bad[i]);
    }
    half_a_buffer_is_efault();
    CHECK_ERROR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, (void *)8, 8), EFAULT);
    CHECK_ERROR(syscall(SYS_write, 1, main, (size_t)1 << 63), EFAULT);
    return check_end();
}
