/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The state of a vCPU beside its general registers, as the KVM backend keeps it in a snapshot. Only kvm.c
 * uses this; to everybody else it is a block of bytes.
 */
#ifndef PH_VM_KVM_STATE_H
#define PH_VM_KVM_STATE_H

#include <linux/kvm.h>

#include <pinhole/pinhole.h>

#include "abi/monitor.h"

#define PH__KVM_MSRS_MAX 16u

struct ph__kvm_state {
    struct ph__regs regs;
    struct kvm_sregs sregs;
    struct kvm_xcrs xcrs;
    struct kvm_xsave xsave;
    struct kvm_debugregs debugregs;
    struct kvm_vcpu_events events;
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entries[PH__KVM_MSRS_MAX];
    } msrs; /* those that this KVM has */
};

/* Fills all of (state) but (regs) from the vCPU (file), which has no exit left to complete. PH_E_SYSTEM. */
ph_status ph__kvm_state_get(int file, struct ph__kvm_state *state, ph_error *error);

/* Gives the vCPU (state) but for (regs): all of it, or unless (whole) only what ring 3 can change. */
ph_status ph__kvm_state_set(int file, const struct ph__kvm_state *state, bool whole, ph_error *error);

#endif
