/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The collecting sink (trace_collect.h). Its callbacks never assert: they run on the tracer's thread.
 */
#include "support/trace_collect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/ids.h"

/* ---- copies -------------------------------------------------------------------------------------------- */

struct trace_texts {
    struct trace_texts *next;
    size_t used, room;
    _Alignas(max_align_t) char bytes[];
};

/* Room for (size) bytes, filled from (data) unless that is NULL. */
static void *keep(struct trace_collect *collect, const void *data, size_t size) {
    struct trace_texts *texts = collect->texts;
    size_t needed = (size + 15) / 16 * 16;

    if (!texts || texts->room - texts->used < needed) {
        size_t room = needed > 65536 ? needed : 65536;
        texts = malloc(sizeof *texts + room);
        if (!texts)
            abort();
        texts->next = collect->texts;
        texts->used = 0;
        texts->room = room;
        collect->texts = texts;
    }
    void *copy = texts->bytes + texts->used;
    texts->used += needed;
    if (data && size)
        memcpy(copy, data, size);
    return copy;
}

static const char *keep_text(struct trace_collect *collect, const char *text) {
    return text ? keep(collect, text, strlen(text) + 1) : NULL;
}

static void keep_value(struct trace_collect *collect, ph_value *value) {
    if (value->type == PH_STR)
        value->str = keep_text(collect, value->str);
    else if (value->type == PH_BYTES)
        value->bytes.data = keep(collect, value->bytes.data, value->bytes.size);
}

static const ph_field *keep_fields(struct trace_collect *collect, const ph_field *fields, size_t count) {
    ph_field *copy = count ? keep(collect, NULL, count * sizeof *fields) : NULL;

    for (size_t i = 0; i < count; i++) {
        copy[i] = fields[i];
        copy[i].name = keep_text(collect, fields[i].name);
        keep_value(collect, &copy[i].value);
    }
    return copy;
}

static ph_source keep_source(struct trace_collect *collect, const ph_source *source) {
    return (ph_source){keep_text(collect, source->file), keep_text(collect, source->function), source->line};
}

/* (list) with room for one more. */
static void *with_room(void *list, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return list;
    *room = *room ? *room * 2 : 256;
    list = realloc(list, *room * size);
    if (!list)
        abort();
    return list;
}

/* ---- the sink ------------------------------------------------------------------------------------------ */

static void on_span(void *context, const ph_trace_span *span) {
    struct trace_collect *collect = context;

    pthread_mutex_lock(&collect->lock);
    size_t count = collect->span_count;
    collect->spans = with_room(collect->spans, &collect->span_room, count, sizeof *collect->spans);
    struct trace_span *kept = &collect->spans[count];
    *kept = (struct trace_span){*span, collect->order++};
    kept->span.name = keep_text(collect, span->name);
    kept->span.source = keep_source(collect, &span->source);
    kept->span.message = keep_text(collect, span->message);
    kept->span.trace_state = keep_text(collect, span->trace_state);
    kept->span.fields = keep_fields(collect, span->fields, span->field_count);
    collect->span_count = count + 1;
    pthread_mutex_unlock(&collect->lock);
}

static void on_event(void *context, const ph_trace_event *event) {
    struct trace_collect *collect = context;

    /* The machine's own property, which no test asks for. */
    if (strcmp(event->name, "trace.clock") == 0)
        return;
    pthread_mutex_lock(&collect->lock);
    size_t count = collect->event_count;
    collect->events = with_room(collect->events, &collect->event_room, count, sizeof *collect->events);
    struct trace_event *kept = &collect->events[count];
    *kept = (struct trace_event){*event, collect->order++};
    kept->event.name = keep_text(collect, event->name);
    kept->event.source = keep_source(collect, &event->source);
    kept->event.message = keep_text(collect, event->message);
    kept->event.fields = keep_fields(collect, event->fields, event->field_count);
    collect->event_count = count + 1;
    pthread_mutex_unlock(&collect->lock);
}

