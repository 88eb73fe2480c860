/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A very small x86-64 decoder: prefixes, then the opcodes that matter (Intel SDM volume 2, appendix A).
 * Called by fault.c.
 */
#include "sandbox/instruction.h"

#include <stdbool.h>

static bool is_prefix(uint8_t byte) {
    switch (byte) {
    case 0x26: /* segment overrides */
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66: /* sizes */
    case 0x67:
    case 0xf0: /* lock, repeat */
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return (byte & 0xf0) == 0x40; /* REX */
    }
}

static bool is_io(uint8_t opcode) {
    return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xe4 && opcode <= 0xe7) ||
           (opcode >= 0xec && opcode <= 0xef);
}

/* 0F 01 with a register: monitor, mwait, clac, stac, xsetbv, lmsw, swapgs. With memory the group is lgdt,
 * lidt, lmsw and invlpg; what is left of it, such as xgetbv and rdtscp, is for everybody. */
static bool is_privileged_system_register(uint8_t modrm) {
    return (modrm >= 0xc8 && modrm <= 0xcb) || modrm == 0xd1 || (modrm >= 0xf0 && modrm <= 0xf8);
}

/* Opcodes behind 0F. (modrm) is the byte after them. */
static bool is_privileged_two_byte(uint8_t opcode, uint8_t modrm) {
    uint8_t extension = modrm >> 3 & 7;

    switch (opcode) {
    case 0x00: /* lldt, ltr */
        return extension == 2 || extension == 3;
    case 0x01: /* a group of its own */
        return modrm >> 6 == 3 ? is_privileged_system_register(modrm)
                               : extension == 2 || extension == 3 || extension == 6 || extension == 7;
    case 0x06: /* clts */
    case 0x07: /* sysret */
    case 0x08: /* invd */
    case 0x09: /* wbinvd */
    case 0x20: /* mov to and from control and debug registers */
    case 0x21:
    case 0x22:
    case 0x23:
    case 0x30: /* wrmsr */
    case 0x32: /* rdmsr */
    case 0x35: /* sysexit */
        return true;
    default:
        return false;
    }
}

enum ph__instruction_kind ph__instruction_classify(const uint8_t *bytes, size_t size) {
    size_t at = 0;

    while (at < size && is_prefix(bytes[at]))
        at++;
    if (at == size)
        return PH__INSTRUCTION_OTHER;
    uint8_t opcode = bytes[at++];
    if (is_io(opcode))
        return PH__INSTRUCTION_IO;
    if (opcode == 0xf4 || opcode == 0xfa || opcode == 0xfb) /* hlt, cli, sti */
        return PH__INSTRUCTION_PRIVILEGED;
    if (opcode == 0x0f && at + 1 < size && is_privileged_two_byte(bytes[at], bytes[at + 1]))
        return PH__INSTRUCTION_PRIVILEGED;
    return PH__INSTRUCTION_OTHER;
}
