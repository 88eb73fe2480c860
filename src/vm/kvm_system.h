/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What this machine's KVM offers: asked once for a process, then constant. Used by kvm.c for every VM and by
 * `pinhole doctor`.
 */
#ifndef PH_VM_KVM_SYSTEM_H
#define PH_VM_KVM_SYSTEM_H

#include <linux/kvm.h>

#include <pinhole/pinhole.h>

#include "vm/features.h"

#define PH__CPUID_MAX 256u

struct ph__kvm_system {
    int vcpu_mapping_size;        /* bytes of struct kvm_run's mapping */
    uint64_t xcr0;                /* the state components that guests get */
    struct ph__features features; /* what guests see, which on PVM is more than (cpuid) and (xcr0) */
    bool shadow_paging;           /* KVM keeps page tables of its own beside the guest's */
    bool tss_type_available;      /* see kvm_system.c: QEMU's emulated SVM wants another TSS type */
    struct {
        struct kvm_cpuid2 head;
        struct kvm_cpuid_entry2 entries[PH__CPUID_MAX];
    } cpuid; /* for KVM_SET_CPUID2, filtered */
};

/* Opens /dev/kvm, CLOEXEC. PH_E_BACKEND with what to do about it when that fails. */
ph_status ph__kvm_open(int *file, ph_error *error);

/* The facts, asked through (file) the first time. PH_E_BACKEND names what is missing. */
ph_status ph__kvm_system(int file, const struct ph__kvm_system **system, ph_error *error);

#endif
