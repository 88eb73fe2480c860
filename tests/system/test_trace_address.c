/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The host finds a guest's trace ring by the page tables that the processor walks, and by nothing else:
 * tables that lead elsewhere are refused, whatever lies at the address that it ought to have.
 */
#include "support/traced.h"

#include <string.h>

#include "sandbox/sandbox.h"

#define RING (32ull << 10)

/* The entry of the page table for (gva). */
static uint64_t *entry_of(const struct ph__memory *memory, uint64_t gva) {
    uint64_t table = ph__paging_root(memory).value;

    for (int shift = 39;; shift -= 9) {
        uint64_t *entry = (uint64_t *)(memory->base + table) + (gva >> shift & 511);
        assert_true(*entry & PH__PTE_PRESENT);
        if (shift == 12)
            return entry;
        table = *entry & PH__PTE_ADDRESS;
    }
}

static void the_ring_is_never_at_its_own_address(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct ph__translation at;
    struct traced traced;

    (void)state;
    test_needs_kvm();
    config.trace_ring = RING;
    traced_begin(&traced, "trace-work", &config, NULL);
    const struct ph__memory *memory = &traced.sandbox->memory;
    for (uint64_t gva = PH__TRACE_GVA; gva < PH__TRACE_RING_GVA + 2 * RING; gva += PH__PAGE_SIZE) {
        assert_true(ph__paging_walk(memory, ph__paging_root(memory), (ph_gva){gva}, &at));
        assert_true(at.gpa.value != gva);
        assert_null(ph__memory_at(memory, (ph_gpa){gva}, 1)); /* taken for a GPA it leads nowhere */
    }
    traced_call(&traced, "events", ARGS(U64(5000)), PH_OK, NULL);
    traced_finish(&traced);
    trace_sequence_check(&traced.collect, "at", 0, 5000);
    traced_free(&traced);
}

static void tables_that_do_not_lead_to_the_ring_are_refused(void **state) {
    static const uint64_t pages[] = {
        PH__TRACE_GVA,
        PH__TRACE_RING_GVA,
        PH__TRACE_RING_GVA + RING - PH__PAGE_SIZE,
        PH__TRACE_RING_GVA + RING,
        PH__TRACE_RING_GVA + 2 * RING - PH__PAGE_SIZE,
    };
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;

    (void)state;
    test_needs_kvm();
    config.trace_ring = RING;
    traced_create(&traced, "trace-work", &config, NULL);
    const struct ph__memory *memory = &traced.sandbox->memory;
    const uint64_t other = ph__gpa_of_offset(memory->layout.arena.offset);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        uint64_t *entry = entry_of(memory, pages[i]);
        const uint64_t good = *entry;
        const uint64_t bits = good & ~PH__PTE_ADDRESS;
        const uint64_t damages[] = {
            0,
            good & ~PH__PTE_PRESENT,
            good & ~PH__PTE_USER,
            good & ~PH__PTE_WRITABLE,
            PH__HOLE_GPA | bits, /* in no memory */
            PH__PTE_ADDRESS | bits,
            other | bits, /* in other memory: the ring is no longer in one piece */
        };
        for (size_t j = 0; j < sizeof damages / sizeof damages[0]; j++) {
            ph_error error = {0};
            if (pages[i] == PH__TRACE_GVA && damages[j] == (other | bits))
                continue; /* a page of its own may be anywhere */
            *entry = damages[j];
            assert_int_equal(ph__trace_attach(traced.sandbox, &error), PH_E_SYSTEM);
            assert_non_null(strstr(error.message, "trace ring"));
        }
        *entry = good;
    }
    /* Two pages of the ring, swapped in both its places. */
    uint64_t *entries = entry_of(memory, PH__TRACE_RING_GVA);
    const uint64_t first = entries[0];
    entries[0] = entries[RING / PH__PAGE_SIZE] = entries[1];
    entries[1] = entries[RING / PH__PAGE_SIZE + 1] = first;
    assert_int_equal(ph__trace_attach(traced.sandbox, NULL), PH_E_SYSTEM);
    entries[1] = entries[RING / PH__PAGE_SIZE + 1] = entries[0];
    entries[0] = entries[RING / PH__PAGE_SIZE] = first;

    assert_int_equal(ph__trace_attach(traced.sandbox, NULL), PH_OK);
    test_status(traced.sandbox, ph_sandbox_start(traced.sandbox), PH_OK);
    traced_call(&traced, "events", ARGS(U64(5000)), PH_OK, NULL);
    traced_finish(&traced);
    trace_sequence_check(&traced.collect, "at", 0, 5000);
    traced_free(&traced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_is_never_at_its_own_address),
        cmocka_unit_test(tables_that_do_not_lead_to_the_ring_are_refused),
    };

    return cmocka_run_group_tests_name("trace address", tests, NULL, NULL);
}
