/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Numbers that the monitor's assembly needs in a form that an assembler reads. dispatch.c compares each
 * with the C header that it comes from, so none can drift.
 */
#ifndef PH_MONITOR_ASM_H
#define PH_MONITOR_ASM_H

#define ASM_DOORBELL_PORT 0x50
#define ASM_MONITOR_GVA 0x7e0000010000
#define ASM_STACK_TOP 0x7e0000068000

#define ASM_MONITOR_MAGIC 0x6e6f6d70
#define ASM_ABI_VERSION 4

/* struct ph__regs */
#define ASM_RAX 0
#define ASM_RBX 8
#define ASM_RCX 16
#define ASM_RDX 24
#define ASM_RSI 32
#define ASM_RDI 40
#define ASM_RSP 48
#define ASM_RBP 56
#define ASM_R8 64
#define ASM_R9 72
#define ASM_R10 80
#define ASM_R11 88
#define ASM_R12 96
#define ASM_R13 104
#define ASM_R14 112
#define ASM_R15 120
#define ASM_RIP 128
#define ASM_RFLAGS 136
#define ASM_REGS_SIZE 144

/* struct ph__poke */
#define ASM_POKE_ENTRY 0
#define ASM_POKE_VALUE 8
#define ASM_POKE_GVA 16
#define ASM_POKE_SIZE 24

#endif
