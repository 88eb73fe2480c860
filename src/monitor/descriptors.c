/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * File descriptors. 0, 1 and 2 stand for the streams that the host gives, as pipes; the others for files
 * that it has mapped. dup makes more names for either, which shells do.
 */
#include <linux/close_range.h>
#include <linux/fcntl.h>

#include "monitor/files.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define CLOSE_ON_EXEC 0x80u
#define OPEN_FILES_MAX 64u
#define FLAG_LARGE_FILE 0100000u /* what the kernel adds for every program of 64 bits */
_Static_assert(PH__FILE + OPEN_FILES_MAX <= CLOSE_ON_EXEC, "a descriptor's value and flag are one byte");

static struct ph__open_file open_files[OPEN_FILES_MAX];
/* An enum ph__descriptor each, PH__FILE plus the index of an open file, and CLOSE_ON_EXEC. */
static uint8_t descriptors[PH__DESCRIPTORS_MAX] = {PH__INPUT, PH__OUTPUT, PH__ERROR};
/* O_APPEND, O_NONBLOCK ... of each stream, for F_GETFL; without effect. */
static uint32_t status_flags[PH__ERROR + 1];

/* 0 if it is closed. */
static uint8_t value_of(uint64_t descriptor) {
    uint32_t number = (uint32_t)descriptor;
    return number < PH__DESCRIPTORS_MAX ? (uint8_t)(descriptors[number] & ~CLOSE_ON_EXEC) : 0;
}

enum ph__descriptor ph__descriptor_get(uint64_t descriptor) {
    uint8_t value = value_of(descriptor);
    return value < PH__FILE ? (enum ph__descriptor)value : PH__FILE;
}

struct ph__open_file *ph__descriptor_file(uint64_t descriptor) {
    uint8_t value = value_of(descriptor);
    return value < PH__FILE ? NULL : &open_files[value - PH__FILE];
}

static bool is_open(uint64_t descriptor) {
    return value_of(descriptor) != PH__CLOSED;
}

/* Has descriptor (number) stand for something else, or for nothing. */
static void descriptor_set(uint32_t number, uint8_t value) {
    struct ph__open_file *old = ph__descriptor_file(number);
    descriptors[number] = value;
    struct ph__open_file *open = ph__descriptor_file(number);
    if (open)
        open->references++;
    if (old)
        old->references--;
}

/* The lowest number that is free and not below (least), or PH__DESCRIPTORS_MAX. */
static uint32_t free_from(uint32_t least) {
    while (least < PH__DESCRIPTORS_MAX && is_open(least))
        least++;
    return least;
}

int64_t ph__descriptor_open(uint32_t file, uint64_t flags) {
    uint32_t number = free_from(0);
    uint32_t index = 0;
    if (number == PH__DESCRIPTORS_MAX)
        return -EMFILE;
    while (index < OPEN_FILES_MAX && open_files[index].references > 0)
        index++;
    if (index == OPEN_FILES_MAX)
        return -ENFILE;
    open_files[index] = (struct ph__open_file){
        .file = (uint16_t)file, .flags = (uint32_t)flags & (O_APPEND | O_NONBLOCK | O_NOATIME | O_PATH)};
    descriptor_set(number, (uint8_t)((PH__FILE + index) | (flags & O_CLOEXEC ? CLOSE_ON_EXEC : 0)));
    return number;
}

int64_t ph__sys_close(struct ph__regs *regs) {
    if (!is_open(regs->rdi))
        return -EBADF;
    descriptor_set((uint32_t)regs->rdi, PH__CLOSED);
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
            descriptor_set(i, PH__CLOSED);
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
    uint32_t number = free_from((uint32_t)least);
    if (number == PH__DESCRIPTORS_MAX)
        return -EMFILE;
    descriptor_set(number, (uint8_t)(value_of(old) | flags));
    return number;
}

