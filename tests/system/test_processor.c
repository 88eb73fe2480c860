/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where KVMs differ, and the soft backend: each test proves, for the kind that it runs on, what this kind
 * does, and says so. What libpinhole makes of it must be the same on all of them. The other kinds are proved
 * by the same tests elsewhere (`make test-svm`).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "sandbox/sandbox.h"
#include "support/bare_vm.h"
#include "support/processor.h"
#include "support/support.h"
#include "vm/kvm_system.h"

/* Neither runs the guest's ring 0, and both keep what they have made of its page tables. */
static bool is_pvm_or_soft(void) {
    return is_pvm() || test_is_soft();
}

#define PROVED(what) print_message("%s: " what "\n", processor_name())

/* ---- system calls -------------------------------------------------------------------------------------- */

BARE_CODE(call_system, "mov $39, %eax\n syscall\n ud2\n"); /* getpid */
BARE_CODE(report_cs, "mov %cs, %edi\n" BARE_REPORT);

static void syscall_lands_at_cpl_3_on_pvm_and_soft_and_at_cpl_0_elsewhere(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    bare_vm_make(&vm, call_system, call_system_end);
    /* Instead of the monitor's first instructions. */
    memcpy(vm.memory.base + PH__MONITOR_GPA + ph__monitor()->system_call, report_cs,
           (size_t)((uintptr_t)report_cs_end - (uintptr_t)report_cs));
    bare_vm_start(&vm);
    uint64_t ring = bare_vm_report(&vm) & 3;
    if (is_pvm_or_soft()) {
        assert_int_equal(ring, 3);
        PROVED("syscall lands at CPL 3");
    } else {
        assert_int_equal(ring, 0);
        PROVED("syscall lands at CPL 0");
    }
    bare_vm_free(&vm);
}

/* write(1, the first data page, 8) */
BARE_CODE(write_data, "mov $1, %eax\n"
                      "mov $1, %edi\n"
                      "mov $0x401000, %esi\n"
                      "mov $8, %edx\n"
                      "syscall\n"
                      "mov %rax, %rdi\n" BARE_REPORT);

#define PAGE_FAULT_VECTOR 14
#define PAGE_FAULT_PRESENT 1u
#define PAGE_FAULT_USER 4u

/* Ring 0 could read a page that is not ring 3's, so a system call served there would leak it. */
static void system_calls_are_served_at_cpl_3_everywhere(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    bare_vm_make(&vm, write_data, write_data_end);
    *bare_vm_entry(&vm, BARE_DATA_GVA) &= ~PH__PTE_USER;
    bare_vm_start(&vm);
    bare_vm_run(&vm);
    assert_int_equal(vm.exit.kind, PH__EXIT_EXCEPTION);
    assert_int_equal(vm.exit.vector, PAGE_FAULT_VECTOR);
    assert_int_equal(vm.exit.error_code, PAGE_FAULT_PRESENT | PAGE_FAULT_USER);
    assert_int_equal(vm.exit.address, BARE_DATA_GVA);
    assert_false(vm.exit.in_ring0);
    /* What sandbox/fault.c does with a bad pointer. */
    vm.vcpu->regs->rip = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->fixup_landing;
    vm.vcpu->regs_changed = true;
    assert_int_equal((int64_t)bare_vm_report(&vm), -EFAULT);
    bare_vm_free(&vm);
}

/* ---- exits --------------------------------------------------------------------------------------------- */

BARE_CODE(report_twice, "mov $1, %edi\n" BARE_REPORT "mov $2, %edi\n" BARE_REPORT "ud2\n");
#define REPORT_OUT (5u + 5u) /* the `out` behind two moves of five bytes */

