/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Counts of a tracer over all its streams. They are changed by whoever counts, under that one's lock, and
 * read here without: each is right, and they may be of slightly different moments. Only the list of streams
 * is held still meanwhile, so nobody who asks waits for a sink.
 */
#include "trace/stats.h"

#include "base/process.h"
#include "trace/tracer.h"

void ph__trace_stats_add(ph_trace_stats *stats, const ph_trace_stats *more) {
    /* All of it is counts. */
    uint64_t *to = (uint64_t *)stats;
    const uint64_t *from = (const uint64_t *)more;

    for (size_t i = 0; i < sizeof *stats / sizeof *to; i++)
        to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
_Static_assert(sizeof(ph_trace_stats) % sizeof(uint64_t) == 0, "ph__trace_stats_add");

void ph__tracer_look(ph_tracer *tracer, ph_trace_stats *stats, uint64_t *queued) {
    *stats = (ph_trace_stats){0};
    *queued = 0;
    if (!tracer || tracer->owner != ph__process_id())
        return;
    pthread_mutex_lock(&tracer->list_lock);
    *stats = tracer->closed;
    for (const struct ph__stream *stream = tracer->streams; stream; stream = stream->next) {
        ph__trace_stats_add(stats, &stream->produced);
        ph__trace_stats_add(stats, &stream->consumed);
        *queued += ph__queue_used(&stream->queue);
    }
    pthread_mutex_unlock(&tracer->list_lock);
}

ph_status ph__tracer_watch(ph_tracer *tracer, struct ph__tracer_watch *watch) {
    if (tracer->owner != ph__process_id())
        return PH_E_FORKED;
    pthread_mutex_lock(&tracer->list_lock);
    watch->next = tracer->watches;
    tracer->watches = watch;
    pthread_mutex_unlock(&tracer->list_lock);
    return PH_OK;
}

bool ph__tracer_unwatch(ph_tracer *tracer, struct ph__tracer_watch *watch) {
    pthread_mutex_lock(&tracer->list_lock);
    struct ph__tracer_watch **link = &tracer->watches;
    while (*link && *link != watch)
        link = &(*link)->next;
    const bool found = *link != NULL;
    if (found)
        *link = watch->next;
    pthread_mutex_unlock(&tracer->list_lock);
    return found;
}

static struct ph__tracer_watch *watch_take(ph_tracer *tracer) {
    pthread_mutex_lock(&tracer->list_lock);
    struct ph__tracer_watch *watch = tracer->watches;
    if (watch)
        tracer->watches = watch->next;
    pthread_mutex_unlock(&tracer->list_lock);
    return watch;
}

void ph__tracer_watches_end(ph_tracer *tracer) {
    struct ph__tracer_watch *watch;

    /* Without the lock, which is for those who look. */
    while ((watch = watch_take(tracer)) != NULL)
        watch->ended(watch);
}

void ph_tracer_stats(ph_tracer *tracer, ph_trace_stats *stats) {
    uint64_t queued;

    ph__tracer_look(tracer, stats, &queued);
}
