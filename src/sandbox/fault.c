/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What becomes of an exception: a bad pointer in a system call goes on in the monitor, a signal that the
 * guest handles is handed over, and everything else ends the guest with a report. Exceptions are those of the
 * Intel SDM, volume 3, chapter 6.15. Called by the exit loop.
 */
#include <stdio.h>
#include <string.h>

#include "abi/monitor.h"
#include "abi/table.h"
#include "base/error.h"
#include "sandbox/instruction.h"
#include "sandbox/snapshot.h"
#include "vm/boot.h"

enum {
    VECTOR_DIVIDE = 0,
    VECTOR_DEBUG = 1,
    VECTOR_BREAKPOINT = 3,
    VECTOR_UNDEFINED = 6,
    VECTOR_DOUBLE_FAULT = 8,
    VECTOR_GENERAL_PROTECTION = 13,
    VECTOR_PAGE_FAULT = 14,
    VECTOR_X87 = 16,
    VECTOR_ALIGNMENT = 17,
    VECTOR_SIMD = 19,
};

/* Bits of a page fault's error code. */
#define PAGE_FAULT_PRESENT 1u
#define PAGE_FAULT_WRITE 2u
#define PAGE_FAULT_FETCH 16u

/* Notes (rip) and the function around it. */
static void locate_at(ph_sandbox *sandbox, uint64_t rip) {
    uint64_t offset = 0;
    const char *name = ph__image_symbol(sandbox->image, rip, &offset);

    if (name && strncmp(name, PH__THUNK_PREFIX, strlen(PH__THUNK_PREFIX)) == 0)
        name += strlen(PH__THUNK_PREFIX);
    sandbox->error.rip = rip;
    ph__error_set_function(&sandbox->error, name, offset);
}

void ph__fault_locate(ph_sandbox *sandbox) {
    uint64_t untrusted_rip = sandbox->vcpu->regs->rip;

    /* In the monitor the guest is behind its system call. The monitor has written down where that is, and the
     * guest can change it: good for a report, and for nothing else. */
    if (untrusted_rip >= PH__WINDOW_GVA)
        memcpy(&untrusted_rip, sandbox->memory.base + PH__MONITOR_GPA + ph__monitor()->user_rip,
               sizeof untrusted_rip);
    locate_at(sandbox, untrusted_rip);
}

/* " at 0x401234 in name+0x10" for messages; (rip) was located before. */
struct place {
    char text[PH_ERROR_FUNCTION_MAX + 64];
};

static struct place place_of(const ph_error *error) {
    struct place place;

    if (error->function[0])
        snprintf(place.text, sizeof place.text, "at 0x%llx in %s+0x%llx", (unsigned long long)error->rip,
                 error->function, (unsigned long long)error->function_offset);
    else
        snprintf(place.text, sizeof place.text, "at 0x%llx", (unsigned long long)error->rip);
    return place;
}

/* Clears the error and notes where the guest is. */
static struct place locate(ph_sandbox *sandbox, uint64_t rip) {
    memset(&sandbox->error, 0, sizeof sandbox->error);
    locate_at(sandbox, rip);
    return place_of(&sandbox->error);
}

/* Writes the report without losing what locate has filled in. */
static ph_status report(ph_sandbox *sandbox, ph_status status, const struct ph__exit *exit, const char *what,
                        const struct place *place) {
    ph_error kept = sandbox->error;

    ph__error_set(&sandbox->error, status, "%s%s%s", what, place->text[0] ? " " : "", place->text);
    sandbox->error.rip = kept.rip;
    sandbox->error.function_offset = kept.function_offset;
    memcpy(sandbox->error.function, kept.function, sizeof kept.function);
    if (exit) {
        sandbox->error.vector = exit->vector;
        sandbox->error.error_code = exit->error_code;
        sandbox->error.address = exit->address;
    }
    return ph__sandbox_poison(sandbox, status);
}

ph_status ph__fault_protocol(ph_sandbox *sandbox, const char *what) {
    char text[128];
    const struct place place = locate(sandbox, sandbox->vcpu->regs->rip);

    snprintf(text, sizeof text, "the guest broke the protocol: %s,", what);
    return report(sandbox, PH_E_PROTOCOL, NULL, text, &place);
}

/* What ended a guest that did nothing wrong. */
static const char *stopping_cause(ph_status status) {
    switch (status) {
    case PH_E_TIMED_OUT:
        return "the time-out";
    case PH_E_CPU_TIME:
        return "the limit of processor time";
    case PH_E_OUTPUT_LIMIT:
        return "the limit of output";
    case PH_E_HOST_CALL_LIMIT:
        return "the limit of host calls";
    default:
        return "an interrupt";
    }
}

