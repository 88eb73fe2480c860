/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The tracer: its life, its filter and sinks, and the worker that looks at every stream a few hundred times a
 * second. No call wakes the worker unless its queue is half full: a futex wake costs as much as a hundred
 * records.
 */
#include "trace/tracer.h"
#include "trace/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "base/thread.h"
#include "base/time.h"

#define POLL_DEFAULT_MS 2u
#define IDLE_LOOKS 100u /* looks without anything new, after which the worker looks less often */
#define IDLE_FACTOR 10u

/* ---- sinks --------------------------------------------------------------------------------------------- */

/* Each calls one function of every sink; all are called with the tracer's lock held. */

static void to_sinks_span(void *context, const ph_trace_span *span) {
    const ph_tracer *tracer = context;

    for (size_t i = 0; i < tracer->sinks.count; i++)
        if (tracer->sinks.list[i].span)
            tracer->sinks.list[i].span(tracer->sinks.list[i].context, span);
}

static void to_sinks_event(void *context, const ph_trace_event *event) {
    const ph_tracer *tracer = context;

    for (size_t i = 0; i < tracer->sinks.count; i++)
        if (tracer->sinks.list[i].event)
            tracer->sinks.list[i].event(tracer->sinks.list[i].context, event);
}

static void to_sinks_counter(void *context, const ph_trace_counter *counter) {
    const ph_tracer *tracer = context;

    for (size_t i = 0; i < tracer->sinks.count; i++)
        if (tracer->sinks.list[i].counter)
            tracer->sinks.list[i].counter(tracer->sinks.list[i].context, counter);
}

static void flush_sinks(ph_tracer *tracer) {
    for (size_t i = 0; i < tracer->sinks.count; i++)
        if (tracer->sinks.list[i].flush)
            tracer->sinks.list[i].flush(tracer->sinks.list[i].context);
}

static void close_sink(const ph_sink *sink) {
    if (sink->close)
        sink->close(sink->context);
}

/* ---- streams ------------------------------------------------------------------------------------------- */

void ph__tracer_add(ph_tracer *tracer, struct ph__stream *stream) {
    pthread_mutex_lock(&tracer->lock);
    tracer->started = true;
    pthread_mutex_lock(&tracer->list_lock);
    stream->next = tracer->streams;
    if (stream->next)
        stream->next->previous = stream;
    tracer->streams = stream;
    pthread_mutex_unlock(&tracer->list_lock);
    ph__lock_take(&stream->lock);
    ph__stream_filter(stream, &tracer->filter);
    ph__lock_give(&stream->lock);
    pthread_mutex_unlock(&tracer->lock);
}

static bool tree_make(struct ph__stream *stream) {
    ph_tracer *tracer = stream->tracer;
    const struct ph__stream_options *from = &stream->options;
    const struct ph__tree_options options = {
        .sandbox = stream->number,
        .sites = from->sites,
        .site_count = from->site_count,
        .exports = from->exports,
        .export_count = from->export_count,
        .program = from->program,
        .symbol = from->symbol,
        .symbol_context = from->symbol_context,
        .tsc_offset = stream->view.tsc_offset,
        .call_records =
            from->config->trace_call_records ? from->config->trace_call_records : PH__CALL_RECORDS_DEFAULT,
        .clock = &tracer->clock,
        .tsc_khz = stream->view.tsc_khz,
        .tsc_varies = !ph__trace_clock_is_invariant(),
        .stats = &stream->consumed,
        .output = {tracer, to_sinks_span, to_sinks_event, to_sinks_counter},
    };

    stream->tree = ph__tree_create(&options);
    return stream->tree != NULL;
}

/* Whether (count) is one to speak of: the first, and every tenfold. */
static bool is_power_of_ten(uint64_t count) {
    while (count >= 10 && count % 10 == 0)
        count /= 10;
    return count == 1;
}

/* Says that a guest writes nonsense, at a rate that it cannot raise. */
static void complain(struct ph__stream *stream, uint64_t before) {
    ph_tracer *tracer = stream->tracer;
    char line[160];

    for (uint64_t count = before + 1; count <= stream->consumed.malformed; count++) {
        tracer->malformed_reported++;
        if (!tracer->diagnostics || !is_power_of_ten(tracer->malformed_reported))
            continue;
        snprintf(line, sizeof line,
                 "sandbox %llu: its guest wrote trace records that make no sense (%llu such from all)",
                 (unsigned long long)stream->number, (unsigned long long)tracer->malformed_reported);
        tracer->diagnostics(tracer->diagnostics_context, line);
    }
}

