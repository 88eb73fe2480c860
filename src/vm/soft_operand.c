/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a processor does with an address that is not canonical and Unicorn does not (soft_parts.h): it says
 * #SS instead of #GP when the address goes by the stack pointer or the frame pointer, and it refuses the
 * branch, not what the branch leads to. Both ask what an instruction's operand is, which is read here from
 * its bytes (Intel SDM, volume 2, chapter 2). Nothing is believed that does not fit the fault.
 */
#include <string.h>

#include "vm/soft_parts.h"

#define REX_R 4u
#define REX_X 2u
#define REX_B 1u
#define RSP 4u
#define RBP 5u
#define NO_BASE 16u

#define FRAMES_SIZE (32u * 8u) /* what enter copies at the most */
#define TOP_DISTANCE 16u       /* from the stack pointer, before or after what was pushed or popped */
#define INSTRUCTION_MAX 15u

/* An instruction up to its operand. */
struct decoded {
    uint8_t opcode;
    bool escaped;      /* behind 0F */
    uint8_t extension; /* ModRM's middle field */
    bool in_memory;    /* at (address), by (base) if not NO_BASE */
    unsigned base;     /* of the address, or the register itself */
    uint64_t address;
    bool relative; /* to RIP; what is immediate is not yet in (address) */
    bool override; /* a segment of its own */
    bool narrow;   /* 16 bits */
    size_t start;  /* where the opcode is, behind prefixes */
    size_t size;   /* without what is immediate */
};

/* Whether one address is the other, as far as they are known: of one that is not canonical Unicorn may have
 * lost the upper bits. */
static bool is_same(uint64_t one, uint64_t other) {
    return (one ^ other) % PH__USER_END == 0;
}

/* Whether (address) is at most (distance) behind (start), as far as is known. */
static bool is_behind(uint64_t address, uint64_t start, uint64_t distance) {
    return (address - start) % PH__USER_END <= distance;
}

static bool is_prefix(uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || (byte & 0xfe) == 0xf2 || (byte & 0xe7) == 0x26 ||
           (byte & 0xfe) == 0x64;
}

static uint64_t value_of(const struct ph__soft_vcpu *vcpu, unsigned number) {
    return *ph__soft_general((struct ph__regs *)&vcpu->regs, number);
}

static int32_t displacement_at(const uint8_t *bytes, size_t size) {
    int32_t wide;

    if (size == 1)
        return (int8_t)bytes[0];
    memcpy(&wide, bytes, sizeof wide);
    return wide;
}

/* ModRM and what belongs to it, at (bytes). (next) is RIP behind the displacement when (bytes) begin at 0. */
static void decode_operand(const struct ph__soft_vcpu *vcpu, const uint8_t *bytes, unsigned rex,
                           uint64_t next, struct decoded *decoded) {
    const unsigned mode = bytes[0] >> 6, rm = bytes[0] & 7;
    size_t at = 1, wide = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    uint64_t address = 0;

    decoded->extension = bytes[0] >> 3 & 7;
    decoded->base = rm | (rex & REX_B ? 8u : 0);
    decoded->in_memory = mode != 3;
    if (mode == 3) {
        decoded->size += 1;
        return;
    }
    if (rm == RSP) {
        const unsigned index = (bytes[1] >> 3 & 7) | (rex & REX_X ? 8u : 0);
        decoded->base = (bytes[1] & 7) | (rex & REX_B ? 8u : 0);
        if (index != RSP)
            address = value_of(vcpu, index) << (bytes[1] >> 6);
        at = 2;
    }
    if (mode == 0 && (decoded->base & 7) == RBP) {
        wide = 4;
        decoded->base = NO_BASE;
    }
    if (wide)
        address += (uint64_t)(int64_t)displacement_at(bytes + at, wide);
    if (decoded->base != NO_BASE)
        address += value_of(vcpu, decoded->base);
    else if (rm == RBP)
        address += next + at + wide;
    decoded->relative = decoded->base == NO_BASE && rm == RBP;
    decoded->address = address;
    decoded->size += at + wide;
}

