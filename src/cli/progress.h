/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A line on a terminal for work that takes longer than a person expects.
 */
#ifndef PH_CLI_PROGRESS_H
#define PH_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct ph__progress {
    void (*tell)(void *context, char *line, size_t size);
    void *context;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop; /* under (lock) */
};

/* Shows what (tell) writes into (line) from a second on, a few times a second, when stderr is a terminal.
 * (tell) is called by a thread of its own. Whoever writes to stderr has called ph__progress_end first. */
void ph__progress_begin(struct ph__progress *progress, void (*tell)(void *context, char *line, size_t size),
                        void *context);

/* Takes the line away. */
void ph__progress_end(struct ph__progress *progress);

#endif
