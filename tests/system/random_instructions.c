/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The tables of instructions (random_instructions.h). Encodings are those of the Intel SDM, volume 2. What
 * the emulator is known to do otherwise is not in them (docs/security.md), and neither are instructions for
 * I/O, behind which it goes on for a while.
 */
#include "system/random_instructions.h"

#define ONE(opcode, extension, flags)                                                                        \
    { 0, {opcode}, 1, extension, flags }
#define TWO(opcode, extension, flags)                                                                        \
    { 0, {0x0f, opcode}, 2, extension, flags }

const struct random_row random_integer_rows[] = {
    ONE(0x00, -1, EITHER | BYTE | LOCK | WRITES_RM),
    ONE(0x01, -1, EITHER | LOCK | WRITES_RM),
    ONE(0x02, -1, EITHER | BYTE),
    ONE(0x03, -1, EITHER),
    ONE(0x09, -1, EITHER | LOCK | WRITES_RM | FLAGS),
    ONE(0x0b, -1, EITHER | FLAGS),
    ONE(0x11, -1, EITHER | LOCK | WRITES_RM),
    ONE(0x13, -1, EITHER),
    ONE(0x19, -1, EITHER | LOCK | WRITES_RM),
    ONE(0x1b, -1, EITHER),
    ONE(0x20, -1, EITHER | BYTE | LOCK | WRITES_RM | FLAGS),
    ONE(0x21, -1, EITHER | LOCK | WRITES_RM | FLAGS),
    ONE(0x29, -1, EITHER | LOCK | WRITES_RM),
    ONE(0x2b, -1, EITHER),
    ONE(0x31, -1, EITHER | LOCK | WRITES_RM | FLAGS),
    ONE(0x33, -1, EITHER | FLAGS),
    ONE(0x38, -1, EITHER | BYTE),
    ONE(0x39, -1, EITHER),
    ONE(0x3b, -1, EITHER),
    ONE(0x80, 0, EITHER | BYTE | LOCK | WRITES_RM | IMMEDIATE),
    ONE(0x80, 7, EITHER | BYTE | IMMEDIATE),
    ONE(0x81, 5, EITHER | LOCK | WRITES_RM | IMMEDIATE | WIDE),
    ONE(0x81, 7, EITHER | IMMEDIATE | WIDE),
    ONE(0x83, 1, EITHER | LOCK | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0x83, 2, EITHER | LOCK | WRITES_RM | IMMEDIATE),
    ONE(0x84, -1, EITHER | BYTE | FLAGS | ENDS),
    ONE(0x85, -1, EITHER | FLAGS | ENDS),
    ONE(0x86, -1, EITHER | BYTE | LOCK | WRITES_RM),
    ONE(0x87, -1, EITHER | LOCK | WRITES_RM),
    ONE(0x88, -1, EITHER | BYTE | WRITES_RM),
    ONE(0x89, -1, EITHER | WRITES_RM),
    ONE(0x8a, -1, EITHER | BYTE),
    ONE(0x8b, -1, EITHER),
    ONE(0x8d, -1, MEMORY),
    ONE(0xc6, 0, EITHER | BYTE | WRITES_RM | IMMEDIATE),
    ONE(0xc7, 0, EITHER | WRITES_RM | IMMEDIATE | WIDE),
    ONE(0x63, -1, EITHER),
    ONE(0xc0, 4, EITHER | BYTE | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 0, EITHER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 1, EITHER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 2, REGISTER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 3, REGISTER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 4, EITHER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 5, EITHER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xc1, 7, EITHER | WRITES_RM | IMMEDIATE | FLAGS),
    ONE(0xd1, 4, EITHER | WRITES_RM | FLAGS),
    ONE(0xd3, 7, EITHER | WRITES_RM | FLAGS),
    ONE(0xd3, 2, REGISTER | WRITES_RM | FLAGS),
    ONE(0xf6, 0, EITHER | BYTE | IMMEDIATE | FLAGS),
    ONE(0xf7, 0, EITHER | IMMEDIATE | WIDE | FLAGS),
    ONE(0xf7, 2, EITHER | LOCK | WRITES_RM),
    ONE(0xf7, 3, EITHER | LOCK | WRITES_RM),
    ONE(0xf6, 4, EITHER | BYTE | FLAGS),
    ONE(0xf7, 4, EITHER | FLAGS),
    ONE(0xf7, 5, EITHER | FLAGS),
    ONE(0xf6, 6, EITHER | BYTE | FLAGS),
    ONE(0xf7, 6, EITHER | FLAGS),
    ONE(0xf7, 7, EITHER | FLAGS),
    ONE(0xfe, 0, EITHER | BYTE | LOCK | WRITES_RM),
    ONE(0xff, 0, EITHER | LOCK | WRITES_RM),
    ONE(0xff, 1, EITHER | LOCK | WRITES_RM),
    ONE(0xff, 6, EITHER),
    ONE(0x8f, 0, EITHER | WRITES_RM),
    ONE(0x69, -1, EITHER | IMMEDIATE | WIDE | FLAGS),
    ONE(0x6b, -1, EITHER | IMMEDIATE | FLAGS),
    TWO(0xaf, -1, EITHER | FLAGS),
    TWO(0xb6, -1, EITHER),
    TWO(0xb7, -1, EITHER),
    TWO(0xbe, -1, EITHER),
    TWO(0xbf, -1, EITHER),
    TWO(0xa3, -1, EITHER | FLAGS | ENDS),
    TWO(0xab, -1, MEMORY | LOCK | WRITES_RM | FLAGS),
    TWO(0xb3, -1, EITHER | WRITES_RM | FLAGS),
    TWO(0xbb, -1, EITHER | WRITES_RM | FLAGS),
    TWO(0xba, 4, EITHER | IMMEDIATE | FLAGS),
    TWO(0xba, 5, EITHER | WRITES_RM | IMMEDIATE | FLAGS),
    TWO(0xba, 6, MEMORY | LOCK | WRITES_RM | IMMEDIATE | FLAGS),
    TWO(0xa4, -1, REGISTER | NARROW | WRITES_RM | IMMEDIATE | FLAGS),
    TWO(0xad, -1, EITHER | NARROW | WRITES_RM | FLAGS),
    TWO(0xb0, -1, EITHER | BYTE | LOCK | WRITES_RM),
    TWO(0xc0, -1, EITHER | BYTE | LOCK | WRITES_RM),
    TWO(0xc1, -1, EITHER | LOCK | WRITES_RM),
    TWO(0xc3, -1, MEMORY | NARROW | ENDS),
    TWO(0x40, -1, EITHER),
    TWO(0x44, -1, EITHER),
    TWO(0x4c, -1, EITHER),
    TWO(0x92, 0, REGISTER | BYTE | WRITES_RM),
    TWO(0x9f, 0, REGISTER | BYTE | WRITES_RM),
    TWO(0xc8, -1, NO_MODRM | NARROW),
    TWO(0x18, 1, MEMORY),
    TWO(0x1f, 0, EITHER),
    ONE(0x50, -1, NO_MODRM),
    ONE(0x58, -1, NO_MODRM),
    ONE(0x98, 0, NO_MODRM),
    ONE(0x99, 0, NO_MODRM),
    ONE(0xf5, 0, NO_MODRM | FIXED),
    ONE(0xf8, 0, NO_MODRM | FIXED),
    ONE(0xfc, 0, NO_MODRM | FIXED),
    ONE(0xfd, 0, NO_MODRM | FIXED),
    ONE(0x9e, 0, NO_MODRM | FIXED),
    ONE(0x9f, 0, NO_MODRM | FIXED),
    ONE(0xc9, 0, NO_MODRM | FIXED),
    ONE(0xd7, 0, NO_MODRM | FIXED),
    {0xf2, {0x0f, 0x38, 0xf1}, 3, -1, EITHER | FIXED},
};
const size_t random_integer_row_count = sizeof random_integer_rows / sizeof random_integer_rows[0];

