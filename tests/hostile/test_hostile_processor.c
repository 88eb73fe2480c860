/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that run instructions which are not theirs, and that put the processor into odd states before they
 * come to pinhole. Where processors differ, each answer that is right is listed: what is refused with one
 * exception by the one is refused with another by the next, and nothing may end in any other way.
 */
#include "hostile/hostile.h"

#include <stdio.h>
#include <string.h>

#include "support/processor.h"

#define INSTRUCTIONS "hostile_instructions"
#define PROCESSOR "hostile_processor"

/* A set of statuses that are right. */
enum {
    OK = 1,
    PRIVILEGED = 2,
    UNDEFINED = 4,
    PROTECTION = 8,
    PAGE_FAULT = 16,
    BREAKPOINT = 32,
    EXCEPTION = 64,
    PROTOCOL = 128,
    TIMED_OUT = 256,
    DIVIDE = 512,
    ALIGNMENT = 1024,
    FLOATING_POINT = 2048,
    REFUSED = PRIVILEGED | UNDEFINED | PROTECTION,
};

static unsigned set_of(ph_status status) {
    switch (status) {
    case PH_OK:
        return OK;
    case PH_E_PRIVILEGED_INSTRUCTION:
        return PRIVILEGED;
    case PH_E_UNDEFINED_INSTRUCTION:
        return UNDEFINED;
    case PH_E_GENERAL_PROTECTION:
        return PROTECTION;
    case PH_E_PAGE_FAULT:
        return PAGE_FAULT;
    case PH_E_BREAKPOINT:
        return BREAKPOINT;
    case PH_E_EXCEPTION:
        return EXCEPTION;
    case PH_E_PROTOCOL:
        return PROTOCOL;
    case PH_E_TIMED_OUT:
        return TIMED_OUT;
    case PH_E_DIVIDE:
        return DIVIDE;
    case PH_E_ALIGNMENT:
        return ALIGNMENT;
    case PH_E_FLOATING_POINT:
        return FLOATING_POINT;
    default:
        return 0;
    }
}

/* Calls (name) and expects one of (wanted). Returns the error. */
static ph_error expect(const char *guest, const char *name, const ph_value *args, size_t count,
                       unsigned wanted) {
    struct hostile hostile;
    char what[96];

    snprintf(what, sizeof what, "%s %llx %llx", name, count > 0 ? (unsigned long long)args[0].u64 : 0,
             count > 1 ? (unsigned long long)args[1].u64 : 0);
    hostile_begin(&hostile, guest, NULL);
    hostile.may_change_tables = strcmp(name, "far_jump_protect") == 0;
    ph_status status = hostile_call(&hostile, name, args, count, NULL);
    if (!(set_of(status) & wanted))
        fail_msg("%s: %s (%s)", what, ph_status_kind(status), ph_sandbox_error(hostile.sandbox)->message);
    ph_error error = *ph_sandbox_error(hostile.sandbox);
    hostile_end(&hostile, what);
    return error;
}

struct instruction {
    const char *name;
    unsigned wanted;
};

static void run_all(const struct instruction *instructions, size_t count) {
    for (size_t i = 0; i < count; i++)
        expect(INSTRUCTIONS, instructions[i].name, NO_ARGS, instructions[i].wanted);
}

#define RUN_ALL(instructions) run_all(instructions, sizeof(instructions) / sizeof((instructions)[0]))

/* ---- instructions -------------------------------------------------------------------------------------- */

static void privileged_instructions_are_named_so(void **state) {
    static const struct instruction instructions[] = {
        {"hlt", PRIVILEGED},       {"cli", PRIVILEGED},       {"sti", PRIVILEGED},
        {"clts", PRIVILEGED},      {"invd", PRIVILEGED},      {"wbinvd", PRIVILEGED},
        {"read_cr0", PRIVILEGED},  {"read_cr2", PRIVILEGED},  {"read_cr3", PRIVILEGED},
        {"read_cr4", PRIVILEGED},  {"read_cr8", PRIVILEGED},  {"write_cr0", PRIVILEGED},
        {"write_cr3", PRIVILEGED}, {"write_cr4", PRIVILEGED}, {"write_cr8", PRIVILEGED},
        {"read_dr0", PRIVILEGED},  {"read_dr7", PRIVILEGED},  {"write_dr0", PRIVILEGED},
        {"write_dr7", PRIVILEGED}, {"lgdt", PRIVILEGED},      {"lidt", PRIVILEGED},
        {"lldt", PRIVILEGED},      {"ltr", PRIVILEGED},       {"lmsw", PRIVILEGED},
        {"invlpg", PRIVILEGED},    {"rdmsr", PRIVILEGED},     {"wrmsr", PRIVILEGED},
        {"swapgs", PRIVILEGED},    {"sysretq", PRIVILEGED},   {"xsetbv", PRIVILEGED},
        {"sysexit", REFUSED},
    };

    (void)state;
    test_needs_kvm();
    RUN_ALL(instructions);
}

