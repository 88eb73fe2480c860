/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random code on both backends, from a seed that a failure names (differential.h): it comes to the same end,
 * with the same registers and memory, and a fault is reported with the same words, or given to the guest's
 * own handler with the same numbers.
 */
#include "system/differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/layout.h"
#include "sandbox/sandbox.h"
#include "support/traced.h"
#include "system/random_code.h"

#define TIMEOUT_NS 2000000000ull

/* RF, which KVM's processor keeps to itself, and IF, which is as its host has it. */
#define RFLAGS_COMPARED 0x244dd7ull

/* A bit of the control word that is 1 whatever is loaded; not in the emulator. */
#define FCW_ALWAYS 0x40

struct pair {
    ph_image *image;
    ph_sandbox *sandboxes[BACKENDS];
    ph_snapshot *snapshots[BACKENDS];
    uint64_t zone, end;
};

static void pair_begin(struct pair *pair) {
    static const ph_backend backends[BACKENDS] = {PH_BACKEND_KVM, PH_BACKEND_SOFT};
    ph_value zone, end;

    pair->image = test_image("differential_code");
    for (int i = 0; i < BACKENDS; i++) {
        ph_config config = PH_CONFIG_INIT;
        config.backend = backends[i];
        ph_sandbox *sandbox = test_sandbox(pair->image, &config);
        pair->sandboxes[i] = sandbox;
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        test_status(sandbox, test_call(sandbox, pair->image, "prepare", NO_ARGS, NULL), PH_OK);
        test_status(sandbox, test_call(sandbox, pair->image, "zone_address", NO_ARGS, &zone), PH_OK);
        test_status(sandbox, test_call(sandbox, pair->image, "end_address", NO_ARGS, &end), PH_OK);
        test_status(sandbox, ph_snapshot_take(sandbox, &pair->snapshots[i]), PH_OK);
    }
    pair->zone = zone.u64;
    pair->end = end.u64;
}

static void pair_end(struct pair *pair) {
    for (int i = 0; i < BACKENDS; i++) {
        ph_snapshot_close(pair->snapshots[i]);
        ph_sandbox_destroy(pair->sandboxes[i]);
    }
    ph_image_close(pair->image);
}

