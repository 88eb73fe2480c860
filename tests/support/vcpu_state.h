/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * All that KVM tells of a vCPU, read past the library: for tests that compare a processor with what it was.
 * Only of a vCPU that stands still, at any exit. The test must have one sandbox with a vCPU at a time. On the
 * soft backend there is nothing beyond ring 3, and the backend itself says what is in it.
 */
#ifndef PH_TESTS_VCPU_STATE_H
#define PH_TESTS_VCPU_STATE_H

#include <dirent.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sandbox/sandbox.h"
#include "support/support.h"

#define VCPU_MSRS_MAX 512u

struct vcpu_state {
    struct ph__processor saved; /* as the backend saves it, by vcpu_state_get alone */
    /* From here on KVM's own, and zero on the soft backend. */
    struct kvm_regs regs;
    struct kvm_sregs sregs;
    struct kvm_xcrs xcrs;
    struct kvm_xsave xsave;
    struct kvm_debugregs debugregs;
    struct kvm_vcpu_events events;
    uint32_t msr_count;
    struct kvm_msr_entry msrs[VCPU_MSRS_MAX];
};

/* The descriptor of this process's one vCPU. */
static inline int vcpu_file(void) {
    DIR *folder = opendir("/proc/self/fd");
    int file = -1;

    assert_non_null(folder);
    /* cppcheck-suppress readdirCalled ; no other thread has this folder */
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char link[64] = "";
        if (readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1) < 0 ||
            strncmp(link, "anon_inode:kvm-vcpu", 19) != 0)
            continue;
        assert_int_equal(file, -1);
        file = (int)strtol(entry->d_name, NULL, 10);
    }
    closedir(folder);
    assert_true(file >= 0);
    return file;
}

/* Reads every MSR that KVM lists and this vCPU has, one by one. */
static inline void vcpu_msrs_get(int file, struct vcpu_state *state) {
    struct {
        struct kvm_msr_list head;
        uint32_t indices[VCPU_MSRS_MAX];
    } list = {.head.nmsrs = VCPU_MSRS_MAX};
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entries[1];
    } one = {.head.nmsrs = 1};
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

    assert_true(kvm >= 0);
    assert_int_equal(ioctl(kvm, KVM_GET_MSR_INDEX_LIST, &list), 0);
    close(kvm);
    state->msr_count = 0;
    for (uint32_t i = 0; i < list.head.nmsrs; i++) {
        one.entries[0] = (struct kvm_msr_entry){.index = list.indices[i]};
        if (ioctl(file, KVM_GET_MSRS, &one) == 1)
            state->msrs[state->msr_count++] = one.entries[0];
    }
    assert_true(state->msr_count >= 4);
}

/* Fills (state) with what KVM holds at the last exit, whatever that was. */
static inline void vcpu_state_get_raw(struct vcpu_state *state) {
    memset(state, 0, sizeof *state);
    if (test_is_soft())
        return;
    int file = vcpu_file();
    assert_int_equal(ioctl(file, KVM_GET_REGS, &state->regs), 0);
    assert_int_equal(ioctl(file, KVM_GET_SREGS, &state->sregs), 0);
    assert_int_equal(ioctl(file, KVM_GET_XCRS, &state->xcrs), 0);
    assert_int_equal(ioctl(file, KVM_GET_XSAVE, &state->xsave), 0);
    assert_int_equal(ioctl(file, KVM_GET_DEBUGREGS, &state->debugregs), 0);
    assert_int_equal(ioctl(file, KVM_GET_VCPU_EVENTS, &state->events), 0);
    vcpu_msrs_get(file, state);
}

/* The same after a restore. What that has put where the next entry takes it from is in it: the backend's save
 * brings it to KVM first. */
static inline void vcpu_state_get(const ph_sandbox *sandbox, struct vcpu_state *state) {
    struct ph__vcpu *vcpu = sandbox->vcpu;
    static struct ph__processor saved; /* what no save writes is zero in all of them */
    ph_error error;

    if (vcpu->backend->save(vcpu, &saved, &error) != PH_OK)
        fail_msg("saving the processor: %s", error.message);
    vcpu_state_get_raw(state);
    state->saved = saved;
}