/* Some processors do not have them, and say so. */
static void other_instructions_of_a_kernel_are_refused(void **state) {
    static const struct instruction instructions[] = {
        {"invpcid", REFUSED}, {"xsaves", REFUSED}, {"xrstors", REFUSED}, {"rsm", REFUSED},
        {"rdpmc", REFUSED},   {"clac", REFUSED},   {"stac", REFUSED},
    };

    (void)state;
    test_needs_kvm();
    RUN_ALL(instructions);
}

/* A hypercall in ring 3 has no effect. Some KVMs first try to change vmmcall to vmcall in the guest's code,
 * which is a write to a page that is not writable. */
static void instructions_of_a_hypervisor_do_nothing(void **state) {
    static const struct instruction instructions[] = {
        {"vmcall", OK | REFUSED},
        {"vmcall_random", OK | REFUSED},
        {"vmmcall", OK | REFUSED | PAGE_FAULT},
        {"vmxon", REFUSED},
        {"vmxoff", REFUSED},
        {"vmlaunch", REFUSED},
        {"vmresume", REFUSED},
        {"vmread", REFUSED},
        {"vmwrite", REFUSED},
        {"vmptrld", REFUSED},
        {"invept", REFUSED},
        {"invvpid", REFUSED},
        {"vmfunc", REFUSED},
        {"vmrun", REFUSED},
        {"vmload", REFUSED},
        {"vmsave", REFUSED},
        {"stgi", REFUSED},
        {"clgi", REFUSED},
        {"skinit", REFUSED},
        {"invlpga", REFUSED},
        {"getsec", REFUSED},
        {"encls", REFUSED},
        {"enclu", REFUSED},
        {"monitor", REFUSED},
        {"mwait", REFUSED},
        {"monitorx", OK | REFUSED},
        {"mwaitx", OK | REFUSED},
        {"umwait", OK | REFUSED},
        {"tpause", OK | REFUSED},
    };

    (void)state;
    test_needs_kvm();
    RUN_ALL(instructions);
}

static void undefined_instructions_are_named_so(void **state) {
    static const struct instruction instructions[] = {
        {"ud0", UNDEFINED},    {"ud1", UNDEFINED},     {"ud2", UNDEFINED},  {"lock_nothing", UNDEFINED},
        {"into", UNDEFINED},   {"push_cs", UNDEFINED}, {"salc", UNDEFINED}, {"far_call_imm", UNDEFINED},
        {"too_long", REFUSED}, {"sysenter", REFUSED},
    };

    (void)state;
    test_needs_kvm();
    RUN_ALL(instructions);
}