bool ph__stream_consume(struct ph__stream *stream) {
    ph_tracer *tracer = stream->tracer;
    const struct ph__batch *batch;
    bool any = false;

    if (!atomic_load(&stream->known) || (!stream->tree && !tree_make(stream)))
        return false;
    uint64_t malformed = stream->consumed.malformed;
    while ((batch = ph__queue_front(&stream->queue)) != NULL) {
        ph__tree_take(stream->tree, batch, &tracer->filter, tracer->filter_version);
        ph__queue_drop(&stream->queue, batch);
        any = true;
    }
    complain(stream, malformed);
    return any;
}

void ph__tracer_remove(ph_tracer *tracer, struct ph__stream *stream) {
    ph__stream_consume(stream);
    /* What a full queue has kept from being told. */
    ph__ring_losses_tell(stream, 0);
    ph__stream_consume(stream);
    ph__tree_destroy(stream->tree, &tracer->filter);
    stream->tree = NULL;
    pthread_mutex_lock(&tracer->list_lock);
    ph__trace_stats_add(&tracer->closed, &stream->produced);
    ph__trace_stats_add(&tracer->closed, &stream->consumed);
    if (stream->next)
        stream->next->previous = stream->previous;
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        tracer->streams = stream->next;
    pthread_mutex_unlock(&tracer->list_lock);
}

/* Looks at every stream once: takes what a running guest has written meanwhile, and decodes what is queued.
 * A stream whose own thread is at it is passed over, or waited for (patient). True if there was something. */
static bool look(ph_tracer *tracer, bool patient) {
    bool any = false;

    for (struct ph__stream *stream = tracer->streams; stream; stream = stream->next) {
        bool locked = ph__lock_try(&stream->lock);
        if (!locked && patient) {
            ph__lock_take(&stream->lock);
            locked = true;
        }
        if (locked) {
            if (stream->attached)
                ph__ring_take(stream, false);
            ph__ring_losses_tell(stream, PH__QUEUE_KEPT);
            ph__lock_give(&stream->lock);
        }
        any |= ph__stream_consume(stream);
    }
    return any;
}

/* ---- the worker ---------------------------------------------------------------------------------------- */

static struct timespec deadline(uint64_t ns) {
    uint64_t now = ph__time_ns(CLOCK_MONOTONIC);
    return ph__timespec_of(ns < UINT64_MAX - now ? now + ns : UINT64_MAX);
}

static void *work(void *context) {
    ph_tracer *tracer = context;
    uint32_t idle = 0;

    pthread_mutex_lock(&tracer->worker_lock);
    while (!tracer->stop) {
        const uint64_t asked = tracer->flushes_asked;
        const bool flush = asked != tracer->flushes_done;
        pthread_mutex_unlock(&tracer->worker_lock);
        pthread_mutex_lock(&tracer->lock);
        idle = look(tracer, flush) ? 0 : idle + 1;
        if (flush) {
            /* The first look may have found a queue full, and only emptied it. */
            look(tracer, true);
            flush_sinks(tracer);
        }
        pthread_mutex_unlock(&tracer->lock);
        pthread_mutex_lock(&tracer->worker_lock);
        if (flush) {
            tracer->flushes_done = asked;
            pthread_cond_broadcast(&tracer->done);
        }
        if (tracer->stop || tracer->flushes_asked != asked)
            continue;
        uint64_t pause_ms = (uint64_t)tracer->poll_ms * (idle > IDLE_LOOKS ? IDLE_FACTOR : 1);
        struct timespec until = deadline(pause_ms * 1000000ull);
        pthread_cond_timedwait(&tracer->wake, &tracer->worker_lock, &until);
    }
    pthread_mutex_unlock(&tracer->worker_lock);
    return NULL;
}

void ph__tracer_wake(ph_tracer *tracer) {
    pthread_cond_signal(&tracer->wake);
}

static int worker_start(ph_tracer *tracer) {
    int number = ph__thread_start(&tracer->worker, NULL, work, tracer);

    tracer->has_worker = number == 0;
    return number;
}

/* ---- public -------------------------------------------------------------------------------------------- */

static ph_status take_sampler(const ph_tracer_config *config, struct ph__sampling *sampling,
                              ph_error *error) {
    const bool has_ratio = config->sampler == PH_SAMPLER_RATIO || config->sampler == PH_SAMPLER_PARENT_RATIO;

    if ((unsigned)config->sampler > PH_SAMPLER_RATIO)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no sampler number %d", (int)config->sampler);
    /* NaN is not in it either. */
    if (has_ratio && !(config->sampler_ratio >= 0 && config->sampler_ratio <= 1))
        return ph__error_set(error, PH_E_ARGUMENT, "a sampler's ratio is from 0 to 1");
    sampling->sampler = config->sampler;
    sampling->threshold = has_ratio ? ph__ratio_threshold(config->sampler_ratio) : 0;
    return PH_OK;
}

