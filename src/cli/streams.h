/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where a guest's output goes and its input comes from: straight to and from our own descriptors for `run`;
 * for `call`, whose stdout is for the result, to stderr, and held back until the call's own line is out.
 */
#ifndef PH_CLI_STREAMS_H
#define PH_CLI_STREAMS_H

#include <pinhole/pinhole.h>

/* When the library ends the run, on the monotonic clock; 0 is never. */
struct ph__streams {
    uint64_t deadline_ns;
};

/* Prepares (streams) for a run that starts now and may take (timeout_ns), 0 for as long as it likes. */
void ph__streams_init(struct ph__streams *streams, uint64_t timeout_ns);

/* A ph_output_fn and a ph_input_fn; the context is a struct ph__streams. A signal and the deadline end their
 * waits. */
int64_t ph__streams_write(void *context, int stream, const void *data, size_t size);
int64_t ph__streams_read(void *context, void *data, size_t size);

/* Output held back. Zeroed to begin with. */
struct ph__held {
    char *bytes;
    size_t size, capacity;
    bool streaming; /* it was too much: what follows is not held */
};

/* A ph_output_fn; the context is a struct ph__held. */
int64_t ph__held_write(void *context, int stream, const void *data, size_t size);

/* Writes to stderr what is held, and frees it. */
void ph__held_flush(struct ph__held *held);

#endif
