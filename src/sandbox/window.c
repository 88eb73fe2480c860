/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Opening, marking and closing the window of a call (window.h), and the one signal that brings a vCPU back.
 * Nothing in the path of ph_interrupt takes a lock or allocates: it is a few atomic operations and two system
 * calls.
 */
#include "sandbox/window.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "abi/hot.h"
#include "base/error.h"
#include "base/system.h"
#include "base/time.h"
#include "vm/vcpu.h"

/* The signal only has to arrive: it ends a system call that waits, KVM_RUN or a sleep. */
static void on_signal(int number) {
    (void)number;
}

static int default_signal(void) {
    return SIGRTMIN + 3;
}

static ph_status not_a_signal(int number, ph_error *error) {
    return ph__error_set_system(error, PH_E_ARGUMENT, errno, "signal %d cannot interrupt a vCPU", number);
}

static ph_status take_signal(int number, ph_error *error) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction old;

    sigemptyset(&action.sa_mask);
    if (ph__system.sigaction(number, NULL, &old) != 0)
        return not_a_signal(number, error);
    bool ours = !(old.sa_flags & SA_SIGINFO) && old.sa_handler == on_signal;
    bool is_free = !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL;
    if (!ours && !is_free)
        return ph__error_set(error, PH_E_SIGNAL_TAKEN,
                             "signal %d already has a handler; choose another with interrupt_signal", number);
    if (is_free && ph__system.sigaction(number, &action, NULL) != 0)
        return not_a_signal(number, error);
    return PH_OK;
}

static ph_status install_handler(int number, ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    ph_status status = take_signal(number, error);
    pthread_mutex_unlock(&lock);
    return status;
}

ph_status ph__window_init(struct ph__window *window, struct ph__vcpu *vcpu, int signal, ph_error *error) {
    memset(window, 0, sizeof *window);
    window->vcpu = vcpu;
    window->signal = signal ? signal : default_signal();
    return install_handler(window->signal, error);
}

void ph__window_destroy(struct ph__window *window) {
    ph__timer_forget(window);
}

/* Whether this thread keeps the signal out. Asked at every call: a thread may change its mind, and its guest
 * could then not be stopped. */
static bool signal_blocked(int number) {
    sigset_t blocked;

    return ph__system.pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0 || sigismember(&blocked, number) == 1;
}

PH__HOT ph_status ph__window_open(struct ph__window *window, uint64_t timeout_ns, bool watched,
                                  ph_error *error) {
    if (signal_blocked(window->signal))
        return ph__error_set(error, PH_E_SIGNAL_BLOCKED,
                             "this thread blocks signal %d, so its calls could not be interrupted",
                             window->signal);
    uint64_t deadline = 0;
    if (timeout_ns) {
        uint64_t now = ph__time_ns(CLOCK_MONOTONIC);
        deadline = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
    }
    atomic_store_explicit(&window->deadline_ns, deadline, memory_order_relaxed);
    atomic_store_explicit(&window->thread, ph__process_thread(), memory_order_relaxed);
    uint32_t closed = atomic_load_explicit(&window->word, memory_order_relaxed);
    /* Publishes deadline and thread to whoever sees this window open. */
    atomic_store_explicit(&window->word, closed + PH__WINDOW_STEP + PH__WINDOW_OPEN, memory_order_release);
    if (!timeout_ns && !watched)
        return PH_OK;
    /* Without a time-out this only has the thread know the window. */
    ph_status status = timeout_ns ? ph__timer_arm(window, deadline, timeout_ns, error)
                                  : ph__timer_arm(window, UINT64_MAX, UINT64_MAX, error);
    if (status != PH_OK)
        ph__window_close(window);
    return status;
}

PH__HOT ph_status ph__window_watch(struct ph__window *window, uint64_t deadline_ns, uint64_t limit_ns,
                                   ph_error *error) {
    atomic_store_explicit(&window->cpu_deadline_ns, deadline_ns, memory_order_relaxed);
    return ph__timer_arm(window, deadline_ns, limit_ns, error);
}

PH__HOT uint32_t ph__window_close(struct ph__window *window) {
    uint32_t word = atomic_load_explicit(&window->word, memory_order_relaxed);
    uint32_t closed;

    do
        closed = word & ~(PH__WINDOW_OPEN | PH__WINDOW_MARKS);
    while (!atomic_compare_exchange_weak_explicit(&window->word, &word, closed, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return word & PH__WINDOW_STOPPED;
}

void ph__window_send(struct ph__window *window) {
    pid_t thread = atomic_load_explicit(&window->thread, memory_order_relaxed);

    /* A real-time signal has to be queued, and the queue of a user has a limit (RLIMIT_SIGPENDING). */
    bool sent = ph__system.tgkill(ph__system.getpid(), thread, window->signal) == 0 || errno != EAGAIN;
    atomic_store_explicit(&window->unsent, !sent, memory_order_relaxed);
}

void ph__window_mark_once(struct ph__window *window, uint32_t seen, uint32_t mark) {
    uint32_t expected = seen;

    /* A window that has been closed, and perhaps opened again, has another word: the mark then goes nowhere.
     */
    while (!atomic_compare_exchange_weak(&window->word, &expected, expected | mark)) {
        if ((expected & ~PH__WINDOW_MARKS) != (seen & ~PH__WINDOW_MARKS))
            return;
    }
    window->vcpu->backend->kick(window->vcpu);
    ph__window_send(window);
}

#define SEND_TURNS 1000

void ph__window_mark(struct ph__window *window, uint32_t seen, uint32_t mark) {
    const struct timespec pause = {.tv_nsec = PH__WINDOW_SEND_AGAIN_NS};

    ph__window_mark_once(window, seen, mark);
    for (int turn = 0; turn < SEND_TURNS && atomic_load_explicit(&window->unsent, memory_order_relaxed);
         turn++) {
        /* The call is over, or this thread is the call's own: then it is not in its guest, and will look for
         * marks before it is again. */
        if (((atomic_load(&window->word) ^ seen) & ~PH__WINDOW_MARKS) != 0 ||
            atomic_load_explicit(&window->thread, memory_order_relaxed) == ph__system.gettid())
            return;
        ph__system.nanosleep(&pause, NULL);
        ph__window_send(window);
    }
}

void ph__window_sleep(struct ph__window *window, uint64_t ns) {
    uint64_t start = ph__time_ns(CLOCK_MONOTONIC);
    uint64_t end = ns < UINT64_MAX - start ? start + ns : UINT64_MAX;
    uint32_t word;

    while (!((word = atomic_load(&window->word)) & PH__WINDOW_STOPPED)) {
        uint64_t now = ph__time_ns(CLOCK_MONOTONIC);
        if (now >= end)
            return;
        uint64_t left = end - now;
        struct timespec timeout = ph__timespec_of(left);
        /* A mark changes the word, so that the kernel refuses to wait; the signal ends a wait under way. */
        ph__system.futex_wait(&window->word, word, end == UINT64_MAX ? NULL : &timeout);
    }
}
