/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Input and output of streams: bytes go through the I/O pages, one exit for each filling. The host never
 * follows a pointer of the guest's here.
 */
#include <linux/uio.h>

#include "monitor/files.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

static char *io_pages(void) {
    return (char *)PH__GVA(PH__IO_GPA);
}

/* ------------------------------------------------------------------- output -- */

/* Bytes on their way out. */
struct output {
    uint64_t descriptor; /* 1 or 2, after dup */
    size_t filled;       /* bytes in the I/O pages */
    uint64_t written;    /* bytes that the host has taken */
};

/* Hands over what is in the I/O pages. Returns 0, or what ends the system call early. */
static int64_t output_flush(struct output *output) {
    if (output->filled == 0)
        return 0;
    size_t filled = output->filled;
    output->filled = 0;
    int64_t answer = (int64_t)ph__doorbell_ring(PH__DOORBELL_WRITE, output->descriptor, filled, 0);
    if (answer < 0)
        return answer;
    output->written += (uint64_t)answer;
    return (uint64_t)answer < filled ? -EAGAIN : 0;
}

static int64_t output_add(struct output *output, uint64_t address, uint64_t size) {
    while (size > 0) {
        size_t piece = PH__IO_SIZE - output->filled;
        if (piece > size)
            piece = size;
        int64_t answer = ph__copy_from_user(io_pages() + output->filled, address, piece);
        if (answer != 0)
            return answer;
        output->filled += piece;
        address += piece;
        size -= piece;
        answer = output->filled == PH__IO_SIZE ? output_flush(output) : 0;
        if (answer != 0)
            return answer;
    }
    return 0;
}

/* Bytes that were written before (error) count more than the error. */
static int64_t output_end(struct output *output, int64_t error) {
    int64_t answer = output_flush(output);
    if (output->written > 0)
        return (int64_t)output->written;
    return error != 0 ? error : answer;
}

static bool output_begin(uint64_t descriptor, struct output *output) {
    enum ph__descriptor stream = ph__descriptor_get(descriptor);
    *output = (struct output){.descriptor = stream == PH__OUTPUT ? 1 : 2};
    return stream == PH__OUTPUT || stream == PH__ERROR;
}

int64_t ph__sys_write(struct ph__regs *regs) {
    struct output output;
    uint64_t size = regs->rdx < PH__MOST_BYTES ? regs->rdx : PH__MOST_BYTES;
    if (!output_begin(regs->rdi, &output))
        return -EBADF;
    if (!ph__user_range(regs->rsi, regs->rdx))
        return -EFAULT;
    return output_end(&output, output_add(&output, regs->rsi, size));
}

int64_t ph__vector_entry(uint64_t vector, uint64_t index, uint64_t *rest, struct iovec *entry) {
    if (ph__copy_from_user(entry, vector + index * sizeof *entry, sizeof *entry) != 0)
        return -EFAULT;
    if ((int64_t)entry->iov_len < 0)
        return -EINVAL;
    if (entry->iov_len > *rest)
        entry->iov_len = *rest;
    *rest -= entry->iov_len;
    return ph__user_range((uint64_t)entry->iov_base, entry->iov_len) ? 0 : -EFAULT;
}

int64_t ph__sys_writev(struct ph__regs *regs) {
    struct output output;
    uint64_t rest = PH__MOST_BYTES;
    int64_t error = 0;
    if (!output_begin(regs->rdi, &output))
        return -EBADF;
    if (regs->rdx > UIO_MAXIOV)
        return -EINVAL;
    for (uint64_t i = 0; i < regs->rdx && error == 0; i++) {
        struct iovec entry;
        error = ph__vector_entry(regs->rsi, i, &rest, &entry);
        if (error == 0)
            error = output_add(&output, (uint64_t)entry.iov_base, entry.iov_len);
    }
    return output_end(&output, error);
}

/* -------------------------------------------------------------------- input -- */

/* Has the host put up to (size) bytes into the I/O pages. Returns how many, or -errno. */
static int64_t input_fill(uint64_t size) {
    if (size == 0)
        return 0;
    if (size > PH__IO_SIZE)
        size = PH__IO_SIZE;
    uint64_t since = ph__monotonic_ns();
    int64_t answer = (int64_t)ph__doorbell_ring(PH__DOORBELL_READ, 0, size, 0);
    ph__account_idle(since);
    return answer;
}

int64_t ph__sys_read(struct ph__regs *regs) {
    struct ph__open_file *open = ph__descriptor_file(regs->rdi);
    if (open)
        return ph__file_read(open, regs);
    if (ph__descriptor_get(regs->rdi) != PH__INPUT)
        return -EBADF;
    uint64_t size = regs->rdx < PH__MOST_BYTES ? regs->rdx : PH__MOST_BYTES;
    /* Before any byte is taken from the stream: it could not be put back. */
    if (!ph__user_range(regs->rsi, regs->rdx))
        return -EFAULT;
    int64_t count = input_fill(size);
    if (count > 0 && ph__copy_to_user(regs->rsi, io_pages(), (size_t)count) != 0)
        return -EFAULT;
    return count;
}

int64_t ph__sys_readv(struct ph__regs *regs) {
    struct iovec entry;
    uint64_t rest = PH__MOST_BYTES;
    struct ph__open_file *open = ph__descriptor_file(regs->rdi);
    if (open)
        return ph__file_readv(open, regs);
    if (ph__descriptor_get(regs->rdi) != PH__INPUT)
        return -EBADF;
    if (regs->rdx > UIO_MAXIOV)
        return -EINVAL;
    for (uint64_t i = 0; i < regs->rdx; i++) {
        int64_t error = ph__vector_entry(regs->rsi, i, &rest, &entry);
        if (error != 0)
            return error;
    }
    int64_t count = input_fill(PH__MOST_BYTES - rest);
    rest = PH__MOST_BYTES;
    int64_t done = 0;
    for (uint64_t i = 0; i < regs->rdx && done < count; i++) {
        if (ph__vector_entry(regs->rsi, i, &rest, &entry) != 0)
            return -EFAULT;
        uint64_t piece = (uint64_t)(count - done);
        if (piece > entry.iov_len)
            piece = entry.iov_len;
        if (ph__copy_to_user((uint64_t)entry.iov_base, io_pages() + done, piece) != 0)
            return -EFAULT;
        done += (int64_t)piece;
    }
    return count;
}
