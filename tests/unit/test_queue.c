/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The queue of batches keeps its promises wherever in its memory a batch comes to lie: what it is asked to
 * keep free stays free, and what was put in comes out, in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/queue.h"

#define SIZE 4096u
#define HEAD sizeof(struct ph__batch)

static bool put(struct ph__queue *queue, uint64_t size, uint64_t kept, uint64_t mark) {
    struct ph__batch *batch = ph__queue_reserve(queue, size, kept);

    if (!batch)
        return false;
    *batch = (struct ph__batch){.size = (uint32_t)size, .kind = PH__BATCH_BEGIN, .tsc = mark};
    ph__queue_push(queue, batch);
    return true;
}

static void assert_front(struct ph__queue *queue, uint64_t mark) {
    const struct ph__batch *batch = ph__queue_front(queue);

    assert_non_null(batch);
    assert_int_equal(batch->tsc, mark);
    ph__queue_drop(queue, batch);
}

static void batches_come_out_in_order_over_the_end(void **state) {
    struct ph__queue queue;

    (void)state;
    assert_true(ph__queue_init(&queue, SIZE));
    assert_null(ph__queue_front(&queue));
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(put(&queue, HEAD + i % 64 * 8, 0, 2 * i));
        assert_true(put(&queue, HEAD + i % 7 * 8, 0, 2 * i + 1));
        assert_front(&queue, 2 * i);
        assert_front(&queue, 2 * i + 1);
    }
    assert_null(ph__queue_front(&queue));
    ph__queue_free(&queue);
}

static void what_is_kept_stays_free_wherever_a_batch_begins(void **state) {
    const uint64_t size = 512, kept = 1024;

    (void)state;
    for (uint64_t at = HEAD; at < SIZE; at += 8) {
        struct ph__queue queue;
        assert_true(ph__queue_init(&queue, SIZE));
        /* An empty queue whose next place is (at). */
        for (uint64_t place = 0, part; place < at; place += part) {
            part = at - place < 2 * HEAD ? at - place : HEAD;
            assert_true(put(&queue, part, 0, 0));
            assert_front(&queue, 0);
        }
        while (put(&queue, size, kept, 0))
            assert_in_range(ph__queue_used(&queue), size, SIZE - kept);
        assert_in_range(ph__queue_used(&queue), SIZE - kept - 2 * size, SIZE - kept);
        ph__queue_free(&queue);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_out_in_order_over_the_end),
        cmocka_unit_test(what_is_kept_stays_free_wherever_a_batch_begins),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
