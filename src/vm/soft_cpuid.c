/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What CPUID shows of the emulated processor: exactly what Unicorn 2.0.1 runs, so that a C library takes the
 * variants of its functions that work (soft_parts.h). Leaves are those of the Intel SDM, volume 2, CPUID. The
 * name is that of a Nehalem without what Unicorn lacks (POPCNT, PCLMULQDQ); no AVX, no XSAVE.
 */
#include "vm/soft_parts.h"

#define SSE3 (1u << 0)
#define SSSE3 (1u << 9)
#define CMPXCHG16B (1u << 13)
#define SSE4_1 (1u << 19)
#define SSE4_2 (1u << 20)
#define AES (1u << 25)
#define HYPERVISOR (1u << 31)

/* FPU TSC MSR PAE CX8 CMOV CLFSH MMX FXSR SSE SSE2, and those without which no 64-bit processor is: DE PSE
 * MCE PGE MCA PAT PSE36. */
#define BASIC_FEATURES 0x078bf1fdu

#define ANY_INDEX UINT32_MAX

static const struct {
    uint32_t leaf, index;
    uint32_t words[4];
} leaves[] = {
    {0, ANY_INDEX, {7, 0x756e6547, 0x6c65746e, 0x49656e69}}, /* "GenuineIntel" */
    {1,
     ANY_INDEX,
     {0x106a5, 0x10800, SSE3 | SSSE3 | CMPXCHG16B | SSE4_1 | SSE4_2 | AES | HYPERVISOR, BASIC_FEATURES}},
    {2, ANY_INDEX, {0x55035a01, 0x00f0b2e4, 0, 0x09ca212c}},
    /* Caches: 32 KiB for data, 256 KiB, 8 MiB. */
    {4, 0, {0x121, 0x01c0003f, 63, 0}},
    {4, 1, {0x143, 0x01c0003f, 511, 0}},
    {4, 2, {0x163, 0x03c0003f, 8191, 0}},
    {7, 0, {0, 1, 0, 0}}, /* FSGSBASE: see soft_instruction.c */
    {0x80000000, ANY_INDEX, {0x80000008, 0, 0, 0}},
    {0x80000001, ANY_INDEX, {0, 0, 1, 0x28100800}},                   /* LAHF; SYSCALL NX RDTSCP LM */
    {0x80000002, ANY_INDEX, {0x686e6970, 0x20656c6f, 0x74666f73, 0}}, /* "pinhole soft" */
    {0x80000007, ANY_INDEX, {0, 0, 0, 0x100}}, /* the counter counts evenly, as the host's, which it is */
    {0x80000008, ANY_INDEX, {0x3028, 0, 0, 0}},
};

void ph__soft_cpuid(uint32_t leaf, uint32_t index, uint32_t words[4]) {
    words[0] = words[1] = words[2] = words[3] = 0;
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++)
        if (leaves[i].leaf == leaf && (leaves[i].index == ANY_INDEX || leaves[i].index == index))
            for (size_t word = 0; word < 4; word++)
                words[word] = leaves[i].words[word];
}
