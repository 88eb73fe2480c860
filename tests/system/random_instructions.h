/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The instructions that the generator of code (random_code.c) chooses from: tables, with what has to be known
 * of each to make up operands for it.
 */
#ifndef PH_TESTS_RANDOM_INSTRUCTIONS_H
#define PH_TESTS_RANDOM_INSTRUCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* What a row of a table says of its instruction. */
enum {
    REGISTER = 1,    /* the operand of ModRM may be a register */
    MEMORY = 2,      /* ... may be in memory */
    BYTE = 4,        /* operands of 8 bits */
    LOCK = 8,        /* may have LOCK in memory */
    FLAGS = 16,      /* leaves flags undefined */
    NARROW = 32,     /* not with 16 bits: a count beyond them would leave the result undefined */
    NO_MODRM = 64,   /* has none */
    ENDS = 128,      /* writes no general register by the ModRM's reg field, which is free */
    FIXED = 256,     /* no prefix of size */
    IMMEDIATE = 512, /* 1 byte of it; with WIDE 4, or 2 with 16 bits */
    WIDE = 1024,
    WRITES_RM = 2048, /* writes the operand of ModRM */
    EITHER = REGISTER | MEMORY,
};

struct random_row {
    uint8_t prefix;    /* mandatory, or 0 */
    uint8_t opcode[3]; /* behind it and REX; (length) bytes */
    uint8_t length;
    int8_t extension; /* in place of a register, or -1 */
    uint16_t flags;
};

/* Bytes as they are: what faults, or is refused, or changes where the code goes. */
struct random_piece {
    uint8_t size;
    uint8_t bytes[18];
};

extern const struct random_row random_integer_rows[], random_vector_rows[];
extern const size_t random_integer_row_count, random_vector_row_count;
extern const struct random_piece random_pieces[];
extern const size_t random_piece_count;

#endif
