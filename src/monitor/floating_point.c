/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest's x87 and vector registers, which the monitor saves and restores around signal handlers and
 * never uses. Which instructions there are for it is asked of the processor when the first signal is
 * delivered: CPUID leaves the VM on most machines, so it must not be on any other path.
 */
#include <asm/siginfo.h>

#include "monitor/monitor.h"

/* XSAVE's standard form: legacy area, header, then each component at its place. */
#define LEGACY_SIZE 512u
#define HEADER_SIZE 64u
#define AVX_END 832u     /* the upper halves of YMM are at 576 on every processor */
#define AVX512_END 2688u /* Intel's layout, the longest; AMD's ends at 2432 */
#define X87_SSE 0x3u
#define AVX512 0xe0u
#define KNOWN_FEATURES 0xe7u /* x87, SSE, AVX, AVX-512: more is never switched on */
#define CPUID_OSXSAVE (1u << 27)
#define MXCSR_DEFAULT 0x1f80u

/* What the kernel writes into bytes 464 to 511 of the legacy area (struct _fpx_sw_bytes). */
struct software_bytes {
    uint32_t magic1;
    uint32_t extended_size;
    uint64_t features;
    uint32_t size;
    uint32_t padding[7];
};
#define SOFTWARE_BYTES_AT 464u
#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
#define MAGIC2_SIZE 4u /* behind the area */
_Static_assert(sizeof(struct software_bytes) == LEGACY_SIZE - SOFTWARE_BYTES_AT, "struct _fpx_sw_bytes");

/* An area without contents: every component gets its initial value. As large as any, since XRSTOR may touch
 * all that the components it is asked for would take, and behind this lie pages of ring 0. */
static const struct {
    uint8_t before[24];
    uint32_t mxcsr;
    uint8_t behind[AVX512_END - 28];
} initial __attribute__((aligned(64))) = {.mxcsr = MXCSR_DEFAULT};

/* For processors without XSAVE. */
static const struct {
    uint16_t control;
    uint8_t between[22];
    uint32_t mxcsr;
    uint8_t behind[LEGACY_SIZE - 28];
} initial_legacy __attribute__((aligned(16))) = {.control = 0x37f, .mxcsr = MXCSR_DEFAULT};

/* The components that XSAVE is asked for; 0 without XSAVE. */
static uint32_t features(void) {
    static uint32_t known;
    static bool is_known;
    if (is_known)
        return known;
    uint32_t eax = 1, ebx, ecx = 0, edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    if (ecx & CPUID_OSXSAVE) {
        __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
        known = eax & KNOWN_FEATURES;
    }
    is_known = true;
    return known;
}

static uint32_t area_size(void) {
    if (features() == 0)
        return LEGACY_SIZE;
    return features() & AVX512 ? AVX512_END : AVX_END;
}

bool ph__floating_point_is_extended(void) {
    return features() != 0;
}

uint64_t ph__floating_point_size(void) {
    return area_size() + MAGIC2_SIZE;
}

bool ph__floating_point_save(uint64_t area) {
    struct software_bytes software = {0};
    uint32_t end = MAGIC2;
    if (!ph__user_range(area, ph__floating_point_size()))
        return false;
    if (features() == 0) {
        return ph__fixup_fxsave((void *)area) == 0 &&
               ph__copy_to_user(area + SOFTWARE_BYTES_AT, &software, sizeof software) == 0;
    }
    software.magic1 = MAGIC1;
    software.features = features();
    software.size = area_size();
    software.extended_size = area_size() + MAGIC2_SIZE;
    /* XSAVE leaves the rest of the header as it is, and XRSTOR refuses one that is not zero there. */
    return ph__zero_user(area + LEGACY_SIZE, HEADER_SIZE) == 0 &&
           ph__fixup_xsave((void *)area, features()) == 0 &&
           ph__copy_to_user(area + SOFTWARE_BYTES_AT, &software, sizeof software) == 0 &&
           ph__copy_to_user(area + software.size, &end, sizeof end) == 0;
}

void ph__floating_point_reset(void) {
    if (features() != 0)
        ph__fixup_xrstor(&initial, features());
    else
        ph__fixup_fxrstor(&initial_legacy);
}

/* The components that an area holds beyond the legacy ones. 0 if it is a legacy area alone. */
static uint32_t area_features(uint64_t area) {
    struct software_bytes software;
    uint32_t end;
    if (ph__copy_from_user(&software, area + SOFTWARE_BYTES_AT, sizeof software) != 0 ||
        software.magic1 != MAGIC1 || software.size < LEGACY_SIZE + HEADER_SIZE ||
        software.size > area_size() || software.size > software.extended_size)
        return 0;
    if (ph__copy_from_user(&end, area + software.size, sizeof end) != 0 || end != MAGIC2)
        return 0;
    return (uint32_t)software.features & features();
}

bool ph__floating_point_restore(uint64_t area) {
    if (area == 0) {
        ph__floating_point_reset();
        return true;
    }
    if (!ph__user_range(area, LEGACY_SIZE))
        return false;
    uint32_t present = features() == 0 ? 0 : area_features(area);
    if (present != 0) {
        if (present != features())
            ph__floating_point_reset();
        return ph__user_range(area, area_size()) && area % HEADER_SIZE == 0 &&
               ph__fixup_xrstor((const void *)area, present) == 0;
    }
    /* A legacy area says nothing about the rest, which becomes initial. */
    ph__floating_point_reset();
    return ph__fixup_fxrstor((const void *)area) == 0;
}

int32_t ph__floating_point_code(uint64_t vector) {
    uint32_t raised;
    if (vector == 16) {
        uint16_t control, status;
        __asm__ volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control), "=m"(status));
        raised = status & ~(uint32_t)control;
    } else {
        uint32_t mxcsr;
        __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
        raised = mxcsr & ~(mxcsr >> 7);
    }
    if (raised & 0x01)
        return FPE_FLTINV;
    if (raised & 0x04)
        return FPE_FLTDIV;
    if (raised & 0x08)
        return FPE_FLTOVF;
    if (raised & 0x12)
        return FPE_FLTUND;
    return raised & 0x20 ? FPE_FLTRES : 0;
}
