/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * The host's side of tracing: what a guest does, as spans, events and counters, in the sinks that a program
 * hands over.
 *
 * A tracer has any number of sandboxes and sinks. A sandbox is traced by putting the tracer into its
 * ph_config; nothing else changes. The guest writes records into a ring in its own memory, without an exit;
 * the host copies them out at every exit that there is anyway, and while the guest runs; and the
 * tracer's worker thread decodes them and hands them to the sinks. Each record is delivered once, also what a
 * guest wrote last before it crashed, was killed or timed out.
 *
 *     ph_tracer *tracer;
 *     ph_sink sink;
 *     ph_text_sink_open(NULL, &sink, &error);
 *     ph_tracer_create(NULL, &tracer, &error);
 *     ph_tracer_add_sink(tracer, &sink, &error);
 *     ph_config config = PH_CONFIG_INIT;
 *     config.tracer = tracer;
 *     ...
 *     ph_sandbox_destroy(sandbox);
 *     ph_tracer_destroy(tracer);
 *
 * What a guest says of itself is hostile: names and texts reach a sink as valid UTF-8 and cut to a length,
 * times lie within the host's own span around them, and no guest can make the host keep more than its budget.
 *
 * Threads: every function here may be called from any thread. A sink's functions are never called by two at
 * a time. After fork() the child may only destroy what it inherited.
 */
#ifndef PINHOLE_TRACE_H
#define PINHOLE_TRACE_H

#include <stdio.h>

#include <pinhole/pinhole.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One typed value of a span, event or counter. (value)'s type is PH_I64, PH_U64, PH_F64, PH_BOOL, PH_STR,
 * PH_BYTES or PH_POINTER (in u64). A string is valid UTF-8; its length is in (size), as that of bytes, and
 * (full_size) is what it was before it was cut: larger than (size) when it was.
 */
typedef struct ph_field {
    const char *name;
    ph_value value;
    size_t size;
    size_t full_size;
} ph_field;

/**
 * What a span is. Those of the host: PH_SPAN_HOST (create, load, start, destroy) and PH_SPAN_CALL (`call
 * NAME`, `run NAME`); PH_SPAN_HOST_FUNCTION is a host function that the guest called. Those of the guest:
 * PH_SPAN_GUEST (`guest NAME`, `guest.init`), PH_SPAN_USER (its own), PH_SPAN_FUNCTION
 * (-finstrument-functions), PH_SPAN_SYSTEM_CALL, PH_SPAN_ASYNC (its own, not nested).
 */
typedef enum ph_span_kind {
    PH_SPAN_HOST = 0,
    PH_SPAN_CALL = 1,
    PH_SPAN_HOST_FUNCTION = 2,
    PH_SPAN_GUEST = 3,
    PH_SPAN_USER = 4,
    PH_SPAN_FUNCTION = 5,
    PH_SPAN_SYSTEM_CALL = 6,
    PH_SPAN_ASYNC = 7,
} ph_span_kind;

/**
 * Where in a guest's source something is: all NULL or 0 where it is not known.
 */
typedef struct ph_source {
    const char *file;
    const char *function;
    uint32_t line;
} ph_source;

/**
 * A span that has ended. Everything in it belongs to the tracer and is only valid during the call.
 *
 * (id) is unique among the spans of the process and never 0; (parent) is another's, or 0 for a root. A parent
 * comes after its children, and encloses them in time. Times are nanoseconds since 1970, and exact against
 * each other. (status) is PH_OK or why the span failed or was not finished, (message) the words for it or
 * NULL; (unfinished) says that nobody ended it: a fault, a time-out or a longjmp has left it, and it was
 * closed where that was seen.
 *
 * (trace_id) is that of the root's trace: the caller's (ph_sandbox_set_traceparent), or else 16 random bytes.
 * (remote_parent) is the caller's span, of a root that has one; else all 0. (trace_state) is the caller's
 * tracestate, unchanged, or NULL. ph_trace_span_id tells by which id other systems know the span.
 * (dropped_fields) were more than a span can have; a last field "fields_dropped" says so to a reader.
 */
typedef struct ph_trace_span {
    size_t size;
    uint64_t sandbox;
    uint64_t id;
    uint64_t parent;
    ph_span_kind kind;
    ph_level level;
    const char *name;
    ph_source source;
    uint64_t start_ns;
    uint64_t end_ns;
    bool unfinished;
    ph_status status;
    const char *message;
    const ph_field *fields;
    size_t field_count;
    uint8_t trace_id[16];
    uint8_t remote_parent[8];
    const char *trace_state;
    uint32_t dropped_fields;
} ph_trace_span;

