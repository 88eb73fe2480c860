/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every way in which a guest can go wrong, one function each. The processor does the real thing in each:
 * nothing here asks pinhole for a fault.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include <pinhole/guest.h>

/* Addresses that the compiler must not know too much about. */
static volatile uintptr_t unmapped = 0x123400000000;
static volatile uintptr_t null;
static volatile uintptr_t non_canonical = 0x8000000000000000;

static const char read_only[64] = "writing here is a page fault of another kind: the page is there";
static char not_code[64] = {(char)0xc3}; /* `ret`, if data could be executed */

static void page_fault_read(void) {
    (void)*(volatile char *)unmapped;
}
PH_EXPORT(page_fault_read, PH_VOID);

static void page_fault_write(void) {
    volatile uintptr_t address = (uintptr_t)read_only;

    *(volatile char *)address = 1;
}
PH_EXPORT(page_fault_write, PH_VOID);

static void page_fault_exec(void) {
    volatile uintptr_t address = (uintptr_t)not_code;

    ((void (*)(void))address)();
}
PH_EXPORT(page_fault_exec, PH_VOID);

static void null_read(void) {
    (void)*(volatile char *)null;
}
PH_EXPORT_AS(null, null_read, PH_VOID);

static void undefined(void) {
    __asm__ volatile("ud2");
}
PH_EXPORT(undefined, PH_VOID);

static void divide(void) {
    __asm__ volatile("divl %0" : : "r"(0), "a"(1), "d"(0));
}
PH_EXPORT(divide, PH_VOID);

static void general_protection(void) {
    (void)*(volatile char *)non_canonical;
}
PH_EXPORT(general_protection, PH_VOID);

static void breakpoint(void) {
    __asm__ volatile("int3");
}
PH_EXPORT(breakpoint, PH_VOID);

/* Only ring 0 may stop the processor. */
static void privileged(void) {
    __asm__ volatile("hlt");
}
PH_EXPORT(privileged, PH_VOID);

/* The diagnostics port of a PC: any port that is not pinhole's doorbell. */
static void foreign_port(void) {
    __asm__ volatile("outl %%eax, $0x80" : : "a"(0));
}
PH_EXPORT(foreign_port, PH_VOID);

static void on_fault(int number) {
    (void)number;
}

/* A fault while a fault is delivered: the handler's stack is not there. From ring 3 that is all one can do.
 * The processor itself changes to a stack of ring 0, which this program can neither see nor break. */
static void double_fault(void) {
    const stack_t stack = {.ss_sp = (void *)unmapped, .ss_size = 65536};
    const struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    page_fault_read();
}
PH_EXPORT(double_fault, PH_VOID);

/* Small frames, so that the first access below the stack falls onto its guard page. */
__attribute__((noinline)) static int recurse(int depth) {
    volatile char frame[64];

    frame[0] = (char)depth;
    if (depth < 0)
        return 0;
    return recurse(depth + 1) + frame[0];
}

static void stack_overflow(void) {
    static volatile int depth;

    depth = recurse(depth);
}
PH_EXPORT(stack_overflow, PH_VOID);

struct block {
    struct block *next;
    char bytes[(1 << 20) - 64];
};

/* True when malloc said NULL in the end, and works again once there is memory. */
static bool heap_exhaustion(void) {
    struct block *blocks = NULL;
    struct block *block;

    while ((block = malloc(sizeof *block))) {
        block->next = blocks;
        blocks = block;
    }
    while (blocks) {
        block = blocks;
        blocks = block->next;
        free(block);
    }
    void *small = malloc(100);
    free(small);
    return small != NULL;
}
PH_EXPORT(heap_exhaustion, PH_BOOL);

PH_EXPORT_AS(abort, abort, PH_VOID);

static void exit_7(void) {
    exit(7);
}
PH_EXPORT_AS(exit, exit_7, PH_VOID);

__attribute__((noinline)) static void busy_loop(void) {
    for (;;)
        __asm__ volatile("pause");
}

static void spin(void) {
    busy_loop();
}
PH_EXPORT(spin, PH_VOID);
