/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest's recorder (guest-trace.h, abi/recorder.h, guest/trace.c), natively: this program maps a ring and
 * a control page where a guest has them, switches its own sites on, and plays the host (the doorbell is a
 * fault here) and the monitor (a signal handler that sends a writer back).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <pinhole/guest.h>

#include "abi/control.h"
#include "abi/recorder.h"
#include "abi/table.h"

#define SIZE (16u << 10)
#define FIRST (5ull * SIZE) /* not the ring's start, or 0 */
#define TRAP_FLAG 0x100

extern uint64_t words_start[] __asm__("__start_ph_site_words");
extern uint64_t words_end[] __asm__("__stop_ph_site_words");
extern const struct ph__site_entry sites_start[] __asm__("__start_ph_sites");
extern const struct ph__site_entry sites_end[] __asm__("__stop_ph_sites");

static struct ph__ring *const ring = (struct ph__ring *)PH__TRACE_GVA;
static struct ph__control *const control = (struct ph__control *)PH__GVA(PH__CONTROL_GPA);
static unsigned doorbells;
static bool host_takes;             /* what is in the ring at a doorbell, */
static void (*host_takes_by)(void); /* NULL or what looks at it before */

/* --------------------------------------------------------------- the host -- */

static void doorbell_serve(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];

    (void)info;
    if (code[0] != 0xe7 || code[1] != PH__DOORBELL_PORT || registers[REG_RAX] != PH__DOORBELL_TRACE_BATCH) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigaction(signal, &action, NULL);
        return;
    }
    doorbells++;
    if (host_takes_by)
        host_takes_by();
    if (host_takes)
        control->trace.tail = ring->head;
    registers[REG_RAX] = 0;
    registers[REG_RIP] += 2;
}

static uint32_t sites_count(void) {
    return (uint32_t)(((uintptr_t)sites_end - (uintptr_t)sites_start) / sizeof *sites_start);
}

static uint64_t site_word(const struct ph__site_entry *site, uint32_t number) {
    static const uint8_t types[] = {
        [PH__SITE_SPAN] = PH__RECORD_SPAN_BEGIN,     [PH__SITE_EVENT] = PH__RECORD_EVENT,
        [PH__SITE_LOG] = PH__RECORD_EVENT,           [PH__SITE_FIELDS] = PH__RECORD_FIELDS,
        [PH__SITE_COUNTER] = PH__RECORD_COUNTER,     [PH__SITE_ASYNC_BEGIN] = PH__RECORD_ASYNC_BEGIN,
        [PH__SITE_ASYNC_END] = PH__RECORD_ASYNC_END, [PH__SITE_FUNCTION] = PH__RECORD_FUNCTION_BEGIN,
    };
    bool has_extra = site->kind == PH__SITE_LOG || site->kind == PH__SITE_FIELDS ||
                     site->kind == PH__SITE_ASYNC_BEGIN || site->kind == PH__SITE_ASYNC_END;
    return PH__RECORD_WORD(types[site->kind], number, PH__RECORD_WORDS_MIN + has_extra + site->count);
}

static void sites_switch(bool on) {
    for (uint32_t i = 0; i < sites_count(); i++) {
        uint64_t *word =
            (uint64_t *)((uintptr_t)&sites_start[i].word + (uintptr_t)(intptr_t)sites_start[i].word);
        *word = on ? site_word(&sites_start[i], i) : 0;
    }
}

static void ring_start(enum ph__trace_policy policy) {
    struct sigaction action = {.sa_sigaction = doorbell_serve, .sa_flags = SA_SIGINFO | SA_NODEFER};

    /* cmocka has its own for each test. */
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    memset((void *)PH__TRACE_RING_GVA, 0xa5, SIZE);
    *ring = (struct ph__ring){
        .head = FIRST,
        .limit = FIRST + SIZE - (policy == PH__POLICY_DROP ? PH__RING_RESERVE(SIZE) : 0),
        .end_limit = FIRST + SIZE,
        .mask = SIZE - 1,
        .oldest = FIRST,
    };
    control->trace =
        (struct ph__control_trace){.ring_size = SIZE, .tail = FIRST, .policy = policy, .first = FIRST};
    doorbells = 0;
    host_takes = true;
    host_takes_by = NULL;
    sites_switch(true);
}

