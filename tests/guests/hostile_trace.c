/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Lies in the trace ring: records that are none, positions that cannot be, floods. The ring is written by
 * hand. Behind most lies comes a good record, the event `mark`, by which the test sees that reading goes on.
 */
#include "hostile.h"

#include "abi/trace.h"

static struct ph__ring *const ring = (struct ph__ring *)PH__TRACE_GVA;

/* ---- sites, by hand ------------------------------------------------------------------------------------ */

/* A site and its word. (fields) is assembly for its fields. */
/* clang-format off */
#define SITE(symbol, name, kind, count, fields)                                                              \
    __asm__(".pushsection ph_site_words, \"aR\", @progbits\n"                                                \
            ".balign 8\n"                                                                                    \
            ".globl " #symbol "\n"                                                                           \
            #symbol ": .quad 0\n"                                                                            \
            ".popsection\n"                                                                                  \
            ".pushsection .rodata\n"                                                                         \
            "901: .asciz \"" name "\"\n"                                                                     \
            "902: .asciz \"hostile_trace.c\"\n"                                                              \
            "903: .asciz \"lie\"\n"                                                                          \
            "904: " fields "\n"                                                                              \
            ".popsection\n"                                                                                  \
            ".pushsection ph_sites, \"aR\", @progbits\n"                                                     \
            ".balign 8\n"                                                                                    \
            ".long 901b - ., 902b - ., 903b - ., 904b - ., " #symbol " - ., 7\n"                             \
            ".byte " #kind ", 3, " #count ", 0, 0, 0, 0, 0\n"                                                \
            ".popsection");                                                                                  \
    extern const volatile uint64_t symbol
/* clang-format on */

SITE(site_mark, "mark", 2, 1, ".byte 4\n.asciz \"n\"\n");
SITE(site_span, "span", 1, 0, "");
SITE(site_more, "span", 4, 2, ".byte 9\n.asciz \"bytes\"\n.byte 4\n.asciz \"number\"\n");
SITE(site_text, "text", 2, 1, ".byte 8\n.asciz \"text\"\n");
SITE(site_log, "%s and %d", 3, 0, "");
SITE(site_counter, "counter", 5, 1, ".byte 3\n.asciz \"value\"\n");
SITE(site_async, "async", 6, 0, "");
SITE(site_async_end, "async", 7, 0, "");

/* ---- records, by hand ---------------------------------------------------------------------------------- */

static uint64_t tsc(void) {
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* An exit that asks for nothing: the host takes what is in the ring. */
static void drain(void) {
    ph__doorbell_ring(PH__DOORBELL_WRITE, 1, 0, 0);
}

/* Waits until (size) bytes have room at (head), where that is for the host to make, and gives their place. */
static uint64_t *room(uint64_t head, uint64_t size) {
    while (control->trace.policy == PH__POLICY_COMPLETE &&
           head + size - control->trace.tail > control->trace.ring_size)
        ph__doorbell_ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0);
    return (uint64_t *)(PH__TRACE_RING_GVA + (head & (control->trace.ring_size - 1)));
}

static void publish(uint64_t head) {
    __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
}

/* Writes a record of (count) words and gives its position. */
static uint64_t put(const uint64_t *words, uint32_t count) {
    uint64_t head = ring->head;
    uint64_t *place = room(head, 8 * (uint64_t)count);

    for (uint32_t i = 0; i < count; i++)
        place[i] = words[i];
    publish(head + 8 * (uint64_t)count);
    return head;
}

static uint64_t record(uint64_t word) {
    const uint64_t words[] = {word, tsc()};
    return put(words, 2);
}

static uint64_t record_1(uint64_t word, uint64_t first) {
    const uint64_t words[] = {word, tsc(), first};
    return put(words, 3);
}

static uint64_t end_word(uint64_t position) {
    return 2 | PH__RECORD_SPAN_END << PH__RECORD_TYPE_SHIFT | position / 8 << PH__RECORD_SITE_SHIFT;
}

/* Whether the next good record is the last thing that the guest does. */
static bool ends_badly;

static void end_badly(void) {
    ends_badly = true;
}
PH_EXPORT(end_badly, PH_VOID);

/* The good record. */
static void mark(uint64_t n) {
    if (site_mark)
        record_1(site_mark, n);
    if (ends_badly)
        __builtin_trap();
}

static void marks(uint64_t count, uint64_t first) {
    for (uint64_t i = 0; i < count; i++)
        mark(first + i);
}
PH_EXPORT(marks, PH_VOID, PH_U64, PH_U64);

/* ---- one record ---------------------------------------------------------------------------------------- */

/* Any words, of which (word) is the first; between two exits, so that what they swallow is known. */
static void forge(uint64_t word, uint64_t time, uint64_t third, uint64_t fourth, uint32_t count, uint64_t n) {
    const uint64_t words[16] = {word, time ? time : tsc(), third, fourth};

    drain();
    put(words, count < 16 ? count : 16);
    drain();
    mark(n);
}
PH_EXPORT(forge, PH_VOID, PH_U64, PH_U64, PH_U64, PH_U64, PH_U32, PH_U64);

