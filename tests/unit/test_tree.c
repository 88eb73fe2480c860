/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The tree of spans as guests that behave make it: what lies under what, how it ends, and what it says.
 */
#include "tree_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static uint64_t put_call(struct tree_test *test, uint32_t export) {
    return put(test, PH__RECORD_CALL_BEGIN, export, 0, NULL, 0);
}

static uint64_t put_function(struct tree_test *test, uint64_t address, uint32_t stack) {
    return put(test, PH__RECORD_FUNCTION_BEGIN, SITE_FUNCTIONS, stack, &address, 1);
}

/* A function that returns to (call_site). */
static uint64_t put_called(struct tree_test *test, uint64_t address, uint32_t stack, uint64_t call_site) {
    const uint64_t words[] = {address, call_site};

    return put(test, PH__RECORD_FUNCTION_BEGIN, SITE_FUNCTIONS, stack, words, 2);
}

static uint64_t put_system_call(struct tree_test *test, uint32_t number) {
    return put(test, PH__RECORD_SYSTEM_CALL_BEGIN, number, 0, NULL, 0);
}

/* The end of a system call that returned (result). */
static void put_result(struct tree_test *test, uint64_t position, int64_t result) {
    uint64_t word = (uint64_t)result;

    put(test, PH__RECORD_SPAN_END, 0, 0, &word, 1);
    test->words[test->count - 3] |= position / 8 << PH__RECORD_SITE_SHIFT;
}

/* (sql), of at most eight bytes, as a string's words behind (first). */
static size_t string_words(uint64_t *words, uint64_t first, const char *sql) {
    size_t length = strlen(sql);

    words[0] = first;
    words[1] = length | (uint64_t)length << 32;
    words[2] = 0;
    memcpy(&words[2], sql, length);
    return length > 0 ? 3 : 2;
}

static void a_call_is_a_tree_with_exact_times(void **state) {
    struct tree_test *test = *state;
    uint64_t words[3];

    host_begin(test, PH__HOST_CALL, &tree_exports[0]); /* 1 */
    uint64_t guest = put_call(test, 0);                /* 2 */
    uint64_t query =
        put(test, PH__RECORD_SPAN_BEGIN, SITE_QUERY, 0x1000, words, string_words(words, 5, "select")); /* 3 */
    put_tick(test, 0);                                                                                 /* 4 */
    put_end(test, query);                                                                              /* 5 */
    put_end(test, guest);                                                                              /* 6 */
    host_end(test, PH_OK, "");                                                                         /* 7 */

    assert_under(test, "call greet", NULL);
    assert_under(test, "guest greet", "call greet");
    assert_under(test, "query", "guest greet");
    assert_int_equal(event_of(test, "tick")->span, span_of(test, "query")->id);
    assert_string_equal(event_of(test, "tick")->fields, "a=-1 b=2");
    assert_string_equal(span_of(test, "query")->fields, "rows=5 sql=select");
    assert_int_equal(span_of(test, "call greet")->start, 1000000000000000001ull);
    assert_int_equal(span_of(test, "query")->start, 1000000000000000003ull);
    assert_int_equal(event_of(test, "tick")->time, 1000000000000000004ull);
    assert_int_equal(span_of(test, "query")->end, 1000000000000000005ull);
    assert_int_equal(span_of(test, "guest greet")->end, 1000000000000000006ull);
    assert_int_equal(span_of(test, "call greet")->end, 1000000000000000007ull);
    assert_int_equal(span_of(test, "call greet")->kind, PH_SPAN_CALL);
    assert_int_equal(span_of(test, "guest greet")->kind, PH_SPAN_GUEST);
    assert_int_equal(span_of(test, "query")->kind, PH_SPAN_USER);
    for (size_t i = 0; i < test->span_count; i++)
        assert_false(test->spans[i].unfinished);
    assert_int_equal(test->stats.records, 5);
    assert_int_equal(test->stats.spans, 3);
    assert_int_equal(test->stats.events, 1);
}

