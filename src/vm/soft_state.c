/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The emulated processor's state (soft_parts.h): into ring 3, registers out and in, and what a snapshot
 * keeps. What Unicorn's interface does not reach is done by a few instructions on a page of our own: segment
 * registers can only be loaded by code, and FXSAVE gives the x87 and SSE state bit for bit in the very form
 * that a snapshot has.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "vm/boot.h"
#include "vm/soft_parts.h"

#define CR0_VALUE 0x33ull /* NE ET MP PE; paging comes later (soft_tables.c) */
/* SMEP FSGSBASE OSXMMEXCPT OSFXSR PAE. Without SMEP, or NXE which Unicorn 2.0.1 does not take, the error code
 * of a page fault does not tell a fetch from a read (SDM volume 3, chapter 4.7). */
#define CR4_VALUE 0x110620ull
#define VERSION_2_1 0x02010000u
#define RFLAGS_FIXED 0x2ull
#define RFLAGS_USER 0x250dd5ull

/* XSAVE's standard form: the area of FXSAVE, of which the last 48 bytes are not the processor's, then the
 * header, whose first word says which components follow: x87 and SSE are in the area. */
#define FXSAVE_SIZE 512u
#define FXSAVE_USED 464u
#define XSTATE_X87 0x1u
#define XSTATE_SSE 0x2u
#define X87_PLACE 8u
#define X87_CONTROL_SIZE 24u /* from the start up to MXCSR */
#define X87_OFFSET 32u
#define X87_SIZE 128u
#define XMM_OFFSET 160u
#define XMM_SIZE 256u

/* A selector that there is no descriptor for, and the error code that loading it gives: one that no register
 * holds then. */
#define PROBE_SELECTOR 0x7b3bu
#define PROBE_ERROR 0x7b38u
#define PROBE_VECTOR 0x21u

/* ---- our page of code ---------------------------------------------------------------------------------- */

static void put(struct ph__soft_vcpu *vcpu, size_t at, const void *bytes, size_t size) {
    memcpy(vcpu->pages + at, bytes, size);
}

/* Instructions that end with a distance of 32 bits from behind themselves to (target), and then go to the
 * stop. */
static void put_routine(struct ph__soft_vcpu *vcpu, size_t at, const uint8_t *bytes, size_t size,
                        uint64_t target) {
    const int32_t distance = (int32_t)(target - (PH__SOFT_CODE_GVA + at + size + 4));

    put(vcpu, at, bytes, size);
    put(vcpu, at + size, &distance, sizeof distance);
}

static void put_stop(struct ph__soft_vcpu *vcpu, size_t at) {
    const uint8_t jump[] = {0xe9};
    put_routine(vcpu, at, jump, sizeof jump, PH__SOFT_CODE_GVA + PH__SOFT_STOP);
}

static void write_code(struct ph__soft_vcpu *vcpu) {
    static const uint8_t save[] = {0x48, 0x0f, 0xae, 0x05};   /* fxsave64 data(%rip) */
    static const uint8_t load[] = {0x48, 0x0f, 0xae, 0x0d};   /* fxrstor64 data(%rip) */
    static const uint8_t probe[] = {0x8e, 0xdb};              /* mov %ebx, %ds */
    static const uint8_t select[] = {0x8e, 0xd8, 0x8e, 0xc3,  /* mov %eax, %ds; mov %ebx, %es */
                                     0x8e, 0xe1, 0x8e, 0xea}; /* mov %ecx, %fs; mov %edx, %gs */
    static const uint8_t boot[] = {0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xe0, 0x8e, 0xe8, 0x48, 0xcf}; /* iretq */
    static const uint8_t interrupt[] = {0xcd, PROBE_VECTOR};
    static const uint8_t end[] = {0x0f, 0x0b}; /* ud2, which is never done */

    put(vcpu, PH__SOFT_GDT, vcpu->memory->base + PH__TABLES_GPA + PH__GDT_OFFSET, PH__GDT_SIZE);
    put(vcpu, PH__SOFT_STOP, end, sizeof end);
    put_routine(vcpu, PH__SOFT_SAVE, save, sizeof save, PH__SOFT_DATA_GVA);
    put_stop(vcpu, PH__SOFT_SAVE + sizeof save + 4);
    put_routine(vcpu, PH__SOFT_RESTORE, load, sizeof load, PH__SOFT_DATA_GVA);
    put_stop(vcpu, PH__SOFT_RESTORE + sizeof load + 4);
    put(vcpu, PH__SOFT_PROBE, probe, sizeof probe);
    put_stop(vcpu, PH__SOFT_PROBE + sizeof probe);
    put(vcpu, PH__SOFT_INT, interrupt, sizeof interrupt);
    put(vcpu, PH__SOFT_SELECT, select, sizeof select);
    put_stop(vcpu, PH__SOFT_SELECT + sizeof select);
    put(vcpu, PH__SOFT_BOOT, boot, sizeof boot);
}

