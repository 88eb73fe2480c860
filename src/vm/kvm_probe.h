/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The smallest VM there is: one vCPU in flat 32-bit mode with one page of code, which counts down and exits.
 * It shows whether KVM runs anything at all, and `pinhole doctor` measures with it.
 */
#ifndef PH_VM_KVM_PROBE_H
#define PH_VM_KVM_PROBE_H

#include <linux/kvm.h>

#include <pinhole/pinhole.h>

#define PH__PROBE_INSTRUCTIONS_PER_ROUND 2

struct ph__probe {
    int kvm, vm, vcpu;
    uint8_t *memory;
    struct kvm_run *run;
    size_t run_size;
};

/* Makes it; ph__probe_free follows in any case. PH_E_BACKEND says what does not work. */
ph_status ph__probe_make(struct ph__probe *probe, ph_error *error);
void ph__probe_free(struct ph__probe *probe);

/* Runs to the next exit, with (count) rounds of the loop, at least 1. Whether that went as it should. */
bool ph__probe_run(struct ph__probe *probe, uint32_t count);

/* All of it, once for each process. PH_E_BACKEND. */
ph_status ph__kvm_probe(ph_error *error);

#endif