/* Unicorn 2.0.1 gives up on these; the guest ends all the same, and nothing else does. */
static void undefined_instructions_end_the_guest_alone(void **state) {
    static const char *const names[] = {"lock_cmp", "lock_cmps", "lock_bts_register", "far_call_register",
                                        "far_jump_register"};

    (void)state;
    test_needs_kvm();
    if (test_is_soft()) {
        test_needs_soft_guard();
    } else if (processor_is_emulated()) {
        print_message("SKIPPED: QEMU ends for these, and with it the machine\n");
        skip();
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect("hostile_undefined", names[i], NO_ARGS, test_is_soft() ? PROTOCOL | UNDEFINED : UNDEFINED);
}

static void the_last_address_is_as_any_other_without_a_page(void **state) {
    (void)state;
    test_needs_kvm();
    ph_error error = expect(INSTRUCTIONS, "jump_to_the_last_byte", NO_ARGS, PAGE_FAULT);
    assert_non_null(strstr(error.message, "ffffffffffffffff"));
}

static void breakpoints_are_named_so(void **state) {
    static const struct instruction instructions[] = {{"int1", BREAKPOINT}, {"int3", BREAKPOINT}};

    (void)state;
    test_needs_kvm();
    if (processor_is_emulated()) /* QEMU has no int1 */
        run_all(instructions + 1, 1);
    else
        RUN_ALL(instructions);
}

static void instructions_of_everybody_do_no_harm(void **state) {
    static const struct instruction instructions[] = {
        {"sgdt", OK | REFUSED},
        {"sidt", OK | REFUSED},
        {"sldt", OK | REFUSED},
        {"str", OK | REFUSED},
        {"smsw", OK | REFUSED},
        {"cpuid", OK},
        {"cpuid_huge", OK},
        {"rdtsc", OK},
        {"rdtscp", OK | REFUSED},
        {"xgetbv_odd", REFUSED},
        {"rdpkru", OK | REFUSED},
        {"wrpkru", OK | REFUSED},
        {"rdfsbase", OK},
        {"wrfsbase_upper", PAGE_FAULT},
        {"wrgsbase_upper", PAGE_FAULT},
        {"pause", OK},
        {"clflush_nowhere", OK | PAGE_FAULT},
        {"prefetch_nowhere", OK},
        {"bus_lock", OK},
        {"cmpxchg16b_odd", REFUSED},
        {"tsx", OK | REFUSED},
        {"xabort", OK | REFUSED},
        {"rdrand", OK | REFUSED},
        {"movsxd", OK},
    };

    (void)state;
    test_needs_kvm();
    RUN_ALL(instructions);
    expect(INSTRUCTIONS, "xgetbv", NO_ARGS, test_is_soft() ? REFUSED : OK);
    /* QEMU does not look at what it loads. */
    const unsigned loaded = processor_is_emulated() ? OK : 0;
    expect(INSTRUCTIONS, "wrfsbase_odd", NO_ARGS, PROTECTION | loaded);
    expect(INSTRUCTIONS, "wrgsbase_odd", NO_ARGS, PROTECTION | loaded);
    expect(INSTRUCTIONS, "xrstor_rubbish", NO_ARGS, REFUSED | loaded);
    expect(INSTRUCTIONS, "fxrstor_rubbish", NO_ARGS, REFUSED | loaded);
    expect(INSTRUCTIONS, "ldmxcsr_rubbish", NO_ARGS, REFUSED | loaded);
}

/* KVM on PVM takes a few vectors for itself: they stand for rdmsr, wrmsr and cpuid in guests that it has
 * rewritten. */
static void every_interrupt_instruction_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    for (uint32_t vector = 0; vector < 256; vector++) {
        unsigned wanted = PROTECTION;
        if (vector != 3 && vector != 4 && hostile_skip())
            continue;
        if (vector == 3)
            wanted = BREAKPOINT;
        else if (vector == 4)
            wanted = EXCEPTION;
        else if (is_pvm())
            wanted = vector == 0x1a ? OK : PROTECTION | UNDEFINED;
        ph_error error = expect(INSTRUCTIONS, "interrupt", ARGS(U32(vector)), wanted);
        if (vector == 3 || vector == 4)
            assert_int_equal(error.vector, vector);
    }
}

/* ---- flags --------------------------------------------------------------------------------------------- */

enum {
    THEN_NOTHING,
    THEN_SYSTEM_CALL,
    THEN_DOORBELL,
    THEN_UNDEFINED,
    THEN_BREAKPOINT,
    THEN_PAGE_FAULT,
    THEN_DIVIDE,
    THEN_UNALIGNED,
    THEN_RETURN,
    THEN_INTERRUPT_RETURN,
};

#define FLAG_TRAP 0x100ull
#define FLAG_DIRECTION 0x400ull
#define FLAG_IOPL 0x3000ull
#define FLAG_NESTED 0x4000ull
#define FLAG_RESUME 0x10000ull
#define FLAG_V86 0x20000ull
#define FLAG_ALIGNMENT 0x40000ull
#define FLAG_VIRTUAL 0x180000ull
#define FLAG_ID 0x200000ull

static void flags_do_not_get_in_the_way(void **state) {
    static const uint64_t flags[] = {
        FLAG_DIRECTION,     FLAG_IOPL, FLAG_NESTED,
        FLAG_RESUME,        FLAG_V86,  FLAG_ALIGNMENT,
        FLAG_VIRTUAL,       FLAG_ID,   FLAG_DIRECTION | FLAG_NESTED | FLAG_ALIGNMENT | FLAG_ID,
        ~0ull & ~FLAG_TRAP,
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (hostile_skip())
            continue;
        /* iretq in ring 3 with NT wants a task that is not there. */
        const unsigned nested = flags[i] & FLAG_NESTED ? PROTECTION : 0;
        const unsigned unaligned = flags[i] & FLAG_ALIGNMENT && !processor_is_emulated() ? ALIGNMENT : 0;
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_NOTHING)), OK);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_SYSTEM_CALL)), OK);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_DOORBELL)), OK);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_UNDEFINED)), UNDEFINED);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_BREAKPOINT)), BREAKPOINT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_PAGE_FAULT)), PAGE_FAULT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_DIVIDE)), DIVIDE);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_UNALIGNED)), unaligned ? unaligned : OK);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_RETURN)), OK | unaligned);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_INTERRUPT_RETURN)),
               nested ? nested : OK);
    }
}

