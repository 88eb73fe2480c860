/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest's side of the ring (trace.h): how a record is written, and where the room for it comes from.
 * Shared by guest library and monitor; guest-trace.h has the first part once more, inline, for records of a
 * few words.
 *
 * An exception may come at any instruction, and its handler may record and return, or never return. What is
 * written at head before head has moved is therefore not safe by itself: a handler would publish its own
 * record at the same place, and the writer would go on to overwrite it. So writing is a restartable sequence:
 * from the load of head to its store nothing else is changed that matters, and whoever delivers exceptions,
 * the monitor, sends the writer back to the start if head has moved meanwhile (ph__critical_enter when it
 * enters the handler, ph__critical_leave when that returns). ring->critical says which sequence is under way:
 * each stores the address of its own struct ph__critical before anything else, so what an older one has left
 * there is of no account. The one store of head publishes; a handler that never returns leaves nothing
 * behind.
 *
 * Everything else is monotonic: an older value of a limit is a smaller one, and only leads here too early.
 */
#ifndef PH_ABI_RECORDER_H
#define PH_ABI_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "doorbell.h"
#include "layout.h"
#include "trace.h"

static inline volatile struct ph__ring *ph__ring(void) {
    return (volatile struct ph__ring *)PH__TRACE_GVA;
}

static inline const volatile struct ph__control_trace *ph__ring_control(void) {
    return &((const volatile struct ph__control *)PH__GVA(PH__CONTROL_GPA))->trace;
}

/* Bits 4..35 of the caller's stack pointer, where word 0 has them. */
static inline uint64_t ph__ring_stack(void) {
    uint64_t pointer;
    __asm__ volatile("movq %%rsp, %0" : "=r"(pointer));
    return pointer >> 4 << PH__RECORD_STACK_SHIFT;
}

/* -------------------------------------------------------------- exceptions -- */

/* Where the writer is sent back to when an exception at (rip) has a handler that records, 0 for nowhere.
 * (critical) is ring->critical, and (distances) what lies there, which may be anything. */
static inline uint64_t ph__critical_start(uint64_t critical, const struct ph__critical *distances,
                                          uint64_t rip) {
    uint64_t start = critical + offsetof(struct ph__critical, start) + (uint64_t)(int64_t)distances->start;
    uint64_t end = critical + offsetof(struct ph__critical, end) + (uint64_t)(int64_t)distances->end;
    return rip >= start && rip < end ? start : 0;
}

/* ----------------------------------------------------------------- writing -- */

/* Publishes the (count) words at (words), the second of which gets the time. False when they do not fit below
 * the limit at (limit) bytes in the ring's first page. */
/* NOLINTNEXTLINE(readability-non-const-parameter): clang-tidy does not see the store */
static inline bool ph__ring_try(const uint64_t *words, uint64_t count, uint64_t limit, uint64_t *position) {
    uint64_t at, index;
    bool fits;

    __asm__ volatile(
        "7741: leaq 7742f(%%rip), %%rax\n\t"
        "movq %%rax, %c[critical](%[ring])\n\t"
        "movq (%[ring]), %%rcx\n\t"
        "leaq (%%rcx,%[count],8), %%rax\n\t"
        "cmpq (%[ring],%[limit]), %%rax\n\t"
        "ja 7744f\n\t"
        "movq %%rcx, %[at]\n\t"
        "andq %c[mask](%[ring]), %[at]\n\t"
        "leaq %c[bytes](%[ring],%[at]), %[at]\n\t"
        "movq %[count], %[index]\n\t"
        "7745: cmpq $2, %[index]\n\t"
        "jbe 7746f\n\t"
        "movq -8(%[words],%[index],8), %%rax\n\t"
        "movq %%rax, -8(%[at],%[index],8)\n\t"
        "decq %[index]\n\t"
        "jmp 7745b\n\t"
        "7746: movq (%[words]), %%rax\n\t"
        "movq %%rax, (%[at])\n\t"
        "rdtsc\n\t"
        "shlq $32, %%rdx\n\t"
        "orq %%rdx, %%rax\n\t"
        "movq %%rax, 8(%[at])\n\t"
        "leaq (%%rcx,%[count],8), %%rax\n\t"
        "movq %%rax, (%[ring])\n\t"
        "7743: stc\n"
        "7744:\n"
        ".pushsection .rodata.ph_critical,\"a\",@progbits\n"
        ".balign 4\n"
        "7742: .long 7741b - ., 7743b - .\n"
        ".popsection"
        : "=&c"(*position), [at] "=&r"(at), [index] "=&r"(index), "=@ccc"(fits)
        : [ring] "r"(ph__ring()), [words] "r"(words), [count] "r"(count), [limit] "r"(limit),
          [mask] "i"(offsetof(struct ph__ring, mask)), [critical] "i"(offsetof(struct ph__ring, critical)),
          [bytes] "i"(PH__TRACE_RING_GVA - PH__TRACE_GVA)
        : "rax", "rdx", "cc", "memory");
    return fits;
}

