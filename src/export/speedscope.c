/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for speedscope's own format, whose schema is https://www.speedscope.app/file-format-schema.json
 * (made from src/lib/file-format-spec.ts of that project): a "sampled" profile for each sandbox, in it a
 * sample for each stack, from the outermost frame inwards, with its self time in nanoseconds as the weight.
 * Nothing is written before the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/export.h>

#include "base/error.h"
#include "export/file_sink.h"
#include "export/out.h"
#include "export/stacks.h"

struct sink {
    struct ph__file_sink to;
    bool any; /* an element of the array under way has been written */
    struct ph__stacks *stacks;
};

static void begin_element(struct sink *sink) {
    ph__out_text(&sink->to.out, sink->any ? ",\n" : "\n");
    sink->any = true;
}

static void add_sample(void *context, const uint32_t *frames, size_t depth, uint64_t self_ns) {
    struct sink *sink = context;

    (void)self_ns;
    begin_element(sink);
    for (size_t i = 0; i < depth; i++) {
        ph__out_text(&sink->to.out, i > 0 ? "," : "[");
        ph__out_u64(&sink->to.out, frames[i]);
    }
    ph__out_text(&sink->to.out, "]");
}

static void add_weight(void *context, const uint32_t *frames, size_t depth, uint64_t self_ns) {
    struct sink *sink = context;

    (void)frames;
    (void)depth;
    begin_element(sink);
    ph__out_u64(&sink->to.out, self_ns);
}

static void add_profile(struct sink *sink, uint32_t at, uint64_t sandbox, uint64_t total_ns) {
    struct ph__out *out = &sink->to.out;

    ph__out_text(out, "{\"type\":\"sampled\",\"name\":\"");
    if (sandbox)
        ph__out_format(out, "sandbox %" PRIu64, sandbox);
    else
        ph__out_text(out, "[other]");
    ph__out_format(out, "\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRIu64, total_ns);
    ph__out_text(out, ",\n\"samples\":[");
    sink->any = false;
    ph__stacks_list(sink->stacks, at, add_sample, sink);
    ph__out_text(out, "],\n\"weights\":[");
    sink->any = false;
    ph__stacks_list(sink->stacks, at, add_weight, sink);
    ph__out_text(out, "]}");
}

static void add_file(struct sink *sink) {
    struct ph__out *out = &sink->to.out;
    uint32_t at = 0;
    uint64_t sandbox, total_ns;
    bool more = false;

    ph__out_text(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                      "\"exporter\":\"pinhole\",\"shared\":{\"frames\":[");
    for (uint32_t i = 0; i < ph__stacks_frame_count(sink->stacks); i++) {
        const char *name = ph__stacks_frame(sink->stacks, i);
        begin_element(sink);
        ph__out_text(out, "{\"name\":");
        ph__json_text(out, name, strlen(name));
        ph__out_text(out, "}");
    }
    ph__out_text(out, "]},\n\"profiles\":[");
    while (ph__stacks_next(sink->stacks, &at, &sandbox, &total_ns)) {
        ph__out_text(out, more ? ",\n" : "\n");
        more = true;
        add_profile(sink, at, sandbox, total_ns);
    }
    ph__out_text(out, "]}\n");
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;

    ph__stacks_take(sink->stacks, span);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    ph__stacks_finish(sink->stacks);
    add_file(sink);
    ph__stacks_free(sink->stacks);
    ph__file_sink_end(sink);
}

ph_status ph_speedscope_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_status status;
    struct sink *opened =
        ph__file_sink_new(options, sizeof *opened, "a sink of speedscope's profiles", sink, &status, error);

    if (!opened)
        return status;
    opened->stacks = ph__stacks_create();
    if (!opened->stacks) {
        free(opened);
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink of speedscope's profiles");
    }
    *sink = (ph_sink){.size = sizeof *sink, .context = opened, .span = take_span, .close = close_sink};
    return PH_OK;
}
