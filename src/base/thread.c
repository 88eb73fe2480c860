/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Starting a thread with every signal blocked (thread.h): it inherits the mask of the thread that starts it,
 * which has its own one back afterwards. Called for the timer and by tracers; never in the path of a call.
 */
#include "base/thread.h"

#include <signal.h>

#include "base/system.h"

int ph__thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                     void *argument) {
    sigset_t all, before;

    sigfillset(&all);
    int number = ph__system.pthread_sigmask(SIG_SETMASK, &all, &before);
    if (number != 0)
        return number;
    number = ph__system.pthread_create(thread, attributes, start, argument);
    /* If this failed, the thread would run and could not be taken back. It is not lost silently: a caller
     * whose signals stay blocked is told so by its next call (PH_E_SIGNAL_BLOCKED). */
    ph__system.pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number;
}
