/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Waiting for a sandbox of a pool: in whose turn, for how long, and what ends it. Also run under
 * ThreadSanitizer.
 */
#include "pooled.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GUEST "snapshot-musl"
#define WAITERS 5u

/* A thread that takes once, and keeps it until it may go on. */
struct waiter {
    ph_pool *pool;
    uint64_t timeout_ns;
    pthread_t thread;
    ph_sandbox *sandbox;
    unsigned *served; /* how many were: changed by who has the only sandbox */
    unsigned turn;
    ph_status status;
    ph_error error;
};

static void *waiter_main(void *argument) {
    struct waiter *waiter = argument;

    waiter->status = ph_pool_take(waiter->pool, waiter->timeout_ns, &waiter->sandbox, &waiter->error);
    if (waiter->status == PH_OK) {
        waiter->turn = ++*waiter->served;
        ph_pool_give(waiter->pool, waiter->sandbox);
    }
    return NULL;
}

/* Starts (waiter), and returns when it waits, as the (number)th to do so. */
static void waiter_start(const struct pooled *pooled, struct waiter *waiter, uint64_t number) {
    waiter->pool = pooled->pool;
    if (waiter->timeout_ns == 0)
        waiter->timeout_ns = PH_POOL_WAIT_FOREVER;
    assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
    pooled_until_waits(pooled, number);
}

static void who_waits_longest_is_served_first(void **state) {
    struct pooled pooled;
    struct waiter waiters[WAITERS] = {0};
    unsigned served = 0;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    ph_sandbox *sandbox = pooled_take(&pooled);
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i].served = &served;
        waiter_start(&pooled, &waiters[i], i + 1);
    }
    ph_pool_give(pooled.pool, sandbox);
    /* Who comes last waits behind all others, although the sandbox was its own. */
    assert_int_equal(ph_pool_take(pooled.pool, PH_POOL_WAIT_FOREVER, &sandbox, NULL), PH_OK);
    assert_int_equal(served, WAITERS);
    for (unsigned i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, PH_OK);
        assert_int_equal(waiters[i].turn, i + 1);
    }
    ph_pool_give(pooled.pool, sandbox);
    pooled_close(&pooled);
}

static void waiting_ends_with_its_time(void **state) {
    struct pooled pooled;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    ph_sandbox *sandbox = pooled_take(&pooled);
    uint64_t start = test_now_ns();
    assert_non_null(strstr(pooled_refused(&pooled, 20000000, PH_E_TIMED_OUT)->message, "in time"));
    assert_true(test_now_ns() - start >= 20000000);
    pooled_refused(&pooled, 1, PH_E_TIMED_OUT);
    assert_int_equal(pooled_stats(&pooled).waits, 2);
    assert_int_equal(pooled_stats(&pooled).failures, 2);
    /* Nothing is kept for who has gone. */
    ph_pool_give(pooled.pool, sandbox);
    assert_int_equal(pooled_stats(&pooled).idle, 1);
    assert_ptr_equal(pooled_take(&pooled), sandbox);
    ph_pool_give(pooled.pool, sandbox);
    pooled_close(&pooled);
}

static void who_has_gone_is_passed_over(void **state) {
    struct pooled pooled;
    struct waiter waiters[3] = {{0}, {.timeout_ns = 1000000}, {0}};
    unsigned served = 0;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    ph_sandbox *sandbox = pooled_take(&pooled);
    for (unsigned i = 0; i < 3; i++) {
        waiters[i].served = &served;
        waiter_start(&pooled, &waiters[i], i + 1);
    }
    pthread_join(waiters[1].thread, NULL);
    assert_int_equal(waiters[1].status, PH_E_TIMED_OUT);
    assert_null(waiters[1].sandbox);
    ph_pool_give(pooled.pool, sandbox);
    pthread_join(waiters[0].thread, NULL);
    pthread_join(waiters[2].thread, NULL);
    assert_int_equal(waiters[0].turn, 1);
    assert_int_equal(waiters[2].turn, 2);
    pooled_close(&pooled);
}

