/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The limit of processor time: it ends the guest that has worked for so long, in whatever it does, and no
 * guest that waits. Also run under ThreadSanitizer.
 */
#include "limited.h"

#include <pthread.h>

static void processor_time_ends_a_tight_loop(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 300 * MS;
    limited_begin(&limited, &config);
    uint64_t start = test_now_ns();
    limited_expect_ended(&limited, limited_call(&limited, "spin", NULL, 0), PH_E_CPU_TIME,
                         "the limit of processor time ended the guest in tight_loop");
    assert_true(test_now_ns() - start >= 300 * MS);
    assert_true(test_now_ns() - start < TEST_TIMEOUT_NS / 2);
    assert_true(limited_stats(&limited).guest_ns >= 300 * MS);
    limited_end(&limited);
}

static void processor_time_is_each_calls_own(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 600 * MS;
    limited_begin(&limited, &config);
    for (int i = 0; i < 8; i++) {
        limited_expect(&limited, limited_call(&limited, "burn", ARGS(U32(100))), PH_OK);
        assert_true(limited_stats(&limited).guest_ns >= 99 * MS);
    }
    limited_expect(&limited, limited_call(&limited, "burn", ARGS(U32(700))), PH_E_CPU_TIME);
    limited_end(&limited);
}

static void cheap_exits_do_not_evade_processor_time(void **state) {
    static const char *const names[] = {"ring_for_ever", "protect_for_ever"};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct limited limited = {0};
        ph_config config = PH_CONFIG_INIT;
        config.cpu_time_ns = 300 * MS;
        limited_begin(&limited, &config);
        limited_expect(&limited, limited_call(&limited, names[i], NULL, 0), PH_E_CPU_TIME);
        assert_true(limited_stats(&limited).guest_ns >= 300 * MS);
        assert_true(limited_stats(&limited).exits > 10);
        limited_end(&limited);
    }
}

static void faults_that_the_guest_handles_do_not_evade_processor_time(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 300 * MS;
    limited_create(&limited, "loops", &config);
    test_status(limited.sandbox, ph_sandbox_start(limited.sandbox), PH_OK);
    limited_expect(&limited, limited_call(&limited, "fault_for_ever", NULL, 0), PH_E_CPU_TIME);
    limited_end(&limited);
}

static void host_functions_are_not_processor_time(void **state) {
    struct limited limited = {.visitor.sleep_ms = 600};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 300 * MS;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "visit_often", ARGS(U32(1))), PH_OK);
    assert_true(limited_stats(&limited).host_ns >= 599 * MS);
    assert_true(limited_stats(&limited).guest_ns < 300 * MS);
    limited_end(&limited);
}

static void sleep_is_not_processor_time(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 300 * MS;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "sleep_often", ARGS(U32(1), U32(500))), PH_OK);
    limited_expect(&limited, limited_call(&limited, "sleep_often", ARGS(U32(50), U32(10))), PH_OK);
    assert_true(limited_stats(&limited).sleep_ns >= 499 * MS);
    limited_end(&limited);
}

static void processor_time_of_one_nanosecond_ends_every_call(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 1;
    limited_create(&limited, "limits", &config);
    limited_expect(&limited, ph_sandbox_start(limited.sandbox), PH_E_CPU_TIME);
    limited_end(&limited);
}

static void processor_time_of_584_years_ends_nothing(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = UINT64_MAX;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "burn", ARGS(U32(20))), PH_OK);
    limited_end(&limited);
}

static void a_short_time_out_comes_before_processor_time(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = TEST_TIMEOUT_NS / 2;
    limited_begin(&limited, &config);
    limited_expect(
        &limited,
        ph_call_timeout(limited.sandbox, test_export(limited.image, "spin"), NULL, 0, NULL, 30 * MS),
        PH_E_TIMED_OUT);
    limited_end(&limited);
}

static void processor_time_needs_no_time_out(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 300 * MS;
    limited_begin(&limited, &config);
    for (int i = 0; i < 3; i++)
        limited_expect(&limited,
                       ph_call_timeout(limited.sandbox, test_export(limited.image, "nothing"),
                                       &(const ph_value){.type = PH_I32}, 1, NULL, 0),
                       PH_OK);
    limited_expect(&limited,
                   ph_call_timeout(limited.sandbox, test_export(limited.image, "spin"), NULL, 0, NULL, 0),
                   PH_E_CPU_TIME);
    limited_end(&limited);
}

static void interrupt_comes_before_processor_time(void **state) {
    struct limited limited = {.visitor = {.interrupts = true, .marks = true}};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = TEST_TIMEOUT_NS / 2;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "visit_often", ARGS(U32(1))), PH_E_INTERRUPTED);
    limited_end(&limited);
}

/* The timer decides by a clock, the limit by what was counted: a mark that meets a host function is no end.
 */
