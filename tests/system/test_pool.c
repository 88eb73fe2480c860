/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a pool hands out: as many as were asked for, as the snapshot has them whatever the taker before did,
 * and the one that the thread had before. Who waits for whom is in test_pool_waits.c.
 */
#include "pooled.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define GUEST "snapshot-musl"

/* ---- how many ------------------------------------------------------------------------------------------ */

static void warm_ones_are_made_at_once_and_others_when_needed(void **state) {
    struct pooled pooled;
    ph_pool_config config = pooled_config(3);
    (void)state;
    test_needs_kvm();

    config.warm = 2;
    pooled_open(&pooled, GUEST, config);
    ph_pool_stats stats = pooled_stats(&pooled);
    assert_int_equal(stats.idle, 2);
    assert_int_equal(stats.made, 2);
    assert_int_equal(stats.taken, 0);
    ph_sandbox *first = pooled_take(&pooled), *second = pooled_take(&pooled);
    assert_int_equal(pooled_stats(&pooled).made, 2);
    ph_sandbox *third = pooled_take(&pooled);
    stats = pooled_stats(&pooled);
    assert_int_equal(stats.idle, 0);
    assert_int_equal(stats.made, 3);
    assert_int_equal(stats.taken, 3);
    assert_int_equal(stats.takes, 3);
    assert_int_equal(stats.takes_same_thread, 0);
    ph_pool_give(pooled.pool, first);
    ph_pool_give(pooled.pool, second);
    ph_pool_give(pooled.pool, third);
    pooled_close(&pooled);
}

static void a_pool_is_bounded(void **state) {
    struct pooled pooled;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(2));
    ph_sandbox *first = pooled_take(&pooled), *second = pooled_take(&pooled);
    assert_ptr_not_equal(first, second);
    assert_non_null(strstr(pooled_refused(&pooled, 0, PH_E_BUSY)->message, "2 sandboxes"));
    assert_int_equal(pooled_stats(&pooled).failures, 1);
    assert_int_equal(pooled_stats(&pooled).waits, 0);
    ph_pool_give(pooled.pool, second);
    assert_ptr_equal(pooled_take(&pooled), second);
    pooled_refused(&pooled, 0, PH_E_BUSY);
    ph_pool_give(pooled.pool, first);
    ph_pool_give(pooled.pool, second);
    pooled_close(&pooled);
}

static void capacity_is_the_number_of_processors_by_default(void **state) {
    struct pooled pooled;
    (void)state;
    test_needs_kvm();

    pooled_open_snapshot(&pooled, GUEST);
    assert_int_equal(ph_pool_create(pooled.snapshot, NULL, &pooled.pool, NULL), PH_OK);
    assert_int_equal(pooled_stats(&pooled).idle, sysconf(_SC_NPROCESSORS_ONLN));
    pooled_close(&pooled);
}

static void a_pool_without_warm_ones_makes_the_first_for_its_taker(void **state) {
    struct pooled pooled;
    ph_pool_config config = pooled_config(1);
    (void)state;
    test_needs_kvm();

    config.warm = 0;
    pooled_open(&pooled, GUEST, config);
    assert_int_equal(pooled_stats(&pooled).made, 0);
    ph_sandbox *sandbox = pooled_take(&pooled);
    assert_int_equal(pooled_count(&pooled, sandbox), 1);
    ph_pool_give(pooled.pool, sandbox);
    pooled_close(&pooled);
}

/* ---- as the snapshot has them -------------------------------------------------------------------------- */

static void a_taker_never_sees_what_another_left(void **state) {
    struct pooled pooled;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    for (uint32_t i = 0; i < 20; i++) {
        ph_sandbox *sandbox = pooled_take(&pooled);
        assert_int_equal(pooled_count(&pooled, sandbox), 1);
        pooled_call(&pooled, sandbox, "change", (const ph_value[]){U32(i)}, 1, PH_OK);
        assert_int_equal(pooled_count(&pooled, sandbox), 2 + i);
        ph_pool_give(pooled.pool, sandbox);
    }
    assert_int_equal(pooled_stats(&pooled).restores, 20);
    pooled_close(&pooled);
}

