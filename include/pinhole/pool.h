/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Pools: sandboxes of one snapshot that are made ahead, handed out one by one, and put back to the snapshot
 * when they come back, so that each user of one finds the guest as the snapshot has it.
 *
 * A thread that takes gets the sandbox that it gave back last, if that is free: a vCPU that changes threads
 * costs milliseconds on some kernels. A sandbox that cannot be put back is destroyed and made anew; one that
 * is broken is never handed out.
 *
 * Threads: a pool may be used from any number of threads at once. What it hands out is the taker's alone
 * until it is given back. After fork() the child may only destroy what it inherited.
 */
#ifndef PINHOLE_POOL_H
#define PINHOLE_POOL_H

#include <pinhole/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A bounded number of sandboxes of one snapshot. */
typedef struct ph_pool ph_pool;

/** What a pool is made of. Begin with PH_POOL_CONFIG_INIT; members may be added at the end. */
typedef struct ph_pool_config {
    /** sizeof(ph_pool_config) of the caller's header. */
    size_t size;
    /** The most sandboxes that exist at a time, taken ones included; 0: as many as there are processors. */
    uint32_t capacity;
    /** How many are made by ph_pool_create; more than (capacity) means all. The rest is made when it is
     * needed. */
    uint32_t warm;
    /** For each sandbox, as for ph_sandbox_create_from; NULL: as in the snapshot. Copied; what it points to
       must live as long as the pool. */
    const ph_config *sandbox;
    /** Called once for each new sandbox, to register its host functions; NULL when it needs none. Anything
       but PH_OK ends the making. On the thread that makes it, which is that of ph_pool_create, ph_pool_take
       or ph_pool_give, without a lock held. */
    ph_status (*prepare)(void *context, ph_sandbox *sandbox);
    void *prepare_context;
} ph_pool_config;

#define PH_POOL_CONFIG_INIT                                                                                  \
    { .size = sizeof(ph_pool_config), .warm = UINT32_MAX }

/** What has happened in a pool so far, and what is in it now. */
typedef struct ph_pool_stats {
    /** sizeof(ph_pool_stats) of the caller's header. */
    size_t size;
    /** Sandboxes now: that wait to be taken, and that are taken. */
    uint64_t idle, taken;
    /** Sandboxes that were made, and those that were destroyed since they could not be put back. */
    uint64_t made, replaced;
    /** Sandboxes handed out, and those of them that the same thread had given back last. */
    uint64_t takes, takes_same_thread;
    /** Takes that had to wait, takes that ended without a sandbox, and restores. */
    uint64_t waits, failures, restores;
} ph_pool_stats;

#define PH_POOL_STATS_INIT                                                                                   \
    { .size = sizeof(ph_pool_stats) }

/** For ph_pool_take: waits until there is one. */
#define PH_POOL_WAIT_FOREVER UINT64_MAX

/**
 * Makes a pool of sandboxes of (snapshot), which it holds, and the (warm) first ones of them. (config) may be
 * NULL. (*pool) is the caller's, to be destroyed with ph_pool_destroy. Returns PH_E_ARGUMENT, PH_E_MEMORY, or
 * what making a sandbox of it returns: nothing is left behind then.
 */
PH_API ph_status ph_pool_create(ph_snapshot *snapshot, const ph_pool_config *config, ph_pool **pool,
                                ph_error *error);

/**
 * Takes a sandbox out of (pool), ready and as the snapshot has it. Where all are taken it waits up to
 * (timeout_ns) nanoseconds: 0 does not wait at all, PH_POOL_WAIT_FOREVER without end; who waits longest is
 * served first. (*sandbox) is to be given back with ph_pool_give, not to be destroyed. Returns PH_E_BUSY when
 * there is none and it was not to wait, PH_E_TIMED_OUT, PH_E_STATE when the pool is being destroyed,
 * PH_E_FORKED, or what making a sandbox returned; (error) says more and may be NULL.
 */
PH_API ph_status ph_pool_take(ph_pool *pool, uint64_t timeout_ns, ph_sandbox **sandbox, ph_error *error);

/**
 * Gives (sandbox) back, whatever state it is in, and puts it back to the snapshot at once, on this thread:
 * what its guest did is gone when the function returns. Strings and bytes of its results go too. (sandbox)
 * may be NULL.
 */
PH_API void ph_pool_give(ph_pool *pool, ph_sandbox *sandbox);

/** Fills (stats). PH_E_ARGUMENT for a NULL or a size that is not one of this library. */
PH_API ph_status ph_pool_stats_get(ph_pool *pool, ph_pool_stats *stats);

/**
 * Destroys (pool), which may be NULL: wakes those who wait, and waits for what is taken to be given back. In
 * a child after fork() it frees what the child has and waits for nothing.
 */
PH_API void ph_pool_destroy(ph_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
