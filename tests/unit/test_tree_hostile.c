/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The tree of spans under guests that lie: everything is counted, memory is bounded, and what makes sense
 * beside the lies comes out. The fixture checks the shape of the tree after each test.
 */
#include "tree_fixture.h"

#include <malloc.h>
#include <string.h>

/* A small generator with a fixed seed: xorshift64. */
static uint64_t random_next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static size_t memory_in_use(void) {
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static void garbage_is_counted_and_the_next_batch_is_read(void **state) {
    struct tree_test *test = *state;
    uint64_t seed = 88172645463325252ull;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < 32; i++)
            test->words[i] = random_next(&seed);
        test->count = 32;
        test->now += TICKS;
        deliver(test);
    }
    assert_true(test->stats.malformed > 2000);
    test->event_count = 0;
    put_tick(test, 0);
    host_end(test, PH_OK, "");
    assert_int_equal(test->event_count, 1);
    assert_string_equal(test->events[0].name, "tick");
}

/* Records whose head makes sense, and the rest as it comes. */
static void forged_records_never_break_the_tree(void **state) {
    struct tree_test *test = *state;
    uint64_t seed = 0x2545f4914f6cdd1dull;
    uint64_t positions[64] = {0};
    uint64_t records = 0;

    for (int round = 0; round < 300; round++) {
        host_begin(test, PH__HOST_CALL, &tree_exports[0]);
        for (int i = 0; i < 200; i++) {
            uint64_t words[8];
            uint64_t random = random_next(&seed);
            size_t count = random >> 8 & 7;
            uint32_t stack = random >> 16 & 1 ? (uint32_t)(random >> 20 & 0xff) : 0;
            for (size_t word = 0; word < count; word++) {
                words[word] = random_next(&seed);
                if (words[word] & 1)
                    words[word] = words[word] >> 8 & 3;
                else if (words[word] & 2)
                    words[word] = positions[words[word] >> 8 & 63];
            }
            if ((random & 7) == 0)
                put_end(test, positions[random >> 28 & 63]);
            else if ((random & 7) == 1)
                positions[i & 63] = put_work(test, stack);
            else
                positions[i & 63] =
                    put(test, random >> 40 & 15, (uint32_t)(random >> 44 & 15), stack, words, count);
            if ((random >> 48 & 15) == 0) /* a time from anywhere */
                test->words[test->count - 1] = random_next(&seed);
            records++;
            if ((random >> 52 & 31) == 0) {
                host_begin(test, PH__HOST_FUNCTION, &tree_import);
                put_work(test, stack);
                records++;
                host_end(test, random & 8 ? PH_OK : PH_E_HOST_FUNCTION, "");
            }
        }
        host_end(test, round & 1 ? PH_OK : PH_E_TIMED_OUT, "");
    }
    /* Overwriting the last word may have hit a time, never a length. */
    assert_int_equal(test->stats.records + test->stats.malformed, records);
    assert_true(test->stats.records > 1000);
    assert_true(test->stats.malformed > 1000);
    assert_true(test->stats.spans > 1000);
}

static void a_record_that_does_not_fit_its_site_is_refused(void **state) {
    struct tree_test *test = *state;
    const uint64_t one[8] = {1};

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put(test, PH__RECORD_SPAN_BEGIN, SITE_COUNT, 0, NULL, 0);   /* no such site */
    put(test, PH__RECORD_SPAN_BEGIN, PH__SITE_MAX, 0, NULL, 0); /* nor this */
    put(test, PH__RECORD_SPAN_BEGIN, SITE_TICK, 0, one, 2);     /* an event's */
    put(test, PH__RECORD_SPAN_BEGIN, SITE_WORK, 0, one, 1);     /* a value too many */
    put(test, PH__RECORD_EVENT, SITE_TICK, 0, one, 1);          /* one too few */
    put(test, PH__RECORD_EVENT, SITE_WORK, 0, NULL, 0);         /* a span's */
    put(test, PH__RECORD_EVENT, SITE_LINE, 0, NULL, 0);         /* a log without types */
    put(test, PH__RECORD_COUNTER, SITE_HITS, 0, NULL, 0);       /* no value */
    put(test, PH__RECORD_FIELDS, SITE_MORE, 0, NULL, 0);        /* no position */
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, one, 1);     /* no size */
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB_END, 0, one, 2); /* the end's */
    put(test, PH__RECORD_CALL_BEGIN, 2, 0, NULL, 0);            /* no such export */
    put(test, PH__RECORD_CALL_BEGIN, 0, 0, one, 1);             /* a value */
    put(test, PH__RECORD_SYSTEM_CALL_BEGIN, 0, 0, one, 7);      /* seven arguments */
    put(test, PH__RECORD_FUNCTION_BEGIN, SITE_WORK, 0, one, 1); /* a span's */
    put(test, PH__RECORD_FUNCTION_BEGIN, SITE_FUNCTIONS, 0, NULL, 0);
    put(test, PH__RECORD_GAP, 0, 0, one, 1);
    put(test, PH__RECORD_EXIT, 0, 0, NULL, 0);
    put(test, 0, 0, 0, NULL, 0);
    put(test, 15, 0, 0, NULL, 0);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.malformed, 20);
    assert_int_equal(test->stats.records, 0);
    assert_int_equal(test->span_count, 1);
    assert_int_equal(test->event_count, 0);
}