static void a_poisoned_one_comes_back_healed(void **state) {
    static const struct {
        const char *name;
        ph_status status;
    } ends[] = {
        {"null_write", PH_E_PAGE_FAULT},           {"leave", PH_E_EXITED},    {"spin", PH_E_TIMED_OUT},
        {"undefined", PH_E_UNDEFINED_INSTRUCTION}, {"give_up", PH_E_ABORTED},
    };
    struct pooled pooled;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        ph_sandbox *sandbox = pooled_take(&pooled);
        const ph_function *function = test_export(pooled.image, ends[i].name);
        uint64_t timeout_ns = ends[i].status == PH_E_TIMED_OUT ? 20000000 : TEST_TIMEOUT_NS;
        assert_int_equal(pooled_count(&pooled, sandbox), 1);
        test_status(sandbox, ph_call_timeout(sandbox, function, NULL, 0, NULL, timeout_ns), ends[i].status);
        assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
        ph_pool_give(pooled.pool, sandbox);
    }
    assert_int_equal(pooled_stats(&pooled).made, 1);
    pooled_close(&pooled);
}

static void one_that_its_taker_has_put_elsewhere_comes_back_to_the_pools_snapshot(void **state) {
    struct pooled pooled;
    ph_snapshot *other;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    ph_sandbox *sandbox = pooled_take(&pooled);
    assert_int_equal(pooled_count(&pooled, sandbox), 1);
    test_status(sandbox, ph_snapshot_take(sandbox, &other), PH_OK);
    test_status(sandbox, ph_sandbox_restore(sandbox, other), PH_OK);
    assert_int_equal(pooled_count(&pooled, sandbox), 2);
    ph_pool_give(pooled.pool, sandbox);
    sandbox = pooled_take(&pooled);
    assert_int_equal(pooled_count(&pooled, sandbox), 1);
    ph_pool_give(pooled.pool, sandbox);
    ph_snapshot_close(other);
    pooled_close(&pooled);
}

static void output_that_is_kept_is_not_the_next_takers(void **state) {
    struct pooled pooled;
    ph_pool_config config = pooled_config(1);
    ph_config sandbox_config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    sandbox_config.keep_output = 64;
    config.sandbox = &sandbox_config;
    pooled_open(&pooled, GUEST, config);
    memset(&sandbox_config, 0xff, sizeof sandbox_config); /* the pool has its own */
    for (int i = 0; i < 10; i++) {
        ph_sandbox *sandbox = pooled_take(&pooled);
        assert_int_equal(ph_sandbox_output(sandbox, 1).size, 0);
        if (i % 2) {
            pooled_call(&pooled, sandbox, "change", (const ph_value[]){U32(5)}, 1, PH_OK);
            assert_int_equal(ph_sandbox_output(sandbox, 1).size, strlen("salt 5\n"));
        }
        ph_pool_give(pooled.pool, sandbox);
    }
    assert_int_equal(pooled_stats(&pooled).replaced, 0);
    assert_int_equal(pooled_stats(&pooled).restores, 10);
    pooled_close(&pooled);
}

static void a_pool_holds_what_it_is_made_of(void **state) {
    struct pooled pooled;
    ph_pool_config config = pooled_config(1);
    (void)state;
    test_needs_kvm();

    config.warm = 0;
    pooled_open(&pooled, GUEST, config);
    ph_snapshot_close(pooled.snapshot);
    pooled.snapshot = NULL;
    ph_sandbox *sandbox = pooled_take(&pooled);
    assert_int_equal(pooled_count(&pooled, sandbox), 1);
    ph_pool_give(pooled.pool, sandbox);
    pooled_close(&pooled);
}

/* ---- the thread's own ---------------------------------------------------------------------------------- */

#define TURNS 20

/* A thread that takes, calls and gives in step with another. */
struct stepper {
    const struct pooled *pooled;
    pthread_barrier_t *barrier;
    unsigned failures, moves;
};

