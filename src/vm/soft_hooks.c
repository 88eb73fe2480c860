/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What Unicorn calls back for (soft_parts.h). Each callback notes the event and stops the run; soft.c makes
 * an exit of it. None changes RIP, and none is called once there is a stop: Unicorn leaves most of them out
 * then, so that only callbacks may ask for one.
 */
#include <string.h>

#include "abi/doorbell.h"
#include "base/error.h"
#include "vm/soft_parts.h"

static void stop(struct ph__soft_vcpu *vcpu, enum ph__soft_event event) {
    /* The first one counts: what Unicorn still does of the block comes from a guest that has stopped. */
    if (vcpu->event == PH__SOFT_NONE)
        vcpu->event = event;
    uc_emu_stop(vcpu->engine);
}

/* The guest is to go on at (address), the start of a block of which nothing has run: where a block leads to
 * the next one by itself Unicorn has not brought RIP up to date. */
static void stop_block(struct ph__soft_vcpu *vcpu, enum ph__soft_event event, uint64_t address) {
    if (vcpu->event == PH__SOFT_NONE)
        vcpu->address = address;
    stop(vcpu, event);
}

/* At the start of each block, which is where a kick is seen: it is no more than a mark. To stop Unicorn from
 * another thread, as it offers, takes two stores, and what runs between them goes past our callbacks,
 * doorbells and system calls among it. */
static void on_block(uc_engine *engine, uint64_t address, uint32_t size, void *context) {
    struct ph__soft_vcpu *vcpu = context;

    (void)engine;
    vcpu->block = address;
    vcpu->block_size = size;
    if (atomic_load_explicit(&vcpu->kicked, memory_order_relaxed) && !vcpu->serving)
        stop_block(vcpu, PH__SOFT_KICKED, address);
    else if (--vcpu->buffer.blocks == 0 && ph__soft_buffer_full(vcpu) && !vcpu->serving)
        stop_block(vcpu, PH__SOFT_FULL, address);
}

/* Our own page of code. */
static void on_page(uc_engine *engine, uint64_t address, uint32_t size, void *context) {
    struct ph__soft_vcpu *vcpu = context;

    (void)engine;
    (void)size;
    if (!vcpu->serving) {
        vcpu->address = address;
        stop(vcpu, PH__SOFT_STRAYED);
    } else if (address == PH__SOFT_CODE_GVA + PH__SOFT_STOP) {
        stop(vcpu, PH__SOFT_SERVED);
    }
}

/* `out %eax, $PH__DOORBELL_PORT`, as the guest library and the monitor have it. */
static const uint8_t doorbell[] = {0xe7, PH__DOORBELL_PORT};

/* Before an instruction that may be a doorbell. */
static void on_code(uc_engine *engine, uint64_t address, uint32_t size, void *context) {
    struct ph__soft_vcpu *vcpu = context;
    uint8_t bytes[sizeof doorbell];

    (void)engine;
    (void)size;
    if (ph__soft_fetch(vcpu, address, bytes, sizeof bytes) == sizeof bytes &&
        memcmp(bytes, doorbell, sizeof bytes) == 0)
        stop(vcpu, PH__SOFT_DOORBELL);
}

/* Unicorn stops some instructions later. RIP is that of the block's start, or of what last needed it. */
static void note_io(struct ph__soft_vcpu *vcpu, bool in, uint32_t port, int size) {
    if (vcpu->event == PH__SOFT_NONE) {
        ph__soft_regs_get(vcpu);
        vcpu->io = (struct ph__soft_io){.in = in, .port = port, .size = (uint32_t)size, .regs = vcpu->regs};
    }
    stop(vcpu, PH__SOFT_IO);
}

static uint32_t on_in(uc_engine *engine, uint32_t port, int size, void *context) {
    (void)engine;
    note_io(context, true, port, size);
    return 0;
}

static void on_out(uc_engine *engine, uint32_t port, int size, uint32_t value, void *context) {
    (void)engine;
    (void)value;
    note_io(context, false, port, size);
}

static void on_system_call(uc_engine *engine, void *context) {
    (void)engine;
    stop(context, PH__SOFT_SYSTEM_CALL);
}

static int on_cpuid(uc_engine *engine, void *context) {
    static const int registers[] = {UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX};
    uint64_t leaf = 0, index = 0;
    uint32_t words[4];

    (void)context;
    uc_reg_read(engine, UC_X86_REG_RAX, &leaf);
    uc_reg_read(engine, UC_X86_REG_RCX, &index);
    ph__soft_cpuid((uint32_t)leaf, (uint32_t)index, words);
    for (size_t i = 0; i < 4; i++) {
        uint64_t value = words[i];
        uc_reg_write(engine, registers[i], &value);
    }
    return 1; /* Unicorn's own answer is left out */
}

static void on_interrupt(uc_engine *engine, uint32_t vector, void *context) {
    struct ph__soft_vcpu *vcpu = context;

    (void)engine;
    if (vcpu->event == PH__SOFT_NONE)
        vcpu->vector = vector;
    stop(vcpu, PH__SOFT_INTERRUPT);
}

