/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that touch what is not theirs, run what is not code, put their stack where none is, and destroy the
 * monitor beneath them before they ask it for something. A guest can only hurt itself, and the error says
 * where.
 */
#include "hostile/hostile.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define GUEST "hostile_memory"

/* For calls that may well never end. */
#define SHORT_NS 20000000ull

#define FAULT_PRESENT 1u
#define FAULT_WRITE 2u
#define FAULT_USER 4u
#define FAULT_FETCH 16u

static uint64_t monitor_part(uint32_t offset) {
    return PH__GVA(PH__MONITOR_GPA) + offset;
}

/* What the layout of a sandbox of the guest is; the same for each. */
static struct ph__layout layout_of_guest(void) {
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    const struct ph__layout layout = hostile.sandbox->memory.layout;
    hostile_end(&hostile, "an honest guest");
    return layout;
}

/* Calls (name) with (address) and expects a page fault there, with (wanted) among the bits of the error code.
 */
static void expect_fault(const char *name, uint64_t address, uint32_t wanted) {
    struct hostile hostile;
    char what[64];
    const ph_value args[] = {U64(address), U64(0x5a5a5a5a5a5a5a5a), U64(0)};
    size_t count = 1;

    if (strcmp(name, "write_64") == 0)
        count = 2;
    else if (strcmp(name, "jump") == 0)
        count = 3;
    snprintf(what, sizeof what, "%s 0x%llx", name, (unsigned long long)address);
    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, name, args, count, NULL), PH_E_PAGE_FAULT, what);
    const ph_error *error = ph_sandbox_error(hostile.sandbox);
    if (error->vector != 14 || error->address != address || (error->error_code & wanted) != wanted)
        fail_msg("%s: vector %u, address 0x%llx, error code 0x%x", what, error->vector,
                 (unsigned long long)error->address, error->error_code);
    hostile_end(&hostile, what);
}

/* A jump to where nothing may be run: a fetch, and no other access. */
static void expect_fetch_fault(uint64_t address) {
    ph_error error;

    hostile_lie(GUEST, "jump", ARGS(U64(address), U64(0), U64(0)), PH_E_PAGE_FAULT, &error);
    if (error.address != address || error.error_code != (FAULT_USER | FAULT_FETCH))
        fail_msg("a jump to 0x%llx: address 0x%llx, error code 0x%x", (unsigned long long)address,
                 (unsigned long long)error.address, error.error_code);
}

/* Calls it and expects one of several ends. */
static void expect_end(const char *name, const ph_value *args, size_t count, const ph_status *wanted,
                       size_t wanted_count) {
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    ph_status status = hostile_call(&hostile, name, args, count, NULL);
    for (size_t i = 0; i < wanted_count; i++)
        if (status == wanted[i]) {
            hostile_end(&hostile, name);
            return;
        }
    fail_msg("%s 0x%llx: %s (%s)", name, count ? (unsigned long long)args[0].u64 : 0ull,
             ph_status_kind(status), ph_sandbox_error(hostile.sandbox)->message);
}

#define EXPECT_END(name, args, ...)                                                                          \
    expect_end(name, args, (const ph_status[]){__VA_ARGS__},                                                 \
               sizeof((const ph_status[]){__VA_ARGS__}) / sizeof(ph_status))

/* ---- pages of pinhole's -------------------------------------------------------------------------------- */

static void a_write_to_the_control_page_is_a_page_fault(void **state) {
    (void)state;
    test_needs_kvm();
    for (uint64_t at = 0; at < PH__CONTROL_SIZE; at += 504) {
        if (hostile_skip())
            continue;
        expect_fault("write_64", PH__GVA(PH__CONTROL_GPA) + at, FAULT_WRITE | FAULT_USER | FAULT_PRESENT);
        expect_fault("add_nothing", PH__GVA(PH__CONTROL_GPA) + at, FAULT_WRITE | FAULT_USER | FAULT_PRESENT);
    }
}

static void the_control_page_can_be_read_and_not_run(void **state) {
    (void)state;
    test_needs_kvm();
    hostile_lie(GUEST, "read_64", ARGS(U64(PH__GVA(PH__CONTROL_GPA))), PH_OK, NULL);
    expect_fault("jump", PH__GVA(PH__CONTROL_GPA), FAULT_USER);
}

