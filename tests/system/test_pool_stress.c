/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Many threads take, use and give back, more than there are sandboxes, with everything that can go wrong on
 * the way: faults, time-outs, interrupts from another thread, restores by the taker, giving back on another
 * thread, sandboxes that have to be made anew, making that fails. Nothing of one taker reaches the next, and
 * in the end the counts add up. For a second and a half, or PH_TEST_SECONDS. Also run under ThreadSanitizer.
 */
#include "pooled.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

#define WORKERS 8u
#define CAPACITY 3u

struct stress {
    struct pooled pooled;
    ph_snapshot *other; /* of the same guest, which has counted to 10 */
    const ph_function *count, *change, *null_write, *leave, *spin;
    atomic_uint done;
    atomic_bool stop;
    atomic_uint interrupted; /* calls */
    /* A sandbox that whoever comes next gives back. */
    _Atomic(ph_sandbox *) left_behind;
};

struct worker {
    struct stress *stress;
    pthread_t thread;
    uint64_t takes, failures;
    /* What it has taken and has not begun to give back, and how often that was interrupted meanwhile: only
     * under (gate), for ph_interrupt needs the sandbox to be there. */
    pthread_mutex_t gate;
    ph_sandbox *sandbox;
    unsigned interrupts;

    unsigned seed;
    char wrong[256]; /* the first thing that should not have happened */
};

static unsigned draw(struct worker *worker, unsigned count) {
    return (unsigned)rand_r(&worker->seed) % count;
}

static void wrong(struct worker *worker, const char *what, ph_status status, uint64_t value) {
    atomic_store(&worker->stress->stop, true);
    if (!worker->wrong[0])
        snprintf(worker->wrong, sizeof worker->wrong, "%s: status %s, value %llu", what,
                 ph_status_kind(status), (unsigned long long)value);
}

/* Whether a call that returned (status) was interrupted, as this taker's calls may be. */
static bool was_interrupted(struct worker *worker, ph_status status) {
    if (status != PH_E_INTERRUPTED)
        return false;
    pthread_mutex_lock(&worker->gate);
    if (worker->interrupts == 0)
        wrong(worker, "an interrupt of somebody else's call", status, 0);
    pthread_mutex_unlock(&worker->gate);
    atomic_fetch_add(&worker->stress->interrupted, 1);
    return true;
}

/* False when the guest has come to its end by an interrupt. */
static bool expect_count(struct worker *worker, ph_sandbox *sandbox, uint32_t wanted) {
    ph_value result = {.type = PH_VOID};
    ph_status status = ph_call(sandbox, worker->stress->count, NULL, 0, &result);

    if (was_interrupted(worker, status))
        return false;
    if (status != PH_OK || result.u32 != wanted)
        wrong(worker, "count", status, result.u32);
    return status == PH_OK;
}

static void expect_end(struct worker *worker, ph_sandbox *sandbox, const ph_function *function,
                       uint64_t timeout_ns, ph_status wanted) {
    ph_status status = ph_call_timeout(sandbox, function, NULL, 0, NULL, timeout_ns);

    if (!was_interrupted(worker, status) && status != wanted)
        wrong(worker, "the guest's end", status, 0);
}

static void restore(struct worker *worker, ph_sandbox *sandbox, ph_snapshot *snapshot) {
    ph_status status = ph_sandbox_restore(sandbox, snapshot);

    if (status != PH_OK)
        wrong(worker, "restore", status, 0);
}

static void use(struct worker *worker, ph_sandbox *sandbox) {
    struct stress *stress = worker->stress;
    const ph_value salt = {.type = PH_U32, .u32 = 1 + draw(worker, 100)};

    if (ph_sandbox_state(sandbox) != PH_STATE_READY || ph_sandbox_output(sandbox, 1).size != 0)
        wrong(worker, "a sandbox that is not as in the snapshot", PH_OK, ph_sandbox_output(sandbox, 1).size);
    if (!expect_count(worker, sandbox, 1))
        return;
    switch (draw(worker, 12)) {
    case 0:
        expect_end(worker, sandbox, stress->null_write, TEST_TIMEOUT_NS, PH_E_PAGE_FAULT);
        break;
    case 1:
        expect_end(worker, sandbox, stress->leave, TEST_TIMEOUT_NS, PH_E_EXITED);
        break;
    case 2:
        expect_end(worker, sandbox, stress->spin, 1 + draw(worker, 1000000), PH_E_TIMED_OUT);
        break;
    case 3: /* until somebody interrupts it */
        expect_end(worker, sandbox, stress->spin, 0, PH_E_INTERRUPTED);
        break;
    case 4: {
        ph_status status = ph_call(sandbox, stress->change, &salt, 1, NULL); /* has output */
        if (!was_interrupted(worker, status) && status != PH_OK)
            wrong(worker, "change", status, 0);
        break;
    }
    case 5:
        expect_end(worker, sandbox, stress->null_write, TEST_TIMEOUT_NS, PH_E_PAGE_FAULT);
        restore(worker, sandbox, stress->other);
        expect_count(worker, sandbox, 11);
        break;
    case 6:
        restore(worker, sandbox, stress->pooled.snapshot);
        expect_count(worker, sandbox, 1);
        break;
    case 7: /* as if the host side had failed: it must be replaced */
        atomic_store(&sandbox->state, PH_STATE_BROKEN);
        break;
    default:
        expect_count(worker, sandbox, 2);
    }
}

