/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest that traces in every way that C has, one export for each kind. Its values are fixed, so that a test
 * can say what the host has to see.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <pinhole/guest.h>

static inline int64_t inner(int64_t n) {
    PH_SPAN("inner", ph_i64("n", n));
    return n + 1;
}

/* outer, with two inner ones and an event in it. */
static int64_t spans(void) {
    PH_SPAN("outer");
    int64_t sum = inner(1);
    PH_EVENT("between");
    return sum + inner(2);
}
PH_EXPORT(spans, PH_I64);

/* A field of each kind, at begin and added later. */
static void fields(void) {
    static const unsigned char bytes[] = {0, 1, 0xfe, 0xff};
    PH_SPAN_AS(span, PH_LEVEL_INFO, "fields", ph_i64("i64", -1), ph_u64("u64", UINT64_MAX),
               ph_f64("f64", -0.5), ph_bool("yes", true), ph_bool("no", false), ph_str("str", "text"),
               ph_bytes("bytes", bytes, sizeof bytes), ph_ptr("ptr", (void *)0x1234));
    PH_SPAN_FIELDS(span, ph_i64("later", 5), ph_bool("scalar", true));
    PH_SPAN_FIELDS(span, ph_str("latest", "more"), ph_str("null", NULL), ph_str("empty", ""));
}
PH_EXPORT(fields, PH_VOID);

static void twelve(void) {
    PH_EVENT("scalars", ph_i64("a", 1), ph_i64("b", 2), ph_i64("c", 3), ph_i64("d", 4), ph_i64("e", 5),
             ph_i64("f", 6), ph_i64("g", 7), ph_i64("h", 8), ph_i64("i", 9), ph_i64("j", 10), ph_i64("k", 11),
             ph_i64("l", 12));
    PH_EVENT("strings", ph_str("a", "1"), ph_str("b", "22"), ph_str("c", "333"), ph_str("d", "4444"),
             ph_str("e", "55555"), ph_str("f", "666666"), ph_str("g", "7777777"), ph_str("h", "88888888"),
             ph_str("i", "999999999"), ph_str("j", "j"), ph_str("k", "k"), ph_str("l", "l"));
}
PH_EXPORT(twelve, PH_VOID);

/* A string of (size) bytes. */
static void long_string(int64_t size) {
    char *text = ph_alloc((size_t)size + 1);
    memset(text, 'x', (size_t)size);
    text[size] = 0;
    PH_EVENT("long", ph_str("text", text), ph_i64("size", size));
    PH_EVENT("two long", ph_str("one", text), ph_str("two", text), ph_str("short", "short"));
}
PH_EXPORT(long_string, PH_VOID, PH_I64);

static void events(void) {
    PH_EVENT("plain");
    PH_EVENT("with fields", ph_str("key", "value"), ph_i64("n", 7));
    PH_EVENT_AT(PH_LEVEL_ERROR, "at error");
    PH_EVENT_AT(PH_LEVEL_WARN, "at warn");
    PH_EVENT_AT(PH_LEVEL_INFO, "at info");
    PH_EVENT_AT(PH_LEVEL_DEBUG, "at debug");
    PH_EVENT_AT(PH_LEVEL_TRACE, "at trace", ph_bool("deep", true));
}
PH_EXPORT(events, PH_VOID);

/* Values from the caller. (bytes) also as a string, which need not be UTF-8. */
static void values(double f64, const char *text, ph_bytes bytes) {
    char *raw = ph_alloc(bytes.size + 1);
    if (bytes.size)
        memcpy(raw, bytes.data, bytes.size);
    raw[bytes.size] = 0;
    PH_SPAN("values", ph_f64("f64", f64), ph_str("text", text), ph_str("raw", raw));
    PH_EVENT("values", ph_f64("f64", f64), ph_f64("minus", -f64));
    PH_EVENT("bytes", ph_bytes("bytes", bytes.data, bytes.size), ph_bytes("none", NULL, 0),
             ph_str("null", NULL), ph_ptr("null", NULL));
    PH_COUNTER_F64("value", f64);
    PH_LOG_INFO("%s", raw);
}
PH_EXPORT(values, PH_VOID, PH_F64, PH_STR, PH_BYTES);

/* Each line twice: logged and printed. */
#define BOTH(...)                                                                                            \
    do {                                                                                                     \
        PH_LOG_INFO(__VA_ARGS__);                                                                            \
        printf(__VA_ARGS__);                                                                                 \
        putchar('\n');                                                                                       \
    } while (0)

