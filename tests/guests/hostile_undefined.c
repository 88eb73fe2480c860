/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Undefined instructions that emulators trip over: not only Unicorn, but QEMU too ends its own process for
 * them. So they are in a guest of their own, which is not run where the machine itself is emulated.
 */
#include "hostile.h"

/* Each begins a block of code, which is where an emulator knows least. */
LIE_ASM(lock_cmp, "jmp 1f\n 1: .byte 0xf0, 0x39, 0x04, 0x24");
LIE_ASM(lock_cmps, "jmp 1f\n 1: .byte 0xf0, 0xa6");
LIE_ASM(lock_bts_register, "jmp 1f\n 1: .byte 0xf0, 0x0f, 0xab, 0xc0");
LIE_ASM(far_call_register, "jmp 1f\n 1: .byte 0xff, 0xd8");
LIE_ASM(far_jump_register, "jmp 1f\n 1: .byte 0xff, 0xe8");

LIE_ASM(pause, "pause");
