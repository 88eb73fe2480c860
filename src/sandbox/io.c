/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Output, input and sleep of a guest. The bytes lie in the I/O page at a place that the host knows, so that
 * no guest pointer is followed here: the monitor has copied them, and answered EFAULT for bad ones itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/sandbox.h"

static uint8_t *io_bytes(const ph_sandbox *sandbox) {
    return sandbox->memory.base + PH__IO_GPA;
}

/* A callback's answer, which must not say more than there was. */
static int64_t clamp(int64_t answer, uint64_t size) {
    if (answer > 0 && (uint64_t)answer > size)
        return (int64_t)size;
    return answer < -4095 ? -EIO : answer;
}

/* Keeps output as bytes, up to the limit. Doubles its room, so that many small writes cost little. */
static int64_t keep(ph_sandbox *sandbox, uint64_t stream, const uint8_t *bytes, size_t size) {
    struct ph__kept_output *kept = &sandbox->kept[stream - 1];
    uint64_t limit = sandbox->config.keep_output;

    if (limit == 0 || size == 0)
        return (int64_t)size;
    if (size > limit - kept->size)
        size = limit - kept->size;
    if (size == 0)
        return -ENOSPC;
    if (size > kept->capacity - kept->size) {
        size_t capacity = kept->capacity * 2 > kept->size + size ? kept->capacity * 2 : kept->size + size;
        uint8_t *old = kept->bytes;
        uint8_t *more = malloc(capacity);
        if (!more)
            return -ENOSPC;
        if (kept->size)
            memcpy(more, old, kept->size);
        kept->bytes = more; /* before the old one goes: a child of fork() frees what it finds here */
        kept->capacity = capacity;
        free(old);
    }
    memcpy(kept->bytes + kept->size, bytes, size);
    kept->size += size;
    return (int64_t)size;
}

ph_bytes ph_sandbox_output(const ph_sandbox *sandbox, int stream) {
    if (!sandbox || (stream != 1 && stream != 2))
        return (ph_bytes){NULL, 0};
    return (ph_bytes){sandbox->kept[stream - 1].bytes, sandbox->kept[stream - 1].size};
}

void ph__output_forget(ph_sandbox *sandbox) {
    sandbox->kept[0].size = sandbox->kept[1].size = 0;
}

ph_status ph__io_write(ph_sandbox *sandbox, uint64_t stream, uint64_t size) {
    const ph_config *config = &sandbox->config;
    const uint8_t *bytes = io_bytes(sandbox);

    if (size > PH__IO_SIZE)
        return ph__fault_protocol(sandbox, "output larger than the I/O page");
    if (stream != 1 && stream != 2) {
        ph__answer(sandbox, -EBADF);
        return PH_OK;
    }
    /* What the limit leaves room for still goes out, also of the write that ends the guest. */
    uint64_t allowed = ph__limits_output_left(sandbox, size);
    int64_t taken = 0;
    if (allowed > 0 || size == 0)
        taken = config->output
                    ? clamp(config->output(config->output_context, (int)stream, bytes, allowed), allowed)
                    : keep(sandbox, stream, bytes, allowed);
    if (taken > 0) {
        sandbox->used.output_bytes += (uint64_t)taken;
        ph__count(sandbox->counts, PH__CELL_OUTPUT, (uint64_t)taken);
    }
    if (allowed < size && taken == (int64_t)allowed)
        return ph__fault_stopped(sandbox, PH_E_OUTPUT_LIMIT);
    ph__answer(sandbox, taken);
    return PH_OK;
}

/* The next of the config's bytes; 0 at their end. */
static int64_t give(ph_sandbox *sandbox, uint64_t size) {
    const ph_bytes *input = &sandbox->config.input_bytes;
    size_t left = input->size - sandbox->input_taken;
    size_t given = size < left ? size : left;

    if (given)
        memcpy(io_bytes(sandbox), (const uint8_t *)input->data + sandbox->input_taken, given);
    sandbox->input_taken += given;
    return (int64_t)given;
}

ph_status ph__io_read(ph_sandbox *sandbox, uint64_t stream, uint64_t size) {
    const ph_config *config = &sandbox->config;

    if (size > PH__IO_SIZE)
        return ph__fault_protocol(sandbox, "input larger than the I/O page");
    if (stream != 0)
        ph__answer(sandbox, -EBADF);
    else if (config->input)
        ph__answer(sandbox, clamp(config->input(config->input_context, io_bytes(sandbox), size), size));
    else
        ph__answer(sandbox, give(sandbox, size));
    return PH_OK;
}

ph_status ph__io_sleep(ph_sandbox *sandbox, uint64_t nanoseconds) {
    uint64_t start = ph__clock_cycles();

    ph__window_sleep(&sandbox->window, nanoseconds);
    sandbox->used.sleep += ph__clock_elapsed(start);
    ph__answer(sandbox, 0);
    return PH_OK;
}