static ph_status take_config(const ph_tracer_config *config, ph_tracer *tracer, ph_error *error) {
    ph_tracer_config taken = PH_TRACER_CONFIG_INIT;

    if (config) {
        if (config->size < offsetof(ph_tracer_config, synchronous) + sizeof config->synchronous ||
            config->size > sizeof *config)
            return ph__error_set(error, PH_E_ARGUMENT,
                                 "the config's size is not one of this library: use PH_TRACER_CONFIG_INIT");
        memcpy(&taken, config, config->size);
    }
    if (taken.queue > PH__QUEUE_MAX)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "a trace queue of %llu bytes is more than the limit of %llu",
                             (unsigned long long)taken.queue, PH__QUEUE_MAX);
    tracer->synchronous = taken.synchronous;
    tracer->queue_size = taken.queue ? taken.queue : PH__QUEUE_DEFAULT;
    tracer->poll_ms = taken.poll_ms ? taken.poll_ms : POLL_DEFAULT_MS;
    tracer->diagnostics = taken.diagnostics;
    tracer->diagnostics_context = taken.diagnostics_context;
    ph_status status = take_sampler(&taken, &tracer->sampling, error);
    if (status != PH_OK)
        return status;
    return ph__filter_parse(taken.filter ? taken.filter : "info", &tracer->filter, error);
}

static void locks_init(ph_tracer *tracer) {
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&tracer->wake, &monotonic);
    pthread_cond_init(&tracer->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&tracer->lock, NULL);
    pthread_mutex_init(&tracer->list_lock, NULL);
    pthread_mutex_init(&tracer->worker_lock, NULL);
}

ph_status ph_tracer_create(const ph_tracer_config *config, ph_tracer **result, ph_error *error) {
    if (!result)
        return ph__error_set(error, PH_E_ARGUMENT, "a place for the tracer is needed");
    *result = NULL;
    ph_status status = ph__span_ids_init(error);
    if (status != PH_OK)
        return status;
    ph_tracer *tracer = calloc(1, sizeof *tracer);
    if (!tracer)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a tracer");
    tracer->owner = ph__process_id();
    locks_init(tracer);
    status = take_config(config, tracer, error);
    if (status == PH_OK && !tracer->synchronous) {
        int number = worker_start(tracer);
        if (number != 0)
            status = ph__error_set_system(error, PH_E_SYSTEM, number, "starting the tracer's thread failed");
    }
    if (status != PH_OK) {
        ph_tracer_destroy(tracer);
        return status;
    }
    *result = tracer;
    return PH_OK;
}

static void worker_stop(ph_tracer *tracer) {
    if (!tracer->has_worker)
        return;
    pthread_mutex_lock(&tracer->worker_lock);
    tracer->stop = true;
    pthread_cond_signal(&tracer->wake);
    pthread_mutex_unlock(&tracer->worker_lock);
    ph__system.pthread_join(tracer->worker, NULL);
}

/* Flushes and closes the sinks: nobody is called any more. */
static void sinks_end(ph_tracer *tracer) {
    flush_sinks(tracer);
    for (size_t i = 0; i < tracer->sinks.count; i++)
        close_sink(&tracer->sinks.list[i]);
    tracer->sinks.count = 0;
}

/* Whether there are streams left, which then decode what is theirs by themselves. */
static bool abandon(ph_tracer *tracer) {
    tracer->abandoned = true;
    for (struct ph__stream *stream = tracer->streams; stream; stream = stream->next) {
        ph__lock_take(&stream->lock);
        stream->synchronous = true;
        ph__lock_give(&stream->lock);
    }
    return tracer->streams != NULL;
}

void ph__tracer_free(ph_tracer *tracer) {
    /* In a child a lock may be held for ever. */
    if (tracer->owner == ph__process_id()) {
        pthread_cond_destroy(&tracer->wake);
        pthread_cond_destroy(&tracer->done);
        pthread_mutex_destroy(&tracer->worker_lock);
        pthread_mutex_destroy(&tracer->list_lock);
        pthread_mutex_destroy(&tracer->lock);
    }
    free(tracer->sinks.list);
    ph__filter_free(&tracer->filter);
    free(tracer);
}

