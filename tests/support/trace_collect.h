/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sink that keeps everything that it is given, and says what no trace may ever be: tests of tracing ask it
 * what came. It is filled by the tracer's worker; ask after ph_tracer_flush or the end of the tracer, or
 * one of the counts at any time.
 */
#ifndef PH_TESTS_TRACE_COLLECT_H
#define PH_TESTS_TRACE_COLLECT_H

#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>

#include <pinhole/trace.h>

/* Copies of what trace.h hands over: texts and fields live until the collection is cleared. (order) counts
 * spans, events and counters as they came. */
struct trace_span {
    ph_trace_span span;
    size_t order;
};

struct trace_event {
    ph_trace_event event;
    size_t order;
};

struct trace_counter {
    ph_trace_counter counter;
    size_t order;
};

struct trace_texts;

struct trace_collect {
    pthread_mutex_t lock;
    struct trace_span *spans;
    struct trace_event *events;
    struct trace_counter *counters;
    size_t span_room, event_room, counter_room;
    atomic_size_t span_count, event_count, counter_count;
    atomic_uint flushes, closes;
    size_t order;
    struct trace_texts *texts;
};

void trace_collect_init(struct trace_collect *collect);

/* Forgets what came. */
void trace_collect_clear(struct trace_collect *collect);
void trace_collect_free(struct trace_collect *collect);

ph_sink trace_collect_sink(struct trace_collect *collect);

/* A tracer whose only sink is (collect). (config) may be NULL. */
ph_tracer *trace_collect_tracer(struct trace_collect *collect, const ph_tracer_config *config);

/* Has everything delivered. */
void trace_collect_flush(ph_tracer *tracer);

/* Fails the test unless all that came is a forest as trace.h promises: ids that are unique and not 0, parents
 * that are known, of the same sandbox and trace, and come after their children, children and events within
 * the time of their parent, no span that ends before it starts, texts that are valid UTF-8. */
void trace_collect_check(const struct trace_collect *collect);

/* The first span or event called (name) from (from) on, NULL when there is none. For a span (*at), unless
 * NULL, gets its index. */
const ph_trace_span *trace_span_find(const struct trace_collect *collect, const char *name, size_t from,
                                     size_t *at);
const ph_trace_event *trace_event_find(const struct trace_collect *collect, const char *name, size_t from,
                                       size_t *at);

/* The same; fails the test when there is none. */
const ph_trace_span *trace_span_named(const struct trace_collect *collect, const char *name);
const ph_trace_event *trace_event_named(const struct trace_collect *collect, const char *name);

size_t trace_spans_named(const struct trace_collect *collect, const char *name);
size_t trace_events_named(const struct trace_collect *collect, const char *name);

/* The span with (id), NULL when there is none. */
const ph_trace_span *trace_span_by_id(const struct trace_collect *collect, uint64_t id);

/* Whether (span) has the one called (name) above it, however far. */
bool trace_span_is_below(const struct trace_collect *collect, const ph_trace_span *span, const char *name);

/* The field (name), NULL when there is none. */
const ph_field *trace_field(const ph_field *fields, size_t count, const char *name);

/* The value of a field that is an integer; fails the test when there is none. */
uint64_t trace_number(const ph_field *fields, size_t count, const char *name);

/* Checks that the events called (name), in the order in which they came, have (first), (first) + 1, ... in
 * the field "n", (count) of them and no more, and times that grow. */
void trace_sequence_check(const struct trace_collect *collect, const char *name, uint64_t first,
                          uint64_t count);

/* Prints what came, for the reader of a test that failed. */
void trace_collect_print(const struct trace_collect *collect);

#endif
