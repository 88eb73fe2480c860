/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How Unicorn 2.0 comes to guest memory (soft_parts.h). It takes a physical address to be the virtual one, so
 * its memory map is the mirror itself. Each mapping costs it more than the one before.
 */
#include "vm/soft_parts.h"

static bool map(struct ph__soft_vcpu *vcpu, uint64_t gva, uint64_t size, uint32_t protection, void *host) {
    return uc_mem_map_ptr(vcpu->engine, gva, size, protection, host) == UC_ERR_OK;
}

static bool map_start(struct ph__soft_vcpu *vcpu) {
    return map(vcpu, PH__SOFT_CODE_GVA, PH__PAGE_SIZE, UC_PROT_READ | UC_PROT_EXEC, vcpu->pages) &&
           map(vcpu, PH__SOFT_DATA_GVA, PH__PAGE_SIZE, UC_PROT_READ | UC_PROT_WRITE,
               vcpu->pages + PH__PAGE_SIZE);
}

static bool map_remove(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range) {
    return uc_mem_unmap(vcpu->engine, range->gva, range->size) == UC_ERR_OK;
}

static bool map_add(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range) {
    return map(vcpu, range->gva, range->size, range->protection, range->host);
}

/* Unicorn looks into its own map first, and where that has nothing RIP and flags are left behind. So the page
 * that is missing is put there, without being in the page tables of the processor, for which it then is a
 * page fault (soft_tables.c). False when that cannot be. */
static bool give_page(struct ph__soft_vcpu *vcpu, uint64_t address) {
    const uint64_t page = address & ~(PH__PAGE_SIZE - 1);

    if (vcpu->stand_in != PH__SOFT_NO_PAGE ||
        !map(vcpu, page, PH__PAGE_SIZE, UC_PROT_READ | UC_PROT_WRITE, vcpu->pages + PH__SOFT_STAND_IN))
        return false;
    vcpu->stand_in = page;
    return true;
}

static bool map_goes_on(struct ph__soft_vcpu *vcpu, uc_mem_type type, uint64_t address) {
    if (!vcpu->tables.entries)
        return false;
    return type == UC_MEM_WRITE_PROT ||
           ((type == UC_MEM_READ_UNMAPPED || type == UC_MEM_WRITE_UNMAPPED) && give_page(vcpu, address));
}

static void map_settle(struct ph__soft_vcpu *vcpu) {
    if (vcpu->stand_in != PH__SOFT_NO_PAGE)
        uc_mem_unmap(vcpu->engine, vcpu->stand_in, PH__PAGE_SIZE);
    vcpu->stand_in = PH__SOFT_NO_PAGE;
}

static uint64_t map_address(uint64_t missing) {
    return missing;
}

const struct ph__soft_way ph__soft_map = {
    .mirrors_data = true,
    .start = map_start,
    .remove = map_remove,
    .add = map_add,
    .changed = ph__soft_tables_make,
    .goes_on = map_goes_on,
    .settle = map_settle,
    .address = map_address,
};
