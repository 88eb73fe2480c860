/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every way into and out of the monitor: the ring-0 stubs, the system-call entry, the entry for an
 * exception that the host hands back, the start of a program, and the one way back to guest code.
 *
 * Only the stubs, and up to six instructions of the system-call entry, run in ring 0. Some machines emulate
 * ring 0 at about a microsecond an instruction, so there is nothing there that ring 3 can do.
 */
#include "asm.h"

#define FLAG_TF 0x100
#define FLAG_IF 0x200

/* -------------------------------------------------------------- ring 0 -- */

    .section .stubs, "ax", @progbits
    .balign 4096

/* One stub for each exception vector. The host knows the vector by RIP and the frame by RSP; no register
 * is touched, so what the host reads is what the guest had. When it lets the vCPU go on behind the `out`,
 * the guest continues at the frame, which the host may have changed. */
    .globl ph__stubs
ph__stubs:
    vector = 0
    .rept 32
    .balign 16, 0xcc
    /* #DF #TS #NP #SS #GP #PF #AC #CP #VC #SX push an error code; for the others a zero keeps the
     * frames alike. */
    .if (vector != 8) && (vector < 10 || vector > 14) && (vector != 17) && (vector != 21) && (vector != 29) && (vector != 30)
    pushq $0
    .endif
    outl %eax, $ASM_DOORBELL_PORT
    add $8, %rsp
    iretq
    vector = vector + 1
    .endr

/* The same ending for a host that enters it by RIP: RSP at the error code. */
    .balign 16, 0xcc
    .globl ph__exception_return
ph__exception_return:
    add $8, %rsp
    iretq

/* Stores page-table entries. RDI = struct ph__poke list, RCX = how many, at least one. Where page tables
 * are shadowed, only a store by the guest's own ring 0 followed by invlpg is sure to be seen. */
    .balign 16, 0xcc
    .globl ph__poke
ph__poke:
    mov ASM_POKE_ENTRY(%rdi), %rdx
    mov ASM_POKE_VALUE(%rdi), %rax
    mov %rax, (%rdx)
    mov ASM_POKE_GVA(%rdi), %rdx
    invlpg (%rdx)
    add $ASM_POKE_SIZE, %rdi
    loop ph__poke
    outl %eax, $ASM_DOORBELL_PORT
    ud2

/* ---------------------------------------------------------- system calls -- */

    .section .text.entry, "ax", @progbits

/* LSTAR. RCX = return address, R11 = flags, all else the guest's. Reached at CPL 0 on VMX and SVM, at CPL 3
 * where the machine runs ring 0 in ring 3. At CPL 0 nothing is trusted: only the two slots below, at
 * addresses that no register steers, are written, and neither stack nor segment base is used. */
    .balign 64
    .globl ph__system_call_entry
ph__system_call_entry:
    mov %rcx, ph__user_rip(%rip)
    mov %r11, user_rflags(%rip)
    mov %cs, %ecx
    test $3, %cl
    jnz 1f
    /* Into ring 3 at the next line. Of the guest's flags only IF goes along: TF would trap in here. */
    lea 1f(%rip), %rcx
    and $FLAG_IF, %r11d
    sysretq
1:
    mov %rsp, user_rsp(%rip)
    movabs $ASM_STACK_TOP, %rsp
    /* struct ph__regs, from its end. As on Linux, RCX and R11 come back as RIP and flags. */
    pushq user_rflags(%rip)
    pushq ph__user_rip(%rip)
    push %r15
    push %r14
    push %r13
    push %r12
    pushq user_rflags(%rip)
    push %r10
    push %r9
    push %r8
    push %rbp
    pushq user_rsp(%rip)
    push %rdi
    push %rsi
    push %rdx
    pushq ph__user_rip(%rip)
    push %rbx
    push %rax
    /* DF, AC and TF may still be set where SFMASK does not hold. */
    pushq $2
    popfq
    mov %rsp, %rdi
    call ph__monitor_dispatch

/* Back to the guest: RSP = struct ph__regs. Nothing behind popfq changes a flag. */
resume:
    mov ASM_RIP(%rsp), %rax
    mov %rax, ph__user_rip(%rip)
    mov ASM_RSP(%rsp), %rax
    mov %rax, user_rsp(%rip)
    mov ASM_RAX(%rsp), %rax
    mov ASM_RBX(%rsp), %rbx
    mov ASM_RCX(%rsp), %rcx
    mov ASM_RDX(%rsp), %rdx
    mov ASM_RSI(%rsp), %rsi
    mov ASM_RDI(%rsp), %rdi
    mov ASM_RBP(%rsp), %rbp
    mov ASM_R8(%rsp), %r8
    mov ASM_R9(%rsp), %r9
    mov ASM_R10(%rsp), %r10
    mov ASM_R11(%rsp), %r11
    mov ASM_R12(%rsp), %r12
    mov ASM_R13(%rsp), %r13
    mov ASM_R14(%rsp), %r14
    mov ASM_R15(%rsp), %r15
    testl $FLAG_TF, ASM_RFLAGS(%rsp)
    jnz 1f
    lea ASM_RFLAGS(%rsp), %rsp
    popfq
    mov user_rsp(%rip), %rsp
    jmp *ph__user_rip(%rip)

    /* A guest that single-steps would trap between the last two instructions above. iretq sets all three at
     * once; the selectors it is given are those that we run with. */
1:  pushq ASM_RFLAGS(%rsp)
    popq user_rflags(%rip)
    pushq $0
    movw %ss, (%rsp)
    pushq user_rsp(%rip)
    pushq user_rflags(%rip)
    pushq $0
    movw %cs, (%rsp)
    pushq ph__user_rip(%rip)
    iretq

/* ------------------------------------------------------------- other ways in -- */

/* The host enters here, in ring 3, to have ph__state.exception delivered. Registers hold nothing. */
    .balign 16
    .globl ph__exception_entry
ph__exception_entry:
    movabs $(ASM_STACK_TOP - ASM_REGS_SIZE), %rsp
    pushq $2
    popfq
    mov %rsp, %rdi
    call ph__monitor_exception
    jmp resume

/* The host starts a program here, in ring 3: RDI = entry, RSI = stack pointer. */
    .balign 16
    .globl ph__start
ph__start:
    movabs $(ASM_STACK_TOP - ASM_REGS_SIZE), %rsp
    mov %rsp, %rdx
    call ph__monitor_start
    jmp resume

/* The guest's RIP, RSP and flags on the way in and out: the registers that are needed to leave are the
 * ones that must be loaded last. One vCPU, and nothing interrupts the monitor, so one of each will do. */
    .section .data.entry, "aw", @progbits
    .balign 8
    .globl ph__user_rip
ph__user_rip:
    .skip 8
user_rsp:
    .skip 8
user_rflags:
    .skip 8

    .section .note.GNU-stack, "", @progbits
