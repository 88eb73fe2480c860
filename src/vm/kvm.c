/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The KVM backend: one VM, one vCPU, run through KVM_RUN with the registers shared (KVM_CAP_SYNC_REGS), since
 * each ioctl of its own costs as much as several calls' worth of host work. Interface: vcpu.h. Facts about
 * KVM are from the kernel's Documentation/virt/kvm/api.rst unless said otherwise.
 *
 * Where the processor stands after an `out` differs: some KVMs report RIP behind it, some on it. Nothing here
 * depends on which.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "abi/doorbell.h"
#include "abi/hot.h"
#include "base/error.h"
#include "base/system.h"
#include "vm/boot.h"
#include "vm/kvm_probe.h"
#include "vm/kvm_state.h"
#include "vm/kvm_system.h"
#include "vm/paging.h"
#include "vm/vcpu.h"

/* struct ph__regs is struct kvm_regs, so that (regs) can point into struct kvm_run. */
_Static_assert(sizeof(struct ph__regs) == sizeof(struct kvm_regs), "same registers in the same order");
_Static_assert(offsetof(struct ph__regs, rsp) == offsetof(struct kvm_regs, rsp), "same order");
_Static_assert(offsetof(struct ph__regs, rflags) == offsetof(struct kvm_regs, rflags), "same order");

#define MSR_TSC 0x10u

#define RFLAGS_FIXED 0x2ull
#define RFLAGS_TRAP 0x100ull
/* What a program may set for itself: status flags, DF, TF, AC, ID. */
#define RFLAGS_USER 0x250dd5ull
/* What an exception pushes, behind the error code that every stub has seen to. */
struct exception_frame {
    uint64_t error_code;
    uint64_t rip;
    uint64_t cs;
    uint64_t rflags;
    uint64_t rsp;
    uint64_t ss;
};

struct kvm_vcpu {
    struct ph__vcpu vcpu;
    const struct ph__kvm_system *system;
    struct ph__memory *memory;
    int vm;
    int file;
    struct kvm_run *run;
    /* While an exception is open, (frame) is its place on the ring-0 stack and vcpu.regs points at (user),
     * the registers as ring 3 left them. Otherwise vcpu.regs points into (run). */
    struct exception_frame *frame;
    struct ph__regs user;
    bool entered; /* it has run */
    bool settled; /* the last exit was a doorbell's */
    bool unusual; /* something else than doorbells and kicks came since the state was last written as a whole
                   */
};

static struct ph__regs *shared_regs(struct kvm_vcpu *vcpu) {
    return (struct ph__regs *)&vcpu->run->s.regs.regs;
}

static ph_status failed(ph_error *error, const char *call) {
    int number = errno;
    return ph__error_set_system(error, number == ENOMEM ? PH_E_MEMORY : PH_E_SYSTEM, number, "%s failed",
                                call);
}

/* ---- making and freeing -------------------------------------------------------------------------------- */

