/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The bounded queue of batches between the thread that uses a sandbox and whoever decodes its trace. One
 * producer and one consumer at a time; neither waits for the other in here.
 *
 * Positions count bytes and never wrap. The producer's store of (filled) publishes a batch, and pairs with
 * the consumer's load; the consumer's store of (taken) gives room back, and pairs with the producer's load.
 * A batch lies in one piece: where it does not fit before the end of the memory, a batch of kind 0 fills
 * that up.
 */
#ifndef PH_TRACE_QUEUE_H
#define PH_TRACE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "trace/batch.h"

struct ph__queue {
    uint8_t *bytes;
    uint64_t size; /* a power of two */
    _Atomic uint64_t filled;
    _Atomic uint64_t taken;
};

/* False when there is no memory. (size) is a power of two; a batch may have half of it. */
bool ph__queue_init(struct ph__queue *queue, uint64_t size);
void ph__queue_free(struct ph__queue *queue);

/* Room for a batch of (size) bytes, a multiple of 8, that leaves (kept) bytes free behind it; NULL when there
 * is none now. Filled in and then published with ph__queue_push; what is never pushed is as if it had not
 * been asked for. */
void *ph__queue_reserve(struct ph__queue *queue, uint64_t size, uint64_t kept);
void ph__queue_push(struct ph__queue *queue, const struct ph__batch *batch);

/* The oldest batch, NULL when there is none; ph__queue_drop gives its room back. */
const struct ph__batch *ph__queue_front(struct ph__queue *queue);
void ph__queue_drop(struct ph__queue *queue, const struct ph__batch *batch);

/* Bytes in use, for any thread. What was taken is asked for first: it is never more than what was filled in
 * later. */
static inline uint64_t ph__queue_used(const struct ph__queue *queue) {
    struct ph__queue *q = (struct ph__queue *)queue;
    const uint64_t taken = atomic_load_explicit(&q->taken, memory_order_acquire);

    return atomic_load_explicit(&q->filled, memory_order_relaxed) - taken;
}

#endif
