/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest that makes code without end and runs each piece once. An emulator keeps what it has translated, and
 * is replaced while the guest runs when there is much of it (vm/soft_buffer.c): the guest does not see it,
 * and the process does not grow. On kvm there is nothing to be seen.
 */
#include <sys/resource.h>

#include "support/traced.h"

/* Enough for some 600 MiB of translated code, of which an emulator may have 128. */
#define ROUNDS 4u
#define BLOCKS_MIN 1000000u

/* What the process may need for it: its guest's memory, and an emulator that is full. */
#define GROWTH_MAX (300L << 10) /* KiB */

static long peak_kib(void) {
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static void a_guest_goes_through_code_without_end(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_value result = {.type = PH_VOID};
    struct traced traced;

    (void)state;
    test_needs_kvm();
    const long before = peak_kib();
    config.timeout_ns = 4 * TEST_TIMEOUT_NS;
    traced_begin(&traced, "new-code", &config, NULL);
    traced_call(&traced, "new_code", ARGS(U32(ROUNDS)), PH_OK, &result);
    assert_true(result.u64 > BLOCKS_MIN);
    traced_flush(&traced);
    assert_int_equal(trace_spans_named(&traced.collect, "round"), ROUNDS);
    assert_in_range(peak_kib(), before, before + GROWTH_MAX);
    traced_end(&traced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guest_goes_through_code_without_end),
    };

    return cmocka_run_group_tests_name("new code", tests, NULL, NULL);
}
