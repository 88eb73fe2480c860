/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ph__trace_room for the assembly of guest-trace.h: RAX = bytes, RDX = where the limit is; EAX = 0 if there
 * is no room. Keeps every other register, and does not care how the stack is aligned, since it is called
 * where the compiler knows of no call.
 */
    .text

    .globl ph__trace_room_call
    .hidden ph__trace_room_call
    .type ph__trace_room_call, @function
ph__trace_room_call:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rcx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    andq $-16, %rsp
    movq %rax, %rdi
    movq %rdx, %rsi
    call ph__trace_room
    movzbl %al, %eax
    movq -8(%rbp), %rcx
    movq -16(%rbp), %rsi
    movq -24(%rbp), %rdi
    movq -32(%rbp), %r8
    movq -40(%rbp), %r9
    movq -48(%rbp), %r10
    movq -56(%rbp), %r11
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size ph__trace_room_call, . - ph__trace_room_call

    .section .note.GNU-stack, "", @progbits