static void an_impossible_length_loses_the_rest_of_its_batch(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put_tick(test, 0);
    put_tick(test, 0);
    test->words[4] &= ~(uint64_t)0xff; /* of the second one */
    put_tick(test, 0);
    deliver(test);
    put_tick(test, 0);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.malformed, 1);
    assert_int_equal(test->stats.lost_bytes, 64);
    assert_int_equal(test->stats.records, 2);
    assert_string_equal(test->events[1].fields, "cause=malformed bytes=64");
}

static void times_stay_inside_and_never_run_backwards(void **state) {
    static const uint64_t forged[] = {0, UINT64_MAX, 1, 1ull << 63, 5, UINT64_MAX / 2};
    struct tree_test *test = *state;
    uint64_t before = 0;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        put_tick(test, 0);
        test->words[test->count - 3] = forged[i];
        if (i % 2)
            deliver(test);
    }
    host_end(test, PH_OK, "");
    for (size_t i = 0; i < test->event_count; i++) {
        assert_true(test->events[i].time >= before);
        before = test->events[i].time;
    }
    assert_true(test->events[0].time >= test->spans[0].start);
    assert_true(before <= test->spans[0].end);
    assert_true(test->spans[0].end - 1000000000000000000ull <= (test->now - test->base) / TICKS);
}

static void a_malformed_record_moves_no_time(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]); /* 1 */
    put(test, PH__RECORD_SPAN_BEGIN, SITE_COUNT, 0, NULL, 0);
    test->words[1] += 100u * TICKS;
    put_tick(test, 0); /* 3 */
    test->now += 200u * TICKS;
    host_end(test, PH_OK, "");
    assert_int_equal(test->events[0].time, 1000000000000000003ull);
}

static void ends_without_a_begin_are_counted(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t work = put_work(test, 0);
    put_end(test, work + 16);
    put_end(test, 0);
    put_end(test, (1ull << 55) - 8);
    put_end(test, work);
    put_end(test, work);
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){1, 1}, 2);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.unknown_ends, 5);
    assert_int_equal(test->span_count, 2);
    assert_false(test->spans[0].unfinished);
}

static void an_end_with_a_result_is_a_system_calls(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t work = put_work(test, 0);
    put_end(test, work);
    test->words[2]++; /* a word longer */
    test->words[test->count++] = 5;
    put_tick(test, 0);
    put_end(test, work);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.malformed, 1);
    assert_int_equal(test->events[0].span, test->spans[0].id);
    assert_string_equal(test->spans[0].fields, "");
    assert_false(test->spans[0].unfinished);
}

