/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every form of the processor's I/O instructions, on any port. One of them is the doorbell; all others are a
 * breach of the protocol.
 */
#include "hostile.h"

/* Ports in DX, as the argument. */
/* NOLINTBEGIN(bugprone-macro-parentheses): code cannot be in parentheses */
#define PORT_FORM(name, instruction)                                                                         \
    static uint64_t name(uint32_t port, uint64_t rax) {                                                      \
        __asm__ volatile(instruction : "+a"(rax) : "d"((uint64_t)port) : "memory");                          \
        return rax;                                                                                          \
    }                                                                                                        \
    PH_EXPORT(name, PH_U64, PH_U32, PH_U64)
/* NOLINTEND(bugprone-macro-parentheses) */

PORT_FORM(out_8, "outb %%al, %%dx");
PORT_FORM(out_16, "outw %%ax, %%dx");
PORT_FORM(out_32, "outl %%eax, %%dx");
PORT_FORM(in_8, "inb %%dx, %%al");
PORT_FORM(in_16, "inw %%dx, %%ax");
PORT_FORM(in_32, "inl %%dx, %%eax");

/* Strings: (count) elements at a buffer that holds (word) again and again, EAX = (rax). Backwards too. */
#define WORDS 2048u
static uint32_t buffer[WORDS];

#define STRING_FORM(name, instruction)                                                                       \
    static uint64_t name(uint32_t port, uint64_t rax, uint32_t word, uint64_t count) {                       \
        uint32_t *at = buffer;                                                                               \
        for (unsigned i = 0; i < WORDS; i++)                                                                 \
            buffer[i] = word;                                                                                \
        __asm__ volatile(instruction "\n cld"                                                                \
                         : "+a"(rax), "+S"(at), "+c"(count)                                                  \
                         : "d"((uint64_t)port), "D"(buffer)                                                  \
                         : "memory", "cc");                                                                  \
        return rax;                                                                                          \
    }                                                                                                        \
    PH_EXPORT(name, PH_U64, PH_U32, PH_U64, PH_U32, PH_U64)

STRING_FORM(outs_8, "outsb");
STRING_FORM(outs_16, "outsw");
STRING_FORM(outs_32, "outsl");
STRING_FORM(rep_outs_8, "rep outsb");
STRING_FORM(rep_outs_16, "rep outsw");
STRING_FORM(rep_outs_32, "rep outsl");
STRING_FORM(rep_outs_32_down, "std\n rep outsl");
STRING_FORM(ins_8, "insb");
STRING_FORM(ins_16, "insw");
STRING_FORM(ins_32, "insl");
STRING_FORM(rep_ins_8, "rep insb");
STRING_FORM(rep_ins_16, "rep insw");
STRING_FORM(rep_ins_32, "rep insl");
STRING_FORM(rep_ins_32_down, "std\n rep insl");

/* Strings whose memory is not there, or is not the guest's. */
static uint64_t outs_32_from(uint32_t port, uint64_t address) {
    __asm__ volatile("outsl" : "+S"(address) : "d"((uint64_t)port) : "memory");
    return address;
}
PH_EXPORT(outs_32_from, PH_U64, PH_U32, PH_U64);

static uint64_t ins_32_to(uint32_t port, uint64_t address) {
    __asm__ volatile("insl" : "+D"(address) : "d"((uint64_t)port) : "memory");
    return address;
}
PH_EXPORT(ins_32_to, PH_U64, PH_U32, PH_U64);

/* Ports in the instruction. */
LIE_ASM(in_8_imm, "inb $0x50, %%al");
LIE_ASM(in_16_imm, "inw $0x50, %%ax");
LIE_ASM(in_32_imm, "inl $0x50, %%eax");
LIE_ASM(out_8_imm, "movl $2, %%eax\n outb %%al, $0x50");
LIE_ASM(out_16_imm, "movl $2, %%eax\n outw %%ax, $0x50");
LIE_ASM(out_8_imm_second, "movl $2, %%eax\n outb %%al, $0x51");
LIE_ASM(out_8_imm_last, "movl $2, %%eax\n outb %%al, $0x53");
LIE_ASM(out_16_imm_middle, "movl $2, %%eax\n outw %%ax, $0x51");
LIE_ASM(out_16_imm_across, "movl $2, %%eax\n outw %%ax, $0x53");
LIE_ASM(out_32_imm_before, "movl $2, %%eax\n outl %%eax, $0x4f");
LIE_ASM(out_32_imm_second, "movl $2, %%eax\n outl %%eax, $0x51");
LIE_ASM(out_32_imm_behind, "movl $2, %%eax\n outl %%eax, $0x54");
LIE_ASM(out_32_imm_post, "movl $2, %%eax\n outl %%eax, $0x80");

/* A doorbell, and then the same the other way round. */
LIE_ASM(sleep_then_in,
        "movl $7, %%eax\n xorl %%edi, %%edi\n outl %%eax, $0x50\n movl $7, %%eax\n inl $0x50, %%eax");

/* The doorbell with prefixes that change it, or that mean nothing to it. */
LIE_ASM(out_operand_size, "movl $2, %%eax\n .byte 0x66, 0xe7, 0x50");
LIE_ASM(out_lock, "movl $99, %%eax\n .byte 0xf0, 0xe7, 0x50");
LIE_ASM(out_rex_w, "movl $99, %%eax\n .byte 0x48, 0xe7, 0x50");
LIE_ASM(out_rep, "movl $99, %%eax\n movl $3, %%ecx\n .byte 0xf3, 0xe7, 0x50");
LIE_ASM(out_segment, "movl $99, %%eax\n .byte 0x65, 0x67, 0xe7, 0x50");
