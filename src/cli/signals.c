/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The handlers of Ctrl-C and SIGTERM (signals.h). They use what signal-safety(7) allows, and ph_interrupt,
 * which may be called from one.
 */
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

static _Atomic(ph_sandbox *) target;
static atomic_int received;
static int wake = -1;

/* An interrupt that comes between two calls is not remembered by the library, so it is repeated each second
 * until we are done. */
static void interrupt_target(void) {
    ph_sandbox *sandbox = atomic_load(&target);

    if (sandbox)
        ph_interrupt(sandbox);
    alarm(1);
}

static void on_alarm(int number) {
    (void)number;
    interrupt_target();
}

static void on_signal(int number) {
    int saved = errno;
    int none = 0;

    if (!atomic_compare_exchange_strong(&received, &none, number))
        _exit(128 + number);
    interrupt_target();
    const uint64_t one = 1;
    if (write(wake, &one, sizeof one) < 0)
        errno = saved; /* poll is then woken by the signal itself, or by the alarm */
    errno = saved;
}

static bool handle(int number, void (*handler)(int)) {
    /* No SA_RESTART: a read or write that waits must end. */
    struct sigaction action = {.sa_handler = handler};

    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL) == 0;
}

bool ph__signals_init(void) {
    /* The library's signal as it is by default: whoever started us may have blocked or ignored it. */
    const int interrupt_signal = SIGRTMIN + 3;
    sigset_t ours;

    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0 || !handle(interrupt_signal, SIG_DFL) || !handle(SIGALRM, on_alarm) ||
        !handle(SIGINT, on_signal) || !handle(SIGTERM, on_signal))
        return false;
    sigemptyset(&ours);
    sigaddset(&ours, interrupt_signal);
    sigaddset(&ours, SIGALRM);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    return sigprocmask(SIG_UNBLOCK, &ours, NULL) == 0;
}

void ph__signals_target(ph_sandbox *sandbox) {
    atomic_store(&target, sandbox);
}

int ph__signals_received(void) {
    return atomic_load(&received);
}

int ph__signals_descriptor(void) {
    return wake;
}
