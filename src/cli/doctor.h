/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What `pinhole doctor` finds out (doctor_facts.c, doctor_program.c, doctor_vcpu.c) and says (doctor.c).
 */
#ifndef PH_CLI_DOCTOR_H
#define PH_CLI_DOCTOR_H

#include <sys/utsname.h>

#include <pinhole/pinhole.h>

/* A capability of KVM that a VM needs, or that makes it better. */
struct ph__capability {
    const char *name;
    const char *use; /* what it is for */
    unsigned long number;
    bool needed;
    int value; /* of KVM_CHECK_EXTENSION */
};

#define PH__CAPABILITIES_MAX 16

struct ph__doctor {
    struct utsname kernel;

    /* Whether the kvm backend works, shown by a program that it ran; (error) says why not. */
    bool usable;
    ph_error error;
    uint64_t exit_ns; /* one exit from ring 3 and back */

    /* The same of the soft backend. */
    struct {
        bool usable;
        ph_error error;
        uint64_t exit_ns;
    } soft;

    /* doctor_facts.c */
    bool open; /* /dev/kvm could be opened */
    int api_version;
    const char *module; /* the part of KVM for this processor; NULL when it does not show */
    struct ph__capability capabilities[PH__CAPABILITIES_MAX];
    size_t capability_count;
    bool has_vmx, has_svm; /* the processor offers hardware virtualization to this kernel */
    bool is_virtual;       /* this machine is itself a virtual one */
    bool tsc_invariant;

    /* doctor_vcpu.c, where (measured) */
    bool measured;
    double ring0_instruction_ns;
    bool ring0_native;
    uint64_t tsc_khz;
    bool tsc_offset_settable;
    uint64_t run_ns, moved_run_ns; /* a run on the same thread as before, and on another */
};

/* Fills in everything that needs no VM. */
void ph__doctor_facts(struct ph__doctor *doctor);

/* Runs a program of a few instructions through the library, on each backend: sets (usable), (error),
 * (exit_ns) and (soft). */
void ph__doctor_program(struct ph__doctor *doctor);

/* Measures on a VM of a few instructions, made with KVM directly: sets (measured) and what follows it. */
void ph__doctor_vcpu(struct ph__doctor *doctor);

#endif
