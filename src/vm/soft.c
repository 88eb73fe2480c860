/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The soft backend: an emulated processor, the Unicorn Engine, for machines without KVM. It makes no promise
 * of isolation: a bug of the emulator is a bug in the host's own process (docs/security.md). Interface:
 * vcpu.h; parts: soft_parts.h. Built as a plug-in, pinhole-soft.so, since Unicorn is under the GPL; the
 * library finds it by the symbol at the end (plugin.c).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/doorbell.h"
#include "base/error.h"
#include "vm/soft_parts.h"

#define XCR0_X87_SSE 0x3ull
#define RFLAGS_TRAP 0x100ull
#define RFLAGS_FIXED 0x2ull
#define SFMASK_VALUE 0x47700ull /* what `syscall` clears, as in kvm_state.c */

#define VECTOR_DEBUG 1u

/* Where nothing is run. */
#define END_GVA (PH__SOFT_CODE_GVA + PH__SOFT_END)

#define DOORBELL_SIZE 2u

/* code, data, stand-in */
#define OWN_PAGES_SIZE (PH__SOFT_STAND_IN + PH__PAGE_SIZE)

/* ---- making and freeing -------------------------------------------------------------------------------- */

static void close_engine(struct ph__soft_vcpu *vcpu) {
    if (vcpu->context)
        uc_context_free(vcpu->context);
    vcpu->context = NULL;
    if (vcpu->engine)
        uc_close(vcpu->engine);
    vcpu->engine = NULL;
    vcpu->buffer = (struct ph__soft_buffer){0}; /* gone, and blocks run before there is a new one */
    vcpu->doorbell_count = 0;
    vcpu->stand_in = PH__SOFT_NO_PAGE;
    ph__soft_mirror_free(vcpu);
    ph__soft_tables_free(vcpu);
}

static void soft_destroy(struct ph__vcpu *base, bool forked) {
    struct ph__soft_vcpu *vcpu = (struct ph__soft_vcpu *)base;

    (void)forked; /* all of it is memory of the process */
    close_engine(vcpu);
    free(vcpu->pages);
    free(vcpu);
}

static ph_status make_pages(struct ph__soft_vcpu *vcpu, ph_error *error) {
    vcpu->pages = aligned_alloc(PH__PAGE_SIZE, OWN_PAGES_SIZE);
    if (!vcpu->pages)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a vCPU");
    memset(vcpu->pages, 0, OWN_PAGES_SIZE);
    return PH_OK;
}

static ph_status prepare_engine(struct ph__soft_vcpu *vcpu, ph_error *error) {
    uc_err failed = uc_open(UC_ARCH_X86, UC_MODE_64, &vcpu->engine);

    if (failed != UC_ERR_OK)
        return ph__error_set(error, failed == UC_ERR_NOMEM ? PH_E_MEMORY : PH_E_BACKEND,
                             "Unicorn does not open: %s", uc_strerror(failed));
    ph_status status = ph__soft_prepare(vcpu, error);
    if (status == PH_OK)
        status = ph__soft_hook(vcpu, error);
    if (status == PH_OK)
        status = ph__soft_boot(vcpu, error);
    return status == PH_OK ? ph__soft_mirror(vcpu, true, error) : status;
}

static ph_status open_engine(struct ph__soft_vcpu *vcpu, ph_error *error) {
    ph_status status = ph__soft_buffer_reserve(error);

    if (status != PH_OK)
        return status;
    status = prepare_engine(vcpu, error);
    ph__soft_buffer_find(vcpu);
    return status;
}

/* A new engine in the place of one that is of no more use. */
static ph_status renew(struct ph__soft_vcpu *vcpu, ph_error *error) {
    close_engine(vcpu);
    ph_status status = open_engine(vcpu, error);
    vcpu->given_up = status != PH_OK;
    return status;
}

static void ask_cpuid(const void *context, uint32_t leaf, uint32_t index, uint32_t words[4]) {
    (void)context;
    ph__soft_cpuid(leaf, index, words);
}

static struct ph__features shown;

static void read_features(void) {
    ph__features_read(ask_cpuid, NULL, 0, &shown);
}

/* What CPUID shows; there is no XGETBV, and no component that XSAVE would put anywhere. */
static const struct ph__features *features(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_features);
    return &shown;
}

/* Creating an engine finds out what there is to find out. */
static ph_status soft_probe(ph_error *error) {
    (void)error;
    return PH_OK;
}