/* Poke list, descriptor tables, both ring-0 stacks, the stubs, every page table. */
static void supervisor_pages_are_out_of_reach(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();
    uint64_t pages[128] = {
        PH__GVA(PH__POKES_GPA),
        PH__GVA(PH__TABLES_GPA),
        PH__GVA(PH__RING0_STACK_GPA),
        PH__GVA(PH__RING0_STACK_GPA) + PH__PAGE_SIZE - 8,
        PH__GVA(PH__IST_STACK_GPA),
        PH__GVA(PH__TABLES_GPA) + PH__IDT_OFFSET,
        monitor_part(ph__monitor()->stubs),
        monitor_part(ph__monitor()->stubs + 13 * PH__STUB_SIZE),
        monitor_part(ph__monitor()->exception_return),
        monitor_part(ph__monitor()->poke),
        layout.page_tables.gva + layout.page_tables.size - 8,
    };
    size_t count = 11;

    for (uint64_t at = 0; at < 24 * PH__PAGE_SIZE; at += PH__PAGE_SIZE)
        pages[count++] = layout.page_tables.gva + at;
    for (size_t i = 0; i < count; i++) {
        if (hostile_skip())
            continue;
        expect_fault("read_64", pages[i], FAULT_USER);
        expect_fault("write_64", pages[i], FAULT_USER | FAULT_WRITE);
        expect_fault("add_nothing", pages[i], FAULT_USER | FAULT_WRITE);
        expect_fault("jump", pages[i], FAULT_USER);
    }
}

static void the_monitors_code_can_only_be_run(void **state) {
    (void)state;
    test_needs_kvm();
    hostile_lie(GUEST, "read_64", ARGS(U64(monitor_part(ph__monitor()->text))), PH_OK, NULL);
    expect_fault("write_64", monitor_part(ph__monitor()->text), FAULT_WRITE | FAULT_USER);
    expect_fault("write_64", monitor_part(ph__monitor()->data - 8), FAULT_WRITE | FAULT_USER);
    expect_fault("write_64", monitor_part(0), FAULT_WRITE | FAULT_USER);
    expect_fault("jump", monitor_part(0), FAULT_USER);
    expect_fault("jump", monitor_part(ph__monitor()->data), FAULT_USER);
    expect_fault("jump", PH__GVA(PH__MONITOR_STACK_GPA), FAULT_USER);
    expect_fault("jump", PH__GVA(PH__IO_GPA), FAULT_USER);
}

static void what_lies_between_is_not_there(void **state) {
    (void)state;
    test_needs_kvm();
    const struct ph__layout layout = layout_of_guest();
    const uint64_t places[] = {
        0,
        8,
        0xfff,
        PH__IMAGE_GVA_MIN - 8,
        layout.image.gva - 8,
        layout.image.gva + layout.image.size,
        layout.stack.gva + layout.stack.size,
        PH__WINDOW_GVA - 8,
        PH__WINDOW_GVA,
        PH__GVA(PH__HOST_WRITTEN_SIZE + PH__CONTROL_GPA),
        PH__GVA(PH__MONITOR_STACK_GPA) - 8,
        PH__GVA(PH__IO_GPA + PH__IO_SIZE),
        PH__GVA(PH__SYSTEM_SIZE - 8),
        layout.bookkeeping.gva + layout.bookkeeping.size,
        PH__GVA(PH__HOLE_GPA),
        PH__GVA(0xfee00000),
        PH__GVA(PH__HIGH_GPA),
        /* Where the soft backend has the page tables of its processor. */
        0x1000,
        0x2000000000,
        0x2000003008,
        0x7ffffffff000,
    };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        expect_fault("read_64", places[i], FAULT_USER);
        expect_fault("write_64", places[i], FAULT_USER | FAULT_WRITE);
    }
}

/* The upper half, where other systems keep a kernel: a guest has none, and must not see the host's. */
/* On the soft backend there is a page of its own, and the place where Unicorn is told to stop. */
static void the_ways_of_a_backend_are_not_the_guests(void **state) {
    (void)state;
    test_needs_kvm();
    expect_fault("jump", PH__GVA(0xb000), FAULT_USER);
    expect_fault("jump", PH__GVA(0xb190), FAULT_USER);
    expect_fault("jump", PH__GVA(0xb800), FAULT_USER);
    expect_fault("write_64", PH__GVA(0xb800), FAULT_USER | FAULT_WRITE);
}