static ph_status add_slot(struct kvm_vcpu *vcpu, uint32_t slot, uint64_t gpa, uint64_t offset, uint64_t size,
                          ph_error *error) {
    struct kvm_userspace_memory_region region = {
        .slot = slot,
        .guest_phys_addr = gpa,
        .memory_size = size,
        .userspace_addr = (uint64_t)(vcpu->memory->base + offset),
    };
    return ph__system.ioctl(vcpu->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0
               ? failed(error, "KVM_SET_USER_MEMORY_REGION")
               : PH_OK;
}

static ph_status add_memory(struct kvm_vcpu *vcpu, ph_error *error) {
    uint64_t size = vcpu->memory->layout.size;
    uint64_t low = size < PH__HOLE_GPA ? size : PH__HOLE_GPA;
    ph_status status = add_slot(vcpu, 0, 0, 0, low, error);

    if (status == PH_OK && size > low)
        status = add_slot(vcpu, 1, PH__HIGH_GPA, low, size - low, error);
    return status;
}

/* Turns on what makes a VM safer, or tells the user of the library that it is not there. None of it is
 * needed. */
static void enable(int file, const struct kvm_enable_cap *capability, const struct ph__vcpu_options *options,
                   const char *without) {
    if (ph__system.ioctl(file, KVM_ENABLE_CAP, capability) != 0 && options->diagnostics)
        options->diagnostics(options->diagnostics_context, without);
}

static void harden(struct kvm_vcpu *vcpu, const struct ph__vcpu_options *options) {
    const struct kvm_enable_cap quirks = {.cap = KVM_CAP_DISABLE_QUIRKS2,
                                          .args = {KVM_X86_QUIRK_FIX_HYPERCALL_INSN}};
    const struct kvm_enable_cap bus_lock = {.cap = KVM_CAP_X86_BUS_LOCK_EXIT,
                                            .args = {KVM_BUS_LOCK_DETECTION_EXIT}};
    const struct kvm_enable_cap pv_cpuid = {.cap = KVM_CAP_ENFORCE_PV_FEATURE_CPUID, .args = {1}};

    enable(vcpu->vm, &quirks, options,
           "KVM here cannot be kept from patching hypercall instructions of guests");
    enable(vcpu->vm, &bus_lock, options,
           "KVM here does not notice bus locks: a guest can slow its neighbours down");
#ifdef KVM_CAP_X86_NOTIFY_VMEXIT
    const struct kvm_enable_cap notify = {
        .cap = KVM_CAP_X86_NOTIFY_VMEXIT,
        .args = {(uint64_t)100000 << 32 | KVM_X86_NOTIFY_VMEXIT_ENABLED | KVM_X86_NOTIFY_VMEXIT_USER},
    };
    enable(vcpu->vm, &notify, options,
           "KVM here does not notice a processor that a guest keeps from interrupts");
#endif
    enable(vcpu->file, &pv_cpuid, options,
           "KVM here does not enforce that guests see no paravirtual features");
}

/* Makes the guest's TSC the host's where KVM lets us, and learns the difference where it does not. */
static void synchronise_tsc(struct kvm_vcpu *vcpu) {
    uint64_t zero = 0;
    struct kvm_device_attr offset = {
        .group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET, .addr = (uint64_t)(uintptr_t)&zero};
    /* Asked of the VM, which is cheap; before Linux 5.18 only a vCPU knows. */
    int khz = ph__system.ioctl(vcpu->vm, KVM_GET_TSC_KHZ, 0);

    if (khz <= 0)
        khz = ph__system.ioctl(vcpu->file, KVM_GET_TSC_KHZ, 0);
    vcpu->vcpu.tsc_khz = khz > 0 ? (uint64_t)khz : 0;
    vcpu->vcpu.tsc_offset = 0;
    if (ph__system.ioctl(vcpu->file, KVM_SET_DEVICE_ATTR, &offset) == 0)
        return;
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entries[1];
    } msrs = {.head.nmsrs = 1, .entries = {{.index = MSR_TSC}}};
    uint64_t before = __rdtsc();
    if (ph__system.ioctl(vcpu->file, KVM_GET_MSRS, &msrs) == 1)
        vcpu->vcpu.tsc_offset = (int64_t)(msrs.entries[0].data - (before + __rdtsc()) / 2);
}

static void kvm_destroy(struct ph__vcpu *base, bool forked) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;

    if (!forked && vcpu->run)
        ph__system.munmap(vcpu->run, (size_t)vcpu->system->vcpu_mapping_size);
    if (vcpu->file >= 0)
        ph__system.close(vcpu->file);
    if (vcpu->vm >= 0)
        ph__system.close(vcpu->vm);
    free(vcpu);
}

static ph_status make_vm(struct kvm_vcpu *vcpu, int kvm, const struct ph__vcpu_options *options,
                         ph_error *error) {
    ph_status status;

    vcpu->vm = ph__system.ioctl(kvm, KVM_CREATE_VM, 0);
    if (vcpu->vm < 0)
        return failed(error, "KVM_CREATE_VM");
    /* VMX without unrestricted guest needs three pages for this; they go into the hole. Others do not care.
     */
    ph__system.ioctl(vcpu->vm, KVM_SET_TSS_ADDR, 0xfffbd000ul);
    status = add_memory(vcpu, error);
    if (status != PH_OK)
        return status;

    vcpu->file = ph__system.ioctl(vcpu->vm, KVM_CREATE_VCPU, 0);
    if (vcpu->file < 0)
        return failed(error, "KVM_CREATE_VCPU");
    size_t size = (size_t)vcpu->system->vcpu_mapping_size;
    void *run = ph__system.mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->file, 0);
    if (run == MAP_FAILED)
        return failed(error, "mapping the vCPU");
    vcpu->run = run;
    if (ph__system.madvise(run, size, MADV_DONTFORK) != 0)
        return failed(error, "keeping the vCPU from children");
    harden(vcpu, options);
    if (ph__system.ioctl(vcpu->file, KVM_SET_CPUID2, &vcpu->system->cpuid) < 0)
        return failed(error, "KVM_SET_CPUID2");
    synchronise_tsc(vcpu);
    vcpu->vcpu.shadow_paging = vcpu->system->shadow_paging;
    vcpu->vcpu.features = &vcpu->system->features;
    vcpu->vcpu.xcr0 = vcpu->system->xcr0;
    vcpu->run->kvm_valid_regs = KVM_SYNC_X86_REGS;
    vcpu->vcpu.regs = shared_regs(vcpu);
    return PH_OK;
}

