/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a process asks about itself, and what it may not become: names, ids, limits, thread pointer, auxiliary
 * vector, random bytes; no threads and no children in pinhole. Ends with the status given as argument.
 */
#include "sys_check.h"

#include <cpuid.h>
#include <elf.h>
#include <sched.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define SET_GS 0x1001
#define SET_FS 0x1002
#define GET_FS 0x1003
#define GET_GS 0x1004

static void the_process_knows_itself(void) {
    struct utsname name;
    CHECK(uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0 && strcmp(name.machine, "x86_64") == 0);
    CHECK(getpid() > 0 && getpid() == syscall(SYS_gettid));
    CHECK(getpgid(0) >= 0 && getuid() == geteuid() && getgid() == getegid());
    uid_t real, effective, saved;
    CHECK(getresuid(&real, &effective, &saved) == 0 && real == getuid() && saved == getuid());
    CHECK(setuid(getuid()) == 0 && setgid(getgid()) == 0);
    if (in_pinhole()) {
        CHECK(getpid() == 1 && getuid() == 1000 && getgid() == 1000 && getppid() == 0);
        CHECK_ERROR(setuid(0), EPERM);
        CHECK_ERROR(setresuid(-1, 0, -1), EPERM);
    }
    char thread[16];
    CHECK(prctl(PR_SET_NAME, "a name that is too long") == 0);
    CHECK(prctl(PR_GET_NAME, thread) == 0 && strcmp(thread, "a name that is ") == 0);
    CHECK_ERROR(prctl(123456), EINVAL);
}

/* From the vector itself: getauxval of glibc has an AT_HWCAP of its own. */
static uint64_t auxiliary(uint64_t type) {
    char **end = environ;

    while (*end)
        end++;
    for (const Elf64_auxv_t *entry = (const Elf64_auxv_t *)(end + 1); entry->a_type != AT_NULL; entry++)
        if (entry->a_type == type)
            return entry->a_un.a_val;
    return 0;
}

static void the_auxiliary_vector_is_complete(void) {
    CHECK(getauxval(AT_PAGESZ) == 4096);
    CHECK(getauxval(AT_PHDR) != 0 && getauxval(AT_PHNUM) > 0 && getauxval(AT_PHENT) == 56);
    CHECK(getauxval(AT_ENTRY) != 0);
    CHECK(getauxval(AT_RANDOM) != 0 && *(uint64_t *)getauxval(AT_RANDOM) != 0);
    CHECK(getauxval(AT_UID) == getuid() && getauxval(AT_GID) == getgid());
    CHECK(getauxval(AT_CLKTCK) == 100);
    /* But for the APIC, which is the kernel's. */
    uint32_t eax, ebx, ecx, edx = 0;
    CHECK(__get_cpuid(1, &eax, &ebx, &ecx, &edx) && edx != 0);
    CHECK(!in_pinhole() || ((auxiliary(AT_HWCAP) ^ edx) & ~(1ul << 9)) == 0);
    CHECK(getauxval(AT_SECURE) == 0);
}

static void limits_can_be_read_and_lowered(void) {
    struct rlimit limit, lower;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 16384);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= 32);
    lower = limit;
    lower.rlim_cur = 20;
    CHECK(setrlimit(RLIMIT_NOFILE, &lower) == 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &lower) == 0 && lower.rlim_cur == 20 && lower.rlim_max == limit.rlim_max);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_ERROR(getrlimit(99, &limit), EINVAL);
    lower = (struct rlimit){2, 1};
    CHECK_ERROR(setrlimit(RLIMIT_NOFILE, &lower), EINVAL);
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1);
    CHECK_ERROR(syscall(SYS_sched_getaffinity, 0, 3, &set), EINVAL);
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1 && sysconf(_SC_PAGESIZE) == 4096);
    unsigned processor = 99, node = 99;
    CHECK(syscall(SYS_getcpu, &processor, &node, NULL) == 0 && processor != 99 && node != 99);
    CHECK(getpriority(PRIO_PROCESS, 0) >= -20);
}

static void memory_is_reported(void) {
    struct sysinfo info;
    CHECK(sysinfo(&info) == 0 && info.totalram > 0 && info.freeram <= info.totalram && info.mem_unit >= 1);
    uint64_t before = info.freeram * info.mem_unit;
    void *volatile block = malloc(1 << 20);
    CHECK(block != NULL && sysinfo(&info) == 0);
    CHECK(!in_pinhole() || info.freeram < before);
    free(block);
}

static void segment_bases_can_be_set(void) {
    static uint64_t there[2] = {0x1122334455667788, 7};
    uint64_t base = 1, value;
    CHECK(syscall(SYS_arch_prctl, GET_FS, &base) == 0 && base != 0);
    CHECK(syscall(SYS_arch_prctl, SET_FS, base) == 0);
    CHECK(syscall(SYS_arch_prctl, SET_GS, there) == 0);
    CHECK(syscall(SYS_arch_prctl, GET_GS, &base) == 0 && base == (uint64_t)there);
    __asm__ volatile("mov %%gs:8, %0" : "=r"(value));
    CHECK(value == 7);
    CHECK(syscall(SYS_arch_prctl, SET_GS, 0) == 0);
    CHECK_ERROR(syscall(SYS_arch_prctl, SET_GS, 0x8000000000000000ull), EPERM);
    CHECK_ERROR(syscall(SYS_arch_prctl, 0x7777, 0), EINVAL);
}

static void random_bytes_differ(void) {
    unsigned char first[300], second[300];
    int counts[256] = {0};
    CHECK(getrandom(first, sizeof first, 0) == sizeof first);
    CHECK(getrandom(second, sizeof second, GRND_NONBLOCK) == sizeof second);
    CHECK(memcmp(first, second, sizeof first) != 0);
    for (size_t i = 0; i < sizeof first; i++) {
        counts[first[i]]++;
        counts[second[i]]++;
    }
    int most = 0;
    for (int i = 0; i < 256; i++)
        most = counts[i] > most ? counts[i] : most;
    CHECK(most < 20);
    CHECK(getrandom(first, 0, 0) == 0);
    CHECK(getrandom(first, 3, 0) == 3);
    CHECK_ERROR(getrandom(first, 1, 0x100), EINVAL);
}

static void there_are_no_others(void) {
    int status;
    CHECK_ERROR(waitpid(-1, &status, WNOHANG), ECHILD);
    CHECK_ERROR(syscall(SYS_waitid, P_ALL, 0, NULL, WEXITED | WNOHANG, NULL), ECHILD);
    if (!in_pinhole())
        return;
    CHECK_ERROR(fork(), EAGAIN);
    CHECK_ERROR(syscall(SYS_vfork), EAGAIN);
    CHECK_ERROR(syscall(SYS_clone, 0x11, 0, 0, 0, 0), EAGAIN);
    CHECK_ERROR(syscall(SYS_clone3, NULL, 88), ENOSYS);
    CHECK_ERROR(syscall(SYS_socket, 2, 1, 0), ENOSYS);
    CHECK_ERROR(syscall(5000), ENOSYS);
    CHECK_ERROR(syscall(-1), ENOSYS);
}

int main(int argc, char **argv) {
    the_process_knows_itself();
    the_auxiliary_vector_is_complete();
    limits_can_be_read_and_lowered();
    memory_is_reported();
    segment_bases_can_be_set();
    random_bytes_differ();
    there_are_no_others();
    return check_end() ? 1 : argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
}
