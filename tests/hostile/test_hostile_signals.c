/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that abuse signals. The monitor delivers them and is in the guest's reach; the host only hands it
 * exceptions. Whatever goes wrong there ends the guest with the status of the exception that began it, or of
 * the signal, and no handler that returns to its fault can keep the host busy for longer than the time-out.
 */
#include "hostile/hostile.h"

#include <linux/errno.h>
#include <signal.h>
#include <stdio.h>

#define GUEST "hostile_signals"

/* A call that may take long takes no longer than this, and ends within the bound whatever the machine does.
 */
#define SHORT_NS 100000000ull
#define BOUND_NS 10000000000ull

/* A fault that every lie here begins with. */
#define FIRST_FAULT 0x1000u

static ph_error expect(const char *name, const ph_value *args, size_t count, ph_status wanted) {
    ph_error error;

    hostile_lie(GUEST, name, args, count, wanted, &error);
    return error;
}

static void expect_time_out(const char *name, const ph_value *args, size_t count) {
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    uint64_t start = test_now_ns();
    hostile.last =
        ph_call_timeout(hostile.sandbox, test_export(hostile.image, name), args, count, NULL, SHORT_NS);
    uint64_t took = test_now_ns() - start;
    hostile_expect(&hostile, hostile.last, PH_E_TIMED_OUT, name);
    if (took < SHORT_NS || took > BOUND_NS)
        fail_msg("%s: a time-out of %llu ns ended it after %llu", name, SHORT_NS, (unsigned long long)took);
    hostile_end(&hostile, name);
}

static void a_handler_that_returns_to_its_fault_ends_by_its_time_out(void **state) {
    (void)state;
    test_needs_kvm();
    expect_time_out("return_to_fault", NO_ARGS);
    expect_time_out("return_to_undefined", NO_ARGS);
}

static void handlers_that_fault_for_ever_run_out_of_stack(void **state) {
    (void)state;
    test_needs_kvm();
    ph_config config = PH_CONFIG_INIT;
    struct hostile hostile;

    config.stack = 2ull << 20;
    hostile_begin(&hostile, GUEST, &config);
    hostile_expect(&hostile, hostile_call(&hostile, "recurse_in_handlers", NO_ARGS, NULL), PH_E_DOUBLE_FAULT,
                   "recurse_in_handlers");
    assert_int_equal(ph_sandbox_error(hostile.sandbox)->vector, 14);
    hostile_end(&hostile, "recurse_in_handlers");
}

static void a_fault_while_its_signal_is_blocked_is_the_fault(void **state) {
    (void)state;
    test_needs_kvm();
    ph_error error = expect("fault_in_handler", NO_ARGS, PH_E_PAGE_FAULT);

    assert_int_equal(error.address, 0x2000);
    assert_string_equal(error.function, "fault_again");
}

static void a_handler_that_is_no_code_is_a_fault_where_it_is(void **state) {
    static const struct {
        uint64_t handler;
        ph_status wanted;
    } handlers[] = {
        {0xffffffff81000000, PH_E_PAGE_FAULT},         {0x800000000000, PH_E_GENERAL_PROTECTION},
        {0x8000000000000000, PH_E_GENERAL_PROTECTION}, {2, PH_E_PAGE_FAULT},
        {PH__GVA(PH__CONTROL_GPA), PH_E_PAGE_FAULT},   {PH__GVA(PH__MONITOR_GPA), PH_E_PAGE_FAULT},
        {PH__GVA(PH__TABLES_GPA), PH_E_PAGE_FAULT},    {PH__GVA(PH__IO_GPA), PH_E_PAGE_FAULT},
    };
    const uint64_t restorer = 0x04000000; /* SA_RESTORER */

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        expect("fault_with_action", ARGS(U64(handlers[i].handler), U64(0), U64(restorer)),
               handlers[i].wanted);
        expect("raise_with_action", ARGS(U64(handlers[i].handler), U64(0), U64(restorer)),
               handlers[i].wanted);
    }
}

