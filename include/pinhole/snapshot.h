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
 * Returns PH_E_MEMORY or PH_E_SYSTEM, or PH_E_FILE when the sandbox lies on a snapshot's file that has lost
 * pages, after which the sandbox is ready as before; or a status of the sandbox's state, as ph_call.
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
 * stack, max_message and trace_ring, and whether it is traced), other files (their paths, their order, or how
 * many whole 2 MiB each takes), or needs features that the processor here does not have, which the error
 * names, PH_E_BROKEN, PH_E_BUSY or PH_E_FORKED: nothing has happened then. PH_E_SYSTEM and PH_E_MEMORY leave
 * the sandbox broken. PH_E_FILE, when (snapshot)'s file cannot be read or has lost pages, leaves it poisoned:
 * it can be restored to another snapshot.
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

/** How ph_snapshot_load gets at the pages of a file. */
typedef enum ph_snapshot_mode {
    /** Mapped from the file: only what guests touch is read. The file must not change while it is in use; a
       page that it has lost by then ends the call that needs it, with a status. */
    PH_SNAPSHOT_MAP = 0,
    /** Copied, and all of it checked, before a guest sees any. The file is not needed afterwards. */
    PH_SNAPSHOT_COPY = 1,
} ph_snapshot_mode;

/**
 * Writes (snapshot) to the file (path), which is replaced at once or not at all: a temporary file beside it
 * is written, synced and renamed, and the folder synced. What is there already has to be a regular file, and
 * no link to one. Host functions, files and config are not in it.
 * docs/snapshots.md describes the format. Returns PH_E_ARGUMENT, PH_E_FILE (with errno, if there is one; when
 * it was the folder that could not be synced, the new file is there), PH_E_MEMORY, PH_E_SYSTEM, PH_E_FORKED.
 */
PH_API ph_status ph_snapshot_save(ph_snapshot *snapshot, const char *path, ph_error *error);

/**
 * Opens the file (path) that ph_snapshot_save has written, for sandboxes of (image). Header, tables and
 * registers are read and checked in both modes, the content of pages in PH_SNAPSHOT_COPY, or later by
 * ph_snapshot_verify: until then it is what any hostile guest could have left there, which harms the guest
 * alone. (*snapshot) is the caller's, to be closed with ph_snapshot_close.
 *
 * Returns PH_E_FILE (cannot be opened or read), PH_E_SNAPSHOT (no snapshot, damaged, of another version, of
 * another image, page size or ABI: the error names which), PH_E_ARGUMENT, PH_E_MEMORY or PH_E_SYSTEM. Whether
 * a sandbox's processor has what the snapshot needs shows when there is one.
 */
PH_API ph_status ph_snapshot_load(ph_image *image, const char *path, ph_snapshot_mode mode,
                                  ph_snapshot **snapshot, ph_error *error);

/**
 * Reads all pages of a loaded (snapshot) and compares them with the file's digest. PH_OK also for one that
 * never was in a file. PH_E_SNAPSHOT when they differ or are missing, PH_E_FILE when the file cannot be read,
 * PH_E_ARGUMENT, PH_E_FORKED.
 */
PH_API ph_status ph_snapshot_verify(ph_snapshot *snapshot, ph_error *error);

/** What the head of a snapshot's file says. Begin with PH_SNAPSHOT_INFO_INIT. */
typedef struct ph_snapshot_info {
    /** sizeof(ph_snapshot_info) of the caller's header. */
    size_t size;
    /** Versions: of the file's format, and of the interface between host and guest. */
    uint32_t format, abi;
    /** The identity of the image: its build-id, or the SHA-256 of its content, in (image_id_size) bytes. */
    bool image_id_is_build_id;
    uint32_t image_id_size;
    uint8_t image_id[64];
    /** What the image was called. */
    char image_name[256];
    /** What the guest has seen its processor have, as names of the Intel SDM with spaces between them. */
    char features[1024];
    /** What it has seen as XCR0; 0 without XSAVE. */
    uint64_t xcr0;
    /** Bytes: the config's memory, stack, max_message and trace_ring (0: not traced), of the file window, of
       the file itself. */
    uint64_t memory, stack, max_message, trace_ring, files, file_size;
    /** Pages in it, and bytes of one. */
    uint64_t pages, page_size;
    /** Nanoseconds since 1970 when it was saved. */
    uint64_t saved_ns;
} ph_snapshot_info;

#define PH_SNAPSHOT_INFO_INIT                                                                                \
    { sizeof(ph_snapshot_info), 0, 0, false, 0, {0}, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Reads and checks header and tables of the file (path) into (info), and with (verify) the content of all
 * pages. Neither image nor KVM is needed. Returns as ph_snapshot_load. (info) holds what could be read also
 * when the content is damaged.
 */
PH_API ph_status ph_snapshot_examine(const char *path, bool verify, ph_snapshot_info *info, ph_error *error);

/** Another reference to (snapshot), to be closed like the first. */
PH_API void ph_snapshot_retain(ph_snapshot *snapshot);

/** Gives up a reference to (snapshot), which may be NULL. Sandboxes keep what they need. */
PH_API void ph_snapshot_close(ph_snapshot *snapshot);

/** Bytes of the pages of (snapshot), those among them that it shares with the one it was taken on. */
PH_API uint64_t ph_snapshot_size(const ph_snapshot *snapshot);

#ifdef __cplusplus
}
#endif

#endif
