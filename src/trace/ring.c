/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Taking records out of a guest's ring (abi/trace.h). The guest's head is read once and believed only as far
 * as it lies between the host's own tail and one ring beyond it. What lies there is copied, and never looked
 * at here; the tail that is given back is the host's own.
 *
 * The load of head pairs with the guest's store of it: what is before it has been written. The copy may
 * still catch bytes that a hostile guest changes meanwhile; only the copy is decoded.
 */
#include <string.h>
#include <x86intrin.h>

#include "abi/hot.h"
#include "trace/tracer.h"

/* The guest's words; it may change them at any time. */
PH__HOT static uint64_t untrusted(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

PH__HOT static bool is_flight(const struct ph__stream *stream) {
    return stream->policy == PH_TRACE_FLIGHT;
}

/* Moves the host's tail, and tells the guest. */
PH__HOT static void tail_set(struct ph__stream *stream, uint64_t tail) {
    stream->tail = tail;
    __atomic_store_n(&stream->view.control->tail, tail, __ATOMIC_RELEASE);
}

/* Something is missing here. The queue is told before whatever comes next, once for all that was lost until
 * then: a guest that only brings what is lost must not fill it. */
PH__COLD static void lose(struct ph__stream *stream, enum ph__loss cause, uint64_t records, uint64_t bytes) {
    struct ph__lost *lost = &stream->lost[cause];

    stream->any_lost = true;
    lost->any = true;
    lost->records += records;
    lost->bytes += bytes;
}

PH__HOT bool ph__ring_losses_tell(struct ph__stream *stream, uint64_t kept) {
    if (!stream->any_lost)
        return true;
    for (int cause = 0; cause < PH__LOSSES; cause++) {
        struct ph__lost *lost = &stream->lost[cause];
        if (!lost->any)
            continue;
        struct ph__batch_loss *loss = ph__queue_reserve(&stream->queue, sizeof *loss, kept);
        if (!loss)
            return false;
        *loss = (struct ph__batch_loss){
            .batch = {.size = sizeof *loss, .kind = PH__BATCH_LOSS, .tsc = __rdtsc()},
            .cause = (uint32_t)cause,
            .records = lost->records,
            .bytes = lost->bytes,
            .restarted = lost->restarted,
        };
        ph__queue_push(&stream->queue, &loss->batch);
        *lost = (struct ph__lost){0};
    }
    stream->any_lost = false;
    return true;
}

/* How many records seem to lie at [from, to): by their lengths, which the guest can still change. */
static uint64_t records_count(const struct ph__ring_view *view, uint64_t from, uint64_t to) {
    const uint64_t size = to - from;
    uint64_t count = 0;

    /* By distance: a hostile head may stand where positions wrap. */
    for (uint64_t done = 0; done < size; count++) {
        uint64_t place = (from + done) & (view->size - 1);
        uint64_t untrusted_word = untrusted((const uint64_t *)(view->bytes + place));
        uint64_t words = untrusted_word & PH__RECORD_LENGTH_MASK;
        done += 8 * (words < PH__RECORD_WORDS_MIN ? PH__RECORD_WORDS_MIN : words);
    }
    return count;
}

/* Whether the call and the sandbox may still bring (size) bytes. */
PH__HOT static bool budget_allows(const struct ph__stream *stream, uint64_t size) {
    return size <= stream->call_bytes_max - stream->call_bytes &&
           size <= stream->sandbox_bytes_max - stream->sandbox_bytes;
}

/* Copies [from, to), at most one ring, into the queue. False when it has no room. */
PH__HOT static bool records_push(struct ph__stream *stream, uint64_t from, uint64_t to) {
    const struct ph__ring_view *view = &stream->view;
    uint64_t size = to - from;
    uint64_t place = from & (view->size - 1);
    uint64_t first = view->size - place < size ? view->size - place : size;
    struct ph__batch_records *records = NULL;

    if (ph__ring_losses_tell(stream, PH__QUEUE_KEPT))
        records = ph__queue_reserve(&stream->queue, sizeof *records + size, PH__QUEUE_KEPT);
    if (!records)
        return false;
    memcpy(records->bytes, view->bytes + place, first);
    if (size > first)
        memcpy(records->bytes + first, view->bytes, size - first);
    records->batch.size = (uint32_t)(sizeof *records + size);
    records->batch.kind = PH__BATCH_RECORDS;
    records->batch.tsc = stream->last_tsc = __rdtsc();
    records->position = from;
    ph__queue_push(&stream->queue, &records->batch);
    stream->call_bytes += size;
    stream->sandbox_bytes += size;
    ph__trace_count(&stream->produced.bytes, size);
    return true;
}

/* A head that no honest guest has. What it wrote is lost, and the next records are read from there on. */
PH__COLD static void nonsense(struct ph__stream *stream, uint64_t head) {
    lose(stream, PH__LOSS_NONSENSE, 1, 0);
    if (!is_flight(stream))
        tail_set(stream, head & ~7ull);
    stream->flight_start = head & ~7ull;
}

/* The records of this call that have not been overwritten. */
PH__COLD static bool flight_take(struct ph__stream *stream, uint64_t head) {
    uint64_t untrusted_oldest = untrusted(&stream->view.ring->oldest);
    uint64_t start = stream->flight_start;

    if (untrusted_oldest > start && untrusted_oldest <= head)
        start = untrusted_oldest;
    if (head - start > stream->view.size || (head | start) % 8 != 0) {
        nonsense(stream, head);
        return true;
    }
    if (start > stream->flight_start)
        lose(stream, PH__LOSS_OVERWRITTEN, 0, start - stream->flight_start);
    /* Lost once, though the rest may be tried again. */
    stream->flight_start = start;
    if (head == start)
        return true;
    if (!budget_allows(stream, head - start)) {
        ph__ring_give_up(stream, PH__LOSS_BUDGET);
        return true;
    }
    if (!records_push(stream, start, head))
        return false;
    stream->flight_start = head;
    return true;
}

PH__HOT void ph__ring_flight_begin(struct ph__stream *stream) {
    if (stream->attached)
        stream->flight_start = untrusted(&stream->view.ring->head);
}

/* What was written though nothing was asked for. It makes no gap: nothing of the trace is missing. */
PH__HOT static void discard(struct ph__stream *stream, uint64_t head) {
    uint64_t size = head - (is_flight(stream) ? stream->flight_start : stream->tail);

    if (size == 0)
        return;
    /* Of what makes no sense, it is not known how much it is. */
    if (size <= stream->view.size)
        ph__trace_count(&stream->produced.lost_bytes, size);
    stream->flight_start = head & ~7ull;
    if (!is_flight(stream))
        tail_set(stream, head & ~7ull);
}

PH__HOT bool ph__ring_take(struct ph__stream *stream, bool bad_end) {
    uint64_t untrusted_head = untrusted(&stream->view.ring->head);

    if (stream->quiet) {
        discard(stream, untrusted_head);
        return true;
    }
    if (is_flight(stream))
        return !bad_end || flight_take(stream, untrusted_head);
    uint64_t size = untrusted_head - stream->tail;
    if (size == 0)
        return true;
    if (size > stream->view.size || size % 8 != 0) {
        nonsense(stream, untrusted_head);
        return true;
    }
    if (!budget_allows(stream, size)) {
        ph__ring_give_up(stream, PH__LOSS_BUDGET);
        return true;
    }
    if (!records_push(stream, stream->tail, untrusted_head))
        return false;
    tail_set(stream, untrusted_head);
    return true;
}

PH__COLD void ph__ring_give_up(struct ph__stream *stream, enum ph__loss cause) {
    uint64_t untrusted_head = untrusted(&stream->view.ring->head);
    uint64_t start = is_flight(stream) ? stream->flight_start : stream->tail;
    uint64_t size = untrusted_head - start;

    if (size == 0)
        return;
    if (size > stream->view.size || size % 8 != 0) {
        nonsense(stream, untrusted_head);
        return;
    }
    lose(stream, cause, records_count(&stream->view, start, untrusted_head), size);
    if (is_flight(stream))
        stream->flight_start = untrusted_head;
    else
        tail_set(stream, untrusted_head);
}

PH__HOT void ph__ring_dropped_report(struct ph__stream *stream) {
    if (stream->policy != PH_TRACE_DROP || stream->quiet)
        return;
    uint64_t untrusted_dropped = untrusted(&stream->view.ring->dropped);
    if (untrusted_dropped == stream->ring_dropped)
        return;
    stream->ring_dropped = untrusted_dropped;
    stream->ring_dropped_bytes = untrusted(&stream->view.ring->dropped_bytes);
    /* Counts of the guest's life, not of what is new. */
    stream->lost[PH__LOSS_RING] = (struct ph__lost){.restarted = stream->lost[PH__LOSS_RING].restarted};
    lose(stream, PH__LOSS_RING, untrusted_dropped, stream->ring_dropped_bytes);
}

void ph__ring_dropped_restart(struct ph__stream *stream) {
    if (stream->policy != PH_TRACE_DROP)
        return;
    stream->lost[PH__LOSS_RING] = (struct ph__lost){.restarted = true};
    lose(stream, PH__LOSS_RING, 0, 0);
}
