/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest that traces as a program does, in every situation in which a record could be lost, told twice or
 * put into the wrong place. Each event `at` carries the next number of one count, by which the tests see that
 * all came, once and in order.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <malloc.h>
#include <pinhole/guest.h>

PH_IMPORT(visit, PH_U64, PH_U64);

/* The number of the next event. */
static uint64_t next;

static void at(void) {
    PH_EVENT("at", ph_u64("n", next));
    next++;
}

static uint64_t next_number(void) {
    return next;
}
PH_EXPORT(next_number, PH_U64);

/* ---- start-up ------------------------------------------------------------------------------------------ */

__attribute__((constructor)) static void construct(void) {
    PH_SPAN("construct");
    PH_EVENT("constructing");
}

static void prepare(void) {
    PH_SPAN("prepare");
    PH_EVENT("preparing");
}
PH_INIT(prepare);

/* ---- recursion ----------------------------------------------------------------------------------------- */

static __attribute__((noinline)) uint64_t descend(uint32_t depth, const char *text, uint64_t seed) {
    PH_SPAN("level", ph_u64("depth", depth), ph_str("text", text));
    at();
    if (depth == 0) {
        PH_LOG_INFO("the bottom says %s", text);
        return seed;
    }
    uint64_t sum = descend(depth - 1, text, seed * 3 + depth);
    return sum + depth;
}

/* A span and an event at each of (depth) + 1 levels, and a log at the bottom. */
static ph_bytes recurse(uint32_t depth, const char *text, ph_bytes data) {
    uint64_t sum = descend(depth, text, 1);

    PH_EVENT("sum", ph_u64("sum", sum), ph_bytes("data", data.data, data.size));
    return data;
}
PH_EXPORT(recurse, PH_BYTES, PH_U32, PH_STR, PH_BYTES);

/* Where the heap ends, and how much of it is in use. */
static uint64_t heap_end(void) {
    return (uint64_t)sbrk(0);
}
PH_EXPORT(heap_end, PH_U64);

static uint64_t heap_used(void) {
    return mallinfo2().uordblks;
}
PH_EXPORT(heap_used, PH_U64);

/* ---- records, many ------------------------------------------------------------------------------------- */

static void events(uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        at();
}
PH_EXPORT(events, PH_VOID, PH_U64);

/* Spans with an event in each. Gives the records that it tried to write: one that has no begin has no end. */
static uint64_t spans(uint64_t count) {
    uint64_t written = 0;

    for (uint64_t i = 0; i < count; i++) {
        PH_SPAN_AS(span, PH_LEVEL_INFO, "work", ph_u64("i", i));
        at();
        written += span.position ? 3 : 2;
    }
    return written;
}
PH_EXPORT(spans, PH_U64, PH_U64);

static uint64_t spans_in_spans(uint64_t count, uint32_t depth) {
    uint64_t written = 0;

    for (uint64_t i = 0; i < count; i++) {
        PH_SPAN("outer");
        if (depth)
            written += spans_in_spans(2, depth - 1);
        at();
        written += 3;
    }
    return written;
}
PH_EXPORT(spans_in_spans, PH_U64, PH_U64, PH_U32);

/* A span, (ms) of work, a span. */
static void slow(uint32_t ms) {
    struct timespec now, until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    PH_SPAN("slow");
    at();
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        PH_EVENT("tick");
    } while (now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
    at();
}
PH_EXPORT(slow, PH_VOID, PH_U32);

/* Writes, each with the next number, until it is told otherwise. Few enough that no ring is full at once. */
static void events_for_ever(void) {
    PH_SPAN("for ever");
    for (;;) {
        at();
        for (volatile int i = 0; i < 20000; i++)
            ;
    }
}
PH_EXPORT(events_for_ever, PH_VOID);

/* ---- times --------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Two events, and what the clock says at each; again until they are (ms) apart. */
static void clocks(uint32_t ms) {
    uint64_t start = nanoseconds(CLOCK_MONOTONIC);

    PH_EVENT("first", ph_u64("realtime", nanoseconds(CLOCK_REALTIME)));
    while (nanoseconds(CLOCK_MONOTONIC) - start < (uint64_t)ms * 1000000)
        ;
    PH_EVENT("last", ph_u64("realtime", nanoseconds(CLOCK_REALTIME)));
}
PH_EXPORT(clocks, PH_VOID, PH_U32);

/* ---- exits of every kind ------------------------------------------------------------------------------- */

static void on_signal(int number) {
    (void)number;
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): tracing is made for handlers */
    PH_SPAN("handler");
    at();
}

static volatile char *volatile nowhere = (volatile char *)0x10;

static void on_fault(int number, siginfo_t *info, void *context) {
    ucontext_t *machine = context;

    (void)number;
    (void)info;
    at();
    machine->uc_mcontext.gregs[REG_RIP] += 3; /* movb $1, (%rax) */
}