static const struct differential_zone *zone_of(const struct pair *pair, int backend) {
    const struct ph__memory *memory = &pair->sandboxes[backend]->memory;
    const struct ph__region *image = &memory->layout.image;

    return (const struct differential_zone *)(memory->base + image->offset + (pair->zone - image->gva));
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static void compare_words(const struct rounds *rounds, const char *what, const uint64_t *kvm,
                          const uint64_t *soft, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (kvm[i] != soft[i])
            rounds_fail(rounds, "%s, word %zu: 0x%llx on kvm, 0x%llx on soft", what, i,
                        (unsigned long long)kvm[i], (unsigned long long)soft[i]);
}

static void compare_bytes(const struct rounds *rounds, const char *what, const uint8_t *kvm,
                          const uint8_t *soft, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (kvm[i] != soft[i])
            rounds_fail(rounds, "%s, byte 0x%zx: 0x%02x on kvm, 0x%02x on soft", what, i, kvm[i], soft[i]);
}

/* What FXSAVE keeps, but for where the last x87 instruction was, which the emulator does not note, and what
 * is not the processor's. */
static void compare_vectors(const struct rounds *rounds, const char *what, const uint8_t *kvm,
                            const uint8_t *soft) {
    char text[64];

    snprintf(text, sizeof text, "%s, control words", what);
    const uint8_t controls[2] = {kvm[0] | FCW_ALWAYS, soft[0] | FCW_ALWAYS};
    compare_bytes(rounds, text, &controls[0], &controls[1], 1);
    compare_bytes(rounds, text, kvm + 1, soft + 1, 4);
    snprintf(text, sizeof text, "%s, MXCSR", what);
    compare_bytes(rounds, text, kvm + 24, soft + 24, 4);
    snprintf(text, sizeof text, "%s, x87 and vector registers", what);
    compare_bytes(rounds, text, kvm + 32, soft + 32, 384);
}

static void compare_flags(const struct rounds *rounds, const char *what, uint64_t kvm, uint64_t soft) {
    if ((kvm ^ soft) & RFLAGS_COMPARED)
        rounds_fail(rounds, "%s: RFLAGS 0x%llx on kvm, 0x%llx on soft", what, (unsigned long long)kvm,
                    (unsigned long long)soft);
}

static void compare_registers(const struct rounds *rounds, const struct ph__regs *kvm,
                              const struct ph__regs *soft) {
    compare_words(rounds, "registers at the end", (const uint64_t *)kvm, (const uint64_t *)soft, 17);
    compare_flags(rounds, "at the end", kvm->rflags, soft->rflags);
}

static void compare_zones(const struct rounds *rounds, const struct differential_zone *kvm,
                          const struct differential_zone *soft) {
    compare_words(rounds, "the signal", &kvm->handled.signal, &soft->handled.signal, 5);
    compare_words(rounds, "the handler's context", kvm->handled.context, soft->handled.context, 17);
    compare_words(rounds, "the handler's context behind RFLAGS", kvm->handled.context + 18,
                  soft->handled.context + 18, 5);
    compare_flags(rounds, "the handler's context", kvm->handled.context[17], soft->handled.context[17]);
    compare_vectors(rounds, "the handler's vectors", kvm->handled.vectors, soft->handled.vectors);
    compare_words(rounds, "registers behind the code", kvm->after.general, soft->after.general, 16);
    compare_flags(rounds, "behind the code", kvm->after.rflags, soft->after.rflags);
    compare_vectors(rounds, "behind the code", kvm->after.vectors, soft->after.vectors);
}

/* Bytes that may differ (docs/security.md): what a store across pages has written before its second page
 * refused it, and where a call has left its return address before it was refused. */
#define STORE_MAX 16u
#define CALL_SIZE 8u

static void compare_memory(const struct rounds *rounds, const struct pair *pair, uint64_t address,
                           uint64_t rsp) {
    const uint8_t *kvm = (const uint8_t *)zone_of(pair, ON_KVM);
    const uint8_t *soft = (const uint8_t *)zone_of(pair, ON_SOFT);

    for (size_t i = 0; i < offsetof(struct differential_zone, after); i++) {
        const uint64_t gva = pair->zone + i;
        if (kvm[i] == soft[i] || (address % PH__PAGE_SIZE == 0 && address - gva <= STORE_MAX) ||
            rsp - gva <= CALL_SIZE)
            continue;
        rounds_fail(rounds, "memory at 0x%llx: 0x%02x on kvm, 0x%02x on soft", (unsigned long long)gva,
                    kvm[i], soft[i]);
    }
}

/* ---- code ---------------------------------------------------------------------------------------------- */

/* Addresses at the edges of what there is. */
#define ADDRESSES_MAX 128u
static size_t addresses_make(const struct pair *pair, uint64_t *addresses) {
    const struct ph__layout *layout = &pair->sandboxes[ON_KVM]->memory.layout;
    const uint64_t stack_end = layout->stack.gva + layout->stack.size;
    const uint64_t edges[] = {
        0x1000,
        pair->zone,
        pair->zone + 1 * 4096,
        pair->zone + 2 * 4096,
        pair->zone + 3 * 4096,
        pair->zone + 4 * 4096,
        pair->zone + 6 * 4096,
        pair->zone + 7 * 4096,
        pair->zone + 10 * 4096,
        layout->image.gva,
        layout->image.gva + layout->image.size,
        layout->stack.gva,
        stack_end,
        PH__GVA(PH__TABLES_GPA),
        PH__GVA(PH__MONITOR_STACK_GPA),
        0x123400000000,
        1ull << 47,
        1ull << 63,
    };
    static const int8_t distances[] = {0, -1, -3, -8, -16};
    size_t count = 0;

    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        for (size_t j = 0; j < sizeof distances; j++)
            /* What lies across the edge of what is canonical, processors see differently; and on top of the
             * stack are random bytes. */
            if ((edges[i] < 1ull << 47 || distances[j] % 8 == 0) &&
                (edges[i] != stack_end || distances[j] == 0))
                addresses[count++] = edges[i] + (uint64_t)distances[j];
    return count;
}

static void print_code(const struct random_code *code) {
    if (!getenv("PH_TEST_VERBOSE"))
        return;
    fprintf(stderr, "code at 0x%llx:", (unsigned long long)code->start);
    for (size_t i = 0; i < code->size; i++)
        fprintf(stderr, " %02x", code->bytes[i]);
    fprintf(stderr, "\n");
}

static void print_registers(const struct differential_registers *registers) {
    static const char *const names[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rsp", "rbp"};
    if (!getenv("PH_TEST_VERBOSE"))
        return;
    fprintf(stderr, "regs");
    for (size_t i = 0; i < 16; i++)
        fprintf(stderr, " %s%zu=%llx", i < 8 ? names[i] : "r", i, (unsigned long long)registers->general[i]);
    fprintf(stderr, "\n");
}

/* Runs (code) on both, and compares all that came of it. */
static void run_and_compare(const struct rounds *rounds, struct pair *pair, const struct random_code *code,
                            const struct differential_registers *registers, bool handles) {
    const ph_value args[] = {
        BYTES(code->bytes, code->size),
        U32((uint32_t)(code->start - pair->zone - offsetof(struct differential_zone, code))),
        BYTES(registers, sizeof *registers),
        BOOL(handles),
    };
    const ph_function *run = test_export(pair->image, "run_code");
    ph_status statuses[BACKENDS];

    print_registers(registers);
    print_code(code);
    for (int i = 0; i < BACKENDS; i++) {
        test_status(pair->sandboxes[i], ph_sandbox_restore(pair->sandboxes[i], pair->snapshots[i]), PH_OK);
        statuses[i] = ph_call_timeout(pair->sandboxes[i], run, args, 4, NULL, TIMEOUT_NS);
    }
    differential_compare(rounds, pair->sandboxes, statuses);
    if (statuses[ON_KVM] == PH_E_TIMED_OUT)
        return;
    if (statuses[ON_KVM] != PH_OK)
        compare_registers(rounds, pair->sandboxes[ON_KVM]->vcpu->regs, pair->sandboxes[ON_SOFT]->vcpu->regs);
    const struct differential_handled *handled = &zone_of(pair, ON_KVM)->handled;
    const bool ended = statuses[ON_KVM] != PH_OK;
    compare_zones(rounds, zone_of(pair, ON_KVM), zone_of(pair, ON_SOFT));
    compare_memory(rounds, pair,
                   ended ? ph_sandbox_error(pair->sandboxes[ON_KVM])->address : handled->context[22],
                   ended ? pair->sandboxes[ON_KVM]->vcpu->regs->rsp : handled->context[15]);
}

static void random_code_comes_to_the_same_end(void **state) {
    struct rounds rounds = rounds_begin("random code", 1000);
    uint64_t addresses[ADDRESSES_MAX];
    struct pair pair;

    (void)state;
    differential_needs_both();
    pair_begin(&pair);
    const size_t address_count = addresses_make(&pair, addresses);
    while (rounds_next(&rounds)) {
        struct differential_registers registers;
        struct random_code code = {
            .random = &rounds.random,
            .zone = pair.zone,
            .addresses = addresses,
            .address_count = address_count,
        };
        code.start =
            pair.zone + offsetof(struct differential_zone, code) + 3072 + random_below(&rounds.random, 2048);
        random_code_make(&code, 1 + (unsigned)random_below(&rounds.random, 12), pair.end);
        random_code_registers(&code, &registers);
        run_and_compare(&rounds, &pair, &code, &registers, random_once_in(&rounds.random, 3));
    }
    pair_end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_code_comes_to_the_same_end),
    };

    return cmocka_run_group_tests_name("differential: faults", tests, NULL, NULL);
}
