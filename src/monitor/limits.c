/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Resource limits and scheduling. Limits are remembered for those who read back what they have set; what
 * really bounds the program is the arena, and the host.
 */
#include <linux/resource.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

static struct rlimit64 changed_limits[RLIM_NLIMITS];
static uint32_t changed;

static struct rlimit64 limit_get(uint32_t resource) {
    uint64_t value;
    if (changed & 1u << resource)
        return changed_limits[resource];
    switch (resource) {
    case RLIMIT_STACK:
        value = ph__control()->stack_size;
        break;
    case RLIMIT_NOFILE:
        value = PH__DESCRIPTORS_MAX;
        break;
    case RLIMIT_NPROC:
        value = 1;
        break;
    case RLIMIT_CORE:
    case RLIMIT_MEMLOCK:
    case RLIMIT_NICE:
    case RLIMIT_RTPRIO:
        value = 0;
        break;
    default:
        value = RLIM64_INFINITY;
    }
    return (struct rlimit64){value, value};
}

/* Reads the limit at (new_limit) and writes the old one to (old_limit), each unless it is 0. */
static int64_t limit_exchange(uint64_t resource, uint64_t new_limit, uint64_t old_limit) {
    if (resource >= RLIM_NLIMITS)
        return -EINVAL;
    struct rlimit64 wanted;
    struct rlimit64 now = limit_get((uint32_t)resource);
    if (new_limit != 0 && ph__copy_from_user(&wanted, new_limit, sizeof wanted) != 0)
        return -EFAULT;
    if (new_limit != 0) {
        if (wanted.rlim_cur > wanted.rlim_max)
            return -EINVAL;
        if (wanted.rlim_max > now.rlim_max)
            return -EPERM;
        changed_limits[resource] = wanted;
        changed |= 1u << resource;
    }
    return old_limit != 0 ? ph__copy_to_user(old_limit, &now, sizeof now) : 0;
}

int64_t ph__sys_prlimit64(struct ph__regs *regs) {
    if ((int32_t)regs->rdi != 0 && (int32_t)regs->rdi != PH__PROCESS_ID)
        return -ESRCH;
    return limit_exchange((uint32_t)regs->rsi, regs->rdx, regs->r10);
}

int64_t ph__sys_getrlimit(struct ph__regs *regs) {
    return regs->rsi == 0 ? -EFAULT : limit_exchange((uint32_t)regs->rdi, 0, regs->rsi);
}

int64_t ph__sys_setrlimit(struct ph__regs *regs) {
    return regs->rsi == 0 ? -EFAULT : limit_exchange((uint32_t)regs->rdi, regs->rsi, 0);
}

/* -------------------------------------------------------------- scheduling -- */

static bool is_self(uint64_t process) {
    return (int32_t)process == 0 || (int32_t)process == PH__PROCESS_ID;
}

int64_t ph__sys_sched_getaffinity(struct ph__regs *regs) {
    uint64_t one_processor = 1;
    if (!is_self(regs->rdi))
        return -ESRCH;
    if (regs->rsi < sizeof one_processor || regs->rsi % sizeof one_processor != 0)
        return -EINVAL;
    int64_t answer = ph__copy_to_user(regs->rdx, &one_processor, sizeof one_processor);
    return answer != 0 ? answer : (int64_t)sizeof one_processor;
}

int64_t ph__sys_sched_setaffinity(struct ph__regs *regs) {
    uint8_t first = 0;
    if (!is_self(regs->rdi))
        return -ESRCH;
    if (regs->rsi != 0 && ph__copy_from_user(&first, regs->rdx, sizeof first) != 0)
        return -EFAULT;
    return first & 1 ? 0 : -EINVAL;
}

int64_t ph__sys_sched_getparam(struct ph__regs *regs) {
    return is_self(regs->rdi) ? ph__zero_user(regs->rsi, sizeof(int32_t)) : -ESRCH;
}

int64_t ph__sys_getpriority(struct ph__regs *regs) {
    (void)regs;
    return 20; /* 20 - nice */
}

int64_t ph__sys_getcpu(struct ph__regs *regs) {
    if (regs->rdi != 0 && ph__zero_user(regs->rdi, sizeof(uint32_t)) != 0)
        return -EFAULT;
    return regs->rsi != 0 ? ph__zero_user(regs->rsi, sizeof(uint32_t)) : 0;
}