static void *stepper_main(void *argument) {
    struct stepper *stepper = argument;
    const ph_function *count = ph_image_find_export(stepper->pooled->image, "count");
    const ph_sandbox *first = NULL;

    for (int i = 0; i < TURNS; i++) {
        ph_sandbox *sandbox = NULL;
        ph_value result = {.type = PH_VOID};
        stepper->failures += ph_pool_take(stepper->pooled->pool, 0, &sandbox, NULL) != PH_OK;
        pthread_barrier_wait(stepper->barrier); /* both are taken */
        if (sandbox) {
            stepper->failures += ph_call(sandbox, count, NULL, 0, &result) != PH_OK || result.u32 != 1;
            stepper->moves += first && sandbox != first;
            first = first ? first : sandbox;
        }
        ph_pool_give(stepper->pooled->pool, sandbox);
        pthread_barrier_wait(stepper->barrier); /* both are idle */
    }
    return NULL;
}

static void a_thread_gets_the_one_that_it_gave_back_last(void **state) {
    struct pooled pooled;
    struct stepper steppers[2];
    pthread_t threads[2];
    pthread_barrier_t barrier;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(3));
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++) {
        steppers[i] = (struct stepper){.pooled = &pooled, .barrier = &barrier};
        assert_int_equal(pthread_create(&threads[i], NULL, stepper_main, &steppers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(steppers[i].failures, 0);
        assert_int_equal(steppers[i].moves, 0);
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(pooled_stats(&pooled).takes, 2 * TURNS);
    assert_int_equal(pooled_stats(&pooled).takes_same_thread, 2 * (TURNS - 1));
    pooled_close(&pooled);
}

struct stranger {
    ph_pool *pool;
    ph_sandbox *sandbox;
};

static void *stranger_main(void *argument) {
    struct stranger *stranger = argument;

    if (ph_pool_take(stranger->pool, 0, &stranger->sandbox, NULL) == PH_OK)
        ph_pool_give(stranger->pool, stranger->sandbox);
    return NULL;
}

static void others_get_the_one_that_has_been_idle_longest(void **state) {
    struct pooled pooled;
    pthread_t thread;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(3));
    ph_sandbox *taken[] = {pooled_take(&pooled), pooled_take(&pooled), pooled_take(&pooled)};
    ph_pool_give(pooled.pool, taken[1]);
    ph_pool_give(pooled.pool, taken[0]);
    ph_pool_give(pooled.pool, taken[2]);
    struct stranger stranger = {.pool = pooled.pool};
    assert_int_equal(pthread_create(&thread, NULL, stranger_main, &stranger), 0);
    pthread_join(thread, NULL);
    assert_ptr_equal(stranger.sandbox, taken[1]);
    assert_int_equal(pooled_stats(&pooled).takes_same_thread, 0);
    /* This thread's own, the last one first; then that of the stranger. */
    assert_ptr_equal(pooled_take(&pooled), taken[2]);
    assert_ptr_equal(pooled_take(&pooled), taken[0]);
    assert_int_equal(pooled_stats(&pooled).takes_same_thread, 2);
    assert_ptr_equal(pooled_take(&pooled), taken[1]);
    assert_int_equal(pooled_stats(&pooled).takes_same_thread, 2);
    for (int i = 0; i < 3; i++)
        ph_pool_give(pooled.pool, taken[i]);
    pooled_close(&pooled);
}

/* ---- preparing ----------------------------------------------------------------------------------------- */

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

struct preparer {
    const struct pooled *pooled;
    unsigned runs;
    ph_sandbox *sandbox; /* the last one */
    bool fails, calls, gives;
};

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    const struct preparer *preparer = context;

    (void)call;
    if (preparer->gives) /* from inside its own call */
        ph_pool_give(preparer->pooled->pool, preparer->sandbox);
    result->i32 = args[0].i32 + 100;
    return PH_OK;
}

static ph_status prepare(void *context, ph_sandbox *sandbox) {
    static const ph_signature wrong = {.result = PH_VOID};
    struct preparer *preparer = context;

    preparer->runs++;
    preparer->sandbox = sandbox;
    if (preparer->calls) {
        const ph_function *count = ph_image_find_export(preparer->pooled->image, "count");
        const ph_function *fault = ph_image_find_export(preparer->pooled->image, "null_write");
        if (ph_call(sandbox, count, NULL, 0, NULL) != PH_OK ||
            ph_call(sandbox, fault, NULL, 0, NULL) != PH_E_PAGE_FAULT)
            return PH_E_ARGUMENT;
        return PH_OK;
    }
    return ph_sandbox_register(sandbox, "visit", preparer->fails ? &wrong : &visit_signature, visit,
                               preparer);
}

