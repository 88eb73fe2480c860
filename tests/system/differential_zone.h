/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The memory in which test_differential_faults.c runs its code, shared with the guest that does it
 * (guests/differential_code.c).
 */
#ifndef PH_TESTS_DIFFERENTIAL_ZONE_H
#define PH_TESTS_DIFFERENTIAL_ZONE_H

#include <stdint.h>

/* General registers in the order of struct ph__regs. (vectors) is what FXRSTOR takes. */
struct differential_registers {
    uint64_t general[16];
    uint64_t rip, rflags;
    uint8_t vectors[512];
};

/* What a handler was given. */
struct differential_handled {
    uint64_t signal;
    uint64_t info[4];
    uint64_t context[23]; /* gregset_t */
    uint8_t vectors[512];
};

/* Pages, each with what it may be used for. (after) is written when the code has come to its end. */
struct differential_zone {
    uint8_t write_1[4096];
    uint8_t none_1[4096];
    uint8_t write_2[4096];
    uint8_t read_only[4096];
    uint8_t write_3[2 * 4096];
    uint8_t none_2[4096];
    uint8_t code[2 * 4096]; /* can be read and executed */
    uint8_t none_3[4096];
    uint8_t write_4[4096];
    struct differential_registers after;
    struct differential_handled handled;
    uint8_t rest[4096 - sizeof(struct differential_registers) - sizeof(struct differential_handled)];
};

#define DIFFERENTIAL_AFTER "45056" /* where (after) is */
_Static_assert(__builtin_offsetof(struct differential_zone, after) == 45056, "as the guest's code has it");
_Static_assert(sizeof(struct differential_zone) % 4096 == 0, "whole pages");

#endif
