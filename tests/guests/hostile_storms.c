/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Never ends: every way in which a guest can keep the processor, or the host, busy for ever.
 */
#include <linux/errno.h>

#include "hostile.h"

PH_IMPORT(work, PH_VOID);

/* The frame of a call of `work`, the only import. */
static void call_host(void) {
    const struct ph__frame frame = {.size = sizeof frame, .kind = PH__FRAME_CALL};

    memcpy(outbox(), &frame, sizeof frame);
    ph__doorbell_ring(PH__DOORBELL_HOST_CALL, 0, 0, 0);
}

__attribute__((noipa)) void ph__host_call(const void *entry, ph_value *values) {
    (void)entry;
    (void)values;
    call_host();
}

__attribute__((noipa)) int32_t ph__host_call_try(const void *entry, ph_value *values) {
    ph__host_call(entry, values);
    return 0;
}

#define STORM(name, ...)                                                                                     \
    static void name(void) {                                                                                 \
        for (;;) {                                                                                           \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    }                                                                                                        \
    PH_EXPORT(name, PH_VOID)

/* Without an exit. */
STORM(spin, __asm__ volatile("pause"));
STORM(spin_tight, __asm__ volatile("1: jmp 1b"));
STORM(spin_without_interrupts, __asm__ volatile("pushq $2\n popfq"));
STORM(spin_on_vector_units, __asm__ volatile("mulpd %%xmm0, %%xmm1" : : : "xmm1"));
STORM(spin_on_serialisation, __asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx"));
STORM(spin_on_bus_locks, static uint64_t words[32]; uint64_t *word = (uint64_t *)(((uint64_t)words + 63) & ~63ull);
      __asm__ volatile("lock incq -4(%0)" : : "r"(word + 8) : "memory", "cc"));
STORM(spin_on_long_strings,
      __asm__ volatile("rep stosb" : : "D"(control->arena_gva), "c"(control->arena_size), "a"(1) : "memory"));
STORM(spin_on_pages, for (uint64_t at = 0; at < control->arena_size; at += 4096) *(volatile char *)(control->arena_gva + at) = 1);
STORM(spin_on_random, __asm__ volatile("rdtsc" : : : "rax", "rdx"));

/* With an exit each time. */
STORM(system_calls, system_call(39, 0, 0, 0, 0, 0, 0));
STORM(unknown_system_calls, system_call(~0ull, 0, 0, 0, 0, 0, 0));
STORM(bad_pointers, system_call(1, 1, 8, 100, 0, 0, 0));
STORM(output, ph__doorbell_ring(PH__DOORBELL_WRITE, 1, PH__IO_SIZE, 0));
STORM(output_of_nothing, ph__doorbell_ring(PH__DOORBELL_WRITE, 1, 0, 0));
STORM(output_to_nowhere, ph__doorbell_ring(PH__DOORBELL_WRITE, 77, 1, 0));
STORM(input, ph__doorbell_ring(PH__DOORBELL_READ, 0, PH__IO_SIZE, 0));
STORM(naps, ph__doorbell_ring(PH__DOORBELL_SLEEP, 0, 0, 0));
STORM(short_sleeps, ph__doorbell_ring(PH__DOORBELL_SLEEP, 1000, 0, 0));
STORM(endless_sleep, ph__doorbell_ring(PH__DOORBELL_SLEEP, ~0ull, 0, 0));
STORM(host_calls, work());
STORM(refused_protections, ph__doorbell_ring(PH__DOORBELL_PROTECT, 1, 1, 1));
STORM(protections, ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva, 8192, 1);
      ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva + 4096, 8192, 3));
STORM(large_protections, ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva, control->arena_size, 1);
      ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva, control->arena_size, 3));

STORM(zeroes, *(volatile char *)control->arena_gva = 1;
      ph__doorbell_ring(PH__DOORBELL_ZERO, control->arena_gva, control->arena_size, 0));
STORM(zeroes_of_nothing, ph__doorbell_ring(PH__DOORBELL_ZERO, control->arena_gva, 0, 0));

/* Every page of the arena alone, so that no large page is left, and then all of it again and again. */
static void split_protections(void) {
    for (uint64_t at = 4096; at < control->arena_size; at += PH__LARGE_PAGE_SIZE)
        ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva + at, 4096, 1);
    for (;;) {
        ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva, control->arena_size, 0);
        ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva, control->arena_size, 3);
    }
}
PH_EXPORT(split_protections, PH_VOID);

/* What the monitor does for long by itself: (most) bytes of a string at a time. */
STORM(long_copies, system_call(1, 1, control->arena_gva, control->arena_size, 0, 0, 0));

/* Before the first call: the name does not matter. */
void start_lie(int count, char **arguments) {
    (void)count;
    if (arguments[0][0] == 's')
        spin();
    host_calls();
}
