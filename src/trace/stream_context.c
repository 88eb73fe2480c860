/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a sandbox's spans belong to, and whether they are recorded: the part of the stream that is before the
 * queue. A root takes the caller's trace or begins one, and the sampler decides. Spans of a root that is not
 * recorded are only counted here. The guest's words are then off, so that it writes nothing; they are touched
 * only where a root is decided otherwise than the last one, since there may be thousands.
 *
 * The tracer's lock is never taken here: its worker holds it while sinks work. What the filter wants is
 * therefore copied in the stream.
 */
#include <string.h>

#include "abi/hot.h"
#include "trace/tracer.h"

/* ---- the guest's words --------------------------------------------------------------------------------- */

/* NOLINTNEXTLINE(readability-non-const-parameter): clang-tidy does not see the store */
static void word_store(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Puts what is wanted where the guest looks, or 0 while the stream is quiet. */
static void words_write(struct ph__stream *stream) {
    const struct ph__ring_view *view = &stream->view;
    const struct ph__words *wanted = &stream->wanted;
    const bool on = !stream->quiet;

    if (!stream->attached)
        return;
    word_store(&view->control->calls, on ? wanted->calls : 0);
    word_store(&view->control->system_calls, on ? wanted->system_calls : 0);
    for (size_t i = 0; view->words && i < stream->options.site_count; i++)
        word_store(&view->words[stream->options.sites[i].word], on ? wanted->sites[i] : 0);
}

void ph__stream_filter(struct ph__stream *stream, const struct ph__filter *filter) {
    const ph_level highest = ph__filter_highest(filter);
    const bool wanted = highest >= PH_LEVEL_INFO;
    struct ph__words *words = &stream->wanted;

    atomic_store_explicit(&stream->arguments, highest >= PH_LEVEL_DEBUG, memory_order_relaxed);
    words->calls = wanted ? PH__RECORD_WORD(PH__RECORD_CALL_BEGIN, 0, PH__RECORD_WORDS_MIN) : 0;
    words->system_calls = wanted ? PH__RECORD_WORD(PH__RECORD_SYSTEM_CALL_BEGIN, 0, PH__RECORD_WORDS_MIN) : 0;
    for (size_t i = 0; i < stream->options.site_count; i++)
        words->sites[i] = ph__site_word(&stream->options.sites[i], (uint32_t)i, filter);
    words_write(stream);
}

/* What is in the ring until now belongs to the last root, and goes the way of that: policy `flight` leaves it
 * there. */
PH__COLD static void quiet_set(struct ph__stream *stream, bool quiet) {
    ph__lock_take(&stream->lock);
    if (stream->quiet && stream->attached)
        ph__ring_take(stream, false);
    ph__ring_flight_begin(stream);
    stream->quiet = quiet;
    words_write(stream);
    ph__lock_give(&stream->lock);
}

/* ---- roots --------------------------------------------------------------------------------------------- */

void ph__stream_caller_set(struct ph__stream *stream, const struct ph__caller *caller) {
    if (stream)
        stream->caller = caller && caller->known ? caller : NULL;
}

PH__HOT static void root_begin(struct ph__stream *stream) {
    const struct ph__caller *caller = stream->caller;

    if (caller)
        memcpy(stream->trace_id, caller->parent.trace_id, sizeof stream->trace_id);
    else
        ph__trace_id_next(&stream->trace_ids, stream->trace_id);
    stream->recorded =
        ph__sampling_takes(&stream->sampling, caller ? &caller->parent : NULL, stream->trace_id);
    /* Only this thread changes it. */
    if (stream->quiet == stream->recorded)
        quiet_set(stream, !stream->recorded);
}

PH__HOT bool ph__stream_context_begin(struct ph__stream *stream, enum ph__host_span span) {
    if (stream->unrecorded == 0 && stream->open + stream->left_out == 0)
        root_begin(stream);
    stream->span = ph__id_next(&stream->ids);
    if (span == PH__HOST_CALL || span == PH__HOST_START || span == PH__HOST_RUN)
        stream->call_unrecorded = !stream->recorded;
    stream->unrecorded += !stream->recorded;
    return stream->recorded;
}

PH__HOT bool ph__stream_context_end(struct ph__stream *stream) {
    if (stream->unrecorded == 0)
        return true;
    if (--stream->unrecorded > 0)
        return false;
    ph__lock_take(&stream->lock);
    if (stream->attached)
        ph__ring_take(stream, false);
    ph__lock_give(&stream->lock);
    return false;
}

PH__HOT uint32_t ph__stream_root_words(const struct ph__stream *stream) {
    const struct ph__caller *caller = stream->caller;
    size_t size = sizeof(struct ph__batch_root);

    if (caller && caller->tracestate)
        size += strlen(caller->tracestate) + 1;
    return (uint32_t)((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
}

PH__HOT void ph__stream_root_write(const struct ph__stream *stream, struct ph__batch_root *root) {
    const struct ph__caller *caller = stream->caller;

    memcpy(root->trace_id, stream->trace_id, sizeof root->trace_id);
    if (!caller) {
        memset(root->remote_parent, 0, sizeof root->remote_parent);
        return;
    }
    memcpy(root->remote_parent, caller->parent.parent, sizeof root->remote_parent);
    if (caller->tracestate)
        memcpy(root->trace_state, caller->tracestate, strlen(caller->tracestate) + 1);
}

/* ---- passing it on ------------------------------------------------------------------------------------- */

void ph_trace_span_id(uint64_t id, uint8_t bytes[8]) {
    ph__span_id_write(id, bytes);
}

PH__HOT bool ph__stream_traceparent(const struct ph__stream *stream, char text[PH_TRACEPARENT_SIZE]) {
    struct ph__traceparent parent;

    if (!stream)
        return false;
    memcpy(parent.trace_id, stream->trace_id, sizeof parent.trace_id);
    ph__span_id_write(stream->span, parent.parent);
    parent.sampled = stream->recorded;
    ph__traceparent_write(text, &parent);
    return true;
}
