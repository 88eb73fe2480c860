/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The inside of a sandbox, for the files of this folder. Life and calls of one micro-VM: nothing here knows
 * what a vCPU runs on (vm/vcpu.h), and nothing outside looks in.
 *
 * The order of a call: acquire (busy, fork, state) -> window opens -> frame into the inbox -> enter (exits
 * are served until the doorbell that is waited for) -> frame out of the outbox -> window closes -> release.
 */
#ifndef PH_SANDBOX_SANDBOX_H
#define PH_SANDBOX_SANDBOX_H

#include <stdatomic.h>
#include <sys/types.h>

#include "abi/doorbell.h"
#include "abi/frame.h"
#include "abi/hot.h"
#include "base/process.h"
#include "metrics/counts.h"
#include "sandbox/files.h"
#include "sandbox/image.h"
#include "sandbox/limits.h"
#include "sandbox/window.h"
#include "trace/stream.h"
#include "vm/paging.h"
#include "vm/vcpu.h"

/* A host function as it was registered. */
struct ph__host_function {
    ph_host_fn function; /* NULL: not registered */
    void *context;
};

/* Output that is kept as bytes. */
struct ph__kept_output {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

struct ph_sandbox {
    ph_image *image;
    ph_config config; /* argv and envp point to copies, files to nothing */
    struct ph__memory memory;
    struct ph__files files;
    struct ph__vcpu *vcpu;
    struct ph__host_function *host_functions; /* by import */

    _Atomic ph_state state;
    atomic_bool busy;
    uint64_t owner; /* ph__process_id of the process that made it */
    struct ph__window window;
    uint64_t thread;         /* ph__process_thread_number of the last one that ran or restored the guest */
    uint64_t thread_changes; /* how often that was another one */

    ph_error error;        /* of the last failure */
    char poisoned_by[256]; /* what later calls are told */

    /* The last exception that was handed to the guest's own handler, for when that fails. */
    struct ph__exit handled_exception;
    struct ph__regs handled_regs;

    /* The frame that was copied out of the outbox last: results point into it. */
    uint8_t *received;
    size_t received_capacity;
    bool host_function_failed; /* during this call, and with which code */
    int32_t host_function_code;

    struct ph__stream *stream; /* NULL: not traced */
    struct ph__counts *counts; /* NULL: not counted among metrics */

    /* context.c. Who calls: as the configuration says, and as ph_sandbox_set_traceparent has said since. */
    struct ph__caller config_caller, own_caller;
    const struct ph__caller *caller; /* one of them */
    bool context_told;               /* the control page has a traceparent */

    struct ph__kept_output kept[2]; /* standard output, standard error */
    size_t input_taken;             /* bytes of the config's input_bytes that the guest has read */

    struct ph__restore *restore; /* snapshot.h; NULL: this sandbox has nothing to do with snapshots yet */
    atomic_bool unentered;       /* ready by way of a snapshot, and the host functions are not checked yet */
    uint64_t seed_generation;    /* the control page's */

    uint64_t clock_anchor; /* host TSC of the control page's clock */
    uint64_t tsc_khz;
    ph_stats stats;

