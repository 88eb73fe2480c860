/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Shared helpers of the tests of pools (pooled.h).
 */
#include "pooled.h"

#include <time.h>

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->i32 = args[0].i32;
    return PH_OK;
}

void pooled_open_snapshot(struct pooled *pooled, const char *name) {
    pooled->image = test_image(name);
    pooled->pool = NULL;
    ph_sandbox *first = test_sandbox(pooled->image, NULL);
    test_status(first, ph_sandbox_register(first, "visit", &visit_signature, visit, NULL), PH_OK);
    test_status(first, ph_sandbox_start(first), PH_OK);
    test_status(first, ph_snapshot_take(first, &pooled->snapshot), PH_OK);
    ph_sandbox_destroy(first);
}

void pooled_open(struct pooled *pooled, const char *name, ph_pool_config config) {
    ph_config sandbox = PH_CONFIG_INIT;
    ph_error error;

    sandbox.timeout_ns = TEST_TIMEOUT_NS;
    if (!config.sandbox)
        config.sandbox = &sandbox;
    pooled_open_snapshot(pooled, name);
    if (ph_pool_create(pooled->snapshot, &config, &pooled->pool, &error) != PH_OK)
        fail_msg("making a pool: %s", error.message);
}

ph_pool_config pooled_config(uint32_t capacity) {
    ph_pool_config config = PH_POOL_CONFIG_INIT;

    config.capacity = capacity;
    return config;
}

void pooled_close(struct pooled *pooled) {
    if (pooled->pool) {
        ph_pool_stats stats = pooled_stats(pooled);
        assert_int_equal(stats.taken, 0);
        assert_int_equal(stats.idle, stats.made - stats.replaced);
        assert_int_equal(stats.takes, stats.restores + stats.replaced);
    }
    ph_pool_destroy(pooled->pool);
    ph_snapshot_close(pooled->snapshot);
    ph_image_close(pooled->image);
}

ph_sandbox *pooled_take(const struct pooled *pooled) {
    ph_sandbox *sandbox = NULL;
    ph_error error;

    if (ph_pool_take(pooled->pool, 0, &sandbox, &error) != PH_OK)
        fail_msg("taking: %s", error.message);
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_READY);
    return sandbox;
}

const ph_error *pooled_refused(const struct pooled *pooled, uint64_t timeout_ns, ph_status wanted) {
    static ph_error error;
    ph_sandbox *sandbox = (ph_sandbox *)&error;
    ph_status status = ph_pool_take(pooled->pool, timeout_ns, &sandbox, &error);

    if (status != wanted)
        fail_msg("status %s instead of %s", ph_status_kind(status), ph_status_kind(wanted));
    assert_int_equal(error.status, wanted);
    assert_true(error.message[0] != 0);
    assert_null(sandbox);
    return &error;
}

void pooled_call(const struct pooled *pooled, ph_sandbox *sandbox, const char *name, const ph_value *args,
                 size_t count, ph_status wanted) {
    test_status(sandbox, test_call(sandbox, pooled->image, name, args, count, NULL), wanted);
}

uint32_t pooled_count(const struct pooled *pooled, ph_sandbox *sandbox) {
    ph_value result = {.type = PH_VOID};

    test_status(sandbox, test_call(sandbox, pooled->image, "count", NULL, 0, &result), PH_OK);
    return result.u32;
}

ph_pool_stats pooled_stats(const struct pooled *pooled) {
    ph_pool_stats stats = PH_POOL_STATS_INIT;

    assert_int_equal(ph_pool_stats_get(pooled->pool, &stats), PH_OK);
    return stats;
}

void pooled_until_waits(const struct pooled *pooled, uint64_t waits) {
    const struct timespec pause = {.tv_nsec = 1000000};

    while (pooled_stats(pooled).waits < waits)
        nanosleep(&pause, NULL);
}