/* -------------------------------------------------------------------- room -- */

/* Policy `drop`: no record is written without a look in here until the loss has been told. */
static inline void ph__ring_drop(volatile struct ph__ring *ring, uint64_t bytes) {
    /* One instruction each, so that a handler that drops is counted, too. */
    __asm__ volatile("incq %0" : "+m"(ring->dropped) : : "cc");
    __asm__ volatile("addq %1, %0" : "+m"(ring->dropped_bytes) : "re"(bytes) : "cc");
    ring->limit = 0;
    ring->end_limit = 0;
}

static inline bool ph__ring_room_drop(volatile struct ph__ring *ring, uint64_t size, uint64_t bytes,
                                      bool is_end) {
    uint64_t end_limit = ph__ring_control()->tail + size;
    uint64_t limit = end_limit - PH__RING_RESERVE(size);
    uint64_t dropped = ring->dropped;
    bool is_untold = dropped != ring->gap_dropped;
    uint64_t position;

    if (is_untold) {
        const uint64_t gap[] = {PH__RECORD_WORD(PH__RECORD_GAP, 0, 4), 0, dropped, ring->dropped_bytes};
        ring->limit = limit;
        if (ph__ring_try(gap, 4, offsetof(struct ph__ring, limit), &position)) {
            ring->gap_dropped = dropped;
            is_untold = false;
        }
    }
    /* Ends may come before the loss is told; nothing else may. */
    if (is_untold)
        limit = 0;
    if (ring->head + bytes > (is_end ? end_limit : limit)) {
        ph__ring_drop(ring, bytes);
        return false;
    }
    ring->end_limit = end_limit;
    ring->limit = limit;
    return true;
}

static inline bool ph__ring_room_complete(volatile struct ph__ring *ring, uint64_t size, uint64_t bytes) {
    for (bool asked = false;; asked = true) {
        uint64_t limit = ph__ring_control()->tail + size;
        ring->end_limit = limit;
        ring->limit = limit;
        if (ring->head + bytes <= limit)
            return true;
        if (asked)
            break;
        ph__doorbell_ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0);
    }
    /* The host has made none. It always does; but a guest that asks for ever would be worse than a loss. */
    ph__ring_drop(ring, bytes);
    return false;
}

/* A record may be overwritten only when (oldest) is past it: the host reads from there when the guest has
 * died in the middle. Some more are given up at once, so that few records come here. */
static inline bool ph__ring_room_flight(volatile struct ph__ring *ring, uint64_t size, uint64_t bytes) {
    for (;;) {
        uint64_t head = ring->head;
        uint64_t oldest = ring->oldest;
        uint64_t next = oldest;
        bool advanced;
        while (next < head && next + size < head + bytes + size / 16) {
            uint64_t place = PH__TRACE_RING_GVA + (next & (size - 1));
            uint64_t words = *(volatile uint64_t *)place & PH__RECORD_LENGTH_MASK;
            /* Nothing that we have written. */
            if (words < PH__RECORD_WORDS_MIN || words * 8 > head - next)
                words = (head - next) / 8;
            next += words * 8;
        }
        /* A handler that has come in between has moved it on, and may have overwritten what was read here. */
        __asm__ volatile("cmpxchgq %3, %1"
                         : "=@ccz"(advanced), "+m"(ring->oldest), "+a"(oldest)
                         : "r"(next)
                         : "memory");
        if (!advanced)
            continue;
        ring->end_limit = next + size;
        ring->limit = next + size;
        return true;
    }
}

/* Makes room for a record of (bytes) bytes, as far as the policy allows: false when the record is lost. True
 * does not promise room: a handler may have taken it, and the writer tries again. */
static inline bool ph__ring_room(uint64_t bytes, bool is_end) {
    volatile struct ph__ring *ring = ph__ring();
    uint64_t size = ph__ring_control()->ring_size;

    switch (ph__ring_control()->policy) {
    case PH__POLICY_DROP:
        return ph__ring_room_drop(ring, size, bytes, is_end);
    case PH__POLICY_FLIGHT:
        return ph__ring_room_flight(ring, size, bytes);
    default:
        return ph__ring_room_complete(ring, size, bytes);
    }
}

/* Writes a record, words[1] of which gets the time. Returns its position, 0 when it is lost. */
static inline uint64_t ph__ring_write(const uint64_t *words, uint64_t count, bool is_end) {
    uint64_t limit = is_end ? offsetof(struct ph__ring, end_limit) : offsetof(struct ph__ring, limit);
    uint64_t position;

    while (!ph__ring_try(words, count, limit, &position))
        if (!ph__ring_room(count * 8, is_end))
            return 0;
    return position;
}

/* Word 0 of the end of the span whose begin record is at (position). */
static inline uint64_t ph__ring_end_word(uint64_t position, uint64_t words) {
    return PH__RECORD_WORD(PH__RECORD_SPAN_END, 0, words) | position / 8 << PH__RECORD_SITE_SHIFT;
}

#endif
