/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the monitor's files share. The monitor runs in ring 3 with the guest, on a stack of its own, and
 * serves its system calls. It trusts the control page and nothing that the guest says; but a guest can
 * overwrite all of it and hurts only itself, so the checks here are for programs that expect Linux.
 *
 * One vCPU, and nothing interrupts the monitor: plain static variables, no locks. Every system call has
 * the shape of ph__system_call_function and answers as the kernel does: a value, or -errno.
 */
#ifndef PH_MONITOR_MONITOR_H
#define PH_MONITOR_MONITOR_H

#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/control.h"
#include "abi/doorbell.h"
#include "abi/layout.h"
#include "abi/monitor.h"
#include "monitor/user.h"

typedef int64_t ph__system_call_function(struct ph__regs *regs);

extern struct ph__monitor_state ph__state;

static inline uint64_t ph__tsc_read(void) {
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

#define PH__NS_PER_SECOND 1000000000ull
#define PH__FOREVER UINT64_MAX

/* The program's only process and thread. Its user is PH__USER_ID (abi/layout.h). */
#define PH__PROCESS_ID 1

/* The host may write the page at any exit, so each field is read where it is used. */
static inline const volatile struct ph__control *ph__control(void) {
    return (const volatile struct ph__control *)PH__GVA(PH__CONTROL_GPA);
}

/* ------------------------------------------------------------- entry.S's C side -- */

/* Serves the system call in (regs), puts its result there and delivers signals. */
void ph__monitor_dispatch(struct ph__regs *regs);
/* Fills (regs) with what ph__state.exception leads to: a signal handler's first instruction. */
void ph__monitor_exception(struct ph__regs *regs);
/* Fills (regs) with the state in which a program starts. */
void ph__monitor_start(uint64_t entry, uint64_t stack, struct ph__regs *regs);

/* --------------------------------------------------------------- pages.c -- */

/* The arena's pages are counted from its bottom. Ranges are [start, end). */
#define PH__NO_PAGE SIZE_MAX

uint64_t ph__page_address(size_t page);
/* True if [address, address + size) lies within the arena. */
bool ph__in_arena(uint64_t address, uint64_t size);
size_t ph__page_count(void);
size_t ph__page_of(uint64_t address);
bool ph__pages_all_used(size_t start, size_t end);
bool ph__pages_all_free(size_t start, size_t end);
size_t ph__pages_used(void);
/* The highest (count) free pages in a row at or above (low), or PH__NO_PAGE. */
size_t ph__pages_find(size_t low, size_t count);
/* Hands out pages, all zero, readable and writable. Returns 0 or -ENOMEM, and then nothing has changed. */
int64_t ph__pages_take(size_t start, size_t end);
/* Makes the contents of pages zero. Returns 0, or -errno if they cannot be written. */
int64_t ph__pages_zero(size_t start, size_t end);
/* Takes back those pages of the range that were handed out. */
void ph__pages_give(size_t start, size_t end);
/* Has the host change what ring 3 may do with pages; any range, in the arena or out of it. */
int64_t ph__protect(uint64_t address, uint64_t size, uint64_t protection);
/* True if some page of the arena's range may have another protection than read-write. */
bool ph__pages_protected(size_t start, size_t end);

/* --------------------------------------------------------------- memory.c -- */

/* True if something is mapped at (address), whatever its protection. */
bool ph__is_mapped(uint64_t address);

/* ---------------------------------------------------------------- time.c -- */

uint64_t ph__monotonic_ns(void);
uint64_t ph__realtime_ns(void);
/* Time during which the program neither slept nor waited for input. */
uint64_t ph__processor_ns(void);
/* Takes time that began at (since_ns) off the processor time. */
void ph__account_idle(uint64_t since_ns);
void ph__sleep(uint64_t duration_ns);
/* Reads a timespec of the guest. Returns 0, -EFAULT, or -EINVAL for what is no duration. Seconds that do
 * not fit are PH__FOREVER - 1. */
int64_t ph__duration_from_user(uint64_t address, uint64_t *duration_ns);

/* -------------------------------------------------------- descriptors.c -- */

enum ph__descriptor {
    PH__CLOSED = 0,
    PH__INPUT = 1,
    PH__OUTPUT = 2,
    PH__ERROR = 3,
    PH__FILE = 4 /* which one: files.h */
};
#define PH__DESCRIPTORS_MAX 256

/* What (descriptor) stands for after dup and close. */
enum ph__descriptor ph__descriptor_get(uint64_t descriptor);

/* ------------------------------------------------------------------ io.c -- */

#define PH__MOST_BYTES 0x7ffff000ull /* MAX_RW_COUNT: Linux transfers no more at once */

struct iovec;
/* Reads entry (index) of a guest's vector and cuts it to what is left of (rest). */
int64_t ph__vector_entry(uint64_t vector, uint64_t index, uint64_t *rest, struct iovec *entry);

/* -------------------------------------------------------------- signals.c -- */

#define PH__SIGNALS_MAX 64
#define PH__SIGNAL_BIT(signal) (1ull << ((signal)-1))

/* struct kernel_sigaction of x86-64 Linux. */
struct ph__signal_action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
};