/* A handler in the monitor's code runs with the guest's rights, so it ends in any way but success. */
static void a_handler_in_the_monitor_ends_somehow(void **state) {
    (void)state;
    test_needs_kvm();
    for (uint32_t at = ph__monitor()->text; at < ph__monitor()->data; at += 769) {
        struct hostile hostile;
        hostile_begin(&hostile, GUEST, NULL);
        hostile.may_change_tables = true;
        const uint64_t handler = PH__GVA(PH__MONITOR_GPA) + at;
        hostile.last = ph_call_timeout(hostile.sandbox, test_export(hostile.image, "fault_with_action"),
                                       ARGS(U64(handler), U64(handler), U64(0x44000000)), NULL, SHORT_NS);
        if (hostile.last != PH_OK && !hostile_is_end(hostile.last))
            fail_msg("a handler at 0x%llx: %s", (unsigned long long)handler, ph_status_kind(hostile.last));
        hostile_end(&hostile, "a handler in the monitor");
    }
}

static void a_handler_without_a_restorer_cannot_be_entered(void **state) {
    (void)state;
    test_needs_kvm();
    ph_error error = expect("fault_with_action", ARGS(U64(0), U64(0), U64(0)), PH_E_DOUBLE_FAULT);

    assert_int_equal(error.vector, 14);
    assert_int_equal(error.address, FIRST_FAULT);
    assert_string_equal(error.function, "fault_with_action");
    error = expect("raise_with_action", ARGS(U64(0), U64(0), U64(0)), PH_E_SIGNALLED);
    assert_int_equal(error.signal, SIGSEGV);
}

static void a_restorer_that_is_no_code_is_a_fault(void **state) {
    (void)state;
    test_needs_kvm();
    expect("fault_with_action", ARGS(U64(0), U64(0xffffffff81000000), U64(0x04000000)), PH_E_PAGE_FAULT);
    expect("fault_with_action", ARGS(U64(0), U64(0x800000000000), U64(0x04000000)), PH_E_GENERAL_PROTECTION);
    expect("raise_with_action", ARGS(U64(0), U64(PH__GVA(PH__TABLES_GPA)), U64(0x04000000)), PH_E_PAGE_FAULT);
}

static void an_alternate_stack_that_is_none_cannot_be_used(void **state) {
    static const uint64_t stacks[][2] = {
        {0, 8192},
        {8, 8192},
        {PH__GVA(PH__CONTROL_GPA), 8192},
        {PH__GVA(PH__TABLES_GPA), 8192},
        {PH__GVA(PH__RING0_STACK_GPA), 4096},
        {PH__GVA(PH__MONITOR_STACK_GPA), PH__MONITOR_STACK_SIZE},
        {PH__GVA(PH__MONITOR_GPA) + 0x8000, 65536},
        {PH__GVA(PH__IO_GPA), PH__IO_SIZE},
        {0x800000000000, 8192},
        {0x8000000000000000, 1ull << 62},
        {0xffff800000000000, 65536},
        {0xffffffffffff0000, 65535},
        {0xffffffffffff0000, 65536},
        {0xfffffffffffff000, 0x4000},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        ph_error error =
            expect("fault_on_stack", ARGS(U64(stacks[i][0]), U64(stacks[i][1]), U64(0)), PH_E_DOUBLE_FAULT);
        assert_int_equal(error.vector, 14);
        assert_int_equal(error.address, FIRST_FAULT);
    }
}

static void a_stack_pointer_that_is_none_cannot_take_a_frame(void **state) {
    static const uint64_t pointers[] = {8,
                                        0x800000000000,
                                        0xffff800000000000,
                                        ~0ull,
                                        PH__GVA(PH__TABLES_GPA) + 4096,
                                        PH__GVA(PH__MONITOR_STACK_GPA) + PH__MONITOR_STACK_SIZE};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        expect("fault_on_stack", ARGS(U64(8), U64(8192), U64(pointers[i])), PH_E_DOUBLE_FAULT);
}

