/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Faults that a program handles itself: the handler gets Linux's siginfo and context, may repair and return,
 * or jump out; it may run on its own stack when the first one overflows.
 */
#include "sys_check.h"

#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

static sigjmp_buf jump;
static siginfo_t info_seen;
static ucontext_t context_seen;
static uint64_t fpstate_magic;

static void jump_out(int number, siginfo_t *info, void *context) {
    info_seen = *info;
    context_seen = *(ucontext_t *)context;
    const char *state = (const char *)context_seen.uc_mcontext.fpregs;
    uint32_t magic, magic2, size;
    memcpy(&magic, state + 464, 4);
    memcpy(&size, state + 464 + 16, 4);
    memcpy(&magic2, state + size, 4);
    fpstate_magic = magic == 0x46505853 && magic2 == 0x46505845 && (uintptr_t)state % 64 == 0;
    siglongjmp(jump, number);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
    CHECK(sigaction(number, &action, NULL) == 0);
}

#define FAULT_CHECK(statement, number, code, address)                                                        \
    do {                                                                                                     \
        int number_ = sigsetjmp(jump, 1);                                                                    \
        if (number_ == 0) {                                                                                  \
            statement;                                                                                       \
            CHECK(!"the statement faults");                                                                  \
        } else if (number_ != (number) || info_seen.si_signo != (number) || info_seen.si_code != (code) ||   \
                   ((address) != NULL && info_seen.si_addr != (address))) {                                  \
            printf("%s:%d: %s: signal %d, code %d, address %p\n", __FILE__, __LINE__, #statement, number_,   \
                   info_seen.si_code, info_seen.si_addr);                                                    \
            sys_failures++;                                                                                  \
        }                                                                                                    \
    } while (0)

#define REGISTER(name) ((uint64_t)context_seen.uc_mcontext.gregs[name])

/* QEMU's emulation has a general-protection fault where processors have a stack fault; not so pinhole's. */
static bool on_emulated_processor(void) {
    if (sigsetjmp(jump, 1) == 0)
        __asm__ volatile("push %%rbp\n\tmovabs $0x8000000000000000, %%rbp\n\tmov (%%rbp), %%rbp" ::
                             : "memory");
    return REGISTER(REG_TRAPNO) == 13;
}

/* QEMU's emulation has no SIMD exceptions. */
static bool has_no_simd_exceptions(void) {
    unsigned name[4];

    __cpuid(0x80000002, name[0], name[1], name[2], name[3]);
    return memcmp(name, "pinhole soft", 12) == 0 || on_emulated_processor();
}

static void memory_faults_tell_address_and_kind(void) {
    volatile char *volatile nowhere = (volatile char *)0x123;
    char *page = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAULT_CHECK(*nowhere = 1, SIGSEGV, SEGV_MAPERR, (void *)nowhere);
    CHECK(REGISTER(REG_TRAPNO) == 14 && REGISTER(REG_CR2) == 0x123 && (REGISTER(REG_ERR) & 7) == 6);
    CHECK(fpstate_magic || in_pinhole()); /* a machine without XSAVE has none */
    FAULT_CHECK((void)*nowhere, SIGSEGV, SEGV_MAPERR, (void *)nowhere);
    CHECK((REGISTER(REG_ERR) & 7) == 4);
    CHECK(page[5] == 0); /* Linux maps a page at its first use */
    FAULT_CHECK(page[5] = 1, SIGSEGV, SEGV_ACCERR, (void *)(page + 5));
    CHECK((REGISTER(REG_ERR) & 7) == 7);
    CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
    FAULT_CHECK((void)*(volatile char *)page, SIGSEGV, SEGV_ACCERR, (void *)page);
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    page[0] = (char)0xc3;
    FAULT_CHECK(((void (*)(void))(uintptr_t)page)(), SIGSEGV, SEGV_ACCERR, (void *)page);
    CHECK(REGISTER(REG_RIP) == (uint64_t)page && (REGISTER(REG_ERR) & 16));
    FAULT_CHECK(*(volatile char *)0x8000000000000000ull = 1, SIGSEGV, SI_KERNEL, NULL);
    CHECK(REGISTER(REG_TRAPNO) == 13);
    CHECK(munmap(page, 2 * PAGE) == 0);
}

static void other_exceptions_have_their_signals(void) {
    volatile int zero = 0, one = 1;
    FAULT_CHECK(one = one / zero, SIGFPE, FPE_INTDIV, NULL); /* NOLINT: meant to */
    CHECK(info_seen.si_addr == (void *)REGISTER(REG_RIP) && REGISTER(REG_TRAPNO) == 0);
    FAULT_CHECK(__asm__ volatile("ud2"), SIGILL, ILL_ILLOPN, NULL);
    CHECK(info_seen.si_addr == (void *)REGISTER(REG_RIP) && REGISTER(REG_TRAPNO) == 6);
    FAULT_CHECK(__asm__ volatile("hlt"), SIGSEGV, SI_KERNEL, NULL);
    FAULT_CHECK(__asm__ volatile("int3"), SIGTRAP, SI_KERNEL, NULL);
    CHECK(REGISTER(REG_TRAPNO) == 3);
    bool emulated = on_emulated_processor();
    CHECK(info_seen.si_code == SI_KERNEL && info_seen.si_signo == (emulated ? SIGSEGV : SIGBUS));
    CHECK(REGISTER(REG_TRAPNO) == (emulated ? 13 : 12));
    FAULT_CHECK(raise(SIGSEGV), SIGSEGV, SI_TKILL, NULL);
}

