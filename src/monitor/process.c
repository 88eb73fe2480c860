/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The program's end, its thread pointer, and prctl. There is one process with one thread, for ever: what
 * would make another is answered as by a Linux that has reached its limit.
 */
#include <asm/prctl.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

int64_t ph__answer_zero(struct ph__regs *regs) {
    (void)regs;
    return 0;
}

int64_t ph__answer_eperm(struct ph__regs *regs) {
    (void)regs;
    return -EPERM;
}

int64_t ph__answer_eagain(struct ph__regs *regs) {
    (void)regs;
    return -EAGAIN;
}

int64_t ph__answer_echild(struct ph__regs *regs) {
    (void)regs;
    return -ECHILD;
}

/* The host does not come back from these; a loop, so that nothing runs if it did. */
static _Noreturn void doorbell_last(uint32_t operation, uint64_t argument) {
    for (;;)
        ph__doorbell_ring(operation, argument, 0, 0);
}

void ph__exit(uint64_t status) {
    if (ph__is_traced())
        ph__trace_exit(status & 0xff, 0);
    doorbell_last(PH__DOORBELL_EXIT, status & 0xff);
}

void ph__kill(uint64_t signal) {
    /* As a shell has it. */
    if (ph__is_traced())
        ph__trace_exit(128 + signal, signal);
    doorbell_last(PH__DOORBELL_KILL, signal);
}

void ph__unhandled(void) {
    doorbell_last(PH__DOORBELL_UNHANDLED, 0);
}

int64_t ph__sys_exit(struct ph__regs *regs) {
    ph__exit(regs->rdi);
}

/* ------------------------------------------------------------- arch_prctl -- */

int64_t ph__sys_arch_prctl(struct ph__regs *regs) {
    uint64_t base = regs->rsi;
    switch (regs->rdi) {
    case ARCH_SET_FS:
    case ARCH_SET_GS:
        /* Also keeps out addresses that are not canonical, which would fault in here. */
        if (base >= PH__WINDOW_GVA && !ph__user_range(base, 0))
            return -EPERM;
        if (regs->rdi == ARCH_SET_FS)
            __asm__ volatile("wrfsbase %0" : : "r"(base));
        else
            __asm__ volatile("wrgsbase %0" : : "r"(base));
        return 0;
    case ARCH_GET_FS:
        __asm__ volatile("rdfsbase %0" : "=r"(base));
        return ph__copy_to_user(regs->rsi, &base, sizeof base);
    case ARCH_GET_GS:
        __asm__ volatile("rdgsbase %0" : "=r"(base));
        return ph__copy_to_user(regs->rsi, &base, sizeof base);
    default:
        return -EINVAL;
    }
}

/* ------------------------------------------------------------------ prctl -- */

#define NAME_SIZE 16u

static char thread_name[NAME_SIZE] = "pinhole";

static int64_t name_set(uint64_t address) {
    int64_t length = ph__length_user(address, NAME_SIZE - 1);
    if (length < 0)
        return length;
    char name[NAME_SIZE] = {0};
    if (ph__copy_from_user(name, address, (size_t)length) != 0)
        return -EFAULT;
    for (size_t i = 0; i < NAME_SIZE; i++)
        thread_name[i] = name[i];
    return 0;
}

int64_t ph__sys_prctl(struct ph__regs *regs) {
    static bool no_new_privileges;
    switch ((uint32_t)regs->rdi) {
    case PR_SET_NAME:
        return name_set(regs->rsi);
    case PR_GET_NAME:
        return ph__copy_to_user(regs->rsi, thread_name, NAME_SIZE);
    case PR_GET_DUMPABLE:
    case PR_SET_DUMPABLE:
    case PR_SET_PDEATHSIG:
    case PR_GET_KEEPCAPS:
    case PR_GET_SECCOMP:
        return 0;
    case PR_SET_NO_NEW_PRIVS:
        if (regs->rsi != 1)
            return -EINVAL;
        no_new_privileges = true;
        return 0;
    case PR_GET_NO_NEW_PRIVS:
        return no_new_privileges;
    default:
        return -EINVAL;
    }
}

int64_t ph__sys_membarrier(struct ph__regs *regs) {
    /* No other thread, no command to offer. */
    return regs->rdi == MEMBARRIER_CMD_QUERY ? 0 : -EINVAL;
}