ph_status ph__fault_stopped(ph_sandbox *sandbox, ph_status status) {
    const char *cause = stopping_cause(status);
    const struct place nowhere = {""};
    char text[PH_ERROR_FUNCTION_MAX + 64];

    memset(&sandbox->error, 0, sizeof sandbox->error);
    ph__fault_locate(sandbox);
    /* Where exactly it was is chance: the address is in the error, and stays out of the message. */
    if (sandbox->error.function[0])
        snprintf(text, sizeof text, "%s ended the guest in %s", cause, sandbox->error.function);
    else
        snprintf(text, sizeof text, "%s ended the guest", cause);
    return report(sandbox, status, NULL, text, &nowhere);
}

/* ---- classifying --------------------------------------------------------------------------------------- */

static bool in_files(const struct ph__layout *layout, uint64_t address) {
    return address >= layout->files.gva && address - layout->files.gva < layout->files.size;
}

static ph_status page_fault(ph_sandbox *sandbox, const struct ph__exit *exit, char *text, size_t size) {
    const struct ph__layout *layout = &sandbox->memory.layout;
    const char *access = exit->error_code & PAGE_FAULT_FETCH   ? "execute"
                         : exit->error_code & PAGE_FAULT_WRITE ? "write"
                                                               : "read";
    bool in_guard =
        exit->address >= layout->stack.gva - PH__LARGE_PAGE_SIZE && exit->address < layout->stack.gva;

    if (in_guard) {
        snprintf(text, size, "the stack of %llu bytes ran into its guard page with address 0x%llx,",
                 (unsigned long long)layout->stack.size, (unsigned long long)exit->address);
        return PH_E_STACK_OVERFLOW;
    }
    snprintf(text, size, "%s of %s address 0x%llx%s", access,
             exit->error_code & PAGE_FAULT_PRESENT ? "protected" : "unmapped",
             (unsigned long long)exit->address,
             in_files(layout, exit->address) ? ", which belongs to a read-only file," : "");
    return PH_E_PAGE_FAULT;
}

static ph_status general_protection(ph_sandbox *sandbox, const struct ph__exit *exit, char *text,
                                    size_t size) {
    uint8_t bytes[PH__INSTRUCTION_MAX];
    ph_gva rip = {sandbox->vcpu->regs->rip};
    size_t length = 0;

    while (length < sizeof bytes &&
           ph__guest_read(&sandbox->memory, (ph_gva){rip.value + length}, bytes + length, 1))
        length++;
    switch (ph__instruction_classify(bytes, length)) {
    case PH__INSTRUCTION_IO:
        snprintf(text, size, "the guest broke the protocol: an I/O instruction other than the doorbell,");
        return PH_E_PROTOCOL;
    case PH__INSTRUCTION_PRIVILEGED:
        snprintf(text, size, "privileged instruction 0x%02x 0x%02x", bytes[0], length > 1 ? bytes[1] : 0);
        return PH_E_PRIVILEGED_INSTRUCTION;
    default:
        snprintf(text, size, "general protection, error code 0x%x,", exit->error_code);
        return PH_E_GENERAL_PROTECTION;
    }
}

/* The status of an exception, and the words for it. */
static ph_status classify(ph_sandbox *sandbox, const struct ph__exit *exit, char *text, size_t size) {
    switch (exit->vector) {
    case VECTOR_PAGE_FAULT:
        return page_fault(sandbox, exit, text, size);
    case VECTOR_GENERAL_PROTECTION:
        return general_protection(sandbox, exit, text, size);
    case VECTOR_DIVIDE:
        snprintf(text, size, "divide error");
        return PH_E_DIVIDE;
    case VECTOR_UNDEFINED:
        snprintf(text, size, "undefined instruction");
        return PH_E_UNDEFINED_INSTRUCTION;
    case VECTOR_DEBUG:
    case VECTOR_BREAKPOINT:
        snprintf(text, size, exit->vector == VECTOR_DEBUG ? "single step" : "breakpoint");
        return PH_E_BREAKPOINT;
    case VECTOR_X87:
    case VECTOR_SIMD:
        snprintf(text, size, "floating-point exception");
        return PH_E_FLOATING_POINT;
    case VECTOR_ALIGNMENT:
        snprintf(text, size, "unaligned access");
        return PH_E_ALIGNMENT;
    case VECTOR_DOUBLE_FAULT:
        snprintf(text, size, "double fault, error code 0x%x,", exit->error_code);
        return PH_E_DOUBLE_FAULT;
    default:
        snprintf(text, size, "processor exception 0x%x, error code 0x%x,", exit->vector, exit->error_code);
        return PH_E_EXCEPTION;
    }
}

static ph_status end(ph_sandbox *sandbox, const struct ph__exit *exit) {
    char text[160];
    const struct place place = locate(sandbox, sandbox->vcpu->regs->rip);
    ph_status status = classify(sandbox, exit, text, sizeof text);

    return report(sandbox, status, exit, text, &place);
}

