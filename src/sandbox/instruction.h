/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Telling what kind of instruction a general-protection fault was about. A pure function over the bytes at
 * RIP, which are hostile; a wrong answer only gives a report another name.
 */
#ifndef PH_SANDBOX_INSTRUCTION_H
#define PH_SANDBOX_INSTRUCTION_H

#include <stddef.h>
#include <stdint.h>

#define PH__INSTRUCTION_MAX 15u /* bytes of the longest x86 instruction */

enum ph__instruction_kind {
    PH__INSTRUCTION_OTHER,
    PH__INSTRUCTION_IO,         /* in, out, ins, outs */
    PH__INSTRUCTION_PRIVILEGED, /* needs ring 0 */
};

enum ph__instruction_kind ph__instruction_classify(const uint8_t *bytes, size_t size);

#endif
