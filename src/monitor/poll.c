/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * poll and select. What is open is always ready: a read of a stream waits in the host. So these either
 * answer at once, or there is nothing to wait for and they sleep.
 */
#include <asm/poll.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define NS_PER_MILLISECOND 1000000ull
#define SET_BITS 64u

static int16_t events_ready(const struct pollfd *poll) {
    if (poll->fd < 0)
        return 0;
    switch (ph__descriptor_get((uint32_t)poll->fd)) {
    case PH__CLOSED:
        return POLLNVAL;
    case PH__INPUT:
        return poll->events & (POLLIN | POLLRDNORM);
    case PH__FILE:
        return poll->events & (POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);
    default:
        return poll->events & (POLLOUT | POLLWRNORM);
    }
}

/* Answers how many of the (count) entries are ready; sleeps if none is. */
static int64_t poll_wait(uint64_t entries, uint64_t count, uint64_t duration_ns) {
    int64_t ready = 0;
    if (count > PH__DESCRIPTORS_MAX)
        return -EINVAL;
    for (uint64_t i = 0; i < count; i++) {
        struct pollfd poll;
        uint64_t address = entries + i * sizeof poll;
        if (ph__copy_from_user(&poll, address, sizeof poll) != 0)
            return -EFAULT;
        poll.revents = events_ready(&poll);
        if (ph__copy_to_user(address, &poll, sizeof poll) != 0)
            return -EFAULT;
        ready += poll.revents != 0;
    }
    if (ready == 0 && ph__signals_pending())
        return -EINTR;
    if (ready == 0)
        ph__sleep(duration_ns);
    return ready;
}

int64_t ph__sys_poll(struct ph__regs *regs) {
    int32_t milliseconds = (int32_t)regs->rdx;
    uint64_t duration = milliseconds < 0 ? PH__FOREVER : (uint64_t)milliseconds * NS_PER_MILLISECOND;
    return poll_wait(regs->rdi, (uint32_t)regs->rsi, duration);
}

/* Reads the time-out and the signal mask that ppoll and pselect6 share. */
static int64_t wait_begin(uint64_t timeout, uint64_t mask, uint64_t mask_size, uint64_t *duration_ns) {
    uint64_t set;
    int64_t answer = timeout == 0 ? 0 : ph__duration_from_user(timeout, duration_ns);
    if (timeout == 0)
        *duration_ns = PH__FOREVER;
    if (answer != 0 || mask == 0)
        return answer;
    answer = ph__signal_set_from_user(mask, mask_size, &set);
    if (answer == 0)
        ph__signals_mask_for_call(set);
    return answer;
}

int64_t ph__sys_ppoll(struct ph__regs *regs) {
    uint64_t duration;
    int64_t answer = wait_begin(regs->rdx, regs->r10, regs->r8, &duration);
    return answer != 0 ? answer : poll_wait(regs->rdi, (uint32_t)regs->rsi, duration);
}

/* ------------------------------------------------------------------- select -- */

#define KIND(descriptor) (1u << (descriptor))

/* Cuts the set at (address) down to the descriptors of one of the (kinds), and adds their number to (ready).
 */
static int64_t set_reduce(uint64_t address, uint32_t count, uint32_t kinds, int64_t *ready) {
    if (address == 0)
        return 0;
    for (uint32_t base = 0; base < count; base += SET_BITS) {
        uint64_t word, left = 0;
        uint64_t place = address + base / 8;
        if (ph__copy_from_user(&word, place, sizeof word) != 0)
            return -EFAULT;
        for (uint32_t bit = 0; bit < SET_BITS && base + bit < count; bit++) {
            if (!(word >> bit & 1))
                continue;
            enum ph__descriptor kind = ph__descriptor_get(base + bit);
            if (kind == PH__CLOSED)
                return -EBADF;
            if (kinds & KIND(kind)) {
                left |= 1ull << bit;
                ++*ready;
            }
        }
        if (ph__copy_to_user(place, &left, sizeof left) != 0)
            return -EFAULT;
    }
    return 0;
}

static int64_t select_wait(const struct ph__regs *regs, uint64_t duration_ns) {
    int64_t ready = 0;
    if ((int32_t)regs->rdi < 0)
        return -EINVAL;
    uint32_t count = (uint32_t)regs->rdi;
    if (count > PH__DESCRIPTORS_MAX)
        count = PH__DESCRIPTORS_MAX;
    int64_t answer = set_reduce(regs->rsi, count, KIND(PH__INPUT) | KIND(PH__FILE), &ready);
    if (answer == 0)
        answer = set_reduce(regs->rdx, count, KIND(PH__OUTPUT) | KIND(PH__ERROR) | KIND(PH__FILE), &ready);
    if (answer == 0)
        answer = set_reduce(regs->r10, count, 0, &ready);
    if (answer != 0)
        return answer;
    if (ready == 0 && ph__signals_pending())
        return -EINTR;
    if (ready == 0)
        ph__sleep(duration_ns);
    return ready;
}

int64_t ph__sys_select(struct ph__regs *regs) {
    struct {
        int64_t seconds, microseconds;
    } timeout;
    if (regs->r8 == 0)
        return select_wait(regs, PH__FOREVER);
    if (ph__copy_from_user(&timeout, regs->r8, sizeof timeout) != 0)
        return -EFAULT;
    if (timeout.seconds < 0 || timeout.microseconds < 0)
        return -EINVAL;
    /* Linux takes more than a second of microseconds here. */
    uint64_t seconds = (uint64_t)timeout.seconds + (uint64_t)timeout.microseconds / 1000000;
    uint64_t rest = (uint64_t)timeout.microseconds % 1000000 * 1000;
    uint64_t most = PH__FOREVER / PH__NS_PER_SECOND;
    return select_wait(regs, seconds >= most ? PH__FOREVER - 1 : seconds * PH__NS_PER_SECOND + rest);
}

int64_t ph__sys_pselect6(struct ph__regs *regs) {
    struct {
        uint64_t mask, size;
    } signals = {0, 0};
    uint64_t duration;
    if (regs->r9 != 0 && ph__copy_from_user(&signals, regs->r9, sizeof signals) != 0)
        return -EFAULT;
    int64_t answer = wait_begin(regs->r8, signals.mask, signals.size, &duration);
    return answer != 0 ? answer : select_wait(regs, duration);
}