static void formats(void) {
    const char *volatile null = NULL; /* not to be seen by the compiler */
    static const char unterminated[] = {'a', 'b', 'c'};
    BOTH("plain, 100%%");
    BOTH("%d %i|%+d|% d|%5d|%-5d|%05d", 1, -2, 3, 4, 5, 6, 7);
    BOTH("%.0d|%.4d|%9.4d|%-9.4d|%+09d", 0, 1, -2, 3, 4);
    BOTH("%u %o %x %X %#o %#x %#X %#x", 1u, 8u, 0xabu, 0xcdu, 8u, 0xefu, 0xau, 0u);
    BOTH("%hhd %hhu %hhx %hd %hu", (signed char)-1, (unsigned char)255, (unsigned char)0xfe, (short)-2,
         (unsigned short)65535);
    BOTH("%d %d %u", INT_MIN, INT_MAX, UINT_MAX);
    BOTH("%ld %ld %lu %lx", LONG_MIN, LONG_MAX, ULONG_MAX, 0xfedcba9876543210ul);
    BOTH("%lld %llu %llX", LLONG_MIN, ULLONG_MAX, 0xabcdef0123456789ull);
    BOTH("%zu %zd %jd %ju %td", (size_t)7, (ssize_t)-7, (intmax_t)-8, (uintmax_t)8, (ptrdiff_t)-9);
    BOTH("%f %.0f %.3f %+.1f|%10.2f|%-10.2f|%010.2f", 1.5, 2.5, -0.0, 4.0, 5.25, 6.75, -7.125);
    BOTH("%e %.2E %g %G %#g %g", 12345.678, 0.00012, 1e100, 1e-7, 1.0, 0.1);
    BOTH("%a %.1a %A", 4.5, -1.5, 255.0);
    BOTH("%f %F %g %5.1f|%-6f|", INFINITY, -INFINITY, (double)NAN, INFINITY, (double)NAN);
    BOTH("%g %g %.17g", DBL_MAX, DBL_MIN, 0.1);
    BOTH("%Lf %.3Le", 5.5L, 1024.0L);
    BOTH("%s|%5s|%-5s|%.2s|%5.1s|%s", "one", "two", "six", "three", "four", "");
    BOTH("%s %10s", null, null);
    BOTH("%.*s|%.3s|%*s|%-*s|%.*s|", 3, unterminated, unterminated, 5, "r", 5, "l", -1, "all");
    BOTH("%*d|%-*d|%*d|%.*f|%*.*f", 5, 1, 5, 2, -5, 3, 2, 1.005, 8, 3, 2.5);
    BOTH("%c%c|%3c|%-3c|", 'a', '%', 'b', 'c');
    BOTH("%p %20p|%-20p|", (void *)0x1234, (void *)0x7fffffffffff, (void *)1);
    BOTH("gr\303\274n: %s|%8s", "\303\244\342\202\254\360\237\230\200", "\303\266");
    BOTH("%d%d%d%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    BOTH("%s%d%s%d%s%d", "a", 1, "bb", 2, "a string that takes more words", 3);
    fflush(stdout);
}
PH_EXPORT(formats, PH_VOID);

/* Every conversion and length. */
static void logs(void) {
    static const char unterminated[] = {'a', 'b', 'c'};
    PH_LOG_ERROR("error");
    PH_LOG_WARN("warn %d", 1);
    PH_LOG_INFO("int %d %i %+5d|%-5d|%05d", -1, 2, 3, 4, 5);
    PH_LOG_INFO("unsigned %u %x %X %#o", 1u, 0xau, 0xbu, 8u);
    PH_LOG_INFO("char %hhd %hhu, short %hd %hu", (signed char)-1, (unsigned char)255, (short)-2,
                (unsigned short)65535);
    PH_LOG_INFO("long %ld %lu, long long %lld %llx", -3L, 4ul, -5LL, 6ull);
    PH_LOG_INFO("sizes %zu %jd %td", (size_t)7, (intmax_t)-8, (ptrdiff_t)9);
    PH_LOG_INFO("float %f %.2e %g %a", 1.5, 2.5, 3.5, 4.5);
    PH_LOG_INFO("long double %Lg", 5.5L);
    PH_LOG_INFO("text %s %.2s %5s|%-5s|%c", "one", "two", "3", "4", 'x');
    PH_LOG_INFO("cut %.*s|%.3s", 3, unterminated, unterminated);
    PH_LOG_INFO("star %*d|%-*d|", 4, 1, 4, 2);
    PH_LOG_INFO("pointer %p, 100%%", (void *)0x1234);
    PH_LOG_DEBUG("debug %s", "d");
    PH_LOG_TRACE("trace");
    PH_LOG_AT(PH_LEVEL_WARN, "at warn\n");
}
PH_EXPORT(logs, PH_VOID);

static void counters(void) {
    for (int64_t i = 0; i < 3; i++) {
        PH_COUNTER("rows", 10 * i - 10);
        PH_COUNTER_F64("load", 0.5 * (double)i);
    }
}
PH_EXPORT(counters, PH_VOID);

/* Begun in one call, ended in another. */
static void async_begin(uint64_t id) {
    PH_ASYNC_BEGIN("request", id, ph_str("kind", "test"));
}
PH_EXPORT(async_begin, PH_VOID, PH_U64);

static void async_end(uint64_t id) {
    PH_ASYNC_END("request", id, ph_i64("answer", 42));
}
PH_EXPORT(async_end, PH_VOID, PH_U64);

/* Two that overlap. */
static void async(void) {
    PH_ASYNC_BEGIN("first", 1);
    PH_ASYNC_BEGIN_AT(PH_LEVEL_WARN, "second", 2);
    PH_ASYNC_END("first", 1);
    PH_ASYNC_END_AT(PH_LEVEL_WARN, "second", 2);
}
PH_EXPORT(async, PH_VOID);

/* Leaves the spans' blocks by return (0), break (1), goto (2), continue (3), or at their end. */
static int64_t early_return(int64_t how) {
    PH_SPAN("early", ph_i64("how", how));
    for (int i = 0; i < 2; i++) {
        PH_SPAN("turn", ph_i64("i", i));
        if (how == 0)
            return 0;
        if (how == 1)
            break;
        if (how == 2)
            goto out;
        if (how == 3)
            continue;
        PH_EVENT("end of turn");
    }
out:
    PH_EVENT("out");
    return how;
}
PH_EXPORT(early_return, PH_I64, PH_I64);

/* By hand: the second turn ends what the first began. */
static void by_hand(void) {
    ph_span open = {0};
    for (int i = 0; i < 3; i++) {
        ph_span next = PH_SPAN_BEGIN("by hand", ph_i64("i", i));
        PH_SPAN_END(open);
        open = next;
    }
    PH_SPAN_FIELDS(open, ph_str("note", "last"));
    PH_SPAN_END(open);
    ph_span warn = PH_SPAN_BEGIN_AT(PH_LEVEL_WARN, "warn by hand");
    PH_SPAN_END(warn);
}
PH_EXPORT(by_hand, PH_VOID);

/* (depth) levels with a span each, and an event with the string of (size) bytes at each. */
static int64_t deep_level(int64_t depth, const char *text) {
    PH_SPAN("level", ph_i64("depth", depth));
    PH_EVENT("at level", ph_str("text", text));
    return depth > 0 ? 1 + deep_level(depth - 1, text) : 0;
}

static int64_t deep(int64_t depth, const char *text) {
    return deep_level(depth, text);
}
PH_EXPORT(deep, PH_I64, PH_I64, PH_STR);

/* Recursion of one site from (depth) down to 0, left by longjmp for where it is at (land_at). */
static jmp_buf landing;

static void jump_level(int64_t depth, int64_t land_at);

static void land(int64_t depth) {
    if (setjmp(landing) == 0)
        jump_level(depth - 1, -1);
    else
        PH_EVENT("landed", ph_i64("depth", depth));
}

static void jump_level(int64_t depth, int64_t land_at) {
    PH_SPAN("jump", ph_i64("depth", depth));
    if (depth == 0)
        longjmp(landing, 1);
    if (depth == land_at)
        land(depth);
    else
        jump_level(depth - 1, land_at);
}

static void jump(int64_t depth, int64_t land_at) {
    jump_level(depth, land_at);
    PH_EVENT("after the jump");
}
PH_EXPORT(jump, PH_VOID, PH_I64, PH_I64);

/* (count) spans with an event of two fields in each. */
static void loop(int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        PH_SPAN("turn");
        PH_EVENT("event", ph_i64("i", i), ph_u64("twice", 2 * (uint64_t)i));
    }
}
PH_EXPORT(loop, PH_VOID, PH_I64);