static void an_alternate_stack_that_is_too_small_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    ph_value result = {.type = PH_I64};

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile,
                   hostile_call(&hostile, "fault_on_stack", ARGS(U64(0x10000), U64(2047), U64(0)), &result),
                   PH_OK, "a tiny stack");
    assert_int_equal(result.i64, -ENOMEM);
    hostile_end(&hostile, "a tiny stack");
}

/* ---- frames -------------------------------------------------------------------------------------------- */

static void a_return_to_no_address_of_the_guests_is_a_segmentation_fault(void **state) {
    static const uint64_t addresses[] = {0x800000000000,
                                         0x8000000000000000,
                                         0xffff800000000000,
                                         0xffffffff81000000,
                                         ~0ull,
                                         PH__GVA(PH__MONITOR_GPA) + 0x2000,
                                         PH__GVA(PH__CONTROL_GPA)};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        ph_error error =
            expect("return_from_nothing", ARGS(U64(addresses[i]), U64(0), U64(2), U64(0)), PH_E_SIGNALLED);
        assert_int_equal(error.signal, SIGSEGV);
    }
    expect("return_from_nothing", ARGS(U64(0), U64(0), U64(2), U64(0)), PH_E_PAGE_FAULT);
}

/* Selectors, IOPL and the rest of a frame's flags are not taken over. */
static void a_frame_cannot_raise_the_guests_rights(void **state) {
    static const uint64_t flags[] = {2, 0x3000, 0x20000, 0x4000, 0x180000, ~0ull, ~0x100ull};
    static const uint64_t stacks[] = {0, 0x800000000000, ~0ull, PH__GVA(PH__TABLES_GPA) + 4096};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        for (size_t j = 0; j < sizeof stacks / sizeof stacks[0]; j++) {
            struct hostile hostile;
            if (hostile_skip())
                continue;
            hostile_begin(&hostile, GUEST, NULL);
            /* To the first instruction of the program, which finds no stack. */
            const uint64_t rip = hostile.image->entry;
            ph_status status = hostile_call(&hostile, "return_from_nothing",
                                            ARGS(U64(rip), U64(stacks[j]), U64(flags[i]), U64(0)), NULL);
            if (status != PH_E_PAGE_FAULT && status != PH_E_GENERAL_PROTECTION && status != PH_E_BREAKPOINT &&
                status != PH_E_EXCEPTION && status != PH_E_ALIGNMENT)
                fail_msg("flags 0x%llx, stack 0x%llx: %s (%s)", (unsigned long long)flags[i],
                         (unsigned long long)stacks[j], ph_status_kind(status),
                         ph_sandbox_error(hostile.sandbox)->message);
            hostile_end(&hostile, "a frame with rights");
        }
}

static void a_vector_state_of_rubbish_is_a_segmentation_fault(void **state) {
    const unsigned seeds = test_scaled(20);

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = 0; seed < seeds; seed++)
        for (uint64_t offset = 0; offset <= 64; offset += 8) {
            struct hostile hostile;
            if (hostile_skip())
                continue;
            hostile_begin(&hostile, GUEST, NULL);
            ph_status status =
                hostile_call(&hostile, "return_with_state", ARGS(U64(seed * 77), U64(offset)), NULL);
            /* Rubbish may be a state by chance; the return then works, and ends at an undefined instruction.
             */
            if (status != PH_E_SIGNALLED && status != PH_E_UNDEFINED_INSTRUCTION &&
                status != PH_E_FLOATING_POINT)
                fail_msg("seed %llu at %llu: %s (%s)", (unsigned long long)seed, (unsigned long long)offset,
                         ph_status_kind(status), ph_sandbox_error(hostile.sandbox)->message);
            hostile_end(&hostile, "a vector state of rubbish");
        }
}