/* A record of site (which), the length that it should have as that says, and behind it (words). */
static void forge_site(uint32_t which, uint32_t length, ph_bytes words, uint64_t n) {
    const volatile uint64_t *const sites[] = {&site_mark, &site_span,    &site_more,  &site_text,
                                              &site_log,  &site_counter, &site_async, &site_async_end};
    uint64_t head = ring->head;
    uint64_t *place = room(head, 16 + words.size);

    place[0] = (*sites[which] & ~PH__RECORD_LENGTH_MASK) | length;
    place[1] = tsc();
    memcpy(place + 2, words.data, words.size);
    publish(head + 16 + words.size);
    drain();
    mark(n);
}
PH_EXPORT(forge_site, PH_VOID, PH_U32, PH_U32, PH_BYTES, PH_U64);

/* ---- positions ----------------------------------------------------------------------------------------- */

/* The head somewhere else. The lie goes on from there, as far as that is a place for a record. */
static void head_move(int64_t distance, uint64_t n) {
    drain();
    publish(ring->head + (uint64_t)distance);
    drain();
    publish(ring->head & ~7ull);
    drain();
    mark(n);
}
PH_EXPORT(head_move, PH_VOID, PH_I64, PH_U64);

/* Records that end where numbers do: the head wraps, and so does whoever adds a length to it. */
static void head_to_the_end(uint64_t length, uint64_t n) {
    drain();
    publish(0ull - 4096);
    drain();
    for (uint64_t at = 0ull - 4096; at != 0ull - 8; at += 8)
        *(uint64_t *)(PH__TRACE_RING_GVA + (at & (control->trace.ring_size - 1))) =
            PH__RECORD_WORD(PH__RECORD_EVENT, 0, length);
    publish(0ull - 8);
    drain();
    mark(n);
}
PH_EXPORT(head_to_the_end, PH_VOID, PH_U64, PH_U64);

/* Another word of the ring's page. */
static void page_word(uint32_t index, uint64_t value, uint64_t n) {
    uint64_t *words = (uint64_t *)ring;
    uint64_t head = ring->head;

    words[index] = value;
    drain();
    publish(head);
    mark(n);
}
PH_EXPORT(page_word, PH_VOID, PH_U32, PH_U64, PH_U64);

/* ---- floods -------------------------------------------------------------------------------------------- */

static void garbage(uint64_t seed, uint32_t size, uint32_t rounds, uint64_t n) {
    uint64_t state = seed;

    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t head = ring->head;
        uint64_t *place = room(head, size);
        for (uint32_t j = 0; j < size / 8; j++) {
            uint64_t word = random_next(&state);
            /* Half of them look a little like a record's head. */
            place[j] = word & 1 ? word : (word & 0xffffffff00000fffull) | (word >> 20 & 7) << 12;
        }
        publish(head + size);
        drain();
    }
    mark(n);
}
PH_EXPORT(garbage, PH_VOID, PH_U64, PH_U32, PH_U32, PH_U64);

/* (n) comes in an exit of its own, once the flood is over. */
static void flood(uint64_t count, uint64_t n) {
    for (uint64_t i = 0; i < count; i++)
        record_1(site_counter, i);
    drain();
    mark(n);
}
PH_EXPORT(flood, PH_VOID, PH_U64, PH_U64);

static void nest(uint64_t count, bool end, uint64_t n) {
    uint64_t first = ring->head;

    for (uint64_t i = 0; i < count; i++)
        record(site_span);
    for (uint64_t i = count; end && i > 0; i--)
        record(end_word(first + 16 * (i - 1)));
    drain();
    mark(n);
}
PH_EXPORT(nest, PH_VOID, PH_U64, PH_BOOL, PH_U64);

/* Ends of what was never begun. */
static void ends(uint64_t count, uint64_t position, uint64_t step, uint64_t n) {
    for (uint64_t i = 0; i < count; i++)
        record(end_word(position + i * step));
    drain();
    mark(n);
}
PH_EXPORT(ends, PH_VOID, PH_U64, PH_U64, PH_U64, PH_U64);

/* Fields without end for one span. */
static void fields(uint64_t count, uint64_t n) {
    uint64_t span = record(site_span);
    uint64_t words[3 + 1 + 125 + 1] = {0};

    words[0] = (site_more & ~PH__RECORD_LENGTH_MASK) | (3 + 1 + 125 + 1);
    words[2] = span;
    words[3] = 1000 | 1000ull << 32;
    for (uint64_t i = 0; i < count; i++) {
        words[1] = tsc();
        words[3 + 1 + 125] = i;
        put(words, 3 + 1 + 125 + 1);
    }
    record(end_word(span));
    drain();
    mark(n);
}
PH_EXPORT(fields, PH_VOID, PH_U64, PH_U64);

static void asyncs(uint64_t count, bool end, uint64_t n) {
    for (uint64_t i = 0; i < count; i++)
        record_1(site_async, i * 0x9e3779b97f4a7c15ull);
    for (uint64_t i = 0; end && i < count; i++)
        record_1(site_async_end, i * 0x9e3779b97f4a7c15ull);
    drain();
    mark(n);
}
PH_EXPORT(asyncs, PH_VOID, PH_U64, PH_BOOL, PH_U64);

