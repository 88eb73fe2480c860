/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A restore heals a guest that has come to an end, whichever: memory, registers and the processor's tables
 * are as they were, system calls and exceptions work.
 */
#include "support/memory_image.h"

#include <pinhole/snapshot.h>

#include "support/traced.h"
#include "vm/boot.h"

static const ph_config small = {.size = sizeof small, .memory = 12ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

/* A sandbox, its snapshot and what its memory was then. */
struct healed {
    ph_sandbox *sandbox;
    ph_snapshot *snapshot;
    uint8_t *image;
};

static void begin(struct healed *healed, const char *guest) {
    healed->sandbox = test_started(guest, &small);
    test_status(healed->sandbox, ph_snapshot_take(healed->sandbox, &healed->snapshot), PH_OK);
    healed->image = memory_image_take(healed->sandbox);
}

static void finish(struct healed *healed) {
    ph_sandbox_destroy(healed->sandbox);
    ph_snapshot_close(healed->snapshot);
    free(healed->image);
}

static ph_status call(struct healed *healed, const char *name, const ph_value *args, size_t count,
                      ph_value *result) {
    return test_call(healed->sandbox, healed->sandbox->image, name, args, count, result);
}

static void heal(struct healed *healed) {
    test_status(healed->sandbox, ph_sandbox_restore(healed->sandbox, healed->snapshot), PH_OK);
    memory_image_check(healed->sandbox, healed->image);
}

/* Ends in (wanted) by (name), twice, with a working guest in between. */
static void ends_and_heals(struct healed *healed, const char *name, ph_status wanted) {
    ph_value result;

    for (int turn = 0; turn < 2; turn++) {
        test_status(healed->sandbox, call(healed, name, NO_ARGS, NULL), wanted);
        test_status(healed->sandbox, call(healed, "count", NO_ARGS, &result), PH_E_POISONED);
        heal(healed);
        test_status(healed->sandbox, call(healed, "count", NO_ARGS, &result), PH_OK);
        assert_int_equal(result.u32, 1);
        test_status(healed->sandbox, call(healed, "change", ARGS(U32(3)), NULL), PH_OK);
        test_status(healed->sandbox, call(healed, "random_bytes", NO_ARGS, &result), PH_OK);
    }
}

static void every_end_is_healed(void **state) {
    static const struct {
        const char *name;
        ph_status status;
    } ends[] = {
        {"undefined", PH_E_UNDEFINED_INSTRUCTION},
        {"null_write", PH_E_PAGE_FAULT},
        {"give_up", PH_E_ABORTED},
        {"leave", PH_E_EXITED},
        {"kill_self", PH_E_SIGNALLED},
        {"abort_libc", PH_E_ABORTED},
        {"stack_overflow", PH_E_STACK_OVERFLOW},
    };
    struct healed healed;

    (void)state;
    test_needs_kvm();
    begin(&healed, "snapshot");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        ends_and_heals(&healed, ends[i].name, ends[i].status);
    finish(&healed);
}

/* Ring 3 cannot reset the processor; the host does it to it, by taking its exception vectors away. */
static void a_reset_processor_is_healed(void **state) {
    struct healed healed;
    ph_value result;

    (void)state;
    test_needs_kvm();
    begin(&healed, "snapshot");
    for (int turn = 0; turn < 3; turn++) {
        memset(healed.sandbox->memory.base + PH__TABLES_GPA + PH__IDT_OFFSET, 0, PH__IDT_SIZE);
        ph_status status = call(&healed, "undefined", NO_ARGS, NULL);
        /* Some machines do not look the vectors up there. */
        assert_true(status == PH_E_TRIPLE_FAULT || status == PH_E_UNDEFINED_INSTRUCTION);
        heal(&healed);
        test_status(healed.sandbox, call(&healed, "count", NO_ARGS, &result), PH_OK);
        assert_int_equal(result.u32, 1);
        test_status(healed.sandbox, call(&healed, "change", ARGS(U32(3)), NULL), PH_OK);
        test_status(healed.sandbox, call(&healed, "undefined", NO_ARGS, NULL), PH_E_UNDEFINED_INSTRUCTION);
        heal(&healed);
    }
    finish(&healed);
}

static void a_time_out_is_healed(void **state) {
    static const char *const names[] = {"spin", "spin_in_handler"};
    struct healed healed;
    ph_value result;

    (void)state;
    test_needs_kvm();
    begin(&healed, "snapshot");
    for (size_t i = 0; i < 4; i++) {
        const ph_function *function = test_export(healed.sandbox->image, names[i % 2]);
        test_status(healed.sandbox, ph_call_timeout(healed.sandbox, function, NO_ARGS, NULL, 30000000ull),
                    PH_E_TIMED_OUT);
        heal(&healed);
        test_status(healed.sandbox, call(&healed, "count", NO_ARGS, &result), PH_OK);
        assert_int_equal(result.u32, 1);
        /* No handler is left. */
        test_status(healed.sandbox, call(&healed, "null_write", NO_ARGS, NULL), PH_E_PAGE_FAULT);
        heal(&healed);
    }
    finish(&healed);
}

/* Faults of the example guest, and lies of hostile ones; each export is tried, whatever it takes. */
static void hostile_ends_are_healed(void **state) {
    const struct {
        const char *guest;
        const char *name;
        ph_value args[3];
        size_t count;
    } ends[] = {
        {"faults", "double_fault", {{0}}, 0},
        {"faults", "general_protection", {{0}}, 0},
        {"faults", "breakpoint", {{0}}, 0},
        {"faults", "foreign_port", {{0}}, 0},
        {"faults", "privileged", {{0}}, 0},
        {"faults", "divide", {{0}}, 0},
        {"faults", "page_fault_exec", {{0}}, 0},
        {"hostile_processor", "far_jump", {U32(0x33)}, 1},
        {"hostile_processor", "far_jump_int80", {U32(0x23)}, 1},
        {"hostile_processor", "far_jump_doorbell", {U32(0x1b)}, 1},
        {"hostile_processor", "load_ss", {U32(0x1b)}, 1},
        {"hostile_processor", "x87_unmasked", {{0}}, 0},
        {"hostile_processor", "simd_unmasked", {{0}}, 0},
        {"hostile_processor", "with_flags", {U64(0x100), U32(4)}, 2},
        {"hostile_processor", "with_flags", {U64(0x40400), U32(3)}, 2},
        {"hostile_processor", "stack_selector_then", {U32(4), U64(0x100)}, 2},
        {"hostile_snapshot", "scribble", {U64(0)}, 1},
        {"hostile_snapshot", "scribble", {U64(UINT64_MAX)}, 1},
        {"hostile_snapshot", "scribble", {U64(0x123456789abcdef0)}, 1},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct healed healed;
        begin(&healed, ends[i].guest);
        for (int turn = 0; turn < 2; turn++) {
            call(&healed, ends[i].name, ends[i].args, ends[i].count, NULL);
            heal(&healed);
            if (strcmp(ends[i].guest, "faults") == 0)
                test_status(healed.sandbox, call(&healed, "null", NO_ARGS, NULL), PH_E_PAGE_FAULT);
            else
                test_status(healed.sandbox, call(&healed, "honest", NO_ARGS, NULL), PH_OK);
            heal(&healed);
        }
        finish(&healed);
    }
}

static void registers_are_as_they_were(void **state) {
    struct healed healed;
    ph_value result;
    uint8_t before[4096];
    size_t size;

    (void)state;
    test_needs_kvm();
    begin(&healed, "hostile_snapshot");
    heal(&healed);
    test_status(healed.sandbox, call(&healed, "registers_get", NO_ARGS, &result), PH_OK);
    size = result.bytes.size;
    assert_true(size > 512 && size <= sizeof before);
    memcpy(before, result.bytes.data, size);
    for (uint32_t and_end = 0; and_end < 2; and_end++) {
        test_status(healed.sandbox, call(&healed, "registers_fill", ARGS(U32(and_end)), NULL),
                    and_end ? PH_E_UNDEFINED_INSTRUCTION : PH_OK);
        if (!and_end) { /* the test sees what it means to */
            test_status(healed.sandbox, call(&healed, "registers_get", NO_ARGS, &result), PH_OK);
            assert_memory_not_equal(result.bytes.data, before, size);
        }
        heal(&healed);
        test_status(healed.sandbox, call(&healed, "registers_get", NO_ARGS, &result), PH_OK);
        assert_memory_equal(result.bytes.data, before, size);
        /* And in a sandbox of its own. */
        ph_sandbox *other = NULL;
        ph_error error;
        assert_int_equal(ph_sandbox_create_from(healed.snapshot, NULL, &other, &error), PH_OK);
        test_status(other, test_call(other, other->image, "registers_get", NO_ARGS, &result), PH_OK);
        assert_memory_equal(result.bytes.data, before, size);
        ph_sandbox_destroy(other);
    }
    finish(&healed);
}

/* What one guest leaves in the memory that it shares with the host, the next must not read. */
static void messages_do_not_outlive_a_restore(void **state) {
    struct healed healed;
    ph_value result;

    (void)state;
    test_needs_kvm();
    begin(&healed, "hostile_snapshot");
    test_status(healed.sandbox, call(&healed, "fill_boxes", ARGS(U64(0x1234)), NULL), PH_OK);
    test_status(healed.sandbox, call(&healed, "boxes_sum", NO_ARGS, &result), PH_OK);
    assert_true(result.u64 != 0);
    heal(&healed);
    test_status(healed.sandbox, call(&healed, "boxes_sum", NO_ARGS, &result), PH_OK);
    assert_int_equal(result.u64, 0);
    finish(&healed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_is_healed),        cmocka_unit_test(a_reset_processor_is_healed),
        cmocka_unit_test(a_time_out_is_healed),       cmocka_unit_test(hostile_ends_are_healed),
        cmocka_unit_test(registers_are_as_they_were), cmocka_unit_test(messages_do_not_outlive_a_restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