static void everything_has_its_name(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CREATE, NULL);
    host_begin(test, PH__HOST_LOAD, NULL);
    host_end(test, PH_OK, "");
    host_end(test, PH_OK, "");
    host_begin(test, PH__HOST_START, NULL);
    uint64_t init = put_call(test, PH__SITE_START);
    put_result(test, put_system_call(test, SYS_write), 12);
    put_result(test, put_system_call(test, SYS_mmap), -ENOMEM);
    put_result(test, put_system_call(test, 4000), -4096);
    put_end(test, put_system_call(test, SYS_exit_group));
    put_end(test, put_function(test, 0x401000, 0));
    put_end(test, put_function(test, 0x401234, 0));
    put_end(test, init);
    host_end(test, PH_OK, "");
    host_begin(test, PH__HOST_RUN, NULL);
    put_end(test, put_call(test, PH__SITE_START));
    put(test, PH__RECORD_EXIT, 0, 0, (uint64_t[]){3}, 1);
    host_end(test, PH_OK, "");
    host_begin(test, PH__HOST_DESTROY, NULL);
    host_end(test, PH_OK, "");

    assert_under(test, "create", NULL);
    assert_under(test, "load", "create");
    assert_under(test, "start", NULL);
    assert_under(test, "guest.init", "start");
    assert_under(test, "write", "guest.init");
    assert_string_equal(span_of(test, "write")->fields, "result=12");
    assert_string_equal(span_of(test, "mmap")->fields, "result=-12 error=ENOMEM");
    assert_string_equal(span_of(test, "system call 4000")->fields, "result=-4096");
    assert_string_equal(span_of(test, "exit_group")->fields, "");
    assert_int_equal(span_of(test, "write")->kind, PH_SPAN_SYSTEM_CALL);
    assert_int_equal(span_of(test, "compute")->kind, PH_SPAN_FUNCTION);
    assert_under(test, "0x401234", "guest.init");
    assert_under(test, "run program", NULL);
    assert_under(test, "guest program", "run program");
    assert_under(test, "destroy", NULL);
    assert_string_equal(event_of(test, "exit")->fields, "status=3");
    for (size_t i = 0; i < test->span_count; i++)
        assert_false(test->spans[i].unfinished);
}

static void system_calls_have_linux_names(void **state) {
    static const struct {
        uint32_t number;
        const char *name;
    } some[] = {{SYS_read, "read"},
                {SYS_arch_prctl, "arch_prctl"},
                {SYS_getrandom, "getrandom"},
                {SYS_rseq, "rseq"},
                {SYS_pidfd_send_signal, "pidfd_send_signal"},
                {SYS_clone3, "clone3"},
                {SYS_openat2, "openat2"},
                {SYS_futex_waitv, "futex_waitv"}};
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_START, NULL);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        put_end(test, put_system_call(test, some[i].number));
    put_end(test, put_system_call(test, 335));
    host_end(test, PH_OK, "");
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        assert_under(test, some[i].name, "start");
    assert_under(test, "system call 335", "start");
}

static void a_host_function_lies_under_what_the_guest_has_open(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[1]);
    uint64_t guest = put_call(test, 1);
    uint64_t compute = put_function(test, 0x401000, 0x2000);
    deliver(test); /* an earlier drain, and nothing new since */
    host_begin(test, PH__HOST_FUNCTION, &tree_import);
    host_end(test, PH_OK, "");
    put_end(test, compute);
    put_end(test, guest);
    host_end(test, PH_OK, "");

    assert_under(test, "host ask", "compute");
    assert_under(test, "compute", "guest add");
    assert_int_equal(span_of(test, "host ask")->kind, PH_SPAN_HOST_FUNCTION);
    assert_false(span_of(test, "compute")->unfinished);
}

static void a_host_function_is_a_wall(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t compute = put_function(test, 0x401000, 0x2000);
    host_begin(test, PH__HOST_FUNCTION, &tree_import);
    put_end(test, compute);           /* not from in here */
    put_tick(test, 0x9000);           /* nor by a stack pointer */
    put_function(test, 0x402000, 16); /* closed by the function's end */
    host_end(test, PH_OK, "");
    put_end(test, compute);
    host_end(test, PH_OK, "");

    assert_int_equal(test->stats.unknown_ends, 1);
    assert_false(span_of(test, "compute")->unfinished);
    assert_true(span_of(test, "0x402000")->unfinished);
    assert_under(test, "0x402000", "host ask");
}

