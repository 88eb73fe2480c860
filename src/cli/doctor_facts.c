/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The part of `pinhole doctor` that only asks: kernel, processor, /dev/kvm. Numbers of capabilities are from
 * linux/kvm.h, CPUID leaves from the Intel SDM (volume 2, CPUID) and the AMD manual (volume 3, appendix E).
 */
#include <cpuid.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "trace/clock.h"
#include "vm/kvm_system.h"

/* Newer than the oldest header that we build with. */
#ifndef KVM_CAP_X86_NOTIFY_VMEXIT
#define KVM_CAP_X86_NOTIFY_VMEXIT 219
#endif

static const struct ph__capability list[] = {
    {"KVM_CAP_USER_MEMORY", "memory of a VM", KVM_CAP_USER_MEMORY, true, 0},
    {"KVM_CAP_IMMEDIATE_EXIT", "interrupts and time-outs", KVM_CAP_IMMEDIATE_EXIT, true, 0},
    {"KVM_CAP_SYNC_REGS", "registers without a system call", KVM_CAP_SYNC_REGS, true, 0},
    {"KVM_CAP_XCRS", "AVX in guests", KVM_CAP_XCRS, true, 0},
    {"KVM_CAP_XSAVE", "AVX in guests", KVM_CAP_XSAVE, true, 0},
    {"KVM_CAP_GET_TSC_KHZ", "clocks in guests", KVM_CAP_GET_TSC_KHZ, false, 0},
    {"KVM_CAP_VCPU_ATTRIBUTES", "one time scale for host and guest", KVM_CAP_VCPU_ATTRIBUTES, false, 0},
    {"KVM_CAP_DISABLE_QUIRKS2", "no patching of guest code", KVM_CAP_DISABLE_QUIRKS2, false, 0},
    {"KVM_CAP_ENFORCE_PV_FEATURE_CPUID", "no paravirtual extras", KVM_CAP_ENFORCE_PV_FEATURE_CPUID, false, 0},
    {"KVM_CAP_X86_BUS_LOCK_EXIT", "a limit to bus locks", KVM_CAP_X86_BUS_LOCK_EXIT, false, 0},
    {"KVM_CAP_X86_NOTIFY_VMEXIT", "a limit to interrupt storms", KVM_CAP_X86_NOTIFY_VMEXIT, false, 0},
};

#define LIST_COUNT (sizeof list / sizeof list[0])
_Static_assert(LIST_COUNT <= PH__CAPABILITIES_MAX, "room for every capability");

static void ask_kvm(struct ph__doctor *doctor) {
    int file;

    if (ph__kvm_open(&file, NULL) != PH_OK)
        return;
    doctor->open = true;
    doctor->api_version = ioctl(file, KVM_GET_API_VERSION, 0);
    if (doctor->api_version == KVM_API_VERSION)
        doctor->capability_count = LIST_COUNT;
    for (size_t i = 0; i < doctor->capability_count; i++) {
        doctor->capabilities[i] = list[i];
        doctor->capabilities[i].value = ioctl(file, KVM_CHECK_EXTENSION, list[i].number);
    }
    close(file);
}

static const char *find_module(void) {
    static const struct {
        const char *path, *name;
    } modules[] = {
        {"/sys/module/kvm_intel", "kvm_intel"},
        {"/sys/module/kvm_amd", "kvm_amd"},
        {"/sys/module/kvm_pvm", "kvm_pvm"},
    };

    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (access(modules[i].path, F_OK) == 0)
            return modules[i].name;
    return NULL;
}

static void ask_processor(struct ph__doctor *doctor) {
    uint32_t eax, ebx, ecx, edx;

    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        doctor->has_vmx = ecx >> 5 & 1;
        doctor->is_virtual = ecx >> 31 & 1;
    }
    if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx))
        doctor->has_svm = ecx >> 2 & 1;
    doctor->tsc_invariant = ph__trace_clock_is_invariant();
}

void ph__doctor_facts(struct ph__doctor *doctor) {
    if (uname(&doctor->kernel) != 0)
        memset(&doctor->kernel, 0, sizeof doctor->kernel);
    doctor->module = find_module();
    ask_processor(doctor);
    ask_kvm(doctor);
}