static ph_status soft_create(const struct ph__vcpu_options *options, struct ph__vcpu **result,
                             ph_error *error) {
    struct ph__soft_vcpu *vcpu = calloc(1, sizeof *vcpu);

    if (!vcpu)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a vCPU");
    vcpu->vcpu.backend = &ph__backend_plugin;
    vcpu->vcpu.regs = &vcpu->regs;
    vcpu->memory = options->memory;
    vcpu->monitor = options->monitor;
    vcpu->vcpu.features = features();
    vcpu->vcpu.xcr0 = XCR0_X87_SSE;
    vcpu->stand_in = PH__SOFT_NO_PAGE;
    ph_status status = make_pages(vcpu, error);
    if (status == PH_OK)
        status = open_engine(vcpu, error);
    if (status == PH_OK)
        *result = &vcpu->vcpu;
    else
        soft_destroy(&vcpu->vcpu, false);
    return status;
}

static ph_status soft_start(struct ph__vcpu *base, const struct ph__regs *regs, ph_error *error) {
    struct ph__soft_vcpu *vcpu = (struct ph__soft_vcpu *)base;
    /* As a new processor has them: MXCSR_DEFAULT, FCW after FNINIT. */
    static const struct ph__processor processor = {
        .ds = PH__SELECTOR_USER_DATA,
        .es = PH__SELECTOR_USER_DATA,
        .fs = PH__SELECTOR_USER_DATA,
        .gs = PH__SELECTOR_USER_DATA,
        .xsave = {[24] = 0x80, [25] = 0x1f},
    };

    if (!ph__soft_state_set(vcpu, &processor))
        return ph__error_set(error, PH_E_SYSTEM, "the emulator does not take a processor's state");
    vcpu->regs = *regs;
    vcpu->regs.rflags = RFLAGS_FIXED;
    base->regs_changed = true;
    return PH_OK;
}

/* ---- running ------------------------------------------------------------------------------------------- */

uc_err ph__soft_go(struct ph__soft_vcpu *vcpu, uint64_t gva) {
    uc_err result = UC_ERR_EXCEPTION;

    vcpu->event = PH__SOFT_NONE;
    vcpu->address = 0;
    vcpu->block_size = 0;
    /* The end has to be in the processor's page tables: Unicorn looks for code in front of it, and is not
     * prepared for a page fault. */
    if (ph__soft_guard(vcpu->engine, gva, END_GVA, &result)) {
        vcpu->way->settle(vcpu);
    } else {
        vcpu->event = PH__SOFT_GIVEN_UP;
        vcpu->given_up = true;
    }
    return result;
}

/* `syscall` as the monitor's entry wants it; it takes ring 3 too. */
static void enter_system_call(struct ph__soft_vcpu *vcpu) {
    struct ph__regs *regs = &vcpu->regs;

    regs->rcx = regs->rip;
    regs->r11 = regs->rflags;
    regs->rflags = (regs->rflags & ~SFMASK_VALUE) | RFLAGS_FIXED;
    regs->rip = PH__GVA(PH__MONITOR_GPA) + vcpu->monitor->system_call;
    vcpu->vcpu.regs_changed = true;
}

static void report_doorbell(struct ph__soft_vcpu *vcpu, struct ph__exit *exit) {
    exit->kind = PH__EXIT_DOORBELL;
    exit->operation = (uint32_t)vcpu->regs.rax;
    vcpu->regs.rip += DOORBELL_SIZE;
    vcpu->step_due = vcpu->regs.rflags & RFLAGS_TRAP;
}

/* Whether all general registers are as they were at the I/O instruction. */
static bool nothing_came(const struct ph__soft_vcpu *vcpu) {
    return memcmp(&vcpu->regs, &vcpu->io.regs, offsetof(struct ph__regs, rip)) == 0;
}

/* Ports that the TSS admits get to the host, which refuses all but the doorbell; of all others the processor
 * is in charge. Unicorn has run on behind it, to the next access to memory or the end of the block, so this
 * is the doorbell only if nothing came of that. */
