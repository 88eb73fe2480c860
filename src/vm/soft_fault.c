/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which exception of a processor there is where Unicorn has refused an access to memory, or its own processor
 * has raised one (soft_parts.h): what the guest's page tables say of the address decides, and not where
 * Unicorn noticed it.
 */
#include "vm/soft_parts.h"

#define VECTOR_BREAKPOINT 3u
#define VECTOR_OVERFLOW 4u
#define VECTOR_COUNT 32u

#define INT_SIZE 2u

/* Error codes (SDM volume 3, chapters 4.7 and 6.13). */
#define FAULT_PRESENT 1u
#define FAULT_WRITE 2u
#define ERROR_IDT 2u

void ph__soft_fail(struct ph__exit *exit, const char *what) {
    exit->kind = PH__EXIT_FAILED;
    exit->what = what;
}

void ph__soft_raise(struct ph__exit *exit, uint32_t vector, uint32_t error_code) {
    exit->kind = PH__EXIT_EXCEPTION;
    exit->vector = vector;
    exit->error_code = error_code;
}

static bool is_canonical(uint64_t address) {
    return address < PH__USER_END || address >= ~(PH__USER_END - 1);
}

/* Whether page tables have something for (address), and what. */
static bool translates(const struct ph__soft_vcpu *vcpu, uint64_t address, struct ph__access *access) {
    const ph_gpa root = ph__paging_root(vcpu->memory);
    struct ph__translation translation;
    struct ph__range range;

    if (ph__paging_page(vcpu->memory, root, (ph_gva){address}, &range)) {
        *access = range.access;
        return true;
    }
    /* Pages of ring 0. */
    if (!ph__paging_walk(vcpu->memory, root, (ph_gva){address}, &translation))
        return false;
    *access = translation.access;
    return true;
}

static bool may(const struct ph__access *access, bool writes, bool fetches) {
    return access->user && (!writes || access->writable) && (!fetches || access->executable);
}

/* An access that Unicorn or its processor has refused. (size) is 1 if not known. */
struct refused {
    uint64_t address;
    uint32_t size;
    bool stores, fetches;
};

/* An address that is not canonical. */
static void report_beyond(struct ph__soft_vcpu *vcpu, uint64_t address, bool fetches, struct ph__exit *exit) {
    const bool by_stack = !fetches && ph__soft_is_stack(vcpu, address);

    if (fetches)
        ph__soft_branch_undo(vcpu, address);
    ph__soft_raise(exit, by_stack ? PH__SOFT_STACK_VECTOR : PH__SOFT_PROTECTION_VECTOR, 0);
}

static void report_refused(struct ph__soft_vcpu *vcpu, const struct refused *refused, struct ph__exit *exit) {
    const bool fetches = refused->fetches;
    const bool writes = refused->stores || (!fetches && ph__soft_is_update(vcpu));
    const uint64_t last = refused->address + refused->size - 1;
    uint64_t address = refused->address;
    struct ph__access access = {0};
    bool present;

    if (writes && !refused->stores)
        address = ph__soft_operand_start(vcpu, address);
    if (!is_canonical(address)) {
        report_beyond(vcpu, address, fetches, exit);
        return;
    }
    present = translates(vcpu, address, &access);
    /* Of an access across pages the second may be the one. */
    uint64_t next = (address | (PH__PAGE_SIZE - 1)) + 1;
    if (present && may(&access, writes, fetches) && last >= next) {
        address = next;
        if (!is_canonical(address)) {
            report_beyond(vcpu, address, fetches, exit);
            return;
        }
        present = translates(vcpu, address, &access);
    }
    if (present && may(&access, writes, fetches)) {
        /* What is not there although the page tables say so is the host's own. */
        exit->kind = PH__EXIT_MEMORY;
        return;
    }
    ph__soft_raise(exit, PH__SOFT_PAGE_FAULT_VECTOR,
                   PH__SOFT_FAULT_USER | (present ? FAULT_PRESENT : 0) | (writes ? FAULT_WRITE : 0) |
                       (fetches ? PH__SOFT_FAULT_FETCH : 0));
    exit->address = address;
}

/* One that Unicorn has refused: mostly to fetch code. */
void ph__soft_report_access(struct ph__soft_vcpu *vcpu, struct ph__exit *exit) {
    report_refused(vcpu,
                   &(struct refused){
                       .address = vcpu->address,
                       .size = vcpu->size,
                       .stores = vcpu->access == UC_MEM_WRITE_UNMAPPED || vcpu->access == UC_MEM_WRITE_PROT,
                       .fetches = vcpu->access == UC_MEM_FETCH_UNMAPPED || vcpu->access == UC_MEM_FETCH_PROT,
                   },
                   exit);
}

/* A page fault of the processor, whose page tables are not the guest's: it is looked up there. */
static void report_page_fault(struct ph__soft_vcpu *vcpu, uint32_t error_code, struct ph__exit *exit) {
    struct refused refused = {
        .size = 1, .stores = error_code & FAULT_WRITE, .fetches = error_code & PH__SOFT_FAULT_FETCH};

    uc_reg_read(vcpu->engine, UC_X86_REG_CR2, &refused.address);
    report_refused(vcpu, &refused, exit);
}

/* Our IDT lets ring 3 use the gates of breakpoint and overflow, and no other, which Unicorn does not look at.
 */
void ph__soft_report_interrupt(struct ph__soft_vcpu *vcpu, struct ph__exit *exit) {
    const struct ph__soft_exception exception = ph__soft_exception_end(vcpu);

    if (exception.software && (vcpu->vector == VECTOR_BREAKPOINT || vcpu->vector == VECTOR_OVERFLOW)) {
        ph__soft_raise(exit, vcpu->vector, 0);
    } else if (exception.software) {
        vcpu->regs.rip -= INT_SIZE;
        ph__soft_raise(exit, PH__SOFT_PROTECTION_VECTOR, vcpu->vector * 8 + ERROR_IDT);
    } else if (vcpu->vector == PH__SOFT_PAGE_FAULT_VECTOR) {
        report_page_fault(vcpu, exception.error_code, exit);
    } else if (vcpu->vector == PH__SOFT_PROTECTION_VECTOR && !is_canonical(vcpu->regs.rip)) {
        report_beyond(vcpu, vcpu->regs.rip, true, exit);
    } else if (vcpu->vector == PH__SOFT_PROTECTION_VECTOR && !is_canonical(vcpu->address)) {
        report_beyond(vcpu, vcpu->address, false, exit);
    } else if (vcpu->vector < VECTOR_COUNT) {
        ph__soft_raise(exit, vcpu->vector, exception.error_code);
    } else {
        ph__soft_fail(exit, "an exception that there is not");
    }
}
