/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The time, as the nanoseconds that all of the library counts in.
 */
#ifndef PH_BASE_TIME_H
#define PH_BASE_TIME_H

#include <stdint.h>
#include <time.h>

#include "base/system.h"

#define PH__SECOND_NS 1000000000ull

static inline uint64_t ph__time_ns(clockid_t clock) {
    struct timespec now;

    ph__system.clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * PH__SECOND_NS + (uint64_t)now.tv_nsec;
}

static inline struct timespec ph__timespec_of(uint64_t ns) {
    return (struct timespec){(time_t)(ns / PH__SECOND_NS), (long)(ns % PH__SECOND_NS)};
}

#endif