static bool on_undefined(uc_engine *engine, void *context) {
    (void)engine;
    stop(context, PH__SOFT_UNDEFINED);
    return false;
}

static bool on_access(uc_engine *engine, uc_mem_type type, uint64_t address, int size, int64_t value,
                      void *context) {
    struct ph__soft_vcpu *vcpu = context;

    (void)engine;
    (void)value;
    if (vcpu->event == PH__SOFT_NONE) {
        vcpu->address = vcpu->way->address(address);
        if (vcpu->way->goes_on(vcpu, type, address))
            return true;
        vcpu->access = type;
        vcpu->size = size > 0 ? (uint32_t)size : 1;
    }
    stop(vcpu, PH__SOFT_ACCESS);
    return false;
}

struct wanted_hook {
    void *callback;
    uint64_t start, end; /* start > end: everywhere */
    int type;
    int instruction;
};

/* Unicorn takes any callback as void *, which POSIX allows and ISO C does not. */
#define CALLBACK(function) (__extension__(void *)(function))

ph_status ph__soft_hook(struct ph__soft_vcpu *vcpu, ph_error *error) {
    const struct wanted_hook hooks[] = {
        {CALLBACK(on_block), 1, 0, UC_HOOK_BLOCK, 0},
        {CALLBACK(on_page), PH__SOFT_CODE_GVA, PH__SOFT_CODE_GVA + PH__PAGE_SIZE - 1, UC_HOOK_CODE, 0},
        {CALLBACK(on_in), 1, 0, UC_HOOK_INSN, UC_X86_INS_IN},
        {CALLBACK(on_out), 1, 0, UC_HOOK_INSN, UC_X86_INS_OUT},
        {CALLBACK(on_system_call), 1, 0, UC_HOOK_INSN, UC_X86_INS_SYSCALL},
        {CALLBACK(on_cpuid), 1, 0, UC_HOOK_INSN, UC_X86_INS_CPUID},
        {CALLBACK(on_interrupt), 1, 0, UC_HOOK_INTR, 0},
        {CALLBACK(on_undefined), 1, 0, UC_HOOK_INSN_INVALID, 0},
        {CALLBACK(on_access), 1, 0, UC_HOOK_MEM_INVALID, 0},
    };

    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
        const struct wanted_hook *hook = &hooks[i];
        uc_hook handle;
        uc_err failed = uc_hook_add(vcpu->engine, &handle, hook->type, hook->callback, vcpu, hook->start,
                                    hook->end, hook->instruction);
        if (failed != UC_ERR_OK)
            return ph__error_set(error, PH_E_BACKEND, "Unicorn refused a hook: %s", uc_strerror(failed));
    }
    return PH_OK;
}

/* ---- doorbells ----------------------------------------------------------------------------------------- */

static ph_status watch(struct ph__soft_vcpu *vcpu, uint64_t first, uint64_t last, ph_error *error) {
    uc_hook *handle = &vcpu->doorbells[vcpu->doorbell_count];

    if (uc_hook_add(vcpu->engine, handle, UC_HOOK_CODE, CALLBACK(on_code), vcpu, first, last) != UC_ERR_OK)
        return ph__error_set(error, PH_E_MEMORY, "no memory to watch for doorbells");
    vcpu->doorbell_count++;
    return PH_OK;
}

/* Watches each doorbell of (range), while there is room for one more and for what is left as a whole. Where
 * the guest can write there may be one anywhere, later. */
static ph_status watch_range(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range,
                             ph_error *error) {
    const uint8_t *at = range->host;
    const uint8_t *end = range->host + range->size;
    ph_status status = PH_OK;

    if (range->protection & UC_PROT_WRITE)
        return watch(vcpu, range->gva, range->gva + range->size - 1, error);
    while (status == PH_OK && (at = memmem(at, (size_t)(end - at), doorbell, sizeof doorbell))) {
        uint64_t gva = range->gva + (uint64_t)(at - range->host);
        if (vcpu->doorbell_count >= PH__SOFT_DOORBELLS / 2)
            return watch(vcpu, gva, range->gva + range->size - 1, error);
        status = watch(vcpu, gva, gva, error);
        at += sizeof doorbell;
    }
    return status;
}

ph_status ph__soft_hook_doorbells(struct ph__soft_vcpu *vcpu, ph_error *error) {
    ph_status status = PH_OK;

    while (vcpu->doorbell_count)
        uc_hook_del(vcpu->engine, vcpu->doorbells[--vcpu->doorbell_count]);
    vcpu->rewritable = false;
    for (size_t i = 0; i < vcpu->mirror.count && status == PH_OK; i++) {
        const struct ph__soft_range *range = &vcpu->mirror.ranges[i];
        if (!(range->protection & UC_PROT_EXEC))
            continue;
        vcpu->rewritable = vcpu->rewritable || (range->protection & UC_PROT_WRITE);
        /* The last one is for all that is left. */
        if (vcpu->doorbell_count < PH__SOFT_DOORBELLS - 1)
            status = watch_range(vcpu, range, error);
        else if (vcpu->doorbell_count < PH__SOFT_DOORBELLS)
            status = watch(vcpu, range->gva, PH__USER_END - 1, error);
    }
    return status;
}