static void a_jump_to_where_nothing_is_is_told_as_one(void **state) {
    (void)state;
    test_needs_kvm();
    expect_fetch_fault(0x1000);
    expect_fetch_fault(0x2000000000);
    expect_fetch_fault(PH__GVA(0xcfff));
    expect_fetch_fault(0x7fffffffffff);
}

/* More than Unicorn has mappings for. */
static void very_many_runs_of_pages_are_no_matter(void **state) {
    static const uint32_t stripes[][2] = {{2200, PROT_READ}, {2200, PROT_NONE}, {300, PROT_READ | PROT_EXEC}};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof stripes / sizeof stripes[0]; i++) {
        struct hostile hostile;
        ph_value result = {0};
        hostile_begin(&hostile, GUEST, NULL);
        hostile.may_change_tables = true;
        hostile_expect(
            &hostile, hostile_call(&hostile, "stripe", ARGS(U32(stripes[i][0]), U32(stripes[i][1])), &result),
            PH_OK, "stripes");
        assert_true(result.boolean);
        hostile_end(&hostile, "stripes");
    }
}

static void the_upper_half_is_not_there(void **state) {
    static const uint64_t places[] = {
        0xffff800000000000, 0xffff888000000000, 0xffffc90000000000, 0xffffd90000000000, 0xfffffe0000000000,
        0xffffffff80000000, 0xffffffff81000000, 0xffffffffc0000000, 0xffffffffff5fb000, 0xffffffffff600000,
        0xffffffffff600400, 0xfffffffffffff000, 0xffffffffffffffe8,
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        expect_fault("read_64", places[i], FAULT_USER);
        expect_fault("write_64", places[i], FAULT_USER | FAULT_WRITE);
        EXPECT_END("jump", ARGS(U64(places[i]), U64(0), U64(0)), PH_E_PAGE_FAULT);
    }
}

static void an_address_that_is_not_canonical_is_a_fault(void **state) {
    static const uint64_t places[] = {0x800000000000, 0x8000000000000000, 0x7fffffffffffffff,
                                      0xffff7fffffffffff, 0x123456789abcdef0};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        EXPECT_END("read_64", ARGS(U64(places[i])), PH_E_GENERAL_PROTECTION, PH_E_PAGE_FAULT);
        EXPECT_END("write_64", ARGS(U64(places[i]), U64(0)), PH_E_GENERAL_PROTECTION, PH_E_PAGE_FAULT);
        EXPECT_END("jump", ARGS(U64(places[i]), U64(0), U64(0)), PH_E_GENERAL_PROTECTION, PH_E_PAGE_FAULT);
    }
}

/* ---- code that is none --------------------------------------------------------------------------------- */

static void data_cannot_be_run(void **state) {
    static const char *const names[] = {"execute_data", "execute_stack", "execute_arena", "execute_outbox"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ph_error error;
        hostile_lie(GUEST, names[i], NO_ARGS, PH_E_PAGE_FAULT, &error);
        assert_int_equal(error.vector, 14);
        assert_int_equal(error.address, error.rip);
    }
}

static void code_cannot_be_changed(void **state) {
    ph_error error;

    (void)state;
    test_needs_kvm();
    hostile_lie(GUEST, "patch_code", NO_ARGS, PH_E_PAGE_FAULT, &error);
    assert_int_equal(error.error_code & FAULT_WRITE, FAULT_WRITE);
}

/* Any byte of the monitor's code as a way in, with hostile registers. */
static void a_jump_into_the_monitors_middle_ends_somehow(void **state) {
    const uint32_t step = 61;

    (void)state;
    test_needs_kvm();
    for (uint32_t at = ph__monitor()->text; at < ph__monitor()->data; at += step) {
        struct hostile hostile;
        char what[64];
        if (hostile_skip())
            continue;
        snprintf(what, sizeof what, "a jump to byte 0x%x of the monitor", at);
        hostile_begin(&hostile, GUEST, NULL);
        hostile.may_change_tables = true;
        hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "jump"),
                                       ARGS(U64(monitor_part(at)), U64(~0ull), U64(3)), NULL, SHORT_NS);
        if (hostile.last != PH_OK && !hostile_is_end(hostile.last))
            fail_msg("%s: %s (%s)", what, ph_status_kind(hostile.last),
                     ph_sandbox_error(hostile.sandbox)->message);
        hostile_end(&hostile, what);
    }
}