static void arguments_of_the_host_are_fields(void **state) {
    struct tree_test *test = *state;
    const uint64_t values[] = {PH_I64 | PH_STR << 4, (uint64_t)-7, 2 | 9ull << 32, 'h' | 'i' << 8};
    _Alignas(8) char memory[sizeof(struct ph__batch_begin) + sizeof values];
    struct ph__batch_begin *begin = (struct ph__batch_begin *)memory;

    *begin = (struct ph__batch_begin){.batch = {sizeof memory, PH__BATCH_BEGIN, test->now},
                                      .span = PH__HOST_CALL,
                                      .arguments = 1,
                                      .function = &tree_exports[0],
                                      .id = 1ull << 40};
    memcpy(begin->words, values, sizeof values);
    tree_filter(test, "debug");
    ph__tree_take(test->tree, &begin->batch, &test->filter, test->version);
    host_end(test, PH_OK, "");
    assert_string_equal(span_of(test, "call greet")->fields, "arg1=-7 arg2=hi");
}

static void a_bad_end_leaves_its_reason_in_all_that_was_open(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put_call(test, 0);
    put_function(test, 0x401000, 64);
    host_end(test, PH_E_PAGE_FAULT, "page fault at 0x10");

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(test->spans[i].status, PH_E_PAGE_FAULT);
        assert_string_equal(test->spans[i].message, "page fault at 0x10");
    }
    assert_true(span_of(test, "compute")->unfinished);
    assert_true(span_of(test, "guest greet")->unfinished);
    assert_false(span_of(test, "call greet")->unfinished);
}

static void what_is_left_open_at_a_good_end_is_unfinished(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t guest = put_call(test, 0);
    put_function(test, 0x401000, 0);
    put_end(test, guest); /* closes the function too */
    put_function(test, 0x402000, 0);
    host_end(test, PH_OK, "");
    host_begin(test, PH__HOST_CALL, &tree_exports[1]);
    tree_end(test);

    assert_true(span_of(test, "compute")->unfinished);
    assert_string_equal(span_of(test, "compute")->message, "left open");
    assert_false(span_of(test, "guest greet")->unfinished);
    assert_true(span_of(test, "0x402000")->unfinished);
    assert_int_equal(span_of(test, "0x402000")->status, PH_OK);
    assert_false(span_of(test, "call greet")->unfinished);
    assert_true(span_of(test, "call add")->unfinished);
}

static void a_longjmp_closes_the_frames_that_it_has_left(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t guest = put_call(test, 0);
    uint64_t outer = put_function(test, 0x401000, 0x3000);
    put_function(test, 0x402000, 0x2000);
    put_system_call(test, SYS_read); /* is not judged, but goes with what is around it */
    put_function(test, 0x403000, 0x1000);
    put_tick(test, 0x2800); /* in a frame between the outer function's and the next */
    put_end(test, outer);
    put_end(test, guest);
    host_end(test, PH_OK, "");

    static const char *const left[] = {"0x402000", "read", "0x403000"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(span_of(test, left[i])->unfinished);
        assert_string_equal(span_of(test, left[i])->message, "left by a longjmp");
    }
    assert_false(span_of(test, "compute")->unfinished);
    assert_int_equal(event_of(test, "tick")->span, span_of(test, "compute")->id);
    assert_int_equal(test->stats.unknown_ends, 0);
}

/* Where stack pointers cannot tell: what its caller calls lies in the caller, not in what was left. */
static void a_call_closes_what_its_caller_called_before(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t outer = put_called(test, 0x401000, 0x3000, 0x500000);
    put_called(test, 0x404000, 0x3000, 0x500000); /* inlined */
    put_called(test, 0x402000, 0x2002, 0x401010);
    put_called(test, 0x405000, 0x2001, 0x402010);
    put_end(test, put_called(test, 0x403000, 0x2000, 0x401020));
    put_called(test, 0x402500, 0x2000, 0x401030);
    put_called(test, 0x402500, 0x2000, 0x401030 | PH__RECORD_CALLED_AGAIN);
    put_called(test, 0x406000, 0x1f00, 0x600000); /* from a function without a span */
    put_called(test, 0x407000, 0x1e00, 0);
    put_end(test, outer);
    host_end(test, PH_OK, "");

    assert_under(test, "0x404000", "compute");
    assert_under(test, "0x402000", "0x404000");
    assert_under(test, "0x405000", "0x402000");
    assert_under(test, "0x403000", "0x404000");
    assert_under(test, "0x407000", "0x406000");
    assert_string_equal(span_of(test, "0x402000")->message, "left by a longjmp");
    assert_false(span_of(test, "0x403000")->unfinished);
    size_t again = 0;
    for (size_t i = 0; i < test->span_count; i++)
        if (strcmp(test->spans[i].name, "0x402500") == 0) {
            assert_int_equal(test->spans[i].parent, span_of(test, "0x404000")->id);
            again += test->spans[i].id == span_of(test, "0x406000")->parent ? 10 : 1;
        }
    assert_int_equal(again, 11); /* two, and one has what came last */
    assert_int_equal(test->stats.unknown_ends, 0);
    assert_int_equal(test->stats.malformed, 0);
}

