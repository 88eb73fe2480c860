/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The features of processors: where they are shown, what they are called, and whether one processor has those
 * of another (features.h). Bits and names are from the Intel SDM, volume 2, CPUID, and the AMD APM, volume 3,
 * appendix E.
 */
#include "vm/features.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { EAX, EBX, ECX, EDX };

#define EXTENDED 0x80000000u
#define XSAVE_LEAF 0xdu
#define AVX10_VERSION 0xffu /* the bits of it in its word */
#define PKRU_COMPONENT 9u

/* Where each word is, and its bits that do not count. */
static const struct {
    uint32_t leaf, index;
    int part;
    uint32_t ignored;
} places[PH__FEATURE_WORDS] = {
    /* DTES64 MONITOR DS-CPL VMX SMX EIST TM2, CNXT-ID SDBG xTPR PDCM PCID DCA x2APIC TSC-deadline, OSXSAVE,
     * which XCR0 says too, and whether there is a hypervisor */
    [PH__FEATURES_1_ECX] = {1, 0, ECX, 0x8926cdfc},
    /* VME DE PSE, MSR PAE MCE, APIC, SEP MTRR PGE MCA, PAT PSE-36 PSN, DS ACPI, SS HTT TM, PBE */
    [PH__FEATURES_1_EDX] = {1, 0, EDX, 0xb8677aee},
    /* TSC_ADJUST SGX, FDP_EXCPTN_ONLY SMEP, ERMS INVPCID, RDT-M FCS_FDS MPX RDT-A, SMAP, PT */
    [PH__FEATURES_7_EBX] = {7, 0, EBX, 0x0210f6c6},
    /* UMIP PKU (OSPKE counts), CET_SS, TME, LA57 MAWAU KL BUS_LOCK CLDEMOTE, ENQCMD SGX_LC PKS */
    [PH__FEATURES_7_ECX] = {7, 0, ECX, 0xe3bf208c},
    /* SGX-KEYS, FSRM UINTR, SRBDS MD_CLEAR RTM's aborts, hybrid, PCONFIG LBR CET_IBT, AMX, whose state guests
     * do not have, and what is about speculation */
    [PH__FEATURES_7_EDX] = {7, 0, EDX, 0xff5cae32},
    /* LASS, PerfmonExt, short and empty strings, FRED LKGS WRMSRNS NMI, AMX HRESET, LAM MSRLIST INVD */
    [PH__FEATURES_7_1_EAX] = {7, 1, EAX, 0x4c7e1d40},
    /* AMX, UTMR, UIRET CET_SSS */
    [PH__FEATURES_7_1_EDX] = {7, 1, EDX, 0x00062100},
    /* XSAVES XFD */
    [PH__FEATURES_D_1_EAX] = {XSAVE_LEAF, 1, EAX, 0x00000018},
    [PH__FEATURES_24_EBX] = {0x24, 0, EBX, 0},
    /* CmpLegacy SVM ExtApic AltMovCr8, OSVW IBS, SKINIT WDT, LWP TCE, NodeId, topology, counters, breakpoints
     */
    [PH__FEATURES_80000001_ECX] = {EXTENDED + 1, 0, ECX, 0x5dcab61e},
    /* what leaf 1 has, SYSCALL MP NX, MMXEXT, which SSE brings, FFXSR, pages of 1 GiB, LM */
    [PH__FEATURES_80000001_EDX] = {EXTENDED + 1, 0, EDX, 0x27dbffff},
    /* all but CLZERO RDPRU MCOMMIT */
    [PH__FEATURES_80000008_EBX] = {EXTENDED + 8, 0, EBX, 0xfffffeee},
};

static const uint32_t components[PH__FEATURE_COMPONENTS] = {2, 5, 6, 7, PKRU_COMPONENT};