static void a_single_step_ends_the_guest_wherever_it_is(void **state) {
    static const uint64_t flags[] = {FLAG_TRAP, FLAG_TRAP | FLAG_RESUME, FLAG_TRAP | FLAG_NESTED};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const unsigned nested = flags[i] & FLAG_NESTED ? PROTECTION : 0;
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_NOTHING)), BREAKPOINT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_SYSTEM_CALL)), BREAKPOINT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_DOORBELL)), BREAKPOINT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_UNDEFINED)), UNDEFINED);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_BREAKPOINT)), BREAKPOINT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_PAGE_FAULT)), PAGE_FAULT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_DIVIDE)), DIVIDE);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_RETURN)), BREAKPOINT);
        expect(PROCESSOR, "with_flags", ARGS(U64(flags[i]), U32(THEN_INTERRUPT_RETURN)), BREAKPOINT | nested);
    }
}

/* Ring 3 gets neither I/O privilege nor interrupts nor virtual-8086 mode, however it asks. */
static void flags_of_ring_0_cannot_be_set(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    ph_value result = {.type = PH_U64};

    hostile_begin(&hostile, PROCESSOR, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "flags_set", ARGS(U64(~0ull & ~FLAG_TRAP)), &result),
                   PH_OK, "flags_set");
    assert_int_equal(result.u64 & (FLAG_IOPL | FLAG_V86 | FLAG_VIRTUAL), 0);
    hostile_end(&hostile, "flags_set");
}

/* What follows a load of SS is not stepped; the step comes later, wherever the processor is then. */
static void a_held_back_step_does_no_harm(void **state) {
    static const uint32_t ways[] = {THEN_SYSTEM_CALL, THEN_DOORBELL, THEN_BREAKPOINT, THEN_UNDEFINED};
    static const uint64_t flags[] = {2, FLAG_TRAP | 2, FLAG_TRAP | FLAG_RESUME | 2};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (size_t j = 0; j < sizeof flags / sizeof flags[0]; j++)
            expect(PROCESSOR, "stack_selector_then", ARGS(U32(ways[i]), U64(flags[j])),
                   OK | BREAKPOINT | UNDEFINED);
}

/* ---- selectors ----------------------------------------------------------------------------------------- */

/* Every descriptor of the GDT, null, some behind its end and some of an LDT; at every privilege. */
static const uint32_t selectors[] = {0,    1,    3,    4,    7,    8,    0xb,   0x10,   0x13,   0x18,  0x1b,
                                     0x20, 0x23, 0x28, 0x2b, 0x2c, 0x2f, 0x30,  0x33,   0x38,   0x3b,  0x40,
                                     0x43, 0x50, 0x7b, 0x80, 0xb8, 0xff, 0x100, 0x8000, 0xfff7, 0xffff};

/* KVM on PVM shows selectors of the host, where the same number can be another descriptor: a jump may get
 * through, into 32-bit code too, and then finds an undefined instruction. It never reaches ring 0. */
static void no_selector_leads_to_another_ring(void **state) {
    static const char *const names[] = {"far_jump",          "far_jump_system_call",
                                        "far_jump_int80",    "far_jump_sysenter",
                                        "far_jump_doorbell", "far_return",
                                        "far_call",          "load_ds",
                                        "load_es",           "load_fs",
                                        "load_gs",           "load_ss"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof selectors / sizeof selectors[0]; j++)
            if (!hostile_skip())
                expect(PROCESSOR, names[i], ARGS(U32(selectors[j])), UNDEFINED | PROTECTION | EXCEPTION);
}

