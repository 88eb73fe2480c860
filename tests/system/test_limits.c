/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Limits of output and host calls: what a call may do passes, the next thing ends the guest with a status of
 * its own. And all limits of start and run.
 */
#include <string.h>

#include "limited.h"

#include "base/error.h"

/* ---- output -------------------------------------------------------------------------------------------- */

static void output_up_to_the_limit_passes(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.output_bytes_max = 100;
    limited_begin(&limited, &config);
    for (int i = 0; i < 3; i++)
        limited_expect(&limited, limited_call(&limited, "write_often", ARGS(U32(10), U32(10))), PH_OK);
    assert_int_equal(limited.output, 300);
    assert_int_equal(limited_stats(&limited).output_bytes, 100);
    limited_expect(&limited, limited_call(&limited, "write_often", ARGS(U32(1), U32(100))), PH_OK);
    limited_end(&limited);
}

static void output_beyond_the_limit_ends_the_guest(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.output_bytes_max = 100;
    limited_begin(&limited, &config);
    limited_expect_ended(&limited, limited_call(&limited, "write_often", ARGS(U32(1), U32(101))),
                         PH_E_OUTPUT_LIMIT, "the limit of output ended the guest in write");
    assert_int_equal(limited.output, 100);
    limited_end(&limited);
    limited.output = 0;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "write_often", ARGS(U32(101), U32(1))),
                   PH_E_OUTPUT_LIMIT);
    assert_int_equal(limited.output, 100);
    assert_int_equal(limited_stats(&limited).output_bytes, 100);
    limited_end(&limited);
}

static void only_output_that_was_taken_counts(void **state) {
    struct limited limited = {.most = 3};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.output_bytes_max = 31;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "write_often", ARGS(U32(10), U32(100))), PH_OK);
    assert_int_equal(limited.output, 30);
    limited_expect(&limited, limited_call(&limited, "write_often", ARGS(U32(11), U32(100))),
                   PH_E_OUTPUT_LIMIT);
    assert_int_equal(limited.output, 30 + 31);
    limited_end(&limited);
}

static void output_that_is_kept_is_limited_too(void **state) {
    ph_config config = PH_CONFIG_INIT;
    const ph_value args[] = {U32(101), U32(1)};
    struct limited limited = {0};
    (void)state;
    test_needs_kvm();

    config.output_bytes_max = 100;
    config.keep_output = 1000;
    limited_begin(&limited, &config);
    limited_expect(&limited, limited_call(&limited, "write_often", args, 2), PH_E_OUTPUT_LIMIT);
    assert_int_equal(ph_sandbox_output(limited.sandbox, 1).size + ph_sandbox_output(limited.sandbox, 2).size,
                     100);
    limited_end(&limited);
}

/* ---- host calls ---------------------------------------------------------------------------------------- */

static void host_calls_up_to_the_limit_pass(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.host_calls_max = 5;
    limited_begin(&limited, &config);
    for (int i = 0; i < 3; i++)
        limited_expect(&limited, limited_call(&limited, "visit_often", ARGS(U32(5))), PH_OK);
    assert_int_equal(limited.visitor.visits, 15);
    limited_expect_ended(&limited, limited_call(&limited, "visit_often", ARGS(U32(6))), PH_E_HOST_CALL_LIMIT,
                         "the limit of host calls ended the guest in host_call");
    assert_int_equal(limited.visitor.visits, 20);
    assert_int_equal(limited_stats(&limited).host_calls, 5);
    assert_int_equal(limited_stats(&limited).exits_host_call, 6);
    limited_end(&limited);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void a_guest_that_handles_the_want_of_memory_goes_on(void **state) {
    struct limited limited = {0};
    ph_config config = PH_CONFIG_INIT;
    (void)state;
    test_needs_kvm();

    config.memory = 16 << 20;
    limited_begin(&limited, &config);
    for (int i = 0; i < 3; i++)
        limited_expect(&limited, limited_call(&limited, "use_up_memory", ARGS(U32(0))), PH_OK);
    /* What a later call ends with is its own. */
    limited_expect(&limited, limited_call(&limited, "null_store", NULL, 0), PH_E_PAGE_FAULT);
    limited_end(&limited);
}

static void an_end_for_want_of_memory_says_so(void **state) {
    static const struct {
        uint32_t how;
        const char *then;
    } cases[] = {
        {1, "then: the guest called abort()"},
        {2, "then: write of unmapped address 0x10 at"},
        {3, "then: the guest ended its program with status 3 during the call"},
        {4, "then: undefined instruction at"},
        {5, "then: signal 15 ended the guest"},
        {6, "then: "},
    };
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct limited limited = {0};
        ph_config config = PH_CONFIG_INIT;

        config.memory = 16 << 20;
        limited_begin(&limited, &config);
        ph_status status = limited_call(&limited, "use_up_memory", ARGS(U32(cases[i].how)));
        limited_expect(&limited, status, PH_E_MEMORY_LIMIT);
        const ph_error *error = ph_sandbox_error(limited.sandbox);
        assert_int_equal(error->status, PH_E_MEMORY_LIMIT);
        if (strncmp(error->message, "the guest had used up its memory of 16 MiB; ", 44) != 0 ||
            !strstr(error->message, cases[i].then))
            fail_msg("%s", error->message);
        /* Cut between characters. */
        for (size_t at = 0, size; at < strlen(error->message); at += size)
            assert_true(ph__text_take_code_point((const uint8_t *)error->message + at,
                                                 strlen(error->message + at), &size) >= 0);
        limited_end(&limited);
    }
}

