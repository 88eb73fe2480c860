/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Starts, reads and writes the state of a vCPU (kvm_state.h). What ring 3 can change is all that a snapshot
 * keeps; everything else is a constant of ours, so nothing that a guest or a file says gets into it. Which
 * instructions of ring 3 change what is tested: tests/hostile/test_hostile_state.c.
 */
#include "vm/kvm_state.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/system.h"
#include "vm/boot.h"

/* Control registers and EFER (SDM volume 3, chapters 2.5 and 2.2.1). */
#define CR0_VALUE 0x80050033ull /* PG AM WP NE ET MP PE */
#define CR4_VALUE 0x50620ull    /* OSXSAVE FSGSBASE OSXMMEXCPT OSFXSR PAE */
#define EFER_VALUE 0xd01ull     /* NXE LMA LME SCE */
/* As after a reset (SDM volume 3, chapter 10.4.4): enabled, and the one processor that boots. */
#define APIC_BASE_VALUE 0xfee00900ull
/* As after a reset (SDM volume 3, table 10-1). */
#define DR6_VALUE 0xffff0ff0ull
#define DR7_VALUE 0x400ull
#define PAT_VALUE 0x0007040600070406ull

/* Intel SDM, volume 4, table 2-2; AMD APM, volume 2, appendix A. */
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_CSTAR 0xc0000083u
#define MSR_SFMASK 0xc0000084u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define MSR_TSC_AUX 0xc0000103u
#define MSR_SYSENTER_CS 0x174u
#define MSR_SYSENTER_ESP 0x175u
#define MSR_SYSENTER_EIP 0x176u
#define MSR_PAT 0x277u

/* Cleared by `syscall`: TF, IF, DF, IOPL, NT, AC. */
#define SFMASK_VALUE 0x47700ull

/* The header of an XSAVE image (SDM volume 1, chapter 13.4.2), in words of 32 bits. */
#define XSTATE_BV_WORD (512 / 4)
#define XSTATE_X87_SSE 0x3u
#define XSTATE_PKRU (1u << 9)

_Static_assert(sizeof(struct kvm_xsave) == sizeof((struct ph__processor *)0)->xsave,
               "one and the same image");

static ph_status failed(ph_error *error, const char *call) {
    int number = errno;
    return ph__error_set_system(error, number == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM, number, "%s failed",
                                call);
}

/* ---- segments and control registers -------------------------------------------------------------------- */

static struct kvm_segment segment(uint16_t selector, uint8_t type, bool code) {
    return (struct kvm_segment){
        .limit = 0xffffffff,
        .selector = selector,
        .type = type,
        .present = 1,
        .dpl = selector & 3,
        .db = !code,
        .s = 1,
        .l = code,
        .g = 1,
    };
}

/* What ring 3 has in DS, ES, FS or GS with (selector), and the base (base). */
static struct kvm_segment data_segment(uint16_t selector, uint64_t base) {
    struct kvm_segment made = {.selector = selector, .unusable = 1, .dpl = 3, .base = base};

    if (selector == PH__SELECTOR_USER_DATA)
        made = segment(selector, 3, false);
    else if (selector == PH__SELECTOR_USER_CODE)
        made = segment(selector, 11, true);
    made.base = base;
    return made;
}

void ph__kvm_ring_set(struct kvm_sregs *sregs, unsigned ring) {
    sregs->cs = segment(ring ? PH__SELECTOR_USER_CODE : PH__SELECTOR_KERNEL_CODE, 11, true);
    sregs->ss = segment(ring ? PH__SELECTOR_USER_DATA : PH__SELECTOR_KERNEL_DATA, 3, false);
}

void ph__kvm_tss_type_set(const struct ph__kvm_system *system, struct kvm_sregs *sregs) {
    sregs->tr.type = system->tss_type_available ? 9 : 11;
}

