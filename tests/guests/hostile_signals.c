/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Uses signals as no program should: handlers that return to their fault, handlers that are no code, frames
 * that no kernel wrote, alternate stacks in impossible places. Only the kernel's own interface is used, as a
 * program without a libc does (rt_sigaction and sigreturn of x86-64 Linux).
 */
#include <asm/sigcontext.h>
#include <linux/signal.h>

#include "hostile.h"

#define NR_RT_SIGACTION 13
#define NR_RT_SIGPROCMASK 14
#define NR_RT_SIGRETURN 15
#define NR_GETPID 39
#define NR_KILL 62
#define NR_SIGALTSTACK 131

struct action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
};

struct context {
    uint64_t flags;
    uint64_t link;
    uint64_t stack_base;
    uint32_t stack_flags, pad;
    uint64_t stack_size;
    struct sigcontext_64 registers;
    uint64_t mask;
};

void restorer(void);

/* clang-format off */
__asm__(
    ".globl restorer\n"
    "restorer:\n"
    "mov $15, %eax\n" /* NR_RT_SIGRETURN */
    "syscall\n"
    "ud2\n");
/* clang-format on */

static int64_t action_set(uint64_t signal, uint64_t handler, uint64_t flags, uint64_t restorer_at) {
    struct action action = {handler, flags, restorer_at, 0};

    return system_call(NR_RT_SIGACTION, signal, (uint64_t)&action, 0, 8, 0, 0);
}

static void handle(uint64_t signal, void (*handler)(int, void *, struct context *), uint64_t flags) {
    action_set(signal, (uint64_t)handler, flags | SA_SIGINFO | SA_RESTORER, (uint64_t)restorer);
}

static void fault(uint64_t address) {
    __asm__ volatile("movb $0, (%0)" : : "r"(address) : "memory");
}

static volatile uint64_t visits;

static uint64_t visit_count(void) {
    return visits;
}
PH_EXPORT(visit_count, PH_U64);

/* ---- handlers ------------------------------------------------------------------------------------------ */

static void do_nothing(int signal, void *info, struct context *context) {
    (void)signal;
    (void)info;
    (void)context;
    visits++;
}

/* The fault comes again as soon as the handler has returned, for ever. */
static void return_to_fault(void) {
    handle(SIGSEGV, do_nothing, 0);
    fault(0x1000);
}
PH_EXPORT(return_to_fault, PH_VOID);

static void return_to_undefined(void) {
    handle(SIGILL, do_nothing, 0);
    __asm__ volatile("ud2");
}
PH_EXPORT(return_to_undefined, PH_VOID);

static void fault_again(int signal, void *info, struct context *context) {
    do_nothing(signal, info, context);
    fault(0x2000);
}

/* Each handler faults and is interrupted by the next, until the stack ends. */
static void recurse_in_handlers(void) {
    handle(SIGSEGV, fault_again, SA_NODEFER);
    fault(0x1000);
}
PH_EXPORT(recurse_in_handlers, PH_VOID);

/* The second fault finds its signal blocked. */
static void fault_in_handler(void) {
    handle(SIGSEGV, fault_again, 0);
    fault(0x1000);
}
PH_EXPORT(fault_in_handler, PH_VOID);

/* A handler, a restorer, and flags of the test's. */
static void fault_with_action(uint64_t handler, uint64_t restorer_at, uint64_t flags) {
    action_set(SIGSEGV, handler ? handler : (uint64_t)do_nothing, flags, restorer_at);
    fault(0x1000);
}
PH_EXPORT(fault_with_action, PH_VOID, PH_U64, PH_U64, PH_U64);

/* The same for a signal that the program sends itself. */
static void raise_with_action(uint64_t handler, uint64_t restorer_at, uint64_t flags) {
    action_set(SIGUSR1, handler ? handler : (uint64_t)do_nothing, flags, restorer_at);
    system_call(NR_KILL, 1, SIGUSR1, 0, 0, 0, 0);
}
PH_EXPORT(raise_with_action, PH_VOID, PH_U64, PH_U64, PH_U64);

