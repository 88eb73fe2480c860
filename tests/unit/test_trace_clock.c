/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Times of traces come from the counter without drift and never run backwards, on both sides of their anchor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "trace/clock.h"

#define NOW_NS 1800000000000000000ull /* in 2027 */
#define GHZ(count) ((1ull << 32) / (count))

static uint64_t clock_ns(clockid_t id) {
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void an_anchor_reaches_both_ways(void **state) {
    const struct ph__trace_anchor anchor = {.tsc = 1ull << 50, .realtime_ns = NOW_NS, .mult = GHZ(2)};

    (void)state;
    assert_true(ph__trace_anchor_ns(&anchor, anchor.tsc) == NOW_NS);
    assert_true(ph__trace_anchor_ns(&anchor, anchor.tsc + 2) == NOW_NS + 1);
    assert_true(ph__trace_anchor_ns(&anchor, anchor.tsc - 2) == NOW_NS - 1);
    /* A year, which 64 bits would not do. */
    assert_true(ph__trace_anchor_ns(&anchor, anchor.tsc + 63072000000000000ull) ==
                NOW_NS + 31536000000000000ull);
    /* Rounded down everywhere, so no two nanoseconds are shorter than others. */
    assert_true(ph__trace_anchor_ns(&anchor, anchor.tsc + 1) == NOW_NS);
    assert_true(ph__trace_anchor_ns(&anchor, anchor.tsc - 1) == NOW_NS - 1);
}

static void a_later_count_is_never_an_earlier_time(void **state) {
    const struct ph__trace_anchor anchor = {.tsc = 1000000, .realtime_ns = NOW_NS, .mult = GHZ(3) + 1};
    uint64_t before = 0;

    (void)state;
    for (uint64_t tsc = 999000; tsc < 1001000; tsc++) {
        uint64_t ns = ph__trace_anchor_ns(&anchor, tsc);
        assert_true(ns >= before);
        before = ns;
    }
}

static void no_count_leaves_the_times_that_there_are(void **state) {
    struct ph__trace_anchor anchor = {.tsc = UINT64_MAX / 2, .realtime_ns = 1000, .mult = 1ull << 40};

    (void)state;
    assert_true(ph__trace_anchor_ns(&anchor, 0) == 0);
    assert_true(ph__trace_anchor_ns(&anchor, UINT64_MAX) == UINT64_MAX);
    anchor = (struct ph__trace_anchor){.tsc = UINT64_MAX, .realtime_ns = UINT64_MAX, .mult = UINT64_MAX};
    assert_true(ph__trace_anchor_ns(&anchor, 0) == 0);
    anchor.tsc = 0;
    assert_true(ph__trace_anchor_ns(&anchor, UINT64_MAX) == UINT64_MAX);
    anchor.realtime_ns = 0;
    assert_true(ph__trace_anchor_ns(&anchor, UINT64_MAX) == UINT64_MAX);
}

/* How far (clock) is from the system's, now. */
static uint64_t error_ns(const struct ph__trace_clock *clock) {
    uint64_t tightest = UINT64_MAX;

    /* Of several tries the one that nothing interrupted. */
    for (int i = 0; i < 20; i++) {
        uint64_t tsc = __rdtsc();
        uint64_t ns = clock_ns(CLOCK_REALTIME);
        uint64_t traced = ph__trace_anchor_ns(&clock->anchor, tsc + (__rdtsc() - tsc) / 2);
        uint64_t difference = traced > ns ? traced - ns : ns - traced;
        if (difference < tightest)
            tightest = difference;
    }
    return tightest;
}

static void the_frequency_is_measured(void **state) {
    struct ph__trace_clock clock = {0};

    (void)state;
    ph__trace_clock_renew(&clock, 0);
    uint64_t tsc = clock.anchor.tsc;
    assert_true(clock.anchor.mult != 0 && tsc != 0);
    assert_true(error_ns(&clock) < 20000);

    /* The anchor stays for about a second. */
    sleep_ms(300);
    ph__trace_clock_renew(&clock, 0);
    assert_true(clock.anchor.tsc == tsc);
    assert_true(error_ns(&clock) < 300000); /* 1,000 ppm */

    sleep_ms(900);
    ph__trace_clock_renew(&clock, 0);
    assert_true(clock.anchor.tsc > tsc);
    assert_true(error_ns(&clock) < 20000);
    /* 50 ppm of it, and what the system's clock is told meanwhile. */
    sleep_ms(500);
    assert_true(error_ns(&clock) < 100000);
}

static void what_the_frequency_is_said_to_be_is_taken_at_first(void **state) {
    struct ph__trace_clock clock = {0};

    (void)state;
    ph__trace_clock_renew(&clock, 2000000);
    assert_true(clock.anchor.mult == GHZ(2));
    ph__trace_clock_renew(&clock, 3000000);
    assert_true(clock.anchor.mult == GHZ(2));
}

/* A frequency that nobody can have: a suspended host, or somebody's wrong word. */
static void a_frequency_that_is_not_believed_is_measured_anew(void **state) {
    struct ph__trace_clock clock = {0};

    (void)state;
    ph__trace_clock_renew(&clock, 0);
    uint64_t mult = clock.anchor.mult;
    clock.first_monotonic_ns -= 3600000000000ull;
    clock.anchor.tsc -= 1ull << 40;
    ph__trace_clock_renew(&clock, 0);
    assert_true(clock.anchor.mult > mult - mult / 100 && clock.anchor.mult < mult + mult / 100);
    assert_true(error_ns(&clock) < 20000);

    /* The counter was set back. */
    clock.first_tsc = clock.anchor.tsc = UINT64_MAX - 5;
    ph__trace_clock_renew(&clock, 0);
    assert_true(clock.first_tsc < UINT64_MAX - 5);
    assert_true(clock.anchor.mult > mult - mult / 100 && clock.anchor.mult < mult + mult / 100);
    assert_true(error_ns(&clock) < 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_anchor_reaches_both_ways),
        cmocka_unit_test(a_later_count_is_never_an_earlier_time),
        cmocka_unit_test(no_count_leaves_the_times_that_there_are),
        cmocka_unit_test(the_frequency_is_measured),
        cmocka_unit_test(what_the_frequency_is_said_to_be_is_taken_at_first),
        cmocka_unit_test(a_frequency_that_is_not_believed_is_measured_anew),
    };
    return cmocka_run_group_tests_name("trace_clock", tests, NULL, NULL);
}