static int setup(void **state) {
    uintptr_t page = (uintptr_t)words_start & ~(uintptr_t)(PH__PAGE_SIZE - 1);
    int file = memfd_create("ring", MFD_CLOEXEC);

    (void)state;
    if (file < 0 || ftruncate(file, PH__PAGE_SIZE + SIZE) != 0)
        return -1;
    /* The bytes twice in a row. */
    for (unsigned i = 0; i < 2; i++) {
        void *at = (void *)(PH__TRACE_RING_GVA + i * SIZE);
        if (mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, PH__PAGE_SIZE) !=
            at)
            return -1;
    }
    if (mmap(ring, PH__PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0) !=
            ring ||
        mmap(control, PH__PAGE_SIZE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != control)
        return -1;
    close(file);
    return mprotect((void *)page, (uintptr_t)words_end - page, PROT_READ | PROT_WRITE);
}

/* ---------------------------------------------------------------- records -- */

struct record {
    uint64_t position;
    const uint64_t *words;
    uint32_t count;
    enum ph__record_type type;
    uint32_t site;
    const char *name; /* the site's */
};

/* Takes the record at (*position), which is before head. */
static struct record record_read(uint64_t *position) {
    assert_true(*position < ring->head);
    const uint64_t *words = (const uint64_t *)(PH__TRACE_RING_GVA + (*position & (SIZE - 1)));
    struct record record = {
        .position = *position,
        .words = words,
        .count = (uint32_t)(words[0] & PH__RECORD_LENGTH_MASK),
        .type = (enum ph__record_type)(words[0] >> PH__RECORD_TYPE_SHIFT & PH__RECORD_TYPE_MASK),
        .site = (uint32_t)(words[0] >> PH__RECORD_SITE_SHIFT) & PH__SITE_MAX,
    };
    assert_in_range(record.count, PH__RECORD_WORDS_MIN, PH__RECORD_WORDS_MAX);
    if (record.type != PH__RECORD_SPAN_END && record.type != PH__RECORD_GAP) {
        assert_in_range(record.site, 0, sites_count() - 1);
        record.name = (const char *)&sites_start[record.site].name + sites_start[record.site].name;
    }
    *position += 8ull * record.count;
    return record;
}

/* Takes the record at (*position); false at head. */
static bool record_take(uint64_t *position, struct record *record) {
    if (*position == ring->head)
        return false;
    *record = record_read(position);
    return true;
}

/* The next record, which is of (type) and has (count) words. */
static struct record expect(uint64_t *position, enum ph__record_type type, const char *name, uint32_t count) {
    struct record record = record_read(position);

    assert_int_equal(record.type, type);
    assert_int_equal(record.count, count);
    if (name)
        assert_string_equal(record.name, name);
    return record;
}

static void expect_no_more(uint64_t position) {
    assert_int_equal(position, ring->head);
}

static void expect_text(const uint64_t *words, const char *text, size_t full_size) {
    size_t size = strlen(text);
    assert_int_equal(words[0], size | (uint64_t)full_size << 32);
    assert_memory_equal(words + 1, text, size);
    for (size_t i = size; i % 8 != 0; i++)
        assert_int_equal(((const char *)(words + 1))[i], 0);
}

static void scalar_fields_are_words(void **state) {
    uint64_t position = FIRST;
    double f64 = -0.5;
    uint64_t bits;

    (void)state;
    ring_start(PH__POLICY_COMPLETE);
    uint64_t before = __builtin_ia32_rdtsc();
    ph_span span = PH_SPAN_BEGIN("six", ph_i64("a", -1), ph_u64("b", UINT64_MAX - 1), ph_f64("c", f64),
                                 ph_bool("d", true), ph_bool("e", false), ph_ptr("f", &position));
    PH_SPAN_FIELDS(span, ph_i64("g", 7));
    PH_SPAN_END(span);
    PH_COUNTER("rows", 9);
    PH_COUNTER_F64("load", f64);
    PH_ASYNC_BEGIN("request", 77, ph_bool("h", true));
    PH_ASYNC_END("request", 77);
    uint64_t after = __builtin_ia32_rdtsc();

    struct record record = expect(&position, PH__RECORD_SPAN_BEGIN, "six", 8);
    assert_int_equal(record.position, span.position);
    assert_int_equal(record.words[0] >> PH__RECORD_STACK_SHIFT, 0);
    assert_in_range(record.words[1], before, after);
    memcpy(&bits, &f64, sizeof bits);
    const uint64_t six[] = {UINT64_MAX, UINT64_MAX - 1, bits, 1, 0, (uint64_t)&position};
    assert_memory_equal(record.words + 2, six, sizeof six);
    record = expect(&position, PH__RECORD_FIELDS, "", 4);
    assert_int_equal(record.words[2], span.position);
    assert_int_equal(record.words[3], 7);
    record = expect(&position, PH__RECORD_SPAN_END, NULL, 2);
    assert_int_equal(record.words[0] >> PH__RECORD_SITE_SHIFT << 3, span.position);
    record = expect(&position, PH__RECORD_COUNTER, "rows", 3);
    assert_int_equal(record.words[2], 9);
    record = expect(&position, PH__RECORD_COUNTER, "load", 3);
    assert_int_equal(record.words[2], bits);
    record = expect(&position, PH__RECORD_ASYNC_BEGIN, "request", 4);
    assert_int_equal(record.words[2], 77);
    assert_int_equal(record.words[3], 1);
    record = expect(&position, PH__RECORD_ASYNC_END, "request", 3);
    assert_int_equal(record.words[2], 77);
    expect_no_more(position);
}

