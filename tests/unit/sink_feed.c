/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sink under test and what it is fed with (sink_feed.h).
 */
#include "unit/sink_feed.h"

#include <stdlib.h>

ph_status feed_try_open(struct sink_feed *feed, sink_open_fn *open) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;

    *feed = (struct sink_feed){0};
    feed->file = open_memstream(&feed->text, &feed->size);
    assert_non_null(feed->file);
    options.file = feed->file;
    return open(&options, &feed->sink, &error);
}

void feed_open(struct sink_feed *feed, sink_open_fn *open) {
    assert_int_equal(feed_try_open(feed, open), PH_OK);
}

void feed_close(struct sink_feed *feed) {
    feed->sink.close(feed->sink.context);
}

void feed_free(struct sink_feed *feed) {
    fclose(feed->file);
    free(feed->text);
}

ph_trace_span feed_span_of(uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
                           uint64_t end_ns) {
    return (ph_trace_span){.size = sizeof(ph_trace_span),
                           .sandbox = 1,
                           .id = id,
                           .parent = parent,
                           .kind = parent ? PH_SPAN_USER : PH_SPAN_CALL,
                           .level = PH_LEVEL_INFO,
                           .name = name,
                           .start_ns = start_ns,
                           .end_ns = end_ns};
}

void feed_give(struct sink_feed *feed, ph_trace_span span) {
    feed->sink.span(feed->sink.context, &span);
}

void feed_span(struct sink_feed *feed, uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
               uint64_t end_ns) {
    feed_give(feed, feed_span_of(id, parent, name, start_ns, end_ns));
}