void ph_tracer_destroy(ph_tracer *tracer) {
    bool left = false;

    if (!tracer)
        return;
    /* In a child there is no worker, and what the sinks have not written yet is the parent's to write. */
    if (tracer->owner == ph__process_id()) {
        worker_stop(tracer);
        pthread_mutex_lock(&tracer->lock);
        sinks_end(tracer);
        left = abandon(tracer);
        pthread_mutex_unlock(&tracer->lock);
        ph__tracer_watches_end(tracer);
    }
    /* A mistake of the host's, but none that should cost it its memory. */
    if (!left)
        ph__tracer_free(tracer);
}

static ph_status sink_add(ph_tracer *tracer, const ph_sink *sink, ph_error *error) {
    if (tracer->started)
        return ph__error_set(error, PH_E_STATE, "sinks are added before the first sandbox is made");
    ph_sink *list = realloc(tracer->sinks.list, (tracer->sinks.count + 1) * sizeof *list);
    if (!list)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink");
    list[tracer->sinks.count++] = *sink;
    tracer->sinks.list = list;
    return PH_OK;
}

ph_status ph_tracer_add_sink(ph_tracer *tracer, const ph_sink *sink, ph_error *error) {
    const ph_sink none = PH_SINK_INIT;
    ph_sink taken = none;

    if (!tracer || !sink || sink->size < offsetof(ph_sink, close) + sizeof sink->close ||
        sink->size > sizeof *sink)
        return ph__error_set(error, PH_E_ARGUMENT, "a tracer and a sink from PH_SINK_INIT are needed");
    memcpy(&taken, sink, sink->size);
    ph_status status;
    if (tracer->owner == ph__process_id()) {
        pthread_mutex_lock(&tracer->lock);
        status = sink_add(tracer, &taken, error);
        pthread_mutex_unlock(&tracer->lock);
    } else {
        status = ph__error_set(error, PH_E_FORKED, "the tracer was made before fork()");
    }
    if (status != PH_OK)
        close_sink(&taken);
    return status;
}

ph_status ph_tracer_set_filter(ph_tracer *tracer, const char *filter, ph_error *error) {
    struct ph__filter parsed;

    if (!tracer || !filter)
        return ph__error_set(error, PH_E_ARGUMENT, "a tracer and a filter are needed");
    if (tracer->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED, "the tracer was made before fork()");
    ph_status status = ph__filter_parse(filter, &parsed, error);
    if (status != PH_OK)
        return status;
    pthread_mutex_lock(&tracer->lock);
    struct ph__filter old = tracer->filter;
    tracer->filter = parsed;
    tracer->filter_version++;
    for (struct ph__stream *stream = tracer->streams; stream; stream = stream->next) {
        ph__lock_take(&stream->lock);
        ph__stream_filter(stream, &tracer->filter);
        ph__lock_give(&stream->lock);
    }
    pthread_mutex_unlock(&tracer->lock);
    ph__filter_free(&old);
    return PH_OK;
}

/* Has the worker look at everything once more, and flush. */
static ph_status worker_flush(ph_tracer *tracer, uint64_t timeout_ns) {
    struct timespec until = deadline(timeout_ns);
    ph_status status = PH_OK;

    pthread_mutex_lock(&tracer->worker_lock);
    const uint64_t wanted = ++tracer->flushes_asked;
    pthread_cond_signal(&tracer->wake);
    while (tracer->flushes_done < wanted && status == PH_OK) {
        if (timeout_ns == 0)
            pthread_cond_wait(&tracer->done, &tracer->worker_lock);
        else if (pthread_cond_timedwait(&tracer->done, &tracer->worker_lock, &until) != 0)
            status = tracer->flushes_done < wanted ? PH_E_TIMED_OUT : PH_OK;
    }
    pthread_mutex_unlock(&tracer->worker_lock);
    return status;
}

/* How long who asks for counts waits for the worker. */
#define SETTLE_NS 1000000000ull

void ph__tracer_settle(ph_tracer *tracer) {
    if (!tracer->synchronous) {
        worker_flush(tracer, SETTLE_NS);
        return;
    }
    pthread_mutex_lock(&tracer->lock);
    look(tracer, true);
    look(tracer, true);
    pthread_mutex_unlock(&tracer->lock);
}

ph_status ph_tracer_flush(ph_tracer *tracer, uint64_t timeout_ns) {
    if (!tracer)
        return PH_E_ARGUMENT;
    if (tracer->owner != ph__process_id())
        return PH_E_FORKED;
    if (!tracer->synchronous)
        return worker_flush(tracer, timeout_ns);
    pthread_mutex_lock(&tracer->lock);
    look(tracer, true);
    look(tracer, true);
    flush_sinks(tracer);
    pthread_mutex_unlock(&tracer->lock);
    return PH_OK;
}