static void ends_of_what_was_too_deep_are_known_while_it_is_open(void **state) {
    struct tree_test *test = *state;
    uint64_t first = 0;
    uint64_t deep[3];

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    for (size_t i = 0; i < PH__TREE_DEPTH_MAX - 1; i++) {
        uint64_t position = put_work(test, 0);
        if (i == 0)
            first = position;
    }
    for (size_t i = 0; i < 3; i++)
        deep[i] = put_work(test, 0);
    put_end(test, first + 8); /* no span begins there */
    deliver(test);
    assert_int_equal(test->stats.unknown_ends, 1);
    host_begin(test, PH__HOST_FUNCTION, &tree_import);
    put_end(test, deep[2]); /* not from in here */
    put_end(test, put_work(test, 0));
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.unknown_ends, 2);
    for (size_t i = 3; i-- > 0;)
        put_end(test, deep[i]);
    deliver(test);
    assert_int_equal(test->stats.unknown_ends, 2);
    put_end(test, deep[2] + 1024); /* all three have ended */
    deep[0] = put_work(test, 0);
    put_end(test, first);
    put_end(test, deep[0]); /* gone with the first one */
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.unknown_ends, 4);
    assert_int_equal(test->stats.too_deep, 5);
    assert_int_equal(test->span_count, PH__TREE_DEPTH_MAX + 1);
}

static void a_million_spans_inside_each_other_are_bounded(void **state) {
    enum { MILLION = 1000000 };
    struct tree_test *test = *state;
    uint64_t first = 0;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    size_t before = memory_in_use();
    for (size_t i = 0; i < MILLION; i++) {
        uint64_t position = put_work(test, 0);
        if (i == 0)
            first = position;
    }
    deliver(test);
    assert_true(memory_in_use() - before < 2u << 20);
    assert_int_equal(test->stats.too_deep, MILLION - (PH__TREE_DEPTH_MAX - 1));
    for (uint64_t i = MILLION; i-- > 0;)
        put_end(test, first + i * 16);
    put_end(test, first + (uint64_t)MILLION * 16);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.unknown_ends, 1);
    assert_int_equal(test->stats.spans, PH__TREE_DEPTH_MAX);
    for (size_t i = 0; i < test->span_count; i++)
        assert_false(test->spans[i].unfinished);
}

/* Spans that no stack pointer judges lie on one that is, over and over: each record must stay cheap. */
static void ten_million_records_need_bounded_memory(void **state) {
    enum { RECORDS = 10000000 };
    struct tree_test *test = *state;
    uint64_t words[3] = {0, 8 | 8ull << 32, 0x6161616161616161ull};
    uint64_t position = 0;

    test->count_only = true;
    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    for (int i = 0; i < 5000; i++)
        put_work(test, 0);
    deliver(test);
    size_t before = memory_in_use();
    for (uint32_t i = 0; i < RECORDS / 5; i++) {
        uint64_t random = i * 0x9e3779b97f4a7c15ull;
        put_tick(test, 1 + (i & 0xff));
        position = put(test, PH__RECORD_SPAN_BEGIN, SITE_QUERY, 0, words, 3);
        put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){random, 1}, 2);
        put(test, PH__RECORD_FUNCTION_BEGIN, SITE_FUNCTIONS, 0, &random, 1);
        words[0] = position;
        put(test, PH__RECORD_FIELDS, SITE_MORE_TEXT, 0, words, 3);
    }
    deliver(test);
    assert_int_equal(test->stats.records, RECORDS + 5000);
    assert_true(memory_in_use() - before < 1u << 20);
}

static void fields_of_open_spans_are_bounded(void **state) {
    enum { WORDS = 2 + PH__TRACE_STRING_MAX / 8 };
    struct tree_test *test = *state;
    uint64_t words[WORDS];
    uint64_t positions[4000];

    /* Bytes that are no text grow threefold. */
    memset(words, 0xff, sizeof words);
    words[1] = PH__TRACE_STRING_MAX | (uint64_t)PH__TRACE_STRING_MAX << 32;
    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    size_t before = memory_in_use();
    for (size_t i = 0; i < 4000; i++)
        positions[i] = put_work(test, 0);
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < 4000; i++) {
            words[0] = positions[i];
            put(test, PH__RECORD_FIELDS, SITE_MORE_TEXT, 0, words, WORDS);
        }
    }
    deliver(test);
    assert_true(memory_in_use() - before < 18u << 20);
    host_end(test, PH_OK, "");
    assert_int_equal(test->span_count, 4001);
    assert_non_null(strstr(test->spans[0].fields, "fields_dropped=3"));
    assert_non_null(strstr(test->spans[3999].fields, "fields_dropped=2"));
    assert_ptr_equal(strstr(test->spans[3999].fields, "text=\xef\xbf\xbd"), test->spans[3999].fields);
    /* The memory has come back: the next call's fields have room. */
    host_begin(test, PH__HOST_CALL, &tree_exports[1]);
    words[0] = put_work(test, 0);
    put(test, PH__RECORD_FIELDS, SITE_MORE_TEXT, 0, words, WORDS);
    host_end(test, PH_OK, "");
    assert_null(strstr(test->spans[4001].fields, "dropped"));
    assert_true(memory_in_use() - before < 4u << 20);
}

