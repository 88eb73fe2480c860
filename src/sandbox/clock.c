/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Time without system calls: the host's time-stamp counter, its conversion to nanoseconds, and the clock that
 * the guest reads in the control page.
 */
#include <pthread.h>
#include <x86intrin.h>

#include "base/time.h"
#include "sandbox/sandbox.h"

#define RENEW_AFTER_MS 100u

__extension__ typedef unsigned __int128 wide; /* cycles times a million do not fit 64 bits for long */

PH__HOT uint64_t ph__clock_cycles(void) {
    return __rdtsc();
}

uint64_t ph__clock_ns(const ph_sandbox *sandbox, uint64_t cycles) {
    return (uint64_t)((wide)cycles * 1000000u / sandbox->tsc_khz);
}

static uint64_t measured_khz;

static void measure(void) {
    uint64_t start_ns = ph__time_ns(CLOCK_MONOTONIC);
    uint64_t start = __rdtsc();
    uint64_t now_ns;

    do
        now_ns = ph__time_ns(CLOCK_MONOTONIC);
    while (now_ns - start_ns < 20000000);
    measured_khz = (__rdtsc() - start) * 1000000u / (now_ns - start_ns);
}

/* For a backend that does not say how fast the counter counts. Once for each process: it takes 20 ms. */
static uint64_t measure_khz(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, measure);
    return measured_khz;
}

static void renew(ph_sandbox *sandbox, uint64_t now) {
    struct ph__clock *clock = &ph__memory_control(&sandbox->memory)->clock;

    clock->realtime_ns = ph__time_ns(CLOCK_REALTIME);
    clock->monotonic_ns = ph__time_ns(CLOCK_MONOTONIC);
    clock->tsc = now + (uint64_t)sandbox->vcpu->tsc_offset;
    sandbox->clock_anchor = now;
}

PH__HOT void ph__clock_renew(ph_sandbox *sandbox, uint64_t now) {
    if (now - sandbox->clock_anchor > sandbox->tsc_khz * RENEW_AFTER_MS)
        renew(sandbox, __rdtsc());
}

void ph__clock_init(ph_sandbox *sandbox) {
    struct ph__control *control = ph__memory_control(&sandbox->memory);

    sandbox->tsc_khz = sandbox->vcpu->tsc_khz ? sandbox->vcpu->tsc_khz : measure_khz();
    control->clock.mult = (uint64_t)(((wide)1000000u << 32) / sandbox->tsc_khz);
    renew(sandbox, __rdtsc());
    control->start_monotonic_ns = control->clock.monotonic_ns;
}
