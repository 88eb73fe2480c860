/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every way in which a guest can come to its end, each inside two open spans behind a number of events: those
 * of the example `faults`, and those that are no faults.
 */
/* NOLINTNEXTLINE(bugprone-suspicious-include): the example as it is, with its exports */
#include "../../guests/faults/faults.c"

#include <string.h>
#include <unistd.h>

static uint64_t next;

static __attribute__((noinline)) void come_to_end(const char *how) {
    static const struct {
        const char *name;
        void (*function)(void);
    } faults[] = {
        {"page_fault_read", page_fault_read},
        {"page_fault_write", page_fault_write},
        {"page_fault_exec", page_fault_exec},
        {"null", null_read},
        {"undefined", undefined},
        {"divide", divide},
        {"general_protection", general_protection},
        {"breakpoint", breakpoint},
        {"privileged", privileged},
        {"stack_overflow", stack_overflow},
        {"foreign_port", foreign_port},
        {"double_fault", double_fault},
    };

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (strcmp(how, faults[i].name) == 0)
            faults[i].function();
    if (strcmp(how, "ph_abort") == 0)
        ph_abort(5, "given up");
    if (strcmp(how, "ph_fail") == 0)
        ph_fail(6, "failed");
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exit") == 0)
        exit(7);
    if (strcmp(how, "_exit") == 0)
        _exit(8);
    if (strcmp(how, "kill") == 0)
        raise(SIGTERM);
    while (strcmp(how, "spin") == 0)
        ;
    while (strcmp(how, "sleep") == 0)
        pause();
}

/* (count) events, a span, a second one inside, and the end. */
static void end_by(const char *how, uint64_t count) {
    PH_SPAN("outer");
    for (uint64_t i = 0; i < count; i++) {
        PH_EVENT("at", ph_u64("n", next));
        next++;
    }
    PH_SPAN("inner");
    PH_EVENT("last");
    come_to_end(how);
}
PH_EXPORT(end_by, PH_VOID, PH_STR, PH_U64);
