/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The span of guests/trace.c as a native program traces it with LTTng-UST: a tracepoint without fields where
 * it begins and one where it ends. For each byte of its input it does 2,000 of them, and answers with eight
 * bytes, the cycles that they took (bench/trace_lttng.c). Only built where LTTng-UST is installed.
 */
#include <stdint.h>
#include <unistd.h>
#include <x86intrin.h>

#if __has_include(<lttng/tracepoint.h>) /* what reads every file may not have it */

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#define SPANS 2000u

int main(void) {
    char byte;

    while (read(STDIN_FILENO, &byte, 1) == 1) {
        uint64_t start = __rdtsc();
        for (uint32_t i = 0; i < SPANS; i++) {
            lttng_ust_tracepoint(pinhole_bench, span_begin);
            __asm__ volatile("" ::: "memory");
            lttng_ust_tracepoint(pinhole_bench, span_end);
        }
        uint64_t cycles = __rdtsc() - start;
        if (write(STDOUT_FILENO, &cycles, sizeof cycles) != sizeof cycles)
            return 1;
    }
    return 0;
}

#endif