static void a_longjmp_out_of_recursion_leaves_the_right_depth(void **state) {
    struct tree_test *test = *state;
    uint64_t positions[8];

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    for (uint32_t i = 0; i < 8; i++)
        positions[i] = put_work(test, 0x8000 - i * 0x100);
    put_tick(test, 0x8000 - 3 * 0x100); /* back in the frame of the fourth */
    for (size_t i = 4; i-- > 0;)
        put_end(test, positions[i]);
    host_end(test, PH_OK, "");

    assert_int_equal(test->span_count, 9);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(test->spans[i].unfinished, i < 4);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(test->spans[i].parent, test->spans[i + 1].id);
    assert_int_equal(test->events[0].span, test->spans[4].id);
}

static void stack_pointers_compare_without_a_sign(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t outer = put_function(test, 0x401000, 0x80000010u);
    uint64_t inner = put_function(test, 0x402000, 0x7ffffff0u);
    put_end(test, inner);
    put_end(test, outer);
    host_end(test, PH_OK, "");
    assert_under(test, "0x402000", "compute");
    assert_false(span_of(test, "compute")->unfinished);
}

static void fields_are_added_to_the_span_that_they_name(void **state) {
    struct tree_test *test = *state;
    uint64_t words[3];

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t query = put(test, PH__RECORD_SPAN_BEGIN, SITE_QUERY, 0, words, string_words(words, 1, "a"));
    uint64_t work = put_work(test, 0);
    put(test, PH__RECORD_FIELDS, SITE_MORE, 0, (uint64_t[]){query, 8}, 2);
    put(test, PH__RECORD_FIELDS, SITE_MORE, 0, (uint64_t[]){work, 9}, 2);
    put(test, PH__RECORD_FIELDS, SITE_MORE, 0, (uint64_t[]){work + 8, 9}, 2); /* no span */
    put_end(test, query);
    host_end(test, PH_OK, "");
    assert_string_equal(span_of(test, "query")->fields, "rows=1 sql=a more=8");
    assert_string_equal(span_of(test, "work")->fields, "more=9");
}

static void a_span_keeps_32_fields_and_counts_the_rest(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t work = put_work(test, 0);
    for (uint64_t i = 0; i < 31; i++)
        put(test, PH__RECORD_FIELDS, SITE_MORE, 0, (uint64_t[]){work, i}, 2);
    for (uint64_t i = 0; i < 4; i++)
        put(test, PH__RECORD_FIELDS, SITE_PAIR, 0, (uint64_t[]){work, i, i}, 3);
    host_end(test, PH_OK, "");
    const char *fields = span_of(test, "work")->fields;
    assert_ptr_equal(strstr(fields, "more=0 more=1 "), fields);
    assert_non_null(strstr(fields, " more=30 left=0 fields_dropped=7"));
}

static void logs_are_formatted_and_counters_are_told(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put(test, PH__RECORD_EVENT, SITE_LINE, 0,
        (uint64_t[]){PH_I64 | PH_STR << 4, 3, 4 | 4ull << 32, 'n' | 'i' << 8 | 'n' << 16 | 'e' << 24}, 4);
    put(test, PH__RECORD_COUNTER, SITE_HITS, 0, (uint64_t[]){77}, 1);
    host_end(test, PH_OK, "");
    assert_string_equal(event_of(test, "%d of %s")->message, "3 of nine");
    assert_int_equal(event_of(test, "%d of %s")->level, PH_LEVEL_WARN);
    assert_int_equal(test->counter_count, 1);
    assert_int_equal(test->counter_value, 77);
    assert_int_equal(test->stats.counters, 1);
}

