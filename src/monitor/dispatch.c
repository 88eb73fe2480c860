/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * From a system call's number to the function that serves it. Called by entry.S on the monitor's stack,
 * with the guest's registers; what it leaves in them is what the guest gets.
 */
#include <asm/unistd.h>

#include "monitor/asm.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

struct ph__monitor_state ph__state;

/* ------------------------------------- the assembly's numbers against their source -- */

_Static_assert(ASM_DOORBELL_PORT == PH__DOORBELL_PORT, "asm.h");
_Static_assert(ASM_MONITOR_GVA == PH__GVA(PH__MONITOR_GPA), "asm.h, monitor.lds");
_Static_assert(ASM_STACK_TOP == PH__GVA(PH__MONITOR_STACK_GPA + PH__MONITOR_STACK_SIZE), "asm.h");
_Static_assert(ASM_MONITOR_MAGIC == PH__MONITOR_MAGIC && ASM_ABI_VERSION == PH__ABI_VERSION, "asm.h");
_Static_assert(PH__STUB_COUNT == 32 && PH__STUB_SIZE == 16, "entry.S");
_Static_assert(sizeof(struct ph__monitor_header) == 17 * sizeof(uint32_t), "header.S");
_Static_assert(sizeof(struct ph__regs) == ASM_REGS_SIZE, "asm.h");
#define CHECK_REGISTER(field, number) _Static_assert(offsetof(struct ph__regs, field) == (number), "asm.h")
CHECK_REGISTER(rax, ASM_RAX);
CHECK_REGISTER(rbx, ASM_RBX);
CHECK_REGISTER(rcx, ASM_RCX);
CHECK_REGISTER(rdx, ASM_RDX);
CHECK_REGISTER(rsi, ASM_RSI);
CHECK_REGISTER(rdi, ASM_RDI);
CHECK_REGISTER(rsp, ASM_RSP);
CHECK_REGISTER(rbp, ASM_RBP);
CHECK_REGISTER(r8, ASM_R8);
CHECK_REGISTER(r9, ASM_R9);
CHECK_REGISTER(r10, ASM_R10);
CHECK_REGISTER(r11, ASM_R11);
CHECK_REGISTER(r12, ASM_R12);
CHECK_REGISTER(r13, ASM_R13);
CHECK_REGISTER(r14, ASM_R14);
CHECK_REGISTER(r15, ASM_R15);
CHECK_REGISTER(rip, ASM_RIP);
CHECK_REGISTER(rflags, ASM_RFLAGS);
_Static_assert(offsetof(struct ph__poke, entry_gva) == ASM_POKE_ENTRY, "asm.h");
_Static_assert(offsetof(struct ph__poke, value) == ASM_POKE_VALUE, "asm.h");
_Static_assert(offsetof(struct ph__poke, gva) == ASM_POKE_GVA, "asm.h");
_Static_assert(sizeof(struct ph__poke) == ASM_POKE_SIZE, "asm.h");
/* page_map.c: whole words of bookkeeping. */
_Static_assert(PH__LARGE_PAGE_SIZE / PH__PAGE_SIZE % 64 == 0, "page_map.c");

/* ---------------------------------------------------------------- dispatch -- */

/* A switch and no table of pointers: the compiler's is half as large, and each page that a program's start
 * touches costs a page fault. */
/* NOLINTBEGIN(bugprone-branch-clone): two system calls may have one function */
static int64_t serve(uint64_t number, struct ph__regs *regs) {
    switch (number) {
#define SERVE(name, function)                                                                                \
    case __NR_##name:                                                                                        \
        return function(regs);
        PH__SYSTEM_CALLS(SERVE)
#undef SERVE
    default:
        return -ENOSYS;
    }
}
/* NOLINTEND(bugprone-branch-clone) */

void ph__monitor_dispatch(struct ph__regs *regs) {
    uint64_t number = regs->rax;
    uint64_t slot = number < PH__SYSTEM_CALLS_MAX ? number : PH__SYSTEM_CALLS_MAX - 1;
    uint64_t span = 0;
    /* rt_sigreturn is no call that a program makes, and a record of it would send back every writer that a
     * handler has interrupted (trace.c). */
    if (ph__is_traced() && ph__control()->trace.system_calls && number != __NR_rt_sigreturn)
        span = ph__trace_system_call(number, regs->rsp);
    int64_t answer = serve(number, regs);
    regs->rax = (uint64_t)answer;
    if (span)
        ph__trace_system_call_end(span, answer);
    if (answer == -ENOSYS)
        ph__state.unserved[slot]++;
    else
        ph__state.served[slot]++;
    ph__signals_deliver(regs);
}

void ph__monitor_start(uint64_t entry, uint64_t stack, struct ph__regs *regs) {
    *regs = (struct ph__regs){.rip = entry, .rsp = stack, .rflags = 2};
    if (ph__is_traced() && ph__control()->trace.calls)
        ph__trace_start();
}
