/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a call may use, and what it has used: the counts that ph_sandbox_call_stats shows, from which the
 * limits of the configuration are kept. Reset at the beginning of each call, start and run; counted into by
 * the files that do the work; changed by the thread of the call alone.
 */
#ifndef PH_SANDBOX_LIMITS_H
#define PH_SANDBOX_LIMITS_H

#include <stdint.h>

#include <pinhole/pinhole.h>

#include "metrics/counts.h"
#include "vm/vcpu.h"

/* Exits are counted by what they are: doorbells by operation, and behind those the other kinds. An operation
 * that means nothing counts as number 0. */
#define PH__USED_DOORBELLS 16u
#define PH__USED_EXITS (PH__USED_DOORBELLS + PH__EXIT_FAILED + 1)

struct ph__used {
    uint64_t exits[PH__USED_EXITS];
    uint64_t begin;     /* host TSC of the first entry; 0: none yet */
    uint64_t processor; /* cycles: the vCPU running, and the host changing page tables for it */
    uint64_t host;      /* cycles in host functions */
    uint64_t sleep;     /* cycles asleep */
    uint64_t output_bytes;
    uint64_t host_calls;
    uint64_t pages_copied; /* by the restore before this call */
};

/* Its place in (exits), which is counted. */
static inline unsigned ph__used_count_exit(struct ph__used *used, const struct ph__exit *exit) {
    unsigned place = PH__USED_DOORBELLS + (unsigned)exit->kind;

    if (exit->kind == PH__EXIT_DOORBELL)
        place = exit->operation < PH__USED_DOORBELLS ? exit->operation : 0;
    used->exits[place]++;
    return place;
}

/* What users are shown of each place: an enum ph__counted_exit. */
extern const uint8_t ph__used_exit_shown[PH__USED_EXITS];

/* Takes the limits from the sandbox's configuration, when the speed of its clock is known. */
void ph__limits_init(ph_sandbox *sandbox);

/* A call, a start or a run begins: nothing is used yet. */
void ph__limits_begin(ph_sandbox *sandbox);

/* Only for a sandbox with a limit of processor time. Before an entry: ends the guest when nothing is left,
 * and else has the timer watch the vCPU for as long as something is. After it: the timer looks away. PH_OK to
 * go on. */
ph_status ph__limits_watch(ph_sandbox *sandbox);
void ph__limits_look_away(ph_sandbox *sandbox);
/* Ends the guest when it has used up its processor time. */
ph_status ph__limits_check_time(ph_sandbox *sandbox);

/* What the guest's end with (status), whose report is in the sandbox's error, is called: PH_E_MEMORY_LIMIT,
 * with the error changed accordingly, when memory was refused during this call and that may be why. */
ph_status ph__limits_blame_memory(ph_sandbox *sandbox, ph_status status);

/* How many of (size) more bytes of output the guest may still write. */
uint64_t ph__limits_output_left(const ph_sandbox *sandbox, uint64_t size);

#endif
