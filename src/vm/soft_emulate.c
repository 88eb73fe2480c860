/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The four instructions that a guest is promised and Unicorn 2.0.1 does not know: rdfsbase, rdgsbase,
 * wrfsbase, wrgsbase, all F3 [REX] 0F AE with a register (Intel SDM, volume 2). The monitor uses them, and a
 * program may since the auxiliary vector says so.
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
