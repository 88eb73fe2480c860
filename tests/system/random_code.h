/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Makes up code for test_differential_faults.c: instructions whose outcome a processor defines, flags
 * included, with operands in memory that mostly is there, and now and then is not.
 */
#ifndef PH_TESTS_RANDOM_CODE_H
#define PH_TESTS_RANDOM_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "system/differential_zone.h"

#define RANDOM_CODE_MAX 1024u

struct random_code {
    uint8_t bytes[RANDOM_CODE_MAX];
    size_t size;
    uint64_t *random;
    uint64_t zone;             /* where struct differential_zone is */
    uint64_t start;            /* where the code will be */
    const uint64_t *addresses; /* that somebody might not have thought of */
    size_t address_count;
};

/* Fills (code)'s bytes with (count) instructions and a jump to (end). */
void random_code_make(struct random_code *code, unsigned count, uint64_t end);

/* Registers for it. */
void random_code_registers(struct random_code *code, struct differential_registers *registers);

#endif
