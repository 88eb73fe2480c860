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

/* The register with (number) in (regs). */
static uint64_t *general(struct ph__regs *regs, unsigned number) {
    uint64_t *const registers[16] = {
        &regs->rax, &regs->rcx, &regs->rdx, &regs->rbx, &regs->rsp, &regs->rbp, &regs->rsi, &regs->rdi,
        &regs->r8,  &regs->r9,  &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14, &regs->r15,
    };
    return registers[number];
}

bool ph__soft_emulate(struct ph__soft_vcpu *vcpu) {
    uint8_t bytes[5] = {0};
    size_t size = ph__soft_fetch(vcpu, vcpu->regs.rip, bytes, sizeof bytes);
    size_t at = 1;
    unsigned rex = 0;

    if (bytes[0] != 0xf3)
        return false;
    if ((bytes[at] & 0xf0) == 0x40)
        rex = bytes[at++];
    /* The register form of /0 to /3. */
    if (at + 3 > size || bytes[at] != 0x0f || bytes[at + 1] != 0xae || (bytes[at + 2] & 0xe0) != 0xc0)
        return false;
    const unsigned operation = bytes[at + 2] >> 3 & 3;
    const int base = operation % 2 ? UC_X86_REG_GS_BASE : UC_X86_REG_FS_BASE;
    uint64_t *value = general(&vcpu->regs, (bytes[at + 2] & 7u) | (rex & REX_B ? 8u : 0));
    uint64_t wide = 0;

    if (operation < 2) {
        uc_reg_read(vcpu->engine, base, &wide);
        *value = rex & REX_W ? wide : (uint32_t)wide;
    } else {
        wide = rex & REX_W ? *value : (uint32_t)*value;
        /* A base that is no address is a general-protection fault: the instruction is not done then. */
        if (wide + PH__USER_END >= 2 * PH__USER_END)
            return false;
        uc_reg_write(vcpu->engine, base, &wide);
    }
    vcpu->regs.rip += at + 3;
    vcpu->vcpu.regs_changed = true;
    return true;
}

bool ph__soft_is_privileged(const struct ph__soft_vcpu *vcpu) {
    uint8_t bytes[3] = {0};
    size_t size = ph__soft_fetch(vcpu, vcpu->regs.rip, bytes, sizeof bytes);
    size_t at = (bytes[0] & 0xf0) == 0x40 ? 1 : 0;

    /* sysret, sysexit */
    return size >= at + 2 && bytes[at] == 0x0f && (bytes[at + 1] == 0x07 || bytes[at + 1] == 0x35);
}

bool ph__soft_is_int1(const struct ph__soft_vcpu *vcpu) {
    uint8_t byte = 0;

    return ph__soft_fetch(vcpu, vcpu->regs.rip, &byte, 1) == 1 && byte == 0xf1;
}

/* How far behind (near) the instruction is looked for. */
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
    size_t count = ph__soft_fetch(vcpu, vcpu->io.near, bytes, IO_DISTANCE);

    for (size_t at = 0; at < count; at++) {
        *gva = vcpu->io.near + at;
        *size = io_size(bytes + at, &vcpu->io, (uint16_t)vcpu->regs.rdx);
        if (*size)
            return true;
    }
    return false;
}
