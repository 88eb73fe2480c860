/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Changing the protection of guest pages: what mprotect, and mmap with a protection of its own, come down to.
 * The host decides and plans, ring 0 of the guest stores (vm/paging.h says why).
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

#define RFLAGS_TRAP 0x100u

/* Changes as much as there is, as Linux does: (*answer) is the guest's errno for the rest. Fails when the
 * host side does. */
static ph_status change(ph_sandbox *sandbox, struct ph__protect *wanted, int64_t *answer) {
    uint32_t count;
    bool whole;

    do {
        whole = ph__paging_plan(&sandbox->memory, wanted, &count);
        if (!whole)
            *answer = -ENOMEM;
        if (count == 0)
            return PH_OK;
        ph_status status = sandbox->vcpu->backend->poke(sandbox->vcpu, count, &sandbox->error);
        if (status != PH_OK)
            return status;
        /* A large range, and a call that is to end: the exit loop sees to it. */
    } while (whole && !ph__window_marks(&sandbox->window));
    return PH_OK;
}

ph_status ph__protect_serve(ph_sandbox *sandbox, uint64_t gva, uint64_t size, uint64_t protection) {
    const uint64_t known = PROT_READ | PROT_WRITE | PROT_EXEC;
    const bool wx = (protection & PROT_WRITE) && (protection & PROT_EXEC);
    struct ph__protect wanted = {
        .gva = gva,
        .end = gva + size,
        .access = {.user = true, .writable = protection & PROT_WRITE, .executable = protection & PROT_EXEC},
        .present = protection != PROT_NONE,
    };
    int64_t answer = 0;

    /* The step would be taken in ring 0, instead of the stores. The monitor never steps. */
    if (sandbox->vcpu->regs->rflags & RFLAGS_TRAP)
        return ph__fault_protocol(sandbox, "a change of protection under single step");
    if ((gva | size) % PH__PAGE_SIZE != 0 || (protection & ~known) || wanted.end < gva)
        answer = -EINVAL;
    else if (wx && !(sandbox->image->flags & PH_IMAGE_ALLOW_WX))
        answer = -EACCES;
    else {
        ph_status status = change(sandbox, &wanted, &answer);
        if (status != PH_OK)
            return ph__sandbox_poison(sandbox, status);
    }
    ph__answer(sandbox, answer);
    return PH_OK;
}
