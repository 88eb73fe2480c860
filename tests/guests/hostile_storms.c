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

/* A locked access that crosses a cache line stops every processor for a while. */
static void lock_across_lines(void) {
    static _Alignas(64) uint64_t words[16];

    __asm__ volatile("lock incq -4(%0)" : : "r"(words + 8) : "memory", "cc");
}

static void touch_arena(void) {
    for (uint64_t at = 0; at < control->arena_size; at += PH__PAGE_SIZE)
        *(volatile char *)(control->arena_gva + at) = 1;
}

static uint64_t protect(uint64_t offset, uint64_t size, uint64_t protection) {
    return ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva + offset, size, protection);
}

/* Without an exit. */
STORM(spin, __asm__ volatile("pause"));
STORM(spin_tight, __asm__ volatile("1: jmp 1b"));
STORM(spin_without_interrupts, __asm__ volatile("pushq $2\n popfq"));
STORM(spin_on_vector_units, __asm__ volatile("mulpd %%xmm0, %%xmm1" : : : "xmm1"));
STORM(spin_on_serialisation, __asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx"));
STORM(spin_on_bus_locks, lock_across_lines());
STORM(long_strings, memset((void *)control->arena_gva, 1, control->arena_size));
STORM(spin_on_pages, touch_arena());
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
STORM(zeroes_of_nothing, ph__doorbell_ring(PH__DOORBELL_ZERO, control->arena_gva, 0, 0));

static void protections(void) {
    for (;;) {
        protect(0, 8192, 1);
        protect(4096, 8192, 3);
    }
}
PH_EXPORT(protections, PH_VOID);

static void large_protections(void) {
    for (;;) {
        protect(0, control->arena_size, 1);
        protect(0, control->arena_size, 3);
    }
}
PH_EXPORT(large_protections, PH_VOID);

/* Every page of the arena alone, so that no large page is left, and then all of it again and again. */
static void split_protections(void) {
    for (uint64_t at = 4096; at < control->arena_size; at += PH__LARGE_PAGE_SIZE)
        protect(at, 4096, 1);
    for (;;) {
        protect(0, control->arena_size, 0);
        protect(0, control->arena_size, 3);
    }
}
PH_EXPORT(split_protections, PH_VOID);

static void zeroes(void) {
    for (;;) {
        *(volatile char *)control->arena_gva = 1;
        ph__doorbell_ring(PH__DOORBELL_ZERO, control->arena_gva, control->arena_size, 0);
    }
}
PH_EXPORT(zeroes, PH_VOID);

/* What the monitor does for long by itself: (most) bytes of a string at a time. */
STORM(long_copies, system_call(1, 1, control->arena_gva, control->arena_size, 0, 0, 0));

/* Before the first call: the name does not matter. */
void start_lie(int count, char **arguments) {
    (void)count;
    if (arguments[0][0] == 's')
        spin();
    host_calls();
}