/* The instructions that may fault on a guest's pointer, entered without the monitor: a fault in them only
 * goes on at the landing, which returns to the guest. */
static void a_jump_into_the_fix_up_range_returns(void **state) {
    (void)state;
    test_needs_kvm();
    for (uint32_t at = ph__monitor()->fixup_start; at < ph__monitor()->fixup_end; at++) {
        struct hostile hostile;
        char what[64];
        if (hostile_skip())
            continue;
        snprintf(what, sizeof what, "a jump to byte 0x%x, in the fix-up range", at);
        hostile_begin(&hostile, GUEST, NULL);
        hostile.last =
            ph_call_timeout(hostile.sandbox, test_export(hostile.image, "jump"),
                            ARGS(U64(monitor_part(at)), U64(0xffff800000000000), U64(64)), NULL, SHORT_NS);
        if (hostile.last != PH_OK && !hostile_is_end(hostile.last))
            fail_msg("%s: %s", what, ph_status_kind(hostile.last));
        hostile_end(&hostile, what);
    }
}

static void a_jump_to_the_ways_into_the_monitor_ends_somehow(void **state) {
    (void)state;
    test_needs_kvm();
    const uint32_t ways[] = {ph__monitor()->start, ph__monitor()->system_call, ph__monitor()->exception,
                             ph__monitor()->fixup_landing};
    const uint64_t arguments[] = {0, 1, 39, PH__GVA(PH__TABLES_GPA), 0x800000000000, ~0ull};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (size_t j = 0; j < sizeof arguments / sizeof arguments[0]; j++) {
            struct hostile hostile;
            char what[64];
            if (hostile_skip())
                continue;
            snprintf(what, sizeof what, "a jump to way %zu with 0x%llx", i, (unsigned long long)arguments[j]);
            hostile_begin(&hostile, GUEST, NULL);
            hostile.last = ph_call_timeout(
                hostile.sandbox, test_export(hostile.image, "jump"),
                ARGS(U64(monitor_part(ways[i])), U64(arguments[j]), U64(arguments[j])), NULL, SHORT_NS);
            if (hostile.last != PH_OK && !hostile_is_end(hostile.last))
                fail_msg("%s: %s", what, ph_status_kind(hostile.last));
            hostile_end(&hostile, what);
        }
}

/* ---- stacks -------------------------------------------------------------------------------------------- */

static void a_stack_overflow_is_named_so(void **state) {
    static const uint64_t steps[] = {8, 16, 64, 4096, 65536};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (uint64_t offset = 0; offset < 8; offset++) {
            struct hostile hostile;
            ph_config config = PH_CONFIG_INIT;
            if (hostile_skip())
                continue;
            config.stack = 2ull << 20;
            hostile_begin(&hostile, GUEST, &config);
            hostile_expect(&hostile,
                           hostile_call(&hostile, "overflow_stack", ARGS(U64(steps[i]), U64(offset)), NULL),
                           PH_E_STACK_OVERFLOW, "overflow_stack");
            const ph_error error = *ph_sandbox_error(hostile.sandbox);
            hostile_end(&hostile, "overflow_stack");
            assert_int_equal(error.vector, 14);
            assert_true(error.error_code & FAULT_WRITE);
            if (i != 0)
                continue;
            /* Every step is small enough to meet the guard's last byte or those before it. */
            assert_int_equal((error.address + 8) & ~4095ull, (error.address + 4095) & ~4095ull);
        }
    }
}

/* Where a stack pointer can lead: nowhere, to the kernel's half, to what the processor itself uses. */
static const uint64_t stacks[] = {
    0,
    8,
    0x1000,
    PH__GVA(PH__CONTROL_GPA) + PH__CONTROL_SIZE,
    PH__GVA(PH__TABLES_GPA) + PH__PAGE_SIZE,
    PH__GVA(PH__RING0_STACK_GPA) + PH__PAGE_SIZE,
    PH__GVA(PH__RING0_STACK_GPA) + 64,
    PH__GVA(PH__IST_STACK_GPA) + PH__PAGE_SIZE,
    PH__GVA(PH__MONITOR_GPA) + 0x1800,
    PH__GVA(PH__MONITOR_STACK_GPA),
    PH__GVA(PH__MONITOR_STACK_GPA) + PH__MONITOR_STACK_SIZE,
    PH__GVA(PH__MONITOR_STACK_GPA) + PH__MONITOR_STACK_SIZE - 64,
    PH__GVA(PH__IO_GPA) + 17,
    0x7fffffffffff,
    0x800000000000,
    0xffff7fffffffffff,
    0xffff800000000008,
    0xffffffff81000000,
    0xfffffffffffffff8,
    0xffffffffffffffff,
    0x8000000000000000,
};
#define STACKS (sizeof stacks / sizeof stacks[0])