static void rip_at_a_doorbell_is_behind_it_on_pvm_and_soft_and_on_it_elsewhere(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    bare_vm_make(&vm, report_twice, report_twice_end);
    assert_int_equal(report_twice[REPORT_OUT], 0xe7); /* out %eax, imm8 */
    bare_vm_start(&vm);
    assert_int_equal(bare_vm_report(&vm), 1);
    uint64_t at = vm.vcpu->regs->rip - BARE_CODE_GVA;
    if (is_pvm_or_soft()) {
        assert_int_equal(at, REPORT_OUT + BARE_OUT_SIZE);
        PROVED("RIP is behind the doorbell");
    } else {
        assert_int_equal(at, REPORT_OUT);
        PROVED("RIP is on the doorbell");
    }
    /* An answer in the registers must not make the guest ring again. */
    vm.vcpu->regs->rax = 7;
    vm.vcpu->regs_changed = true;
    assert_int_equal(bare_vm_report(&vm), 2);
    bare_vm_free(&vm);
}

/* ---- page tables --------------------------------------------------------------------------------------- */

/* Reports the first word of the first data page, for ever. */
BARE_CODE(read_data, "1: mov 0x401000, %rdi\n" BARE_REPORT "jmp 1b\n");

#define FIRST_PAGE 0x1111u
#define SECOND_PAGE 0x2222u

/* A VM that has read the first data page; both pages hold their numbers. */
static void make_reader(struct bare_vm *vm) {
    const uint64_t numbers[] = {FIRST_PAGE, SECOND_PAGE};

    bare_vm_make(vm, read_data, read_data_end);
    for (size_t i = 0; i < 2; i++)
        memcpy(bare_vm_image(vm) + (i + 1) * PH__PAGE_SIZE, &numbers[i], sizeof numbers[i]);
    bare_vm_start(vm);
    assert_int_equal(bare_vm_report(vm), FIRST_PAGE);
}

/* The entry that maps the second data page where the first one is. */
static uint64_t other_entry(struct bare_vm *vm) {
    return *bare_vm_entry(vm, BARE_DATA_GVA + PH__PAGE_SIZE);
}

static void host_edit_of_a_page_table_is_not_seen_on_pvm_and_soft(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    make_reader(&vm);
    *bare_vm_entry(&vm, BARE_DATA_GVA) = other_entry(&vm);
    uint64_t seen = bare_vm_report(&vm);
    if (is_pvm_or_soft()) {
        assert_int_equal(seen, FIRST_PAGE);
        PROVED("the host's edit of a page-table entry in use is not seen");
    } else if (processor_is_emulated()) {
        assert_int_equal(seen, SECOND_PAGE);
        PROVED("the host's edit of a page-table entry in use is seen");
    } else {
        /* Up to what the processor remembers. */
        assert_true(seen == FIRST_PAGE || seen == SECOND_PAGE);
        skip();
    }
    bare_vm_free(&vm);
}

static void poke_of_a_page_table_is_seen_everywhere(void **state) {
    struct bare_vm vm;
    ph_error error = {0};

    (void)state;
    test_needs_kvm();
    make_reader(&vm);
    uint64_t *entry = bare_vm_entry(&vm, BARE_DATA_GVA);
    uint64_t entry_gva = PH__WINDOW_GVA + (uint64_t)((uint8_t *)entry - vm.memory.base);
    uint64_t old = *entry;
    for (int i = 0; i < 10; i++) {
        uint64_t value = i % 2 == 0 ? other_entry(&vm) : old;
        struct ph__regs before = *vm.vcpu->regs;

        ph__memory_pokes(&vm.memory)[0] =
            (struct ph__poke){.entry_gva = entry_gva, .value = value, .gva = BARE_DATA_GVA};
        assert_int_equal(vm.vcpu->backend->poke(vm.vcpu, 1, &error), PH_OK);
        assert_int_equal(*entry, value);
        /* The guest does not notice, but for RIP, which is behind the doorbell now. */
        before.rip = vm.vcpu->regs->rip;
        assert_memory_equal(vm.vcpu->regs, &before, sizeof before);
        assert_int_equal(bare_vm_report(&vm), i % 2 == 0 ? SECOND_PAGE : FIRST_PAGE);
    }
    bare_vm_free(&vm);
}