    struct ph__used used;   /* by the last call, or the one under way */
    uint64_t pages_copied;  /* by restores since the last call */
    uint64_t processor_max; /* cycles a call; 0 is no limit */
    uint64_t output_max, host_calls_max;
};

/* sandbox.c: one thread at a time. acquire fails with PH_E_FORKED, PH_E_BUSY, PH_E_POISONED, PH_E_BROKEN or
 * PH_E_STATE (the state is not (wanted)); every success needs a release. */
ph_status ph__sandbox_acquire(ph_sandbox *sandbox, ph_state wanted, const char *what);
void ph__sandbox_release(ph_sandbox *sandbox);
/* The same for a restore, and what else any state will do for that is not broken; it is told in (*state). */
ph_status ph__sandbox_acquire_restore(ph_sandbox *sandbox, ph_state *state);

/* Counts that a call, start or run was not let in, for (status), which it returns. */
static inline ph_status ph__refused_count(const ph_sandbox *sandbox, ph_status status) {
    if (status != PH_E_FORKED)
        ph__count_shared(sandbox->config.metrics, ph__count_error_cell(status), 1);
    return status;
}

/* The calling thread runs or restores the guest now. */
static inline void ph__sandbox_note_thread(ph_sandbox *sandbox) {
    const uint64_t thread = ph__process_thread_number();

    sandbox->thread_changes += sandbox->thread != thread;
    sandbox->thread = thread;
}

/* Ends the guest's life: the state becomes poisoned (or broken for a failure of the host side) and later
 * calls are told why. Returns (status), which must be in the sandbox's error already, or what it comes to
 * (ph__limits_blame_memory). */
ph_status ph__sandbox_poison(ph_sandbox *sandbox, ph_status status);

/* start.c: fills the control page but for seed and trace. */
void ph__control_write(ph_sandbox *sandbox);
/* Puts a new seed into the control page, under (sandbox)'s seed_generation. PH_E_SYSTEM. */
ph_status ph__seed_renew(ph_sandbox *sandbox, ph_error *error);
/* PH_E_UNREGISTERED names the import that has no host function. */
ph_status ph__imports_check(ph_sandbox *sandbox);

/* enter.c: runs the vCPU and serves its exits until the doorbell (until) rings. PH_OK, or the status of what
 * ended the guest, already recorded and poisoned. */
ph_status ph__sandbox_enter(ph_sandbox *sandbox, enum ph__doorbell until);

/* receive.c: copies the frame in the outbox; (*received) is its head. What is no frame breaks the protocol,
 * and (what) says so; PH_E_MEMORY when there is no room for the copy. */
ph_status ph__frame_receive(ph_sandbox *sandbox, const char *what, const struct ph__frame **received);
/* Takes the (count) values of (types) from the received frame. */
bool ph__frame_values(const ph_sandbox *sandbox, const ph_type *types, size_t count, ph_value *values);
/* The message of a received ERROR frame, NULL if it has none. */
const char *ph__frame_message(const ph_sandbox *sandbox);

/* Boxes, by host address. */
static inline uint8_t *ph__box(const ph_sandbox *sandbox, unsigned index) {
    const struct ph__layout *layout = &sandbox->memory.layout;
    return sandbox->memory.base + layout->messages.offset + index * layout->box_size;
}
#define PH__BOX_IN 0u
#define PH__BOX_HOST_IN 1u
#define PH__BOX_OUT 2u

/* host_call.c: serves a HOST_CALL doorbell. PH_OK to go on. */
ph_status ph__host_call_serve(ph_sandbox *sandbox);

/* io.c: serve WRITE, READ and SLEEP. The answer goes into RAX. PH_OK to go on. */
ph_status ph__io_write(ph_sandbox *sandbox, uint64_t stream, uint64_t size);
ph_status ph__io_read(ph_sandbox *sandbox, uint64_t stream, uint64_t size);
/* Lets go of output that was kept. */
void ph__output_forget(ph_sandbox *sandbox);
ph_status ph__io_sleep(ph_sandbox *sandbox, uint64_t nanoseconds);

/* protect.c: serves a PROTECT doorbell. */
ph_status ph__protect_serve(ph_sandbox *sandbox, uint64_t gva, uint64_t size, uint64_t protection);

/* trace.c: checks what (config) says of tracing, and opens the sandbox's stream when it is traced. */
ph_status ph__trace_open(ph_sandbox *sandbox, ph_error *error);
/* Finds the guest's ring through its page tables, and begins to trace. */
ph_status ph__trace_attach(ph_sandbox *sandbox, ph_error *error);
/* Serves TRACE_BATCH. */
ph_status ph__trace_batch_serve(ph_sandbox *sandbox);

/* context.c: takes the configuration's context, whose texts the configuration then has no more. PH_E_MEMORY.
 */
ph_status ph__context_open(ph_sandbox *sandbox, ph_error *error);
void ph__context_close(ph_sandbox *sandbox);
/* Back to the configuration's, unless the sandbox is busy. */
void ph__context_forget(ph_sandbox *sandbox);
/* Puts the traceparent of what was begun into the control page, of a guest that can ask for it. Before the
 * guest is entered for it. */
void ph__context_tell(ph_sandbox *sandbox);
/* The traceparent of the innermost span that was begun, or else the caller's. False, and "", without. */
bool ph__context_write(const ph_sandbox *sandbox, char text[PH_TRACEPARENT_SIZE]);

/* zero.c: serves a ZERO doorbell. */
ph_status ph__zero_serve(ph_sandbox *sandbox, uint64_t gva, uint64_t size);

/* touch.c: has the host touch pages that the guest is about to, where that makes a start faster. */
void ph__touch_ahead(const ph_sandbox *sandbox);

/* fault.c: serves an exception: hands it to the guest's handler (PH_OK), or ends the guest. */
ph_status ph__fault_serve(ph_sandbox *sandbox, const struct ph__exit *exit);
/* Ends the guest for the exception that its handler could not be given. */
ph_status ph__fault_unhandled(ph_sandbox *sandbox);
/* Fills in rip and function of the sandbox's error: where the guest's own code is, also while it is in a
 * system call. */
void ph__fault_locate(ph_sandbox *sandbox);
/* The reasons that are no exception. */
ph_status ph__fault_protocol(ph_sandbox *sandbox, const char *what);
ph_status ph__fault_stopped(ph_sandbox *sandbox, ph_status status);

/* clock.c: host time-stamp counter, its conversion, and the control page's clock. */
uint64_t ph__clock_cycles(void);
/* Since (start); 0 when the counters of two processors differ by more than that. */
static inline uint64_t ph__clock_elapsed(uint64_t start) {
    uint64_t now = ph__clock_cycles();
    return now > start ? now - start : 0;
}
uint64_t ph__clock_ns(const ph_sandbox *sandbox, uint64_t cycles);
void ph__clock_renew(ph_sandbox *sandbox, uint64_t now);
void ph__clock_init(ph_sandbox *sandbox);

/* Answers the doorbell of the last exit. */
static inline void ph__answer(ph_sandbox *sandbox, int64_t value) {
    sandbox->vcpu->regs->rax = (uint64_t)value;
    sandbox->vcpu->regs_changed = true;
}

#endif
