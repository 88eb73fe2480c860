/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Takes anchors and measures the counter's frequency (clock.h). The longer the time since the first reading,
 * the less a reading's own uncertainty of some tens of nanoseconds matters: 0.1 ppm after a second.
 */
#include "trace/clock.h"

#include <cpuid.h>
#include <stdatomic.h>
#include <x86intrin.h>

#include "base/time.h"

/* How long the counter is measured when nobody knows its frequency: 50 ns of uncertainty are 25 ppm of it. */
#define SHORT_NS 2000000ull

#define TRIES 5

/* A frequency that is off by more than 1/64 of what it was before is no better measurement: the counter, or
 * the clock, was stopped or set (a suspended host, a VM that moved). */
#define DOUBT_SHIFT 6

__extension__ typedef unsigned __int128 wide;

/* Reads a clock and, in (*tsc), the counter at the same moment: between two readings of it, of several tries
 * the one that nothing interrupted. */
static uint64_t clock_read(clockid_t id, uint64_t *tsc) {
    uint64_t tightest = UINT64_MAX;
    uint64_t ns = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = __rdtsc();
        uint64_t read = ph__time_ns(id);
        uint64_t width = __rdtsc() - before;
        if (width < tightest) {
            tightest = width;
            ns = read;
            *tsc = before + width / 2;
        }
    }
    return ns;
}

static uint64_t mult_of(uint64_t ns, uint64_t ticks) {
    return (uint64_t)(((wide)ns << 32) / ticks);
}

/* Measures from here on. With (khz) at first, and without it by what a short wait tells. */
static void start_over(struct ph__trace_clock *clock, uint64_t khz) {
    uint64_t tsc = 0;
    uint64_t ns;

    clock->first_monotonic_ns = clock_read(CLOCK_MONOTONIC, &clock->first_tsc);
    if (khz > 0) {
        clock->anchor.mult = mult_of(1000000, khz);
        return;
    }
    do
        ns = ph__time_ns(CLOCK_MONOTONIC);
    while (ns - clock->first_monotonic_ns < SHORT_NS);
    ns = clock_read(CLOCK_MONOTONIC, &tsc);
    /* A counter that does not count gives no times, but must divide nothing by zero. */
    clock->anchor.mult =
        tsc > clock->first_tsc ? mult_of(ns - clock->first_monotonic_ns, tsc - clock->first_tsc) : 1;
}

/* The frequency since the first reading. False when that cannot be: (*mult) is then what it was. */
static bool measure(const struct ph__trace_clock *clock, uint64_t *mult) {
    uint64_t tsc = 0;
    uint64_t ns = clock_read(CLOCK_MONOTONIC, &tsc);

    if (tsc <= clock->first_tsc)
        return false;
    if (ns - clock->first_monotonic_ns < PH__SECOND_NS)
        return true;
    uint64_t measured = mult_of(ns - clock->first_monotonic_ns, tsc - clock->first_tsc);
    uint64_t difference = measured > *mult ? measured - *mult : *mult - measured;
    if (difference > *mult >> DOUBT_SHIFT)
        return false;
    *mult = measured;
    return true;
}

void ph__trace_clock_renew(struct ph__trace_clock *clock, uint64_t khz) {
    struct ph__trace_anchor *anchor = &clock->anchor;
    uint64_t now = __rdtsc();

    if (anchor->mult == 0)
        start_over(clock, khz);
    else if (now >= anchor->tsc && (wide)(now - anchor->tsc) * anchor->mult >> 32 < PH__SECOND_NS)
        return;
    else if (!measure(clock, &anchor->mult))
        start_over(clock, 0);
    anchor->realtime_ns = clock_read(CLOCK_REALTIME, &anchor->tsc);
}

bool ph__trace_clock_is_invariant(void) {
    enum { UNKNOWN, NO, YES };
    static _Atomic int known = UNKNOWN;
    uint32_t eax, ebx, ecx, edx;

    if (atomic_load_explicit(&known, memory_order_relaxed) == UNKNOWN) {
        bool invariant = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx >> 8 & 1;
        atomic_store_explicit(&known, invariant ? YES : NO, memory_order_relaxed);
    }
    return atomic_load_explicit(&known, memory_order_relaxed) == YES;
}
