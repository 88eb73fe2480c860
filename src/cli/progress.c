/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The line of progress (progress.h). It is overwritten in its place, and nothing is left of it; where it
 * cannot be shown, nothing else changes.
 */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 1000u
#define NEXT_MS 250u

/* Waits for the end, at most (ms). True when it has come. With the lock held. */
static bool wait_for_end(struct ph__progress *progress, unsigned ms) {
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!progress->stop)
        if (pthread_cond_timedwait(&progress->wake, &progress->lock, &until) != 0)
            break;
    return progress->stop;
}

static void *show(void *context) {
    struct ph__progress *progress = context;
    bool shown = false;

    pthread_mutex_lock(&progress->lock);
    while (!wait_for_end(progress, shown ? NEXT_MS : FIRST_MS)) {
        char line[79]; /* of a terminal that is narrow */
        progress->tell(progress->context, line, sizeof line);
        fprintf(stderr, "\r\033[K%s", line);
        fflush(stderr);
        shown = true;
    }
    pthread_mutex_unlock(&progress->lock);
    if (shown)
        fputs("\r\033[K", stderr);
    return NULL;
}

void ph__progress_begin(struct ph__progress *progress, void (*tell)(void *context, char *line, size_t size),
                        void *context) {
    *progress = (struct ph__progress){.tell = tell, .context = context};
    if (!isatty(STDERR_FILENO))
        return;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->wake, NULL);
    progress->has_thread = pthread_create(&progress->thread, NULL, show, progress) == 0;
}

void ph__progress_end(struct ph__progress *progress) {
    if (!progress->has_thread)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->stop = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
}
