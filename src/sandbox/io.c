/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Output, input and sleep of a guest. The bytes lie in the I/O page at a place that the host knows, so that
 * no guest pointer is followed here: the monitor has copied them, and answered EFAULT for bad ones itself.
 */
#include <errno.h>

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

ph_status ph__io_write(ph_sandbox *sandbox, uint64_t stream, uint64_t size) {
    const ph_config *config = &sandbox->config;

    if (size > PH__IO_SIZE)
        return ph__fault_protocol(sandbox, "output larger than the I/O page");
    if (stream != 1 && stream != 2)
        ph__answer(sandbox, -EBADF);
    else if (!config->output)
        ph__answer(sandbox, (int64_t)size);
    else
        ph__answer(sandbox,
                   clamp(config->output(config->output_context, (int)stream, io_bytes(sandbox), size), size));
    return PH_OK;
}

ph_status ph__io_read(ph_sandbox *sandbox, uint64_t stream, uint64_t size) {
    const ph_config *config = &sandbox->config;

    if (size > PH__IO_SIZE)
        return ph__fault_protocol(sandbox, "input larger than the I/O page");
    if (stream != 0)
        ph__answer(sandbox, -EBADF);
    else if (!config->input)
        ph__answer(sandbox, 0);
    else
        ph__answer(sandbox, clamp(config->input(config->input_context, io_bytes(sandbox), size), size));
    return PH_OK;
}

ph_status ph__io_sleep(ph_sandbox *sandbox, uint64_t nanoseconds) {
    ph__window_sleep(&sandbox->window, nanoseconds);
    ph__answer(sandbox, 0);
    return PH_OK;
}