static void on_counter(void *context, const ph_trace_counter *counter) {
    struct trace_collect *collect = context;

    pthread_mutex_lock(&collect->lock);
    size_t count = collect->counter_count;
    collect->counters =
        with_room(collect->counters, &collect->counter_room, count, sizeof *collect->counters);
    struct trace_counter *kept = &collect->counters[count];
    *kept = (struct trace_counter){*counter, collect->order++};
    kept->counter.name = keep_text(collect, counter->name);
    kept->counter.source = keep_source(collect, &counter->source);
    collect->counter_count = count + 1;
    pthread_mutex_unlock(&collect->lock);
}

static void on_flush(void *context) {
    struct trace_collect *collect = context;
    atomic_fetch_add(&collect->flushes, 1);
}

static void on_close(void *context) {
    struct trace_collect *collect = context;
    atomic_fetch_add(&collect->closes, 1);
}

void trace_collect_init(struct trace_collect *collect) {
    *collect = (struct trace_collect){0};
    pthread_mutex_init(&collect->lock, NULL);
}

void trace_collect_clear(struct trace_collect *collect) {
    pthread_mutex_lock(&collect->lock);
    collect->span_count = collect->event_count = collect->counter_count = 0;
    collect->order = 0;
    while (collect->texts) {
        struct trace_texts *next = collect->texts->next;
        free(collect->texts);
        collect->texts = next;
    }
    pthread_mutex_unlock(&collect->lock);
}

void trace_collect_free(struct trace_collect *collect) {
    trace_collect_clear(collect);
    free(collect->spans);
    free(collect->events);
    free(collect->counters);
    pthread_mutex_destroy(&collect->lock);
}

ph_sink trace_collect_sink(struct trace_collect *collect) {
    ph_sink sink = PH_SINK_INIT;

    sink.context = collect;
    sink.span = on_span;
    sink.event = on_event;
    sink.counter = on_counter;
    sink.flush = on_flush;
    sink.close = on_close;
    return sink;
}

ph_tracer *trace_collect_tracer(struct trace_collect *collect, const ph_tracer_config *config) {
    ph_sink sink = trace_collect_sink(collect);
    ph_tracer *tracer = NULL;
    ph_error error;

    if (ph_tracer_create(config, &tracer, &error) != PH_OK)
        fail_msg("creating a tracer: %s", error.message);
    if (ph_tracer_add_sink(tracer, &sink, &error) != PH_OK)
        fail_msg("adding a sink: %s", error.message);
    return tracer;
}

void trace_collect_flush(ph_tracer *tracer) {
    assert_int_equal(ph_tracer_flush(tracer, TEST_TIMEOUT_NS), PH_OK);
}

/* ---- checks -------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b) {
    const struct trace_span *const *x = a;
    const struct trace_span *const *y = b;
    return ((*x)->span.id > (*y)->span.id) - ((*x)->span.id < (*y)->span.id);
}

static const struct trace_span *find_sorted(const struct trace_span **sorted, size_t count, uint64_t id) {
    const struct trace_span key = {.span = {.id = id}};
    const struct trace_span *key_pointer = &key;
    const struct trace_span **found =
        bsearch(&key_pointer, sorted, count, sizeof(struct trace_span *), by_id);
    return found ? *found : NULL;
}

/* Whether (text) is valid UTF-8 (RFC 3629). */
static bool is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        unsigned more = *at < 0x80   ? 0
                        : *at < 0xc2 ? 9
                        : *at < 0xe0 ? 1
                        : *at < 0xf0 ? 2
                        : *at < 0xf5 ? 3
                                     : 9;
        if (more == 9)
            return false;
        uint32_t letter = more == 0 ? *at : *at & (0x3fu >> more);
        at++;
        for (unsigned i = 0; i < more; i++, at++) {
            if ((*at & 0xc0) != 0x80)
                return false;
            letter = letter << 6 | (*at & 0x3f);
        }
        if ((more == 2 && letter < 0x800) || (more == 3 && letter < 0x10000) || letter > 0x10ffff ||
            (letter >= 0xd800 && letter < 0xe000))
            return false;
    }
    return true;
}

static void texts_check(const char *name, const char *message, const ph_source *source,
                        const ph_field *fields, size_t count) {
    const char *const texts[] = {name, message, source->file, source->function};

    assert_non_null(name);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i] && !is_utf8(texts[i]))
            fail_msg("a text of `%s` is not valid UTF-8", name);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(fields[i].name);
        assert_true(is_utf8(fields[i].name));
        if (fields[i].value.type == PH_STR && !is_utf8(fields[i].value.str))
            fail_msg("the field `%s` of `%s` is not valid UTF-8", fields[i].name, name);
    }
}

