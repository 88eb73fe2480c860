/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Pools: sandboxes of one snapshot that are made ahead, handed out one by one, and put back to the snapshot
 * when they come back, so that each user of one finds the guest as the snapshot has it.
 *
 * A thread that takes gets the sandbox that it gave back last, if that is free, since a vCPU that changes
 * threads costs milliseconds on some kernels; else the one that has been idle longest. A sandbox that cannot
 * be put back is destroyed and made anew; one that is broken is never handed out.
 *
 * Threads: a pool may be used from any number of threads at once. What it hands out is the taker's alone
 * until it is given back; nobody may use it afterwards, ph_interrupt included, since it may have been
 * destroyed. After fork() the child may only destroy the pool that it inherited, with all that is taken.
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
       needed: by a take that finds none idle and fewer than (capacity). */
    uint32_t warm;
    /** For each sandbox, as for ph_sandbox_create_from; NULL: as in the snapshot. Copied; what it points to
       must live as long as the pool. */
    const ph_config *sandbox;
    /** Called once for each new sandbox, to register its host functions; NULL when it needs none. It may call
       the guest, which is put back to the snapshot afterwards. Anything but PH_OK ends the making. On the
       thread that makes it, which is that of ph_pool_create, ph_pool_take or ph_pool_give, without a lock
       held; it must not destroy the sandbox. */
    ph_status (*prepare)(void *context, ph_sandbox *sandbox);
    void *prepare_context;
} ph_pool_config;

/** The initial value of a ph_pool_config: all are made ahead. */
#define PH_POOL_CONFIG_INIT                                                                                  \
    { sizeof(ph_pool_config), 0, UINT32_MAX, NULL, NULL, NULL }

/**
 * What has happened in a pool so far, and what is in it now. Begin with PH_POOL_STATS_INIT. When nothing is
 * under way, (idle) and (taken) are together (made) less (replaced), and (takes) is what came back,
 * (restores) and (replaced), and what is (taken).
 */
typedef struct ph_pool_stats {
    /** sizeof(ph_pool_stats) of the caller's header. */
    size_t size;
    /** Sandboxes now: that wait to be taken, and that are taken, being made or being put back. */
    uint64_t idle, taken;
    /** Sandboxes that were made, and those that were destroyed when they were given back. */
    uint64_t made, replaced;
    /** Sandboxes handed out, and those of them that the same thread had given back last. */
    uint64_t takes, takes_same_thread;
    /** Takes that had to wait (counted when they begin to), takes that ended without a sandbox, and sandboxes
       that were put back when they were given back. */
    uint64_t waits, failures, restores;
} ph_pool_stats;

/** The initial value of a ph_pool_stats. */
#define PH_POOL_STATS_INIT                                                                                   \
    { sizeof(ph_pool_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

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
 * served first. Making a sandbox is not waiting: it takes as long as it takes. (*sandbox) is to be given back
 * with ph_pool_give, not to be destroyed. Returns PH_E_ARGUMENT, PH_E_BUSY when there is none and it was not
 * to wait, PH_E_TIMED_OUT, PH_E_STATE when the pool is being destroyed, PH_E_FORKED, or what making a sandbox
 * returned; (*sandbox) is NULL then, and (error) says more and may be NULL.
 */
PH_API ph_status ph_pool_take(ph_pool *pool, uint64_t timeout_ns, ph_sandbox **sandbox, ph_error *error);

/**
 * Gives (sandbox) back, whatever state it is in and from whatever thread, and puts it back to the snapshot at
 * once, on this thread: what its guest did is gone when the function returns. Strings and bytes of its
 * results go too, and output that was kept. Its error, its counts, its trace filter and host functions that
 * the taker has registered stay, as with ph_sandbox_restore.
 *
 * (sandbox) may be NULL. One that is not taken from (pool), or in a child after fork(), is left alone. One
 * that is in use, by another thread or since this is a host function of its call, stays taken: it is to be
 * given back once more.
 */
PH_API void ph_pool_give(ph_pool *pool, ph_sandbox *sandbox);

/**
 * Fills (stats), whose size is set. PH_E_ARGUMENT for a NULL or a size that is not one of this library,
 * PH_E_FORKED.
 */
PH_API ph_status ph_pool_stats_get(ph_pool *pool, ph_pool_stats *stats);

/**
 * Destroys (pool), which may be NULL: wakes those who wait, and waits for what is taken to be given back, so
 * a thread that holds some must give it back first. In a child after fork() it frees what the child has, what
 * was taken too, and waits for nothing.
 */
PH_API void ph_pool_destroy(ph_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
