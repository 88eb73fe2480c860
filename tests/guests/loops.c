/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Functions that take as long as they are let: for tests of interrupts, time-outs and threads.
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <pinhole/guest.h>

PH_IMPORT(visit, PH_I32, PH_I32);

static int32_t add(int32_t a, int32_t b) {
    return a + b;
}
PH_EXPORT(add, PH_I32, PH_I32, PH_I32);

static __attribute__((noinline)) void tight_loop(void) {
    for (;;)
        __asm__ volatile("");
}

static void spin(void) {
    tight_loop();
}
PH_EXPORT(spin, PH_VOID);

/* Spins for (turns) and ends. */
static void work(uint32_t turns) {
    for (volatile uint32_t i = 0; i < turns; i++)
        ;
}
PH_EXPORT(work, PH_VOID, PH_U32);

static int32_t visit_once(int32_t value) {
    return visit(value);
}
PH_EXPORT(visit_once, PH_I32, PH_I32);

static void visit_for_ever(void) {
    for (;;)
        visit(0);
}
PH_EXPORT(visit_for_ever, PH_VOID);

static void system_calls_for_ever(void) {
    for (;;)
        (void)getppid();
}
PH_EXPORT(system_calls_for_ever, PH_VOID);

static void write_for_ever(void) {
    for (;;)
        if (write(1, "x", 1) < 0)
            ph_fail(1, "output ended");
}
PH_EXPORT(write_for_ever, PH_VOID);

static void sleep_ms(uint32_t ms) {
    struct timespec wanted = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&wanted, NULL);
}
PH_EXPORT(sleep_ms, PH_VOID, PH_U32);

static void sleep_for_ever(void) {
    for (;;)
        pause();
}
PH_EXPORT(sleep_for_ever, PH_VOID);

/* Returns from the handler to the instruction that faults again. */
static void ignore(int number) {
    (void)number;
}

static volatile char *volatile nowhere = (volatile char *)0x10;

static void fault_for_ever(void) {
    signal(SIGSEGV, ignore);
    (void)*nowhere;
}
PH_EXPORT(fault_for_ever, PH_VOID);
