/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Runs code that the test has made up, with the registers and flags that it wants, on pages that can be read,
 * written, executed or nothing at all, and leaves what came of it in memory, where the test finds it. The
 * pages are those of struct differential_zone (system/differential_zone.h).
 */
#include "hostile.h"

#include "../system/differential_zone.h"

extern struct differential_zone zone;
_Alignas(4096) struct differential_zone zone;

/* What run_code goes back to. */
extern uint64_t kept[];
uint64_t kept[2];
extern uint64_t target;
uint64_t target;
static uint64_t small_stack[64];
extern uint64_t *flags_stack;
uint64_t *flags_stack = small_stack + 32;

extern const char differential_end[], differential_restorer[];

#define PAGE(name) ((uint64_t)zone.name)
#define SYSTEM_MPROTECT 10
#define SYSTEM_SIGACTION 13
#define SYSTEM_SIGALTSTACK 131

static uint64_t zone_address(void) {
    return (uint64_t)&zone;
}
PH_EXPORT(zone_address, PH_U64);

static uint64_t end_address(void) {
    return (uint64_t)differential_end;
}
PH_EXPORT(end_address, PH_U64);

/* Gives the pages their protections, but for those of code. */
static void prepare(void) {
    for (size_t i = 0; i < sizeof zone.read_only; i++)
        zone.read_only[i] = (uint8_t)(i * 7 + 1);
    for (size_t i = 0; i < sizeof zone.none_1; i++)
        zone.none_1[i] = zone.none_2[i] = zone.none_3[i] = 0x90;
    system_call(SYSTEM_MPROTECT, PAGE(read_only), 4096, 1, 0, 0, 0);
    system_call(SYSTEM_MPROTECT, PAGE(none_1), 4096, 0, 0, 0, 0);
    system_call(SYSTEM_MPROTECT, PAGE(none_2), 4096, 0, 0, 0, 0);
    system_call(SYSTEM_MPROTECT, PAGE(none_3), 4096, 0, 0, 0, 0);
}
PH_EXPORT(prepare, PH_VOID);

/* clang-format off */
__asm__(
    ".pushsection .text\n"
    /* Where the code goes when it has done all: keeps the registers and goes back. */
    ".globl differential_end\n"
    "differential_end:\n"
    "mov %rax, zone+" DIFFERENTIAL_AFTER "(%rip)\n"
    "mov %rbx, zone+" DIFFERENTIAL_AFTER "+8(%rip)\n"
    "mov %rcx, zone+" DIFFERENTIAL_AFTER "+16(%rip)\n"
    "mov %rdx, zone+" DIFFERENTIAL_AFTER "+24(%rip)\n"
    "mov %rsi, zone+" DIFFERENTIAL_AFTER "+32(%rip)\n"
    "mov %rdi, zone+" DIFFERENTIAL_AFTER "+40(%rip)\n"
    "mov %rsp, zone+" DIFFERENTIAL_AFTER "+48(%rip)\n"
    "mov %rbp, zone+" DIFFERENTIAL_AFTER "+56(%rip)\n"
    "mov %r8, zone+" DIFFERENTIAL_AFTER "+64(%rip)\n"
    "mov %r9, zone+" DIFFERENTIAL_AFTER "+72(%rip)\n"
    "mov %r10, zone+" DIFFERENTIAL_AFTER "+80(%rip)\n"
    "mov %r11, zone+" DIFFERENTIAL_AFTER "+88(%rip)\n"
    "mov %r12, zone+" DIFFERENTIAL_AFTER "+96(%rip)\n"
    "mov %r13, zone+" DIFFERENTIAL_AFTER "+104(%rip)\n"
    "mov %r14, zone+" DIFFERENTIAL_AFTER "+112(%rip)\n"
    "mov %r15, zone+" DIFFERENTIAL_AFTER "+120(%rip)\n"
    "mov flags_stack(%rip), %rsp\n"
    "pushfq\n"
    "pop %rax\n"
    "mov %rax, zone+" DIFFERENTIAL_AFTER "+136(%rip)\n"
    "push $2\n"
    "popfq\n"
    "fxsave64 zone+" DIFFERENTIAL_AFTER "+144(%rip)\n"
    "mov kept(%rip), %rsp\n"
    "mov kept+8(%rip), %rbp\n"
    "ret\n"

    /* void enter(const uint64_t *registers): does not touch what the code does not. */
    ".globl differential_enter\n"
    "differential_enter:\n"
    "mov %rsp, kept(%rip)\n"
    "mov %rbp, kept+8(%rip)\n"
    "fxrstor64 144(%rdi)\n"
    "push 136(%rdi)\n"
    "popfq\n"
    "mov 0(%rdi), %rax\n"
    "mov 8(%rdi), %rbx\n"
    "mov 16(%rdi), %rcx\n"
    "mov 24(%rdi), %rdx\n"
    "mov 32(%rdi), %rsi\n"
    "mov 48(%rdi), %rsp\n"
    "mov 56(%rdi), %rbp\n"
    "mov 64(%rdi), %r8\n"
    "mov 72(%rdi), %r9\n"
    "mov 80(%rdi), %r10\n"
    "mov 88(%rdi), %r11\n"
    "mov 96(%rdi), %r12\n"
    "mov 104(%rdi), %r13\n"
    "mov 112(%rdi), %r14\n"
    "mov 120(%rdi), %r15\n"
    "mov 40(%rdi), %rdi\n"
    "jmp *target(%rip)\n"

    "differential_restorer:\n"
    "mov $15, %eax\n"
    "syscall\n"
    ".popsection");