/**
 * Puts the id by which W3C Trace Context and OpenTelemetry know the span (id) of this process into (bytes):
 * one for each (id), never all 0, and not to be guessed from another. All 0 for an (id) of 0.
 */
PH_API void ph_trace_span_id(uint64_t id, uint8_t bytes[8]);

/**
 * Something that happened: an event of a guest (message is NULL), a line that it logged (message is the text;
 * name is the format), or the host's word of a loss (name is "trace.gap"). (span) is the span that was open,
 * or 0, and (trace_id) that of its trace, or all 0.
 */
typedef struct ph_trace_event {
    size_t size;
    uint64_t sandbox;
    uint64_t span;
    ph_level level;
    const char *name;
    const char *message;
    ph_source source;
    uint64_t time_ns;
    const ph_field *fields;
    size_t field_count;
    uint8_t trace_id[16];
} ph_trace_event;

/**
 * A counter's new value: (value) is PH_I64 or PH_F64.
 */
typedef struct ph_trace_counter {
    size_t size;
    uint64_t sandbox;
    uint64_t span;
    const char *name;
    ph_source source;
    uint64_t time_ns;
    ph_value value;
} ph_trace_counter;

/**
 * Where spans, events and counters go. Any function may be NULL. They are called by the tracer's worker, or
 * for a synchronous tracer by the thread that uses a sandbox, one at a time, and may not use the tracer or
 * its sandboxes themselves. (flush) asks that what came is brought to where it can be seen; (close) is the
 * last call, at the tracer's end.
 */
typedef struct ph_sink {
    /** sizeof(ph_sink), set by PH_SINK_INIT: the struct may grow. */
    size_t size;
    void *context;
    void (*span)(void *context, const ph_trace_span *span);
    void (*event)(void *context, const ph_trace_event *event);
    void (*counter)(void *context, const ph_trace_counter *counter);
    void (*flush)(void *context);
    void (*close)(void *context);
} ph_sink;

/** The initial value of a ph_sink: nothing. */
#define PH_SINK_INIT                                                                                         \
    { sizeof(ph_sink), NULL, NULL, NULL, NULL, NULL, NULL }

/**
 * A tracer.
 */
typedef struct ph_tracer ph_tracer;

/**
 * Which roots are recorded, with all that is inside them: calls, starts, runs and what the host does beside
 * them. It is decided before the guest is entered, and a guest whose call is not recorded writes no records.
 * The first three follow the sampled flag of the caller's traceparent and decide themselves where there is
 * none. A ratio takes the traces whose last 56 bits say so, as OpenTelemetry's ratio sampler does, so that
 * all who see a trace decide alike.
 */
typedef enum ph_sampler {
    PH_SAMPLER_PARENT_ALWAYS_ON = 0,
    PH_SAMPLER_PARENT_ALWAYS_OFF = 1,
    PH_SAMPLER_PARENT_RATIO = 2,
    PH_SAMPLER_ALWAYS_ON = 3,
    PH_SAMPLER_ALWAYS_OFF = 4,
    PH_SAMPLER_RATIO = 5,
} ph_sampler;

/**
 * How a tracer is made. Initialise with PH_TRACER_CONFIG_INIT; 0 or NULL takes the default.
 */
typedef struct ph_tracer_config {
    /** sizeof(ph_tracer_config), set by PH_TRACER_CONFIG_INIT: the struct may grow. */
    size_t size;
    /** No worker thread: records are decoded on the thread that uses a sandbox, at the end of each call. */
    bool synchronous;
    /** What is recorded, as for ph_tracer_set_filter. Default "info". */
    const char *filter;
    /** Bytes of records that may wait for the worker, for each sandbox: rounded up to a power of two that is
     * more than twice the ring, at most 1 GiB. Default 1 MiB. When they are used up, policy `complete` waits,
     * for 10 seconds at the most, and then drops and counts as the others do at once. */
    uint64_t queue;
    /** Milliseconds between two looks of the worker. Default 2; it looks less often while nothing happens. */
    uint32_t poll_ms;
    /** As ph_config's: one line when a guest's records make no sense, and how often, at a bounded rate.
     * Called as a sink's functions are, and may use as little. */
    ph_diagnostics_fn diagnostics;
    void *diagnostics_context;
    /** Which roots are recorded. Default: what the caller says, and all where it says nothing. */
    ph_sampler sampler;
    /** Of the samplers with a ratio: the part of all traces that is recorded, from 0 to 1. */
    double sampler_ratio;
} ph_tracer_config;

