/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for Chrome's trace events (the "Trace Event Format", a public document of the Chromium project): a
 * process for each sandbox, in it a thread of the host and one of the guest. Complete events for spans, so
 * that nothing has to be kept between begin and end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pinhole/export.h>

#include "base/error.h"
#include "base/level.h"
#include "base/time.h"
#include "export/field.h"
#include "export/file_sink.h"
#include "export/out.h"
#include "export/span_kind.h"

/* Threads of a sandbox's process. */
#define HOST 1u
#define GUEST 2u

struct sink {
    struct ph__file_sink to;
    bool any;         /* an object has been written */
    uint64_t base_ns; /* since 1970; the trace's zero */
    uint64_t named;   /* sandboxes up to this number have been named: their numbers only grow */
};

static void add_string(struct ph__out *out, const char *text) {
    ph__json_text(out, text, strlen(text));
}

static void begin_object(struct sink *sink, const char *phase, uint64_t sandbox, unsigned thread) {
    struct ph__out *out = &sink->to.out;

    ph__out_text(out, sink->any ? ",\n{\"ph\":\"" : "[\n{\"ph\":\"");
    sink->any = true;
    ph__out_text(out, phase);
    ph__out_text(out, "\",\"pid\":");
    ph__out_u64(out, sandbox);
    ph__out_text(out, ",\"tid\":");
    ph__out_u64(out, thread);
}

static void end_object(struct sink *sink) {
    ph__out_text(&sink->to.out, "}");
    ph__out_flush(&sink->to.out);
}

/* Nanoseconds as microseconds with three decimals: a double of printf's would round. */
static void add_us(struct ph__out *out, uint64_t ns) {
    ph__out_u64(out, ns / 1000);
    ph__out_text(out, ".");
    ph__out_digits(out, ns % 1000, 3);
}

static void add_time(struct sink *sink, uint64_t time_ns) {
    bool before = time_ns < sink->base_ns;

    ph__out_text(&sink->to.out, before ? ",\"ts\":-" : ",\"ts\":");
    add_us(&sink->to.out, before ? sink->base_ns - time_ns : time_ns - sink->base_ns);
}