static const struct {
    enum ph__feature_word word;
    unsigned bit;
    const char *name;
} names[] = {
    {PH__FEATURES_1_ECX, 0, "SSE3"},
    {PH__FEATURES_1_ECX, 1, "PCLMULQDQ"},
    {PH__FEATURES_1_ECX, 9, "SSSE3"},
    {PH__FEATURES_1_ECX, 12, "FMA"},
    {PH__FEATURES_1_ECX, 13, "CMPXCHG16B"},
    {PH__FEATURES_1_ECX, 19, "SSE4.1"},
    {PH__FEATURES_1_ECX, 20, "SSE4.2"},
    {PH__FEATURES_1_ECX, 22, "MOVBE"},
    {PH__FEATURES_1_ECX, 23, "POPCNT"},
    {PH__FEATURES_1_ECX, 25, "AES"},
    {PH__FEATURES_1_ECX, 26, "XSAVE"},
    {PH__FEATURES_1_ECX, 28, "AVX"},
    {PH__FEATURES_1_ECX, 29, "F16C"},
    {PH__FEATURES_1_ECX, 30, "RDRAND"},
    {PH__FEATURES_1_EDX, 0, "FPU"},
    {PH__FEATURES_1_EDX, 4, "TSC"},
    {PH__FEATURES_1_EDX, 8, "CMPXCHG8B"},
    {PH__FEATURES_1_EDX, 15, "CMOV"},
    {PH__FEATURES_1_EDX, 19, "CLFLUSH"},
    {PH__FEATURES_1_EDX, 23, "MMX"},
    {PH__FEATURES_1_EDX, 24, "FXSR"},
    {PH__FEATURES_1_EDX, 25, "SSE"},
    {PH__FEATURES_1_EDX, 26, "SSE2"},
    {PH__FEATURES_7_EBX, 0, "FSGSBASE"},
    {PH__FEATURES_7_EBX, 3, "BMI1"},
    {PH__FEATURES_7_EBX, 4, "HLE"},
    {PH__FEATURES_7_EBX, 5, "AVX2"},
    {PH__FEATURES_7_EBX, 8, "BMI2"},
    {PH__FEATURES_7_EBX, 11, "RTM"},
    {PH__FEATURES_7_EBX, 16, "AVX512F"},
    {PH__FEATURES_7_EBX, 17, "AVX512DQ"},
    {PH__FEATURES_7_EBX, 18, "RDSEED"},
    {PH__FEATURES_7_EBX, 19, "ADX"},
    {PH__FEATURES_7_EBX, 21, "AVX512_IFMA"},
    {PH__FEATURES_7_EBX, 23, "CLFLUSHOPT"},
    {PH__FEATURES_7_EBX, 24, "CLWB"},
    {PH__FEATURES_7_EBX, 26, "AVX512PF"},
    {PH__FEATURES_7_EBX, 27, "AVX512ER"},
    {PH__FEATURES_7_EBX, 28, "AVX512CD"},
    {PH__FEATURES_7_EBX, 29, "SHA"},
    {PH__FEATURES_7_EBX, 30, "AVX512BW"},
    {PH__FEATURES_7_EBX, 31, "AVX512VL"},
    {PH__FEATURES_7_ECX, 0, "PREFETCHWT1"},
    {PH__FEATURES_7_ECX, 1, "AVX512_VBMI"},
    {PH__FEATURES_7_ECX, 4, "PKU"},
    {PH__FEATURES_7_ECX, 5, "WAITPKG"},
    {PH__FEATURES_7_ECX, 6, "AVX512_VBMI2"},
    {PH__FEATURES_7_ECX, 8, "GFNI"},
    {PH__FEATURES_7_ECX, 9, "VAES"},
    {PH__FEATURES_7_ECX, 10, "VPCLMULQDQ"},
    {PH__FEATURES_7_ECX, 11, "AVX512_VNNI"},
    {PH__FEATURES_7_ECX, 12, "AVX512_BITALG"},
    {PH__FEATURES_7_ECX, 14, "AVX512_VPOPCNTDQ"},
    {PH__FEATURES_7_ECX, 22, "RDPID"},
    {PH__FEATURES_7_ECX, 27, "MOVDIRI"},
    {PH__FEATURES_7_ECX, 28, "MOVDIR64B"},
    {PH__FEATURES_7_EDX, 2, "AVX512_4VNNIW"},
    {PH__FEATURES_7_EDX, 3, "AVX512_4FMAPS"},
    {PH__FEATURES_7_EDX, 8, "AVX512_VP2INTERSECT"},
    {PH__FEATURES_7_EDX, 14, "SERIALIZE"},
    {PH__FEATURES_7_EDX, 16, "TSXLDTRK"},
    {PH__FEATURES_7_EDX, 23, "AVX512_FP16"},
    {PH__FEATURES_7_1_EAX, 0, "SHA512"},
    {PH__FEATURES_7_1_EAX, 1, "SM3"},
    {PH__FEATURES_7_1_EAX, 2, "SM4"},
    {PH__FEATURES_7_1_EAX, 3, "RAO-INT"},
    {PH__FEATURES_7_1_EAX, 4, "AVX-VNNI"},
    {PH__FEATURES_7_1_EAX, 5, "AVX512_BF16"},
    {PH__FEATURES_7_1_EAX, 7, "CMPCCXADD"},
    {PH__FEATURES_7_1_EAX, 23, "AVX-IFMA"},
    {PH__FEATURES_7_1_EAX, 31, "MOVRS"},
    {PH__FEATURES_7_1_EDX, 4, "AVX-VNNI-INT8"},
    {PH__FEATURES_7_1_EDX, 5, "AVX-NE-CONVERT"},
    {PH__FEATURES_7_1_EDX, 10, "AVX-VNNI-INT16"},
    {PH__FEATURES_7_1_EDX, 14, "PREFETCHI"},
    {PH__FEATURES_7_1_EDX, 19, "AVX10"},
    {PH__FEATURES_7_1_EDX, 21, "APX_F"},
    {PH__FEATURES_D_1_EAX, 0, "XSAVEOPT"},
    {PH__FEATURES_D_1_EAX, 1, "XSAVEC"},
    {PH__FEATURES_D_1_EAX, 2, "XGETBV_1"},
    {PH__FEATURES_24_EBX, 0, "AVX10.1"},
    {PH__FEATURES_24_EBX, 1, "AVX10.2"},
    {PH__FEATURES_80000001_ECX, 0, "LAHF"},
    {PH__FEATURES_80000001_ECX, 5, "LZCNT"},
    {PH__FEATURES_80000001_ECX, 6, "SSE4A"},
    {PH__FEATURES_80000001_ECX, 7, "MISALIGNSSE"},
    {PH__FEATURES_80000001_ECX, 8, "PREFETCHW"},
    {PH__FEATURES_80000001_ECX, 11, "XOP"},
    {PH__FEATURES_80000001_ECX, 16, "FMA4"},
    {PH__FEATURES_80000001_ECX, 21, "TBM"},
    {PH__FEATURES_80000001_ECX, 29, "MONITORX"},
    {PH__FEATURES_80000001_EDX, 27, "RDTSCP"},
    {PH__FEATURES_80000001_EDX, 30, "3DNOWEXT"},
    {PH__FEATURES_80000001_EDX, 31, "3DNOW"},
    {PH__FEATURES_80000008_EBX, 0, "CLZERO"},
    {PH__FEATURES_80000008_EBX, 4, "RDPRU"},
    {PH__FEATURES_80000008_EBX, 8, "MCOMMIT"},
};

/* ---- reading ------------------------------------------------------------------------------------------- */

/* The words of a leaf, zero where there is none: a processor answers with those of another one. */
static void leaf_read(ph__cpuid_fn *cpuid, const void *context, uint32_t leaf, uint32_t index,
                      uint32_t parts[4]) {
    cpuid(context, leaf & EXTENDED, 0, parts);
    if (parts[EAX] >= leaf)
        cpuid(context, leaf, index, parts);
    else
        memset(parts, 0, 4 * sizeof parts[0]);
}

/* Bit N for version N + 1 and all before it. */
static uint32_t versions(uint32_t version) {
    return version >= 32 ? UINT32_MAX : (1u << version) - 1;
}

void ph__features_read(ph__cpuid_fn *cpuid, const void *context, uint64_t xcr0,
                       struct ph__features *features) {
    uint32_t parts[4];

    *features = (struct ph__features){.xcr0 = xcr0};
    for (size_t i = 0; i < PH__FEATURE_WORDS; i++) {
        leaf_read(cpuid, context, places[i].leaf, places[i].index, parts);
        features->words[i] = parts[places[i].part];
    }
    features->words[PH__FEATURES_24_EBX] = versions(features->words[PH__FEATURES_24_EBX] & AVX10_VERSION);
    for (size_t i = 0; i < PH__FEATURE_COMPONENTS; i++) {
        if (components[i] != PKRU_COMPONENT && !(xcr0 >> components[i] & 1))
            continue;
        leaf_read(cpuid, context, XSAVE_LEAF, components[i], parts);
        features->components[i] = parts[EBX];
    }
}

/* ---- names --------------------------------------------------------------------------------------------- */

#define NAME_SIZE 32u

