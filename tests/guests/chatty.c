/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes to its standard streams while it is called: for tests of where the command puts that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinhole/guest.h>

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0)
        abort();
}

static int32_t speak(void) {
    say("to stdout\n");
    fputs("to stderr\n", stderr);
    return 7;
}
PH_EXPORT(speak, PH_I32);

static void speak_and_fail(void) {
    say("before\n");
    ph_fail(18, "%s", "gone wrong");
}
PH_EXPORT(speak_and_fail, PH_VOID);

static void speak_and_spin(void) {
    say("before\n");
    for (;;)
        __asm__ volatile("");
}
PH_EXPORT(speak_and_spin, PH_VOID);

/* (count) lines of 16 bytes. */
static void speak_at_length(uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        printf("line %10u\n", (unsigned)i);
    fflush(stdout);
}
PH_EXPORT(speak_at_length, PH_VOID, PH_U32);

/* Without a newline: what the C library keeps back must come out at the call's end all the same. */
static int32_t print_without_newline(void) {
    printf("half a line");
    return 3;
}
PH_EXPORT(print_without_newline, PH_I32);

static void print_and_fault(void) {
    printf("before the fault\n");
    __builtin_trap();
}
PH_EXPORT(print_and_fault, PH_VOID);