static bool write_register(struct ph__soft_vcpu *vcpu, int number, uint64_t value) {
    return uc_reg_write(vcpu->engine, number, &value) == UC_ERR_OK;
}

/* Runs a routine of our own, which changes flags and perhaps registers. True when it has come to its end. */
static bool serve(struct ph__soft_vcpu *vcpu, uint64_t routine) {
    /* The guest's flags would have it stepped. */
    if (!write_register(vcpu, UC_X86_REG_RFLAGS, RFLAGS_FIXED))
        return false;
    vcpu->serving = true;
    uc_err result = ph__soft_go(vcpu, PH__SOFT_CODE_GVA + routine);
    vcpu->serving = false;
    return result == UC_ERR_OK && vcpu->event == PH__SOFT_SERVED;
}

/* ---- into ring 3 --------------------------------------------------------------------------------------- */

static ph_status no_memory(ph_error *error) {
    return ph__error_set(error, PH_E_MEMORY, "no memory for an emulated processor");
}

/* "major.minor.patch" of the library that is there. */
static const char *version_text(char text[16]) {
    const unsigned version = uc_version(NULL, NULL);

    snprintf(text, 16, "%u.%u.%u", version >> 24, version >> 16 & 0xff, version >> 8 & 0xff);
    return text;
}

static ph_status unknown(ph_error *error, const char *what) {
    char text[16];
    return ph__error_set(
        error, PH_E_BACKEND,
        "this Unicorn Engine, %s, is not one that pinhole knows (2.0.1, 2.1.1 and 2.1.4 are): %s",
        version_text(text), what);
}

/* What the library can do now, which need not be what its header had when this was built. Unicorn 2.1 cuts
 * the top off addresses unless it is asked what they mean. */
ph_status ph__soft_prepare(struct ph__soft_vcpu *vcpu, ph_error *error) {
    char text[16];

    vcpu->way = uc_version(NULL, NULL) < VERSION_2_1 ? &ph__soft_map : ph__soft_tlb;
    if (!vcpu->way)
        return ph__error_set(
            error, PH_E_BACKEND,
            "pinhole-soft.so was built with Unicorn %d.%d.%d, and the library here is %s, which "
            "works in another way: build pinhole again with that",
            UC_API_MAJOR, UC_API_MINOR, UC_API_PATCH, version_text(text));
    return vcpu->way->start(vcpu) ? PH_OK : no_memory(error);
}

static bool enter_ring3(struct ph__soft_vcpu *vcpu) {
    const uc_x86_mmr gdt = {.base = PH__SOFT_CODE_GVA + PH__SOFT_GDT, .limit = PH__GDT_SIZE - 1};
    /* What iretq takes. The stack pointer is a place that FXSAVE leaves alone. */
    const uint64_t frame[] = {PH__SOFT_CODE_GVA + PH__SOFT_STOP, PH__SELECTOR_USER_CODE, RFLAGS_FIXED, 0,
                              PH__SELECTOR_USER_DATA};

    put(vcpu, PH__PAGE_SIZE, frame, sizeof frame);
    return uc_reg_write(vcpu->engine, UC_X86_REG_GDTR, &gdt) == UC_ERR_OK &&
           write_register(vcpu, UC_X86_REG_CR0, CR0_VALUE) &&
           write_register(vcpu, UC_X86_REG_CR4, CR4_VALUE) &&
           write_register(vcpu, UC_X86_REG_RAX, PH__SELECTOR_USER_DATA) &&
           write_register(vcpu, UC_X86_REG_RSP, PH__SOFT_DATA_GVA) && serve(vcpu, PH__SOFT_BOOT);
}