/* Whether an MSR counts by itself or is about time. */
static inline bool vcpu_msr_moves(uint32_t index) {
    return index == 0x10 || index == 0x3b || index == 0x6e0 || /* TSC, TSC_ADJUST, TSC_DEADLINE */
           index == 0x40000010 || index == 0x40000020 ||       /* Hyper-V's run time and reference time */
           (index >= 0x4b564d00 && index <= 0x4b564dff) || index == 0x11 || index == 0x12; /* KVM's own */
}

static inline void vcpu_same(const char *what, const char *part, const void *before, const void *after,
                             size_t size) {
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)before)[i] != ((const uint8_t *)after)[i])
            fail_msg("%s: %s differs at byte %zu of %zu: 0x%02x, was 0x%02x", what, part, i, size,
                     ((const uint8_t *)after)[i], ((const uint8_t *)before)[i]);
}

#define VCPU_SAME(what, before, after, field)                                                                \
    vcpu_same(what, #field, &(before)->field, &(after)->field, sizeof(before)->field)

/* What no code in ring 3 can change is as it was: control registers, tables, task, MSRs, XCR0, breakpoints.
 * Code and stack segment are those of the ring that the vCPU stands in, and are left out. */
static inline void vcpu_same_beyond_ring_3(const char *what, const struct vcpu_state *before,
                                           const struct vcpu_state *after) {
    VCPU_SAME(what, before, after, sregs.cr0);
    VCPU_SAME(what, before, after, sregs.cr3);
    VCPU_SAME(what, before, after, sregs.cr4);
    VCPU_SAME(what, before, after, sregs.cr8);
    VCPU_SAME(what, before, after, sregs.efer);
    VCPU_SAME(what, before, after, sregs.apic_base);
    VCPU_SAME(what, before, after, sregs.gdt);
    VCPU_SAME(what, before, after, sregs.idt);
    VCPU_SAME(what, before, after, sregs.ldt);
    VCPU_SAME(what, before, after, sregs.tr);
    VCPU_SAME(what, before, after, sregs.interrupt_bitmap);
    VCPU_SAME(what, before, after, xcrs);
    VCPU_SAME(what, before, after, debugregs.db);
    VCPU_SAME(what, before, after, debugregs.dr7);
    VCPU_SAME(what, before, after, msr_count);
    for (uint32_t i = 0; i < before->msr_count; i++) {
        assert_int_equal(before->msrs[i].index, after->msrs[i].index);
        if (before->msrs[i].data != after->msrs[i].data && !vcpu_msr_moves(before->msrs[i].index))
            fail_msg("%s: MSR 0x%x is 0x%llx, was 0x%llx", what, before->msrs[i].index,
                     (unsigned long long)after->msrs[i].data, (unsigned long long)before->msrs[i].data);
    }
}

/* All of it is as it was, after a restore. */
static inline void vcpu_same_all(const char *what, const struct vcpu_state *before,
                                 const struct vcpu_state *after) {
    struct kvm_xsave vectors = after->xsave;

    if (test_is_soft()) {
        VCPU_SAME(what, before, after, saved);
        return;
    }
    vcpu_same_beyond_ring_3(what, before, after);
    VCPU_SAME(what, before, after, regs);
    VCPU_SAME(what, before, after, sregs.cs);
    VCPU_SAME(what, before, after, sregs.ss);
    VCPU_SAME(what, before, after, sregs.ds);
    VCPU_SAME(what, before, after, sregs.es);
    VCPU_SAME(what, before, after, sregs.fs);
    VCPU_SAME(what, before, after, sregs.gs);
    VCPU_SAME(what, before, after, sregs.cr2);
    VCPU_SAME(what, before, after, debugregs);
    VCPU_SAME(what, before, after, events);
    /* Which components are in their initial state is up to the processor. */
    vectors.region[128] = before->xsave.region[128];
    vcpu_same(what, "xsave", &before->xsave, &vectors, sizeof vectors);
}

#endif
