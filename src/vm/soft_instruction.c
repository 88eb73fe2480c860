/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The few instructions that Unicorn 2.0.1 does not do as it should, told by their bytes (soft_parts.h; Intel
 * SDM, volume 2). First of all the four that a guest is promised and Unicorn does not know: rdfsbase,
 * rdgsbase, wrfsbase, wrgsbase, all F3 [REX] 0F AE with a register. The monitor uses them, and a program may
 * since the auxiliary vector says so.
 */
#include "vm/soft_parts.h"

#define REX_W 8u
#define REX_B 1u

uint64_t *ph__soft_general(struct ph__regs *regs, unsigned number) {
    uint64_t *const registers[16] = {
        &regs->rax, &regs->rcx, &regs->rdx, &regs->rbx, &regs->rsp, &regs->rbp, &regs->rsi, &regs->rdi,
        &regs->r8,  &regs->r9,  &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14, &regs->r15,
    };
    return registers[number];
}

static bool is_privileged(const struct ph__soft_vcpu *vcpu) {
    uint8_t bytes[4] = {0};
    size_t size = ph__soft_fetch(vcpu, vcpu->regs.rip, bytes, sizeof bytes);
    size_t at = (bytes[0] & 0xf0) == 0x40 ? 1 : 0;

    /* sysret, sysexit, xsetbv */
    return size >= at + 2 && bytes[at] == 0x0f &&
           (bytes[at + 1] == 0x07 || bytes[at + 1] == 0x35 ||
            (bytes[at + 1] == 0x01 && size >= at + 3 && bytes[at + 2] == 0xd1));
}

bool ph__soft_emulate(struct ph__soft_vcpu *vcpu, uint32_t *vector) {
    uint8_t bytes[5] = {0};
    size_t size = ph__soft_fetch(vcpu, vcpu->regs.rip, bytes, sizeof bytes);
    size_t at = 1;
    unsigned rex = 0;

    *vector = is_privileged(vcpu) ? PH__SOFT_PROTECTION_VECTOR : PH__SOFT_UNDEFINED_VECTOR;
    if (bytes[0] != 0xf3)
        return false;
    if ((bytes[at] & 0xf0) == 0x40)
        rex = bytes[at++];
    /* The register form of /0 to /3. */
    if (at + 3 > size || bytes[at] != 0x0f || bytes[at + 1] != 0xae || (bytes[at + 2] & 0xe0) != 0xc0)
        return false;
    const unsigned operation = bytes[at + 2] >> 3 & 3;
    const int base = operation % 2 ? UC_X86_REG_GS_BASE : UC_X86_REG_FS_BASE;
    uint64_t *value = ph__soft_general(&vcpu->regs, (bytes[at + 2] & 7u) | (rex & REX_B ? 8u : 0));
    uint64_t wide = 0;

    if (operation < 2) {
        uc_reg_read(vcpu->engine, base, &wide);
        *value = rex & REX_W ? wide : (uint32_t)wide;
    } else {
        wide = rex & REX_W ? *value : (uint32_t)*value;
        if (wide + PH__USER_END >= 2 * PH__USER_END) {
            *vector = PH__SOFT_PROTECTION_VECTOR;
            return false;
        }
        uc_reg_write(vcpu->engine, base, &wide);
    }
    vcpu->regs.rip += at + 3;
    vcpu->vcpu.regs_changed = true;
    return true;
}

bool ph__soft_is_int1(const struct ph__soft_vcpu *vcpu) {
    uint8_t byte = 0;

    return ph__soft_fetch(vcpu, vcpu->regs.rip, &byte, 1) == 1 && byte == 0xf1;
}

/* Opcodes of one byte that read a place in memory and write it: (extension) is that of the ModRM byte. */
static bool is_update_1(uint8_t opcode, unsigned extension) {
    if (opcode < 0x38) /* add or adc sbb and sub xor, to memory; cmp is above */
        return (opcode & 7) < 2;
    switch (opcode) {
    case 0x80: /* the same with a constant */
    case 0x81:
    case 0x83:
        return extension != 7;
    case 0x86: /* xchg */
    case 0x87:
    case 0xc0: /* shifts */
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return true;
    case 0xf6: /* not, neg */
    case 0xf7:
        return extension == 2 || extension == 3;
    case 0xfe: /* inc, dec */
    case 0xff:
        return extension < 2;
    default:
        return false;
    }
}

/* The same behind 0F. */
static bool is_update_2(uint8_t opcode, unsigned extension) {
    switch (opcode) {
    case 0xa4: /* shld, shrd */
    case 0xa5:
    case 0xac:
    case 0xad:
    case 0xab: /* bts, btr, btc */
    case 0xb3:
    case 0xbb:
    case 0xb0: /* cmpxchg, xadd */
    case 0xb1:
    case 0xc0:
    case 0xc1:
        return true;
    case 0xba: /* bts, btr, btc with a constant */
        return extension > 4;
    case 0xc7: /* cmpxchg8b, cmpxchg16b */
        return extension == 1;
    default:
        return false;
    }
}

static bool is_prefix(uint8_t byte) {
    return (byte & 0xf0) == 0x40 || byte == 0x66 || byte == 0x67 || (byte & 0xfe) == 0xf2 || byte == 0xf0 ||
           (byte & 0xfe) == 0x64 || (byte & 0xe7) == 0x26;
}

bool ph__soft_is_update(const struct ph__soft_vcpu *vcpu) {
    uint8_t bytes[15 + 2] = {0};
    size_t size = ph__soft_fetch(vcpu, vcpu->regs.rip, bytes, 15);
    size_t at = 0;

    while (at < size && is_prefix(bytes[at]))
        at++;
    if (bytes[at] == 0x0f)
        return is_update_2(bytes[at + 1], bytes[at + 2] >> 3 & 7);
    return is_update_1(bytes[at], bytes[at + 1] >> 3 & 7);
}

/* How far behind RIP the instruction is looked for. */
#define IO_DISTANCE 512u

/* How long the opcode of (io) at (bytes) is, with the port if that is in it. 0 if there is another one. */
static uint32_t io_size(const uint8_t *bytes, const struct ph__soft_io *io, uint16_t dx) {
    const bool wide = bytes[0] & 1;

    if (wide != (io->size > 1))
        return 0;
    switch (bytes[0] & ~1u) {
    case 0xe4: /* in, out: a port in the instruction */
    case 0xe6:
        return io->in == ((bytes[0] & ~1u) == 0xe4) && bytes[1] == io->port ? 2 : 0;
    case 0xec: /* in, ins: DX */
    case 0x6c:
        return io->in && dx == io->port ? 1 : 0;
    case 0xee:
    case 0x6e:
        return !io->in && dx == io->port ? 1 : 0;
    default:
        return 0;
    }
}

bool ph__soft_find_io(const struct ph__soft_vcpu *vcpu, uint64_t *gva, uint32_t *size) {
    uint8_t bytes[IO_DISTANCE + 1] = {0};
    size_t count = ph__soft_fetch(vcpu, vcpu->io.regs.rip, bytes, IO_DISTANCE);

    for (size_t at = 0; at < count; at++) {
        *gva = vcpu->io.regs.rip + at;
        *size = io_size(bytes + at, &vcpu->io, (uint16_t)vcpu->io.regs.rdx);
        if (*size)
            return true;
    }
    return false;
}
