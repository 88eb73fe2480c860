/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * To which trace the tree says that spans and events belong.
 */
#include "tree_fixture.h"

#include <string.h>

#define TRACE_1 "trace number one"
#define TRACE_2 "trace number two"
#define CALLER "a caller"

static const uint8_t zeroes[PH__TRACE_ID_SIZE];

static void assert_trace(const struct got_span *span, const char *trace, const char *parent,
                         const char *trace_state) {
    assert_memory_equal(span->trace_id, trace, PH__TRACE_ID_SIZE);
    assert_memory_equal(span->remote_parent, parent ? parent : (const char *)zeroes, PH__SPAN_ID_SIZE);
    assert_string_equal(span->trace_state, trace_state);
}

static void all_inside_a_root_is_of_its_trace(void **state) {
    struct tree_test *test = *state;

    host_root(test, PH__HOST_CALL, &tree_exports[0], TRACE_1, CALLER, "a=1");
    uint64_t work = put_work(test, 0x1000);
    put_tick(test, 0x1000);
    host_begin(test, PH__HOST_FUNCTION, &tree_import);
    host_end(test, PH_OK, "");
    put_end(test, work);
    host_end(test, PH_OK, "");

    assert_trace(span_of(test, "call greet"), TRACE_1, CALLER, "a=1");
    assert_trace(span_of(test, "work"), TRACE_1, NULL, "a=1");
    assert_trace(span_of(test, "host ask"), TRACE_1, NULL, "a=1");
    assert_memory_equal(event_of(test, "tick")->trace_id, TRACE_1, PH__TRACE_ID_SIZE);
}

static void each_root_has_its_own(void **state) {
    struct tree_test *test = *state;

    host_root(test, PH__HOST_CALL, &tree_exports[0], TRACE_1, CALLER, "a=1");
    host_end(test, PH_OK, "");
    host_loss(test, PH__LOSS_QUEUE, 1, 16);
    host_root(test, PH__HOST_CALL, &tree_exports[1], TRACE_2, NULL, NULL);
    host_end(test, PH_OK, "");

    assert_trace(span_of(test, "call greet"), TRACE_1, CALLER, "a=1");
    assert_trace(span_of(test, "call add"), TRACE_2, NULL, "");
    assert_memory_equal(event_of(test, "trace.gap")->trace_id, zeroes, PH__TRACE_ID_SIZE);
}

static void who_becomes_the_root_has_the_caller_above_it(void **state) {
    struct tree_test *test = *state;

    tree_filter(test, "info,call *=off");
    host_root(test, PH__HOST_CALL, &tree_exports[0], TRACE_1, CALLER, "a=1");
    put_end(test, put_work(test, 0x1000));
    host_end(test, PH_OK, "");

    assert_under(test, "work", NULL);
    assert_trace(span_of(test, "work"), TRACE_1, CALLER, "a=1");
}

static void an_asynchronous_span_keeps_its_trace(void **state) {
    struct tree_test *test = *state;

    host_root(test, PH__HOST_CALL, &tree_exports[0], TRACE_1, CALLER, "a=1");
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){1, 100}, 2);
    host_end(test, PH_OK, "");
    host_root(test, PH__HOST_CALL, &tree_exports[1], TRACE_2, NULL, "b=2");
    put(test, PH__RECORD_ASYNC_END, SITE_JOB_END, 0, (uint64_t[]){1, 1}, 2);
    host_end(test, PH_OK, "");

    assert_under(test, "job", "call greet");
    assert_trace(span_of(test, "job"), TRACE_1, NULL, "a=1");
}

static void one_that_is_never_ended_keeps_it_too(void **state) {
    struct tree_test *test = *state;

    tree_filter(test, "info,call *=off");
    host_root(test, PH__HOST_CALL, &tree_exports[0], TRACE_1, CALLER, "a=1");
    put(test, PH__RECORD_ASYNC_BEGIN, SITE_JOB, 0, (uint64_t[]){1, 100}, 2);
    host_end(test, PH_OK, "");
    host_root(test, PH__HOST_CALL, &tree_exports[1], TRACE_2, NULL, NULL);
    host_end(test, PH_OK, "");
    tree_end(test);

    assert_under(test, "job", NULL);
    assert_trace(span_of(test, "job"), TRACE_1, CALLER, "a=1");
}

static void spans_without_a_root_have_a_trace_of_their_own(void **state) {
    struct tree_test *test = *state;
    const struct got_span *one, *other;

    put_end(test, put_work(test, 0x1000));
    deliver(test);
    put_end(test, put_work(test, 0x1000));
    deliver(test);

    assert_int_equal(test->span_count, 2);
    one = &test->spans[0];
    other = &test->spans[1];
    assert_true(ph__id_is_set(one->trace_id, sizeof one->trace_id));
    assert_true(ph__id_is_set(other->trace_id, sizeof other->trace_id));
    assert_memory_not_equal(one->trace_id, other->trace_id, sizeof one->trace_id);
    assert_memory_equal(one->remote_parent, zeroes, sizeof one->remote_parent);
}

static void fields_beyond_what_a_span_can_have_are_counted(void **state) {
    struct tree_test *test = *state;

    host_root(test, PH__HOST_CALL, &tree_exports[0], TRACE_1, NULL, NULL);
    uint64_t work = put_work(test, 0);
    for (uint64_t i = 0; i < 40; i++)
        put(test, PH__RECORD_FIELDS, SITE_MORE, 0, (uint64_t[]){work, i}, 2);
    put_end(test, work);
    host_end(test, PH_OK, "");

    assert_int_equal(span_of(test, "work")->dropped_fields, 8);
    assert_int_equal(span_of(test, "call greet")->dropped_fields, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_inside_a_root_is_of_its_trace),
        TEST(each_root_has_its_own),
        TEST(who_becomes_the_root_has_the_caller_above_it),
        TEST(an_asynchronous_span_keeps_its_trace),
        TEST(one_that_is_never_ended_keeps_it_too),
        TEST(spans_without_a_root_have_a_trace_of_their_own),
        TEST(fields_beyond_what_a_span_can_have_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
