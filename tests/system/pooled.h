/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What tests of pools share: a pool of a guest's snapshot, and short ways to take, call and count. They fail
 * the running test with a message, so they are for its own thread alone.
 */
#ifndef PH_TESTS_POOLED_H
#define PH_TESTS_POOLED_H

#include "support/support.h"

#include <pinhole/pool.h>

#define U32(value)                                                                                           \
    (ph_value) {                                                                                             \
        .type = PH_U32, .u32 = (value)                                                                       \
    }

struct pooled {
    ph_image *image;
    ph_snapshot *snapshot;
    ph_pool *pool;
};

/* A snapshot of the guest (name), started with a host function `visit` that does nothing. */
void pooled_open_snapshot(struct pooled *pooled, const char *name);

/* The same and a pool of it; sandboxes for which (config) says nothing get a time-out. */
void pooled_open(struct pooled *pooled, const char *name, ph_pool_config config);

/* A config of (capacity), all of them made ahead. */
ph_pool_config pooled_config(uint32_t capacity);

/* Destroys the pool, in which nothing may be taken, and compares its counts. */
void pooled_close(struct pooled *pooled);

/* Takes one that must be there. */
ph_sandbox *pooled_take(const struct pooled *pooled);

/* Takes, and expects (wanted) and no sandbox. The error stays valid until the next use. */
const ph_error *pooled_refused(const struct pooled *pooled, uint64_t timeout_ns, ph_status wanted);

/* Calls the export (name) with (count) arguments and expects (wanted). */
void pooled_call(const struct pooled *pooled, ph_sandbox *sandbox, const char *name, const ph_value *args,
                 size_t count, ph_status wanted);

/* What the guest `snapshot` counts: 1 in one that nobody has used. */
uint32_t pooled_count(const struct pooled *pooled, ph_sandbox *sandbox);

ph_pool_stats pooled_stats(const struct pooled *pooled);

/* Returns once (waits) takes have begun to wait. */
void pooled_until_waits(const struct pooled *pooled, uint64_t waits);

#endif
