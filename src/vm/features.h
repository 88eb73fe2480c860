/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a guest's processor can do, as data that is compared: a guest that has seen a processor, and has
 * chosen its code by that, goes on only where all of it is there (restore.c). Pure, and the same for every
 * backend.
 *
 * Compared is what code in ring 3 can use. What only ring 0 uses, says how fast something is, or is in no
 * guest's reach is left out, and so are vendor, family and model: a C library picks by them among functions
 * that all run. A bit that has no name here counts as one that code may use.
 */
#ifndef PH_VM_FEATURES_H
#define PH_VM_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include <pinhole/pinhole.h>

/* Registers of CPUID leaves. Their order is that of a snapshot's file (sandbox/snapshot_format.h). */
enum ph__feature_word {
    PH__FEATURES_1_ECX,
    PH__FEATURES_1_EDX,
    PH__FEATURES_7_EBX,
    PH__FEATURES_7_ECX,
    PH__FEATURES_7_EDX,
    PH__FEATURES_7_1_EAX,
    PH__FEATURES_7_1_EDX,
    PH__FEATURES_D_1_EAX,
    PH__FEATURES_24_EBX, /* not as it is: bit N is set from version N + 1 of AVX10 on */
    PH__FEATURES_80000001_ECX,
    PH__FEATURES_80000001_EDX,
    PH__FEATURES_80000008_EBX,
    PH__FEATURE_WORDS,
};

/* State components whose place in an XSAVE area is the processor's own choice: AVX, the three of AVX-512, and
 * PKRU. */
#define PH__FEATURE_COMPONENTS 5u

struct ph__features {
    uint64_t xcr0; /* as XGETBV shows it to the guest, 0 where there is no such instruction */
    uint32_t words[PH__FEATURE_WORDS];
    /* Distances in the standard format, 0 of those that are not there (SDM volume 1, chapter 13.4.3). */
    uint32_t components[PH__FEATURE_COMPONENTS];
};

/* Answers CPUID as a guest's processor does. Leaves that it does not have are zero. */
typedef void ph__cpuid_fn(const void *context, uint32_t leaf, uint32_t index, uint32_t words[4]);

/* Fills (features) with what (cpuid) and (xcr0) say. */
void ph__features_read(ph__cpuid_fn *cpuid, const void *context, uint64_t xcr0,
                       struct ph__features *features);

/* Whether a guest that has seen (needed) can go on on a processor of the backend called (backend), which has
 * (had): PH_OK, or PH_E_SNAPSHOT that names what is missing. (needed) may come from a file. */
ph_status ph__features_check(const struct ph__features *needed, const struct ph__features *had,
                             const char *backend, ph_error *error);

/* Writes the names of what (features) has to (text), separated by spaces, as many as there is room for. */
void ph__features_name(const struct ph__features *features, char *text, size_t size);

#endif