#define SSE(prefix, opcode, flags)                                                                           \
    { prefix, {0x0f, opcode}, 2, -1, (flags) | FIXED | ENDS }
#define SSE38(prefix, opcode, flags)                                                                         \
    { prefix, {0x0f, 0x38, opcode}, 3, -1, (flags) | FIXED | ENDS }
#define SSE3A(prefix, opcode, flags)                                                                         \
    { prefix, {0x0f, 0x3a, opcode}, 3, -1, (flags) | FIXED | ENDS | IMMEDIATE }

const struct random_row random_vector_rows[] = {
    SSE(0, 0x10, EITHER),
    SSE(0, 0x11, EITHER),
    SSE(0x66, 0x10, EITHER),
    SSE(0xf3, 0x10, EITHER),
    SSE(0xf3, 0x11, EITHER),
    SSE(0xf2, 0x10, EITHER),
    SSE(0xf2, 0x11, EITHER),
    SSE(0, 0x12, EITHER),
    SSE(0, 0x13, MEMORY),
    SSE(0x66, 0x12, MEMORY),
    SSE(0, 0x14, EITHER),
    SSE(0x66, 0x15, EITHER),
    SSE(0, 0x16, EITHER),
    SSE(0, 0x17, MEMORY),
    SSE(0, 0x28, EITHER),
    SSE(0, 0x29, EITHER),
    SSE(0x66, 0x28, EITHER),
    SSE(0x66, 0x29, EITHER),
    SSE(0, 0x2b, MEMORY),
    SSE(0x66, 0xe7, MEMORY),
    SSE(0, 0x54, EITHER),
    SSE(0, 0x55, EITHER),
    SSE(0x66, 0x56, EITHER),
    SSE(0x66, 0x57, EITHER),
    SSE(0x66, 0x60, EITHER),
    SSE(0x66, 0x63, EITHER),
    SSE(0x66, 0x64, EITHER),
    SSE(0x66, 0x67, EITHER),
    SSE(0x66, 0x6b, EITHER),
    SSE(0x66, 0x6c, EITHER),
    SSE(0x66, 0x6f, EITHER),
    SSE(0x66, 0x7f, EITHER),
    SSE(0xf3, 0x6f, EITHER),
    SSE(0xf3, 0x7f, EITHER),
    SSE(0xf3, 0x7e, EITHER),
    SSE(0x66, 0xd6, EITHER),
    SSE(0x66, 0x6e, EITHER),
    SSE(0x66, 0x7e, MEMORY),
    SSE(0x66, 0x70, EITHER | IMMEDIATE),
    SSE(0xf3, 0x70, EITHER | IMMEDIATE),
    SSE(0x66, 0x74, EITHER),
    SSE(0x66, 0x76, EITHER),
    SSE(0x66, 0xc4, EITHER | IMMEDIATE),
    SSE(0, 0xc6, EITHER | IMMEDIATE),
    SSE(0x66, 0xd1, EITHER),
    SSE(0x66, 0xd2, EITHER),
    SSE(0x66, 0xd4, EITHER),
    SSE(0x66, 0xd5, EITHER),
    SSE(0x66, 0xda, EITHER),
    SSE(0x66, 0xdb, EITHER),
    SSE(0x66, 0xdd, EITHER),
    SSE(0x66, 0xe0, EITHER),
    SSE(0x66, 0xe2, EITHER),
    SSE(0x66, 0xe4, EITHER),
    SSE(0x66, 0xe5, EITHER),
    SSE(0x66, 0xec, EITHER),
    SSE(0x66, 0xef, EITHER),
    SSE(0xf2, 0xf0, MEMORY),
    SSE(0x66, 0xf2, EITHER),
    SSE(0x66, 0xf4, EITHER),
    SSE(0x66, 0xf5, EITHER),
    SSE(0x66, 0xf6, EITHER),
    SSE(0x66, 0xfa, EITHER),
    SSE(0x66, 0xfe, EITHER),
    SSE38(0x66, 0x00, EITHER),
    SSE38(0x66, 0x04, EITHER),
    SSE38(0x66, 0x08, EITHER),
    SSE38(0x66, 0x0b, EITHER),
    SSE38(0x66, 0x10, EITHER),
    SSE38(0x66, 0x17, EITHER),
    SSE38(0x66, 0x1c, EITHER),
    SSE38(0x66, 0x20, EITHER),
    SSE38(0x66, 0x25, EITHER),
    SSE38(0x66, 0x28, EITHER),
    SSE38(0x66, 0x29, EITHER),
    SSE38(0x66, 0x2a, MEMORY),
    SSE38(0x66, 0x2b, EITHER),
    SSE38(0x66, 0x35, EITHER),
    SSE38(0x66, 0x37, EITHER),
    SSE38(0x66, 0x3a, EITHER),
    SSE38(0x66, 0x40, EITHER),
    SSE38(0x66, 0x41, EITHER),
    SSE38(0x66, 0xdb, EITHER),
    SSE38(0x66, 0xdc, EITHER),
    SSE38(0x66, 0xdf, EITHER),
    SSE3A(0x66, 0x0e, EITHER),
    SSE3A(0x66, 0x0f, EITHER),
    SSE3A(0x66, 0x14, MEMORY),
    SSE3A(0x66, 0x16, MEMORY),
    SSE3A(0x66, 0x17, MEMORY),
    SSE3A(0x66, 0x20, EITHER),
    SSE3A(0x66, 0x21, EITHER),
    SSE3A(0x66, 0x22, EITHER),
    SSE3A(0x66, 0x42, EITHER),
    SSE3A(0x66, 0x62, EITHER),
    SSE3A(0x66, 0x63, EITHER),
    SSE3A(0x66, 0xdf, EITHER),

};
const size_t random_vector_row_count = sizeof random_vector_rows / sizeof random_vector_rows[0];

