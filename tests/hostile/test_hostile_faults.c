/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Each way in which a guest can come to an end by a fault has a status of its own, and the error says what
 * the processor said: vector, error code, address, where it was. The guest is the example `faults`.
 */
#include "hostile/hostile.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUEST "faults"
#define TIMEOUT_NS 200000000ull

/* Bits of a page fault's error code (SDM volume 3, chapter 4.7). */
enum { PRESENT = 1, WRITE = 2, USER = 4, FETCH = 16 };

struct fault {
    const char *name;
    const char *function; /* where it is found */
    ph_status status;
    uint32_t vector;
    uint32_t error_code;
};

static const struct fault faults[] = {
    {"page_fault_read", "page_fault_read", PH_E_PAGE_FAULT, 14, USER},
    {"page_fault_write", "page_fault_write", PH_E_PAGE_FAULT, 14, USER | WRITE | PRESENT},
    {"page_fault_exec", "", PH_E_PAGE_FAULT, 14, USER | FETCH | PRESENT},
    {"null", "null_read", PH_E_PAGE_FAULT, 14, USER},
    {"undefined", "undefined", PH_E_UNDEFINED_INSTRUCTION, 6, 0},
    {"divide", "divide", PH_E_DIVIDE, 0, 0},
    {"general_protection", "general_protection", PH_E_GENERAL_PROTECTION, 13, 0},
    {"breakpoint", "breakpoint", PH_E_BREAKPOINT, 3, 0},
    {"privileged", "privileged", PH_E_PRIVILEGED_INSTRUCTION, 13, 0},
    {"stack_overflow", "recurse", PH_E_STACK_OVERFLOW, 14, USER | WRITE},
};

static void begin(struct hostile *hostile) {
    hostile_begin(hostile, GUEST, NULL);
    hostile->honest = "heap_exhaustion";
}

static void check(const struct hostile *hostile, const struct fault *fault) {
    const ph_error *error = ph_sandbox_error(hostile->sandbox);
    uint64_t offset = 0;

    if (error->vector != fault->vector || error->error_code != fault->error_code)
        fail_msg("%s: vector %u, error code 0x%x", fault->name, error->vector, error->error_code);
    assert_string_equal(error->function, fault->function);
    assert_true(error->rip != 0);
    if (fault->function[0]) {
        const char *symbol = ph__image_symbol(hostile->image, error->rip, &offset);
        assert_non_null(symbol);
        assert_string_equal(symbol, fault->function);
        assert_int_equal(error->function_offset, offset);
    }
    /* The message says the same, with numbers in hexadecimal. */
    char rip[32];
    snprintf(rip, sizeof rip, "0x%llx", (unsigned long long)error->rip);
    if (!strstr(error->message, rip) || !strstr(error->message, fault->function))
        fail_msg("%s: the message does not say where it was: %s", fault->name, error->message);
}

static void each_fault_has_its_status_and_says_where(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct hostile hostile;
        begin(&hostile);
        hostile_expect(&hostile, hostile_call(&hostile, faults[i].name, NO_ARGS, NULL), faults[i].status,
                       faults[i].name);
        check(&hostile, &faults[i]);
        hostile_end(&hostile, faults[i].name);
    }
}

static void a_page_fault_tells_its_address(void **state) {
    static const struct {
        const char *name;
        uint64_t address;
    } known[] = {{"page_fault_read", 0x123400000000}, {"null", 0}};
    struct hostile hostile;

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        begin(&hostile);
        hostile_call(&hostile, known[i].name, NO_ARGS, NULL);
        assert_int_equal(ph_sandbox_error(hostile.sandbox)->address, known[i].address);
        hostile_end(&hostile, known[i].name);
    }
    /* Data that was to be run: the address is where the processor was. */
    begin(&hostile);
    hostile_call(&hostile, "page_fault_exec", NO_ARGS, NULL);
    assert_int_equal(ph_sandbox_error(hostile.sandbox)->address, ph_sandbox_error(hostile.sandbox)->rip);
    hostile_end(&hostile, "page_fault_exec");
    /* Read-only data is in the image. */
    begin(&hostile);
    hostile_call(&hostile, "page_fault_write", NO_ARGS, NULL);
    const uint64_t written = ph_sandbox_error(hostile.sandbox)->address;
    assert_true(written >= hostile.image->gva && written < hostile.image->gva + hostile.image->size);
    hostile_end(&hostile, "page_fault_write");
}

static void a_stack_overflow_is_told_by_its_guard_page(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    begin(&hostile);
    hostile_expect(&hostile, hostile_call(&hostile, "stack_overflow", NO_ARGS, NULL), PH_E_STACK_OVERFLOW,
                   "stack_overflow");
    const uint64_t address = ph_sandbox_error(hostile.sandbox)->address;
    const uint64_t bottom = hostile.sandbox->memory.layout.stack.gva;
    assert_true(address < bottom && address >= bottom - PH__PAGE_SIZE);
    hostile_end(&hostile, "stack_overflow");
}

