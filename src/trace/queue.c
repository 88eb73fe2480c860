/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The queue of batches (queue.h). Its memory is mapped lazily: a sandbox that traces little costs little.
 */
#include "trace/queue.h"

#include <sys/mman.h>

#include "abi/hot.h"
#include "base/system.h"

bool ph__queue_init(struct ph__queue *queue, uint64_t size) {
    void *bytes = ph__system.mmap(NULL, size, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *queue = (struct ph__queue){.size = size};
    if (bytes == MAP_FAILED)
        return false;
    queue->bytes = bytes;
    return true;
}

void ph__queue_free(struct ph__queue *queue) {
    if (queue->bytes)
        ph__system.munmap(queue->bytes, queue->size);
    queue->bytes = NULL;
}

PH__HOT void *ph__queue_reserve(struct ph__queue *queue, uint64_t size, uint64_t kept) {
    uint64_t filled = atomic_load_explicit(&queue->filled, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_acquire);
    uint64_t place = filled & (queue->size - 1);
    uint64_t left = queue->size - place;
    uint64_t free = queue->size - (filled - taken);

    if (size <= left)
        return size + kept <= free ? queue->bytes + place : NULL;
    /* What fills up the end takes room too. */
    if (left + size + kept > free)
        return NULL;
    struct ph__batch *filler = (struct ph__batch *)(queue->bytes + place);
    /* Only the first 8 bytes of a head are sure to be there. */
    filler->size = (uint32_t)left;
    filler->kind = 0;
    atomic_store_explicit(&queue->filled, filled + left, memory_order_release);
    return queue->bytes;
}

PH__HOT void ph__queue_push(struct ph__queue *queue, const struct ph__batch *batch) {
    uint64_t filled = atomic_load_explicit(&queue->filled, memory_order_relaxed);

    atomic_store_explicit(&queue->filled, filled + batch->size, memory_order_release);
}

const struct ph__batch *ph__queue_front(struct ph__queue *queue) {
    for (;;) {
        uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);
        if (taken == atomic_load_explicit(&queue->filled, memory_order_acquire))
            return NULL;
        const struct ph__batch *batch = (struct ph__batch *)(queue->bytes + (taken & (queue->size - 1)));
        if (batch->kind != 0)
            return batch;
        ph__queue_drop(queue, batch);
    }
}

void ph__queue_drop(struct ph__queue *queue, const struct ph__batch *batch) {
    uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);

    atomic_store_explicit(&queue->taken, taken + batch->size, memory_order_release);
}
