/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The producing side of a sandbox's trace (stream.h): its own spans and the ring's records into the queue, on
 * the thread that uses the sandbox. It makes no system call as long as the worker keeps up.
 *
 * The queue may be full. Ends of spans always find room, since everything else leaves some. Records wait for
 * the worker under policy `complete`, and are dropped and counted under the others; a begin that finds no
 * room is left out together with its end.
 */
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "abi/hot.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "base/time.h"
#include "trace/tracer.h"

/* How long a sandbox waits for a worker whose sinks have stopped, before it drops records; it waits again
 * only when the worker has moved. */
#define WAIT_MAX_NS 10000000000ull
#define WAIT_STEP_NS 500000l

/* ---- room in the queue --------------------------------------------------------------------------------- */

/* Decodes what is queued, on this thread. The stream's lock is held, and given up meanwhile. */
PH__COLD static void consume_here(struct ph__stream *stream) {
    ph__lock_give(&stream->lock);
    pthread_mutex_lock(&stream->tracer->lock);
    ph__stream_consume(stream);
    pthread_mutex_unlock(&stream->tracer->lock);
    ph__lock_take(&stream->lock);
}

/* Lets somebody make room in the queue. False when it was waited for long enough: (*until_ns), 0 at first. */
PH__COLD static bool wait_for_room(struct ph__stream *stream, uint64_t *until_ns) {
    const struct timespec step = {.tv_nsec = WAIT_STEP_NS};

    if (stream->synchronous) {
        uint64_t used = ph__queue_used(&stream->queue);
        consume_here(stream);
        return ph__queue_used(&stream->queue) < used;
    }
    if (stream->policy != PH_TRACE_COMPLETE)
        return false;
    uint64_t now = ph__time_ns(CLOCK_MONOTONIC);
    uint64_t taken = atomic_load_explicit(&stream->queue.taken, memory_order_relaxed);
    if (*until_ns == 0)
        *until_ns = now + WAIT_MAX_NS;
    if (stream->stalled == taken + 1 || stream->options.stopped(stream->options.stopped_context))
        return false;
    if (now > *until_ns) {
        stream->stalled = taken + 1;
        return false;
    }
    ph__lock_give(&stream->lock);
    ph__tracer_wake(stream->tracer);
    ph__system.nanosleep(&step, NULL);
    ph__lock_take(&stream->lock);
    return true;
}

/* Room for a span that begins; NULL when there is none. */
PH__HOT static void *begin_reserve(struct ph__stream *stream, uint64_t size) {
    uint64_t until_ns = 0;

    do {
        void *batch = ph__queue_reserve(&stream->queue, size, PH__QUEUE_KEPT);
        if (batch)
            return batch;
    } while (wait_for_room(stream, &until_ns));
    return NULL;
}

/* Takes what is new in the ring, and gives it up when the queue cannot take it. */
PH__HOT static void take(struct ph__stream *stream, bool bad_end, uint64_t *until_ns) {
    while (!ph__ring_take(stream, bad_end)) {
        if (wait_for_room(stream, until_ns))
            continue;
        ph__ring_give_up(stream, PH__LOSS_QUEUE);
        return;
    }
}