/* ---- going on ------------------------------------------------------------------------------------------ */

/* A fault in the monitor's copy routines: the guest gave a system call a bad pointer. */
static bool is_bad_pointer(const struct ph__exit *exit, uint64_t rip) {
    const struct ph__monitor_header *monitor = ph__monitor();
    uint64_t blob = PH__GVA(PH__MONITOR_GPA);

    return (exit->vector == VECTOR_PAGE_FAULT || exit->vector == VECTOR_GENERAL_PROTECTION) &&
           rip >= blob + monitor->fixup_start && rip < blob + monitor->fixup_end;
}

/* Whether the guest has a handler for this exception. The monitor's word for it is hostile: the worst that a
 * lie does is to enter the monitor, which then says that it cannot. */
static bool is_handled(const ph_sandbox *sandbox, const struct ph__exit *exit, uint64_t rip) {
    int number = ph__exception_signal(exit->vector);
    bool in_window = rip >= PH__WINDOW_GVA;
    uint64_t untrusted_mask =
        __atomic_load_n(&ph__monitor_state(&sandbox->memory)->handled_signals, __ATOMIC_RELAXED);

    return number && !in_window && (untrusted_mask >> (number - 1) & 1);
}

/* Lets the monitor deliver the exception as a signal. */
static void hand_over(ph_sandbox *sandbox, const struct ph__exit *exit) {
    struct ph__exception *exception = &ph__monitor_state(&sandbox->memory)->exception;
    struct ph__regs *regs = sandbox->vcpu->regs;

    sandbox->handled_exception = *exit;
    sandbox->handled_regs = *regs;
    exception->vector = exit->vector;
    exception->error_code = exit->error_code;
    exception->address = exit->address;
    exception->regs = *regs;
    memcpy(sandbox->memory.base + PH__MONITOR_GPA + ph__monitor()->user_rip, &regs->rip, sizeof regs->rip);
    *regs = (struct ph__regs){
        .rip = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->exception,
        .rsp = PH__GVA(PH__MONITOR_STACK_GPA) + PH__MONITOR_STACK_SIZE,
    };
    sandbox->vcpu->regs_changed = true;
}

ph_status ph__fault_unhandled(ph_sandbox *sandbox) {
    if (!sandbox->handled_regs.rip)
        return ph__fault_protocol(sandbox, "an exception that never was");
    struct ph__exit exit = sandbox->handled_exception;
    char cause[160], text[256];
    const struct place place = locate(sandbox, sandbox->handled_regs.rip);

    *sandbox->vcpu->regs = sandbox->handled_regs;
    classify(sandbox, &exit, cause, sizeof cause);
    snprintf(text, sizeof text, "a signal handler could not be entered for this: %s", cause);
    return report(sandbox, PH_E_DOUBLE_FAULT, &exit, text, &place);
}

/* The host's kernel has no page for what the guest touches, or none that can be written. */
static ph_status refused_by_host(ph_sandbox *sandbox, const struct ph__exit *exit) {
    const char *path = ph__files_shrunk(&sandbox->files);
    char text[PH__FILE_PATH_SIZE + 128];

    memset(&sandbox->error, 0, sizeof sandbox->error);
    ph__fault_locate(sandbox);
    const struct place place = place_of(&sandbox->error);
    if (path)
        snprintf(text, sizeof text, "read behind the end of %s, which has become shorter on the host,", path);
    else if (sandbox->restore && sandbox->restore->mapped && ph__snapshot_is_cut(sandbox->restore->mapped))
        snprintf(text, sizeof text, "use of a page that the snapshot's file, now shorter, has lost,");
    else
        snprintf(text, sizeof text, "write to memory that only the host may write");
    return report(sandbox, PH_E_PAGE_FAULT, exit, text, &place);
}

ph_status ph__fault_serve(ph_sandbox *sandbox, const struct ph__exit *exit) {
    const struct place nowhere = {""};
    struct ph__regs *regs = sandbox->vcpu->regs;

    if (exit->kind == PH__EXIT_SHUTDOWN) {
        memset(&sandbox->error, 0, sizeof sandbox->error);
        return report(sandbox, PH_E_TRIPLE_FAULT, exit, "triple fault: the guest's processor was reset",
                      &nowhere);
    }
    if (exit->kind == PH__EXIT_MEMORY)
        return refused_by_host(sandbox, exit);
    if (exit->in_ring0 || exit->vector == VECTOR_DOUBLE_FAULT)
        return end(sandbox, exit);
    if (is_bad_pointer(exit, regs->rip)) {
        regs->rip = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->fixup_landing;
        sandbox->vcpu->regs_changed = true;
        return PH_OK;
    }
    if (is_handled(sandbox, exit, regs->rip)) {
        hand_over(sandbox, exit);
        return PH_OK;
    }
    return end(sandbox, exit);
}
