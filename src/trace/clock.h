/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * From the time-stamp counter to nanoseconds since 1970, in integers. An anchor says where both stood at one
 * moment; one anchor serves a whole tree of spans, so that its times are exact against each other and never
 * run backwards, whatever happens to the system's clock.
 */
#ifndef PH_TRACE_CLOCK_H
#define PH_TRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct ph__trace_anchor {
    uint64_t tsc;
    uint64_t realtime_ns;
    uint64_t mult; /* nanoseconds are ticks * mult >> 32 */
};

/* Measures better what it was told, the longer it lives. Zeroed to begin with; one thread at a time. */
struct ph__trace_clock {
    uint64_t first_tsc; /* of the first reading */
    uint64_t first_monotonic_ns;
    struct ph__trace_anchor anchor; /* the latest */
};

/* Takes a new anchor when the last is older than about a second, or there is none. (khz) is what the counter
 * is said to count a millisecond, 0 when nobody says. From a second after the first reading on, the frequency
 * is what was measured since then against CLOCK_MONOTONIC. */
void ph__trace_clock_renew(struct ph__trace_clock *clock, uint64_t khz);

/* Whether the processor says that its counter always counts at one speed (CPUID 0x80000007, EDX bit 8: Intel
 * SDM volume 3, "Invariant TSC"). Asked once: CPUID may leave the virtual machine that the host is in. */
bool ph__trace_clock_is_invariant(void);

/* Nanoseconds since 1970 at (tsc), which may be before the anchor. Never less for a later (tsc); what is
 * before 1970 or beyond 64 bits is the nearest that there is. Inline: every record has a time. */
static inline uint64_t ph__trace_anchor_ns(const struct ph__trace_anchor *anchor, uint64_t tsc) {
    __extension__ typedef unsigned __int128 wide;

    if (__builtin_expect(tsc >= anchor->tsc, 1)) {
        wide after = (wide)(tsc - anchor->tsc) * anchor->mult >> 32;
        return after <= UINT64_MAX - anchor->realtime_ns ? anchor->realtime_ns + (uint64_t)after : UINT64_MAX;
    }
    /* Rounded down like the other side. */
    wide before = ((wide)(anchor->tsc - tsc) * anchor->mult + UINT32_MAX) >> 32;
    return before <= anchor->realtime_ns ? anchor->realtime_ns - (uint64_t)before : 0;
}

#endif