/** The initial value of a ph_tracer_config: every default. */
#define PH_TRACER_CONFIG_INIT                                                                                \
    { sizeof(ph_tracer_config), false, NULL, 0, 0, NULL, NULL, PH_SAMPLER_PARENT_ALWAYS_ON, 0 }

/**
 * Makes a tracer. (config) may be NULL. On success (*tracer) is the caller's, to be destroyed with
 * ph_tracer_destroy. PH_E_ARGUMENT (the size, the filter or the queue), PH_E_MEMORY or PH_E_SYSTEM.
 */
PH_API ph_status ph_tracer_create(const ph_tracer_config *config, ph_tracer **tracer, ph_error *error);

/**
 * Delivers what is left, flushes and closes the sinks, and frees (tracer), which may be NULL. Its sandboxes
 * must be destroyed before.
 */
PH_API void ph_tracer_destroy(ph_tracer *tracer);

/**
 * Adds (sink), which is copied. Before the first sandbox is made with (tracer): PH_E_STATE after that.
 * PH_E_ARGUMENT without a tracer, or for a sink that is not from PH_SINK_INIT; the sink is then still the
 * caller's. With PH_OK it is the tracer's, and with all else, PH_E_MEMORY among it, it has been closed.
 */
PH_API ph_status ph_tracer_add_sink(ph_tracer *tracer, const ph_sink *sink, ph_error *error);

/**
 * Changes what is recorded from here on, in all sandboxes of (tracer), also in guests that run.
 *
 * (filter) is a comma-separated list of `LEVEL` or `TARGET=LEVEL`; LEVEL is off, error, warn, info, debug or
 * trace. A LEVEL alone is for everything that no TARGET matches; without one it is info. TARGET is a glob (*,
 * ? and [...]) that is compared with the source file (its path as it was compiled, and its last part), the
 * function, and the name of a span, event or counter; of a system call `brk` also with `syscall brk`, and of
 * a function `compute` of -finstrument-functions with `compute()`. Of several that match, the one with the
 * most characters that are no wildcards decides, and of equal ones the last. PH_E_ARGUMENT names what it did
 * not understand, and nothing changes then, nor with PH_E_MEMORY.
 */
PH_API ph_status ph_tracer_set_filter(ph_tracer *tracer, const char *filter, ph_error *error);

/**
 * Has everything that was recorded up to now delivered to the sinks, and these flushed. Waits for that at
 * most (timeout_ns), 0 without a limit; a synchronous tracer does it at once, however long it takes.
 * PH_E_TIMED_OUT when it took longer; it then goes on by itself. PH_E_ARGUMENT without a tracer.
 */
PH_API ph_status ph_tracer_flush(ph_tracer *tracer, uint64_t timeout_ns);

/**
 * Counts of a tracer, or of one sandbox, over its life.
 *
 * Every record that a guest has published (policy `flight`: in a call that comes to a bad end) is one of:
 * (records) that were decoded and, where their level is wanted, delivered; (dropped_queue), no room for it
 * behind the ring; (dropped_budget), beyond a budget; (malformed), no record, as far as they can be told
 * apart. With policy `flight` the records of calls that return are counted nowhere. What never became a
 * record: (dropped_ring), policy `drop` found no room, by the guest's own count. (bytes) were copied out of
 * the ring, (lost_bytes) never: overwritten, dropped, nonsense, or written in a call that is not recorded, of
 * which no other count but (exits) tells. (filtered) are records whose level is not wanted. (unknown_ends)
 * end a span that is not open. (too_deep) are spans more than 4,096 deep, or more than 1,024 asynchronous at
 * once, which are left out. (gaps) are places with a loss. (exits) are VM exits that tracing alone has
 * caused.
 */