static ph_status kvm_create(const struct ph__vcpu_options *options, struct ph__vcpu **result,
                            ph_error *error) {
    int kvm;
    ph_status status = ph__kvm_open(&kvm, error);

    if (status != PH_OK)
        return status;
    struct kvm_vcpu *vcpu = calloc(1, sizeof *vcpu);
    if (!vcpu) {
        status = ph__error_set(error, PH_E_MEMORY, "no memory for a vCPU");
        goto close_kvm;
    }
    vcpu->vcpu.backend = &ph__backend_kvm;
    vcpu->memory = options->memory;
    vcpu->vm = vcpu->file = -1;
    status = ph__kvm_system(kvm, &vcpu->system, error);
    if (status == PH_OK)
        status = make_vm(vcpu, kvm, options, error);
    if (status == PH_OK)
        *result = &vcpu->vcpu;
    else
        kvm_destroy(&vcpu->vcpu, false);
close_kvm:
    ph__system.close(kvm);
    return status;
}

static ph_status kvm_probe(ph_error *error) {
    const struct ph__kvm_system *system;
    int kvm;
    ph_status status = ph__kvm_open(&kvm, error);

    if (status != PH_OK)
        return status;
    status = ph__kvm_system(kvm, &system, error);
    ph__system.close(kvm);
    return status == PH_OK ? ph__kvm_probe(error) : status;
}

/* ---- processor state ----------------------------------------------------------------------------------- */

static struct ph__kvm_target target_of(const struct kvm_vcpu *vcpu) {
    return (struct ph__kvm_target){
        .file = vcpu->file, .system = vcpu->system, .cr3 = ph__paging_root(vcpu->memory).value};
}

static ph_status kvm_start(struct ph__vcpu *base, const struct ph__regs *regs, ph_error *error) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;
    const struct ph__kvm_target target = target_of(vcpu);
    ph_status status = ph__kvm_state_start(&target, error);

    if (status == PH_OK) {
        *shared_regs(vcpu) = *regs;
        shared_regs(vcpu)->rflags = RFLAGS_FIXED;
        base->regs_changed = true;
    }
    return status;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static uint64_t stubs_gva(void) {
    return PH__GVA(PH__MONITOR_GPA) + ph__monitor()->stubs;
}

/* The window is asked for first, since it is a constant: a call then never looks at the monitor's header. */
static bool in_stubs(uint64_t rip) {
    return rip >= PH__WINDOW_GVA && rip >= stubs_gva() &&
           rip < PH__GVA(PH__MONITOR_GPA) + ph__monitor()->text;
}

/* The frame of the exception whose stub runs, from the stack pointer that it runs on. The stack is the
 * guest's memory, though only ring 0 can write it: the position is checked. NULL when it is on neither ring-0
 * stack. */
static struct exception_frame *frame_at(struct kvm_vcpu *vcpu, uint64_t rsp) {
    const uint64_t stacks[] = {PH__RING0_STACK_GPA, PH__IST_STACK_GPA};

    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        uint64_t start = PH__GVA(stacks[i]);
        if (rsp >= start && rsp <= start + PH__PAGE_SIZE - sizeof(struct exception_frame) && rsp % 8 == 0)
            return (struct exception_frame *)(vcpu->memory->base + (rsp - PH__WINDOW_GVA));
    }
    return NULL;
}

/* Opens the exception whose stub the vCPU is in: from here on (regs) are ring 3's. False when its frame is
 * not where it should be. */
static bool open_exception(struct kvm_vcpu *vcpu) {
    struct exception_frame *frame = frame_at(vcpu, shared_regs(vcpu)->rsp);
    if (!frame)
        return false;
    vcpu->frame = frame;
    vcpu->user = *shared_regs(vcpu);
    vcpu->user.rip = frame->rip;
    vcpu->user.rsp = frame->rsp;
    vcpu->user.rflags = frame->rflags;
    vcpu->vcpu.regs = &vcpu->user;
    return true;
}

