/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A restore may leave alone what ring 3 cannot change. So nothing in ring 3 changes it: guests try each
 * instruction that would on a real kernel, in every state that they can put the processor into, and all that
 * KVM tells of the vCPU beyond ring 3's own registers is what it was. And it is all put back, to the last
 * bit, whether a guest came to its end or returned with odd flags set.
 */
#include "hostile/hostile.h"

#include <pinhole/snapshot.h>
#include <stdio.h>
#include <string.h>

#include "support/vcpu_state.h"

static const ph_config least = {.size = sizeof least, .memory = 6ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

/* A guest, and its processor when it was started. */
struct subject {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    struct vcpu_state before;
};

static void begin(struct subject *subject, const char *guest) {
    memset(subject, 0, sizeof *subject);
    subject->sandbox = test_started(guest, &least);
    test_status(subject->sandbox, ph_snapshot_take(subject->sandbox, &subject->snapshot), PH_OK);
    test_status(subject->sandbox, ph_sandbox_restore(subject->sandbox, subject->snapshot), PH_OK);
    vcpu_state_get(subject->sandbox, &subject->before);
}

static void finish(struct subject *subject) {
    ph_sandbox_destroy(subject->sandbox);
    ph_snapshot_close(subject->snapshot);
}

/* Calls (name), which does what it does, and compares before and after the restore. */
static void try(struct subject *subject, const char *name, const ph_value *args, size_t count) {
    static struct vcpu_state after;
    char what[128];

    ph_status status = test_call(subject->sandbox, subject->sandbox->image, name, args, count, NULL);
    snprintf(what, sizeof what, "%s %llx %llx, %s", name, count > 0 ? (unsigned long long)args[0].u64 : 0,
             count > 1 ? (unsigned long long)args[1].u64 : 0, ph_status_kind(status));
    /* After a reset it is all another, as the restore knows; a guest that has been reset is none of this. */
    assert_int_not_equal(status, PH_E_TRIPLE_FAULT);
    vcpu_state_get_raw(&after);
    vcpu_same_beyond_ring_3(what, &subject->before, &after);
    if (ph_sandbox_restore(subject->sandbox, subject->snapshot) != PH_OK)
        fail_msg("%s: restore: %s", what, ph_sandbox_error(subject->sandbox)->message);
    vcpu_state_get(subject->sandbox, &after);
    vcpu_same_all(what, &subject->before, &after);
}

/* Every export without arguments of the guest of instructions. */
static void no_instruction_changes_what_is_beyond_ring_3(void **state) {
    static struct subject subject;
    size_t tried = 0;

    (void)state;
    test_needs_kvm();
    begin(&subject, "hostile_instructions");
    for (size_t i = 0; i < ph_image_export_count(subject.sandbox->image); i++) {
        const ph_function *function = ph_image_export(subject.sandbox->image, i);
        if (function->signature.count)
            continue;
        try(&subject, function->name, NO_ARGS);
        tried++;
    }
    assert_true(tried > 100);
    finish(&subject);
}

static void no_interrupt_instruction_changes_what_is_beyond_ring_3(void **state) {
    static struct subject subject;

    (void)state;
    test_needs_kvm();
    begin(&subject, "hostile_instructions");
    for (uint32_t vector = 0; vector < 256; vector++)
        if (!hostile_skip())
            try(&subject, "interrupt", ARGS(U32(vector)));
    finish(&subject);
}

/* IOPL, NT, VM, IF, TF and the rest, then each way into the monitor and the host; the last ones come back
 * with the flags set. */
static void no_flag_changes_what_is_beyond_ring_3(void **state) {
    static struct subject subject;
    static const uint64_t flags[] = {0x100,   0x200,   0x400,    0x3000,   0x4000,  0x10000, 0x20000,
                                     0x40000, 0x80000, 0x100000, 0x200000, 0x14500, ~0ull};

    (void)state;
    test_needs_kvm();
    begin(&subject, "hostile_processor");
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        for (uint32_t then = 0; then <= 9; then++)
            try(&subject, "with_flags", ARGS(U64(flags[i]), U32(then)));
    for (uint32_t then = 1; then <= 4; then++)
        for (uint64_t trap = 2; trap <= 0x10102; trap += 0x100)
            if (trap == 2 || trap == 0x102 || trap == 0x10102)
                try(&subject, "stack_selector_then", ARGS(U32(then), U64(trap)));
    finish(&subject);
}

/* No descriptor gives ring 3 more than it has, nor a table of its own. */
static void no_selector_changes_what_is_beyond_ring_3(void **state) {
    static struct subject subject;
    static const char *const names[] = {"far_jump", "far_return", "far_call", "load_ds",
                                        "load_es",  "load_fs",    "load_gs",  "load_ss"};
    static const uint32_t selectors[] = {0,    3,    4,    7,    8,    0x10, 0x13,  0x1b,
                                         0x23, 0x28, 0x2b, 0x33, 0x43, 0x80, 0xfff7};

    (void)state;
    test_needs_kvm();
    begin(&subject, "hostile_processor");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof selectors / sizeof selectors[0]; j++)
            if (!hostile_skip())
                try(&subject, names[i], ARGS(U32(selectors[j])));
    finish(&subject);
}

/* A guest that gives the host everything full of a pattern, and did nothing but ring the doorbell. */
static void a_full_set_of_registers_is_put_back_after_an_ordinary_return(void **state) {
    static struct subject subject;
    const ph_value *none = NULL;

    (void)state;
    test_needs_kvm();
    begin(&subject, "hostile_tenant");
    try(&subject, "honest", none, 0);
    for (uint64_t pattern = 1; pattern; pattern <<= 7)
        try(&subject, "spoil", ARGS(U64(pattern * 0x9e3779b97f4a7c15ull), U32(0), U32(4), U32(0), U64(0)));
    finish(&subject);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_instruction_changes_what_is_beyond_ring_3),
        cmocka_unit_test(no_interrupt_instruction_changes_what_is_beyond_ring_3),
        cmocka_unit_test(no_flag_changes_what_is_beyond_ring_3),
        cmocka_unit_test(no_selector_changes_what_is_beyond_ring_3),
        cmocka_unit_test(a_full_set_of_registers_is_put_back_after_an_ordinary_return),
    };

    return cmocka_run_group_tests_name("hostile state", tests, NULL, NULL);
}
