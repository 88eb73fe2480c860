/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The generator of code (random_code.h), out of the tables of random_instructions.h. R12 to R15 are pointers
 * that no instruction here writes, RSP and RBP mostly are; the others hold anything. What leaves flags
 * undefined is followed by a comparison, which defines all of them.
 */
#include "system/random_code.h"

#include <stddef.h>
#include <string.h>

#include "system/differential.h"
#include "system/random_instructions.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- bytes --------------------------------------------------------------------------------------------- */

static void put(struct random_code *code, const void *bytes, size_t size) {
    if (code->size + size > sizeof code->bytes)
        return;
    memcpy(code->bytes + code->size, bytes, size);
    code->size += size;
}

static void put_byte(struct random_code *code, uint8_t byte) {
    put(code, &byte, 1);
}

static uint64_t below(struct random_code *code, uint64_t count) {
    return random_below(code->random, count);
}

static bool once_in(struct random_code *code, uint64_t times) {
    return random_once_in(code->random, times);
}

static uint64_t any_address(struct random_code *code) {
    return code->addresses[below(code, code->address_count)];
}

/* One of the lower half, where KVM on PVM has no ways of its own. */
static uint64_t any_user_address(struct random_code *code) {
    const uint64_t address = any_address(code);

    return address < 1ull << 47 ? address : 0x123400000000;
}

/* A number of 64 bits of a kind that makes a difference. */
static uint64_t any_word(struct random_code *code) {
    static const uint64_t words[] = {
        0,          1,
        2,          3,
        7,          8,
        31,         32,
        63,         64,
        127,        128,
        255,        0x7fff,
        0x8000,     0xffff,
        0x7fffffff, 0x80000000,
        0xffffffff, 0x100000000,
        1ull << 63, (1ull << 63) - 1,
        ~0ull,
    };

    switch (below(code, 4)) {
    case 0:
        return random_next(code->random);
    case 1:
        return any_address(code);
    default:
        return words[below(code, COUNT(words))];
    }
}

/* ---- operands ------------------------------------------------------------------------------------------ */

/* An operand in memory: what comes behind the opcode but for the field of the register, and bits of REX. */
struct operand {
    uint8_t bytes[6];
    uint8_t size;
    uint8_t rex;
    bool relative; /* to RIP: its last four bytes are an address in the zone yet, less RIP later */
};

static struct operand based(unsigned base, int32_t displacement) {
    struct operand operand = {.bytes = {(uint8_t)(0x80 | (base & 7))}, .size = 1, .rex = base >> 3};

    if ((base & 7) == 4)
        operand.bytes[operand.size++] = 0x24;
    memcpy(operand.bytes + operand.size, &displacement, sizeof displacement);
    operand.size += sizeof displacement;
    return operand;
}

/* Somewhere in the zone. */
static uint32_t zone_place(struct random_code *code) {
    const uint32_t page = (uint32_t)below(code, 11) * 4096;

    return (uint32_t)code->zone + page +
           (uint32_t)(once_in(code, 2) ? 4096 - 1 - below(code, 20) : below(code, 4096));
}

/* Mostly memory that can be used. May put an instruction that loads a register. */
static struct operand any_memory(struct random_code *code, bool aligned) {
    const uint64_t mask = aligned ? 15 : 0;
    struct operand operand;

    switch (below(code, aligned ? 12 : 10)) {
    case 0: { /* an address of another kind, by a register */
        const unsigned base = (unsigned)below(code, 12);
        const uint64_t address = (aligned ? any_user_address(code) : any_address(code)) & ~mask;
        if (base == 4 && !once_in(code, 3))
            return based(14, 0);
        put_byte(code, base < 8 ? 0x48 : 0x49);
        put_byte(code, (uint8_t)(0xb8 + (base & 7)));
        put(code, &address, sizeof address);
        operand = based(base, 0);
        return operand;
    }
    case 1: { /* relative to RIP */
        const uint32_t place = zone_place(code) & ~(uint32_t)mask;
        operand = (struct operand){.bytes = {0x05}, .size = 5, .relative = true};
        memcpy(operand.bytes + 1, &place, sizeof place);
        return operand;
    }
    case 2: { /* as it is */
        const uint32_t place = zone_place(code) & ~(uint32_t)mask;
        operand = (struct operand){.bytes = {0x04, 0x25}, .size = 6};
        memcpy(operand.bytes + 2, &place, sizeof place);
        return operand;
    }
    case 3: /* of any register */
        if (aligned)
            return based(14, 16);
        return based((unsigned)below(code, 16), (int32_t)below(code, 64) - 32);
    case 4: /* with a register that counts, and has anything in it */
        if (aligned)
            return based(15, -16);
        operand =
            (struct operand){.bytes = {0x44, (uint8_t)(below(code, 4) << 6 | below(code, 4) << 3 | 6), 8},
                             .size = 3,
                             .rex = 1};
        return operand;
    default:
        return based(12 + (unsigned)below(code, 4),
                     16 * ((int32_t)below(code, 9) - 4) +
                         (!aligned && once_in(code, 3) ? (int32_t)below(code, 16) : 0));
    }
}