static int64_t duplicate_to(uint64_t old, uint64_t new, uint8_t flags) {
    if (!is_open(old) || (uint32_t) new >= PH__DESCRIPTORS_MAX)
        return -EBADF;
    descriptor_set((uint32_t) new, (uint8_t)(value_of(old) | flags));
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

/* F_GETLK and F_OFD_GETLK: no lock is in the way. Nobody else is there to hold one. */
static int64_t lock_find(uint64_t address) {
    struct flock lock;
    if (ph__copy_from_user(&lock, address, sizeof lock) != 0)
        return -EFAULT;
    if (lock.l_type != F_RDLCK && lock.l_type != F_WRLCK)
        return -EINVAL;
    lock.l_type = F_UNLCK;
    return ph__copy_to_user(address, &lock, sizeof lock);
}

static int64_t lock_set(uint64_t address) {
    struct flock lock;
    if (ph__copy_from_user(&lock, address, sizeof lock) != 0)
        return -EFAULT;
    return lock.l_type == F_RDLCK || lock.l_type == F_WRLCK || lock.l_type == F_UNLCK ? 0 : -EINVAL;
}

static int64_t status_flags_get(enum ph__descriptor stream, const struct ph__open_file *open) {
    if (open)
        return (int64_t)(open->flags | FLAG_LARGE_FILE);
    return (stream == PH__INPUT ? O_RDONLY : O_WRONLY) | (int64_t)status_flags[stream];
}

static void status_flags_set(enum ph__descriptor stream, struct ph__open_file *open, uint64_t flags) {
    const uint32_t known = O_APPEND | O_NONBLOCK;
    uint32_t *kept = open ? &open->flags : &status_flags[stream];
    *kept = (*kept & ~known) | ((uint32_t)flags & known);
}

int64_t ph__sys_fcntl(struct ph__regs *regs) {
    enum ph__descriptor stream = ph__descriptor_get(regs->rdi);
    if (stream == PH__CLOSED)
        return -EBADF;
    struct ph__open_file *open = ph__descriptor_file(regs->rdi);
    uint8_t *descriptor = &descriptors[(uint32_t)regs->rdi];
    switch ((uint32_t)regs->rsi) {
    case F_DUPFD:
        return duplicate_from(regs->rdi, regs->rdx, 0);
    case F_DUPFD_CLOEXEC:
        return duplicate_from(regs->rdi, regs->rdx, CLOSE_ON_EXEC);
    case F_GETFD:
        return *descriptor & CLOSE_ON_EXEC ? FD_CLOEXEC : 0;
    case F_SETFD:
        *descriptor = (uint8_t)(value_of(regs->rdi) | (regs->rdx & FD_CLOEXEC ? CLOSE_ON_EXEC : 0));
        return 0;
    case F_GETFL:
        return status_flags_get(stream, open);
    case F_SETFL:
        status_flags_set(stream, open, regs->rdx);
        return 0;
    case F_GETLK:
    case F_OFD_GETLK:
        return open ? lock_find(regs->rdx) : -EINVAL;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return open ? lock_set(regs->rdx) : -EINVAL;
    default:
        return -EINVAL;
    }
}

int64_t ph__sys_flock(struct ph__regs *regs) {
    return is_open(regs->rdi) ? 0 : -EBADF;
}

int64_t ph__sys_ioctl(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -ENOTTY : -EBADF;
}

int64_t ph__sys_lseek(struct ph__regs *regs) {
    struct ph__open_file *open = ph__descriptor_file(regs->rdi);
    if (open)
        return ph__file_seek(open, (int64_t)regs->rsi, regs->rdx);
    return is_open(regs->rdi) ? -ESPIPE : -EBADF;
}

int64_t ph__sys_fadvise64(struct ph__regs *regs) {
    if (ph__descriptor_file(regs->rdi))
        return 0;
    return is_open(regs->rdi) ? -ESPIPE : -EBADF;
}

int64_t ph__sys_fsync(struct ph__regs *regs) {
    if (ph__descriptor_file(regs->rdi))
        return 0;
    return is_open(regs->rdi) ? -EINVAL : -EBADF;
}

/* Of descriptors that are not open for writing, or are pipes. */
int64_t ph__sys_ftruncate(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -EINVAL : -EBADF;
}

int64_t ph__sys_getdents64(struct ph__regs *regs) {
    return is_open(regs->rdi) ? -ENOTDIR : -EBADF;
}