static void floating_point_exceptions_have_their_codes(void) {
    volatile double zero = 0, one = 1, large = 1e308;
    volatile uint32_t mxcsr = 0x1f80 & ~(0x04u << 7);
    if (!has_no_simd_exceptions()) {
        __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
        FAULT_CHECK(one = one / zero, SIGFPE, FPE_FLTDIV, NULL);
        CHECK(REGISTER(REG_TRAPNO) == 19);
        mxcsr = 0x1f80 & ~(0x08u << 7);
        __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
        FAULT_CHECK(large = large * large, SIGFPE, FPE_FLTOVF, NULL);
        mxcsr = 0x1f80;
        __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    }
    uint16_t control = 0x37f & ~4;
    FAULT_CHECK(__asm__ volatile("fldcw %0\n\tfld1\n\tfldz\n\tfdivrp\n\tfwait"
                                 :
                                 : "m"(control)),
                SIGFPE, FPE_FLTDIV, NULL);
    CHECK(REGISTER(REG_TRAPNO) == 16);
    __asm__ volatile("fninit");
}

/* ------------------------------------------------------------------ repair -- */

static char *repaired;
static volatile int repairs;

static void repair(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    repairs++;
    if ((char *)info->si_addr >= repaired && (char *)info->si_addr < repaired + PAGE)
        mprotect(repaired, PAGE, PROT_READ | PROT_WRITE);
    else
        _exit(3);
}

static void a_handler_may_repair_and_return(void) {
    repaired = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, repair, 0);
    repairs = 0;
    double before = 1.5;
    __asm__ volatile("" : "+x"(before));
    *(volatile char *)(repaired + 7) = 9;
    __asm__ volatile("" : "+x"(before));
    CHECK(repairs == 1 && repaired[7] == 9 && before == 1.5);
    CHECK(munmap(repaired, PAGE) == 0);
}

/* A fault between what sets the flags and what looks at them. */
static void a_repaired_fault_keeps_the_flags(void) {
    handle(SIGSEGV, repair, 0);
    for (uint64_t value = 4; value <= 6; value++) {
        uint64_t sum = value;
        uint8_t carry = 2, zero = 2;
        repaired = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        repairs = 0;
        __asm__ volatile("add $-5, %[sum]\n\tmovb $1, (%[page])\n\tsetc %[carry]\n\tsetz %[zero]"
                         : [sum] "+r"(sum), [carry] "+r"(carry), [zero] "+r"(zero)
                         : [page] "r"(repaired)
                         : "memory", "cc");
        CHECK(repairs == 1 && repaired[0] == 1);
        CHECK(carry == (value >= 5) && zero == (value == 5));
        CHECK(munmap(repaired, PAGE) == 0);
    }
}

static void skip_two_bytes(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    ucontext_t *user = context;
    user->uc_mcontext.gregs[REG_RIP] += 2;
    user->uc_mcontext.gregs[REG_RAX] = 4711;
}

static void a_handler_may_change_registers(void) {
    uint64_t rax = 1, rcx = 0x1234, r11 = 0x5678;
    handle(SIGILL, skip_two_bytes, 0);
    __asm__ volatile("mov %[rcx], %%rcx\n\tmov %[r11], %%r11\n\tud2\n\tmov %%rcx, %[rcx]\n\tmov %%r11, %[r11]"
                     : "+a"(rax), [rcx] "+m"(rcx), [r11] "+m"(r11)
                     :
                     : "rcx", "r11", "memory");
    CHECK(rax == 4711 && rcx == 0x1234 && r11 == 0x5678);
}

static volatile int steps;

static void count_step(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    ucontext_t *user = context;
    if (++steps == 3)
        user->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

static void single_steps_can_be_counted(void) {
    steps = 0;
    handle(SIGTRAP, count_step, 0);
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop" ::
                         : "memory", "cc");
    CHECK(steps == 3);
}

/* ----------------------------------------------------------- stack overflow -- */

static char alternate[65536] __attribute__((aligned(64)));

static volatile bool deeper = true;

static __attribute__((noinline)) int overflow(const volatile char *above) {
    volatile char here[1000];
    here[0] = above[0];
    return deeper ? overflow(here) + here[0] : 0;
}

static void a_stack_overflow_can_be_handled_on_another_stack(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    volatile char start = 0;
    CHECK(sigaltstack(&stack, NULL) == 0);
    handle(SIGSEGV, jump_out, SA_ONSTACK);
    for (volatile int round = 0; round < 3; round++) {
        int number = sigsetjmp(jump, 1);
        if (number == 0)
            overflow(&start);
        CHECK(number == SIGSEGV && info_seen.si_code == SEGV_MAPERR);
    }
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
}

int main(void) {
    static const int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS};
    for (int i = 0; i < 5; i++)
        handle(signals[i], jump_out, 0);
    memory_faults_tell_address_and_kind();
    other_exceptions_have_their_signals();
    floating_point_exceptions_have_their_codes();
    a_handler_may_repair_and_return();
    a_repaired_fault_keeps_the_flags();
    a_handler_may_change_registers();
    single_steps_can_be_counted();
    a_stack_overflow_can_be_handled_on_another_stack();
    return check_end();
}