static void an_interrupt_return_leads_to_no_other_ring(void **state) {
    static const uint64_t addresses[] = {0, 0x401000, 0x800000000000, 0xffffffff81000000,
                                         PH__GVA(PH__MONITOR_GPA)};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++)
        for (size_t j = 0; j < sizeof addresses / sizeof addresses[0]; j++) {
            /* A return that works goes on somewhere, in ring 3, so that anything may come of it but success.
             */
            const uint64_t flags = j % 2 ? ~FLAG_TRAP : 2;
            struct hostile hostile;
            char what[64];
            if (hostile_skip())
                continue;
            snprintf(what, sizeof what, "iretq to 0x%x:0x%llx", selectors[i],
                     (unsigned long long)addresses[j]);
            hostile_begin(&hostile, PROCESSOR, NULL);
            hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "interrupt_return"),
                                           ARGS(U64(addresses[j]), U64(selectors[i]), U64(flags),
                                                U64(hostile.sandbox->memory.layout.stack.gva + 4096),
                                                U64(selectors[i] ^ 8)),
                                           NULL, 50000000);
            if (!hostile_is_end(hostile.last))
                fail_msg("%s: %s (%s)", what, ph_status_kind(hostile.last),
                         ph_sandbox_error(hostile.sandbox)->message);
            hostile_end(&hostile, what);
        }
}

/* ---- vector units and registers ------------------------------------------------------------------------ */

static void unmasked_floating_point_exceptions_are_named_so(void **state) {
    (void)state;
    test_needs_kvm();
    ph_error error = expect(PROCESSOR, "x87_unmasked", NO_ARGS, FLOATING_POINT);
    assert_int_equal(error.vector, 16);
    if (processor_is_emulated()) /* QEMU never raises the other */
        return;
    error = expect(PROCESSOR, "simd_unmasked", NO_ARGS, FLOATING_POINT);
    assert_int_equal(error.vector, 19);
}

static void a_pending_x87_exception_does_not_get_in_the_way(void **state) {
    (void)state;
    test_needs_kvm();
    expect(PROCESSOR, "x87_pending_then", ARGS(U32(THEN_SYSTEM_CALL)), OK);
    expect(PROCESSOR, "x87_pending_then", ARGS(U32(THEN_DOORBELL)), OK);
}

static void system_calls_with_hostile_registers_end_somehow(void **state) {
    static const uint64_t values[] = {
        ~0ull,
        1ull << 63,
        0x800000000000,
        0xffff800000000000,
        PH__GVA(PH__MONITOR_GPA),
        PH__GVA(PH__TABLES_GPA),
        PH__GVA(PH__MONITOR_STACK_GPA) + PH__MONITOR_STACK_SIZE - 8,
        1,
    };
    struct hostile hostile;
    bool open = false;

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        for (uint64_t number = 0; number < 520; number++) {
            char what[64];
            if (hostile_skip())
                continue;
            snprintf(what, sizeof what, "system call %llu of 0x%llx", (unsigned long long)number,
                     (unsigned long long)values[i]);
            if (!open) {
                hostile_begin(&hostile, PROCESSOR, NULL);
                hostile.may_change_tables = true; /* one is mprotect */
            }
            hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "system_call_with"),
                                           ARGS(U64(number), U64(values[i])), NULL, 50000000);
            if (hostile.last != PH_OK && !hostile_is_end(hostile.last))
                fail_msg("%s: %s (%s)", what, ph_status_kind(hostile.last),
                         ph_sandbox_error(hostile.sandbox)->message);
            open = hostile.last == PH_OK;
            if (!open)
                hostile_end(&hostile, what);
        }
    if (open)
        hostile_end(&hostile, "system calls with hostile registers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(privileged_instructions_are_named_so),
        cmocka_unit_test(other_instructions_of_a_kernel_are_refused),
        cmocka_unit_test(instructions_of_a_hypervisor_do_nothing),
        cmocka_unit_test(undefined_instructions_are_named_so),
        cmocka_unit_test(undefined_instructions_end_the_guest_alone),
        cmocka_unit_test(the_last_address_is_as_any_other_without_a_page),
        cmocka_unit_test(breakpoints_are_named_so),
        cmocka_unit_test(instructions_of_everybody_do_no_harm),
        cmocka_unit_test(every_interrupt_instruction_is_refused),
        cmocka_unit_test(flags_do_not_get_in_the_way),
        cmocka_unit_test(a_single_step_ends_the_guest_wherever_it_is),
        cmocka_unit_test(flags_of_ring_0_cannot_be_set),
        cmocka_unit_test(a_held_back_step_does_no_harm),
        cmocka_unit_test(no_selector_leads_to_another_ring),
        cmocka_unit_test(an_interrupt_return_leads_to_no_other_ring),
        cmocka_unit_test(unmasked_floating_point_exceptions_are_named_so),
        cmocka_unit_test(a_pending_x87_exception_does_not_get_in_the_way),
        cmocka_unit_test(system_calls_with_hostile_registers_end_somehow),
    };

    return cmocka_run_group_tests_name("hostile processor states", tests, NULL, NULL);
}
