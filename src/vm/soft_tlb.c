/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How Unicorn 2.1 comes to guest memory (soft_parts.h). Whenever its TLB misses it asks for the page, and the
 * answer is from a walk through our page tables. All of guest memory is mapped once, at its offsets in the
 * host range. An access that is not allowed has an answer too, of a place where Unicorn has no memory: only
 * so does it tell the exact address, by a hook that the other way has as well.
 */
#include "vm/soft_parts.h"

#if UC_API_MAJOR > 2 || UC_API_MINOR >= 1

/* Versions differ in the processor that they are. This one has all that soft_cpuid.c shows, and like that of
 * 2.0.1 it is of AMD's kind, where `sysenter` is undefined. */
#define PROCESSOR UC_CPU_X86_OPTERON_G4

/* What translated code of one vCPU may fill before all of it is dropped; a gigabyte if nothing is said. 2.1.1
 * can crash when its buffer is full, so there a smaller one would only make that easier. */
#define BUFFER_SIZE (64u << 20)
#define BUFFER_VERSION 0x02010400u

/* Unicorn's physical addresses have 52 bits. Below this one is guest memory, which lies in one mapping of the
 * host's and is smaller; here are our own pages. */
#define OWN_ADDRESS (1ull << 47)
#define OWN_SIZE (2 * PH__PAGE_SIZE)

/* Where there is nothing: each half of the addresses that guests can have, and those that no guest can. */
#define LOW_ADDRESS (1ull << 48)
#define HIGH_ADDRESS (2ull << 48)
#define OTHER_ADDRESS (3ull << 48)
#define ADDRESS_MASK (PH__USER_END - 1)

static uint64_t nowhere(uint64_t gva) {
    if (gva < PH__USER_END)
        return LOW_ADDRESS | gva;
    return (gva >= ~ADDRESS_MASK ? HIGH_ADDRESS : OTHER_ADDRESS) | (gva & ADDRESS_MASK);
}

static uint64_t tlb_address(uint64_t missing) {
    const uint64_t gva = missing & ADDRESS_MASK;

    switch (missing & ~ADDRESS_MASK) {
    case LOW_ADDRESS:
        return gva;
    case HIGH_ADDRESS:
        return gva | ~ADDRESS_MASK;
    default:
        return gva | PH__USER_END; /* as good as any */
    }
}

static uint32_t protection_for(uc_mem_type type) {
    switch (type) {
    case UC_MEM_FETCH:
        return UC_PROT_EXEC;
    case UC_MEM_WRITE:
        return UC_PROT_WRITE;
    default:
        return UC_PROT_READ;
    }
}

/* Our own pages: true if (gva) is one of them. */
static bool find_own(uint64_t gva, uc_tlb_entry *entry) {
    const bool code = gva == PH__SOFT_CODE_GVA;

    if (!code && gva != PH__SOFT_DATA_GVA)
        return false;
    entry->paddr = OWN_ADDRESS + (code ? 0 : PH__PAGE_SIZE);
    entry->perms = (uc_prot)(UC_PROT_READ | (code ? UC_PROT_EXEC : UC_PROT_WRITE));
    return true;
}

/* A page of guest memory that ring 3 can use. */
static bool find_page(const struct ph__memory *memory, uint64_t gva, uc_tlb_entry *entry) {
    struct ph__range range;
    uint64_t size = PH__PAGE_SIZE;
    uint32_t protection = UC_PROT_READ;

    if (!ph__paging_page(memory, ph__paging_root(memory), (ph_gva){gva}, &range))
        return false;
    if (range.access.writable && ph__soft_host_writes(memory, range.offset, &size))
        protection |= UC_PROT_WRITE;
    if (range.access.executable)
        protection |= UC_PROT_EXEC;
    entry->paddr = range.offset;
    entry->perms = (uc_prot)protection;
    return true;
}

static bool on_miss(uc_engine *engine, uint64_t gva, uc_mem_type type, uc_tlb_entry *entry, void *context) {
    struct ph__soft_vcpu *vcpu = context;
    const uint32_t needed = protection_for(type);

    (void)engine;
    if ((find_own(gva, entry) || find_page(vcpu->memory, gva, entry)) && (entry->perms & needed))
        return true;
    if (type != UC_MEM_FETCH && !vcpu->retrying && vcpu->event == PH__SOFT_NONE) {
        vcpu->event = PH__SOFT_MISSED;
        return false;
    }
    /* For this kind of access alone: another kind is asked for again. */
    entry->paddr = nowhere(gva);
    entry->perms = (uc_prot)needed;
    return true;
}

static bool limit_buffer(uc_engine *engine) {
    return uc_version(NULL, NULL) < BUFFER_VERSION ||
           uc_ctl_set_tcg_buffer_size(engine, BUFFER_SIZE) == UC_ERR_OK;
}

static bool tlb_start(struct ph__soft_vcpu *vcpu) {
    const struct ph__memory *memory = vcpu->memory;
    uc_engine *engine = vcpu->engine;
    uc_hook handle;

    return uc_ctl_set_cpu_model(engine, PROCESSOR) == UC_ERR_OK && limit_buffer(engine) &&
           uc_ctl_tlb_mode(engine, UC_TLB_VIRTUAL) == UC_ERR_OK &&
           uc_hook_add(engine, &handle, UC_HOOK_TLB_FILL, (__extension__(void *) on_miss), vcpu, 1, 0) ==
               UC_ERR_OK &&
           uc_mem_map_ptr(engine, 0, memory->layout.size, UC_PROT_ALL, memory->base) == UC_ERR_OK &&
           uc_mem_map_ptr(engine, OWN_ADDRESS, OWN_SIZE, UC_PROT_ALL, vcpu->pages) == UC_ERR_OK;
}

static bool tlb_differs(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range) {
    (void)vcpu; /* all of memory is there all the time */
    (void)range;
    return true;
}

static ph_status tlb_changed(struct ph__soft_vcpu *vcpu, ph_error *error) {
    (void)error;
    uc_ctl_flush_tlb(vcpu->engine); /* translations of code stay */
    return PH_OK;
}

static bool tlb_goes_on(struct ph__soft_vcpu *vcpu, uc_mem_type type, uint64_t address) {
    (void)vcpu; /* there is no page fault with paging off */
    (void)type;
    (void)address;
    return false;
}

static void tlb_settle(struct ph__soft_vcpu *vcpu) {
    if (vcpu->event == PH__SOFT_ACCESS)
        uc_ctl_flush_tlb(vcpu->engine);
}

static const struct ph__soft_way way = {
    .start = tlb_start,
    .remove = tlb_differs,
    .add = tlb_differs,
    .changed = tlb_changed,
    .goes_on = tlb_goes_on,
    .settle = tlb_settle,
    .address = tlb_address,
};
const struct ph__soft_way *const ph__soft_tlb = &way;

#else

const struct ph__soft_way *const ph__soft_tlb = NULL;

#endif