static void report_io(struct ph__soft_vcpu *vcpu, struct ph__exit *exit) {
    const struct ph__soft_io *io = &vcpu->io;
    const bool admitted = io->port >= PH__DOORBELL_PORT && io->port + io->size <= PH__DOORBELL_PORT + 4;
    uint64_t gva = 0;
    uint32_t size = 0;
    bool found = ph__soft_find_io(vcpu, &gva, &size);

    ph__soft_exception_end(vcpu); /* of what has run behind it */
    if (found && !io->in && io->port == PH__DOORBELL_PORT && io->size == 4 && nothing_came(vcpu)) {
        vcpu->regs.rip = gva + size - DOORBELL_SIZE;
        report_doorbell(vcpu, exit);
        return;
    }
    if (found)
        vcpu->regs.rip = gva;
    if (found && !admitted) {
        ph__soft_raise(exit, PH__SOFT_PROTECTION_VECTOR, 0);
        return;
    }
    exit->kind = PH__EXIT_PROTOCOL;
    exit->what = "an I/O instruction other than the doorbell";
}

/* An undefined instruction is one, or done here. True when there is something to report. */
static bool report_undefined(struct ph__soft_vcpu *vcpu, struct ph__exit *exit) {
    uint32_t vector;

    ph__soft_exception_end(vcpu);
    if (ph__soft_is_int1(vcpu)) {
        vcpu->regs.rip++;
        ph__soft_raise(exit, VECTOR_DEBUG, 0);
        return true;
    }
    if (!ph__soft_emulate(vcpu, &vector)) {
        ph__soft_raise(exit, vector, 0);
        return true;
    }
    if (!(vcpu->regs.rflags & RFLAGS_TRAP))
        return false;
    ph__soft_raise(exit, VECTOR_DEBUG, 0);
    return true;
}

/* Goes on in a new engine where the old one has stopped. False when there is none to be had. */
static bool replace(struct ph__soft_vcpu *vcpu) {
    struct ph__processor processor = {0};

    vcpu->regs.rip = vcpu->address;
    vcpu->vcpu.regs_changed = true;
    return ph__soft_state_get(vcpu, &processor) && renew(vcpu, NULL) == PH_OK &&
           ph__soft_state_set(vcpu, &processor);
}

/* Makes an exit of what stopped Unicorn. False when there is none, and the guest goes on. */
static bool report(struct ph__soft_vcpu *vcpu, uc_err result, struct ph__exit *exit) {
    switch (vcpu->event) {
    case PH__SOFT_DOORBELL:
        report_doorbell(vcpu, exit);
        return true;
    case PH__SOFT_SYSTEM_CALL:
        enter_system_call(vcpu);
        return false;
    case PH__SOFT_INTERRUPT:
        ph__soft_report_interrupt(vcpu, exit);
        return true;
    case PH__SOFT_UNDEFINED:
        return report_undefined(vcpu, exit);
    case PH__SOFT_ACCESS:
        ph__soft_report_access(vcpu, exit);
        return true;
    case PH__SOFT_MISSED:
        return false;
    case PH__SOFT_IO:
        report_io(vcpu, exit);
        return true;
    case PH__SOFT_STRAYED:
        ph__soft_raise(exit, PH__SOFT_PAGE_FAULT_VECTOR, PH__SOFT_FAULT_USER | PH__SOFT_FAULT_FETCH);
        exit->address = vcpu->address;
        return true;
    case PH__SOFT_GIVEN_UP:
        exit->kind = PH__EXIT_PROTOCOL;
        exit->what = "code that the emulator does not translate";
        return true;
    case PH__SOFT_FULL:
        if (replace(vcpu))
            return false;
        ph__soft_fail(exit, "no new emulator in the place of one that is full of translated code");
        return true;
    case PH__SOFT_KICKED:
        vcpu->regs.rip = vcpu->address;
        exit->kind = PH__EXIT_KICKED;
        return true;
    default:
        if (result == UC_ERR_OK && vcpu->regs.rip == END_GVA) {
            ph__soft_raise(exit, PH__SOFT_PAGE_FAULT_VECTOR, PH__SOFT_FAULT_USER | PH__SOFT_FAULT_FETCH);
            exit->address = END_GVA;
            return true;
        }
        ph__soft_fail(exit, result == UC_ERR_OK ? "the emulator stopped for no reason" : uc_strerror(result));
        return true;
    }
}

/* Runs from (regs) until something stops Unicorn, and reads the registers. */
static uc_err enter(struct ph__soft_vcpu *vcpu) {
    if (vcpu->vcpu.regs_changed)
        ph__soft_regs_set(vcpu);
    vcpu->vcpu.regs_changed = false;
    uc_err result = ph__soft_go(vcpu, vcpu->regs.rip);
    ph__soft_regs_get(vcpu);
    vcpu->retrying = vcpu->event == PH__SOFT_MISSED;
    return result;
}

