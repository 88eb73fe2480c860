/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Who the program is and what it runs on: one process of an ordinary user, on a Linux of pinhole's own.
 */
#include <linux/sysinfo.h>
#include <linux/utsname.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

int64_t ph__answer_process(struct ph__regs *regs) {
    (void)regs;
    return PH__PROCESS_ID;
}

int64_t ph__answer_user(struct ph__regs *regs) {
    (void)regs;
    return PH__USER_ID;
}

int64_t ph__sys_getpgid(struct ph__regs *regs) {
    int32_t process = (int32_t)regs->rdi;
    return process == 0 || process == PH__PROCESS_ID ? PH__PROCESS_ID : -ESRCH;
}

int64_t ph__sys_getresuid(struct ph__regs *regs) {
    uint32_t user = PH__USER_ID;
    if (ph__copy_to_user(regs->rdi, &user, sizeof user) != 0 ||
        ph__copy_to_user(regs->rsi, &user, sizeof user) != 0)
        return -EFAULT;
    return ph__copy_to_user(regs->rdx, &user, sizeof user);
}

/* -1 leaves an id as it is; any other than the own one may not be had. */
static bool may_become(uint64_t id) {
    return (uint32_t)id == PH__USER_ID || (uint32_t)id == UINT32_MAX;
}

int64_t ph__sys_setuid(struct ph__regs *regs) {
    if ((uint32_t)regs->rdi == UINT32_MAX)
        return -EINVAL;
    return may_become(regs->rdi) ? 0 : -EPERM;
}

int64_t ph__sys_setreuid(struct ph__regs *regs) {
    return may_become(regs->rdi) && may_become(regs->rsi) ? 0 : -EPERM;
}

int64_t ph__sys_setresuid(struct ph__regs *regs) {
    return may_become(regs->rdx) ? ph__sys_setreuid(regs) : -EPERM;
}

int64_t ph__sys_uname(struct ph__regs *regs) {
    static const struct new_utsname name = {
        .sysname = "Linux",
        .nodename = "pinhole",
        .release = "6.1.0-pinhole",
        .version = "#1",
        .machine = "x86_64",
        .domainname = "(none)",
    };
    return ph__copy_to_user(regs->rdi, &name, sizeof name);
}

int64_t ph__sys_sysinfo(struct ph__regs *regs) {
    uint64_t total = ph__control()->arena_size;
    struct sysinfo info = {
        .uptime = (int64_t)(ph__monotonic_ns() / PH__NS_PER_SECOND),
        .totalram = total,
        .freeram = total - ph__pages_used() * PH__PAGE_SIZE,
        .procs = 1,
        .mem_unit = 1,
    };
    return ph__copy_to_user(regs->rdi, &info, sizeof info);
}