static void page_that_the_host_adds_is_seen_on_every_kvm(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    test_not_on_soft("a page comes by a poke there, and in no other way");
    bare_vm_make(&vm, read_data, read_data_end);
    uint64_t *entry = bare_vm_entry(&vm, BARE_DATA_GVA);
    uint64_t value = *entry;
    *entry = 0;
    bare_vm_start(&vm);
    bare_vm_run(&vm);
    assert_int_equal(vm.exit.kind, PH__EXIT_EXCEPTION);
    assert_int_equal(vm.exit.vector, PAGE_FAULT_VECTOR);
    assert_int_equal(vm.exit.error_code, PAGE_FAULT_USER);
    *entry = value;
    memcpy(bare_vm_image(&vm) + PH__PAGE_SIZE, &(uint64_t){FIRST_PAGE}, sizeof(uint64_t));
    assert_int_equal(bare_vm_report(&vm), FIRST_PAGE);
    bare_vm_free(&vm);
}

/* ---- faults in faults ---------------------------------------------------------------------------------- */

/* A sandbox of the guest `faults` that is ready for calls. */
struct started {
    ph_image *image;
    ph_sandbox *sandbox;
};

static struct started start_faults(void) {
    struct started started = {.image = test_image("faults")};

    started.sandbox = test_sandbox(started.image, NULL);
    test_status(started.sandbox, ph_sandbox_start(started.sandbox), PH_OK);
    return started;
}

static const ph_error *call_undefined(const struct started *started) {
    assert_int_not_equal(test_call(started->sandbox, started->image, "undefined", NULL, 0, NULL), PH_OK);
    return ph_sandbox_error(started->sandbox);
}

static void destroy(const struct started *started) {
    assert_int_equal(ph_sandbox_state(started->sandbox), PH_STATE_POISONED);
    ph_sandbox_destroy(started->sandbox);
    ph_image_close(started->image);
}

static uint8_t *descriptor_tables(const struct started *started) {
    return started->sandbox->memory.base + PH__TABLES_GPA;
}

static void undefined_instruction_is_reported_where_it_is(void **state) {
    (void)state;
    test_needs_kvm();
    struct started started = start_faults();
    const ph_error *error = call_undefined(&started);

    assert_int_equal(error->status, PH_E_UNDEFINED_INSTRUCTION);
    assert_string_equal(error->function, "undefined");
    destroy(&started);
}

#define TSS_RSP0 4u /* SDM volume 3, chapter 7.7 */

static void exception_without_a_stack_is_a_double_fault_on_the_stack_of_its_own(void **state) {
    const uint64_t nowhere = 0x7dead0000000;

    (void)state;
    test_needs_kvm();
    test_not_on_soft("the emulated processor has no ring 0, and never uses the IDT");
    struct started started = start_faults();

    memcpy(descriptor_tables(&started) + PH__TSS_OFFSET + TSS_RSP0, &nowhere, sizeof nowhere);
    const ph_error *error = call_undefined(&started);
    assert_int_equal(error->status, PH_E_DOUBLE_FAULT);
    assert_int_equal(error->vector, 8);
    assert_string_equal(error->function, "undefined");
    destroy(&started);
}

static void exception_without_a_gate_is_a_triple_fault_without_rip(void **state) {
    (void)state;
    test_needs_kvm();
    test_not_on_soft("the emulated processor has no ring 0, and never uses the IDT");
    struct started started = start_faults();

    memset(descriptor_tables(&started) + PH__IDT_OFFSET, 0, PH__IDT_SIZE);
    const ph_error *error = call_undefined(&started);
    assert_int_equal(error->status, PH_E_TRIPLE_FAULT);
    assert_int_equal(error->rip, 0);
    assert_string_equal(error->function, "");
    destroy(&started);
}

/* ---- what the processor shows -------------------------------------------------------------------------- */

#define CPUID_1_ECX_AVX (1u << 28)
#define CPUID_1_ECX_OSXSAVE (1u << 27)
#define XCR0_X87_SSE 3u
#define XCR0_AVX 4u
#define UNDEFINED_VECTOR 6

/* What a VM is made of, for a test to change. */
static struct ph__kvm_system *system_facts(void) {
    const struct ph__kvm_system *system;
    ph_error error;
    int file;

    assert_int_equal(ph__kvm_open(&file, &error), PH_OK);
    assert_int_equal(ph__kvm_system(file, &system, &error), PH_OK);
    close(file);
    return (struct ph__kvm_system *)system;
}