static void soft_run(struct ph__vcpu *base, struct ph__exit *exit) {
    struct ph__soft_vcpu *vcpu = (struct ph__soft_vcpu *)base;

    *exit = (struct ph__exit){0};
    if (base->code_changed)
        ph__soft_forget(vcpu);
    base->code_changed = false;
    if (vcpu->step_due && (vcpu->regs.rflags & RFLAGS_TRAP))
        ph__soft_raise(exit, VECTOR_DEBUG, 0);
    else
        while (!report(vcpu, enter(vcpu), exit))
            continue;
    if (exit->kind != PH__EXIT_DOORBELL)
        vcpu->step_due = false;
}

static void soft_kick(struct ph__vcpu *base) {
    atomic_store(&((struct ph__soft_vcpu *)base)->kicked, true);
}

static void soft_unkick(struct ph__vcpu *base) {
    atomic_store(&((struct ph__soft_vcpu *)base)->kicked, false);
}

/* ---- page tables and snapshots ------------------------------------------------------------------------- */

/* Whether an entry of a page table is one that code can be behind. */
static bool is_code(uint64_t entry) {
    return (entry & PH__PTE_PRESENT) && !(entry & PH__PTE_NO_EXECUTE);
}

/* There is no ring 0 and no processor that has seen an entry: the host stores. */
static ph_status soft_poke(struct ph__vcpu *base, uint32_t count, ph_error *error) {
    struct ph__soft_vcpu *vcpu = (struct ph__soft_vcpu *)base;
    const struct ph__region *tables = &vcpu->memory->layout.page_tables;
    const struct ph__poke *pokes = ph__memory_pokes(vcpu->memory);
    bool code = false;
    uint64_t old;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = pokes[i].entry_gva - PH__WINDOW_GVA;
        if (offset < tables->offset || offset - tables->offset > tables->size - sizeof pokes[i].value)
            return ph__error_set(error, PH_E_SYSTEM, "a change of page tables outside them");
        memcpy(&old, vcpu->memory->base + offset, sizeof old);
        code = code || is_code(old) || is_code(pokes[i].value);
        memcpy(vcpu->memory->base + offset, &pokes[i].value, sizeof pokes[i].value);
    }
    return ph__soft_mirror(vcpu, code, error);
}

static ph_status state_failed(ph_error *error) {
    return ph__error_set(error, PH_E_SYSTEM, "the emulator does not give or take a processor's state");
}

static ph_status soft_save(struct ph__vcpu *base, struct ph__processor *processor, ph_error *error) {
    struct ph__soft_vcpu *vcpu = (struct ph__soft_vcpu *)base;

    memset(processor, 0, sizeof *processor);
    if (!ph__soft_state_get(vcpu, processor))
        return state_failed(error);
    processor->regs = vcpu->regs;
    base->regs_changed = true; /* the engine's RIP is elsewhere */
    return PH_OK;
}

static ph_status soft_load(struct ph__vcpu *base, const struct ph__processor *processor, bool whole,
                           ph_error *error) {
    struct ph__soft_vcpu *vcpu = (struct ph__soft_vcpu *)base;

    (void)whole; /* ring 3 changes nothing else, however it ends */
    ph_status status = vcpu->given_up ? renew(vcpu, error) : PH_OK;
    if (status != PH_OK)
        return status;
    ph__soft_exception_end(vcpu);
    if (!ph__soft_state_set(vcpu, processor))
        return state_failed(error);
    vcpu->regs = processor->regs;
    base->regs_changed = true;
    vcpu->step_due = false;
    /* Code that the guest has written goes back to what it was, behind the emulator's back. */
    base->code_changed = base->code_changed || vcpu->rewritable || vcpu->recoded;
    vcpu->recoded = false;
    return PH_OK;
}

const struct ph__backend ph__backend_plugin = {
    .version = PH__BACKEND_VERSION,
    .name = "soft",
    .probe = soft_probe,
    .create = soft_create,
    .destroy = soft_destroy,
    .start = soft_start,
    .run = soft_run,
    .poke = soft_poke,
    .save = soft_save,
    .load = soft_load,
    .kick = soft_kick,
    .unkick = soft_unkick,
};