static void asynchronous_spans_reach_across_calls(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t guest = put_call(test, 0);
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){1, 100}, 2);
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){2, 200}, 2);
    put_end(test, guest);
    host_end(test, PH_OK, "");
    assert_int_equal(test->span_count, 2);
    host_begin(test, PH__HOST_CALL, &tree_exports[1]);
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){2, 1}, 2);
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){2, 1}, 2); /* for the second time */
    host_end(test, PH_OK, "");
    tree_end(test);

    assert_int_equal(test->stats.unknown_ends, 1);
    assert_string_equal(test->spans[2].fields, "size=200 done=true");
    assert_false(test->spans[2].unfinished);
    assert_int_equal(test->spans[2].parent, span_of(test, "guest greet")->id);
    assert_string_equal(test->spans[4].fields, "size=100");
    assert_true(test->spans[4].unfinished);
    assert_int_equal(test->spans[4].kind, PH_SPAN_ASYNC);
    assert_int_equal(test->stats.spans, 5);
}

static void one_that_begins_again_ends_the_older_one(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){1, 100}, 2);
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){1, 200}, 2);
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){1, 0}, 2);
    host_end(test, PH_OK, "");
    assert_true(test->spans[0].unfinished);
    assert_string_equal(test->spans[0].message, "begun again");
    assert_string_equal(test->spans[1].fields, "size=200 done=false");
}

static void losses_add_up_and_are_told_where_they_were(void **state) {
    struct tree_test *test = *state;

    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t work = put_work(test, 0);
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){10, 300}, 2);
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){10, 300}, 2); /* nothing new */
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){12, 350}, 2);
    put_end(test, work);
    host_loss(test, PH__LOSS_RING, 15, 400);
    host_loss(test, PH__LOSS_QUEUE, 100, 2400);
    host_loss(test, PH__LOSS_BUDGET, 7, 112);
    host_loss(test, PH__LOSS_OVERWRITTEN, 0, 4096);
    host_loss(test, PH__LOSS_NONSENSE, 0, 64);
    host_end(test, PH_OK, "");

    assert_int_equal(test->stats.dropped_ring, 15);
    assert_int_equal(test->stats.dropped_queue, 100);
    assert_int_equal(test->stats.dropped_budget, 7);
    assert_int_equal(test->stats.malformed, 1);
    assert_int_equal(test->stats.lost_bytes, 400 + 2400 + 112 + 4096 + 64);
    assert_int_equal(test->stats.gaps, 7);
    assert_int_equal(test->event_count, 7);
    assert_string_equal(test->events[0].name, "trace.gap");
    assert_string_equal(test->events[0].fields, "cause=ring records=10 bytes=300");
    assert_int_equal(test->events[0].span, span_of(test, "work")->id);
    assert_string_equal(test->events[1].fields, "cause=ring records=2 bytes=50");
    assert_string_equal(test->events[2].fields, "cause=ring records=3 bytes=50");
    assert_string_equal(test->events[3].fields, "cause=queue records=100 bytes=2400");
    assert_string_equal(test->events[4].fields, "cause=budget records=7 bytes=112");
    assert_string_equal(test->events[5].fields, "cause=overwritten bytes=4096");
    assert_string_equal(test->events[6].fields, "cause=nonsense bytes=64");
    assert_int_equal(test->events[6].level, PH_LEVEL_WARN);
}

static void what_is_not_wanted_is_left_out_and_its_children_stay(void **state) {
    struct tree_test *test = *state;

    tree_filter(test, "info,work=off,guest greet=off,write=off");
    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    uint64_t guest = put_call(test, 0);
    uint64_t work = put_work(test, 0x3000);
    uint64_t detail = put(test, PH__RECORD_SPAN_BEGIN, SITE_DETAIL, 0x2000, NULL, 0);
    put_end(test, put_system_call(test, SYS_write));
    put_end(test, put_function(test, 0x401000, 0x1000));
    put_tick(test, 0);
    tree_filter(test, "debug");
    put_end(test, put(test, PH__RECORD_SPAN_BEGIN, SITE_DETAIL, 0x1000, NULL, 0));
    put_end(test, detail);
    put_end(test, work);
    put_end(test, guest);
    host_end(test, PH_OK, "");

    assert_under(test, "compute", "call greet");
    assert_under(test, "detail", "call greet");
    assert_int_equal(event_of(test, "tick")->span, span_of(test, "call greet")->id);
    assert_int_equal(test->span_count, 3);
    assert_int_equal(test->stats.filtered, 4);
    assert_int_equal(test->stats.records, 13);
    assert_int_equal(test->stats.unknown_ends, 0);
}

