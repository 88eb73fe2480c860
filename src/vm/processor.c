/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Checks a processor's state that comes from outside, such as a snapshot's file, before a backend gets it
 * (vcpu.h). What ring 3 could not have made itself is refused. Facts are from the Intel SDM, volume 1,
 * chapters 3.4.3 (RFLAGS), 10.2.3 (MXCSR) and 13.4 (XSAVE).
 */
#include <string.h>

#include "abi/layout.h"
#include "base/error.h"
#include "vm/vcpu.h"

#define USER_END (1ull << 47)
#define RFLAGS_FIXED 0x2ull
#define RFLAGS_IF 0x200ull      /* KVM may report it as the processor had it in ring 3 */
#define RFLAGS_USER 0x254dd5ull /* status flags, DF, TF, NT, RF, AC, ID */

#define MXCSR_OFFSET 24u
#define MXCSR_RESERVED 0xffff0000u
#define HEADER_OFFSET 512u
#define HEADER_SIZE 64u
#define XSTATE_PKRU (1ull << 9)
#define MORE_STATE "vector state that guests do not have here"

static bool is_canonical(uint64_t address) {
    return address < USER_END || address >= ~(USER_END - 1);
}

static bool is_user_selector(uint16_t selector) {
    return selector < 4 || selector == PH__SELECTOR_USER_DATA || selector == PH__SELECTOR_USER_CODE;
}

static bool has_more_state(const struct ph__processor *processor, uint64_t xcr0) {
    uint64_t present;

    memcpy(&present, processor->xsave + HEADER_OFFSET, sizeof present);
    return present & ~(xcr0 | XSTATE_PKRU);
}

static const char *xsave_fault(const struct ph__processor *processor, uint64_t xcr0) {
    uint32_t mxcsr;
    uint64_t header[HEADER_SIZE / 8];

    if (processor->xsave_size < HEADER_OFFSET + HEADER_SIZE ||
        processor->xsave_size > sizeof processor->xsave)
        return "the size of its vector state";
    memcpy(&mxcsr, processor->xsave + MXCSR_OFFSET, sizeof mxcsr);
    memcpy(header, processor->xsave + HEADER_OFFSET, sizeof header);
    if (mxcsr & MXCSR_RESERVED)
        return "MXCSR";
    if (has_more_state(processor, xcr0))
        return MORE_STATE;
    for (size_t i = 1; i < sizeof header / sizeof header[0]; i++)
        if (header[i])
            return "the header of its vector state";
    return NULL;
}

static ph_status refuse(ph_error *error, const char *fault) {
    return ph__error_set(error, PH_E_SNAPSHOT, "the snapshot's processor is none that a guest can have: %s",
                         fault);
}

ph_status ph__processor_state_check(const struct ph__processor *processor, uint64_t xcr0, ph_error *error) {
    return has_more_state(processor, xcr0) ? refuse(error, MORE_STATE) : PH_OK;
}

ph_status ph__processor_check(const struct ph__processor *processor, uint64_t xcr0, ph_error *error) {
    const struct ph__regs *regs = &processor->regs;
    const char *fault = NULL;

    if (regs->rip >= USER_END)
        fault = "RIP";
    else if ((regs->rflags & ~(RFLAGS_USER | RFLAGS_IF)) != RFLAGS_FIXED)
        fault = "RFLAGS";
    else if (!is_canonical(processor->fs_base) || !is_canonical(processor->gs_base))
        fault = "the base of FS or GS";
    else if (!is_user_selector(processor->ds) || !is_user_selector(processor->es) ||
             !is_user_selector(processor->fs) || !is_user_selector(processor->gs))
        fault = "a selector";
    else
        fault = xsave_fault(processor, xcr0);
    return fault ? refuse(error, fault) : PH_OK;
}