static void a_foreign_port_is_a_breach_of_the_protocol(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    begin(&hostile);
    hostile_expect(&hostile, hostile_call(&hostile, "foreign_port", NO_ARGS, NULL), PH_E_PROTOCOL,
                   "foreign_port");
    assert_string_equal(ph_sandbox_error(hostile.sandbox)->function, "foreign_port");
    hostile_end(&hostile, "foreign_port");
}

static void a_fault_that_cannot_be_delivered_is_a_double_fault(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    begin(&hostile);
    hostile_expect(&hostile, hostile_call(&hostile, "double_fault", NO_ARGS, NULL), PH_E_DOUBLE_FAULT,
                   "double_fault");
    assert_string_equal(ph_sandbox_error(hostile.sandbox)->function, "double_fault");
    hostile_end(&hostile, "double_fault");
}

static void an_abort_has_its_signal(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    begin(&hostile);
    hostile_expect(&hostile, hostile_call(&hostile, "abort", NO_ARGS, NULL), PH_E_ABORTED, "abort");
    assert_int_equal(ph_sandbox_error(hostile.sandbox)->signal, SIGABRT);
    hostile_end(&hostile, "abort");
}

static void an_exit_during_a_call_has_its_status(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    begin(&hostile);
    hostile_expect(&hostile, hostile_call(&hostile, "exit", NO_ARGS, NULL), PH_E_EXITED, "exit");
    assert_int_equal(ph_sandbox_error(hostile.sandbox)->code, 7);
    hostile_end(&hostile, "exit");
}

static void an_endless_loop_is_found_in_its_function(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    begin(&hostile);
    hostile.last =
        ph_call_timeout(hostile.sandbox, test_export(hostile.image, "spin"), NO_ARGS, NULL, TIMEOUT_NS);
    hostile_expect(&hostile, hostile.last, PH_E_TIMED_OUT, "spin");
    assert_string_equal(ph_sandbox_error(hostile.sandbox)->function, "busy_loop");
    hostile_end(&hostile, "spin");
}

/* The heap's end is no fault: malloc says so, and the guest goes on. */
static void an_exhausted_heap_is_no_fault(void **state) {
    (void)state;
    test_needs_kvm();
    ph_value result = {.type = PH_BOOL};
    struct hostile hostile;

    begin(&hostile);
    for (int i = 0; i < 3; i++) {
        hostile_expect(&hostile, hostile_call(&hostile, "heap_exhaustion", NO_ARGS, &result), PH_OK,
                       "heap_exhaustion");
        assert_true(result.boolean);
    }
    assert_int_equal(hostile_call(&hostile, "undefined", NO_ARGS, NULL), PH_E_UNDEFINED_INSTRUCTION);
    hostile_end(&hostile, "heap_exhaustion");
}

/* Whatever the instruction, and whatever is in front of it. The guest has in R8 where it is. */
static void a_fault_is_at_its_instruction(void **state) {
    static const struct {
        const char *name;
        uint32_t error_code;
    } ends[] = {
        {"fault_load", USER},
        {"fault_vector_load", USER},
        {"fault_vector_store", USER | WRITE},
        {"fault_exchange", USER | WRITE},
        {"fault_locked", USER | WRITE},
        {"fault_x87", USER},
        {"fault_string", USER | WRITE},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct hostile hostile;
        hostile_begin(&hostile, "hostile_instructions", NULL);
        const ph_status status = hostile_call(&hostile, ends[i].name, NO_ARGS, NULL);
        const ph_error *error = ph_sandbox_error(hostile.sandbox);
        const uint64_t place = hostile.sandbox->vcpu->regs->r8;
        if (status != PH_E_PAGE_FAULT || error->error_code != ends[i].error_code || error->rip != place)
            fail_msg("%s: error code 0x%x at 0x%llx instead of 0x%llx: %s", ends[i].name, error->error_code,
                     (unsigned long long)error->rip, (unsigned long long)place, error->message);
        hostile_end(&hostile, ends[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_has_its_status_and_says_where),
        cmocka_unit_test(a_page_fault_tells_its_address),
        cmocka_unit_test(a_fault_is_at_its_instruction),
        cmocka_unit_test(a_stack_overflow_is_told_by_its_guard_page),
        cmocka_unit_test(a_foreign_port_is_a_breach_of_the_protocol),
        cmocka_unit_test(a_fault_that_cannot_be_delivered_is_a_double_fault),
        cmocka_unit_test(an_abort_has_its_signal),
        cmocka_unit_test(an_exit_during_a_call_has_its_status),
        cmocka_unit_test(an_endless_loop_is_found_in_its_function),
        cmocka_unit_test(an_exhausted_heap_is_no_fault),
    };

    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
