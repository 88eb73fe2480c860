/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that use any other I/O instruction, width or port than the doorbell. All of it is a breach of the
 * protocol, whether the processor refuses it or the host sees it.
 */
#include "hostile/hostile.h"

#include <stdio.h>
#include <string.h>

#define GUEST "hostile_io"

static void refuse(const char *name, uint32_t port, uint64_t rax) {
    struct hostile hostile;
    char what[64];

    snprintf(what, sizeof what, "%s, port 0x%x", name, port);
    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, name, ARGS(U32(port), U64(rax)), NULL), PH_E_PROTOCOL,
                   what);
    /* Only the doorbell's ports get as far as the host; the processor refuses the others. */
    if ((port & 0xffff) < PH__DOORBELL_PORT || (port & 0xffff) >= PH__DOORBELL_PORT + 4)
        assert_int_equal(ph_sandbox_error(hostile.sandbox)->vector, 13);
    hostile_end(&hostile, what);
}

static void refuse_string(const char *name, uint32_t port, uint64_t rax, uint32_t word, uint64_t count) {
    struct hostile hostile;
    char what[96];

    snprintf(what, sizeof what, "%s, port 0x%x, %llu times", name, port, (unsigned long long)count);
    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile,
                   hostile_call(&hostile, name, ARGS(U32(port), U64(rax), U32(word), U64(count)), NULL),
                   PH_E_PROTOCOL, what);
    hostile_end(&hostile, what);
}

static void refuse_fixed(const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        hostile_lie(GUEST, names[i], NO_ARGS, PH_E_PROTOCOL, NULL);
}

/* The doorbell's own, what overlaps it, its neighbours, and ports that do something on a PC. */
static const uint32_t ports[] = {0x50, 0x51, 0x52, 0x53,  0x4d,  0x4e,  0x4f,   0x54,   0x00,   0x20,
                                 0x60, 0x64, 0x70, 0x78,  0x80,  0x92,  0x3f8,  0xcf8,  0xcf9,  0x5658,
                                 0xb2, 0x77, 0x7f, 0x400, 0x604, 0x510, 0xfffe, 0xffff, 0x10050};

static void out_to_any_other_port_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        if (hostile_skip())
            continue;
        refuse("out_8", ports[i], 2);
        refuse("out_16", ports[i], 2);
        if ((ports[i] & 0xffff) != 0x50)
            refuse("out_32", ports[i], 2);
    }
}

static void in_from_any_port_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        if (hostile_skip())
            continue;
        refuse("in_8", ports[i], 2);
        refuse("in_16", ports[i], 2);
        refuse("in_32", ports[i], 2);
    }
}

/* What the last doorbell put out may still be where KVM will put what an `in` gets. */
static void in_after_a_doorbell_is_no_doorbell(void **state) {
    (void)state;
    test_needs_kvm();
    hostile_lie(GUEST, "sleep_then_in", NO_ARGS, PH_E_PROTOCOL, NULL);
}

/* `out %eax, %dx` with 0x50 in DX is the doorbell, since the host cannot tell and need not. */
static void the_doorbell_through_dx_is_the_doorbell(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "out_32", ARGS(U32(0x50), U64(99)), NULL), PH_E_PROTOCOL,
                   "an operation that does not exist");
    assert_non_null(strstr(ph_sandbox_error(hostile.sandbox)->message, "doorbell that means nothing"));
    hostile_end(&hostile, "out_32");
}

static void string_output_is_refused(void **state) {
    static const char *const names[] = {"outs_8", "outs_16", "outs_32"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        refuse_string(names[i], 0x50, PH__DOORBELL_SLEEP, 0, 1);
        refuse_string(names[i], 0x50, 0, PH__DOORBELL_RETURN, 1);
        refuse_string(names[i], 0x50, PH__DOORBELL_SLEEP, 0xffffff00 | PH__DOORBELL_SLEEP, 1);
        refuse_string(names[i], 0x51, 2, 2, 1);
        refuse_string(names[i], 0x80, 2, 2, 1);
    }
}

static void repeated_string_output_is_refused(void **state) {
    static const char *const names[] = {"rep_outs_8", "rep_outs_16", "rep_outs_32", "rep_outs_32_down"};
    static const uint64_t counts[] = {2, 3, 512, 1500};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++)
            if (!hostile_skip())
                refuse_string(names[i], 0x50, 2, 2, counts[j]);
    refuse_string("rep_outs_32", 0x4f, 2, 2, 2);
    refuse_string("rep_outs_8", 0xffff, 2, 2, 2);
}