/* ---- start and run ------------------------------------------------------------------------------------- */

static void start_is_limited_too(void **state) {
    static const struct {
        const char *start;
        uint64_t cpu_time_ns, output, host_calls;
        ph_status status;
    } cases[] = {
        {"START=spin", 50 * MS, 0, 0, PH_E_CPU_TIME},   {"START=write", 0, 100, 0, PH_OK},
        {"START=write", 0, 99, 0, PH_E_OUTPUT_LIMIT},   {"START=visit", 0, 0, 10, PH_OK},
        {"START=visit", 0, 0, 9, PH_E_HOST_CALL_LIMIT},
    };
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const environment[] = {cases[i].start, NULL};
        struct limited limited = {0};
        ph_config config = PH_CONFIG_INIT;
        config.envp = environment;
        config.cpu_time_ns = cases[i].cpu_time_ns;
        config.output_bytes_max = cases[i].output;
        config.host_calls_max = cases[i].host_calls;
        limited_create(&limited, "limits", &config);
        limited_expect(&limited, ph_sandbox_start(limited.sandbox), cases[i].status);
        limited_end(&limited);
    }
}

static void run_is_limited_too(void **state) {
    static const struct {
        const char *argument;
        uint64_t cpu_time_ns, output;
        ph_status status;
    } cases[] = {
        {"spin", 50 * MS, 0, PH_E_CPU_TIME},
        {"20", TEST_TIMEOUT_NS, 20, PH_OK},
        {"21", TEST_TIMEOUT_NS, 20, PH_E_OUTPUT_LIMIT},
    };
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const arguments[] = {cases[i].argument, NULL};
        struct limited limited = {0};
        ph_config config = PH_CONFIG_INIT;
        int exit_status = -1;
        config.argv = arguments;
        config.cpu_time_ns = cases[i].cpu_time_ns;
        config.output_bytes_max = cases[i].output;
        limited_create(&limited, "limits-program", &config);
        test_status(limited.sandbox, ph_sandbox_run(limited.sandbox, &exit_status), cases[i].status);
        assert_int_equal(exit_status, cases[i].status == PH_OK ? 7 : -1);
        assert_int_equal(ph_sandbox_state(limited.sandbox), PH_STATE_POISONED);
        assert_true(limited.output <= 20);
        limited_end(&limited);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_up_to_the_limit_passes),
        cmocka_unit_test(output_beyond_the_limit_ends_the_guest),
        cmocka_unit_test(only_output_that_was_taken_counts),
        cmocka_unit_test(output_that_is_kept_is_limited_too),
        cmocka_unit_test(host_calls_up_to_the_limit_pass),
        cmocka_unit_test(a_guest_that_handles_the_want_of_memory_goes_on),
        cmocka_unit_test(an_end_for_want_of_memory_says_so),
        cmocka_unit_test(start_is_limited_too),
        cmocka_unit_test(run_is_limited_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
