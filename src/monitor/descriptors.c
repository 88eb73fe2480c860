/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * File descriptors. 0, 1 and 2 stand for the streams that the host gives, as pipes; dup makes more names
 * for them, which shells do. Nothing else can be open.
 */
#include <linux/close_range.h>
#include <linux/fcntl.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define CLOSE_ON_EXEC 0x80u

/* An enum ph__descriptor each, and CLOSE_ON_EXEC. */
static uint8_t descriptors[PH__DESCRIPTORS_MAX] = {PH__INPUT, PH__OUTPUT, PH__ERROR};
/* O_APPEND, O_NONBLOCK ... of each stream, for F_GETFL; without effect. */
static uint32_t status_flags[PH__ERROR + 1];

enum ph__descriptor ph__descriptor_get(uint64_t descriptor) {
    uint32_t number = (uint32_t)descriptor;
    if (number >= PH__DESCRIPTORS_MAX)
        return PH__CLOSED;
    return (enum ph__descriptor)(descriptors[number] & ~CLOSE_ON_EXEC);
}

static bool is_open(uint64_t descriptor) {
    return ph__descriptor_get(descriptor) != PH__CLOSED;
}

int64_t ph__sys_close(struct ph__regs *regs) {
    if (!is_open(regs->rdi))
        return -EBADF;
    descriptors[(uint32_t)regs->rdi] = PH__CLOSED;
    return 0;
}

int64_t ph__sys_close_range(struct ph__regs *regs) {
    uint32_t first = (uint32_t)regs->rdi;
    uint32_t last = (uint32_t)regs->rsi;
    uint32_t flags = (uint32_t)regs->rdx;
    if ((flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)) || first > last)
        return -EINVAL;
    for (uint32_t i = first; i <= last && i < PH__DESCRIPTORS_MAX; i++) {
        if (!is_open(i))
            continue;
        if (flags & CLOSE_RANGE_CLOEXEC)
            descriptors[i] |= CLOSE_ON_EXEC;
        else
            descriptors[i] = PH__CLOSED;
    }
    return 0;
}

/* --------------------------------------------------------------------- dup -- */

/* Gives (old) the lowest free number that is not below (least). */
static int64_t duplicate_from(uint64_t old, uint64_t least, uint8_t flags) {
    if (!is_open(old))
        return -EBADF;
    if ((uint32_t)least >= PH__DESCRIPTORS_MAX)
        return -EINVAL;
    for (uint32_t i = (uint32_t)least; i < PH__DESCRIPTORS_MAX; i++) {
        if (!is_open(i)) {
            descriptors[i] = (uint8_t)(ph__descriptor_get(old) | flags);
            return i;
        }
    }
    return -EMFILE;
}

static int64_t duplicate_to(uint64_t old, uint64_t new, uint8_t flags) {
    if (!is_open(old) || (uint32_t) new >= PH__DESCRIPTORS_MAX)
        return -EBADF;
    descriptors[(uint32_t) new] = (uint8_t)(ph__descriptor_get(old) | flags);
    return (uint32_t) new;
}

int64_t ph__sys_dup(struct ph__regs *regs) {
    return duplicate_from(regs->rdi, 0, 0);
}

int64_t ph__sys_dup2(struct ph__regs *regs) {
    if ((uint32_t)regs->rdi == (uint32_t)regs->rsi)
        return is_open(regs->rdi) ? (int64_t)(uint32_t)regs->rdi : -EBADF;
    return duplicate_to(regs->rdi, regs->rsi, 0);
}

int64_t ph__sys_dup3(struct ph__regs *regs) {
    if ((uint32_t)regs->rdi == (uint32_t)regs->rsi || (regs->rdx & ~(uint64_t)O_CLOEXEC))
        return -EINVAL;
    return duplicate_to(regs->rdi, regs->rsi, regs->rdx & O_CLOEXEC ? CLOSE_ON_EXEC : 0);
}

/* ----------------------------------------------------------- fcntl and others -- */

int64_t ph__sys_fcntl(struct ph__regs *regs) {
    enum ph__descriptor stream = ph__descriptor_get(regs->rdi);
    if (stream == PH__CLOSED)
        return -EBADF;
    uint8_t *descriptor = &descriptors[(uint32_t)regs->rdi];
    switch ((uint32_t)regs->rsi) {
    case F_DUPFD:
        return duplicate_from(regs->rdi, regs->rdx, 0);
    case F_DUPFD_CLOEXEC:
        return duplicate_from(regs->rdi, regs->rdx, CLOSE_ON_EXEC);
    case F_GETFD:
        return *descriptor & CLOSE_ON_EXEC ? FD_CLOEXEC : 0;
    case F_SETFD:
        *descriptor = (uint8_t)(stream | (regs->rdx & FD_CLOEXEC ? CLOSE_ON_EXEC : 0));
        return 0;
    case F_GETFL:
        return (stream == PH__INPUT ? O_RDONLY : O_WRONLY) | (int64_t)status_flags[stream];
    case F_SETFL:
        status_flags[stream] = (uint32_t)regs->rdx & (O_APPEND | O_NONBLOCK);
        return 0;
    default:
        return -EINVAL;
    }
}

int64_t ph__sys_ioctl(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -ENOTTY : -EBADF;
}

int64_t ph__sys_lseek(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -ESPIPE : -EBADF;
}

int64_t ph__sys_fsync(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -EINVAL : -EBADF;
}

int64_t ph__sys_getdents64(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -ENOTDIR : -EBADF;
}