PH__HOT static void wake_when_half_full(struct ph__stream *stream) {
    if (!stream->synchronous && ph__queue_used(&stream->queue) > stream->queue.size / 2)
        ph__tracer_wake(stream->tracer);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static uint64_t round_up_to_power(uint64_t value) {
    uint64_t power = 1;

    while (power < value)
        power *= 2;
    return power;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

static void stream_free(struct ph__stream *stream) {
    ph__queue_free(&stream->queue);
    free(stream->wanted.sites);
    free(stream);
}

/* The memory of a stream, and its first ids. */
static ph_status stream_make(const struct ph__stream_options *options, struct ph__stream **result,
                             ph_error *error) {
    struct ph__stream *stream = calloc(1, sizeof *stream);
    uint64_t *words = calloc(options->site_count + 1, sizeof *words);
    uint64_t asked = options->config->tracer->queue_size;
    uint64_t least = 2 * options->config->trace_ring + 4 * PH__QUEUE_KEPT;
    uint64_t size = round_up_to_power(asked > least ? asked : least);

    if (!stream || !words || !ph__queue_init(&stream->queue, size)) {
        free(stream);
        free(words);
        return ph__error_set(error, PH_E_MEMORY, "no memory for the sandbox's trace");
    }
    stream->wanted.sites = words;
    ph_status status = ph__trace_ids_init(&stream->trace_ids, error);
    if (status == PH_OK)
        *result = stream;
    else
        stream_free(stream);
    return status;
}

ph_status ph__stream_open(const struct ph__stream_options *options, struct ph__stream **result,
                          ph_error *error) {
    static _Atomic uint64_t numbers;
    const ph_config *config = options->config;
    ph_tracer *tracer = config->tracer;

    *result = NULL;
    if (!tracer)
        return PH_OK;
    if (tracer->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED, "the tracer was made before fork()");
    struct ph__stream *stream = NULL;
    ph_status status = stream_make(options, &stream, error);
    if (!stream)
        return status;
    stream->tracer = tracer;
    stream->synchronous = tracer->synchronous;
    stream->sampling = tracer->sampling;
    stream->policy = config->trace_policy;
    stream->owner = tracer->owner;
    stream->options = *options;
    stream->number = 1 + atomic_fetch_add(&numbers, 1);
    stream->call_bytes_max = or_default(config->trace_call_bytes, PH__CALL_BYTES_DEFAULT);
    stream->sandbox_bytes_max = or_default(config->trace_sandbox_bytes, UINT64_MAX);
    ph__tracer_add(tracer, stream);
    *result = stream;
    return PH_OK;
}

/* An empty ring. Positions go on where the last generation's ended: an end that was begun there names no span
 * of this one. Counts do not: they are whatever that guest has written there, and not for this one to read.
 */
static void ring_reset(struct ph__stream *stream) {
    const struct ph__ring_view *view = &stream->view;
    uint64_t policy = (uint64_t)stream->policy;
    uint64_t first = (stream->tail / view->size + 1) * view->size;
    uint64_t reserve = policy == PH__POLICY_DROP ? PH__RING_RESERVE(view->size) : 0;

    *view->ring = (struct ph__ring){
        .head = first,
        .limit = first + view->size - reserve,
        .end_limit = first + view->size,
        .mask = view->size - 1,
        .oldest = first,
    };
    stream->ring_dropped = 0;
    stream->ring_dropped_bytes = 0;
    view->control->ring_size = view->size;
    view->control->policy = policy;
    view->control->first = first;
    view->control->tail = first;
    stream->tail = first;
    stream->flight_start = first;
}

void ph__stream_attach(struct ph__stream *stream, const struct ph__ring_view *view) {
    if (!stream)
        return;
    /* Both locks, in their order: the filter may not change between the words and the list. */
    pthread_mutex_lock(&stream->tracer->lock);
    ph__lock_take(&stream->lock);
    stream->view = *view;
    ring_reset(stream);
    stream->attached = true;
    ph__stream_filter(stream, &stream->tracer->filter);
    ph__lock_give(&stream->lock);
    pthread_mutex_unlock(&stream->tracer->lock);
    atomic_store(&stream->known, true);
}

void ph__stream_detach(struct ph__stream *stream) {
    uint64_t until_ns = 0;

    if (!stream)
        return;
    ph__lock_take(&stream->lock);
    if (stream->attached) {
        take(stream, false, &until_ns);
        ph__ring_dropped_report(stream);
    }
    ph__ring_losses_tell(stream, PH__QUEUE_KEPT);
    stream->attached = false;
    ph__lock_give(&stream->lock);
}

void ph__stream_restart(struct ph__stream *stream, uint64_t least) {
    uint64_t until_ns = 0;

    if (!stream)
        return;
    ph__lock_take(&stream->lock);
    if (stream->attached) {
        take(stream, false, &until_ns);
        ph__ring_dropped_report(stream);
        ph__ring_losses_tell(stream, PH__QUEUE_KEPT);
        if (stream->tail < least)
            stream->tail = least;
        ring_reset(stream);
        ph__ring_dropped_restart(stream);
    }
    ph__lock_give(&stream->lock);
}

uint64_t ph__stream_position(struct ph__stream *stream) {
    uint64_t position = 0;

    if (!stream)
        return 0;
    ph__lock_take(&stream->lock);
    if (stream->attached)
        position = stream->tail + 2 * stream->view.size;
    ph__lock_give(&stream->lock);
    return position;
}

void ph__stream_close(struct ph__stream *stream, bool forked) {
    if (!stream)
        return;
    if (!forked) {
        ph_tracer *tracer = stream->tracer;
        atomic_store(&stream->known, true);
        pthread_mutex_lock(&tracer->lock);
        ph__tracer_remove(tracer, stream);
        bool last = tracer->abandoned && !tracer->streams;
        pthread_mutex_unlock(&tracer->lock);
        if (last)
            ph__tracer_free(tracer);
    }
    stream_free(stream);
}

/* ---- spans of the host --------------------------------------------------------------------------------- */

/* Words that (value) takes, and in (*size) the bytes of it that are kept. */
static uint64_t value_words(const ph_value *value, size_t *size, size_t *full) {
    if (value->type != PH_STR && value->type != PH_BYTES)
        return 1;
    *full = value->type == PH_STR ? strlen(value->str) : value->bytes.size;
    *size = *full < PH__ARGUMENT_MAX ? *full : PH__ARGUMENT_MAX;
    return 1 + (*size + 7) / 8;
}

/* A value's word, and the type that a field of it has. */
static uint64_t value_word(const ph_value *value, ph_type *type) {
    uint64_t word = 0;
    double real = value->type == PH_F32 ? (double)value->f32 : value->f64;

    *type = value->type;
    switch (value->type) {
    case PH_I32:
        *type = PH_I64;
        return (uint64_t)(int64_t)value->i32;
    case PH_U32:
        *type = PH_U64;
        return value->u32;
    case PH_BOOL:
        return value->boolean;
    case PH_F32:
    case PH_F64:
        *type = PH_F64;
        memcpy(&word, &real, sizeof word);
        return word;
    default:
        return value->u64;
    }
}

/* Writes (args) as a log's values are. Returns the words written. */
static uint64_t arguments_write(uint64_t *words, const ph_value *args, uint32_t count) {
    uint64_t used = 1;

    words[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t size = 0, full = 0;
        uint64_t needed = value_words(&args[i], &size, &full);
        ph_type type;
        uint64_t word = value_word(&args[i], &type);
        if (args[i].type == PH_STR || args[i].type == PH_BYTES) {
            const void *data = args[i].type == PH_STR ? (const void *)args[i].str : args[i].bytes.data;
            uint64_t told = full < UINT32_MAX ? full : UINT32_MAX;
            words[used + needed - 1] = 0; /* the padding; overwritten when there is none */
            if (size)
                memcpy(&words[used + 1], data, size);
            word = size | told << 32;
        }
        words[0] |= (uint64_t)type << (4 * i);
        words[used] = word;
        used += needed;
    }
    return used;
}

#define ARGUMENT_WORDS_MAX (1 + PH_MAX_ARGS * (1 + PH__ARGUMENT_MAX / 8))

/* The calls that have budgets of their own. */
PH__HOT static void call_reset(struct ph__stream *stream, enum ph__host_span span) {
    if (span != PH__HOST_CALL && span != PH__HOST_START && span != PH__HOST_RUN)
        return;
    stream->call_bytes = 0;
    ph__ring_flight_begin(stream);
}

/* Puts the begin of a span into the queue, with (used) words of arguments. */
PH__HOT static void begin_push(struct ph__stream *stream, enum ph__host_span span,
                               const ph_function *function, const uint64_t *words, uint64_t used,
                               uint64_t tsc) {
    ph__lock_take(&stream->lock);
    call_reset(stream, span);
    const bool is_root = stream->open + stream->left_out == 0;
    const uint32_t root_words = is_root ? ph__stream_root_words(stream) : 0;
    uint64_t size = sizeof(struct ph__batch_begin) + (root_words + used) * 8;
    ph__ring_losses_tell(stream, PH__QUEUE_KEPT);
    struct ph__batch_begin *begin = stream->left_out ? NULL : begin_reserve(stream, size);
    if (begin) {
        begin->batch = (struct ph__batch){.size = (uint32_t)size, .kind = PH__BATCH_BEGIN, .tsc = tsc};
        begin->span = span;
        begin->arguments = used != 0;
        begin->root_words = (uint16_t)root_words;
        begin->function = function;
        begin->id = stream->span;
        if (is_root)
            ph__stream_root_write(stream, (struct ph__batch_root *)begin->words);
        if (used)
            memcpy(begin->words + root_words, words, used * 8);
        ph__queue_push(&stream->queue, &begin->batch);
        stream->open++;
    } else {
        stream->left_out++;
    }
    wake_when_half_full(stream);
    ph__lock_give(&stream->lock);
}

/* Apart from what follows, whose stack it would stretch over another page. */
PH__COLD static void begin_with_arguments(struct ph__stream *stream, enum ph__host_span span,
                                          const ph_function *function, const ph_value *args, uint64_t tsc) {
    uint64_t words[ARGUMENT_WORDS_MAX];
    uint64_t used = arguments_write(words, args, function->signature.count);

    begin_push(stream, span, function, words, used, tsc);
}

PH__HOT void ph__stream_begin(struct ph__stream *stream, enum ph__host_span span, const ph_function *function,
                              const ph_value *args) {
    if (!stream)
        return;
    uint64_t tsc = __rdtsc();
    if (!ph__stream_context_begin(stream, span))
        return;
    if (args && function && atomic_load_explicit(&stream->arguments, memory_order_relaxed))
        begin_with_arguments(stream, span, function, args, tsc);
    else
        begin_push(stream, span, function, NULL, 0, tsc);
}

PH__HOT void ph__stream_end(struct ph__stream *stream, ph_status status, const ph_error *error) {
    if (!stream || !ph__stream_context_end(stream))
        return;
    const char *message = status != PH_OK && error ? error->message : "";
    size_t length = message[0] ? strlen(message) : 0;
    uint64_t size = (sizeof(struct ph__batch_end) + length + 1 + 7) / 8 * 8;

    ph__lock_take(&stream->lock);
    uint64_t tsc = 0;
    if (stream->attached) {
        uint64_t until_ns = 0;
        uint64_t tail = stream->tail;
        take(stream, false, &until_ns);
        if (tail != stream->tail)
            tsc = stream->last_tsc;
        ph__ring_dropped_report(stream);
    }
    if (!stream->left_out)
        ph__ring_losses_tell(stream, size);
    struct ph__batch_end *end = stream->left_out ? NULL : ph__queue_reserve(&stream->queue, size, 0);
    if (end) {
        end->batch =
            (struct ph__batch){.size = (uint32_t)size, .kind = PH__BATCH_END, .tsc = tsc ? tsc : __rdtsc()};
        end->status = status;
        end->code = error && status != PH_OK ? error->code : 0;
        end->message[0] = '\0';
        if (length)
            memcpy(end->message, message, length + 1);
        ph__queue_push(&stream->queue, &end->batch);
        stream->open--;
    } else {
        stream->left_out -= stream->left_out != 0;
    }
    wake_when_half_full(stream);
    if (stream->synchronous && stream->open == 0)
        consume_here(stream);
    ph__lock_give(&stream->lock);
}

/* ---- the ring ------------------------------------------------------------------------------------------ */

PH__HOT void ph__stream_drain(struct ph__stream *stream, bool bad_end) {
    uint64_t until_ns = 0;

    if (!stream)
        return;
    ph__lock_take(&stream->lock);
    if (stream->attached)
        take(stream, bad_end, &until_ns);
    wake_when_half_full(stream);
    ph__lock_give(&stream->lock);
}

void ph__stream_make_room(struct ph__stream *stream) {
    uint64_t until_ns = 0;

    if (!stream)
        return;
    ph__lock_take(&stream->lock);
    ph__trace_count(&stream->produced.exits, 1);
    if (stream->attached)
        take(stream, false, &until_ns);
    wake_when_half_full(stream);
    ph__lock_give(&stream->lock);
}

uint64_t ph__stream_number(const struct ph__stream *stream) {
    return stream ? stream->number : 0;
}

void ph__stream_call_counts(const struct ph__stream *stream, uint64_t *records, uint64_t *dropped) {
    *records = *dropped = 0;
    if (!stream || stream->call_unrecorded)
        return;
    ph__tracer_settle(stream->tracer);
    pthread_mutex_lock(&stream->tracer->lock);
    if (stream->tree)
        ph__tree_call_counts(stream->tree, records, dropped);
    pthread_mutex_unlock(&stream->tracer->lock);
}

void ph__stream_stats(const struct ph__stream *stream, ph_trace_stats *stats) {
    *stats = (ph_trace_stats){0};
    if (!stream)
        return;
    ph__trace_stats_add(stats, &stream->produced);
    ph__trace_stats_add(stats, &stream->consumed);
}