/* siginfo_t as the kernel writes it. */
struct ph__signal_info {
    int32_t signo, error, code, pad;
    union {
        struct {
            int32_t pid;
            uint32_t uid;
            uint64_t value;
        };
        uint64_t address;
        uint64_t words[14];
    };
};
_Static_assert(sizeof(struct ph__signal_info) == 128, "siginfo_t has 128 bytes");

/* stack_t */
struct ph__signal_stack {
    uint64_t base;
    int32_t flags, pad;
    uint64_t size;
};

/* True if a signal waits that is not blocked. */
bool ph__signals_pending(void);
/* At the end of each system call: turns (regs) towards the handlers of signals that wait, or ends the
 * program. */
void ph__signals_deliver(struct ph__regs *regs);
/* For the length of one system call that sleeps. The old mask is back once a handler has returned, or at
 * the end of the call. */
void ph__signals_mask_for_call(uint64_t mask);
/* Reads a signal set of the guest. */
int64_t ph__signal_set_from_user(uint64_t address, uint64_t size, uint64_t *set);

/* --------------------------------------------------------- signal_frame.c -- */

/* What a signal frame saves besides registers. */
struct ph__signal_context {
    uint64_t mask;
    struct ph__signal_stack stack;
};

/* Writes the frame of (info)'s signal below the stack in (regs) or on the alternate one, and turns (regs) to
 * the handler. (exception) is NULL unless the signal stands for one. False if the stack cannot take it. */
bool ph__signal_frame_push(struct ph__regs *regs, const struct ph__signal_info *info,
                           const struct ph__signal_action *action, const struct ph__signal_context *context,
                           const struct ph__exception *exception);
/* Reads the frame that a handler returned from. False if it is none. */
bool ph__signal_frame_pop(struct ph__regs *regs, struct ph__signal_context *context);
/* True if (stack_pointer) is on the alternate stack. */
bool ph__on_signal_stack(const struct ph__signal_stack *stack, uint64_t stack_pointer);

/* ------------------------------------------------------- floating_point.c -- */

/* Bytes that a frame needs for the vector state, at an address divisible by 64. */
uint64_t ph__floating_point_size(void);
/* All three false or void if the area cannot be used. */
bool ph__floating_point_save(uint64_t area);
bool ph__floating_point_restore(uint64_t area);
void ph__floating_point_reset(void);
/* si_code for an x87 (vector 16) or SIMD (19) exception. */
int32_t ph__floating_point_code(uint64_t vector);
bool ph__floating_point_is_extended(void);

/* ---------------------------------------------------------------- trace.c -- */

/* True if the host wants to hear of this sandbox at all: only then may the functions here be called. */
static inline bool ph__is_traced(void) {
    return ph__control()->trace.ring_size != 0;
}

/* Begins the span of the program's start, which is the ring's first record. */
void ph__trace_start(void);
/* Begins the span of a system call of a guest whose stack is at (stack_pointer). Returns its position or 0.
 */
uint64_t ph__trace_system_call(uint64_t number, uint64_t stack_pointer);
void ph__trace_system_call_end(uint64_t position, int64_t answer);
/* Says that the program is about to end, by itself (0) or by (signal). */
void ph__trace_exit(uint64_t status, uint64_t signal);

/* Where a signal handler comes in between while the guest writes a record: it would go on at (rip), but has
 * to go back to (start) if the ring's head is another than (head) by then. (start) is 0 where it writes none.
 */
struct ph__interrupted {
    uint64_t start;
    uint64_t rip;
    uint64_t head;
};
struct ph__interrupted ph__trace_interrupt(uint64_t rip);
/* Where a guest goes on whose handler returns to (rip). */
uint64_t ph__trace_resume(const struct ph__interrupted *interrupted, uint64_t rip);

/* -------------------------------------------------------------- process.c -- */

_Noreturn void ph__exit(uint64_t status);
_Noreturn void ph__kill(uint64_t signal);
_Noreturn void ph__unhandled(void);

#endif