/* ---- instructions -------------------------------------------------------------------------------------- */

/* A register that may be written: none of the pointers, and the stack's rarely. */
static unsigned any_register(struct random_code *code) {
    const unsigned number = (unsigned)below(code, 12);

    return (number == 4 || number == 5) && !once_in(code, 8) ? 0 : number;
}

static void put_row(struct random_code *code, const struct random_row *row) {
    const bool in_memory = (row->flags & MEMORY) && (!(row->flags & REGISTER) || !once_in(code, 3));
    struct operand operand = in_memory ? any_memory(code, row->flags & FIXED) : (struct operand){.size = 1};
    unsigned width = row->flags & FIXED ? 4 : 2u << below(code, 3); /* 2, 4, 8 */
    unsigned reg = row->extension >= 0 ? (unsigned)row->extension : any_register(code);

    if ((row->flags & (NO_MODRM | FIXED)) == (NO_MODRM | FIXED))
        reg = 0;
    if ((row->flags & NARROW) && width == 2)
        width = 4;
    if (row->flags & BYTE)
        width = 1;
    if (!in_memory) {
        const unsigned rm = any_register(code);
        operand.bytes[0] = (uint8_t)(0xc0 | (rm & 7));
        operand.rex = row->flags & NO_MODRM ? 0 : rm >> 3;
    }
    if (in_memory && (row->flags & LOCK) && once_in(code, 4))
        put_byte(code, 0xf0);
    if (width == 2)
        put_byte(code, 0x66);
    if (row->prefix)
        put_byte(code, row->prefix);
    const uint8_t rex = (uint8_t)(0x40 | (width == 8 ? 8 : 0) | (reg >> 3) << 2 | operand.rex);
    if (rex != 0x40 || width == 1)
        put_byte(code, rex);
    if (row->flags & NO_MODRM) {
        put(code, row->opcode, row->length - 1u);
        put_byte(code, (uint8_t)(row->opcode[row->length - 1] | (row->extension < 0 ? reg & 7 : 0)));
        return;
    }
    put(code, row->opcode, row->length);
    operand.bytes[0] |= (uint8_t)((reg & 7) << 3);
    const size_t immediate = !(row->flags & IMMEDIATE) ? 0 : !(row->flags & WIDE) ? 1 : width == 2 ? 2 : 4;
    if (operand.relative) {
        uint32_t place;
        memcpy(&place, operand.bytes + 1, sizeof place);
        place -= (uint32_t)(code->start + code->size + operand.size + immediate);
        memcpy(operand.bytes + 1, &place, sizeof place);
    }
    put(code, operand.bytes, operand.size);
    const uint64_t word = any_word(code);
    put(code, &word, immediate);
    if (row->flags & FLAGS) {
        static const uint8_t compare[] = {0x48, 0x39, 0xd8}; /* cmp %rbx, %rax */
        put(code, compare, sizeof compare);
    }
}

/* A jump forward over a few bytes, into whatever comes there: an instruction, as these jumps are only ever
 * over whole ones. */
static void put_jump(struct random_code *code) {
    const uint8_t condition = (uint8_t)below(code, 16);

    put_byte(code, (uint8_t)(0x70 | condition));
    size_t place = code->size;
    put_byte(code, 0);
    for (uint64_t count = 1 + below(code, 2); count > 0; count--)
        put_row(code, &random_integer_rows[below(code, random_integer_row_count)]);
    if (code->size - place - 1 < 0x80)
        code->bytes[place] = (uint8_t)(code->size - place - 1);
}