static bool host_has_avx(void) {
    uint32_t eax, ebx, ecx, edx;

    __cpuid(1, eax, ebx, ecx, edx);
    return (ecx & CPUID_1_ECX_AVX) && (ecx & CPUID_1_ECX_OSXSAVE);
}

BARE_CODE(read_xcr0_and_use_avx, "xor %ecx, %ecx\n"
                                 "xgetbv\n"
                                 "mov %eax, %edi\n" BARE_REPORT "vxorps %ymm0, %ymm0, %ymm0\n"
                                 "xor %edi, %edi\n" BARE_REPORT);

__attribute__((target("xsave"))) static uint64_t host_xcr0(void) {
    return _xgetbv(0);
}

static void guest_without_avx_state_cannot_use_avx_but_on_pvm(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    test_not_on_soft("the emulated processor has no XSAVE, whatever the host has");
    if (!host_has_avx())
        skip();
    struct ph__kvm_system *system = system_facts();
    const struct ph__kvm_system kept = *system;
    system->xcr0 = XCR0_X87_SSE;
    bare_vm_make(&vm, read_xcr0_and_use_avx, read_xcr0_and_use_avx_end);
    bare_vm_start(&vm);
    *system = kept;
    uint64_t seen = bare_vm_report(&vm);
    bare_vm_run(&vm);
    if (is_pvm()) {
        assert_int_equal(seen, host_xcr0());
        assert_int_equal(vm.exit.kind, PH__EXIT_DOORBELL);
        PROVED("XCR0 is the host's, whatever the guest was given");
    } else {
        assert_int_equal(seen, XCR0_X87_SSE);
        assert_int_equal(vm.exit.kind, PH__EXIT_EXCEPTION);
        assert_int_equal(vm.exit.vector, UNDEFINED_VECTOR);
        PROVED("XCR0 is what the guest was given");
    }
    bare_vm_free(&vm);
}

static void guest_has_the_state_components_that_were_chosen_for_it(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    test_not_on_soft("the emulated processor has no XSAVE, whatever the host has");
    const struct ph__kvm_system *system = system_facts();
    bare_vm_make(&vm, read_xcr0_and_use_avx, read_xcr0_and_use_avx_end);
    bare_vm_start(&vm);
    uint64_t seen = bare_vm_report(&vm);
    assert_int_equal(seen & system->xcr0, system->xcr0);
    if (!is_pvm())
        assert_int_equal(seen, system->xcr0);
    bare_vm_run(&vm);
    if (host_has_avx()) {
        assert_true(system->xcr0 & XCR0_AVX);
        assert_int_equal(vm.exit.kind, PH__EXIT_DOORBELL);
    }
    bare_vm_free(&vm);
}

BARE_CODE(read_cpuid, "mov $1, %eax\n"
                      "cpuid\n"
                      "mov %ecx, %edi\n" BARE_REPORT "mov $0x40000000, %eax\n"
                      "cpuid\n"
                      "mov %ebx, %edi\n" BARE_REPORT);

#define KVM_SIGNATURE_EBX 0x4b4d564bu /* "KVMK" */

/* Whether this host is itself a guest of KVM, and shows it. */
static bool host_shows_kvm(void) {
    uint32_t eax, ebx, ecx, edx;

    __cpuid(0x40000000, eax, ebx, ecx, edx);
    return ebx == KVM_SIGNATURE_EBX;
}

static void cpuid_masks_hold_but_on_pvm(void **state) {
    struct bare_vm vm;

    (void)state;
    test_needs_kvm();
    test_not_on_soft("CPUID is no matter of KVM's there");
    if (!host_has_avx())
        skip();
    struct ph__kvm_system *system = system_facts();
    const struct ph__kvm_system kept = *system;
    for (uint32_t i = 0; i < system->cpuid.head.nent; i++)
        if (system->cpuid.entries[i].function == 1)
            system->cpuid.entries[i].ecx &= ~CPUID_1_ECX_AVX;
    bare_vm_make(&vm, read_cpuid, read_cpuid_end);
    bare_vm_start(&vm);
    *system = kept;
    uint64_t ecx = bare_vm_report(&vm);
    uint64_t signature = bare_vm_report(&vm);
    if (is_pvm()) {
        assert_true(signature != KVM_SIGNATURE_EBX || host_shows_kvm());
        assert_true(ecx & CPUID_1_ECX_AVX);
        PROVED("a bit that was cleared in CPUID shows");
    } else {
        assert_int_not_equal(signature, KVM_SIGNATURE_EBX);
        assert_false(ecx & CPUID_1_ECX_AVX);
        PROVED("a bit that was cleared in CPUID does not show");
    }
    bare_vm_free(&vm);
}