static void decode(const struct ph__soft_vcpu *vcpu, uint64_t gva, struct decoded *decoded) {
    uint8_t bytes[INSTRUCTION_MAX + 8] = {0};
    unsigned rex = 0;
    size_t at = 0;

    *decoded = (struct decoded){0};
    ph__soft_fetch(vcpu, gva, bytes, INSTRUCTION_MAX);
    while (at < INSTRUCTION_MAX - 8 && is_prefix(bytes[at])) {
        decoded->override = decoded->override || (bytes[at] & 0xfe) == 0x64;
        decoded->narrow = decoded->narrow || bytes[at] == 0x66;
        at++;
    }
    if ((bytes[at] & 0xf0) == 0x40)
        rex = bytes[at++];
    decoded->escaped = bytes[at] == 0x0f;
    if (decoded->escaped)
        at++;
    decoded->start = at;
    decoded->opcode = bytes[at++];
    if (decoded->escaped && (decoded->opcode == 0x38 || decoded->opcode == 0x3a))
        at++;
    decoded->size = at;
    decode_operand(vcpu, bytes + at, rex, gva + at, decoded);
}

/* ---- the stack segment --------------------------------------------------------------------------------- */

/* Whether the opcode uses the stack besides its operand. */
static bool uses_stack(const struct decoded *decoded) {
    const uint8_t opcode = decoded->opcode;

    if (decoded->escaped)
        return (opcode & 0xf6) == 0xa0; /* push, pop of FS and GS */
    if (opcode == 0xff)
        return decoded->extension == 2 || decoded->extension == 6; /* call, push */
    return (opcode & 0xf0) == 0x50 || opcode == 0x68 || opcode == 0x6a || opcode == 0x8f || opcode == 0x9c ||
           opcode == 0x9d || opcode == 0xc2 || opcode == 0xc3 || opcode == 0xc8 || opcode == 0xc9 ||
           opcode == 0xca || opcode == 0xcb || opcode == 0xcf || opcode == 0xe8;
}

/* The register of these says how far from the operand they go. */
static bool is_bit_test(const struct decoded *decoded) {
    return decoded->escaped && (decoded->opcode == 0xa3 || decoded->opcode == 0xab ||
                                decoded->opcode == 0xb3 || decoded->opcode == 0xbb);
}

/* Whether (address) is where leave, or enter, reads by the frame pointer. */
static bool uses_frame(const struct ph__soft_vcpu *vcpu, const struct decoded *decoded, uint64_t address) {
    return !decoded->escaped &&
           ((decoded->opcode == 0xc9 && is_same(address, vcpu->regs.rbp)) ||
            (decoded->opcode == 0xc8 && is_behind(vcpu->regs.rbp, address, FRAMES_SIZE)));
}

bool ph__soft_is_stack(const struct ph__soft_vcpu *vcpu, uint64_t address) {
    const uint64_t top = vcpu->regs.rsp;
    struct decoded decoded;

    decode(vcpu, vcpu->regs.rip, &decoded);
    if (uses_stack(&decoded) &&
        (is_behind(address, top - TOP_DISTANCE, 2 * TOP_DISTANCE) || uses_frame(vcpu, &decoded, address)))
        return true;
    return decoded.in_memory && (decoded.base == RSP || decoded.base == RBP) && !decoded.override &&
           (is_same(address, decoded.address) || is_bit_test(&decoded));
}

#define OPERAND_MAX 16u

/* Of the instructions that read and write their operand (soft_instruction.c). */
static uint64_t immediate_size(const struct decoded *decoded) {
    if (decoded->escaped)
        return decoded->opcode == 0xba || decoded->opcode == 0xa4 || decoded->opcode == 0xac;
    if (decoded->opcode == 0x81)
        return decoded->narrow ? 2 : 4;
    return decoded->opcode == 0x80 || decoded->opcode == 0x83 || (decoded->opcode & 0xfe) == 0xc0;
}

uint64_t ph__soft_operand_start(const struct ph__soft_vcpu *vcpu, uint64_t address) {
    struct decoded decoded;

    if (address % PH__PAGE_SIZE != 0)
        return address;
    decode(vcpu, vcpu->regs.rip, &decoded);
    const uint64_t start = decoded.address + (decoded.relative ? immediate_size(&decoded) : 0);
    return decoded.in_memory && address - start < OPERAND_MAX ? start : address;
}