static void asynchronous_spans_are_bounded(void **state) {
    enum { JOBS = 3000 };
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    for (uint64_t i = 0; i < JOBS; i++)
        put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){i << 20, i}, 2);
    for (uint64_t i = JOBS; i-- > 0;)
        put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){i << 20, 1}, 2);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.too_deep, JOBS - PH__TREE_ASYNC_MAX);
    assert_int_equal(test->stats.unknown_ends, 0);
    assert_int_equal(test->span_count, PH__TREE_ASYNC_MAX + 1);
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){7, 1}, 2);
    deliver(test);
    assert_int_equal(test->stats.unknown_ends, 1);
    assert_string_equal(test->spans[0].fields, "size=1023 done=true");
}

static void counts_of_losses_that_cannot_be_are_malformed(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){10, 300}, 2);
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){UINT64_MAX, 300}, 2); /* far too many */
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){11, 1ull << 50}, 2);  /* bytes */
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){5, 100}, 2);          /* backwards */
    host_loss(test, PH__LOSS_RING, UINT64_MAX, UINT64_MAX);
    host_loss(test, PH__LOSS_RING, 6, 130);
    host_end(test, PH_OK, "");
    assert_int_equal(test->stats.malformed, 4);
    assert_int_equal(test->stats.dropped_ring, 11);
    assert_int_equal(test->stats.lost_bytes, 330);
    assert_int_equal(test->stats.gaps, 2);
}

static int setup_with_budget(void **state) {
    tree_call_records = 10;
    int result = tree_setup(state);
    tree_call_records = UINT64_MAX;
    return result;
}

static void beyond_the_budget_only_ends_are_taken(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t work = put_work(test, 0);
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){1, 1}, 2);
    for (int i = 0; i < 20; i++)
        put_tick(test, 0);
    put_end(test, put_work(test, 0));
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){1, 1}, 2);
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){1, 1}, 2);
    put_end(test, work);
    host_end(test, PH_OK, "");

    assert_int_equal(test->stats.records, 12);
    assert_int_equal(test->stats.dropped_budget, 15);
    assert_int_equal(test->stats.unknown_ends, 0);
    assert_int_equal(test->event_count, 9);
    assert_string_equal(test->events[8].name, "trace.gap");
    assert_string_equal(test->events[8].fields, "cause=budget records=15 bytes=448");
    assert_int_equal(test->events[8].span, span_of(test, "call greet")->id);
    assert_false(span_of(test, "work")->unfinished);
    assert_int_equal(test->stats.gaps, 1);

    /* The next call has its own; what it costs is told once. */
    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put_tick(test, 0);
    host_end(test, PH_OK, "");
    assert_int_equal(test->event_count, 10);
    assert_int_equal(test->stats.records, 13);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(garbage_is_counted_and_the_next_batch_is_read),
        TEST(forged_records_never_break_the_tree),
        TEST(a_record_that_does_not_fit_its_site_is_refused),
        TEST(an_impossible_length_loses_the_rest_of_its_batch),
        TEST(times_stay_inside_and_never_run_backwards),
        TEST(ends_without_a_begin_are_counted),
        TEST(a_malformed_record_moves_no_time),
        TEST(an_end_with_a_result_is_a_system_calls),
        TEST(ends_of_what_was_too_deep_are_known_while_it_is_open),
        TEST(a_million_spans_inside_each_other_are_bounded),
        TEST(ten_million_records_need_bounded_memory),
        TEST(fields_of_open_spans_are_bounded),
        TEST(asynchronous_spans_are_bounded),
        TEST(counts_of_losses_that_cannot_be_are_malformed),
        cmocka_unit_test_setup_teardown(beyond_the_budget_only_ends_are_taken, setup_with_budget,
                                        tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
