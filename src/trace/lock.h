/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A stream's lock. It is taken three times in each call, which comes from an exit with cold caches: a mutex
 * of libc costs 170 ns of that call more. Held for a copy at most, but for a change of the filter; who finds
 * it taken sleeps.
 */
#ifndef PH_TRACE_LOCK_H
#define PH_TRACE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/system.h"

/* Free when zeroed; nothing to destroy. */
struct ph__lock {
    _Atomic uint32_t taken;
};

#define PH__LOCK_PAUSE_NS 20000

static inline bool ph__lock_try(struct ph__lock *lock) {
    return atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0;
}

static inline void ph__lock_take(struct ph__lock *lock) {
    while (!ph__lock_try(lock)) {
        const struct timespec pause = {.tv_nsec = PH__LOCK_PAUSE_NS};
        ph__system.nanosleep(&pause, NULL);
    }
}

static inline void ph__lock_give(struct ph__lock *lock) {
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif
