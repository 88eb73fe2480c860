/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Pools when the host fails: every call into the C library and the kernel that a pool's life makes fails
 * once, as in test_failures.c. A broken sandbox is replaced, one that cannot be replaced costs no place and
 * lets nobody wait, and nothing stays behind.
 */
#include "support/failing.h"

#include "pooled.h"

#include <pthread.h>
#include <string.h>

#define GUEST "snapshot-musl"

static bool prepare_fails;

static ph_status prepare(void *context, ph_sandbox *sandbox) {
    (void)context;
    (void)sandbox;
    return prepare_fails ? PH_E_NOT_FOUND : PH_OK;
}

static ph_pool_config failing_config(uint32_t capacity) {
    ph_pool_config config = pooled_config(capacity);

    config.prepare = prepare;
    return config;
}

/* Gives (sandbox) back while the (at)th call fails. False when there are not so many. */
static bool give_failing(const struct pooled *pooled, ph_sandbox *sandbox, unsigned at) {
    failing = (struct failing){.at = at};
    ph_pool_give(pooled->pool, sandbox);
    bool failed = failing.failed != NULL;
    failing = (struct failing){0};
    return failed;
}

static void one_that_breaks_when_it_is_put_back_is_replaced(void **state) {
    struct pooled pooled;
    bool failed = true;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, failing_config(1));
    for (unsigned at = 1; failed; at++) {
        ph_sandbox *sandbox = pooled_take(&pooled);
        assert_int_equal(pooled_count(&pooled, sandbox), 1);
        pooled_call(&pooled, sandbox, "change", (const ph_value[]){U32(at)}, 1, PH_OK);
        pooled_call(&pooled, sandbox, "null_write", NULL, 0, PH_E_PAGE_FAULT);
        failed = give_failing(&pooled, sandbox, at);
        assert_int_equal(pooled_stats(&pooled).idle, 1); /* anew, at once */
    }
    ph_pool_stats stats = pooled_stats(&pooled);
    assert_true(stats.replaced > 3);
    assert_int_equal(stats.made, 1 + stats.replaced);
    pooled_close(&pooled);
}

/* Takes one of (pooled) and gives its guest an end. */
static ph_sandbox *take_and_end(const struct pooled *pooled) {
    ph_sandbox *sandbox = pooled_take(pooled);

    pooled_call(pooled, sandbox, "null_write", NULL, 0, PH_E_PAGE_FAULT);
    return sandbox;
}

/* The number of a call that breaks such a sandbox when it fails in ph_pool_give: some are not needed. */
static unsigned find_breaking_call(void) {
    struct pooled pooled;
    unsigned at = 0;
    bool failed = true;

    while (failed) {
        pooled_open(&pooled, GUEST, failing_config(1));
        failed = give_failing(&pooled, take_and_end(&pooled), ++at);
        bool broken = pooled_stats(&pooled).replaced == 1;
        pooled_close(&pooled);
        if (broken)
            return at;
    }
    fail_msg("nothing breaks a sandbox");
    return 0;
}

static void one_that_cannot_be_replaced_costs_no_place(void **state) {
    struct pooled pooled;
    ph_pool_stats stats;
    (void)state;
    test_needs_kvm();

    unsigned at = find_breaking_call();
    pooled_open(&pooled, GUEST, failing_config(2));
    ph_sandbox *first = take_and_end(&pooled);
    prepare_fails = true;
    assert_true(give_failing(&pooled, first, at));
    stats = pooled_stats(&pooled);
    assert_int_equal(stats.idle, 1);
    assert_int_equal(stats.taken, 0);
    assert_int_equal(stats.replaced, 1);
    first = pooled_take(&pooled);
    pooled_refused(&pooled, 0, PH_E_NOT_FOUND); /* it tries, and has the error */
    prepare_fails = false;
    ph_sandbox *second = pooled_take(&pooled);
    pooled_refused(&pooled, 0, PH_E_BUSY);
    ph_pool_give(pooled.pool, first);
    ph_pool_give(pooled.pool, second);
    pooled_close(&pooled);
}

struct waiter {
    ph_pool *pool;
    pthread_t thread;
    ph_status status;
    ph_error error;
};

static void *waiter_main(void *argument) {
    struct waiter *waiter = argument;
    ph_sandbox *sandbox;

    waiter->status = ph_pool_take(waiter->pool, PH_POOL_WAIT_FOREVER, &sandbox, &waiter->error);
    if (waiter->status == PH_OK)
        ph_pool_give(waiter->pool, sandbox);
    return NULL;
}

static void nobody_waits_for_one_that_cannot_be_replaced(void **state) {
    struct pooled pooled;
    struct waiter waiters[3] = {0};
    (void)state;
    test_needs_kvm();

    unsigned at = find_breaking_call();
    pooled_open(&pooled, GUEST, failing_config(1));
    ph_sandbox *sandbox = take_and_end(&pooled);
    for (unsigned i = 0; i < 3; i++) {
        waiters[i].pool = pooled.pool;
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, waiter_main, &waiters[i]), 0);
        pooled_until_waits(&pooled, i + 1);
    }
    prepare_fails = true;
    assert_true(give_failing(&pooled, sandbox, at));
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, PH_E_NOT_FOUND);
        assert_non_null(strstr(waiters[i].error.message, "preparing"));
    }
    assert_int_equal(pooled_stats(&pooled).taken, 0);
    prepare_fails = false;
    ph_pool_give(pooled.pool, pooled_take(&pooled));
    pooled_close(&pooled);
}

/* Makes a pool, takes, calls, gives. (error) is that of what failed. */
static ph_status live(const struct pooled *pooled, ph_error *error) {
    ph_pool_config config = failing_config(1);
    ph_sandbox *sandbox = NULL;
    ph_pool *pool = NULL;

    ph_status status = ph_pool_create(pooled->snapshot, &config, &pool, error);
    if (status == PH_OK)
        status = ph_pool_take(pool, PH_POOL_WAIT_FOREVER, &sandbox, error);
    if (status == PH_OK) {
        status = ph_call(sandbox, ph_image_find_export(pooled->image, "count"), NULL, 0, NULL);
        *error = *ph_sandbox_error(sandbox);
    }
    ph_pool_give(pool, sandbox);
    ph_pool_destroy(pool);
    return status;
}

static void every_failing_call_has_a_status_and_leaves_nothing_behind(void **state) {
    struct pooled pooled;
    ph_error error;
    bool failed = true;
    (void)state;
    test_needs_kvm();

    pooled_open_snapshot(&pooled, GUEST);
    assert_int_equal(live(&pooled, &error), PH_OK);
    unsigned descriptors = failing_descriptors();
    for (unsigned at = 1; failed; at++) {
        memset(&error, 0, sizeof error);
        failing = (struct failing){.at = at};
        ph_status status = live(&pooled, &error);
        const char *name = failing.failed;
        failing = (struct failing){0};
        failed = name != NULL;
        if (status != PH_OK && (!failed || error.status != status || error.message[0] == 0))
            fail_msg("call %u, %s: status %s without its error", at, name, ph_status_kind(status));
        assert_int_equal(failing_descriptors(), descriptors);
    }
    pooled_close(&pooled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_breaks_when_it_is_put_back_is_replaced),
        cmocka_unit_test(one_that_cannot_be_replaced_costs_no_place),
        cmocka_unit_test(nobody_waits_for_one_that_cannot_be_replaced),
        cmocka_unit_test(every_failing_call_has_a_status_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