static void an_exception_needs_no_stack_of_the_guests(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < STACKS; i++) {
        if (hostile_skip())
            continue;
        hostile_lie(GUEST, "undefined_on_stack", ARGS(U64(stacks[i])), PH_E_UNDEFINED_INSTRUCTION, NULL);
        hostile_lie(GUEST, "breakpoint_on_stack", ARGS(U64(stacks[i])), PH_E_BREAKPOINT, NULL);
    }
}

static void a_system_call_and_a_doorbell_need_no_stack_of_the_guests(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < STACKS; i++) {
        if (hostile_skip())
            continue;
        hostile_lie(GUEST, "system_call_on_stack", ARGS(U64(stacks[i])), PH_E_UNDEFINED_INSTRUCTION, NULL);
        hostile_lie(GUEST, "doorbell_on_stack", ARGS(U64(stacks[i])), PH_E_UNDEFINED_INSTRUCTION, NULL);
    }
}

static void a_push_on_a_stack_that_is_none_is_a_fault(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < STACKS; i++) {
        if (hostile_skip())
            continue;
        EXPECT_END("push_on_stack", ARGS(U64(stacks[i])), PH_E_PAGE_FAULT, PH_E_GENERAL_PROTECTION,
                   PH_E_EXCEPTION, PH_E_STACK_OVERFLOW, PH_E_UNDEFINED_INSTRUCTION);
        EXPECT_END("return_on_stack", ARGS(U64(stacks[i])), PH_E_PAGE_FAULT, PH_E_GENERAL_PROTECTION,
                   PH_E_EXCEPTION, PH_E_UNDEFINED_INSTRUCTION, PH_E_PROTOCOL);
    }
}

/* ---- the monitor in ruins ------------------------------------------------------------------------------ */

enum { THEN_RETURN, THEN_SYSTEM_CALL, THEN_FAULT, THEN_BREAKPOINT, THEN_DIVIDE, THEN_ALL_SYSTEM_CALLS };

/* Ruins the monitor, does (what), and expects that the host says something that it may say of a guest. */
static ph_status in_ruins(uint64_t seed, uint32_t what, uint64_t number) {
    struct hostile hostile;
    char text[96];

    snprintf(text, sizeof text, "ruins of seed %llu, then %u, %llu", (unsigned long long)seed, what,
             (unsigned long long)number);
    hostile_begin(&hostile, GUEST, NULL);
    hostile.may_change_tables = true; /* a system call may be mprotect */
    hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "ruin_then"),
                                   ARGS(U64(seed), U32(what), U64(number)), NULL,
                                   what == THEN_RETURN ? TEST_TIMEOUT_NS : SHORT_NS);
    if (hostile.last != PH_OK && !hostile_is_end(hostile.last))
        fail_msg("%s: %s (%s)", text, ph_status_kind(hostile.last),
                 ph_sandbox_error(hostile.sandbox)->message);
    ph_status status = hostile.last;
    hostile_end(&hostile, text);
    return status;
}

static void system_calls_in_the_monitors_ruins_end_somehow(void **state) {
    const unsigned seeds = test_scaled(3);

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = 0; seed < seeds; seed++)
        for (uint64_t number = 0; number < 340; number += seed ? 7 : 1)
            if (!hostile_skip())
                in_ruins(seed * 977, THEN_SYSTEM_CALL, number);
    for (uint64_t seed = 0; seed < 4 * seeds; seed++)
        in_ruins(seed * 131, THEN_ALL_SYSTEM_CALLS, 0);
}

static void faults_in_the_monitors_ruins_end_somehow(void **state) {
    const unsigned seeds = test_scaled(20);

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = 0; seed < seeds; seed++)
        for (uint32_t what = THEN_FAULT; what <= THEN_DIVIDE; what++)
            if (in_ruins(seed * 31, what, 0) == PH_OK)
                fail_msg("a fault without an end");
}

