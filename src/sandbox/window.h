/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The window of a call: the time from its start to its return in which an interrupt or a time-out ends it.
 * One atomic word says whether a window is open, which one it is, and who has marked it. A mark can only be
 * set in the very window that its setter saw, so it never ends another call.
 *
 * Setting a mark, then kicking the vCPU, and checking for marks after every kick and before every entry, is
 * all there is: a kick or a signal that arrives late finds no mark, and the vCPU just goes on.
 */
#ifndef PH_SANDBOX_WINDOW_H
#define PH_SANDBOX_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <pinhole/pinhole.h>

#include "base/process.h"

struct ph__vcpu;

#define PH__WINDOW_OPEN 1u
#define PH__WINDOW_INTERRUPTED 2u
#define PH__WINDOW_TIMED_OUT 4u
#define PH__WINDOW_STOPPED (PH__WINDOW_INTERRUPTED | PH__WINDOW_TIMED_OUT)
/* Perhaps the guest has used up its processor time. Only a reason to count again (limits.c), and for nothing
 * else: a sleep or a host function that is under way meanwhile goes on. */
#define PH__WINDOW_CPU_TIME 8u
#define PH__WINDOW_MARKS (PH__WINDOW_STOPPED | PH__WINDOW_CPU_TIME)
#define PH__WINDOW_STEP 16u /* the rest of the word counts windows, and may wrap */

struct ph__window {
    _Atomic uint32_t word;            /* also the futex that a sleeping guest waits on */
    _Atomic pid_t thread;             /* of the call */
    _Atomic uint64_t deadline_ns;     /* CLOCK_MONOTONIC; 0 is none. Written before the window opens */
    _Atomic uint64_t cpu_deadline_ns; /* the same for processor time, while the vCPU runs; else 0 */
    struct ph__vcpu *vcpu;
    int signal;
    _Atomic bool unsent; /* there was no room for the signal of the last mark */
    /* The timer thread's list of windows that ever had a deadline. */
    struct ph__window *next, *previous;
    bool listed;
};

/* Prepares (window) for (vcpu), installing the handler of (signal) (0: the default) when this process has not
 * yet. PH_E_SIGNAL_TAKEN when somebody else handles it. */
ph_status ph__window_init(struct ph__window *window, struct ph__vcpu *vcpu, int signal, ph_error *error);

/* Takes it off the timer's list. */
void ph__window_destroy(struct ph__window *window);

/* Opens a window on the calling thread, with a time-out unless (timeout_ns) is 0. (watched): ph__window_watch
 * will be used in it. PH_E_SIGNAL_BLOCKED, PH_E_MEMORY or PH_E_SYSTEM. */
ph_status ph__window_open(struct ph__window *window, uint64_t timeout_ns, bool watched, ph_error *error);

/* Has the timer set PH__WINDOW_CPU_TIME at (deadline_ns), unless cpu_deadline_ns becomes 0 before. (limit_ns)
 * is all of the processor time. */
ph_status ph__window_watch(struct ph__window *window, uint64_t deadline_ns, uint64_t limit_ns,
                           ph_error *error);

/* Closes it. Returns the marks of PH__WINDOW_STOPPED that it got. */
uint32_t ph__window_close(struct ph__window *window);

/* Those marks of the open window that end it. */
static inline uint32_t ph__window_marks(const struct ph__window *window) {
    return atomic_load_explicit(&((struct ph__window *)window)->word, memory_order_relaxed) &
           PH__WINDOW_STOPPED;
}

/* Takes (mark) back. */
static inline void ph__window_unmark(struct ph__window *window, uint32_t mark) {
    if (atomic_load_explicit(&window->word, memory_order_relaxed) & mark)
        atomic_fetch_and(&window->word, ~mark);
}

/* PH_OK, PH_E_INTERRUPTED or PH_E_TIMED_OUT for a set of marks. */
static inline ph_status ph__window_status(uint32_t marks) {
    if (marks & PH__WINDOW_INTERRUPTED)
        return PH_E_INTERRUPTED;
    return marks & PH__WINDOW_TIMED_OUT ? PH_E_TIMED_OUT : PH_OK;
}

/* Waits (ns) nanoseconds, UINT64_MAX for ever, or until the window has a mark that ends it. */
void ph__window_sleep(struct ph__window *window, uint64_t ns);

/* Sets (mark) in the window if it still is what (seen) says and is open, and kicks the vCPU. From any thread
 * and any signal handler. Where the kernel has no room for one more signal it tries again, a second at most.
 */
void ph__window_mark(struct ph__window *window, uint32_t seen, uint32_t mark);

/* The same for the timer, who does not wait but sends the signal again (ph__window_send) as long as it is
 * unsent. */
void ph__window_mark_once(struct ph__window *window, uint32_t seen, uint32_t mark);

/* Sends the signal of a mark. */
void ph__window_send(struct ph__window *window);

/* Until it is sent again. */
#define PH__WINDOW_SEND_AGAIN_NS 1000000u

/* timer.c: has the timer thread look after (window), whose deadline is set. */
ph_status ph__timer_arm(struct ph__window *window, uint64_t deadline_ns, uint64_t timeout_ns,
                        ph_error *error);
void ph__timer_forget(struct ph__window *window);

#endif