/* The doorbell without need. */
static void batches(uint64_t count, uint64_t n) {
    for (uint64_t i = 0; i < count; i++)
        ph__doorbell_ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0);
    mark(n);
}
PH_EXPORT(batches, PH_VOID, PH_U64, PH_U64);

static void batches_for_ever(void) {
    for (;;)
        ph__doorbell_ring(PH__DOORBELL_TRACE_BATCH, 0, 0, 0);
}
PH_EXPORT(batches_for_ever, PH_VOID);

/* Garbage and exits for as long as one lets it. */
static void garbage_for_ever(void) {
    uint64_t state = 5;

    for (;;) {
        uint64_t head = ring->head;
        uint64_t *place = room(head, 4096);
        for (uint32_t j = 0; j < 512; j++)
            place[j] = random_next(&state);
        publish(head + 4096);
    }
}
PH_EXPORT(garbage_for_ever, PH_VOID);

/* Changes what the host is reading, without an exit. */
static void changes_for_ever(void) {
    uint64_t state = 7;

    for (;;) {
        uint64_t *bytes = (uint64_t *)PH__TRACE_RING_GVA;
        uint64_t random = random_next(&state);
        bytes[random % (control->trace.ring_size / 8)] = random_next(&state);
        if (random >> 61 == 0)
            publish(control->trace.tail + (random >> 32) % (2 * control->trace.ring_size));
    }
}
PH_EXPORT(changes_for_ever, PH_VOID);

/* ---- exceptions ---------------------------------------------------------------------------------------- */

#define NR_RT_SIGACTION 13

void restorer(void);

/* clang-format off */
__asm__(
    ".globl restorer\n"
    "restorer:\n"
    "mov $15, %eax\n" /* rt_sigreturn */
    "syscall\n"
    "ud2\n");
/* clang-format on */

static void on_trap(int number) {
    (void)number;
    record(site_span);
}

/* An exception with a handler that records, while ring->critical leads to (address): the monitor reads there,
 * and asks whether what it interrupts is a recorder. */
static void critical(uint64_t address, uint64_t n) {
    const uint64_t action[] = {(uint64_t)on_trap, 0x04000000 /* SA_RESTORER */, (uint64_t)restorer, 0};

    system_call(NR_RT_SIGACTION, 5 /* SIGTRAP */, (uint64_t)action, 0, 8, 0, 0);
    ring->critical = address;
    __asm__ volatile("int3" : : : "memory");
    mark(n);
}
PH_EXPORT(critical, PH_VOID, PH_U64, PH_U64);

/* ---- what is not the guest's --------------------------------------------------------------------------- */

static void write_word(void) {
    *(volatile uint64_t *)(uintptr_t)&site_mark = 1;
}
PH_EXPORT(write_word, PH_VOID);

static void write_control(void) {
    *(volatile uint64_t *)(uintptr_t)&control->trace.tail = 1;
}
PH_EXPORT(write_control, PH_VOID);

/* Asks for the right to write, and gives the answer. */
static int64_t protect_word(void) {
    uintptr_t page = (uintptr_t)&site_mark & ~(PH__PAGE_SIZE - 1);

    return (int64_t)ph__doorbell_ring(PH__DOORBELL_PROTECT, page, PH__PAGE_SIZE, 3);
}
PH_EXPORT(protect_word, PH_I64);

static void protect_and_write_word(void) {
    protect_word();
    write_word();
}
PH_EXPORT(protect_and_write_word, PH_VOID);

static int64_t protect_control(void) {
    return (int64_t)ph__doorbell_ring(PH__DOORBELL_PROTECT, (uint64_t)control, PH__PAGE_SIZE, 3);
}
PH_EXPORT(protect_control, PH_I64);

static int64_t protect_ring(uint32_t protection) {
    return (int64_t)ph__doorbell_ring(PH__DOORBELL_PROTECT, PH__TRACE_GVA, PH__PAGE_SIZE, protection);
}
PH_EXPORT(protect_ring, PH_I64, PH_U32);

/* Without a tracer there is none. */
static uint64_t read_ring(void) {
    return ((volatile struct ph__ring *)ring)->head;
}
PH_EXPORT(read_ring, PH_U64);

static void run_ring(void) {
    ((void (*)(void))PH__TRACE_RING_GVA)();
}
PH_EXPORT(run_ring, PH_VOID);

static uint64_t read_beyond_ring(void) {
    return *(volatile uint64_t *)(PH__TRACE_RING_GVA + 2 * control->trace.ring_size);
}
PH_EXPORT(read_beyond_ring, PH_U64);

/* ---- before the first call ----------------------------------------------------------------------------- */

void start_lie(int count, char **arguments) {
    (void)count;
    switch (arguments[0][0]) {
    case 'g':
        garbage(3, 8192, 8, 1);
        return;
    case 'h':
        head_move(-4096, 1);
        return;
    case 'n':
        nest(10000, false, 1);
        return;
    default:
        flood(100000, 1);
    }
}