static void a_vector_state_somewhere_else_is_a_segmentation_fault(void **state) {
    static const uint64_t addresses[] = {1,
                                         8,
                                         64,
                                         0x800000000000,
                                         0xffff800000000000,
                                         ~0ull,
                                         ~63ull,
                                         PH__GVA(PH__TABLES_GPA),
                                         PH__GVA(PH__MONITOR_STACK_GPA),
                                         PH__WINDOW_GVA - 64};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        expect("return_from_nothing", ARGS(U64(0x10000), U64(0), U64(2), U64(addresses[i])), PH_E_SIGNALLED);
}

static void a_frame_somewhere_else_is_a_segmentation_fault(void **state) {
    static const uint64_t stacks[] = {0,
                                      8,
                                      0x800000000000,
                                      0xffff800000000000,
                                      ~0ull,
                                      ~7ull,
                                      PH__GVA(PH__TABLES_GPA),
                                      PH__GVA(PH__MONITOR_STACK_GPA),
                                      PH__WINDOW_GVA - 64};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++)
        expect("return_on_stack", ARGS(U64(stacks[i])), PH_E_SIGNALLED);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static void a_program_can_step_through_itself(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    ph_value result = {.type = PH_U64};

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "step_through", NO_ARGS, &result), PH_OK, "step_through");
    assert_true(result.u64 >= 30);
    hostile_end(&hostile, "step_through");
}

static void an_exception_that_was_handled_cannot_be_claimed_later(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "fault_and_repair", NO_ARGS, NULL), PH_OK,
                   "fault_and_repair");
    hostile_expect(&hostile, hostile_call(&hostile, "claim_unhandled", NO_ARGS, NULL), PH_E_PROTOCOL,
                   "claim_unhandled");
    hostile_end(&hostile, "claim_unhandled");
}

/* Every signal's default action, as Linux has it: those that would do nothing or stop the program do nothing.
 */
static void every_signal_that_is_sent_has_its_end(void **state) {
    (void)state;
    test_needs_kvm();
    for (uint64_t number = 1; number <= 64; number++) {
        if (hostile_skip())
            continue;
        bool ignored = number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH ||
                       number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
        ph_status ended = number == SIGABRT ? PH_E_ABORTED : PH_E_SIGNALLED;
        ph_error error = expect("send", ARGS(U64(number)), ignored ? PH_OK : ended);
        if (!ignored)
            assert_int_equal(error.signal, number);
    }
    expect("send", ARGS(U64(0)), PH_OK);
    expect("send", ARGS(U64(65)), PH_OK);
    expect("send", ARGS(U64(~0ull)), PH_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_that_returns_to_its_fault_ends_by_its_time_out),
        cmocka_unit_test(handlers_that_fault_for_ever_run_out_of_stack),
        cmocka_unit_test(a_fault_while_its_signal_is_blocked_is_the_fault),
        cmocka_unit_test(a_handler_that_is_no_code_is_a_fault_where_it_is),
        cmocka_unit_test(a_handler_in_the_monitor_ends_somehow),
        cmocka_unit_test(a_handler_without_a_restorer_cannot_be_entered),
        cmocka_unit_test(a_restorer_that_is_no_code_is_a_fault),
        cmocka_unit_test(an_alternate_stack_that_is_none_cannot_be_used),
        cmocka_unit_test(a_stack_pointer_that_is_none_cannot_take_a_frame),
        cmocka_unit_test(an_alternate_stack_that_is_too_small_is_refused),
        cmocka_unit_test(a_return_to_no_address_of_the_guests_is_a_segmentation_fault),
        cmocka_unit_test(a_frame_cannot_raise_the_guests_rights),
        cmocka_unit_test(a_vector_state_of_rubbish_is_a_segmentation_fault),
        cmocka_unit_test(a_vector_state_somewhere_else_is_a_segmentation_fault),
        cmocka_unit_test(a_frame_somewhere_else_is_a_segmentation_fault),
        cmocka_unit_test(a_program_can_step_through_itself),
        cmocka_unit_test(an_exception_that_was_handled_cannot_be_claimed_later),
        cmocka_unit_test(every_signal_that_is_sent_has_its_end),
    };

    return cmocka_run_group_tests_name("hostile signals", tests, NULL, NULL);
}
