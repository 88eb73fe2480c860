/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * futex for one thread: nobody else can wait or wake, so a wake finds nobody, and a wait that would block
 * runs into its time-out or blocks for ever.
 */
#include <linux/futex.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

/* Reads the word, which must be aligned as for Linux. */
static int64_t word_read(uint64_t address, uint32_t *word) {
    return address % sizeof *word != 0 ? -EINVAL : ph__copy_from_user(word, address, sizeof *word);
}

static int64_t futex_wait(const struct ph__regs *regs, bool absolute) {
    uint32_t word;
    uint64_t duration = PH__FOREVER;
    int64_t answer = regs->r10 == 0 ? 0 : ph__duration_from_user(regs->r10, &duration);
    if (answer == 0)
        answer = word_read(regs->rdi, &word);
    if (answer != 0)
        return answer;
    if (word != (uint32_t)regs->rdx)
        return -EAGAIN;
    if (absolute && duration != PH__FOREVER) {
        uint64_t now = regs->rsi & FUTEX_CLOCK_REALTIME ? ph__realtime_ns() : ph__monotonic_ns();
        duration = duration > now ? duration - now : 0;
    }
    ph__sleep(duration);
    return -ETIMEDOUT;
}

int64_t ph__sys_futex(struct ph__regs *regs) {
    uint32_t word;
    int64_t answer;
    switch ((uint32_t)regs->rsi & (uint32_t)FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return futex_wait(regs, false);
    case FUTEX_WAIT_BITSET:
        return (uint32_t)regs->r9 == 0 ? -EINVAL : futex_wait(regs, true);
    case FUTEX_WAKE:
    case FUTEX_REQUEUE:
        return regs->rdi % sizeof word != 0 ? -EINVAL : 0;
    case FUTEX_WAKE_BITSET:
        return regs->rdi % sizeof word != 0 || (uint32_t)regs->r9 == 0 ? -EINVAL : 0;
    case FUTEX_CMP_REQUEUE:
        answer = word_read(regs->rdi, &word);
        return answer != 0 ? answer : word != (uint32_t)regs->r9 ? -EAGAIN : 0;
    default:
        return -ENOSYS;
    }
}