/* Both as they are called and as the text sink shows them. */
static void names_are_filtered_in_either_form(void **state) {
    struct tree_test *test = *state;
    static const struct {
        const char *filter;
        bool write, unknown, compute, address;
    } expected[] = {
        {"info", true, true, true, true},
        {"info,syscall *=off", false, false, true, true},
        {"info,syscall write=off", false, true, true, true},
        {"info,syscall 4000=off", true, false, true, true},
        {"info,system call *=off", true, false, true, true},
        {"info,write=off", false, true, true, true},
        {"info,*()=off", true, true, false, false},
        {"info,compute()=off", true, true, false, true},
        {"info,compute=off", true, true, false, true},
        {"off,syscall *=info,write=off", true, true, false, false},
    };

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const size_t before = test->span_count;
        tree_filter(test, expected[i].filter);
        host_begin(test, PH__HOST_RUN, NULL);
        put_end(test, put_system_call(test, SYS_write));
        put_end(test, put_system_call(test, 4000));
        put_end(test, put_function(test, 0x401000, 0x1000));
        put_end(test, put_function(test, 0x401234, 0x1000));
        host_end(test, PH_OK, "");
        bool write = false, unknown = false, compute = false, address = false;
        for (size_t j = before; j < test->span_count; j++) {
            const char *name = test->spans[j].name;
            write = write || strcmp(name, "write") == 0;
            unknown = unknown || strcmp(name, "system call 4000") == 0;
            compute = compute || strcmp(name, "compute") == 0;
            address = address || strcmp(name, "0x401234") == 0;
        }
        if (write != expected[i].write || unknown != expected[i].unknown || compute != expected[i].compute ||
            address != expected[i].address)
            fail_msg("%s: %d %d %d %d", expected[i].filter, write, unknown, compute, address);
    }
}

static void nothing_comes_out_when_everything_is_off(void **state) {
    struct tree_test *test = *state;

    tree_filter(test, "off");
    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    put_end(test, put_call(test, 0));
    put_tick(test, 0);
    put(test, PH__RECORD_GAP, 0, 0, (uint64_t[]){10, 300}, 2);
    put(test, PH__RECORD_EXIT, 0, 0, (uint64_t[]){0}, 1);
    host_end(test, PH_OK, "");
    assert_int_equal(test->span_count, 0);
    assert_int_equal(test->event_count, 0);
    assert_int_equal(test->stats.dropped_ring, 10);
}

static void records_outside_of_calls_have_no_parent(void **state) {
    struct tree_test *test = *state;

    put_function(test, 0x401000, 0);
    put_tick(test, 0);
    host_begin(test, PH__HOST_CALL, &tree_exports[0]);
    host_end(test, PH_OK, "");
    put_tick(test, 0);
    host_end(test, PH_OK, ""); /* of nothing */
    assert_under(test, "compute", NULL);
    assert_true(span_of(test, "compute")->unfinished);
    assert_under(test, "call greet", NULL);
    assert_int_equal(test->events[0].span, span_of(test, "compute")->id);
    assert_int_equal(test->events[1].span, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_a_tree_with_exact_times),
        TEST(everything_has_its_name),
        TEST(system_calls_have_linux_names),
        TEST(a_host_function_lies_under_what_the_guest_has_open),
        TEST(a_host_function_is_a_wall),
        TEST(arguments_of_the_host_are_fields),
        TEST(a_bad_end_leaves_its_reason_in_all_that_was_open),
        TEST(what_is_left_open_at_a_good_end_is_unfinished),
        TEST(a_longjmp_closes_the_frames_that_it_has_left),
        TEST(a_call_closes_what_its_caller_called_before),
        TEST(a_longjmp_out_of_recursion_leaves_the_right_depth),
        TEST(stack_pointers_compare_without_a_sign),
        TEST(fields_are_added_to_the_span_that_they_name),
        TEST(a_span_keeps_32_fields_and_counts_the_rest),
        TEST(logs_are_formatted_and_counters_are_told),
        TEST(asynchronous_spans_reach_across_calls),
        TEST(one_that_begins_again_ends_the_older_one),
        TEST(losses_add_up_and_are_told_where_they_were),
        TEST(what_is_not_wanted_is_left_out_and_its_children_stay),
        TEST(names_are_filtered_in_either_form),
        TEST(nothing_comes_out_when_everything_is_off),
        TEST(records_outside_of_calls_have_no_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