static void bit_name(size_t word, unsigned bit, char name[NAME_SIZE]) {
    static const char *const parts[] = {"EAX", "EBX", "ECX", "EDX"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].word == word && names[i].bit == bit) {
            snprintf(name, NAME_SIZE, "%s", names[i].name);
            return;
        }
    snprintf(name, NAME_SIZE, "CPUID.%x.%x:%s[%u]", places[word].leaf, places[word].index,
             parts[places[word].part], bit);
}

static unsigned count_bits(const uint32_t bits[PH__FEATURE_WORDS]) {
    unsigned count = 0;

    for (size_t i = 0; i < PH__FEATURE_WORDS; i++)
        count += (unsigned)__builtin_popcount(bits[i]);
    return count;
}

/* Takes the lowest of (bits), of which there is one, away and writes its name. */
static void take_name(uint32_t bits[PH__FEATURE_WORDS], char name[NAME_SIZE]) {
    size_t word = 0;

    while (bits[word] == 0)
        word++;
    bit_name(word, (unsigned)__builtin_ctz(bits[word]), name);
    bits[word] &= bits[word] - 1;
}

/* Appends to the text at (text), which has (size) bytes and (*length) characters. False where that is no
 * room. */
static bool append(char *text, size_t size, size_t *length, const char *between, const char *name) {
    const size_t more = strlen(between) + strlen(name);

    if (*length + more >= size)
        return false;
    snprintf(text + *length, size - *length, "%s%s", between, name);
    *length += more;
    return true;
}

void ph__features_name(const struct ph__features *features, char *text, size_t size) {
    uint32_t bits[PH__FEATURE_WORDS];
    char name[NAME_SIZE];
    size_t length = 0;

    for (size_t i = 0; i < PH__FEATURE_WORDS; i++)
        bits[i] = features->words[i] & ~places[i].ignored;
    text[0] = 0;
    while (count_bits(bits)) {
        take_name(bits, name);
        if (!append(text, size, &length, length ? " " : "", name))
            break;
    }
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

/* More would hide what is said behind them. */
#define NAMES_MAX 12u

static ph_status refuse_missing(uint32_t missing[PH__FEATURE_WORDS], const char *backend, ph_error *error) {
    const unsigned count = count_bits(missing);
    /* The last one of a list that is too long is a number. */
    const unsigned named = count > NAMES_MAX ? NAMES_MAX - 1 : count;
    char text[NAMES_MAX * NAME_SIZE + 64], name[NAME_SIZE];
    size_t length = 0;

    for (unsigned i = 0; i < named; i++) {
        take_name(missing, name);
        append(text, sizeof text, &length, i == 0 ? "" : i + 1 == count ? " and " : ", ", name);
    }
    if (named < count) {
        snprintf(name, sizeof name, "%u more", count - named);
        append(text, sizeof text, &length, " and ", name);
    }
    return ph__error_set(error, PH_E_SNAPSHOT,
                         "the snapshot needs %s, which the %s backend's processor does not have", text,
                         backend);
}

/* A guest that has seen XCR0 makes room for what XSAVE writes by that, and need not look again: more would
 * not fit, and less is missing. One that cannot see it has neither. */
static ph_status state_check(const struct ph__features *needed, const struct ph__features *had,
                             const char *backend, ph_error *error) {
    if (needed->xcr0 && needed->xcr0 != had->xcr0)
        return ph__error_set(error, PH_E_SNAPSHOT,
                             "the snapshot needs vector state as XCR0 0x%llx has it, and the %s backend's "
                             "processor has 0x%llx",
                             (unsigned long long)needed->xcr0, backend, (unsigned long long)had->xcr0);
    for (size_t i = 0; i < PH__FEATURE_COMPONENTS; i++)
        if (needed->components[i] && had->components[i] && needed->components[i] != had->components[i])
            return ph__error_set(error, PH_E_SNAPSHOT,
                                 "the snapshot needs the state of XSAVE's component %u at %u, and the %s "
                                 "backend's processor has it at %u",
                                 components[i], needed->components[i], backend, had->components[i]);
    return PH_OK;
}

ph_status ph__features_check(const struct ph__features *needed, const struct ph__features *had,
                             const char *backend, ph_error *error) {
    uint32_t missing[PH__FEATURE_WORDS], any = 0;

    for (size_t i = 0; i < PH__FEATURE_WORDS; i++) {
        missing[i] = needed->words[i] & ~had->words[i] & ~places[i].ignored;
        any |= missing[i];
    }
    return any ? refuse_missing(missing, backend, error) : state_check(needed, had, backend, error);
}