/* ---- branches ------------------------------------------------------------------------------------------ */

/* Reads as ring 3 of the guest could. */
static bool read_word(const struct ph__soft_vcpu *vcpu, uint64_t gva, uint64_t *word) {
    const struct ph__memory *memory = vcpu->memory;
    uint8_t *bytes = (uint8_t *)word;
    struct ph__range range;

    for (size_t i = 0; i < sizeof *word; i++) {
        if (!ph__paging_page(memory, ph__paging_root(memory), (ph_gva){gva + i}, &range))
            return false;
        bytes[i] = memory->base[range.offset];
    }
    return true;
}

/* How many bytes besides the return address the `ret` pops whose opcode is at (gva). False if it does not end
 * at (end). */
static bool popped_by_ret(const struct ph__soft_vcpu *vcpu, const struct decoded *decoded, uint64_t gva,
                          uint64_t end, uint64_t *popped) {
    uint8_t count[2] = {0};

    if (decoded->opcode == 0xc2 && ph__soft_fetch(vcpu, gva + 1, count, sizeof count) != sizeof count)
        return false;
    *popped = count[0] | (uint64_t)count[1] << 8;
    return gva + (decoded->opcode == 0xc2 ? 1 + sizeof count : 1) == end;
}

static bool undo_return(struct ph__soft_vcpu *vcpu, const struct decoded *decoded, uint64_t gva, uint64_t end,
                        uint64_t target) {
    uint64_t popped, word;

    if (!popped_by_ret(vcpu, decoded, gva, end, &popped))
        return false;
    const uint64_t top = vcpu->regs.rsp - popped - sizeof word;
    if (!read_word(vcpu, top, &word) || !is_same(word, target))
        return false;
    vcpu->regs.rsp = top;
    return true;
}

/* Of jmp and call with an operand. */
static bool undo_jump(struct ph__soft_vcpu *vcpu, struct decoded *decoded, uint64_t target) {
    const uint64_t pushed = decoded->extension == 2 ? sizeof target : 0;
    uint64_t word;

    if (decoded->in_memory && decoded->base == RSP)
        decoded->address += pushed;
    if (!decoded->in_memory)
        word = value_of(vcpu, decoded->base) + (decoded->base == RSP ? pushed : 0);
    else if (!read_word(vcpu, decoded->address, &word))
        return false;
    if (!is_same(word, target))
        return false;
    vcpu->regs.rsp += pushed;
    return true;
}

/* Whether the instruction at (gva), which ends at (end), went to (target); then the registers are as before
 * it. */
static bool undo(struct ph__soft_vcpu *vcpu, uint64_t gva, uint64_t end, uint64_t target) {
    struct decoded decoded;

    decode(vcpu, gva, &decoded);
    if (decoded.escaped)
        return false;
    if (decoded.opcode == 0xc2 || decoded.opcode == 0xc3)
        return undo_return(vcpu, &decoded, gva + decoded.start, end, target);
    return decoded.opcode == 0xff && (decoded.extension == 2 || decoded.extension == 4) &&
           gva + decoded.size == end && undo_jump(vcpu, &decoded, target);
}

/* Of a branch: anything but a REX that chooses registers. */
static bool is_idle_prefix(const struct ph__soft_vcpu *vcpu, uint64_t gva) {
    uint8_t byte = 0;

    ph__soft_fetch(vcpu, gva, &byte, 1);
    return is_prefix(byte) || ((byte & 0xf0) == 0x40 && !(byte & (REX_B | REX_X)));
}

void ph__soft_branch_undo(struct ph__soft_vcpu *vcpu, uint64_t target) {
    const uint64_t start = vcpu->block, end = start + vcpu->block_size;

    /* What the byte in front changes nothing of may not have it as a prefix. */
    for (uint64_t size = INSTRUCTION_MAX; size > 0; size--)
        if (end - start >= size && !is_idle_prefix(vcpu, end - size) && undo(vcpu, end - size, end, target)) {
            vcpu->regs.rip = end - size;
            vcpu->vcpu.regs_changed = true;
            return;
        }
}
