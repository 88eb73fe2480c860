/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading files: their bytes are in the file window, so nothing here needs the host.
 */
#include <linux/fs.h>
#include <linux/uio.h>

#include "monitor/files.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

/* Copies up to (size) bytes from (position) on to the guest. Returns how many, or -EFAULT. */
static int64_t read_at(uint32_t file, uint64_t position, uint64_t address, uint64_t size) {
    const struct ph__file_entry *entry = ph__file_entry(file);
    if (!ph__user_range(address, size))
        return -EFAULT;
    if (position >= entry->size)
        return 0;
    uint64_t count = entry->size - position;
    if (count > size)
        count = size;
    if (count > PH__MOST_BYTES)
        count = PH__MOST_BYTES;
    int64_t answer = ph__copy_to_user(address, (const void *)(entry->gva + position), count);
    return answer != 0 ? answer : (int64_t)count;
}

/* Bytes that were read before an error count more than the error. */
static int64_t readv_at(uint32_t file, uint64_t position, uint64_t vector, uint64_t count) {
    uint64_t rest = PH__MOST_BYTES;
    int64_t done = 0;
    if (count > UIO_MAXIOV)
        return -EINVAL;
    for (uint64_t i = 0; i < count; i++) {
        struct iovec entry;
        int64_t answer = ph__vector_entry(vector, i, &rest, &entry);
        if (answer == 0)
            answer = read_at(file, position + (uint64_t)done, (uint64_t)entry.iov_base, entry.iov_len);
        if (answer < 0)
            return done > 0 ? done : answer;
        done += answer;
        if ((uint64_t)answer < entry.iov_len)
            break;
    }
    return done;
}

static int64_t advance(struct ph__open_file *open, int64_t count) {
    if (count > 0)
        open->position += (uint64_t)count;
    return count;
}

int64_t ph__file_read(struct ph__open_file *open, const struct ph__regs *regs) {
    return advance(open, read_at(open->file, open->position, regs->rsi, regs->rdx));
}

int64_t ph__file_readv(struct ph__open_file *open, const struct ph__regs *regs) {
    return advance(open, readv_at(open->file, open->position, regs->rsi, regs->rdx));
}

/* The file behind the descriptor of pread64 or preadv, which streams refuse. */
static int64_t positioned(const struct ph__regs *regs, const struct ph__open_file **open) {
    *open = ph__descriptor_file(regs->rdi);
    if (!*open)
        return ph__descriptor_get(regs->rdi) == PH__CLOSED ? -EBADF : -ESPIPE;
    return (int64_t)regs->r10 < 0 ? -EINVAL : 0;
}

int64_t ph__sys_pread64(struct ph__regs *regs) {
    const struct ph__open_file *open;
    int64_t answer = positioned(regs, &open);
    return answer != 0 ? answer : read_at(open->file, regs->r10, regs->rsi, regs->rdx);
}

int64_t ph__sys_preadv(struct ph__regs *regs) {
    const struct ph__open_file *open;
    int64_t answer = positioned(regs, &open);
    return answer != 0 ? answer : readv_at(open->file, regs->r10, regs->rsi, regs->rdx);
}

int64_t ph__file_seek(struct ph__open_file *open, int64_t offset, uint64_t whence) {
    int64_t size = (int64_t)ph__file_entry(open->file)->size;
    int64_t base = 0;
    switch ((uint32_t)whence) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        base = (int64_t)open->position;
        break;
    case SEEK_END:
        base = size;
        break;
    case SEEK_DATA:
    case SEEK_HOLE:
        if (offset < 0 || offset >= size)
            return -ENXIO;
        base = (uint32_t)whence == SEEK_HOLE ? size - offset : 0;
        break;
    default:
        return -EINVAL;
    }
    if (offset > 0 && base > INT64_MAX - offset)
        return -EOVERFLOW;
    if (base + offset < 0)
        return -EINVAL;
    open->position = (uint64_t)(base + offset);
    return base + offset;
}
