/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Snapshots: a started guest as it stands between two calls, its memory and its processor. Taken from a
 * sandbox that is ready, and put back as often as wanted: into the same sandbox, into others of the same
 * image, or as a new one that needs no start of its own.
 *
 * What is no part of a snapshot: time, the seed of random numbers (each restored guest gets another),
 * messages under way, trace records, filters, host functions, counts (ph_sandbox_stats) and kept output.
 *
 * Threads: a snapshot never changes and may be used from any number of threads at once. After fork() the
 * child may only close what it inherited.
 */
#ifndef PINHOLE_SNAPSHOT_H
#define PINHOLE_SNAPSHOT_H

#include <pinhole/pinhole.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A snapshot, counted by references: the callers', and one of each sandbox that needs it. */
typedef struct ph_snapshot ph_snapshot;

/**
 * Takes a snapshot of (sandbox), which must be ready and stays so. (*snapshot) is the caller's, to be closed
 * with ph_snapshot_close; it holds the image. Costs a copy of the pages that the guest has written so far.
 * Returns PH_E_MEMORY or PH_E_SYSTEM, after which the sandbox is ready as before, or a status of the
 * sandbox's state, as ph_call.
 */
PH_API ph_status ph_snapshot_take(ph_sandbox *sandbox, ph_snapshot **snapshot);

/**
 * Puts (sandbox) back to (snapshot): every page that the guest can write, every register. Heals a
 * poisoned sandbox, which is then ready; a new one need not be started. Strings and bytes of earlier results,
 * the sandbox's registered host functions, its output and its counts stay; input_bytes is read on from where
 * the snapshot's guest was. Functions that the guest has marked with PH_ON_RESTORE run at the begin of the
 * next call, within its time-out.
 *
 * Returns PH_E_SNAPSHOT when (snapshot) is of another image, another layout of memory (the config's memory,
 * stack, max_message and trace_ring, and whether it is traced) or other processor features, which the error
 * names, PH_E_BROKEN, PH_E_BUSY or PH_E_FORKED: nothing has happened then. PH_E_SYSTEM and PH_E_MEMORY leave
 * the sandbox broken.
 */
PH_API ph_status ph_sandbox_restore(ph_sandbox *sandbox, ph_snapshot *snapshot);

/**
 * Makes a sandbox that begins where (snapshot) was taken, and is ready. Sandboxes that are made so share the
 * pages that they have not written. (config) is as for ph_sandbox_create, but memory, stack, max_message and
 * trace_ring are the snapshot's by default; argv and envp have no effect. Host functions are registered
 * afterwards, before the first call, which returns PH_E_UNREGISTERED, and changes nothing, when one that the
 * image imports is missing.
 *
 * Returns PH_E_SNAPSHOT when the config or this machine does not fit the snapshot, else as ph_sandbox_create.
 */
PH_API ph_status ph_sandbox_create_from(ph_snapshot *snapshot, const ph_config *config, ph_sandbox **sandbox,
                                        ph_error *error);

/** Another reference to (snapshot), to be closed like the first. */
PH_API void ph_snapshot_retain(ph_snapshot *snapshot);

/** Gives up a reference to (snapshot), which may be NULL. Sandboxes keep what they need. */
PH_API void ph_snapshot_close(ph_snapshot *snapshot);

/** Bytes of host memory that the pages of (snapshot) take. */
PH_API uint64_t ph_snapshot_size(const ph_snapshot *snapshot);

#ifdef __cplusplus
}
#endif

#endif