static void scoped_spans_have_the_stack_pointer_and_end_with_their_block(void **state) {
    uint64_t position = FIRST;
    uint64_t stack = (uint64_t)__builtin_frame_address(0) >> 4;

    (void)state;
    ring_start(PH__POLICY_COMPLETE);
    {
        PH_SPAN("outer");
        for (int i = 0; i < 2; i++) {
            PH_SPAN_AT(PH_LEVEL_TRACE, "inner");
            if (i == 1)
                break;
        }
        PH_EVENT("event");
    }
    struct record outer = expect(&position, PH__RECORD_SPAN_BEGIN, "outer", 2);
    assert_in_range((uint32_t)stack - (uint32_t)(outer.words[0] >> 32), 0, 4096);
    for (int i = 0; i < 2; i++) {
        struct record inner = expect(&position, PH__RECORD_SPAN_BEGIN, "inner", 2);
        struct record end = expect(&position, PH__RECORD_SPAN_END, NULL, 2);
        assert_int_equal(end.words[0] >> PH__RECORD_SITE_SHIFT << 3, inner.position);
    }
    struct record event = expect(&position, PH__RECORD_EVENT, "event", 2);
    assert_int_equal(event.words[0] >> 32, outer.words[0] >> 32);
    struct record end = expect(&position, PH__RECORD_SPAN_END, NULL, 2);
    assert_int_equal(end.words[0] >> PH__RECORD_SITE_SHIFT << 3, outer.position);
    expect_no_more(position);
}

static void sites_that_are_off_record_and_evaluate_nothing(void **state) {
    int evaluated = 0;

    (void)state;
    ring_start(PH__POLICY_COMPLETE);
    sites_switch(false);
    PH_SPAN_AS(span, PH_LEVEL_INFO, "span", ph_i64("n", ++evaluated));
    PH_SPAN_FIELDS(span, ph_i64("n", ++evaluated));
    PH_EVENT("event", ph_str("n", (++evaluated, "x")));
    PH_LOG_INFO("%d", ++evaluated);
    PH_ASYNC_BEGIN("async", (uint64_t)++evaluated);
    assert_int_equal(evaluated, 0);
    assert_int_equal(ring->head, FIRST);
    assert_int_equal(ring->critical, 0);
}