static uint32_t word_at(const uint8_t *bytes, size_t at) {
    uint32_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

/* Finds the one word that was (before) in (old) and is (after) in (now). 0 if there is not exactly one. */
static size_t find_change(const uint8_t *old, const uint8_t *now, size_t size, uint32_t before,
                          uint32_t after) {
    size_t found = 0;

    for (size_t at = 4; at + 4 <= size; at += 4) {
        if (word_at(old, at) != before || word_at(now, at) != after)
            continue;
        if (found)
            return 0;
        found = at;
    }
    return found;
}

/* Unicorn keeps the last exception in a place that its interface does not reach, and makes a double fault of
 * the next one, and then ends. The place is in the opaque context, so it is looked for there: by making a
 * fault whose vector and error code are known. */
static ph_status find_exception(struct ph__soft_vcpu *vcpu, ph_error *error) {
    const size_t size = uc_context_size(vcpu->engine);
    uc_context *before;

    if (uc_context_alloc(vcpu->engine, &before) != UC_ERR_OK)
        return no_memory(error);
    bool made = write_register(vcpu, UC_X86_REG_RBX, PROBE_SELECTOR) &&
                uc_context_save(vcpu->engine, before) == UC_ERR_OK && !serve(vcpu, PH__SOFT_PROBE) &&
                vcpu->event == PH__SOFT_INTERRUPT && vcpu->vector == PH__SOFT_PROTECTION_VECTOR &&
                uc_context_save(vcpu->engine, vcpu->context) == UC_ERR_OK;
    if (made) {
        const uint8_t *old = (const uint8_t *)before, *now = (const uint8_t *)vcpu->context;
        vcpu->old_exception = find_change(old, now, size, UINT32_MAX, PH__SOFT_PROTECTION_VECTOR);
        vcpu->error_code = find_change(old, now, size, 0, PROBE_ERROR);
    }
    uc_context_free(before);
    if (!made)
        return unknown(error, "no general-protection fault where one is due");
    if (!vcpu->old_exception || !vcpu->error_code)
        return unknown(error, "it keeps exceptions elsewhere");
    if (ph__soft_exception_end(vcpu).software || serve(vcpu, PH__SOFT_INT) || vcpu->vector != PROBE_VECTOR ||
        !ph__soft_exception_end(vcpu).software)
        return unknown(error, "it does not tell exceptions from `int` instructions");
    return PH_OK;
}

ph_status ph__soft_boot(struct ph__soft_vcpu *vcpu, ph_error *error) {
    if (uc_context_alloc(vcpu->engine, &vcpu->context) != UC_ERR_OK)
        return no_memory(error);
    write_code(vcpu);
    if (!enter_ring3(vcpu))
        return unknown(error, "it does not come to ring 3");
    return find_exception(vcpu, error);
}

/* ---- registers ----------------------------------------------------------------------------------------- */

#define REGISTER_COUNT 18

/* In the order of struct ph__regs; RIP and RFLAGS last. */
static const int register_numbers[REGISTER_COUNT] = {
    UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RSI, UC_X86_REG_RDI,
    UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_R8,  UC_X86_REG_R9,  UC_X86_REG_R10, UC_X86_REG_R11,
    UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15, UC_X86_REG_RIP, UC_X86_REG_RFLAGS,
};
_Static_assert(sizeof(struct ph__regs) == REGISTER_COUNT * sizeof(uint64_t), "one word each");

void ph__soft_regs_get(struct ph__soft_vcpu *vcpu) {
    uint64_t *words = (uint64_t *)&vcpu->regs;
    void *places[REGISTER_COUNT];

    for (size_t i = 0; i < REGISTER_COUNT; i++) {
        words[i] = 0;
        places[i] = &words[i];
    }
    uc_reg_read_batch(vcpu->engine, (int *)register_numbers, places, REGISTER_COUNT);
}

void ph__soft_regs_set(struct ph__soft_vcpu *vcpu) {
    uint64_t *words = (uint64_t *)&vcpu->regs;

    vcpu->regs.rflags = (vcpu->regs.rflags & RFLAGS_USER) | RFLAGS_FIXED;
    for (size_t i = 0; i < REGISTER_COUNT; i++)
        if (register_numbers[i] != UC_X86_REG_RIP)
            uc_reg_write(vcpu->engine, register_numbers[i], &words[i]);
}

struct ph__soft_exception ph__soft_exception_end(struct ph__soft_vcpu *vcpu) {
    struct ph__soft_exception exception = {0};
    uint8_t *bytes = (uint8_t *)vcpu->context;
    const uint32_t none = UINT32_MAX, zero = 0;

    if (uc_context_save(vcpu->engine, vcpu->context) != UC_ERR_OK)
        return exception;
    exception.error_code = word_at(bytes, vcpu->error_code);
    exception.software = word_at(bytes, vcpu->error_code + sizeof(uint32_t)) == 1;
    memcpy(bytes + vcpu->old_exception, &none, sizeof none);
    memcpy(bytes + vcpu->error_code, &zero, sizeof zero);
    uc_context_restore(vcpu->engine, vcpu->context);
    return exception;
}

/* ---- snapshots ----------------------------------------------------------------------------------------- */

static const int selector_numbers[] = {UC_X86_REG_DS, UC_X86_REG_ES, UC_X86_REG_FS, UC_X86_REG_GS};

bool ph__soft_state_get(struct ph__soft_vcpu *vcpu, struct ph__processor *processor) {
    uint16_t *const selectors[] = {&processor->ds, &processor->es, &processor->fs, &processor->gs};
    const uint64_t components = XSTATE_X87 | XSTATE_SSE;

    uc_reg_read(vcpu->engine, UC_X86_REG_FS_BASE, &processor->fs_base);
    uc_reg_read(vcpu->engine, UC_X86_REG_GS_BASE, &processor->gs_base);
    for (size_t i = 0; i < 4; i++)
        uc_reg_read(vcpu->engine, selector_numbers[i], selectors[i]);
    memset(vcpu->pages + PH__PAGE_SIZE, 0, FXSAVE_SIZE);
    if (!serve(vcpu, PH__SOFT_SAVE))
        return false;
    memset(processor->xsave, 0, sizeof processor->xsave);
    memcpy(processor->xsave, vcpu->pages + PH__PAGE_SIZE, FXSAVE_USED);
    memcpy(processor->xsave + FXSAVE_SIZE, &components, sizeof components);
    processor->xsave_size = sizeof processor->xsave;
    return true;
}

/* What no component's bit says anything of is initial, but for MXCSR. */
static void put_vectors(struct ph__soft_vcpu *vcpu, const struct ph__processor *processor) {
    static const uint8_t control[2] = {0x7f, 0x03}; /* FCW as FNINIT leaves it */
    uint8_t *area = vcpu->pages + PH__PAGE_SIZE;
    uint64_t components;

    memcpy(&components, processor->xsave + FXSAVE_SIZE, sizeof components);
    memset(area, 0, FXSAVE_SIZE);
    memcpy(area, processor->xsave, FXSAVE_USED);
    if (!(components & XSTATE_X87)) {
        memset(area, 0, X87_CONTROL_SIZE);
        memset(area + X87_OFFSET, 0, X87_SIZE);
        memcpy(area, control, sizeof control);
    }
    if (!(components & XSTATE_SSE))
        memset(area + XMM_OFFSET, 0, XMM_SIZE);
}

/* Where the last x87 instruction was: 2.1 gives that in FXSAVE and does not take it in FXRSTOR. */
static bool write_x87_place(struct ph__soft_vcpu *vcpu) {
    uint64_t place;

    memcpy(&place, vcpu->pages + PH__PAGE_SIZE + X87_PLACE, sizeof place);
    return write_register(vcpu, UC_X86_REG_FIP, place);
}

bool ph__soft_state_set(struct ph__soft_vcpu *vcpu, const struct ph__processor *processor) {
    put_vectors(vcpu, processor);
    return serve(vcpu, PH__SOFT_RESTORE) && write_x87_place(vcpu) &&
           write_register(vcpu, UC_X86_REG_RAX, processor->ds) &&
           write_register(vcpu, UC_X86_REG_RBX, processor->es) &&
           write_register(vcpu, UC_X86_REG_RCX, processor->fs) &&
           write_register(vcpu, UC_X86_REG_RDX, processor->gs) && serve(vcpu, PH__SOFT_SELECT) &&
           write_register(vcpu, UC_X86_REG_FS_BASE, processor->fs_base) &&
           write_register(vcpu, UC_X86_REG_GS_BASE, processor->gs_base);
}