static void host_functions_are_registered_once_for_each_sandbox(void **state) {
    struct pooled pooled;
    struct preparer preparer = {0};
    ph_pool_config config = pooled_config(2);
    (void)state;
    test_needs_kvm();

    config.prepare = prepare;
    config.prepare_context = &preparer;
    pooled_open(&pooled, "loops", config);
    assert_int_equal(preparer.runs, 2);
    for (int i = 0; i < 3; i++) {
        const ph_value argument = {.type = PH_I32, .i32 = i};
        ph_sandbox *sandbox = pooled_take(&pooled);
        ph_value result;
        test_status(sandbox, test_call(sandbox, pooled.image, "visit_once", &argument, 1, &result), PH_OK);
        assert_int_equal(result.i32, i + 100);
        ph_pool_give(pooled.pool, sandbox);
    }
    assert_int_equal(preparer.runs, 2);
    pooled_close(&pooled);
}

static void preparing_that_fails_is_the_error_of_who_makes(void **state) {
    struct pooled pooled;
    struct preparer preparer = {.fails = true};
    ph_pool_config config = pooled_config(2);
    ph_pool *none = (ph_pool *)&config;
    ph_error error;
    (void)state;
    test_needs_kvm();

    config.prepare = prepare;
    config.prepare_context = &preparer;
    config.warm = 0;
    pooled_open(&pooled, "loops", config);
    const char *message = pooled_refused(&pooled, 0, PH_E_SIGNATURE)->message;
    assert_non_null(strstr(message, "preparing"));
    assert_non_null(strstr(message, "`visit`")); /* what the sandbox says */
    assert_int_equal(pooled_stats(&pooled).failures, 1);
    assert_int_equal(pooled_stats(&pooled).made, 0);
    config.warm = 1;
    assert_int_equal(ph_pool_create(pooled.snapshot, &config, &none, &error), PH_E_SIGNATURE);
    assert_null(none);
    assert_non_null(strstr(error.message, "`visit`"));
    /* No place is lost. */
    preparer.fails = false;
    ph_sandbox *first = pooled_take(&pooled), *second = pooled_take(&pooled);
    ph_pool_give(pooled.pool, first);
    ph_pool_give(pooled.pool, second);
    pooled_close(&pooled);
}

static void preparing_may_use_the_guest_and_leaves_nothing_in_it(void **state) {
    struct pooled pooled;
    struct preparer preparer = {.pooled = &pooled, .calls = true};
    ph_pool_config config = pooled_config(1);
    (void)state;
    test_needs_kvm();

    config.prepare = prepare;
    config.prepare_context = &preparer;
    pooled_open(&pooled, GUEST, config);
    ph_sandbox *sandbox = pooled_take(&pooled);
    assert_int_equal(pooled_count(&pooled, sandbox), 1);
    ph_pool_give(pooled.pool, sandbox);
    pooled_close(&pooled);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void one_that_is_in_use_stays_taken(void **state) {
    struct pooled pooled;
    struct preparer preparer = {.pooled = &pooled, .gives = true};
    const ph_value argument = {.type = PH_I32, .i32 = 1};
    ph_pool_config config = pooled_config(1);
    (void)state;
    test_needs_kvm();

    config.prepare = prepare;
    config.prepare_context = &preparer;
    pooled_open(&pooled, "loops", config);
    ph_sandbox *sandbox = pooled_take(&pooled);
    pooled_call(&pooled, sandbox, "visit_once", &argument, 1, PH_OK);
    assert_int_equal(pooled_stats(&pooled).taken, 1);
    pooled_refused(&pooled, 0, PH_E_BUSY);
    ph_pool_give(pooled.pool, sandbox);
    assert_int_equal(pooled_stats(&pooled).taken, 0);
    pooled_close(&pooled);
}

static void only_what_is_taken_can_be_given(void **state) {
    struct pooled pooled, other;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, pooled_config(1));
    pooled_open(&other, GUEST, pooled_config(1));
    ph_sandbox *sandbox = pooled_take(&pooled);
    ph_pool_give(other.pool, sandbox);
    ph_pool_give(NULL, sandbox);
    ph_pool_give(pooled.pool, NULL);
    assert_int_equal(pooled_stats(&pooled).taken, 1);
    assert_int_equal(pooled_stats(&other).restores, 0);
    ph_pool_give(pooled.pool, sandbox);
    ph_pool_give(pooled.pool, sandbox);
    assert_int_equal(pooled_stats(&pooled).restores, 1);
    assert_int_equal(pooled_stats(&pooled).idle, 1);
    pooled_close(&other);
    pooled_close(&pooled);
}

