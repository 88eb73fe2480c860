/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Calls system calls at random, with arguments that are mostly wrong, and then checks that the program is
 * still in order: whatever it is asked, the monitor answers, and it touches no memory that it was not given.
 * Only in pinhole, where nothing outside can be harmed. The argument is the number of calls, 200000 unless
 * given.
 */
#include "sys_check.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define AREA (64 * PAGE)

static uint64_t state = 88172645463325252ull;

static uint64_t random_next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* What system calls may write to, and unmap: nothing of the program's own is in it. */
static char *area;

static uint64_t random_argument(void) {
    static const uint64_t edges[] = {
        0,
        1,
        2,
        3,
        8,
        64,
        4096,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        UINT64_MAX,
        INT64_MAX,
        1ull << 47,
        0x7e0000000000,
        0x1000,
        0x10000,
        1ull << 63,
        0x7e0000010000,
        0x7e0000060000,
        0x7e0000080000,
    };
    switch (random_next() % 5) {
    case 0:
        return edges[random_next() % (sizeof edges / sizeof *edges)];
    case 1:
        return random_next() % 512;
    case 2:
        return random_next();
    default:
        return (uint64_t)area + random_next() % AREA;
    }
}

/* Those that end the program, stop it, or take its own memory, mask or thread pointer from under it. */
static bool is_out_of_bounds(long number) {
    static const long excluded[] = {
        SYS_exit,
        SYS_exit_group,
        SYS_pause,
        SYS_rt_sigsuspend,
        SYS_rt_sigreturn,
        SYS_kill,
        SYS_tkill,
        SYS_tgkill,
        SYS_rt_sigqueueinfo,
        SYS_arch_prctl,
        SYS_futex,
        SYS_poll,
        SYS_ppoll,
        SYS_select,
        SYS_pselect6,
        SYS_nanosleep,
        SYS_clock_nanosleep,
        SYS_rt_sigtimedwait,
        SYS_write,
        SYS_writev,
        SYS_pwrite64,
        SYS_pwritev,
        SYS_close,
        SYS_close_range,
        SYS_dup2,
        SYS_dup3,
    };
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
        if (excluded[i] == number)
            return true;
    return false;
}

/* Those that change what is mapped, kept to the area. */
static bool is_about_memory(long number) {
    return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap || number == SYS_mprotect ||
           number == SYS_madvise || number == SYS_brk;
}

static void memory_call(long number) {
    uint64_t offset = random_next() % 80 * PAGE;
    uint64_t size = random_next() % (AREA + 1);
    if (offset >= AREA)
        offset = random_next() % AREA;
    if (size > AREA - offset)
        size = AREA - offset;
    uint64_t address = (uint64_t)area + offset;
    switch (number) {
    case SYS_mmap:
        syscall(SYS_mmap, address, size, random_next() % 4, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        break;
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_madvise:
        syscall(number, address, size, random_next() % 5);
        break;
    case SYS_mremap:
        syscall(SYS_mremap, address, size, random_next() % (size + 1), 0);
        break;
    default:
        syscall(SYS_brk, random_next() % 2 ? 0 : 1);
    }
}

int main(int argc, char **argv) {
    static char guard[2][4096];
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 200000;
    if (!in_pinhole()) {
        puts("only in pinhole");
        return 0;
    }
    memset(guard, 0x5a, sizeof guard);
    char *block = malloc(100000);
    memset(block, 0x5b, 100000);
    area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    for (long i = 0; i < count; i++) {
        long number = (long)(random_next() % 460);
        if (is_out_of_bounds(number))
            continue;
        if (is_about_memory(number)) {
            memory_call(number);
            continue;
        }
        uint64_t arguments[6];
        for (int argument = 0; argument < 6; argument++)
            arguments[argument] = random_argument();
        syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    }
    for (size_t i = 0; i < sizeof guard; i++)
        if (guard[i / 4096][i % 4096] != 0x5a)
            CHECK(!"a guard is changed");
    for (size_t i = 0; i < 100000; i++)
        if (block[i] != 0x5b)
            CHECK(!"a block is changed");
    CHECK(getpid() == 1);
    char *fresh = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < AREA; i++)
        if (fresh[i])
            CHECK(!"a fresh page is not zero");
    return check_end();
}