/* What is off evaluates nothing. Returns how often an argument was evaluated. */
static int64_t evaluations;

static int64_t evaluated(void) {
    return ++evaluations;
}

static int64_t evaluate(void) {
    evaluations = 0;
    PH_EVENT_AT(PH_LEVEL_TRACE, "evaluated", ph_i64("n", evaluated()));
    PH_LOG_TRACE("evaluated %lld", (long long)evaluated());
    return evaluations;
}
PH_EXPORT(evaluate, PH_I64);

/* Ends inside its spans, in various ways. */
static void fail_inside(void) {
    PH_SPAN("about to fail");
    PH_EVENT("last words");
    ph_fail(7, "failed inside");
}
PH_EXPORT(fail_inside, PH_VOID);

static void crash_inside(void) {
    PH_SPAN("about to crash");
    PH_EVENT("last words");
    __builtin_trap();
}
PH_EXPORT(crash_inside, PH_VOID);

static void hang_inside(void) {
    PH_SPAN("about to hang");
    PH_EVENT("last words");
    for (;;)
        __asm__ volatile("");
}
PH_EXPORT(hang_inside, PH_VOID);

/* Natively all of it runs, and traces nothing. */
int main(void) {
    if (!ph_running_in_pinhole()) {
        spans();
        fields();
        twelve();
        values(1, "text", (ph_bytes){"bytes", 5});
        events();
        logs();
        formats();
        counters();
        async_begin(9);
        async_end(9);
        async();
        for (int64_t how = 0; how < 5; how++)
            early_return(how);
        by_hand();
        deep(100, "text");
        jump(30, 10);
        loop(1000);
        return evaluate() == 0 ? 0 : 1;
    }
    return ph_serve();
}