static void arguments_and_sizes_are_checked(void **state) {
    struct pooled pooled;
    ph_pool_config config = pooled_config(1);
    ph_config sandbox_config = PH_CONFIG_INIT;
    ph_pool_stats stats = PH_POOL_STATS_INIT;
    ph_sandbox *sandbox;
    ph_pool *pool;
    ph_error error;
    (void)state;
    test_needs_kvm();

    pooled_open(&pooled, GUEST, config);
    assert_int_equal(ph_pool_create(NULL, NULL, &pool, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_pool_create(pooled.snapshot, NULL, NULL, NULL), PH_E_ARGUMENT);
    for (int longer = -1; longer <= 1; longer += 2) {
        config.size = sizeof config + (size_t)longer * 8;
        assert_int_equal(ph_pool_create(pooled.snapshot, &config, &pool, &error), PH_E_ARGUMENT);
        assert_non_null(strstr(error.message, "PH_POOL_CONFIG_INIT"));
        stats.size = sizeof stats + (size_t)longer * 8;
        assert_int_equal(ph_pool_stats_get(pooled.pool, &stats), PH_E_ARGUMENT);
    }
    config = pooled_config(1);
    config.sandbox = &sandbox_config;
    for (size_t size = 0; size <= sizeof sandbox_config + 8; size += sizeof sandbox_config + 8) {
        sandbox_config.size = size;
        assert_int_equal(ph_pool_create(pooled.snapshot, &config, &pool, &error), PH_E_ARGUMENT);
        assert_non_null(strstr(error.message, "PH_CONFIG_INIT"));
    }
    assert_int_equal(ph_pool_stats_get(NULL, &stats), PH_E_ARGUMENT);
    assert_int_equal(ph_pool_stats_get(pooled.pool, NULL), PH_E_ARGUMENT);
    assert_int_equal(ph_pool_take(NULL, 0, &sandbox, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_pool_take(pooled.pool, 0, NULL, NULL), PH_E_ARGUMENT);
    ph_pool_destroy(NULL);
    pooled_close(&pooled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_ones_are_made_at_once_and_others_when_needed),
        cmocka_unit_test(a_pool_is_bounded),
        cmocka_unit_test(capacity_is_the_number_of_processors_by_default),
        cmocka_unit_test(a_pool_without_warm_ones_makes_the_first_for_its_taker),
        cmocka_unit_test(a_taker_never_sees_what_another_left),
        cmocka_unit_test(a_poisoned_one_comes_back_healed),
        cmocka_unit_test(one_that_its_taker_has_put_elsewhere_comes_back_to_the_pools_snapshot),
        cmocka_unit_test(output_that_is_kept_is_not_the_next_takers),
        cmocka_unit_test(a_pool_holds_what_it_is_made_of),
        cmocka_unit_test(a_thread_gets_the_one_that_it_gave_back_last),
        cmocka_unit_test(others_get_the_one_that_has_been_idle_longest),
        cmocka_unit_test(host_functions_are_registered_once_for_each_sandbox),
        cmocka_unit_test(preparing_that_fails_is_the_error_of_who_makes),
        cmocka_unit_test(preparing_may_use_the_guest_and_leaves_nothing_in_it),
        cmocka_unit_test(one_that_is_in_use_stays_taken),
        cmocka_unit_test(only_what_is_taken_can_be_given),
        cmocka_unit_test(arguments_and_sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