static void strings_are_kept_whole_as_far_as_they_fit(void **state) {
    char text[3001];
    uint64_t position = FIRST;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ring_start(PH__POLICY_COMPLETE);
    PH_EVENT("short", ph_str("a", "12345678"), ph_i64("n", 5), ph_bytes("b", "\0\1", 2), ph_str("c", ""));
    PH_EVENT("none", ph_str("a", NULL), ph_bytes("b", NULL, 0));
    PH_EVENT("long", ph_str("a", text));
    PH_EVENT("shared", ph_str("a", text), ph_str("b", "short"), ph_str("c", text), ph_bytes("d", text, 3000));

    struct record record = expect(&position, PH__RECORD_EVENT, "short", 2 + 2 + 1 + 2 + 1);
    expect_text(record.words + 2, "12345678", 8);
    assert_int_equal(record.words[4], 5);
    assert_int_equal(record.words[5], 2 | 2ull << 32);
    assert_int_equal(record.words[6], 0x100);
    assert_int_equal(record.words[7], 0);
    record = expect(&position, PH__RECORD_EVENT, "none", 2 + 2 + 1);
    expect_text(record.words + 2, "(null)", 6);
    assert_int_equal(record.words[4], 0);
    record = expect(&position, PH__RECORD_EVENT, "long", 2 + 1 + PH__TRACE_STRING_MAX / 8);
    text[PH__TRACE_STRING_MAX] = 0;
    expect_text(record.words + 2, text, 3000);
    /* 255 words without six for head and lengths, and without one for the short one: 248 for three. */
    record = expect(&position, PH__RECORD_EVENT, "shared", 2 + 4 + 1 + 3 * 82);
    text[82 * 8] = 0;
    expect_text(record.words + 2, text, 3000);
    expect_text(record.words + 2 + 83, "short", 5);
    expect_text(record.words + 2 + 85, text, 3000);
    expect_text(record.words + 2 + 85 + 83, text, 3000);
    expect_no_more(position);
}

static uint64_t types_of(const char *letters) {
    uint64_t types = 0;
    for (unsigned i = 0; letters[i]; i++) {
        ph_type type = letters[i] == 'i'   ? PH_I64
                       : letters[i] == 'u' ? PH_U64
                       : letters[i] == 'f' ? PH_F64
                       : letters[i] == 's' ? PH_STR
                                           : PH_POINTER;
        types |= (uint64_t)type << 4 * i;
    }
    return types;
}

