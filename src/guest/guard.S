/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The way out of a call that fails (internal.h). The registers that a callee preserves wait on the stack, and
 * ph__guard_stack says where; a call that returns pays for nothing else. No setjmp: each libc has its own.
 */
    .text

    .globl ph__guard_call
    .hidden ph__guard_call
    .type ph__guard_call, @function
ph__guard_call:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    subq $8, %rsp                       /* a called function finds the stack 16-byte aligned */
    .cfi_adjust_cfa_offset 8
    movq %rsp, ph__guard_stack(%rip)
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    call *%rax
    xorl %eax, %eax
.Lreturn:
    movq $0, ph__guard_stack(%rip)
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size ph__guard_call, . - ph__guard_call

    .globl ph__guard_leave
    .hidden ph__guard_leave
    .type ph__guard_leave, @function
ph__guard_leave:
    movq ph__guard_stack(%rip), %rsp
    movl $1, %eax
    jmp .Lreturn
    .size ph__guard_leave, . - ph__guard_leave

    .bss
    .balign 8
    .globl ph__guard_stack
    .hidden ph__guard_stack
    .type ph__guard_stack, @object
    .size ph__guard_stack, 8
ph__guard_stack:
    .zero 8

    .section .note.GNU-stack, "", @progbits