static void a_return_through_ruined_boxes_is_sound(void **state) {
    (void)state;
    test_needs_kvm();
    /* The guest writes its answer after the destruction, and the monitor is not needed for it. */
    for (uint64_t seed = 0; seed < 4; seed++)
        assert_int_equal(in_ruins(seed * 17, THEN_RETURN, 0), PH_OK);
}

/* The mask of handled signals is the monitor's word, which the guest can forge: the host asks the monitor,
 * and the monitor finds no handler. */
static void forged_handlers_do_not_hide_a_fault(void **state) {
    static const uint64_t masks[] = {~0ull, 1ull << 10, 1ull << 3, 1ull << 4, 1ull << 7};
    static const uint32_t vectors[] = {0, 3, 6, 13, 14};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        for (size_t j = 0; j < sizeof vectors / sizeof vectors[0]; j++) {
            struct hostile hostile;
            char what[64];
            if (hostile_skip())
                continue;
            snprintf(what, sizeof what, "mask 0x%llx, vector %u", (unsigned long long)masks[i], vectors[j]);
            hostile_begin(&hostile, GUEST, NULL);
            ph_status status =
                hostile_call(&hostile, "forge_handlers", ARGS(U64(masks[i]), U32(vectors[j])), NULL);
            if (!hostile_is_end(status) || status == PH_E_TIMED_OUT)
                fail_msg("%s: %s (%s)", what, ph_status_kind(status),
                         ph_sandbox_error(hostile.sandbox)->message);
            assert_int_equal(ph_sandbox_error(hostile.sandbox)->vector, vectors[j]);
            hostile_end(&hostile, what);
        }
}

static void forged_handlers_in_ruins_end_somehow(void **state) {
    const unsigned seeds = test_scaled(30);

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = 0; seed < seeds; seed++) {
        struct hostile hostile;
        char what[64];
        snprintf(what, sizeof what, "forged handlers, seed %llu", (unsigned long long)seed);
        hostile_begin(&hostile, GUEST, NULL);
        hostile.may_change_tables = true;
        hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "forge_handlers_and_ruin"),
                                       ARGS(U64(seed)), NULL, SHORT_NS);
        if (!hostile_is_end(hostile.last))
            fail_msg("%s: %s (%s)", what, ph_status_kind(hostile.last),
                     ph_sandbox_error(hostile.sandbox)->message);
        hostile_end(&hostile, what);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_to_the_control_page_is_a_page_fault),
        cmocka_unit_test(the_control_page_can_be_read_and_not_run),
        cmocka_unit_test(supervisor_pages_are_out_of_reach),
        cmocka_unit_test(the_monitors_code_can_only_be_run),
        cmocka_unit_test(what_lies_between_is_not_there),
        cmocka_unit_test(the_ways_of_a_backend_are_not_the_guests),
        cmocka_unit_test(a_jump_to_where_nothing_is_is_told_as_one),
        cmocka_unit_test(very_many_runs_of_pages_are_no_matter),
        cmocka_unit_test(the_upper_half_is_not_there),
        cmocka_unit_test(an_address_that_is_not_canonical_is_a_fault),
        cmocka_unit_test(data_cannot_be_run),
        cmocka_unit_test(code_cannot_be_changed),
        cmocka_unit_test(a_jump_into_the_monitors_middle_ends_somehow),
        cmocka_unit_test(a_jump_into_the_fix_up_range_returns),
        cmocka_unit_test(a_jump_to_the_ways_into_the_monitor_ends_somehow),
        cmocka_unit_test(a_stack_overflow_is_named_so),
        cmocka_unit_test(an_exception_needs_no_stack_of_the_guests),
        cmocka_unit_test(a_system_call_and_a_doorbell_need_no_stack_of_the_guests),
        cmocka_unit_test(a_push_on_a_stack_that_is_none_is_a_fault),
        cmocka_unit_test(system_calls_in_the_monitors_ruins_end_somehow),
        cmocka_unit_test(faults_in_the_monitors_ruins_end_somehow),
        cmocka_unit_test(a_return_through_ruined_boxes_is_sound),
        cmocka_unit_test(forged_handlers_do_not_hide_a_fault),
        cmocka_unit_test(forged_handlers_in_ruins_end_somehow),
    };

    return cmocka_run_group_tests_name("hostile memory", tests, NULL, NULL);
}
