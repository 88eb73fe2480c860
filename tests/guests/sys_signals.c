/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Signals that a program sends to itself: actions, masks, alternate stacks, nesting, and that a handler's
 * return brings back every register, flag and vector.
 */
#include "sys_check.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int calls;
static volatile int last_number;
static siginfo_t last_info;

static void count(int number) {
    calls++;
    last_number = number;
}

static void count_info(int number, siginfo_t *info, void *context) {
    (void)context;
    count(number);
    last_info = *info;
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(number, &action, NULL) == 0);
}

static void handle_info(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
    CHECK(sigaction(number, &action, NULL) == 0);
}

static void a_raised_signal_reaches_its_handler(void) {
    calls = 0;
    handle(SIGUSR1, count, 0);
    CHECK(raise(SIGUSR1) == 0 && calls == 1 && last_number == SIGUSR1);
    CHECK(kill(getpid(), SIGUSR1) == 0 && calls == 2);
    handle_info(SIGUSR2, count_info, 0);
    CHECK(raise(SIGUSR2) == 0 && calls == 3);
    CHECK(last_info.si_signo == SIGUSR2 && last_info.si_code == SI_TKILL);
    CHECK(last_info.si_pid == getpid() && last_info.si_uid == getuid());
    CHECK(kill(getpid(), SIGUSR2) == 0 && calls == 4 && last_info.si_code == SI_USER);
    union sigval value = {.sival_int = 77};
    CHECK(sigqueue(getpid(), SIGUSR2, value) == 0);
    CHECK(calls == 5 && last_info.si_code == SI_QUEUE && last_info.si_value.sival_int == 77);
    CHECK(kill(getpid(), 0) == 0);
    CHECK_ERROR(kill(getpid(), 65), EINVAL);
    CHECK_ERROR(kill(999999999, SIGUSR1), ESRCH);
    CHECK_ERROR(syscall(SYS_tgkill, getpid(), 999999999, SIGUSR1), ESRCH);
    CHECK_ERROR(syscall(SYS_tgkill, getpid(), -1, SIGUSR1), EINVAL);
    handle_info(SIGRTMIN + 3, count_info, 0);
    CHECK(raise(SIGRTMIN + 3) == 0 && calls == 6 && last_number == SIGRTMIN + 3);
}

static void actions_are_remembered(void) {
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    struct sigaction old;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGHUP);
    CHECK(sigaction(SIGHUP, &action, NULL) == 0);
    CHECK(sigaction(SIGHUP, NULL, &old) == 0);
    CHECK(old.sa_handler == count && (old.sa_flags & SA_RESTART) && sigismember(&old.sa_mask, SIGHUP) == 1);
    CHECK_ERROR(sigaction(SIGKILL, &action, NULL), EINVAL);
    CHECK(sigaction(SIGKILL, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    CHECK_ERROR(sigaction(65, NULL, &old), EINVAL);
    CHECK_ERROR(syscall(SYS_rt_sigaction, SIGHUP, NULL, (void *)8, 8), EFAULT);
    CHECK_ERROR(syscall(SYS_rt_sigaction, SIGHUP, NULL, NULL, 7), EINVAL);
    calls = 0;
    handle(SIGHUP, count, SA_RESETHAND);
    CHECK(raise(SIGHUP) == 0 && calls == 1);
    CHECK(sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    handle(SIGHUP, SIG_IGN, 0);
    CHECK(raise(SIGHUP) == 0 && calls == 1);
    CHECK(raise(SIGCHLD) == 0 && raise(SIGURG) == 0); /* ignored by default */
}

static void a_blocked_signal_waits(void) {
    sigset_t set, old, waiting;
    struct timespec soon = {0, 5000000};
    siginfo_t info;
    calls = 0;
    handle(SIGUSR1, count, 0);
    handle(SIGUSR2, count, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGKILL);
    CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0);
    CHECK(raise(SIGUSR1) == 0 && raise(SIGUSR1) == 0 && calls == 0);
    CHECK(sigpending(&waiting) == 0);
    CHECK(sigismember(&waiting, SIGUSR1) == 1 && sigismember(&waiting, SIGUSR2) == 0);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &waiting) == 0);
    CHECK(sigismember(&waiting, SIGUSR1) == 1 && sigismember(&waiting, SIGKILL) == 0);
    CHECK(sigprocmask(SIG_SETMASK, &old, NULL) == 0 && calls == 1); /* once, however often it was sent */
    CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0);
    CHECK(raise(SIGUSR2) == 0 && raise(SIGUSR1) == 0);
    CHECK(sigtimedwait(&set, &info, &soon) == SIGUSR1 && info.si_signo == SIGUSR1);
    CHECK(sigtimedwait(&set, NULL, &soon) == SIGUSR2);
    CHECK_ERROR(sigtimedwait(&set, NULL, &soon), EAGAIN);
    CHECK(raise(SIGUSR1) == 0 && calls == 1);
    CHECK_ERROR(sigsuspend(&old), EINTR);
    CHECK(calls == 2);
    CHECK(raise(SIGUSR1) == 0 && calls == 2);
    CHECK(ppoll(NULL, 0, &soon, &set) == 0 && calls == 2);
    CHECK_ERROR(ppoll(NULL, 0, NULL, &old), EINTR);
    CHECK(calls == 3);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &waiting) == 0 && sigismember(&waiting, SIGUSR1) == 1);
    /* Ignoring a signal forgets the one that waits. */
    CHECK(raise(SIGUSR1) == 0);
    handle(SIGUSR1, SIG_IGN, 0);
    handle(SIGUSR1, count, 0);
    CHECK(sigprocmask(SIG_SETMASK, &old, NULL) == 0 && calls == 3);
    CHECK_ERROR(syscall(SYS_rt_sigprocmask, 77, &set, NULL, 8), EINVAL);
    CHECK_ERROR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8), EFAULT);
}

