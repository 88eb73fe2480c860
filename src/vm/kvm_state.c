/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads and writes the state of a vCPU (kvm_state.h). What one KVM has and another has not (an MSR,
 * protection keys) is found out when a state is read, by writing it back: a state that was read can be
 * written.
 */
#include "vm/kvm_state.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/error.h"

/* Intel SDM, volume 4, table 2-2; AMD APM, volume 2, appendix A. The first ones every KVM has: without them a
 * reset processor would have no system calls. */
#define MSRS_NEEDED 3u
static const uint32_t msr_numbers[] = {
    0xc0000081, /* STAR */
    0xc0000082, /* LSTAR */
    0xc0000084, /* SFMASK */
    0xc0000083, /* CSTAR */
    0xc0000102, /* KERNEL_GS_BASE */
    0xc0000103, /* TSC_AUX */
    0x174,      /* SYSENTER_CS */
    0x175,      /* SYSENTER_ESP */
    0x176,      /* SYSENTER_EIP */
    0x277,      /* PAT */
};
_Static_assert(sizeof msr_numbers / sizeof msr_numbers[0] <= PH__KVM_MSRS_MAX, "there is room for all");

/* The header of an XSAVE image (SDM volume 1, chapter 13.4.2), in words of 32 bits. */
#define XSTATE_BV_WORD (512 / 4)
#define XSTATE_X87_SSE 0x3u
#define XSTATE_PKRU (1u << 9)

static ph_status failed(ph_error *error, const char *call) {
    return ph__error_set_system(error, PH_E_SYSTEM, errno, "%s failed", call);
}

static ph_status get_msrs(int file, struct ph__kvm_state *state, ph_error *error) {
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entries[1];
    } one = {.head.nmsrs = 1};

    for (size_t i = 0; i < sizeof msr_numbers / sizeof msr_numbers[0]; i++) {
        one.entries[0] = (struct kvm_msr_entry){.index = msr_numbers[i]};
        if (ioctl(file, KVM_GET_MSRS, &one) == 1 && ioctl(file, KVM_SET_MSRS, &one) == 1)
            state->msrs.entries[state->msrs.head.nmsrs++] = one.entries[0];
        else if (i < MSRS_NEEDED)
            return failed(error, "reading the processor's registers for system calls");
    }
    return PH_OK;
}

/* A component whose bit is clear in the image gets its initial value, with two exceptions: MXCSR belongs to
 * no bit of its own, and PKRU stays what it is. So these bits are always set. KVM fills in what the bits that
 * it leaves clear stand for. */
static ph_status get_xsave(int file, struct ph__kvm_state *state, ph_error *error) {
    uint32_t *bits = &state->xsave.region[XSTATE_BV_WORD];

    if (ioctl(file, KVM_GET_XSAVE, &state->xsave) < 0)
        return failed(error, "KVM_GET_XSAVE");
    uint32_t without = *bits | XSTATE_X87_SSE;
    *bits = without | XSTATE_PKRU;
    if (ioctl(file, KVM_SET_XSAVE, &state->xsave) == 0)
        return PH_OK;
    if (errno != EINVAL)
        return failed(error, "KVM_SET_XSAVE");
    *bits = without; /* a processor without protection keys */
    return ioctl(file, KVM_SET_XSAVE, &state->xsave) < 0 ? failed(error, "KVM_SET_XSAVE") : PH_OK;
}

ph_status ph__kvm_state_get(int file, struct ph__kvm_state *state, ph_error *error) {
    memset(state, 0, sizeof *state);
    if (ioctl(file, KVM_GET_SREGS, &state->sregs) < 0)
        return failed(error, "KVM_GET_SREGS");
    if (ioctl(file, KVM_GET_XCRS, &state->xcrs) < 0)
        return failed(error, "KVM_GET_XCRS");
    if (ioctl(file, KVM_GET_DEBUGREGS, &state->debugregs) < 0)
        return failed(error, "KVM_GET_DEBUGREGS");
    if (ioctl(file, KVM_GET_VCPU_EVENTS, &state->events) < 0)
        return failed(error, "KVM_GET_VCPU_EVENTS");
    ph_status status = get_msrs(file, state, error);
    return status == PH_OK ? get_xsave(file, state, error) : status;
}

ph_status ph__kvm_state_set(int file, const struct ph__kvm_state *state, bool whole, ph_error *error) {
    /* KVM reads these; the ioctls' argument has no const. CR4.OSXSAVE goes before XCR0, XCR0 before what it
     * lets in. */
    if (ioctl(file, KVM_SET_SREGS, &state->sregs) < 0)
        return failed(error, "KVM_SET_SREGS");
    if (whole && ioctl(file, KVM_SET_XCRS, &state->xcrs) < 0)
        return failed(error, "KVM_SET_XCRS");
    if (ioctl(file, KVM_SET_XSAVE, &state->xsave) < 0)
        return failed(error, "KVM_SET_XSAVE");
    if (!whole)
        return PH_OK;
    if (ioctl(file, KVM_SET_MSRS, &state->msrs) != (int)state->msrs.head.nmsrs)
        return failed(error, "KVM_SET_MSRS");
    if (ioctl(file, KVM_SET_DEBUGREGS, &state->debugregs) < 0)
        return failed(error, "KVM_SET_DEBUGREGS");
    if (ioctl(file, KVM_SET_VCPU_EVENTS, &state->events) < 0)
        return failed(error, "KVM_SET_VCPU_EVENTS");
    return PH_OK;
}