/* clang-format on */
void differential_enter(const struct differential_registers *registers);

/* The places in ucontext_t and siginfo_t. */
#define CONTEXT_REGISTERS 40
#define CONTEXT_RIP 168
#define CONTEXT_RFLAGS 176
#define CONTEXT_VECTORS 224 /* the address of the FXSAVE area */
#define RFLAGS_TRAP 0x100ull

static void handler(int signal, const char *info, char *context) {
    struct differential_handled *handled = &zone.handled;

    handled->signal = signal;
    memcpy(handled->info, info, 32);
    memcpy(handled->context, context + CONTEXT_REGISTERS, sizeof handled->context);
    memcpy(handled->vectors, *(char **)(context + CONTEXT_VECTORS), sizeof handled->vectors);
    *(uint64_t *)(context + CONTEXT_RIP) = (uint64_t)differential_end;
    *(uint64_t *)(context + CONTEXT_RFLAGS) &= ~RFLAGS_TRAP;
}

static void handle_all(void) {
    static _Alignas(64) char stack[16384];
    static const uint8_t signals[] = {4, 5, 7, 8, 11};
    /* SA_SIGINFO, SA_RESTORER, SA_ONSTACK */
    const uint64_t action[4] = {(uint64_t)handler, 0x0c000004, (uint64_t)differential_restorer, 0};
    const uint64_t alternate[3] = {(uint64_t)stack, 0, sizeof stack};

    system_call(SYSTEM_SIGALTSTACK, (uint64_t)alternate, 0, 0, 0, 0, 0);
    for (size_t i = 0; i < sizeof signals; i++)
        system_call(SYSTEM_SIGACTION, signals[i], (uint64_t)action, 0, 8, 0, 0);
}

/* Runs (code) at the (offset) of the pages of code, from (registers). (handles): with handlers for signals.
 */
static void run_code(ph_bytes code, uint32_t offset, ph_bytes registers, bool handles) {
    static _Alignas(16) struct differential_registers before;

    memcpy(&before, registers.data, sizeof before);
    memcpy(zone.code + offset, code.data, code.size);
    system_call(SYSTEM_MPROTECT, PAGE(code), sizeof zone.code, 5, 0, 0, 0);
    if (handles)
        handle_all();
    target = PAGE(code) + offset;
    __asm__ volatile("call differential_enter"
                     :
                     : "D"(&before)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "memory", "cc");
}
PH_EXPORT(run_code, PH_VOID, PH_BYTES, PH_U32, PH_BYTES, PH_BOOL);