static volatile int depth, deepest;

static void nested(int number) {
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (++calls < 5)
        raise(number);
    depth--;
}

static sigset_t mask_in_handler;

static void keep_mask(int number) {
    (void)number;
    sigprocmask(SIG_SETMASK, NULL, &mask_in_handler);
}

static void handlers_block_what_they_ask_for(void) {
    struct sigaction action = {.sa_handler = keep_mask};
    sigset_t now;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGTERM);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0);
    CHECK(sigismember(&mask_in_handler, SIGUSR1) == 1 && sigismember(&mask_in_handler, SIGTERM) == 1);
    CHECK(sigismember(&mask_in_handler, SIGUSR2) == 0);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGUSR1) == 0 && sigismember(&now, SIGTERM) == 0);
    calls = deepest = 0;
    handle(SIGUSR1, nested, SA_NODEFER);
    CHECK(raise(SIGUSR1) == 0 && deepest == 5 && depth == 0);
    calls = deepest = 0;
    handle(SIGUSR1, nested, 0);
    CHECK(raise(SIGUSR1) == 0 && deepest == 1 && calls == 5 && depth == 0); /* one after the other */
}

static char alternate[65536] __attribute__((aligned(64)));
static stack_t stack_in_handler;
static uintptr_t place_in_handler;

static void look_at_stack(int number) {
    (void)number;
    place_in_handler = (uintptr_t)__builtin_frame_address(0);
    sigaltstack(NULL, &stack_in_handler);
}

static bool on_alternate(void) {
    return place_in_handler - (uintptr_t)alternate < sizeof alternate;
}

static void alternate_stacks_are_used(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    stack_t old;
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_flags == SS_DISABLE);
    CHECK(sigaltstack(&stack, NULL) == 0);
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_sp == alternate && old.ss_flags == 0);
    handle(SIGUSR1, look_at_stack, SA_ONSTACK);
    CHECK(raise(SIGUSR1) == 0 && on_alternate() && stack_in_handler.ss_flags == SS_ONSTACK);
    handle(SIGUSR1, look_at_stack, 0);
    CHECK(raise(SIGUSR1) == 0 && !on_alternate() && stack_in_handler.ss_flags == 0);
    stack.ss_size = 100;
    CHECK_ERROR(sigaltstack(&stack, NULL), ENOMEM);
    stack.ss_size = sizeof alternate;
    stack.ss_flags = 0x40;
    CHECK_ERROR(sigaltstack(&stack, NULL), EINVAL);
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_flags == SS_DISABLE);
}

static sigjmp_buf jump;

static void jump_out(int number) {
    siglongjmp(jump, number);
}

static void a_handler_may_jump_out(void) {
    handle(SIGUSR1, jump_out, 0);
    for (volatile int round = 0; round < 100; round++) {
        int number = sigsetjmp(jump, 1);
        if (number == 0) {
            raise(SIGUSR1);
            CHECK(false);
        }
        CHECK(number == SIGUSR1);
    }
}

/* --------------------------------------------------------------- registers -- */

static void change_everything(int number) {
    (void)number;
    calls++;
    __asm__ volatile(
        "fninit\n\tfldpi\n\tpxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm15, %%xmm15" ::
            : "xmm0", "xmm1", "xmm15");
}

/* uint64_t kill_with_registers(uint64_t process, uint64_t signal): kill with every other register loaded from
 * registers_in and vectors_in, and what is in them afterwards in registers_out and vectors_out. Returns
 * kill's result. Flags CF and DF are set before, and the flags after are the last of registers_out. */