/* Has the string instructions begin at a sensible place. */
static void put_string_registers(struct random_code *code) {
    static const uint8_t from[] = {0x4c, 0x89, 0xe6, 0x4c, 0x89, 0xef}; /* mov %r12, %rsi; mov %r13, %rdi */
    const uint32_t count = (uint32_t)below(code, once_in(code, 4) ? 1u << 14 : 64);

    put(code, from, sizeof from);
    put_byte(code, 0xb9); /* mov, %ecx */
    put(code, &count, sizeof count);
}

/* A branch to anywhere, mostly where there is no code. */
static void put_branch(struct random_code *code) {
    static const struct random_piece branches[] = {
        {2, {0xff, 0xe0}},                         /* jmp *%rax */
        {2, {0xff, 0xd0}},                         /* call *%rax */
        {6, {0x49, 0x89, 0x06, 0x41, 0xff, 0x26}}, /* mov %rax, (%r14); jmp *(%r14) */
        {6, {0x49, 0x89, 0x06, 0x41, 0xff, 0x16}}, /* ... call *(%r14) */
        {2, {0x50, 0xc3}},                         /* push %rax; ret */
        {4, {0x50, 0xc2, 0x10, 0x00}},             /* push %rax; ret $16 */
    };
    static const uint8_t load[] = {0x48, 0xb8}; /* mov, %rax */
    const struct random_piece *branch = &branches[below(code, COUNT(branches))];
    /* An instruction that goes on behind the last page of code. */
    const uint64_t end = code->zone + offsetof(struct differential_zone, none_3) - 1;
    const uint64_t target = once_in(code, 4) ? end : any_word(code);

    put(code, load, sizeof load);
    put(code, &target, sizeof target);
    put(code, branch->bytes, branch->size);
}

static void put_instruction(struct random_code *code) {
    if (once_in(code, 64)) {
        put_branch(code);
        return;
    }
    switch (below(code, 8)) {
    case 0: {
        const struct random_piece *piece = &random_pieces[below(code, random_piece_count)];
        if ((piece->bytes[piece->size - 1] & 0xf0) == 0xa0)
            put_string_registers(code);
        put(code, piece->bytes, piece->size);
        break;
    }
    case 1:
        put_jump(code);
        break;
    case 2:
    case 3:
        put_row(code, &random_vector_rows[below(code, random_vector_row_count)]);
        break;
    default:
        put_row(code, &random_integer_rows[below(code, random_integer_row_count)]);
        break;
    }
}

void random_code_make(struct random_code *code, unsigned count, uint64_t end) {
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */

    code->size = 0;
    while (count-- > 0)
        put_instruction(code);
    put(code, jump, sizeof jump);
    put(code, &end, sizeof end);
}

void random_code_registers(struct random_code *code, struct differential_registers *registers) {
    static const size_t pointers[] = {
        offsetof(struct differential_zone, write_1) + 2048,
        offsetof(struct differential_zone, write_2) + 4096 - 64,
        offsetof(struct differential_zone, write_3) + 4096 - 64,
        offsetof(struct differential_zone, write_4) + 64,
    };
    const uint16_t control = 0x037f;
    const uint32_t vector_control = 0x1f80;

    memset(registers, 0, sizeof *registers);
    for (size_t i = 0; i < 12; i++)
        registers->general[i] = any_word(code);
    for (size_t i = 0; i < 4; i++)
        registers->general[12 + i] = code->zone + pointers[i];
    registers->general[6] =
        once_in(code, 16) ? any_user_address(code) : code->zone + pointers[2] - 1024; /* RSP */
    if (!once_in(code, 8))
        registers->general[7] = code->zone + pointers[2] - 512; /* RBP */
    registers->rflags = 2 | (random_next(code->random) & 0x8d5) | (once_in(code, 16) ? 0x400 : 0);
    memcpy(registers->vectors, &control, sizeof control);
    memcpy(registers->vectors + 24, &vector_control, sizeof vector_control);
    for (size_t i = 160; i < 416; i += 8) {
        const uint64_t word = any_word(code);
        memcpy(registers->vectors + i, &word, sizeof word);
    }
}