/* Reports a register of a leaf's part. */
#define REPORT_LEAF(leaf, index, part)                                                                       \
    "mov $" #leaf ", %eax\nmov $" #index ", %ecx\ncpuid\nmov %" #part ", %edi\n" BARE_REPORT

BARE_CODE(read_features,
          REPORT_LEAF(1, 0, ecx) REPORT_LEAF(1, 0, edx) REPORT_LEAF(7, 0, ebx) REPORT_LEAF(7, 0, ecx)
              REPORT_LEAF(7, 0, edx) REPORT_LEAF(0x80000001, 0, ecx) REPORT_LEAF(0x80000001, 0, edx)
                  REPORT_LEAF(13, 1, eax) "xor %ecx, %ecx\n"
                                          "xgetbv\n"
                                          "mov %eax, %edi\n" BARE_REPORT);

/* Both ways, so that the bits which count are the same. */
static void features_of_a_vcpu_are_those_that_its_guest_sees(void **state) {
    static const enum ph__feature_word order[] = {
        PH__FEATURES_1_ECX, PH__FEATURES_1_EDX,        PH__FEATURES_7_EBX,        PH__FEATURES_7_ECX,
        PH__FEATURES_7_EDX, PH__FEATURES_80000001_ECX, PH__FEATURES_80000001_EDX, PH__FEATURES_D_1_EAX,
    };
    struct bare_vm vm;
    ph_error error = {0};

    (void)state;
    test_needs_kvm();
    bare_vm_make(&vm, read_features, read_features_end);
    bare_vm_start(&vm);
    const struct ph__features *said = vm.vcpu->features;
    struct ph__features seen = *said;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        seen.words[order[i]] = (uint32_t)bare_vm_report(&vm);
    bare_vm_run(&vm);
    const bool has_xgetbv = vm.exit.kind == PH__EXIT_DOORBELL;
    assert_true(has_xgetbv || (vm.exit.kind == PH__EXIT_EXCEPTION && vm.exit.vector == UNDEFINED_VECTOR));
    seen.xcr0 = has_xgetbv ? vm.vcpu->regs->rdi : 0;
    if (ph__features_check(&seen, said, "kvm", &error) != PH_OK)
        fail_msg("the guest sees more: %s", error.message);
    if (ph__features_check(said, &seen, "kvm", &error) != PH_OK)
        fail_msg("the guest sees less: %s", error.message);
    bare_vm_free(&vm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syscall_lands_at_cpl_3_on_pvm_and_soft_and_at_cpl_0_elsewhere),
        cmocka_unit_test(system_calls_are_served_at_cpl_3_everywhere),
        cmocka_unit_test(rip_at_a_doorbell_is_behind_it_on_pvm_and_soft_and_on_it_elsewhere),
        cmocka_unit_test(host_edit_of_a_page_table_is_not_seen_on_pvm_and_soft),
        cmocka_unit_test(poke_of_a_page_table_is_seen_everywhere),
        cmocka_unit_test(page_that_the_host_adds_is_seen_on_every_kvm),
        cmocka_unit_test(undefined_instruction_is_reported_where_it_is),
        cmocka_unit_test(exception_without_a_stack_is_a_double_fault_on_the_stack_of_its_own),
        cmocka_unit_test(exception_without_a_gate_is_a_triple_fault_without_rip),
        cmocka_unit_test(guest_without_avx_state_cannot_use_avx_but_on_pvm),
        cmocka_unit_test(guest_has_the_state_components_that_were_chosen_for_it),
        cmocka_unit_test(cpuid_masks_hold_but_on_pvm),
        cmocka_unit_test(features_of_a_vcpu_are_those_that_its_guest_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