const struct random_piece random_pieces[] = {
    {2, {0x0f, 0x0b}},             /* ud2 */
    {3, {0x0f, 0xb9, 0xc0}},       /* ud1 */
    {3, {0x0f, 0xff, 0xc0}},       /* ud0 */
    {1, {0x06}},                   /* undefined in 64-bit code: push %es, ... */
    {1, {0x27}},                   /* daa */
    {1, {0x60}},                   /* pusha */
    {1, {0xce}},                   /* into */
    {2, {0xd4, 0x0a}},             /* aam */
    {6, {0x9a, 0, 0, 0, 0, 0}},    /* lcall */
    {1, {0xcc}},                   /* int3 */
    {2, {0xcd, 0x03}},             /* int $3 */
    {2, {0xcd, 0x04}},             /* int $4 */
    {1, {0xf4}},                   /* hlt */
    {1, {0xfa}},                   /* cli */
    {1, {0xfb}},                   /* sti */
    {3, {0x0f, 0x20, 0xc0}},       /* mov %cr0, %rax */
    {3, {0x0f, 0x22, 0xd8}},       /* mov %rax, %cr3 */
    {4, {0x44, 0x0f, 0x20, 0xc0}}, /* mov %cr8, %rax */
    {3, {0x0f, 0x21, 0xc0}},       /* mov %db0, %rax */
    {3, {0x0f, 0x23, 0xf8}},       /* mov %rax, %db7 */
    {2, {0x0f, 0x30}},             /* wrmsr */
    {2, {0x0f, 0x32}},             /* rdmsr */
    {2, {0x0f, 0x06}},             /* clts */
    {2, {0x0f, 0x08}},             /* invd */
    {2, {0x0f, 0x09}},             /* wbinvd */
    {4, {0x41, 0x0f, 0x01, 0x3e}}, /* invlpg (%r14) */
    {4, {0x41, 0x0f, 0x01, 0x16}}, /* lgdt (%r14) */
    {4, {0x41, 0x0f, 0x01, 0x1e}}, /* lidt (%r14) */
    {4, {0x41, 0x0f, 0x01, 0x36}}, /* lmsw (%r14) */
    {3, {0x0f, 0x01, 0xf0}},       /* lmsw %ax */
    {3, {0x0f, 0x00, 0xd0}},       /* lldt %ax */
    {3, {0x0f, 0x00, 0xd8}},       /* ltr %ax */
    {3, {0x0f, 0x01, 0xf8}},       /* swapgs */
    {2, {0x0f, 0x07}},             /* sysret */
    {3, {0x48, 0x0f, 0x07}},       /* sysretq */
    {2, {0x0f, 0x35}},             /* sysexit */
    {3, {0x0f, 0x01, 0xd1}},       /* xsetbv */
    {2, {0x0f, 0xaa}},             /* rsm */
    {2, {0x8e, 0xd8}},             /* mov %eax, %ds */
    {2, {0x8e, 0xc1}},             /* mov %ecx, %es */
    {2, {0x8e, 0xd0}},             /* mov %eax, %ss */
    {2, {0x8e, 0xc8}},             /* mov %eax, %cs */
    {2, {0x8e, 0xf0}},             /* mov %eax, sixth segment register */
    {3, {0x41, 0xff, 0x2e}},       /* ljmp *(%r14) */
    {3, {0x41, 0xff, 0x1e}},       /* lcall *(%r14) */
    {2, {0xff, 0xe0}},             /* jmp *%rax */
    {2, {0xff, 0xd1}},             /* call *%rcx */
    {3, {0x41, 0xff, 0xd6}},       /* call *%r14 */
    {3, {0x41, 0xff, 0x26}},       /* jmp *(%r14) */
    {1, {0xc3}},                   /* ret */
    {3, {0xc2, 0x10, 0x00}},       /* ret $16 */
    {4, {0xc8, 0x20, 0x00, 0x00}}, /* enter $32, $0 */
    {4, {0xc8, 0x20, 0x00, 0x03}}, /* enter $32, $3 */
    {3, {0xf0, 0x01, 0xc0}},       /* lock add %eax, %eax */
    {3, {0x8d, 0xc0, 0x90}},       /* lea with a register */
    {3, {0x0f, 0xc7, 0xc8}},       /* cmpxchg8b with a register */
    {2, {0xfe, 0xf8}},             /* no such extension */
    {2, {0xff, 0xf8}},             /* no such extension */
    {2, {0xd9, 0xd8}},             /* no such x87 instruction, but an alias */
    {2, {0xd9, 0xd1}},             /* no such x87 instruction */
    {17, {0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0xc7, 0x44, 0x24, 0xf8, 0, 0, 0, 0}}, /* set TF */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xd0}},                                                  /* wrfsbase %rax */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xc1}},                                                  /* rdfsbase %rcx */
    {5, {0xf3, 0x48, 0x0f, 0xae, 0xd9}},                                                  /* wrgsbase %rcx */
    {4, {0xf3, 0x0f, 0xae, 0xca}},                                                        /* rdgsbase %edx */
    {5, {0x64, 0x41, 0x8b, 0x46, 0x10}}, /* mov %fs:16(%r14), %eax */
    {5, {0x65, 0x41, 0x89, 0x46, 0x10}}, /* mov %eax, %gs:16(%r14) */
    {2, {0x89, 0x00}},                   /* mov %eax, (%rax) */
    {3, {0x67, 0x8b, 0x00}},             /* mov (%eax), %eax */
    {3, {0x8b, 0x45, 0x10}},             /* mov 16(%rbp), %eax */
    {3, {0x8b, 0x04, 0x24}},             /* mov (%rsp), %eax */
    {2, {0xf3, 0xaa}},                   /* rep stosb */
    {3, {0xf3, 0x48, 0xab}},             /* rep stosq */
    {2, {0xf3, 0xa4}},                   /* rep movsb */
    {3, {0xf3, 0x66, 0xa5}},             /* rep movsw */
    {3, {0xf3, 0x48, 0xa5}},             /* rep movsq */
    {2, {0xf3, 0xac}},                   /* rep lodsb */
    {2, {0xf3, 0xa6}},                   /* repe cmpsb */
    {2, {0xf2, 0xa7}},                   /* repne cmpsl */
    {2, {0xf2, 0xae}},                   /* repne scasb */
    {3, {0xf3, 0x48, 0xaf}},             /* repe scasq */
    {1, {0xa4}},                         /* movsb */
    {2, {0x48, 0xab}},                   /* stosq */
    {1, {0xae}},                         /* scasb */
    {1, {0xa7}},                         /* cmpsl */
    {3, {0x67, 0xf3, 0xaa}},             /* rep stosb with 32 bits of address */
    {3, {0xe3, 0x01, 0x90}},             /* jrcxz over one byte */
    {3, {0xe2, 0x01, 0x90}},             /* loop over one byte */
    {3, {0x0f, 0xae, 0xf0}},             /* mfence */
    {4, {0x41, 0x0f, 0xae, 0x1e}},       /* stmxcsr (%r14) */
    {2, {0x9b, 0x90}},                   /* fwait */
    {3, {0x41, 0xdb, 0x2e}},             /* fldt (%r14) */
    {2, {0xd9, 0xe8}},                   /* fld1 */
    {2, {0xdb, 0xe3}},                   /* fninit */
};
const size_t random_piece_count = sizeof random_pieces / sizeof random_pieces[0];
