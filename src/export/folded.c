/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for folded stacks, the input of flamegraph.pl, whose head describes it: a line for each stack, the
 * names of its frames with semicolons between them, a blank, and a number, here self time in nanoseconds.
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
    struct ph__stacks *stacks;
    uint64_t listed; /* the sandbox whose stacks are being written */
};

/* Where in (name) the blank is that, at a stack's end, would begin a second number: that line would be taken
 * for one of a comparison of two profiles. (length) when there is none. */
static size_t last_blank(const char *name, size_t length) {
    size_t at = length;

    while (at > 0 && ((name[at - 1] >= '0' && name[at - 1] <= '9') || name[at - 1] == '.'))
        at--;
    return at > 0 && at < length && name[at - 1] == ' ' ? at - 1 : length;
}

/* The format has no escapes, so what would end a name, or a line, is replaced. */
static void add_name(struct ph__out *out, const char *name) {
    size_t length = strlen(name), size = 1;
    size_t blank = last_blank(name, length);

    if (length == 0)
        ph__out_text(out, "[unnamed]");
    for (size_t at = 0; at < length; at += size) {
        size = 1;
        int32_t point = ph__text_take_code_point((const uint8_t *)name + at, length - at, &size);
        if (point < 0)
            ph__out_text(out, "\xef\xbf\xbd");
        else if (point == ';')
            ph__out_text(out, ":");
        else if (at == blank || ph__text_is_control(point))
            ph__out_text(out, "_");
        else
            ph__out_add(out, name + at, size);
    }
}

static void add_stack(void *context, const uint32_t *frames, size_t depth, uint64_t self_ns) {
    struct sink *sink = context;

    if (sink->listed)
        ph__out_format(&sink->to.out, "sandbox %" PRIu64 ";", sink->listed);
    for (size_t i = 0; i < depth; i++) {
        ph__out_text(&sink->to.out, i > 0 ? ";" : "");
        add_name(&sink->to.out, ph__stacks_frame(sink->stacks, frames[i]));
    }
    ph__out_text(&sink->to.out, " ");
    ph__out_u64(&sink->to.out, self_ns);
    ph__out_text(&sink->to.out, "\n");
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;

    ph__stacks_take(sink->stacks, span);
}

static void close_sink(void *context) {
    struct sink *sink = context;
    uint32_t at = 0;
    uint64_t total_ns;

    ph__stacks_finish(sink->stacks);
    while (ph__stacks_next(sink->stacks, &at, &sink->listed, &total_ns))
        ph__stacks_list(sink->stacks, at, add_stack, sink);
    ph__stacks_free(sink->stacks);
    ph__file_sink_end(sink);
}

ph_status ph_folded_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_status status;
    struct sink *opened =
        ph__file_sink_new(options, sizeof *opened, "a sink of folded stacks", sink, &status, error);

    if (!opened)
        return status;
    opened->stacks = ph__stacks_create();
    if (!opened->stacks) {
        free(opened);
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink of folded stacks");
    }
    *sink = (ph_sink){.size = sizeof *sink, .context = opened, .span = take_span, .close = close_sink};
    return PH_OK;
}
