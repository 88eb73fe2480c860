/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The state of a vCPU beside its general registers: as a guest starts with it, as a snapshot keeps it, and as
 * it is put back. Only kvm.c uses this.
 */
#ifndef PH_VM_KVM_STATE_H
#define PH_VM_KVM_STATE_H

#include <linux/kvm.h>

#include "vm/kvm_system.h"
#include "vm/vcpu.h"

/* A vCPU to read from or write to. */
struct ph__kvm_target {
    int file;
    const struct ph__kvm_system *system;
    uint64_t cr3;
};

/* Makes code and stack segment of (sregs) those of ring (ring), 0 or 3. */
void ph__kvm_ring_set(struct kvm_sregs *sregs, unsigned ring);

/* The task register reads back in another form than some KVMs take it. */
void ph__kvm_tss_type_set(const struct ph__kvm_system *system, struct kvm_sregs *sregs);

/* The state in which a guest starts, in ring 3, but for the general registers. PH_E_BACKEND when this
 * processor cannot run guests, PH_E_SYSTEM. */
ph_status ph__kvm_state_start(const struct ph__kvm_target *target, ph_error *error);

/* Reads what ring 3 can have changed into (processor) but for (regs). The vCPU has no exit left to complete.
 * PH_E_SYSTEM. */
ph_status ph__kvm_state_get(const struct ph__kvm_target *target, struct ph__processor *processor,
                            ph_error *error);

/* Gives the vCPU (processor) but for (regs). (whole): and everything else as it was at its start, as for a
 * new one; (used): it has run, and was perhaps reset. PH_E_SYSTEM. */
ph_status ph__kvm_state_set(const struct ph__kvm_target *target, const struct ph__processor *processor,
                            bool whole, bool used, ph_error *error);

#endif