static void turn(struct worker *worker) {
    static const uint64_t timeouts[] = {0, 1000000, PH_POOL_WAIT_FOREVER, PH_POOL_WAIT_FOREVER};
    struct stress *stress = worker->stress;
    const uint64_t timeout_ns = timeouts[draw(worker, 4)];
    ph_sandbox *sandbox = NULL;

    ph_status status = ph_pool_take(stress->pooled.pool, timeout_ns, &sandbox, NULL);
    if (status != PH_OK) {
        bool expected = status == PH_E_NOT_FOUND || (status == PH_E_BUSY && timeout_ns == 0) ||
                        (status == PH_E_TIMED_OUT && timeout_ns == 1000000);
        if (!expected || sandbox)
            wrong(worker, "take", status, timeout_ns);
        worker->failures++;
        return;
    }
    worker->takes++;
    pthread_mutex_lock(&worker->gate);
    worker->sandbox = sandbox;
    worker->interrupts = 0;
    pthread_mutex_unlock(&worker->gate);
    use(worker, sandbox);
    pthread_mutex_lock(&worker->gate);
    worker->sandbox = NULL;
    pthread_mutex_unlock(&worker->gate);
    if (draw(worker, 8) == 0) /* and gives back what another one has left */
        sandbox = atomic_exchange(&stress->left_behind, sandbox);
    ph_pool_give(stress->pooled.pool, sandbox);
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;

    do
        turn(worker);
    while (!atomic_load(&worker->stress->stop));
    atomic_fetch_add(&worker->stress->done, 1);
    return NULL;
}

/* Interrupts whatever (worker) has taken, in a call or not. */
static void interrupt_worker(struct worker *worker) {
    pthread_mutex_lock(&worker->gate);
    if (worker->sandbox) {
        worker->interrupts++;
        ph_interrupt(worker->sandbox);
    }
    pthread_mutex_unlock(&worker->gate);
}

/* One making in four fails. */
static ph_status prepare(void *context, ph_sandbox *sandbox) {
    static atomic_uint made;

    (void)context;
    (void)sandbox;
    return atomic_fetch_add(&made, 1) % 4 == 3 ? PH_E_NOT_FOUND : PH_OK;
}

static ph_snapshot *counted_to_ten(const struct pooled *pooled) {
    ph_sandbox *sandbox = pooled_take(pooled);
    ph_snapshot *snapshot;

    for (uint32_t i = 1; i <= 10; i++)
        assert_int_equal(pooled_count(pooled, sandbox), i);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    ph_pool_give(pooled->pool, sandbox);
    return snapshot;
}

/* On a slow machine it takes a while. That a thread gets its own again is not waited for: with somebody in
 * line at all times, it does not. */
static bool has_shown_enough(struct stress *stress) {
    ph_pool_stats stats = pooled_stats(&stress->pooled);

    return atomic_load(&stress->interrupted) > 0 && stats.waits > 0 && stats.replaced > 0 &&
           stats.failures > 0;
}

static uint64_t duration_ns(void) {
    const char *text = getenv("PH_TEST_SECONDS");

    return text ? strtoull(text, NULL, 10) * 1000000000 : 1500000000;
}

static void takers_are_kept_apart_whatever_they_do(void **state) {
    struct stress stress = {0};
    struct worker workers[WORKERS] = {0};
    ph_pool_config config = pooled_config(CAPACITY);
    ph_config sandbox_config = PH_CONFIG_INIT;
    uint64_t takes = 1, failures = 0;
    unsigned seed = 1;
    (void)state;
    test_needs_kvm();

    sandbox_config.timeout_ns = TEST_TIMEOUT_NS;
    sandbox_config.keep_output = 4096;
    config.sandbox = &sandbox_config;
    config.prepare = prepare;
    config.warm = CAPACITY - 1;
    pooled_open(&stress.pooled, "snapshot-musl", config);
    stress.other = counted_to_ten(&stress.pooled);
    stress.count = test_export(stress.pooled.image, "count");
    stress.change = test_export(stress.pooled.image, "change");
    stress.null_write = test_export(stress.pooled.image, "null_write");
    stress.leave = test_export(stress.pooled.image, "leave");
    stress.spin = test_export(stress.pooled.image, "spin");
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].stress = &stress;
        workers[i].seed = i + 1;
        pthread_mutex_init(&workers[i].gate, NULL);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    const uint64_t end_ns = test_now_ns() + duration_ns();
    while (atomic_load(&stress.done) < WORKERS) {
        if (test_now_ns() >= end_ns && has_shown_enough(&stress))
            atomic_store(&stress.stop, true);
        interrupt_worker(&workers[(unsigned)rand_r(&seed) % WORKERS]);
        usleep((useconds_t)rand_r(&seed) % 1000);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        pthread_mutex_destroy(&workers[i].gate);
        takes += workers[i].takes;
        failures += workers[i].failures;
    }
    ph_pool_give(stress.pooled.pool, atomic_load(&stress.left_behind));
    for (unsigned i = 0; i < WORKERS; i++)
        if (workers[i].wrong[0])
            fail_msg("%s", workers[i].wrong);
    ph_pool_stats stats = pooled_stats(&stress.pooled);
    assert_int_equal(stats.takes, takes);
    assert_int_equal(stats.failures, failures);
    assert_in_range(stats.idle, 0, CAPACITY);
    assert_in_range(stats.takes_same_thread, 0, takes);
    ph_snapshot_close(stress.other);
    pooled_close(&stress.pooled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takers_are_kept_apart_whatever_they_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