static void time_beyond_the_clock_is_without_end(void **state) {
    struct pooled pooled;
    struct waiter waiter = {.timeout_ns = UINT64_MAX - 1};
    unsigned served = 0;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    ph_sandbox *sandbox = pooled_take(&pooled);
    waiter.served = &served;
    waiter_start(&pooled, &waiter, 1);
    ph_pool_give(pooled.pool, sandbox);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.status, PH_OK);
    assert_ptr_equal(waiter.sandbox, sandbox);
    pooled_close(&pooled);
}

/* ---- the end of a pool --------------------------------------------------------------------------------- */

struct destroyer {
    ph_pool *pool;
    pthread_t thread;
    atomic_bool done;
};

static void *destroyer_main(void *argument) {
    struct destroyer *destroyer = argument;

    ph_pool_destroy(destroyer->pool);
    atomic_store(&destroyer->done, true);
    return NULL;
}

static void destroying_wakes_who_waits_and_waits_for_what_is_taken(void **state) {
    struct pooled pooled;
    struct waiter waiters[2] = {{0}, {.timeout_ns = TEST_TIMEOUT_NS}};
    struct destroyer destroyer = {0};
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(2));
    ph_sandbox *first = pooled_take(&pooled), *second = pooled_take(&pooled);
    waiter_start(&pooled, &waiters[0], 1);
    waiter_start(&pooled, &waiters[1], 2);
    destroyer.pool = pooled.pool;
    assert_int_equal(pthread_create(&destroyer.thread, NULL, destroyer_main, &destroyer), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, PH_E_STATE);
        assert_non_null(strstr(waiters[i].error.message, "being destroyed"));
    }
    /* What is taken serves until it is given back, and nobody gets one any more. */
    pooled_refused(&pooled, PH_POOL_WAIT_FOREVER, PH_E_STATE);
    ph_pool_give(pooled.pool, second);
    pooled_refused(&pooled, 0, PH_E_STATE);
    assert_int_equal(pooled_count(&pooled, first), 1);
    pooled_call(&pooled, first, "leave", NULL, 0, PH_E_EXITED);
    assert_false(atomic_load(&destroyer.done));
    ph_pool_give(pooled.pool, first);
    pthread_join(destroyer.thread, NULL);
    pooled.pool = NULL;
    pooled_close(&pooled);
}

/* ---- fork ---------------------------------------------------------------------------------------------- */

static int child_main(const struct pooled *pooled, ph_sandbox *taken) {
    ph_pool_stats stats = PH_POOL_STATS_INIT;
    ph_sandbox *sandbox = taken;
    ph_error error;

    if (ph_pool_take(pooled->pool, PH_POOL_WAIT_FOREVER, &sandbox, &error) != PH_E_FORKED || sandbox)
        return 1;
    if (error.status != PH_E_FORKED || !strstr(error.message, "fork()"))
        return 2;
    if (ph_pool_stats_get(pooled->pool, &stats) != PH_E_FORKED)
        return 3;
    ph_pool_give(pooled->pool, taken);
    ph_pool_destroy(pooled->pool);
    ph_snapshot_close(pooled->snapshot);
    ph_image_close(pooled->image);
    return 0;
}

static void a_child_may_only_destroy(void **state) {
    struct pooled pooled;
    struct waiter waiter = {0};
    unsigned served = 0;
    int status;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(2));
    ph_sandbox *first = pooled_take(&pooled), *second = pooled_take(&pooled);
    waiter.served = &served;
    waiter_start(&pooled, &waiter, 1);
    pid_t child = fork();
    if (child == 0)
        _exit(child_main(&pooled, first));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pooled_count(&pooled, first), 1);
    ph_pool_give(pooled.pool, first);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.status, PH_OK);
    ph_pool_give(pooled.pool, second);
    assert_int_equal(pooled_stats(&pooled).idle, 2);
    pooled_close(&pooled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_longest_is_served_first),
        cmocka_unit_test(waiting_ends_with_its_time),
        cmocka_unit_test(who_has_gone_is_passed_over),
        cmocka_unit_test(time_beyond_the_clock_is_without_end),
        cmocka_unit_test(destroying_wakes_who_waits_and_waits_for_what_is_taken),
        cmocka_unit_test(a_child_may_only_destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