/* An alternate stack of the test's. Returns what sigaltstack said, if there is no fault. */
static int64_t fault_on_stack(uint64_t base, uint64_t size, uint64_t rsp) {
    struct {
        uint64_t base;
        uint32_t flags, pad;
        uint64_t size;
    } stack = {base, 0, 0, size};

    handle(SIGSEGV, do_nothing, SA_ONSTACK);
    int64_t answer = system_call(NR_SIGALTSTACK, (uint64_t)&stack, 0, 0, 0, 0, 0);
    if (answer != 0)
        return answer;
    if (rsp)
        __asm__ volatile("mov %0, %%rsp\n movb $0, 0x1000" : : "r"(rsp) : "memory");
    fault(0x1000);
    return 0;
}
PH_EXPORT(fault_on_stack, PH_I64, PH_U64, PH_U64, PH_U64);

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Goes on stepping, as a debugger inside the program would. */
static void step(int signal, void *info, struct context *context) {
    do_nothing(signal, info, context);
    if (visits > 4000)
        context->registers.flags &= ~0x100ull;
}

/* Steps through code, a system call and a doorbell. Returns how many steps were taken. */
static uint64_t step_through(void) {
    uint64_t rax = PH__DOORBELL_SLEEP;

    visits = 0;
    handle(SIGTRAP, step, 0);
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" : : : "memory", "cc");
    for (volatile int i = 0; i < 10; i++)
        ;
    int64_t process = system_call(NR_GETPID, 0, 0, 0, 0, 0, 0);
    __asm__ volatile("outl %%eax, $0x50" : "+a"(rax) : "D"(0ull) : "memory");
    __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" : : : "memory", "cc");
    return process == 1 ? visits : 0;
}
PH_EXPORT(step_through, PH_U64);

/* ---- frames that no kernel wrote ------------------------------------------------------------------------
 */

static _Alignas(64) uint8_t state[4096];

struct frame {
    uint64_t restorer;
    struct context context;
    uint8_t info[128];
};

/* Returns from a signal that never came, to (rip) with RSP = (rsp) and flags = (flags). */
static void return_from_nothing(uint64_t rip, uint64_t rsp, uint64_t flags, uint64_t fpstate) {
    static _Alignas(16) struct frame frame;

    memset(&frame, 0, sizeof frame);
    frame.context.registers.ip = rip;
    frame.context.registers.sp = rsp;
    frame.context.registers.flags = flags;
    frame.context.registers.cs = 0x08;
    frame.context.registers.ss = 0x10;
    frame.context.registers.fpstate = fpstate;
    frame.context.mask = ~0ull;
    __asm__ volatile("mov %0, %%rsp\n mov $15, %%eax\n syscall\n ud2" : : "r"(&frame.context) : "memory");
}
PH_EXPORT(return_from_nothing, PH_VOID, PH_U64, PH_U64, PH_U64, PH_U64);

/* The same to a sound place, with a vector state that is filled from (seed): 0 fills with ones. */
static void return_with_state(uint64_t seed, uint64_t offset) {
    uint64_t *words = (uint64_t *)state;

    for (unsigned i = 0; i < sizeof state / 8; i++)
        words[i] = seed ? random_next(&seed) : ~0ull;
    return_from_nothing((uint64_t)restorer + 7, (uint64_t)state + 2048, 2, (uint64_t)state + offset);
}
PH_EXPORT(return_with_state, PH_VOID, PH_U64, PH_U64);

/* With the stack pointer anywhere. */
static void return_on_stack(uint64_t rsp) {
    __asm__ volatile("mov %0, %%rsp\n mov $15, %%eax\n syscall\n ud2" : : "r"(rsp) : "memory");
}
PH_EXPORT(return_on_stack, PH_VOID, PH_U64);

static uint64_t state_address(void) {
    return (uint64_t)state;
}
PH_EXPORT(state_address, PH_U64);

/* ---- signals by number ----------------------------------------------------------------------------------
 */

static int64_t send(uint64_t signal) {
    return system_call(NR_KILL, 1, signal, 0, 0, 0, 0);
}
PH_EXPORT(send, PH_I64, PH_U64);

/* A handler that the program leaves alone, for UNHANDLED in a later call. */
static void repair(int signal, void *info, struct context *context) {
    do_nothing(signal, info, context);
    context->registers.ip += 7; /* the store in `fault_and_repair` */
}

static void fault_and_repair(void) {
    handle(SIGSEGV, repair, 0);
    __asm__ volatile(".byte 0xc6, 0x80, 0, 0x10, 0, 0, 0" : : "a"(0) : "memory"); /* movb $0, 0x1000(%rax) */
}
PH_EXPORT(fault_and_repair, PH_VOID);

static void claim_unhandled(void) {
    ph__doorbell_ring(PH__DOORBELL_UNHANDLED, 0, 0, 0);
}
PH_EXPORT(claim_unhandled, PH_VOID);
