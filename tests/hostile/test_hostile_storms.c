/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that never end, in every way that there is: without an exit, or with nothing but exits. The time-out
 * ends each of them, soon after it is due, and the thread that called is free again.
 */
#include "hostile/hostile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GUEST "hostile_storms"

#define TIMEOUT_NS 100000000ull
/* How late a time-out may be: generous, since machines are shared and some are emulated. */
#define LATE_NS 5000000000ull

static void expect_time_out(const char *name, const ph_config *config) {
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, config);
    hostile.may_change_tables = true;
    uint64_t start = test_now_ns();
    hostile.last =
        ph_call_timeout(hostile.sandbox, test_export(hostile.image, name), NO_ARGS, NULL, TIMEOUT_NS);
    uint64_t took = test_now_ns() - start;
    hostile_expect(&hostile, hostile.last, PH_E_TIMED_OUT, name);
    if (strncmp(name, "spin", 4) == 0)
        assert_string_equal(ph_sandbox_error(hostile.sandbox)->function, name);
    if (took < TIMEOUT_NS || took > TIMEOUT_NS + LATE_NS)
        fail_msg("%s: a time-out of %llu ns ended it after %llu", name, TIMEOUT_NS, (unsigned long long)took);
    hostile_end(&hostile, name);
}

static void expect_time_outs(const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        expect_time_out(names[i], NULL);
}

#define EXPECT_TIME_OUTS(names) expect_time_outs(names, sizeof(names) / sizeof((names)[0]))

static void a_loop_without_an_exit_ends_by_its_time_out(void **state) {
    static const char *const names[] = {
        "spin",
        "spin_tight",
        "spin_without_interrupts",
        "spin_on_vector_units",
        "spin_on_serialisation",
        "spin_on_bus_locks",
        "long_strings",
        "spin_on_pages",
        "spin_on_random",
    };

    (void)state;
    test_needs_kvm();
    EXPECT_TIME_OUTS(names);
}

static void a_storm_of_system_calls_ends_by_its_time_out(void **state) {
    static const char *const names[] = {"system_calls", "unknown_system_calls", "long_copies"};

    (void)state;
    test_needs_kvm();
    EXPECT_TIME_OUTS(names);
}

static void a_storm_of_bad_pointers_ends_by_its_time_out(void **state) {
    (void)state;
    test_needs_kvm();
    expect_time_out("bad_pointers", NULL);
}

static void a_storm_of_host_calls_ends_by_its_time_out(void **state) {
    (void)state;
    test_needs_kvm();
    expect_time_out("host_calls", NULL);
}

static void a_storm_of_sleeps_ends_by_its_time_out(void **state) {
    static const char *const names[] = {"naps", "short_sleeps", "endless_sleep"};

    (void)state;
    test_needs_kvm();
    EXPECT_TIME_OUTS(names);
}

static void a_storm_of_protections_ends_by_its_time_out(void **state) {
    static const char *const names[] = {"refused_protections", "protections", "large_protections",
                                        "split_protections"};

    (void)state;
    test_needs_kvm();
    EXPECT_TIME_OUTS(names);
}

static void a_storm_of_zeroing_ends_by_its_time_out(void **state) {
    static const char *const names[] = {"zeroes", "zeroes_of_nothing"};

    (void)state;
    test_needs_kvm();
    EXPECT_TIME_OUTS(names);
}

/* Larger memory, so that one change of protection alone takes longer than the time-out. */
static void one_huge_protection_ends_by_its_time_out(void **state) {
    ph_config config = PH_CONFIG_INIT;

    (void)state;
    test_needs_kvm();
    config.memory = 2ull << 30;
    expect_time_out("split_protections", &config);
}

static int64_t take_all(void *context, int stream, const void *data, size_t size) {
    (void)context;
    (void)stream;
    (void)data;
    return (int64_t)size;
}

static int64_t refuse(void *context, int stream, const void *data, size_t size) {
    (void)context;
    (void)stream;
    (void)data;
    (void)size;
    return -EPIPE;
}

static int64_t take_nothing(void *context, int stream, const void *data, size_t size) {
    (void)context;
    (void)stream;
    (void)data;
    (void)size;
    return 0;
}

static int64_t give(void *context, void *data, size_t size) {
    (void)context;
    memset(data, 'x', size);
    return (int64_t)size;
}

static void a_flood_of_output_ends_by_its_time_out(void **state) {
    static const ph_output_fn callbacks[] = {NULL, take_all, refuse, take_nothing};
    static const char *const names[] = {"output", "output_of_nothing", "output_to_nowhere"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof callbacks / sizeof callbacks[0]; i++)
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
            ph_config config = PH_CONFIG_INIT;
            config.output = callbacks[i];
            expect_time_out(names[j], &config);
        }
}

static void an_endless_input_ends_by_its_time_out(void **state) {
    ph_config config = PH_CONFIG_INIT;

    (void)state;
    test_needs_kvm();
    config.input = give;
    expect_time_out("input", &config);
}

static void a_start_that_never_ends_ends_by_its_time_out(void **state) {
    static const char *const names[] = {"spin", "host"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *const arguments[] = {names[i], NULL};
        ph_config config = PH_CONFIG_INIT;
        struct hostile hostile;
        config.argv = arguments;
        config.timeout_ns = TIMEOUT_NS;
        uint64_t start = test_now_ns();
        hostile_expect(&hostile, hostile_begin_start(&hostile, GUEST, &config), PH_E_TIMED_OUT, names[i]);
        assert_true(test_now_ns() - start < TIMEOUT_NS + LATE_NS);
        hostile_end(&hostile, names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_without_an_exit_ends_by_its_time_out),
        cmocka_unit_test(a_storm_of_system_calls_ends_by_its_time_out),
        cmocka_unit_test(a_storm_of_bad_pointers_ends_by_its_time_out),
        cmocka_unit_test(a_storm_of_host_calls_ends_by_its_time_out),
        cmocka_unit_test(a_storm_of_sleeps_ends_by_its_time_out),
        cmocka_unit_test(a_storm_of_protections_ends_by_its_time_out),
        cmocka_unit_test(a_storm_of_zeroing_ends_by_its_time_out),
        cmocka_unit_test(one_huge_protection_ends_by_its_time_out),
        cmocka_unit_test(a_flood_of_output_ends_by_its_time_out),
        cmocka_unit_test(an_endless_input_ends_by_its_time_out),
        cmocka_unit_test(a_start_that_never_ends_ends_by_its_time_out),
    };

    return cmocka_run_group_tests_name("hostile storms", tests, NULL, NULL);
}