static void a_late_mark_ends_nothing(void **state) {
    struct limited limited = {.visitor.marks = true};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = TEST_TIMEOUT_NS / 2;
    limited_begin(&limited, &config);
    for (int i = 0; i < 3; i++) {
        limited_expect(&limited, limited_call(&limited, "visit_often", ARGS(U32(100))), PH_OK);
        assert_true(limited_stats(&limited).exits_kick <= 100);
    }
    limited_end(&limited);
}

static void a_late_mark_does_not_hide_the_limit(void **state) {
    struct limited limited = {.visitor.marks = true};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 300 * MS;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "visit_and_spin", NULL, 0), PH_E_CPU_TIME);
    assert_true(limited_stats(&limited).guest_ns >= 300 * MS);
    limited_end(&limited);
}

static void *mark_later(void *argument) {
    for (int i = 0; i < 3; i++) {
        limited_sleep_ms(30);
        limited_mark(argument);
    }
    return NULL;
}

static void a_late_mark_does_not_hide_the_time_out(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    pthread_t thread;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = TEST_TIMEOUT_NS / 2;
    limited_begin(&limited, &config);
    uint64_t start = test_now_ns();
    assert_int_equal(pthread_create(&thread, NULL, mark_later, limited.sandbox), 0);
    limited_expect(&limited,
                   ph_call_timeout(limited.sandbox, test_export(limited.image, "sleep_often"),
                                   ARGS(U32(1), U32(10000)), NULL, 200 * MS),
                   PH_E_TIMED_OUT);
    assert_true(test_now_ns() - start < 5000 * MS);
    pthread_join(thread, NULL);
    limited_end(&limited);
}

static void a_late_mark_does_not_end_a_sleep(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    pthread_t thread;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = TEST_TIMEOUT_NS / 2;
    limited_begin(&limited, &config);
    uint64_t start = test_now_ns();
    assert_int_equal(pthread_create(&thread, NULL, mark_later, limited.sandbox), 0);
    limited_expect(&limited, limited_call(&limited, "sleep_often", ARGS(U32(1), U32(300))), PH_OK);
    assert_true(test_now_ns() - start >= 300 * MS);
    pthread_join(thread, NULL);
    limited_end(&limited);
}

/* Long waits, short runs, in turn: the timer has to keep up with a deadline that moves. */
static void processor_time_adds_up_over_many_exits(void **state) {
    struct limited limited = {.visitor.sleep_ms = 8};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.cpu_time_ns = 400 * MS;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "visit_often", ARGS(U32(400))),
                   PH_OK); /* 800 ms of the clock */
    ph_call_stats stats = limited_stats(&limited);
    assert_true(stats.host_ns >= 799 * MS);
    assert_true(stats.guest_ns < 400 * MS);
    limited_end(&limited);
}

struct spinner {
    struct limited limited;
    pthread_t thread;
    ph_status status;
};

static void *spin_main(void *argument) {
    struct spinner *spinner = argument;
    const ph_function *spin = ph_image_find_export(spinner->limited.image, "spin");

    spinner->status = ph_call(spinner->limited.sandbox, spin, NULL, 0, NULL);
    return NULL;
}

static void limits_of_several_threads_are_kept_apart(void **state) {
    struct spinner spinners[4];
    (void)state;
    test_needs_kvm();

    for (unsigned i = 0; i < 4; i++) {
        ph_config config = PH_CONFIG_INIT;
        spinners[i] = (struct spinner){.status = PH_OK};
        config.cpu_time_ns = (300 + 20 * i) * MS;
        /* Start-up has a limit too, of another size. */
        limited_begin(&spinners[i].limited, &config);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&spinners[i].thread, NULL, spin_main, &spinners[i]), 0);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(spinners[i].thread, NULL);
        limited_expect(&spinners[i].limited, spinners[i].status, PH_E_CPU_TIME);
        assert_true(limited_stats(&spinners[i].limited).guest_ns >= (300 + 20 * i) * MS);
        limited_end(&spinners[i].limited);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processor_time_ends_a_tight_loop),
        cmocka_unit_test(processor_time_is_each_calls_own),
        cmocka_unit_test(cheap_exits_do_not_evade_processor_time),
        cmocka_unit_test(faults_that_the_guest_handles_do_not_evade_processor_time),
        cmocka_unit_test(host_functions_are_not_processor_time),
        cmocka_unit_test(sleep_is_not_processor_time),
        cmocka_unit_test(processor_time_of_one_nanosecond_ends_every_call),
        cmocka_unit_test(processor_time_of_584_years_ends_nothing),
        cmocka_unit_test(a_short_time_out_comes_before_processor_time),
        cmocka_unit_test(processor_time_needs_no_time_out),
        cmocka_unit_test(interrupt_comes_before_processor_time),
        cmocka_unit_test(a_late_mark_ends_nothing),
        cmocka_unit_test(a_late_mark_does_not_hide_the_limit),
        cmocka_unit_test(a_late_mark_does_not_hide_the_time_out),
        cmocka_unit_test(a_late_mark_does_not_end_a_sleep),
        cmocka_unit_test(processor_time_adds_up_over_many_exits),
        cmocka_unit_test(limits_of_several_threads_are_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