uint64_t kill_with_registers(uint64_t process, uint64_t number);
uint64_t registers_in[12], registers_out[13];
uint32_t vectors_in[3][4], vectors_out[3][4];
__asm__(".text\n"
        "kill_with_registers:\n"
        "    push %rbx\n    push %rbp\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    movups vectors_in(%rip), %xmm0\n"
        "    movups 16+vectors_in(%rip), %xmm1\n"
        "    movups 32+vectors_in(%rip), %xmm15\n"
        "    mov registers_in(%rip), %rbx\n"
        "    mov 8+registers_in(%rip), %rbp\n"
        "    mov 16+registers_in(%rip), %r8\n"
        "    mov 24+registers_in(%rip), %r9\n"
        "    mov 32+registers_in(%rip), %r10\n"
        "    mov 40+registers_in(%rip), %r12\n"
        "    mov 48+registers_in(%rip), %r13\n"
        "    mov 56+registers_in(%rip), %r14\n"
        "    mov 64+registers_in(%rip), %r15\n"
        "    mov 72+registers_in(%rip), %rdx\n"
        "    mov $62, %eax\n"
        "    stc\n    std\n"
        "    syscall\n"
        "    pushfq\n    cld\n"
        "    mov %rbx, registers_out(%rip)\n"
        "    mov %rbp, 8+registers_out(%rip)\n"
        "    mov %r8, 16+registers_out(%rip)\n"
        "    mov %r9, 24+registers_out(%rip)\n"
        "    mov %r10, 32+registers_out(%rip)\n"
        "    mov %r12, 40+registers_out(%rip)\n"
        "    mov %r13, 48+registers_out(%rip)\n"
        "    mov %r14, 56+registers_out(%rip)\n"
        "    mov %r15, 64+registers_out(%rip)\n"
        "    mov %rdx, 72+registers_out(%rip)\n"
        "    mov %rdi, 80+registers_out(%rip)\n"
        "    mov %rsi, 88+registers_out(%rip)\n"
        "    popq 96+registers_out(%rip)\n"
        "    movups %xmm0, vectors_out(%rip)\n"
        "    movups %xmm1, 16+vectors_out(%rip)\n"
        "    movups %xmm15, 32+vectors_out(%rip)\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbp\n    pop %rbx\n"
        "    ret\n");

static void a_return_brings_back_all_registers(void) {
    uint32_t mxcsr = 0x3f80, mxcsr_out;
    uint16_t control = 0x27f, control_out;
    calls = 0;
    handle(SIGUSR1, change_everything, 0);
    for (int i = 0; i < 10; i++)
        registers_in[i] = 0x0101010101010101ull * (uint64_t)(i + 1);
    registers_in[10] = (uint64_t)getpid();
    registers_in[11] = SIGUSR1;
    for (int i = 0; i < 12; i++)
        vectors_in[i / 4][i % 4] = 0xabc00000u + (uint32_t)i;
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(control));
    uint64_t result = kill_with_registers(registers_in[10], SIGUSR1);
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr_out), "=m"(control_out));
    CHECK(calls == 1 && result == 0);
    CHECK(memcmp(registers_in, registers_out, sizeof registers_in) == 0);
    CHECK((registers_out[12] & 0x401) == 0x401); /* CF and DF */
    CHECK(memcmp(vectors_in, vectors_out, sizeof vectors_in) == 0);
    CHECK(mxcsr_out == mxcsr && control_out == control);
    mxcsr = 0x1f80;
    control = 0x37f;
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(control));
}

/* Puts values into registers and into the red zone, and calls getppid. */
uint64_t system_call_with_registers(void);
__asm__("system_call_with_registers:\n"
        "    movabs $0x1122334455667788, %r8\n"
        "    mov $99, %r9d\n"
        "    mov %r8, -128(%rsp)\n"
        "    mov $110, %eax\n"
        "    stc\n"
        "    syscall\n"
        "1:  mov %rcx, registers_out(%rip)\n"
        "    mov %r11, 8+registers_out(%rip)\n"
        "    lea 1b(%rip), %rcx\n"
        "    mov %rcx, 16+registers_out(%rip)\n"
        "    mov -128(%rsp), %rcx\n"
        "    mov %rcx, 24+registers_out(%rip)\n"
        "    mov %r8, 32+registers_out(%rip)\n"
        "    mov %r9, 40+registers_out(%rip)\n"
        "    pushfq\n"
        "    popq 48+registers_out(%rip)\n"
        "    ret\n");

static void a_system_call_keeps_registers_and_red_zone(void) {
    system_call_with_registers();
    CHECK(registers_out[0] == registers_out[2]);             /* RCX is the return address */
    CHECK((registers_out[1] & 1) && (registers_out[6] & 1)); /* R11 and the flags have CF */
    CHECK(registers_out[3] == 0x1122334455667788);
    CHECK(registers_out[4] == 0x1122334455667788 && registers_out[5] == 99);
}

int main(void) {
    a_raised_signal_reaches_its_handler();
    actions_are_remembered();
    a_blocked_signal_waits();
    handlers_block_what_they_ask_for();
    alternate_stacks_are_used();
    a_handler_may_jump_out();
    a_return_brings_back_all_registers();
    a_system_call_keeps_registers_and_red_zone();
    return check_end();
}