static void fault(void) {
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &action, NULL);
    __asm__ volatile("movb $1, (%0)" : : "a"(nowhere) : "memory");
}

static void protect(void) {
    static char pages[3 * 4096];
    char *page = pages + (4096 - (uintptr_t)pages % 4096);

    mprotect(page, 4096, PROT_READ);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

/* One exit of kind (kind), if that is one. */
static void leave(uint32_t kind) {
    const struct timespec moment = {0, 1000};
    char byte;

    switch (kind) {
    case 0:
        return;
    case 1:
        visit(next);
        return;
    case 2:
        if (write(1, "x", 1) != 1)
            ph_fail(1, "write");
        return;
    case 3:
        if (read(0, &byte, 1) < 0)
            ph_fail(1, "read");
        return;
    case 4:
        nanosleep(&moment, NULL);
        return;
    case 5:
        protect();
        return;
    case 6:
        fault();
        return;
    case 7:
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
        return;
    case 8:
        (void)getppid();
        return;
    default:
        ph_fail(2, "there is no such kind");
    }
}

/* (before) events, then (times) exits of (kind) with (between) events behind each. */
static void exits(uint32_t kind, uint32_t before, uint32_t times, uint32_t between) {
    PH_SPAN("exits");
    events(before);
    for (uint32_t i = 0; i < times; i++) {
        leave(kind);
        events(between);
    }
}
PH_EXPORT(exits, PH_VOID, PH_U32, PH_U32, PH_U32, PH_U32);

/* ---- host calls ---------------------------------------------------------------------------------------- */

/* A host call in a span whose begin is delivered long before it, by an exit between. */
static uint64_t visit_late(uint32_t exits_before) {
    PH_SPAN("around");
    for (uint32_t i = 0; i < exits_before; i++)
        leave(2);
    at();
    uint64_t answer = visit(1);
    {
        PH_SPAN("inside");
        answer += visit(2);
    }
    answer += visit(3);
    at();
    return answer;
}
PH_EXPORT(visit_late, PH_U64, PH_U32);

/* ---- fields, counters, asynchronous spans -------------------------------------------------------------- */

static void everything(const char *text) {
    PH_SPAN_AS(span, PH_LEVEL_INFO, "everything", ph_i64("minus", -5), ph_f64("half", 0.5));
    PH_EVENT("all", ph_i64("i", -1), ph_u64("u", 1), ph_f64("f", 1.5), ph_bool("b", true), ph_str("s", text),
             ph_bytes("y", text, strlen(text)), ph_ptr("p", (const void *)0x1234));
    PH_SPAN_FIELDS(span, ph_str("later", text));
    PH_COUNTER("count", (int64_t)next);
    PH_COUNTER_F64("ratio", 0.25);
    PH_EVENT_AT(PH_LEVEL_DEBUG, "detail");
    PH_LOG_WARN("%s is %d of %.2f", text, 7, 2.5);
    ph_span by_hand = PH_SPAN_BEGIN("by hand");
    at();
    PH_SPAN_END(by_hand);
}
PH_EXPORT(everything, PH_VOID, PH_STR);

static void async_begin(uint64_t id) {
    PH_ASYNC_BEGIN("job", id, ph_u64("id", id));
}
PH_EXPORT(async_begin, PH_VOID, PH_U64);

static void async_end(uint64_t id) {
    PH_ASYNC_END("job", id, ph_bool("done", true));
}
PH_EXPORT(async_end, PH_VOID, PH_U64);

/* ---- levels and targets -------------------------------------------------------------------------------- */

static __attribute__((noinline)) void quiet_function(void) {
    PH_EVENT_AT(PH_LEVEL_DEBUG, "quiet.debug");
    PH_EVENT_AT(PH_LEVEL_INFO, "quiet.info");
}

static __attribute__((noinline)) void loud_function(void) {
    PH_EVENT_AT(PH_LEVEL_ERROR, "loud.error");
    PH_EVENT_AT(PH_LEVEL_WARN, "loud.warn");
    PH_EVENT_AT(PH_LEVEL_INFO, "loud.info");
    PH_EVENT_AT(PH_LEVEL_DEBUG, "loud.debug");
    PH_EVENT_AT(PH_LEVEL_TRACE, "loud.trace");
    PH_LOG_DEBUG("a line of %s", "debug");
}

static void levels(void) {
    PH_SPAN_AT(PH_LEVEL_WARN, "levels");
    quiet_function();
    loud_function();
}
PH_EXPORT(levels, PH_VOID);

static int32_t fails(int32_t code) {
    PH_SPAN("failing");
    at();
    ph_fail(code, "as it was asked");
}
PH_EXPORT(fails, PH_I32, PH_I32);