typedef struct ph_trace_stats {
    uint64_t records;
    uint64_t bytes;
    uint64_t spans;
    uint64_t events;
    uint64_t counters;
    uint64_t dropped_ring;
    uint64_t dropped_queue;
    uint64_t dropped_budget;
    uint64_t lost_bytes;
    uint64_t filtered;
    uint64_t malformed;
    uint64_t unknown_ends;
    uint64_t too_deep;
    uint64_t gaps;
    uint64_t exits;
} ph_trace_stats;

/**
 * Fills (stats) with the counts of all sandboxes of (tracer), those that are destroyed included.
 */
PH_API void ph_tracer_stats(ph_tracer *tracer, ph_trace_stats *stats);

/**
 * Fills (stats) with the counts of (sandbox): all 0 when it has no tracer.
 */
PH_API void ph_sandbox_trace_stats(const ph_sandbox *sandbox, ph_trace_stats *stats);

/**
 * The number by which spans and events name (sandbox), unique within the process; 0 when it has no tracer.
 */
PH_API uint64_t ph_sandbox_trace_number(const ph_sandbox *sandbox);

/** Bytes of a traceparent with its NUL, as ph_host_traceparent writes it. */
#define PH_TRACEPARENT_SIZE 56

/**
 * Whether (traceparent) is one that W3C Trace Context accepts
 * (https://www.w3.org/TR/trace-context/#traceparent-header): version 00, or a later one whose first fields
 * are those of 00.
 */
PH_API bool ph_traceparent_is_valid(const char *traceparent);

/**
 * Has the roots that (sandbox) begins from here on belong to the caller's trace, until this is called again;
 * ph_config's traceparent does the same from the beginning. (traceparent) and (tracestate) are the values of
 * the headers of those names, and are copied; NULL is none. One that is not valid counts as none, as the
 * specification asks, and then so does the tracestate; a tracestate of more than 512 bytes, or with a
 * character that is not printable ASCII, counts as none. A pool forgets both when the sandbox is given back.
 * Without a tracer they are only passed on. PH_E_MEMORY, and nothing has changed; or PH_E_BUSY, PH_E_FORKED
 * or PH_E_BROKEN. Any other state will do, also that of a guest that has come to its end and is to be put
 * back.
 */
PH_API ph_status ph_sandbox_set_traceparent(ph_sandbox *sandbox, const char *traceparent,
                                            const char *tracestate);

/**
 * Writes the traceparent that a host function passes on to whom it calls: its own span within the trace of
 * the call, with the sampled flag. Without a tracer it is the caller's, unchanged (of a later version, what
 * version 00 has of it). "" and false where there is neither. In a host function, from its own thread.
 */
PH_API bool ph_host_traceparent(const ph_host_call *call, char traceparent[PH_TRACEPARENT_SIZE]);

/**
 * The caller's tracestate, or NULL. Valid until the host function returns.
 */
PH_API const char *ph_host_tracestate(const ph_host_call *call);

/**
 * Whether a text sink uses colour: PH_COLOUR_AUTO on a terminal, when NO_COLOR is unset or empty.
 */
typedef enum ph_colour {
    PH_COLOUR_AUTO = 0,
    PH_COLOUR_NEVER = 1,
    PH_COLOUR_ALWAYS = 2,
} ph_colour;

/**
 * Options of ph_text_sink_open and ph_jsonl_sink_open. Initialise with PH_FILE_SINK_INIT. (file) is where to
 * write, NULL for stderr; it is flushed, and closed with the sink when (close_file) says so. (most_spans) is
 * how many spans and events of one tree the text sink keeps until the tree's root has ended, 65,536 by
 * default; it says how many more there were. Both pass on a failed write to nobody: ferror(file) tells.
 */
typedef struct ph_file_sink {
    size_t size;
    FILE *file;
    bool close_file;
    ph_colour colour;
    uint32_t most_spans;
} ph_file_sink;

/** The initial value of a ph_file_sink: every default. */
#define PH_FILE_SINK_INIT                                                                                    \
    { sizeof(ph_file_sink), NULL, false, PH_COLOUR_AUTO, 0 }

/**
 * Fills (sink) with one that draws each tree of spans for a person, when its root has ended. (options) may be
 * NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_text_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

/**
 * Fills (sink) with one that writes a JSON object for each span, event and counter, one a line, as they
 * end: docs/tracing.md has the keys. (options) may be NULL. PH_E_ARGUMENT or PH_E_MEMORY.
 */
PH_API ph_status ph_jsonl_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

#ifdef __cplusplus
}
#endif

#endif
