/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What one record costs, told by the guest itself (bench/trace.c, bench/trace_policy.c). Loops are timed with
 * the time-stamp counter around them, and each export returns the cycles that its loop took. The caller asks
 * for no more records than the ring holds, so that no exit falls between the two readings.
 *
 * The floor of a record is in here, since it has to run in the same place: `rdtsc`, a store of 16 bytes, and
 * a check that there is room for them, in a buffer as large as the default ring, with the position in a
 * register.
 */
#include <pinhole/guest.h>

#include "../../src/abi/doorbell.h"

#define RING_SIZE (256u << 10)
#define CALL_SPANS 10
#define TELLING_SPANS 100
#define BATCH_RECORDS 256u /* 4 KiB of begins and ends */

/* Keeps what the compiler knows of memory from outliving one turn of a loop. */
#define BARRIER() __asm__ volatile("" ::: "memory")

static uint64_t counter(void) {
    return __builtin_ia32_rdtsc();
}

/* ---- the floor -------------------------------------------------------------------------------------------
 */

static struct {
    uint64_t limit;
    uint64_t position; /* between two calls, so that the buffer is walked through as the ring is */
    uint64_t bytes[RING_SIZE / 8] __attribute__((aligned(4096)));
} buffer;

/* (count) times the least that a record can be. */
static uint64_t floor_records(uint64_t count) {
    uint64_t position = buffer.position;

    buffer.limit = position + count * 16;
    uint64_t start = counter();
    for (uint64_t i = 0; i < count; i++) {
        if (position + 16 > *(volatile uint64_t *)&buffer.limit)
            __builtin_trap();
        volatile uint64_t *record = &buffer.bytes[position % RING_SIZE / 8];
        record[0] = i;
        record[1] = counter();
        position += 16;
    }
    uint64_t end = counter();
    buffer.position = position;
    return end - start;
}
PH_EXPORT(floor_records, PH_U64, PH_U64);

/* ---- one record, one span --------------------------------------------------------------------------------
 */

/* (count) spans are begun, and not ended before the call is. */
static uint64_t begin_records(uint64_t count) {
    uint64_t start = counter();

    for (uint64_t i = 0; i < count; i++) {
        PH_SPAN_BEGIN("begun");
        BARRIER();
    }
    return counter() - start;
}
PH_EXPORT(begin_records, PH_U64, PH_U64);

static uint64_t spans(uint64_t count) {
    uint64_t start = counter();

    for (uint64_t i = 0; i < count; i++) {
        PH_SPAN("scoped");
        BARRIER();
    }
    return counter() - start;
}
PH_EXPORT(spans, PH_U64, PH_U64);

/* ---- a site that is off ----------------------------------------------------------------------------------
 */

static __attribute__((noinline)) void empty_function(void) {
    BARRIER();
}

static __attribute__((noinline)) void quiet_function(void) {
    PH_SPAN_AT(PH_LEVEL_TRACE, "quiet");
    BARRIER();
}

static uint64_t call_empty(uint64_t count) {
    uint64_t start = counter();

    for (uint64_t i = 0; i < count; i++)
        empty_function();
    return counter() - start;
}
PH_EXPORT(call_empty, PH_U64, PH_U64);

static uint64_t call_quiet(uint64_t count) {
    uint64_t start = counter();

    for (uint64_t i = 0; i < count; i++)
        quiet_function();
    return counter() - start;
}
PH_EXPORT(call_quiet, PH_U64, PH_U64);

/* ---- calls that trace ------------------------------------------------------------------------------------
 */

/* Ten spans, and in each an event of two fields: 30 records. */
static void talk(uint64_t number) {
    for (int i = 0; i < CALL_SPANS; i++) {
        PH_SPAN("step");
        PH_EVENT("found", ph_u64("number", number), ph_i64("index", i));
    }
}
PH_EXPORT(talk, PH_VOID, PH_U64);

static void ten_spans(void) {
    for (int i = 0; i < CALL_SPANS; i++) {
        PH_SPAN("step", ph_i64("index", i), ph_str("table", "customers"));
        BARRIER();
    }
}
PH_EXPORT(ten_spans, PH_VOID);

static void hundred_spans(void) {
    for (int i = 0; i < TELLING_SPANS; i++) {
        PH_SPAN("one of a hundred");
        BARRIER();
    }
}
PH_EXPORT(hundred_spans, PH_VOID);

/* ---- ways of delivery ------------------------------------------------------------------------------------
 */

/* So many turns of a loop that nothing shortens: one takes about a cycle. */
static void work(uint64_t turns) {
    for (uint64_t i = 0; i < turns; i++)
        __asm__ volatile("");
}

/* (count) spans, and work in each; after every (per_exit) records the host is asked to take what is there,
 * unless that is 0. */
static void deliver(uint64_t count, uint64_t turns, uint64_t per_exit) {
    uint64_t until_exit = per_exit;

    for (uint64_t i = 0; i < count; i++) {
        ph_span span = PH_SPAN_BEGIN("piece");
        work(turns);
        if (until_exit && --until_exit == 0) {
            (void)ph__doorbell_ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0);
            until_exit = per_exit;
        }
        PH_SPAN_END(span);
        if (until_exit && --until_exit == 0) {
            (void)ph__doorbell_ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0);
            until_exit = per_exit;
        }
    }
}
PH_EXPORT(deliver, PH_VOID, PH_U64, PH_U64, PH_U64);

/* The same, and a bad end: what is left in the ring is the last that the host hears. */
static void deliver_and_crash(uint64_t count, uint64_t turns, uint64_t per_exit) {
    deliver(count, turns, per_exit);
    __builtin_trap();
}
PH_EXPORT(deliver_and_crash, PH_VOID, PH_U64, PH_U64, PH_U64);
