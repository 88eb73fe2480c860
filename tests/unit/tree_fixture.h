/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A span tree under test: records and batches are put together by hand, and everything that comes out is
 * kept. Time is counted in units of 1 ns, which are TICKS of the counter. Whatever a test does, at its end
 * the fixture checks what must always be so: every id is unique, and a parent comes after its children and
 * encloses them.
 */
#ifndef TREE_FIXTURE_H
#define TREE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/record.h"
#include "trace/tree.h"

#define TICKS 256u

/* The sites, by number. */
enum {
    SITE_WORK,      /* a span */
    SITE_QUERY,     /* a span with rows (i64) and sql (string) */
    SITE_DETAIL,    /* a span at level debug */
    SITE_TICK,      /* an event with a (i64) and b (u64) */
    SITE_LINE,      /* a log, "%d of %s" */
    SITE_MORE,      /* fields: more (i64) */
    SITE_HITS,      /* a counter, i64 */
    SITE_JOB,       /* an asynchronous span with size (u64) */
    SITE_JOB_END,   /* its end, with done (bool) */
    SITE_FUNCTIONS, /* functions */
    SITE_MORE_TEXT, /* fields: text (string) */
    SITE_PAIR,      /* fields: left and right (i64) */
    SITE_COUNT,
};

struct got_span {
    uint64_t id, parent, start, end;
    ph_span_kind kind;
    bool unfinished;
    ph_status status;
    char name[48];
    char message[48];
    char fields[512]; /* "name=value name=value" */
    uint8_t trace_id[PH__TRACE_ID_SIZE], remote_parent[PH__SPAN_ID_SIZE];
    char trace_state[16]; /* "" for none */
    uint32_t dropped_fields;
};

struct got_event {
    uint64_t span, time;
    ph_level level;
    char name[32];
    char message[48];
    char fields[128];
    uint8_t trace_id[PH__TRACE_ID_SIZE];
};

struct tree_test {
    struct ph__tree *tree;
    struct ph__trace_clock clock;
    struct ph__filter filter;
    uint64_t version;
    ph_trace_stats stats;
    uint64_t base;     /* TSC at time 0 */
    uint64_t now;      /* of the next record or batch */
    uint64_t position; /* of the first byte in (words) */
    size_t count;      /* of (words) */
    uint64_t words[1 << 16];

    bool count_only; /* nothing is kept */
    struct got_span *spans;
    size_t span_count, span_room;
    struct got_event *events;
    size_t event_count, event_room;
    uint64_t counter_count;
    int64_t counter_value;
};

extern const ph_function tree_exports[2]; /* greet, add */
extern const ph_function tree_import;     /* ask */

/* The most records of a call. */
extern uint64_t tree_call_records;

int tree_setup(void **state);
int tree_teardown(void **state);

/* What is wanted from here on. */
void tree_filter(struct tree_test *test, const char *text);

/* Adds a record of (count) words behind its head, and returns its position. Time moves on by 1. */
uint64_t put(struct tree_test *test, enum ph__record_type type, uint32_t site, uint32_t stack,
             const uint64_t *words, size_t count);

/* The same, for what is used all the time. */
uint64_t put_work(struct tree_test *test, uint32_t stack);
void put_end(struct tree_test *test, uint64_t position);
void put_tick(struct tree_test *test, uint32_t stack);

/* Hands the records over as one batch. */
void deliver(struct tree_test *test);

/* Batches of the host; records are handed over first. */
void host_begin(struct tree_test *test, enum ph__host_span span, const ph_function *function);
/* A root of the trace (trace), below (parent) with (trace_state); NULL for none. */
void host_root(struct tree_test *test, enum ph__host_span span, const ph_function *function,
               const char trace[PH__TRACE_ID_SIZE + 1], const char *parent, const char *trace_state);
void host_end(struct tree_test *test, ph_status status, const char *message);
void host_loss(struct tree_test *test, enum ph__loss cause, uint64_t records, uint64_t bytes);

/* Destroys the tree before its time. */
void tree_end(struct tree_test *test);

/* The only span, or event, with (name). */
const struct got_span *span_of(const struct tree_test *test, const char *name);
const struct got_event *event_of(const struct tree_test *test, const char *name);

/* Fails unless the span (name) lies under the span (parent), NULL for a root. */
void assert_under(const struct tree_test *test, const char *name, const char *parent);

#endif