static void string_input_is_refused(void **state) {
    static const char *const names[] = {"ins_8",      "ins_16",     "ins_32",         "rep_ins_8",
                                        "rep_ins_16", "rep_ins_32", "rep_ins_32_down"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        refuse_string(names[i], 0x50, 2, 2, 1);
        refuse_string(names[i], 0x50, 2, 2, 1024);
        refuse_string(names[i], 0x53, 2, 2, 1);
        refuse_string(names[i], 0x60, 2, 2, 1);
    }
}

/* A string of no elements does nothing, and is asked for nothing. */
static void a_string_of_nothing_does_nothing(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    ph_value result;

    hostile_begin(&hostile, GUEST, NULL);
    hostile_call(&hostile, "rep_outs_32", ARGS(U32(0x50), U64(5), U32(2), U64(0)), &result);
    if (hostile.last != PH_OK && hostile.last != PH_E_PROTOCOL)
        fail_msg("%s", ph_status_kind(hostile.last));
    hostile_end(&hostile, "rep_outs_32 of nothing");
}

static void string_io_with_bad_memory_is_refused(void **state) {
    static const uint64_t addresses[] = {0,
                                         8,
                                         PH__GVA(PH__TABLES_GPA),
                                         PH__GVA(PH__RING0_STACK_GPA),
                                         PH__GVA(PH__CONTROL_GPA),
                                         PH__GVA(PH__MONITOR_GPA),
                                         0x7ffffffff000,
                                         0x800000000000,
                                         0xffff800000000000,
                                         0xffffffffffffffff};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        static const char *const names[] = {"outs_32_from", "ins_32_to"};
        for (size_t j = 0; j < 2; j++) {
            struct hostile hostile;
            if (hostile_skip())
                continue;
            hostile_begin(&hostile, GUEST, NULL);
            ph_status status = hostile_call(&hostile, names[j], ARGS(U32(0x50), U64(addresses[i])), NULL);
            if (status != PH_E_PROTOCOL && status != PH_E_PAGE_FAULT)
                fail_msg("%s 0x%llx: %s (%s)", names[j], (unsigned long long)addresses[i],
                         ph_status_kind(status), ph_sandbox_error(hostile.sandbox)->message);
            hostile_end(&hostile, names[j]);
        }
    }
}

static void io_with_the_port_in_the_instruction_is_refused(void **state) {
    static const char *const names[] = {
        "in_8_imm",          "in_16_imm",         "in_32_imm",         "out_8_imm",
        "out_16_imm",        "out_8_imm_second",  "out_8_imm_last",    "out_16_imm_middle",
        "out_16_imm_across", "out_32_imm_before", "out_32_imm_second", "out_32_imm_behind",
        "out_32_imm_post",   "out_operand_size",
    };

    (void)state;
    test_needs_kvm();
    refuse_fixed(names, sizeof names / sizeof names[0]);
}

/* Prefixes that mean nothing: it is the doorbell, of an operation that does not exist. LOCK is undefined. */
static void the_doorbell_with_prefixes_is_no_way_out(void **state) {
    static const char *const names[] = {"out_rex_w", "out_rep", "out_segment"};
    struct hostile hostile;

    (void)state;
    test_needs_kvm();
    refuse_fixed(names, sizeof names / sizeof names[0]);
    hostile_begin(&hostile, GUEST, NULL);
    ph_status status = hostile_call(&hostile, "out_lock", NO_ARGS, NULL);
    if (status != PH_E_UNDEFINED_INSTRUCTION && status != PH_E_PROTOCOL)
        fail_msg("out_lock: %s", ph_status_kind(status));
    hostile_end(&hostile, "out_lock");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_to_any_other_port_is_refused),
        cmocka_unit_test(in_from_any_port_is_refused),
        cmocka_unit_test(in_after_a_doorbell_is_no_doorbell),
        cmocka_unit_test(the_doorbell_through_dx_is_the_doorbell),
        cmocka_unit_test(string_output_is_refused),
        cmocka_unit_test(repeated_string_output_is_refused),
        cmocka_unit_test(string_input_is_refused),
        cmocka_unit_test(a_string_of_nothing_does_nothing),
        cmocka_unit_test(string_io_with_bad_memory_is_refused),
        cmocka_unit_test(io_with_the_port_in_the_instruction_is_refused),
        cmocka_unit_test(the_doorbell_with_prefixes_is_no_way_out),
    };

    return cmocka_run_group_tests_name("hostile I/O", tests, NULL, NULL);
}