/* Puts (user) where the stub's iretq takes it from. */
static void close_exception(struct kvm_vcpu *vcpu) {
    struct ph__regs *regs = shared_regs(vcpu);

    vcpu->frame->rip = vcpu->user.rip;
    vcpu->frame->rsp = vcpu->user.rsp;
    vcpu->frame->rflags = (vcpu->user.rflags & RFLAGS_USER) | RFLAGS_FIXED;
    uint64_t stack = regs->rsp;
    *regs = vcpu->user;
    regs->rsp = stack;
    regs->rip = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->exception_return;
    regs->rflags = RFLAGS_FIXED;
    vcpu->vcpu.regs_changed = true;
}

static void report_exception(struct kvm_vcpu *vcpu, struct ph__exit *exit) {
    uint64_t stub = (shared_regs(vcpu)->rip - stubs_gva()) / PH__STUB_SIZE;

    if (stub >= PH__STUB_COUNT || !open_exception(vcpu)) {
        exit->kind = PH__EXIT_PROTOCOL;
        exit->what = "an exception inside ring 0, away from its stacks";
        return;
    }
    exit->kind = PH__EXIT_EXCEPTION;
    exit->vector = (uint32_t)stub;
    exit->error_code = (uint32_t)vcpu->frame->error_code;
    exit->in_ring0 = (vcpu->frame->cs & 3) == 0;
    if (exit->vector == 14) {
        struct kvm_sregs sregs;
        if (ph__system.ioctl(vcpu->file, KVM_GET_SREGS, &sregs) == 0)
            exit->address = sregs.cr2;
    }
}

/* Whether the exit is a 32-bit `out` to the doorbell's port. A single `outs` looks the same but for the word
 * that it puts out, which comes from memory; one that puts out EAX is as good as `out`. */
static bool is_doorbell(const struct kvm_vcpu *vcpu) {
    const struct kvm_run *run = vcpu->run;
    uint32_t word;

    if (run->io.direction != KVM_EXIT_IO_OUT || run->io.size != sizeof word || run->io.count != 1 ||
        run->io.port != PH__DOORBELL_PORT)
        return false;
    memcpy(&word, (const uint8_t *)run + run->io.data_offset, sizeof word);
    return word == (uint32_t)run->s.regs.regs.rax;
}

static void report_io(struct kvm_vcpu *vcpu, struct ph__exit *exit) {
    if (!is_doorbell(vcpu)) {
        exit->kind = PH__EXIT_PROTOCOL;
        exit->what = "an I/O instruction other than the doorbell";
    } else if (in_stubs(shared_regs(vcpu)->rip)) {
        report_exception(vcpu, exit);
    } else {
        exit->kind = PH__EXIT_DOORBELL;
        exit->operation = (uint32_t)shared_regs(vcpu)->rax;
    }
}

static void report_failed(struct ph__exit *exit, int system_error, const char *what) {
    exit->kind = PH__EXIT_FAILED;
    exit->system_error = system_error;
    exit->what = what;
}

/* A kick can land in a stub. Show ring 3's registers then too; the vCPU itself stays where it is. */
static void report_kick(struct kvm_vcpu *vcpu, struct ph__exit *exit) {
    exit->kind = PH__EXIT_KICKED;
    const struct exception_frame *frame =
        in_stubs(shared_regs(vcpu)->rip) ? frame_at(vcpu, shared_regs(vcpu)->rsp) : NULL;
    if (frame) {
        vcpu->user = *shared_regs(vcpu);
        vcpu->user.rip = frame->rip;
        vcpu->user.rsp = frame->rsp;
        vcpu->vcpu.regs = &vcpu->user;
    }
}

static void report_exit(struct kvm_vcpu *vcpu, struct ph__exit *exit) {
    switch (vcpu->run->exit_reason) {
    case KVM_EXIT_IO:
        report_io(vcpu, exit);
        break;
    case KVM_EXIT_SHUTDOWN:
        exit->kind = PH__EXIT_SHUTDOWN;
        break;
    case KVM_EXIT_INTERNAL_ERROR:
        exit->kind = PH__EXIT_PROTOCOL;
        exit->what = "an instruction that KVM could not run (internal error)";
        break;
    case KVM_EXIT_FAIL_ENTRY:
        report_failed(exit, 0, "the processor refused to enter the guest");
        break;
    case KVM_EXIT_MMIO:
        exit->kind = PH__EXIT_PROTOCOL;
        exit->what = "an access to physical memory that does not exist";
        break;
    default:
        exit->kind = PH__EXIT_PROTOCOL;
        exit->what = "an exit of a kind that no honest guest makes";
        break;
    }
}

