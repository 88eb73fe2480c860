/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A VM with a few instructions of the test's own in ring 3, the monitor below them and no program: what a
 * sandbox is made of, one layer further down. For tests of what the processor does.
 */
#ifndef PH_TESTS_BARE_VM_H
#define PH_TESTS_BARE_VM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi/doorbell.h"
#include "vm/backend.h"
#include "vm/boot.h"
#include "vm/paging.h"
#include "vm/vcpu.h"

/* One page of code, two of data. */
#define BARE_CODE_GVA 0x400000ull
#define BARE_DATA_GVA 0x401000ull
#define BARE_IMAGE_SIZE (3 * PH__PAGE_SIZE)

/* The operation of BARE_REPORT's doorbell: none of the ABI's. */
#define BARE_OPERATION 0x99u

/* Instructions for the guest, under (name). They must not depend on where they are. */
#define BARE_CODE(name, instructions)                                                                        \
    __asm__(".pushsection .rodata\n" #name ":\n" instructions "\n" #name "_end:\n.popsection\n");            \
    extern const uint8_t name[] __attribute__((visibility("hidden")));                                       \
    extern const uint8_t name##_end[] __attribute__((visibility("hidden")))

/* Rings the doorbell: what is in RDI is for the test. Two bytes of it are the `out`. */
#define BARE_REPORT "mov $0x99, %eax\n out %eax, $0x50\n"
#define BARE_OUT_SIZE 2u

struct bare_vm {
    struct ph__memory memory;
    struct ph__vcpu *vcpu;
    struct ph__exit exit; /* of the last run */
};

static inline uint8_t *bare_vm_image(const struct bare_vm *vm) {
    return vm->memory.base + vm->memory.layout.image.offset;
}

/* The host's view of the page-table entry for (gva) of the image. */
static inline uint64_t *bare_vm_entry(const struct bare_vm *vm, uint64_t gva) {
    uint64_t table = ph__paging_root(&vm->memory).value;

    for (int shift = 39;; shift -= 9) {
        uint64_t *entries = ph__memory_at(&vm->memory, (ph_gpa){table}, PH__PAGE_SIZE);
        assert_non_null(entries);
        uint64_t *entry = entries + (gva >> shift) % 512;
        if (shift == 12)
            return entry;
        table = *entry & PH__PTE_ADDRESS;
    }
}

/* Makes the VM's memory. A test may change it before it starts the VM. */
static inline void bare_vm_make(struct bare_vm *vm, const uint8_t *code, const uint8_t *code_end) {
    const struct ph__layout_request request = {
        .memory = 16u << 20, .image_gva = BARE_CODE_GVA, .image_size = BARE_IMAGE_SIZE};
    const struct ph__access execute = {.user = true, .executable = true};
    const struct ph__access write = {.user = true, .writable = true};
    struct ph__layout layout;
    ph_error error = {0};

    memset(vm, 0, sizeof *vm);
    assert_int_equal(ph__layout_compute(&request, &layout, &error), PH_OK);
    assert_int_equal(ph__memory_map(&vm->memory, &layout, -1, NULL, 0, &error), PH_OK);
    assert_int_equal(ph__paging_build(&vm->memory, &error), PH_OK);
    assert_int_equal(
        ph__paging_map(&vm->memory, BARE_CODE_GVA, layout.image.offset, PH__PAGE_SIZE, execute, &error),
        PH_OK);
    assert_int_equal(ph__paging_map(&vm->memory, BARE_DATA_GVA, layout.image.offset + PH__PAGE_SIZE,
                                    2 * PH__PAGE_SIZE, write, &error),
                     PH_OK);
    ph__boot_write(&vm->memory);
    assert_true((size_t)(code_end - code) <= PH__PAGE_SIZE);
    memcpy(bare_vm_image(vm), code, (size_t)(code_end - code));
}

/* Makes the vCPU, on the backend that the tests run on. The guest will begin with the first byte of its code.
 */
static inline void bare_vm_start(struct bare_vm *vm) {
    const struct ph__region *stack = &vm->memory.layout.stack;
    const struct ph__regs regs = {.rip = BARE_CODE_GVA, .rsp = stack->gva + stack->size};
    const struct ph__vcpu_options options = {.memory = &vm->memory, .monitor = ph__monitor()};
    const struct ph__backend *backend;
    ph_error error = {0};

    assert_int_equal(ph__backend_find(PH_BACKEND_KVM, NULL, NULL, &backend, &error), PH_OK);
    assert_int_equal(backend->create(&options, &vm->vcpu, &error), PH_OK);
    assert_int_equal(backend->start(vm->vcpu, &regs, &error), PH_OK);
}

/* Runs to the next exit. */
static inline void bare_vm_run(struct bare_vm *vm) {
    do
        vm->vcpu->backend->run(vm->vcpu, &vm->exit);
    while (vm->exit.kind == PH__EXIT_KICKED);
}

/* Runs to the guest's next BARE_REPORT and returns what it says. */
static inline uint64_t bare_vm_report(struct bare_vm *vm) {
    bare_vm_run(vm);
    assert_int_equal(vm->exit.kind, PH__EXIT_DOORBELL);
    assert_int_equal(vm->exit.operation, BARE_OPERATION);
    return vm->vcpu->regs->rdi;
}

static inline void bare_vm_free(struct bare_vm *vm) {
    vm->vcpu->backend->destroy(vm->vcpu, false);
    ph__memory_unmap(&vm->memory, false);
}

#endif