static void add_name(struct ph__out *out, const char *name) {
    ph__out_text(out, ",\"name\":");
    add_string(out, name ? name : "");
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* The object `args` under way: its members have one comma less than there are of them. */
struct arguments {
    struct ph__out *out;
    bool any;
};

static struct arguments begin_arguments(struct ph__out *out) {
    ph__out_text(out, ",\"args\":{");
    return (struct arguments){.out = out};
}

static void add_key(struct arguments *arguments, const char *key) {
    if (arguments->any)
        ph__out_text(arguments->out, ",");
    arguments->any = true;
    add_string(arguments->out, key);
    ph__out_text(arguments->out, ":");
}

static void add_text(struct arguments *arguments, const char *key, const char *text) {
    if (!text)
        return;
    add_key(arguments, key);
    add_string(arguments->out, text);
}

/* What is ours begins with "pinhole.", so that no field of a guest's passes for it. */
static void add_source(struct arguments *arguments, const ph_source *source) {
    add_text(arguments, "pinhole.file", source->file);
    if (source->line) {
        add_key(arguments, "pinhole.line");
        ph__out_u64(arguments->out, source->line);
    }
    add_text(arguments, "pinhole.function", source->function);
}

static void add_fields(struct arguments *arguments, const ph_field *fields, size_t count) {
    static const char *const ours[] = {"pinhole.", NULL};
    char name[PH__FIELD_NAME_SIZE];

    for (size_t i = 0; i < count; i++) {
        add_key(arguments, ph__field_name(fields, i, ours, name));
        ph__json_value(arguments->out, &fields[i].value, fields[i].size);
    }
}

static void end_arguments(struct arguments *arguments) {
    ph__out_text(arguments->out, "}");
}

/* ---- objects ------------------------------------------------------------------------------------------- */

static void name_thread(struct sink *sink, uint64_t sandbox, unsigned thread, const char *what,
                        const char *name) {
    begin_object(sink, "M", sandbox, thread);
    add_name(&sink->to.out, what);
    struct arguments arguments = begin_arguments(&sink->to.out);
    add_text(&arguments, "name", name);
    end_arguments(&arguments);
    end_object(sink);
}

/* Names each sandbox once. One that is heard of late, after one with a higher number, goes without. */
static void name_sandbox(struct sink *sink, uint64_t sandbox) {
    char name[40];

    if (sandbox <= sink->named)
        return;
    sink->named = sandbox;
    snprintf(name, sizeof name, "sandbox %" PRIu64, sandbox);
    name_thread(sink, sandbox, HOST, "process_name", name);
    name_thread(sink, sandbox, HOST, "thread_name", "host");
    name_thread(sink, sandbox, GUEST, "thread_name", "guest");
}

static unsigned thread_of(ph_span_kind kind) {
    return ph__span_is_of_host(kind) ? HOST : GUEST;
}

static void add_span_arguments(struct ph__out *out, const ph_trace_span *span) {
    struct arguments arguments = begin_arguments(out);

    add_key(&arguments, "pinhole.id");
    ph__out_u64(out, span->id);
    if (span->parent) {
        add_key(&arguments, "pinhole.parent");
        ph__out_u64(out, span->parent);
    }
    if (span->unfinished) {
        add_key(&arguments, "pinhole.unfinished");
        ph__out_text(out, "true");
    }
    if (span->status != PH_OK)
        add_text(&arguments, "pinhole.status", ph_status_kind(span->status));
    add_text(&arguments, "pinhole.message", span->message);
    add_source(&arguments, &span->source);
    add_fields(&arguments, span->fields, span->field_count);
    end_arguments(&arguments);
}

/* Spans that do not nest are a pair of events with an id, which viewers draw on lines of their own. */
static void add_async(struct sink *sink, const ph_trace_span *span, const char *phase, uint64_t time_ns) {
    begin_object(sink, phase, span->sandbox, GUEST);
    add_name(&sink->to.out, span->name);
    ph__out_format(&sink->to.out, ",\"cat\":\"async\",\"id\":\"0x%" PRIx64 "\"", span->id);
    add_time(sink, time_ns);
    if (*phase == 'b')
        add_span_arguments(&sink->to.out, span);
    end_object(sink);
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;

    name_sandbox(sink, span->sandbox);
    if (span->kind == PH_SPAN_ASYNC) {
        add_async(sink, span, "b", span->start_ns);
        add_async(sink, span, "e", span->end_ns);
        return;
    }
    begin_object(sink, "X", span->sandbox, thread_of(span->kind));
    add_name(&sink->to.out, span->name);
    add_time(sink, span->start_ns);
    ph__out_text(&sink->to.out, ",\"dur\":");
    add_us(&sink->to.out, span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    add_span_arguments(&sink->to.out, span);
    end_object(sink);
}

static void take_event(void *context, const ph_trace_event *event) {
    struct sink *sink = context;

    name_sandbox(sink, event->sandbox);
    begin_object(sink, "i", event->sandbox, GUEST);
    add_name(&sink->to.out, event->message ? event->message : event->name);
    add_time(sink, event->time_ns);
    ph__out_text(&sink->to.out, ",\"s\":\"t\"");
    struct arguments arguments = begin_arguments(&sink->to.out);
    add_text(&arguments, "pinhole.level", ph__level_name(event->level));
    if (event->span) {
        add_key(&arguments, "pinhole.span");
        ph__out_u64(&sink->to.out, event->span);
    }
    add_source(&arguments, &event->source);
    add_fields(&arguments, event->fields, event->field_count);
    end_arguments(&arguments);
    end_object(sink);
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct sink *sink = context;

    name_sandbox(sink, counter->sandbox);
    begin_object(sink, "C", counter->sandbox, GUEST);
    add_name(&sink->to.out, counter->name);
    add_time(sink, counter->time_ns);
    struct arguments arguments = begin_arguments(&sink->to.out);
    add_key(&arguments, "value");
    ph__json_value(&sink->to.out, &counter->value, 0);
    end_arguments(&arguments);
    end_object(sink);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    ph__out_text(&sink->to.out, sink->any ? "\n]\n" : "[]\n");
    ph__file_sink_end(sink);
}

/* The trace's zero, since 1970. */
static void add_base(struct sink *sink) {
    begin_object(sink, "M", 0, 0);
    add_name(&sink->to.out, "pinhole.clock");
    struct arguments arguments = begin_arguments(&sink->to.out);
    add_key(&arguments, "zero_unix_ns");
    ph__out_format(&sink->to.out, "\"%" PRIu64 "\"", sink->base_ns);
    end_arguments(&arguments);
    end_object(sink);
}

ph_status ph_chrome_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_status status;
    struct sink *opened =
        ph__file_sink_new(options, sizeof *opened, "a sink of trace events", sink, &status, error);

    if (!opened)
        return status;
    opened->base_ns = ph__time_ns(CLOCK_REALTIME);
    add_base(opened);
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = ph__file_sink_flush,
                      .close = close_sink};
    return PH_OK;
}