/* Exits that only tell us that the guest wastes time: it may. */
static bool is_harmless(const struct kvm_run *run) {
#ifdef KVM_EXIT_NOTIFY
    if (run->exit_reason == KVM_EXIT_NOTIFY)
        return !(run->notify.flags & KVM_NOTIFY_CONTEXT_INVALID);
#endif
    return run->exit_reason == KVM_EXIT_X86_BUS_LOCK;
}

static void mark_regs(struct kvm_vcpu *vcpu) {
    if (vcpu->vcpu.regs_changed)
        vcpu->run->kvm_dirty_regs = KVM_SYNC_X86_REGS;
    vcpu->vcpu.regs_changed = false;
}

/* What a restore has to know of (exit). */
PH__HOT static void note_exit(struct kvm_vcpu *vcpu, const struct ph__exit *exit) {
    vcpu->settled = exit->kind == PH__EXIT_DOORBELL;
    if (!vcpu->settled && exit->kind != PH__EXIT_KICKED)
        vcpu->unusual = true;
}

PH__HOT static void kvm_enter(struct ph__vcpu *base, struct ph__exit *exit) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;

    *exit = (struct ph__exit){0};
    if (vcpu->frame)
        close_exception(vcpu);
    vcpu->frame = NULL;
    base->regs = shared_regs(vcpu);
    mark_regs(vcpu);
    do {
        if (ph__system.ioctl(vcpu->file, KVM_RUN, 0) == 0)
            continue;
        if (errno == EINTR || errno == EAGAIN)
            report_kick(vcpu, exit);
        else if (errno == EFAULT)
            exit->kind = PH__EXIT_MEMORY;
        else
            report_failed(exit, errno, "KVM_RUN failed");
        return;
    } while (is_harmless(vcpu->run));
    report_exit(vcpu, exit);
}

PH__HOT static void kvm_run(struct ph__vcpu *base, struct ph__exit *exit) {
    ((struct kvm_vcpu *)base)->entered = true;
    kvm_enter(base, exit);
    note_exit((struct kvm_vcpu *)base, exit);
}

static void kvm_kick(struct ph__vcpu *base) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;
    __atomic_store_n(&vcpu->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
}

static void kvm_unkick(struct ph__vcpu *base) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;
    __atomic_store_n(&vcpu->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
}

/* ---- changing page tables ------------------------------------------------------------------------------ */

/* Lets KVM finish the `out` of the last exit, so that what it still owes the guest (RIP behind the
 * instruction) is not done to registers that are put in meanwhile. Keeps a kick that came. */