static ph_status set_sregs(const struct ph__kvm_target *target, const struct ph__processor *processor,
                           ph_error *error) {
    const uint64_t tables = PH__GVA(PH__TABLES_GPA);
    /* All that is not named is 0. There is no LDT: after reset there is one of 64 KiB at address 0, whose
     * descriptors would be the guest's to make. */
    struct kvm_sregs sregs = {.ldt.unusable = 1, .apic_base = APIC_BASE_VALUE};

    ph__kvm_ring_set(&sregs, 3);
    sregs.ds = data_segment(processor->ds, 0);
    sregs.es = data_segment(processor->es, 0);
    sregs.fs = data_segment(processor->fs, processor->fs_base);
    sregs.gs = data_segment(processor->gs, processor->gs_base);
    sregs.gdt = (struct kvm_dtable){.base = tables + PH__GDT_OFFSET, .limit = PH__GDT_SIZE - 1};
    sregs.idt = (struct kvm_dtable){.base = tables + PH__IDT_OFFSET, .limit = PH__IDT_SIZE - 1};
    sregs.tr = (struct kvm_segment){.base = tables + PH__TSS_OFFSET,
                                    .limit = PH__TSS_SIZE - 1,
                                    .selector = PH__SELECTOR_TSS,
                                    .present = 1};
    ph__kvm_tss_type_set(target->system, &sregs);
    sregs.cr0 = CR0_VALUE;
    sregs.cr3 = target->cr3;
    sregs.cr4 = CR4_VALUE;
    sregs.efer = EFER_VALUE;
    if (ph__system.ioctl(target->file, KVM_SET_SREGS, &sregs) == 0)
        return PH_OK;
    /* KVM refuses bits of CR4 that its processor lacks. KVM on PVM hides FSGSBASE in CPUID but has it, so
     * trying is the one way to know. */
    if (errno == EINVAL)
        return ph__error_set_system(
            error, PH_E_BACKEND, errno,
            "KVM refused the processor's start state; FSGSBASE may be missing (Ivy Bridge and "
            "newer have it)");
    return failed(error, "KVM_SET_SREGS");
}

static ph_status set_xcr0(const struct ph__kvm_target *target, ph_error *error) {
    struct kvm_xcrs xcrs = {.nr_xcrs = 1, .xcrs = {{.xcr = 0, .value = target->system->xcr0}}};
    return ph__system.ioctl(target->file, KVM_SET_XCRS, &xcrs) < 0 ? failed(error, "KVM_SET_XCRS") : PH_OK;
}

/* ---- model-specific registers -------------------------------------------------------------------------- */

static ph_status set_system_call(const struct ph__kvm_target *target, ph_error *error) {
    const uint64_t system_call = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->system_call;
    /* sysretq takes the user selectors from bits 63..48: data is 8 above it, code 16 (SDM volume 2, SYSRET).
     */
    const uint64_t star = (uint64_t)(PH__SELECTOR_USER_DATA - 8) << 48 | (uint64_t)PH__SELECTOR_KERNEL_CODE
                                                                             << 32;
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entries[3];
    } msrs = {
        .head.nmsrs = 3,
        .entries = {{.index = MSR_STAR, .data = star},
                    {.index = MSR_LSTAR, .data = system_call},
                    {.index = MSR_SFMASK, .data = SFMASK_VALUE}},
    };
    return ph__system.ioctl(target->file, KVM_SET_MSRS, &msrs) != 3 ? failed(error, "KVM_SET_MSRS") : PH_OK;
}

/* What a reset processor may have lost, or got, that no guest needs: as a new one has it. Not every KVM knows
 * all of these. */
static void reset_msrs(const struct ph__kvm_target *target) {
    static const struct kvm_msr_entry entries[] = {
        {.index = MSR_CSTAR},
        {.index = MSR_KERNEL_GS_BASE},
        {.index = MSR_TSC_AUX},
        {.index = MSR_SYSENTER_CS},
        {.index = MSR_SYSENTER_ESP},
        {.index = MSR_SYSENTER_EIP},
        {.index = MSR_PAT, .data = PAT_VALUE},
    };
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entry;
    } one = {.head.nmsrs = 1};

    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        one.entry = entries[i];
        (void)ph__system.ioctl(target->file, KVM_SET_MSRS, &one);
    }
}

static ph_status reset_events(const struct ph__kvm_target *target, ph_error *error) {
    const struct kvm_debugregs debugregs = {.dr6 = DR6_VALUE, .dr7 = DR7_VALUE};
    struct kvm_vcpu_events events;

    if (ph__system.ioctl(target->file, KVM_SET_DEBUGREGS, &debugregs) < 0)
        return failed(error, "KVM_SET_DEBUGREGS");
    /* Its flags say which fields this KVM has. */
    if (ph__system.ioctl(target->file, KVM_GET_VCPU_EVENTS, &events) < 0)
        return failed(error, "KVM_GET_VCPU_EVENTS");
    memset(&events.exception, 0, sizeof events.exception);
    memset(&events.interrupt, 0, sizeof events.interrupt);
    memset(&events.nmi, 0, sizeof events.nmi);
    memset(&events.smi, 0, sizeof events.smi);
    return ph__system.ioctl(target->file, KVM_SET_VCPU_EVENTS, &events) < 0
               ? failed(error, "KVM_SET_VCPU_EVENTS")
               : PH_OK;
}

/* ---- vectors ------------------------------------------------------------------------------------------- */

