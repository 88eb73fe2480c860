/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The one thread that ends calls at their deadline. It starts at the first call with a time-out or a limit of
 * processor time, blocks every signal, and lives as long as the process.
 *
 * Arming must cost a call almost nothing, so a call never hands its deadline over: the thread reads the
 * deadlines of all windows that ever had one. It only has to be woken for a deadline that comes before the
 * time at which it wakes anyway, and while calls keep coming it wakes at least as often as the shortest
 * time-out among them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"
#include "sandbox/window.h"

#define NEVER UINT64_MAX

struct timer {
    uint64_t process;
    struct timer *inherited; /* the parent's: its lock may be held for ever, so it is kept as it is */
    pthread_mutex_t lock;    /* the list, and (shortest_ns) */
    pthread_cond_t wake;
    struct ph__window *windows;
    uint64_t shortest_ns; /* the shortest time-out asked for since the thread was idle */
    /* When the thread wakes by itself. NEVER while it looks around: whoever arms in that time must wake it.
     */
    _Atomic uint64_t next_wake_ns;
    atomic_bool used; /* a call was armed since the thread looked last */
};

static _Atomic(struct timer *) timer;

/* Whether (deadline), 0 for none, is still to come. (*earliest) is then no later. */
static bool is_later(uint64_t deadline, uint64_t now, uint64_t *earliest) {
    if (deadline == 0)
        return true;
    if (deadline <= now)
        return false;
    if (deadline < *earliest)
        *earliest = deadline;
    return true;
}

/* A mark whose signal could not be sent ends nothing: the guest would run on. */
static void look_again(const struct ph__window *window, uint64_t now, uint64_t *earliest) {
    if (atomic_load_explicit(&((struct ph__window *)window)->unsent, memory_order_relaxed) &&
        now + PH__WINDOW_SEND_AGAIN_NS < *earliest)
        *earliest = now + PH__WINDOW_SEND_AGAIN_NS;
}

/* Marks what is due, and returns the earliest deadline that is not. */
static uint64_t look_around(struct timer *t, uint64_t now) {
    uint64_t earliest = NEVER;

    for (struct ph__window *window = t->windows; window; window = window->next) {
        /* The deadline belongs to the window that was seen open before it, or to a later one; in that case
         * the word has changed and the mark does not stick. */
        uint32_t seen = atomic_load_explicit(&window->word, memory_order_acquire);
        uint64_t deadline = atomic_load_explicit(&window->deadline_ns, memory_order_relaxed);
        uint64_t cpu_deadline = atomic_load_explicit(&window->cpu_deadline_ns, memory_order_relaxed);
        if (!(seen & PH__WINDOW_OPEN))
            continue;
        if ((seen & PH__WINDOW_MARKS) && atomic_load_explicit(&window->unsent, memory_order_relaxed))
            ph__window_send(window);
        if (seen & PH__WINDOW_STOPPED) {
            look_again(window, now, &earliest);
            continue;
        }
        if (!is_later(deadline, now, &earliest))
            ph__window_mark_once(window, seen, PH__WINDOW_TIMED_OUT);
        /* The vCPU may have come back just now: the mark is then found to be wrong, and taken back. */
        else if (!is_later(cpu_deadline, now, &earliest) && !(seen & PH__WINDOW_CPU_TIME))
            ph__window_mark_once(window, seen, PH__WINDOW_CPU_TIME);
        look_again(window, now, &earliest);
    }
    return earliest;
}

static void *timer_main(void *argument) {
    struct timer *t = argument;

    pthread_mutex_lock(&t->lock);
    for (;;) {
        /* Order: first "wake me", then look. A call that arms after the look finds NEVER and wakes us; one
         * that armed before it is seen. */
        atomic_store(&t->next_wake_ns, NEVER);
        uint64_t now = ph__time_ns(CLOCK_MONOTONIC);
        bool used = atomic_exchange(&t->used, false);
        uint64_t wake = look_around(t, now);
        if (used && t->shortest_ns < wake - now)
            wake = now + t->shortest_ns;
        if (wake == NEVER) {
            t->shortest_ns = NEVER;
            pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        atomic_store(&t->next_wake_ns, wake);
        struct timespec until = ph__timespec_of(wake);
        pthread_cond_timedwait(&t->wake, &t->lock, &until);
    }
    return NULL;
}

static ph_status start_thread(struct timer *t, ph_error *error) {
    pthread_t thread;
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int number = ph__thread_start(&thread, &attributes, timer_main, t);
    pthread_attr_destroy(&attributes);
    if (number != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, number, "the timer thread could not be started");
    return PH_OK;
}

/* This process's timer. A child after fork() makes one of its own: the parent's thread is not there, and its
 * lock may have been held. */
static ph_status timer_get(struct timer **result, ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct timer *t = atomic_load_explicit(&timer, memory_order_acquire);
    ph_status status = PH_OK;

    if (t && t->process == ph__process_id()) {
        *result = t;
        return PH_OK;
    }
    pthread_mutex_lock(&lock);
    t = atomic_load(&timer);
    if (!t || t->process != ph__process_id()) {
        pthread_condattr_t attributes;
        t = calloc(1, sizeof *t);
        if (!t) {
            status = ph__error_set(error, PH_E_MEMORY, "no memory for the timer");
            goto unlock;
        }
        t->process = ph__process_id();
        t->inherited = atomic_load(&timer);
        t->shortest_ns = NEVER;
        atomic_init(&t->next_wake_ns, NEVER);
        pthread_mutex_init(&t->lock, NULL);
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&t->wake, &attributes);
        pthread_condattr_destroy(&attributes);
        status = start_thread(t, error);
        if (status != PH_OK) {
            free(t);
            goto unlock;
        }
        atomic_store_explicit(&timer, t, memory_order_release);
    }
    *result = t;
unlock:
    pthread_mutex_unlock(&lock);
    return status;
}

/* The list only grows here, so that arming a listed window takes no lock. */
static void list(struct timer *t, struct ph__window *window) {
    window->previous = NULL;
    window->next = t->windows;
    if (t->windows)
        t->windows->previous = window;
    t->windows = window;
    window->listed = true;
}

ph_status ph__timer_arm(struct ph__window *window, uint64_t deadline_ns, uint64_t timeout_ns,
                        ph_error *error) {
    struct timer *t = NULL;
    ph_status status = timer_get(&t, error);

    if (status != PH_OK || !t)
        return status;
    if (!window->listed) {
        pthread_mutex_lock(&t->lock);
        list(t, window);
        pthread_mutex_unlock(&t->lock);
    }
    if (!atomic_load_explicit(&t->used, memory_order_relaxed))
        atomic_store(&t->used, true);
    /* Pairs with the order in timer_main: the window was opened before this load. */
    atomic_thread_fence(memory_order_seq_cst);
    if (deadline_ns < atomic_load(&t->next_wake_ns)) {
        pthread_mutex_lock(&t->lock);
        if (timeout_ns < t->shortest_ns)
            t->shortest_ns = timeout_ns;
        pthread_cond_signal(&t->wake);
        pthread_mutex_unlock(&t->lock);
    }
    return PH_OK;
}

void ph__timer_forget(struct ph__window *window) {
    struct timer *t = atomic_load_explicit(&timer, memory_order_acquire);

    if (!window->listed || !t || t->process != ph__process_id())
        return;
    pthread_mutex_lock(&t->lock);
    if (window->next)
        window->next->previous = window->previous;
    if (window->previous)
        window->previous->next = window->next;
    else
        t->windows = window->next;
    window->listed = false;
    pthread_mutex_unlock(&t->lock);
}