static ph_status complete_exit(struct kvm_vcpu *vcpu, ph_error *error) {
    uint8_t kicked = __atomic_exchange_n(&vcpu->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
    mark_regs(vcpu);
    int result = ph__system.ioctl(vcpu->file, KVM_RUN, 0);
    int number = errno;

    /* A kick between the two stores is lost here, but its caller has marked the call first: see
     * sandbox/window.c.
     */
    __atomic_store_n(&vcpu->run->immediate_exit, kicked, __ATOMIC_SEQ_CST);
    if (result < 0 && number == EINTR)
        return PH_OK;
    errno = result < 0 ? number : EPROTO;
    return failed(error, "KVM_RUN to complete an exit");
}

/* Behind the exception stubs: an exception in ring 0 is not taken for the end of the stores. */
static bool in_poke(uint64_t rip) {
    return rip >= PH__GVA(PH__MONITOR_GPA) + ph__monitor()->poke && in_stubs(rip);
}

/* Runs ring 0 at the poke stub until its doorbell. A signal may come in between. */
static ph_status run_poke(struct kvm_vcpu *vcpu, uint32_t count, ph_error *error) {
    *shared_regs(vcpu) = (struct ph__regs){
        .rip = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->poke,
        .rdi = PH__GVA(PH__POKES_GPA),
        .rcx = count,
        .rsp = PH__GVA(PH__RING0_STACK_GPA) + PH__PAGE_SIZE,
        .rflags = RFLAGS_FIXED,
    };
    vcpu->vcpu.regs_changed = true;
    mark_regs(vcpu);
    while (ph__system.ioctl(vcpu->file, KVM_RUN, 0) < 0) {
        if (errno != EINTR && errno != EAGAIN)
            return failed(error, "KVM_RUN to change page tables");
        kvm_unkick(&vcpu->vcpu);
    }
    if (vcpu->run->exit_reason != KVM_EXIT_IO || !in_poke(shared_regs(vcpu)->rip)) {
        errno = EPROTO;
        return failed(error, "changing page tables");
    }
    return complete_exit(vcpu, error);
}

static ph_status kvm_poke(struct ph__vcpu *base, uint32_t count, ph_error *error) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;
    struct kvm_sregs sregs;
    ph_status status = complete_exit(vcpu, error);

    if (status != PH_OK)
        return status;
    struct ph__regs regs = *shared_regs(vcpu);
    if (ph__system.ioctl(vcpu->file, KVM_GET_SREGS, &sregs) < 0)
        return failed(error, "KVM_GET_SREGS");
    struct kvm_sregs ring0 = sregs;
    ph__kvm_ring_set(&ring0, 0);
    ph__kvm_tss_type_set(vcpu->system, &ring0);
    if (ph__system.ioctl(vcpu->file, KVM_SET_SREGS, &ring0) < 0)
        return failed(error, "KVM_SET_SREGS");
    status = run_poke(vcpu, count, error);
    if (status != PH_OK)
        return status;
    ph__kvm_tss_type_set(vcpu->system, &sregs);
    if (ph__system.ioctl(vcpu->file, KVM_SET_SREGS, &sregs) < 0)
        return failed(error, "KVM_SET_SREGS");
    *shared_regs(vcpu) = regs;
    base->regs_changed = true;
    return PH_OK;
}

/* ---- snapshots ----------------------------------------------------------------------------------------- */

static ph_status kvm_save(struct ph__vcpu *base, struct ph__processor *processor, ph_error *error) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;
    const struct ph__kvm_target target = target_of(vcpu);
    ph_status status = complete_exit(vcpu, error);

    if (status == PH_OK)
        status = ph__kvm_state_get(&target, processor, error);
    if (status == PH_OK)
        processor->regs = *shared_regs(vcpu);
    return status;
}

/* The most turns that it takes to be done with an exit whatever it is: an access to memory that is not there
 * comes in pieces. */
#define DISCARD_TURNS 64

/* Lets KVM finish what it still owes the last exit, on registers that nobody needs any more. With RCX at 1 a
 * repeated instruction is over with the element under way. At 0 KVM would not begin it again, and so never
 * take what it has asked for: a repeated `ins` would ask for ever. */
static ph_status discard_exit(struct kvm_vcpu *vcpu, ph_error *error) {
    ph_status status = PH_OK;

    vcpu->frame = NULL;
    vcpu->vcpu.regs = shared_regs(vcpu);
    for (int turn = 0; turn < DISCARD_TURNS; turn++) {
        shared_regs(vcpu)->rcx = 1;
        vcpu->vcpu.regs_changed = true;
        status = complete_exit(vcpu, error);
        if (status == PH_OK)
            break;
    }
    return status;
}

static ph_status kvm_load(struct ph__vcpu *base, const struct ph__processor *processor, bool whole,
                          ph_error *error) {
    struct kvm_vcpu *vcpu = (struct kvm_vcpu *)base;
    const struct ph__kvm_target target = target_of(vcpu);
    /* A step that is due behind the last doorbell goes into DR6 when the exit is completed. */
    bool stepped = shared_regs(vcpu)->rflags & RFLAGS_TRAP;
    bool unusual = whole || vcpu->unusual || !vcpu->settled || stepped;
    ph_status status = vcpu->entered ? discard_exit(vcpu, error) : PH_OK;

    if (status == PH_OK)
        status = ph__kvm_state_set(&target, processor, unusual, vcpu->entered, error);
    if (status != PH_OK)
        return status;
    *shared_regs(vcpu) = processor->regs;
    base->regs_changed = true;
    vcpu->unusual = false;
    vcpu->settled = true;
    return PH_OK;
}

const struct ph__backend ph__backend_kvm = {
    .version = PH__BACKEND_VERSION,
    .name = "kvm",
    .probe = kvm_probe,
    .create = kvm_create,
    .destroy = kvm_destroy,
    .start = kvm_start,
    .run = kvm_run,
    .poke = kvm_poke,
    .save = kvm_save,
    .load = kvm_load,
    .kick = kvm_kick,
    .unkick = kvm_unkick,
};