static void span_check(const struct trace_span **sorted, size_t count, const struct trace_span *kept) {
    const ph_trace_span *span = &kept->span;

    assert_true(span->id != 0);
    texts_check(span->name, span->message, &span->source, span->fields, span->field_count);
    if (span->end_ns < span->start_ns)
        fail_msg("`%s` ends %" PRIu64 " ns before it starts", span->name, span->start_ns - span->end_ns);
    assert_true(ph__id_is_set(span->trace_id, sizeof span->trace_id));
    if (span->parent == 0)
        return;
    assert_false(ph__id_is_set(span->remote_parent, sizeof span->remote_parent));
    const struct trace_span *parent = find_sorted(sorted, count, span->parent);
    if (!parent)
        fail_msg("`%s` has a parent that never came", span->name);
    if (parent->span.sandbox != span->sandbox)
        fail_msg("`%s` lies under a span of another sandbox", span->name);
    if (memcmp(parent->span.trace_id, span->trace_id, sizeof span->trace_id) != 0)
        fail_msg("`%s` is of another trace than its parent `%s`", span->name, parent->span.name);
    if (span->kind == PH_SPAN_ASYNC)
        return;
    if (parent->order < kept->order)
        fail_msg("`%s` came after its parent `%s`", span->name, parent->span.name);
    if (span->start_ns < parent->span.start_ns || span->end_ns > parent->span.end_ns)
        fail_msg("`%s` [%" PRIu64 ", %" PRIu64 "] is not inside `%s` [%" PRIu64 ", %" PRIu64 "]", span->name,
                 span->start_ns, span->end_ns, parent->span.name, parent->span.start_ns, parent->span.end_ns);
}

/* What events and counters have in common. */
static void moment_check(const struct trace_span **sorted, size_t count, const char *name, uint64_t sandbox,
                         uint64_t id, uint64_t time_ns) {
    if (id == 0)
        return;
    const struct trace_span *span = find_sorted(sorted, count, id);
    if (!span)
        fail_msg("`%s` was in a span that never came", name);
    assert_true(span->span.sandbox == sandbox);
    if (time_ns < span->span.start_ns || time_ns > span->span.end_ns)
        fail_msg("`%s` was outside the time of its span `%s`", name, span->span.name);
}