/* The next record is a log's with values of the types (letters), of which (values) are the words. */
static void expect_log(uint64_t *position, const char *letters, const uint64_t *values, uint32_t count) {
    struct record record = expect(position, PH__RECORD_EVENT, NULL, 3 + count);
    assert_int_equal(record.words[2], types_of(letters));
    assert_memory_equal(record.words + 3, values, count * sizeof *values);
}
#define EXPECT_LOG(letters, ...)                                                                             \
    do {                                                                                                     \
        const uint64_t expected_values[] = {__VA_ARGS__};                                                    \
        expect_log(&position, letters, expected_values, sizeof expected_values / sizeof(uint64_t));          \
    } while (0)

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void logs_record_what_their_format_names(void **state) {
    static const char abc[3] = {'a', 'b', 'c'};
    /* The byte behind them is not there. */
    char *page = mmap(NULL, 2 * PH__PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *end = page + PH__PAGE_SIZE;
    uint64_t position = FIRST;
    const char *volatile no_text = NULL;

    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(mprotect(end, PH__PAGE_SIZE, PROT_NONE), 0);
    memcpy(end - sizeof abc, abc, sizeof abc);

    ring_start(PH__POLICY_COMPLETE);
    PH_LOG_ERROR("nothing 100%%");
    PH_LOG_WARN("%d %i %u %x %X %o %c", -1, 2, 3u, 4u, 5u, 6u, 'c');
    PH_LOG_INFO("%hhd %hu %ld %llu %zu %jd %td", (signed char)-1, (unsigned short)2, -3L, 4ull, (size_t)5,
                (intmax_t)-6, (ptrdiff_t)7);
    PH_LOG_DEBUG("%f %e %G %a %Lf", 1.5, -2.5, 3.5, 4.5, 5.5L);
    PH_LOG_TRACE("%p %ls %5.1f %-*d", (void *)8, L"wide", 0.5, -9, 10);
    PH_LOG_AT(PH_LEVEL_INFO, "%s|%.2s|%.*s|%.*s", "one", "two", 3, end - 3, -1, "four");
    PH_LOG_INFO("%.3s %d", end - 3, 1);
    PH_LOG_INFO("%s %d", no_text, 1);
    PH_LOG_INFO("%d %d %d %d %d %d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);

    expect_log(&position, "", NULL, 0);
    EXPECT_LOG("iiuuuui", (uint64_t)-1, 2, 3, 4, 5, 6, 'c');
    EXPECT_LOG("iuiuuii", (uint64_t)-1, 2, (uint64_t)-3, 4, 5, (uint64_t)-6, 7);
    EXPECT_LOG("fffff", bits_of(1.5), bits_of(-2.5), bits_of(3.5), bits_of(4.5), bits_of(5.5));
    struct record record = expect(&position, PH__RECORD_EVENT, NULL, 3 + 5);
    assert_int_equal(record.words[2], types_of("ppfii"));
    assert_int_equal(record.words[3], 8);
    assert_int_equal(record.words[6], (uint64_t)-9);
    assert_int_equal(record.words[7], 10);
    record = expect(&position, PH__RECORD_EVENT, NULL, 3 + 2 + 2 + 1 + 2 + 1 + 2);
    assert_int_equal(record.words[2], types_of("ssisis"));
    expect_text(record.words + 3, "one", 3);
    expect_text(record.words + 5, "tw", 2);
    assert_int_equal(record.words[7], 3);
    expect_text(record.words + 8, "abc", 3);
    assert_int_equal(record.words[10], (uint64_t)-1);
    expect_text(record.words + 11, "four", 4);
    record = expect(&position, PH__RECORD_EVENT, NULL, 3 + 2 + 1);
    expect_text(record.words + 3, "abc", 3);
    record = expect(&position, PH__RECORD_EVENT, NULL, 3 + 2 + 1);
    expect_text(record.words + 3, "(null)", 6);
    EXPECT_LOG("iiiiiiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    expect_no_more(position);
    munmap(page, 2 * PH__PAGE_SIZE);
}

/* --------------------------------------------------------------- policies -- */

static uint64_t taken, numbers_taken;

static void numbers_take(void) {
    struct record record;

    while (record_take(&taken, &record))
        assert_int_equal(record.words[2], numbers_taken++);
}

static void complete_asks_for_room_and_loses_nothing(void **state) {
    (void)state;
    ring_start(PH__POLICY_COMPLETE);
    host_takes_by = numbers_take;
    taken = FIRST;
    numbers_taken = 0;
    for (uint64_t i = 0; i < 5000; i++)
        PH_EVENT("n", ph_u64("n", i));
    numbers_take();
    assert_int_equal(numbers_taken, 5000);
    assert_int_equal(doorbells, (5000 * 24 - 1) / SIZE);
    assert_int_equal(ring->dropped, 0);
}

static void complete_gives_up_when_the_host_makes_no_room(void **state) {
    (void)state;
    ring_start(PH__POLICY_COMPLETE);
    host_takes = false;
    while (ring->head + 16 <= FIRST + SIZE)
        PH_EVENT("fill");
    for (int i = 0; i < 3; i++) {
        ph_span span = PH_SPAN_BEGIN("lost");
        assert_int_equal(span.position, 0);
    }
    assert_int_equal(doorbells, 3);
    assert_int_equal(ring->dropped, 3);
    assert_int_equal(ring->dropped_bytes, 48);
    assert_int_equal(ring->head, FIRST + SIZE);
}

static void drop_counts_what_it_drops_and_tells_where(void **state) {
    uint64_t position = FIRST;
    struct record record;
    uint64_t written = 0;

    (void)state;
    ring_start(PH__POLICY_DROP);
    ph_span open = PH_SPAN_BEGIN("open");
    for (int i = 0; i < 2000; i++) {
        ph_span span = PH_SPAN_BEGIN("n", ph_i64("i", i));
        written += span.position != 0;
    }
    assert_int_equal(written, (SIZE - PH__RING_RESERVE(SIZE) - 16) / 24);
    assert_int_equal(ring->dropped, 2000 - written);
    assert_int_equal(ring->dropped_bytes, 24 * (2000 - written));
    /* Nothing smaller slips in before the loss is told; ends have room of their own. */
    PH_EVENT("small");
    assert_int_equal(ring->dropped, 2001 - written);
    uint64_t head = ring->head;
    PH_SPAN_END(open);
    assert_int_equal(ring->head, head + 16);
    assert_int_equal(doorbells, 0);

    /* The host takes all. */
    while (record_take(&position, &record))
        assert_int_not_equal(record.type, PH__RECORD_GAP);
    control->trace.tail = ring->head;
    PH_EVENT("small");
    PH_EVENT("small");
    record = expect(&position, PH__RECORD_GAP, NULL, 4);
    assert_int_equal(record.words[2], 2001 - written);
    assert_int_equal(record.words[3], 24 * (2000 - written) + 16);
    expect(&position, PH__RECORD_EVENT, "small", 2);
    expect(&position, PH__RECORD_EVENT, "small", 2);
    expect_no_more(position);
}

static void drop_loses_ends_only_when_their_room_is_used_up(void **state) {
    (void)state;
    ring_start(PH__POLICY_DROP);
    ph_span open = PH_SPAN_BEGIN("open");
    for (int i = 0; i < 2000; i++)
        PH_EVENT("fill");
    uint64_t dropped = ring->dropped;
    for (unsigned i = 0; i < PH__RING_RESERVE(SIZE) / 16; i++)
        PH_SPAN_END(open);
    assert_int_equal(ring->dropped, dropped);
    assert_int_equal(ring->head, FIRST + SIZE);
    PH_SPAN_END(open);
    assert_int_equal(ring->dropped, dropped + 1);
}

static void flight_keeps_the_newest(void **state) {
    char text[200];

    (void)state;
    ring_start(PH__POLICY_FLIGHT);
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 3000; i++) {
        if (i % 7 == 0)
            PH_EVENT("n", ph_i64("i", i), ph_bytes("text", text, (size_t)i % sizeof text));
        else
            PH_EVENT("n", ph_i64("i", i));
        uint64_t position = ring->oldest;
        int64_t n = 0;
        struct record record;
        assert_true(ring->head - position <= SIZE);
        if (i >= 2000)
            assert_true(ring->head - position >= SIZE - SIZE / 8);
        while (record_take(&position, &record)) {
            if (n != 0)
                assert_int_equal(record.words[2], n + 1);
            n = (int64_t)record.words[2];
        }
        assert_int_equal(n, i);
    }
    assert_int_equal(doorbells, 0);
    assert_int_equal(ring->dropped, 0);
}

/* --------------------------------------------------------------- exceptions -- */

static unsigned steps, wanted_step;
static uint64_t pass;
static bool handler_jumps;
static unsigned handler_records;
static sigjmp_buf place;

/* The monitor's part, around a handler that records. */
static void step(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t rip = (uint64_t)registers[REG_RIP];
    uint64_t start =
        ring->critical ? ph__critical_start(ring->critical, (const void *)ring->critical, rip) : 0;
    uint64_t head = ring->head;

    (void)signal;
    (void)info;
    if (steps++ != wanted_step)
        return;
    for (unsigned i = 0; i < handler_records; i++) {
        if (i % 2 == 0)
            PH_EVENT("handler", ph_u64("pass", pass), ph_u64("i", i));
        else
            PH_EVENT("handler", ph_u64("pass", pass), ph_u64("i", i), ph_str("text", "out of a handler"));
    }
    if (handler_jumps)
        siglongjmp(place, 1);
    if (start && ring->head != head)
        registers[REG_RIP] = (greg_t)start;
    registers[REG_EFL] &= ~TRAP_FLAG; /* that was it */
}

/* All but the last record are whole when it is interrupted. */
static __attribute__((noinline)) void scalars(void) {
    PH_EVENT("scalars", ph_u64("pass", pass), ph_u64("more", ~pass));
}

static __attribute__((noinline)) void texts(void) {
    PH_EVENT("texts", ph_u64("pass", pass), ph_str("text", "interrupted"));
}

static __attribute__((noinline)) void span(void) {
    PH_SPAN("span", ph_u64("pass", pass));
}

static __attribute__((noinline)) void stepped(void (*function)(void)) {
    __asm__ volatile("subq $128, %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\taddq $128, %%rsp"
                     :
                     : "i"(TRAP_FLAG)
                     : "memory", "cc");
    function();
    __asm__ volatile("subq $128, %%rsp\n\tpushfq\n\tandq %0, (%%rsp)\n\tpopfq\n\taddq $128, %%rsp"
                     :
                     : "i"(~TRAP_FLAG)
                     : "memory", "cc");
}

static __attribute__((noinline)) void run_guarded(void (*function)(void)) {
    if (sigsetjmp(place, 1) == 0)
        stepped(function);
}

/* Fills the ring so that what is written next finds no room, or room for just one record of its size. */
static void ring_fill(enum ph__trace_policy policy, uint64_t room) {
    static const char zeroes[1000];
    uint64_t limit = ring->limit;

    /* Few large ones: policy `flight` goes through them, step by step. */
    while (ring->head + 1032 + room <= limit)
        PH_EVENT("fill", ph_bytes("zeroes", zeroes, sizeof zeroes));
    while (ring->head + 16 + room <= limit)
        PH_EVENT("fill");
    if (policy == PH__POLICY_DROP)
        control->trace.tail += SIZE / 2; /* the host has taken some meanwhile */
}

/* Checks what is in the ring from the oldest record on that has to be there, and counts. */
struct seen {
    unsigned main, ends, handler, gaps;
};

static struct seen ring_check(uint64_t position) {
    struct seen seen = {0};
    struct record record;
    uint64_t tsc = 0;

    while (record_take(&position, &record)) {
        assert_true(record.words[1] >= tsc);
        tsc = record.words[1];
        if (record.type == PH__RECORD_GAP) {
            seen.gaps++;
        } else if (record.type == PH__RECORD_SPAN_END) {
            seen.ends++;
        } else if (strcmp(record.name, "handler") == 0) {
            assert_int_equal(record.words[2], pass);
            assert_int_equal(record.words[3], seen.handler);
            if (seen.handler % 2 == 1)
                expect_text(record.words + 4, "out of a handler", 16);
            seen.handler++;
        } else if (strcmp(record.name, "fill") != 0) {
            assert_int_equal(record.words[2], pass);
            if (strcmp(record.name, "scalars") == 0)
                assert_int_equal(record.words[3], ~pass);
            if (strcmp(record.name, "texts") == 0)
                expect_text(record.words + 3, "interrupted", 11);
            seen.main++;
        }
    }
    return seen;
}

/* One pass for each instruction of (function): at that one, the handler comes. */
static void step_through(void (*function)(void), enum ph__trace_policy policy, bool is_full) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    bool has_come = true;
    bool has_asked = false;

    assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
    for (wanted_step = 0; has_come; wanted_step++) {
        ring_start(policy);
        pass = 1000 + wanted_step;
        if (is_full)
            ring_fill(policy, wanted_step % 3 * 16);
        uint64_t position = ring->head;
        steps = 0;
        run_guarded(function);
        has_come = steps > wanted_step;
        struct seen seen = ring_check(position);
        if (seen.handler != (has_come ? handler_records : 0))
            fail_msg("step %u: %u records of the handler", wanted_step, seen.handler);
        if (handler_jumps && has_come ? seen.main > 1 : seen.main != 1)
            fail_msg("step %u: %u records of what it interrupted", wanted_step, seen.main);
        if (function == span && !(handler_jumps && has_come) && seen.ends != 1)
            fail_msg("step %u: %u ends", wanted_step, seen.ends);
        has_asked |= doorbells > 0;
        assert_int_equal(ring->dropped, 0);
    }
    assert_true(wanted_step > 20);
    assert_int_equal(has_asked, is_full && policy == PH__POLICY_COMPLETE);
}

static void step_through_all(enum ph__trace_policy policy, bool is_full) {
    static void (*const functions[])(void) = {scalars, texts, span};

    for (unsigned i = 0; i < 3; i++) {
        for (handler_records = is_full ? 3 : 1; handler_records <= 3; handler_records += 2) {
            handler_jumps = false;
            step_through(functions[i], policy, is_full);
            handler_jumps = true;
            step_through(functions[i], policy, is_full);
        }
    }
}

static void handlers_that_record_lose_and_tear_nothing(void **state) {
    (void)state;
    step_through_all(PH__POLICY_COMPLETE, false);
}

static void handlers_that_record_lose_nothing_while_room_is_made(void **state) {
    (void)state;
    step_through_all(PH__POLICY_COMPLETE, true);
    step_through_all(PH__POLICY_DROP, true);
    step_through_all(PH__POLICY_FLIGHT, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalar_fields_are_words),
        cmocka_unit_test(scoped_spans_have_the_stack_pointer_and_end_with_their_block),
        cmocka_unit_test(sites_that_are_off_record_and_evaluate_nothing),
        cmocka_unit_test(strings_are_kept_whole_as_far_as_they_fit),
        cmocka_unit_test(logs_record_what_their_format_names),
        cmocka_unit_test(complete_asks_for_room_and_loses_nothing),
        cmocka_unit_test(complete_gives_up_when_the_host_makes_no_room),
        cmocka_unit_test(drop_counts_what_it_drops_and_tells_where),
        cmocka_unit_test(drop_loses_ends_only_when_their_room_is_used_up),
        cmocka_unit_test(flight_keeps_the_newest),
        cmocka_unit_test(handlers_that_record_lose_and_tear_nothing),
        cmocka_unit_test(handlers_that_record_lose_nothing_while_room_is_made),
    };
    return cmocka_run_group_tests_name("recorder", tests, setup, NULL);
}
