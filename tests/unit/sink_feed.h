/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sink under test that writes to memory, and spans put together by hand to feed it with.
 */
#ifndef SINK_FEED_H
#define SINK_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <pinhole/trace.h>

struct sink_feed {
    FILE *file;
    char *text; /* what has been written, once flushed or closed */
    size_t size;
    ph_sink sink;
};

typedef ph_status sink_open_fn(const ph_file_sink *options, ph_sink *sink, ph_error *error);

/* Returns what (open) does; the test fails when the memory file cannot be opened. */
ph_status feed_try_open(struct sink_feed *feed, sink_open_fn *open);

/* As above, with PH_OK. */
void feed_open(struct sink_feed *feed, sink_open_fn *open);

/* Closes the sink, so that (text) is complete; feed_free is due then. */
void feed_close(struct sink_feed *feed);
void feed_free(struct sink_feed *feed);

/* A span of sandbox 1; a root is a call, all else a user's. */
ph_trace_span feed_span_of(uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
                           uint64_t end_ns);
void feed_give(struct sink_feed *feed, ph_trace_span span);
void feed_span(struct sink_feed *feed, uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
               uint64_t end_ns);

#endif