void trace_collect_check(const struct trace_collect *collect) {
    size_t count = collect->span_count;
    const struct trace_span **sorted = malloc((count + 1) * sizeof(struct trace_span *));

    assert_non_null(sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &collect->spans[i];
    qsort(sorted, count, sizeof(struct trace_span *), by_id);
    for (size_t i = 1; i < count; i++)
        if (sorted[i - 1]->span.id == sorted[i]->span.id)
            fail_msg("`%s` and `%s` have one id", sorted[i - 1]->span.name, sorted[i]->span.name);
    for (size_t i = 0; i < count; i++)
        span_check(sorted, count, &collect->spans[i]);
    for (size_t i = 0; i < collect->event_count; i++) {
        const ph_trace_event *event = &collect->events[i].event;
        texts_check(event->name, event->message, &event->source, event->fields, event->field_count);
        moment_check(sorted, count, event->name, event->sandbox, event->span, event->time_ns);
    }
    for (size_t i = 0; i < collect->counter_count; i++) {
        const ph_trace_counter *counter = &collect->counters[i].counter;
        moment_check(sorted, count, counter->name, counter->sandbox, counter->span, counter->time_ns);
    }
    free(sorted);
}

/* ---- finding ------------------------------------------------------------------------------------------- */

const ph_trace_span *trace_span_find(const struct trace_collect *collect, const char *name, size_t from,
                                     size_t *at) {
    for (size_t i = from; i < collect->span_count; i++)
        if (strcmp(collect->spans[i].span.name, name) == 0) {
            if (at)
                *at = i;
            return &collect->spans[i].span;
        }
    return NULL;
}

const ph_trace_event *trace_event_find(const struct trace_collect *collect, const char *name, size_t from,
                                       size_t *at) {
    for (size_t i = from; i < collect->event_count; i++)
        if (strcmp(collect->events[i].event.name, name) == 0) {
            if (at)
                *at = i;
            return &collect->events[i].event;
        }
    return NULL;
}

const ph_trace_span *trace_span_named(const struct trace_collect *collect, const char *name) {
    const ph_trace_span *span = trace_span_find(collect, name, 0, NULL);

    if (!span) {
        trace_collect_print(collect);
        fail_msg("there is no span `%s`", name);
    }
    return span;
}

const ph_trace_event *trace_event_named(const struct trace_collect *collect, const char *name) {
    const ph_trace_event *event = trace_event_find(collect, name, 0, NULL);

    if (!event) {
        trace_collect_print(collect);
        fail_msg("there is no event `%s`", name);
    }
    return event;
}

size_t trace_spans_named(const struct trace_collect *collect, const char *name) {
    size_t count = 0;

    for (size_t at = 0; trace_span_find(collect, name, at, &at); at++)
        count++;
    return count;
}

size_t trace_events_named(const struct trace_collect *collect, const char *name) {
    size_t count = 0;

    for (size_t at = 0; trace_event_find(collect, name, at, &at); at++)
        count++;
    return count;
}

const ph_trace_span *trace_span_by_id(const struct trace_collect *collect, uint64_t id) {
    for (size_t i = 0; i < collect->span_count; i++)
        if (collect->spans[i].span.id == id)
            return &collect->spans[i].span;
    return NULL;
}

bool trace_span_is_below(const struct trace_collect *collect, const ph_trace_span *span, const char *name) {
    while (span && span->parent) {
        span = trace_span_by_id(collect, span->parent);
        if (span && strcmp(span->name, name) == 0)
            return true;
    }
    return false;
}

const ph_field *trace_field(const ph_field *fields, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

uint64_t trace_number(const ph_field *fields, size_t count, const char *name) {
    const ph_field *field = trace_field(fields, count, name);

    if (field && (field->value.type == PH_I64 || field->value.type == PH_U64))
        return field->value.u64;
    fail_msg("there is no integer field `%s`", name);
    return 0;
}

void trace_sequence_check(const struct trace_collect *collect, const char *name, uint64_t first,
                          uint64_t count) {
    uint64_t wanted = first;
    uint64_t first_ns = 0, last_ns = 0;
    size_t at = 0;

    for (const ph_trace_event *event; (event = trace_event_find(collect, name, at, &at)); at++, wanted++) {
        uint64_t got = trace_number(event->fields, event->field_count, "n");
        if (event->time_ns < last_ns)
            fail_msg("`%s` number %" PRIu64 " is older than the one before it", name, got);
        last_ns = event->time_ns;
        first_ns = first_ns ? first_ns : last_ns;
        if (got != wanted)
            fail_msg("`%s` number %" PRIu64 " came where %" PRIu64 " was due", name, got, wanted);
    }
    if (wanted - first != count)
        fail_msg("%" PRIu64 " of `%s` came, not %" PRIu64, wanted - first, name, count);
    if (count > 1 && first_ns == last_ns)
        fail_msg("all of `%s` have one time", name);
}

void trace_collect_print(const struct trace_collect *collect) {
    for (size_t i = 0; i < collect->span_count && i < 200; i++) {
        const ph_trace_span *span = &collect->spans[i].span;
        fprintf(stderr, "span %" PRIu64 " under %" PRIu64 ": `%s` kind %d level %d %s %s \"%s\"\n", span->id,
                span->parent, span->name, (int)span->kind, (int)span->level,
                span->unfinished ? "unfinished" : "finished", ph_status_kind(span->status),
                span->message ? span->message : "");
    }
    for (size_t i = 0; i < collect->event_count && i < 200; i++) {
        const ph_trace_event *event = &collect->events[i].event;
        fprintf(stderr, "event in %" PRIu64 ": `%s` \"%s\"", event->span, event->name,
                event->message ? event->message : "");
        for (size_t j = 0; j < event->field_count; j++)
            fprintf(stderr, " %s=%" PRIu64, event->fields[j].name, event->fields[j].value.u64);
        fprintf(stderr, "\n");
    }
}
