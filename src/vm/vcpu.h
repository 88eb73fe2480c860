/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * One vCPU, whatever runs it: the interface of a backend. Nothing of a particular hypervisor shows here.
 *
 * A vCPU is always seen from ring 3: (regs) are the guest's registers where its own code stands, also while
 * an exception is reported, and changing them moves the guest's own code. How ring 0 is entered and left is
 * the backend's business.
 *
 * Threads: one at a time, but for kick, which any thread and any signal handler may call.
 */
#ifndef PH_VM_VCPU_H
#define PH_VM_VCPU_H

#include "abi/monitor.h"
#include "vm/features.h"
#include "vm/memory.h"

#define PH__BACKEND_VERSION 4u

/* Why the vCPU came back. A backend need not have every kind: an emulator is never reset, and refuses a store
 * at once. */
enum ph__exit_kind {
    PH__EXIT_DOORBELL,  /* (operation); arguments and answer in the registers */
    PH__EXIT_EXCEPTION, /* (vector, error_code, address) as the page tables imply; (regs) are at the
                           instruction, but behind it for a trap (vectors 1, 3 and 4) */
    PH__EXIT_KICKED,    /* kick was called, or a signal may have come; nothing is lost, run again to go on */
    PH__EXIT_PROTOCOL,  /* an exit that no honest guest makes; (what) says which */
    PH__EXIT_MEMORY,    /* a store to memory that the guest may not write, past its page tables */
    PH__EXIT_SHUTDOWN,  /* triple fault: the processor was reset, (regs) mean nothing */
    PH__EXIT_FAILED,    /* the backend failed; (what) says how, (system_error) is errno or 0 */
};

struct ph__exit {
    enum ph__exit_kind kind;
    uint32_t operation;
    uint32_t vector;
    uint32_t error_code;
    uint64_t address;
    bool in_ring0; /* the exception came from ring 0 itself, or regs of a double fault: there is no way on */
    int system_error;
    const char *what; /* a constant */
};

/* All of a processor that code in ring 3 can change: a processor's part of a snapshot. Everything else is, in
 * every vCPU of a backend, as its start made it. No pointers, and the same for every backend. From a file it
 * is hostile until ph__processor_check has seen it. */
struct ph__processor {
    struct ph__regs regs;
    uint64_t fs_base, gs_base;
    uint16_t ds, es, fs, gs; /* selectors: of user data, user code, or null */
    uint32_t xsave_size;     /* bytes of (xsave) that mean something */
    uint32_t reserved;
    _Alignas(16) uint8_t xsave[4096]; /* the standard format of XSAVE (SDM volume 1, chapter 13.4) */
};

/* processor.c: whether (processor) is what ring 3 can have made of one whose XCR0 is (xcr0): PH_OK, or
 * PH_E_SNAPSHOT with what is wrong. What a backend refuses to load is no matter of this. Pure. */
ph_status ph__processor_check(const struct ph__processor *processor, uint64_t xcr0, ph_error *error);

/* The part of it that differs between machines and backends: whether all of the vector state is of components
 * in (xcr0). */
ph_status ph__processor_state_check(const struct ph__processor *processor, uint64_t xcr0, ph_error *error);

struct ph__vcpu;

struct ph__vcpu_options {
    struct ph__memory *memory;
    const struct ph__monitor_header *monitor; /* of the blob that is in (memory); it stays where it is */
    ph_diagnostics_fn diagnostics;
    void *diagnostics_context;
};

/* A backend: constant, shared by its vCPUs. (version) is PH__BACKEND_VERSION of the header that it was built
 * with. */
struct ph__backend {
    uint32_t version;
    const char *name;

    /* Whether this machine can have vCPUs, and runs a guest rightly. PH_E_BACKEND says why not. */
    ph_status (*probe)(ph_error *error);

    /* Makes a VM with one vCPU over (options)'s memory, whose page tables, tables and monitor are in place.
     * start must follow. PH_E_BACKEND when this machine cannot. */
    ph_status (*create)(const struct ph__vcpu_options *options, struct ph__vcpu **vcpu, ph_error *error);

    /* Frees the vCPU. (forked): in a child of the process that made it. */
    void (*destroy)(struct ph__vcpu *vcpu, bool forked);

    /* Sets the processor state of a new vCPU to that of a program about to start, with the general registers
     * (regs). Once for each vCPU. */
    ph_status (*start)(struct ph__vcpu *vcpu, const struct ph__regs *regs, ph_error *error);

    /* Runs until something happens, with (vcpu)->regs if they were marked as changed. */
    void (*run)(struct ph__vcpu *vcpu, struct ph__exit *exit);

    /* Stores (count) entries of the poke list into the page tables and flushes the translations. Only between
     * a doorbell's exit and the next run. */
    ph_status (*poke)(struct ph__vcpu *vcpu, uint32_t count, ph_error *error);

    /* Reads the processor's state. Only at a doorbell's exit, and the vCPU may be run on afterwards.
     * PH_E_SYSTEM. */
    ph_status (*save)(struct ph__vcpu *vcpu, struct ph__processor *processor, ph_error *error);

    /* Gives the vCPU the state (processor), which ph__processor_check finds right for its (xcr0), saved by
     * any backend. It may have come to any end, or be new, instead of start. (whole): write also what no
     * ring-3 code can have changed, as for a new one; the backend does so anyway after exits that call for
     * it. PH_E_SYSTEM. */
    ph_status (*load)(struct ph__vcpu *vcpu, const struct ph__processor *processor, bool whole,
                      ph_error *error);

    /* Makes the run under way, or else the next one, come back with PH__EXIT_KICKED. Async-signal-safe. A run
     * on another thread needs that thread's signal too: see sandbox/window.c. */
    void (*kick)(struct ph__vcpu *vcpu);

    /* Takes an earlier kick back. */
    void (*unkick)(struct ph__vcpu *vcpu);
};

/* What every backend's vCPU begins with. */
struct ph__vcpu {
    const struct ph__backend *backend;
    struct ph__regs *regs;
    bool regs_changed;  /* the caller sets it when it has changed (regs); run clears it */
    bool code_changed;  /* the caller sets it when it may have changed what the guest can execute, but by poke
                           or load; a backend that keeps translations of code clears it */
    uint64_t tsc_khz;   /* what the guest's time-stamp counter counts a millisecond; 0: as the host's does */
    int64_t tsc_offset; /* guest TSC minus host TSC */
    const struct ph__features *features; /* what the guest sees of the processor, constant */
    uint64_t xcr0;                       /* the state components that struct ph__processor can have here */
    bool shadow_paging; /* a page that the guest touches first costs a fault of the backend's own */
};

extern const struct ph__backend ph__backend_kvm;

/* What a plug-in with a backend exports for the library (plugin.c). */
extern const struct ph__backend ph__backend_plugin __attribute__((visibility("default")));

#endif
