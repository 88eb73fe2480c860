/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The only instructions of the monitor that touch memory at an address that the guest chose. A fault in
 * [ph__fixup_start, ph__fixup_end) makes the host go on at ph__fixup_landing with RSP unchanged, so all of
 * these are leaves that push nothing, and each returns 0 or -EFAULT. user.c checks ranges before.
 */
    .section .text.user_copy, "ax", @progbits
    .balign 64
    .globl ph__fixup_start
ph__fixup_start:

/* int64_t ph__fixup_copy(void *to, const void *from, uint64_t size) */
    .globl ph__fixup_copy
ph__fixup_copy:
    mov %rdx, %rcx
    rep movsb
    xor %eax, %eax
    ret

/* int64_t ph__fixup_zero(void *to, uint64_t size) */
    .globl ph__fixup_zero
ph__fixup_zero:
    mov %rsi, %rcx
    xor %eax, %eax
    rep stosb
    ret

/* int64_t ph__fixup_length(const char *string, uint64_t most): bytes before the NUL, (most) if none */
    .globl ph__fixup_length
ph__fixup_length:
    xor %eax, %eax
1:  cmp %rsi, %rax
    jae 2f
    cmpb $0, (%rdi, %rax)
    je 2f
    inc %rax
    jmp 1b
2:  ret

/* int64_t ph__fixup_xsave(void *area, uint32_t features) and the three like it. What the guest put into
 * an area may be refused by the processor with #GP, which lands like a bad pointer. */
    .globl ph__fixup_xsave
ph__fixup_xsave:
    mov %esi, %eax
    xor %edx, %edx
    xsave64 (%rdi)
    xor %eax, %eax
    ret

    .globl ph__fixup_xrstor
ph__fixup_xrstor:
    mov %esi, %eax
    xor %edx, %edx
    xrstor64 (%rdi)
    xor %eax, %eax
    ret

    .globl ph__fixup_fxsave
ph__fixup_fxsave:
    fxsave64 (%rdi)
    xor %eax, %eax
    ret

    .globl ph__fixup_fxrstor
ph__fixup_fxrstor:
    fxrstor64 (%rdi)
    xor %eax, %eax
    ret

    .globl ph__fixup_end
ph__fixup_end:

    .globl ph__fixup_landing
ph__fixup_landing:
    mov $-14, %rax /* -EFAULT */
    ret

    .section .note.GNU-stack, "", @progbits
