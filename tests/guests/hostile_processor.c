/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Puts the processor into every state that ring 3 can reach - flags, selectors, vector units - and then goes
 * through the ways into pinhole: an exception, a system call, a doorbell.
 */
#include "hostile.h"

/* What to do with the flags set. */
enum {
    THEN_NOTHING,
    THEN_SYSTEM_CALL,
    THEN_DOORBELL,
    THEN_UNDEFINED,
    THEN_BREAKPOINT,
    THEN_PAGE_FAULT,
    THEN_DIVIDE,
    THEN_UNALIGNED,
    THEN_RETURN,
    THEN_INTERRUPT_RETURN,
};

/* (before) runs with the flags as they were; the first instruction of (code) is the first under the new ones.
 */
#define WITH_FLAGS(before, code)                                                                             \
    __asm__ volatile(before "pushfq\n"                                                                       \
                            "orq %0, (%%rsp)\n"                                                              \
                            "popfq\n" code                                                                   \
                     :                                                                                       \
                     : "r"(flags)                                                                            \
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc")

#define CLEAR_FLAGS "pushq $2\n popfq"

/* Sets (flags) in RFLAGS, then does (what). Returns the flags as they are afterwards. */
static uint64_t with_flags(uint64_t flags, uint32_t what) {
    uint64_t after = 0;

    switch (what) {
    case THEN_SYSTEM_CALL:
        WITH_FLAGS("mov $39, %%eax\n", "syscall\n nop\n" CLEAR_FLAGS);
        break;
    case THEN_DOORBELL:
        WITH_FLAGS("mov $7, %%eax\n xor %%edi, %%edi\n", "outl %%eax, $0x50\n nop\n" CLEAR_FLAGS);
        break;
    case THEN_UNDEFINED:
        WITH_FLAGS("", "ud2");
        break;
    case THEN_BREAKPOINT:
        WITH_FLAGS("", "int3");
        break;
    case THEN_PAGE_FAULT:
        WITH_FLAGS("", "movb $1, 0");
        break;
    case THEN_DIVIDE:
        WITH_FLAGS("xor %%ecx, %%ecx\n", "div %%ecx");
        break;
    case THEN_UNALIGNED:
        WITH_FLAGS("lea -64(%%rsp), %%rax\n and $-64, %%rax\n", "mov 1(%%rax), %%rbx\n" CLEAR_FLAGS);
        break;
    case THEN_RETURN:
        WITH_FLAGS("", ""); /* the flags stay set until the doorbell RETURN */
        break;
    case THEN_INTERRUPT_RETURN:
        WITH_FLAGS("mov %%rsp, %%rbx\n mov %%ss, %%ecx\n mov %%cs, %%edx\n lea 1f(%%rip), %%rax\n",
                   "push %%rcx\n push %%rbx\n pushq $2\n push %%rdx\n push %%rax\n iretq\n 1:" CLEAR_FLAGS);
        break;
    default:
        WITH_FLAGS("", "nop\n" CLEAR_FLAGS);
        break;
    }
    __asm__ volatile("pushfq\n pop %0" : "=r"(after));
    return after;
}
PH_EXPORT(with_flags, PH_U64, PH_U64, PH_U32);

/* What RFLAGS is after popfq of (flags). */
static uint64_t flags_set(uint64_t flags) {
    uint64_t after;

    __asm__ volatile("pushq %1\n popfq\n pushfq\n pop %0\n pushq $2\n popfq"
                     : "=r"(after)
                     : "r"(flags)
                     : "cc");
    return after;
}
PH_EXPORT(flags_set, PH_U64, PH_U64);

/* ---- selectors ----------------------------------------------------------------------------------------- */

/* What runs behind a jump that may have changed the mode: it means the same in 64 and in 32 bits. */
#define LANDING_UNDEFINED "ud2\n"
#define LANDING_SYSTEM_CALL "mov $39, %%eax\n syscall\n ud2\n"
#define LANDING_INT80 "mov $20, %%eax\n int $0x80\n ud2\n"
#define LANDING_SYSENTER "mov $20, %%eax\n sysenter\n ud2\n"
#define LANDING_DOORBELL "mov $7, %%eax\n xor %%edi, %%edi\n outl %%eax, $0x50\n ud2\n"

#define FAR_JUMP(name, landing)                                                                              \
    static void name(uint32_t selector) {                                                                    \
        __asm__ volatile("lea 1f(%%rip), %%rax\n"                                                            \
                         "mov %%eax, -16(%%rsp)\n"                                                           \
                         "mov %0, -12(%%rsp)\n"                                                              \
                         "ljmp *-16(%%rsp)\n"                                                                \
                         "1: " landing                                                                       \
                         :                                                                                   \
                         : "r"(selector)                                                                     \
                         : "rax", "rcx", "rdi", "r11", "memory");                                            \
    }                                                                                                        \
    PH_EXPORT(name, PH_VOID, PH_U32)

FAR_JUMP(far_jump, LANDING_UNDEFINED);
FAR_JUMP(far_jump_system_call, LANDING_SYSTEM_CALL);
FAR_JUMP(far_jump_int80, LANDING_INT80);
FAR_JUMP(far_jump_sysenter, LANDING_SYSENTER);
FAR_JUMP(far_jump_doorbell, LANDING_DOORBELL);

/* A change of protection, asked for in whatever mode the jump led to. */
static void far_jump_protect(uint32_t selector) {
    __asm__ volatile("lea 1f(%%rip), %%rax\n"
                     "mov %%eax, -16(%%rsp)\n"
                     "mov %0, -12(%%rsp)\n"
                     "ljmp *-16(%%rsp)\n"
                     "1: mov $9, %%eax\n outl %%eax, $0x50\n ud2\n"
                     :
                     : "r"(selector), "D"(control->arena_gva), "S"(4096ull), "d"(1ull)
                     : "rax", "memory");
}
PH_EXPORT(far_jump_protect, PH_VOID, PH_U32);

static void far_return(uint32_t selector) {
    __asm__ volatile("mov %0, %%eax\n push %%rax\n lea 1f(%%rip), %%rax\n push %%rax\n lretq\n 1: ud2"
                     :
                     : "r"(selector)
                     : "rax", "memory");
}
PH_EXPORT(far_return, PH_VOID, PH_U32);

static void far_call(uint32_t selector) {
    __asm__ volatile("lea 1f(%%rip), %%rax\n"
                     "mov %%eax, -16(%%rsp)\n"
                     "mov %0, -12(%%rsp)\n"
                     "lcall *-16(%%rsp)\n"
                     "1: ud2"
                     :
                     : "r"(selector)
                     : "rax", "memory");
}
PH_EXPORT(far_call, PH_VOID, PH_U32);

static void interrupt_return(uint64_t rip, uint64_t cs, uint64_t flags, uint64_t rsp, uint64_t ss) {
    __asm__ volatile("push %4\n push %3\n push %2\n push %1\n push %0\n iretq"
                     :
                     : "r"(rip), "r"(cs), "r"(flags), "r"(rsp), "r"(ss)
                     : "memory");
}
PH_EXPORT(interrupt_return, PH_VOID, PH_U64, PH_U64, PH_U64, PH_U64, PH_U64);

#define LOAD(name, register)                                                                                 \
    static void name(uint32_t selector) {                                                                    \
        __asm__ volatile("mov %0, %%" register "\n ud2" : : "r"(selector) : "memory");                       \
    }                                                                                                        \
    PH_EXPORT(name, PH_VOID, PH_U32)

LOAD(load_ds, "ds");
LOAD(load_es, "es");
LOAD(load_fs, "fs");
LOAD(load_gs, "gs");
LOAD(load_ss, "ss");

/* Loads of the stack selector hold back what comes next: a trap, a system call, a doorbell. */
static void stack_selector_then(uint32_t what, uint64_t flags) {
    uint32_t selector;

    __asm__ volatile("mov %%ss, %0" : "=r"(selector));
    switch (what) {
    case THEN_SYSTEM_CALL:
        __asm__ volatile("mov $39, %%eax\n push %1\n popfq\n mov %0, %%ss\n syscall\n" CLEAR_FLAGS
                         :
                         : "r"(selector), "r"(flags)
                         : "rax", "rcx", "r11", "memory", "cc");
        break;
    case THEN_DOORBELL:
        __asm__ volatile("mov $7, %%eax\n xor %%edi, %%edi\n push %1\n popfq\n mov %0, %%ss\n outl %%eax, "
                         "$0x50\n" CLEAR_FLAGS
                         :
                         : "r"(selector), "r"(flags)
                         : "rax", "rdi", "memory", "cc");
        break;
    case THEN_BREAKPOINT:
        __asm__ volatile("push %1\n popfq\n mov %0, %%ss\n int3\n" CLEAR_FLAGS
                         :
                         : "r"(selector), "r"(flags)
                         : "memory", "cc");
        break;
    default:
        __asm__ volatile("push %1\n popfq\n mov %0, %%ss\n ud2\n" CLEAR_FLAGS
                         :
                         : "r"(selector), "r"(flags)
                         : "memory", "cc");
        break;
    }
}
PH_EXPORT(stack_selector_then, PH_VOID, PH_U32, PH_U64);

/* ---- vector units -------------------------------------------------------------------------------------- */

static void x87_unmasked(void) {
    static uint16_t all_unmasked = 0x0340;

    __asm__ volatile("fninit\n fldcw %0\n fld1\n fldz\n fdivrp\n fwait\n" : : "m"(all_unmasked) : "memory");
}
PH_EXPORT(x87_unmasked, PH_VOID);

static void simd_unmasked(void) {
    static uint32_t all_unmasked = 0;

    __asm__ volatile("ldmxcsr %0\n xorps %%xmm0, %%xmm0\n divps %%xmm0, %%xmm0\n"
                     :
                     : "m"(all_unmasked)
                     : "xmm0", "memory");
}
PH_EXPORT(simd_unmasked, PH_VOID);

/* A pending x87 exception, left for whoever uses the unit next: a system call must not stumble over it. */
static uint64_t x87_pending_then(uint32_t what) {
    static uint16_t all_unmasked = 0x0340;

    __asm__ volatile("fninit\n fldcw %0\n fld1\n fldz\n fdivrp\n" : : "m"(all_unmasked) : "memory");
    uint64_t answer = what == THEN_SYSTEM_CALL ? (uint64_t)system_call(39, 0, 0, 0, 0, 0, 0)
                                               : ph__doorbell_ring(PH__DOORBELL_SLEEP, 0, 0, 0);
    __asm__ volatile("fninit");
    return answer;
}
PH_EXPORT(x87_pending_then, PH_U64, PH_U32);

/* Every register as the test wants it, then a system call of number (number). */
static int64_t system_call_with(uint64_t number, uint64_t value) {
    int64_t answer;

    __asm__ volatile("push %%rbp\n"
                     "mov %%rdx, %%rbp\n mov %%rdx, %%rbx\n mov %%rdx, %%rsi\n mov %%rdx, %%rdi\n"
                     "mov %%rdx, %%r8\n mov %%rdx, %%r9\n mov %%rdx, %%r10\n mov %%rdx, %%r11\n"
                     "mov %%rdx, %%r12\n mov %%rdx, %%r13\n mov %%rdx, %%r14\n mov %%rdx, %%r15\n"
                     "mov %%rdx, %%rcx\n"
                     "syscall\n"
                     "pop %%rbp"
                     : "=a"(answer), "+d"(value)
                     : "a"(number)
                     : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "memory", "cc");
    return answer;
}
PH_EXPORT(system_call_with, PH_I64, PH_U64, PH_U64);