/* KVM here has been seen to refuse PKRU. */
static atomic_bool no_pkru;

static bool knows_no_pkru(void) {
    return atomic_load_explicit(&no_pkru, memory_order_relaxed);
}

/* A component whose bit is clear in the image gets its initial value, with two exceptions: MXCSR belongs to
 * no bit of its own, and PKRU stays what it is. So these bits are always set. KVM fills in what the bits that
 * it leaves clear stand for. Whether there is a PKRU is found out by writing: what was read can be written.
 */
static ph_status put_xsave(const struct ph__kvm_target *target, struct kvm_xsave *xsave, ph_error *error) {
    uint32_t *bits = &xsave->region[XSTATE_BV_WORD];
    const uint32_t without = (*bits | XSTATE_X87_SSE) & ~XSTATE_PKRU;

    if (!knows_no_pkru()) {
        *bits = without | XSTATE_PKRU;
        if (ph__system.ioctl(target->file, KVM_SET_XSAVE, xsave) == 0)
            return PH_OK;
        if (errno != EINVAL)
            return failed(error, "KVM_SET_XSAVE");
    }
    *bits = without; /* a processor without protection keys */
    if (ph__system.ioctl(target->file, KVM_SET_XSAVE, xsave) < 0)
        return failed(error, "KVM_SET_XSAVE");
    atomic_store_explicit(&no_pkru, true, memory_order_relaxed);
    return PH_OK;
}

static ph_status get_xsave(const struct ph__kvm_target *target, struct ph__processor *processor,
                           ph_error *error) {
    struct kvm_xsave xsave;

    if (ph__system.ioctl(target->file, KVM_GET_XSAVE, &xsave) < 0)
        return failed(error, "KVM_GET_XSAVE");
    ph_status status = put_xsave(target, &xsave, error);
    memcpy(processor->xsave, &xsave, sizeof xsave);
    processor->xsave_size = sizeof xsave;
    return status;
}

static ph_status set_xsave(const struct ph__kvm_target *target, const struct ph__processor *processor,
                           ph_error *error) {
    const bool has_pkru = processor->xsave[4 * XSTATE_BV_WORD + 1] & XSTATE_PKRU >> 8;
    struct kvm_xsave xsave;

    /* KVM reads it; the ioctl's argument has no const. */
    if (has_pkru != knows_no_pkru()) {
        if (ph__system.ioctl(target->file, KVM_SET_XSAVE, processor->xsave) == 0)
            return PH_OK;
        if (errno != EINVAL)
            return failed(error, "KVM_SET_XSAVE");
    }
    /* From a processor that has PKRU where this one has none, or the other way, and then it is 0. */
    memcpy(&xsave, processor->xsave, sizeof xsave);
    return put_xsave(target, &xsave, error);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* Everything but vectors, which are as a new vCPU has them. CR4.OSXSAVE goes before XCR0. */
static ph_status set_whole(const struct ph__kvm_target *target, const struct ph__processor *processor,
                           ph_error *error) {
    ph_status status = set_sregs(target, processor, error);

    if (status == PH_OK)
        status = set_xcr0(target, error);
    if (status == PH_OK)
        status = set_system_call(target, error);
    return status;
}

ph_status ph__kvm_state_start(const struct ph__kvm_target *target, ph_error *error) {
    static const struct ph__processor processor = {.ds = PH__SELECTOR_USER_DATA,
                                                   .es = PH__SELECTOR_USER_DATA,
                                                   .fs = PH__SELECTOR_USER_DATA,
                                                   .gs = PH__SELECTOR_USER_DATA};
    return set_whole(target, &processor, error);
}

ph_status ph__kvm_state_get(const struct ph__kvm_target *target, struct ph__processor *processor,
                            ph_error *error) {
    struct kvm_sregs sregs;

    if (ph__system.ioctl(target->file, KVM_GET_SREGS, &sregs) < 0)
        return failed(error, "KVM_GET_SREGS");
    processor->fs_base = sregs.fs.base;
    processor->gs_base = sregs.gs.base;
    processor->ds = sregs.ds.selector;
    processor->es = sregs.es.selector;
    processor->fs = sregs.fs.selector;
    processor->gs = sregs.gs.selector;
    return get_xsave(target, processor, error);
}

ph_status ph__kvm_state_set(const struct ph__kvm_target *target, const struct ph__processor *processor,
                            bool whole, bool used, ph_error *error) {
    ph_status status = whole ? set_whole(target, processor, error) : set_sregs(target, processor, error);

    if (status == PH_OK && whole && used) {
        reset_msrs(target);
        status = reset_events(target, error);
    }
    return status == PH_OK ? set_xsave(target, processor, error) : status;
}
