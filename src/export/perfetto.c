/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for Perfetto's own format: a stream of TracePackets, each a field of a Trace, so that a file is
 * one from its first packet on. A sandbox is a process with a thread of the host and one of the guest; an
 * asynchronous span has a track of its own, and so has a counter.
 *
 * A span is written when it has ended, as a begin and an end. A reader sorts them (perfetto_hold.h says what
 * waits for that). All memory is taken when the sink is opened.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pinhole/export.h>

#include "base/error.h"
#include "base/time.h"
#include "export/file_sink.h"
#include "export/perfetto_hold.h"
#include "export/perfetto_packet.h"
#include "export/span_kind.h"

#define OUT_BYTES (2 * PH__PERFETTO_PACKET_BYTES)
#define KNOWN_SANDBOXES 256u
#define END_BYTES 64u
#define COUNTER_MOST 1024u /* of a counter's name */

/* A sandbox's tracks have its number and one of these as their uuid; the others count up, and have none of
 * these bits. */
#define UUID_BITS 2u
#define PROCESS 1u
#define HOST 2u
#define GUEST 3u

struct sink {
    FILE *file;
    bool close_file;
    size_t used;
    struct ph__perfetto perfetto;
    struct ph__hold hold;
    struct ph__intern counters;      /* numbers of tracks */
    uint64_t known[KNOWN_SANDBOXES]; /* described last, of those with one remainder */
    uint8_t out[OUT_BYTES];
    uint8_t definitions[2 * PH__PERFETTO_PACKET_BYTES];
};

/* ---- output -------------------------------------------------------------------------------------------- */

/* Past the stream's own buffer, which would end anywhere in a packet. Nothing follows a write that failed: a
 * reader finds whole packets up to there. */
static void write_out(struct sink *sink) {
    if (sink->used && !ferror(sink->file))
        fwrite(sink->out, 1, sink->used, sink->file);
    sink->used = 0;
    fflush(sink->file);
}

static void put(void *context, const void *bytes, size_t size) {
    struct sink *sink = context;

    if (size > sizeof sink->out - sink->used)
        write_out(sink);
    memcpy(sink->out + sink->used, bytes, size);
    sink->used += size;
}

static void put_definitions(struct sink *sink) {
    put(sink, sink->definitions,
        ph__perfetto_definitions(&sink->perfetto, sink->definitions, sizeof sink->definitions));
}

/* The packet that was made; one that found no room in spite of all limits is left out. */
static void put_packet(struct sink *sink) {
    put_definitions(sink);
    if (!sink->perfetto.packet.cut)
        put(sink, sink->perfetto.packet.bytes, sink->perfetto.packet.used);
}

static void make_room(struct sink *sink) {
    if (!ph__perfetto_has_room(&sink->perfetto))
        ph__perfetto_clear(&sink->perfetto);
}

/* ---- tracks -------------------------------------------------------------------------------------------- */

static uint64_t uuid_of(uint64_t sandbox, unsigned track) {
    return sandbox << UUID_BITS | track;
}

/* Begins the description of a track; the caller ends it and the packet. */
static size_t begin_track(struct sink *sink, uint64_t uuid, uint64_t parent) {
    ph__perfetto_begin(&sink->perfetto, 0, 0);
    size_t message = ph__protobuf_begin(&sink->perfetto.packet, PACKET_TRACK_DESCRIPTOR);
    ph__protobuf_varint(&sink->perfetto.packet, TRACK_UUID, uuid);
    if (parent)
        ph__protobuf_varint(&sink->perfetto.packet, TRACK_PARENT, parent);
    return message;
}

static void end_track(struct sink *sink, size_t track) {
    ph__protobuf_end(&sink->perfetto.packet, track);
    ph__perfetto_end(&sink->perfetto);
    put_packet(sink);
}

/* A reader tells threads apart by their number alone, and takes the one with its process's for the main one:
 * each sandbox has two numbers, and its process that of the host's thread. They are positive int32s. */
static uint64_t tid_of(uint64_t sandbox, unsigned track) {
    return (sandbox & 0x3fffffff) << 1 | (track == GUEST);
}

static void describe_thread(struct sink *sink, uint64_t sandbox, unsigned track, const char *name) {
    struct ph__protobuf *packet = &sink->perfetto.packet;
    size_t descriptor = begin_track(sink, uuid_of(sandbox, track), uuid_of(sandbox, PROCESS));
    size_t thread = ph__protobuf_begin(packet, TRACK_THREAD);

    ph__protobuf_varint(packet, THREAD_PID, tid_of(sandbox, HOST));
    ph__protobuf_varint(packet, THREAD_TID, tid_of(sandbox, track));
    ph__protobuf_string(packet, THREAD_NAME, name, strlen(name));
    ph__protobuf_end(packet, thread);
    end_track(sink, descriptor);
}

/* Before the first packet of a sandbox; when there are many at a time, again, which changes nothing. */
static void describe_sandbox(struct sink *sink, uint64_t sandbox) {
    struct ph__protobuf *packet = &sink->perfetto.packet;
    uint64_t *known = &sink->known[sandbox % KNOWN_SANDBOXES];
    char name[40];

    if (*known == sandbox + 1)
        return;
    *known = sandbox + 1;
    snprintf(name, sizeof name, "sandbox %" PRIu64, sandbox);
    size_t descriptor = begin_track(sink, uuid_of(sandbox, PROCESS), 0);
    size_t process = ph__protobuf_begin(packet, TRACK_PROCESS);
    ph__protobuf_varint(packet, PROCESS_PID, tid_of(sandbox, HOST));
    ph__protobuf_string(packet, PROCESS_NAME, name, strlen(name));
    ph__protobuf_end(packet, process);
    end_track(sink, descriptor);
    describe_thread(sink, sandbox, HOST, "host");
    describe_thread(sink, sandbox, GUEST, "guest");
}

/* A counter's track. When the table of them was full, it begins a new one of the same name. */
static uint64_t counter_track(struct sink *sink, uint64_t sandbox, const char *name) {
    char key[sizeof sandbox + COUNTER_MOST];
    size_t length = strnlen(name, COUNTER_MOST);
    bool is_new;

    memcpy(key, &sandbox, sizeof sandbox);
    memcpy(key + sizeof sandbox, name, length);
    if (!ph__intern_has_room(&sink->counters, 1, sizeof key))
        ph__intern_empty(&sink->counters);
    uint64_t uuid = ph__intern_number(&sink->counters, 0, key, sizeof sandbox + length, &is_new) << UUID_BITS;
    if (is_new) {
        size_t descriptor = begin_track(sink, uuid, uuid_of(sandbox, PROCESS));
        ph__protobuf_string(&sink->perfetto.packet, TRACK_NAME, name, length);
        ph__protobuf_bytes(&sink->perfetto.packet, TRACK_COUNTER, NULL, 0);
        end_track(sink, descriptor);
    }
    return uuid;
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static unsigned track_of(ph_span_kind kind) {
    return ph__span_is_of_host(kind) ? HOST : GUEST;
}

/* A call's flow goes to the guest's part of it, which knows the call as its parent. */
static void add_flow(struct ph__protobuf *packet, const ph_trace_span *span) {
    if (span->kind == PH_SPAN_CALL || span->kind == PH_SPAN_HOST)
        ph__protobuf_fixed64(packet, EVENT_FLOWS, span->id);
    if (span->kind == PH_SPAN_GUEST && span->parent)
        ph__protobuf_fixed64(packet, EVENT_TERMINATING_FLOWS, span->parent);
}

static void make_begin(struct sink *sink, const ph_trace_span *span, uint64_t track) {
    ph__perfetto_begin_event(&sink->perfetto, FLAG_NEEDS_STATE, span->start_ns, TYPE_SLICE_BEGIN, track);
    add_flow(&sink->perfetto.packet, span);
    ph__perfetto_add_span(&sink->perfetto, ph__span_kind_name(span->kind), span);
    ph__perfetto_end_event(&sink->perfetto);
}

/* Makes the packet of its end: small, and it needs no names. */
/* NOLINTNEXTLINE(readability-non-const-parameter): written to through the writer. */
static size_t make_end(const ph_trace_span *span, uint64_t track, uint8_t bytes[END_BYTES]) {
    struct ph__protobuf out = {.bytes = bytes, .capacity = END_BYTES};
    uint64_t end_ns = span->end_ns > span->start_ns ? span->end_ns : span->start_ns;
    size_t packet = ph__protobuf_begin(&out, TRACE_PACKET);

    ph__protobuf_varint(&out, PACKET_TIMESTAMP, end_ns);
    ph__protobuf_varint(&out, PACKET_CLOCK_ID, BUILTIN_REALTIME);
    ph__protobuf_varint(&out, PACKET_SEQUENCE_ID, 1);
    size_t event = ph__protobuf_begin(&out, PACKET_TRACK_EVENT);
    ph__protobuf_varint(&out, EVENT_TYPE, TYPE_SLICE_END);
    ph__protobuf_varint(&out, EVENT_TRACK, track);
    ph__protobuf_end(&out, event);
    ph__protobuf_end(&out, packet);
    return out.used;
}

/* The list that a span which began at (start_ns) has to wait in. NULL: it may be written at once, since its
 * parent has begun before it. */
static struct ph__hold_list *list_of(struct sink *sink, uint64_t parent, uint64_t start_ns) {
    struct ph__hold_list *list = ph__hold_find(&sink->hold, parent);

    if (!list)
        return ph__hold_make(&sink->hold, parent, start_ns);
    if (start_ns > list->start_ns)
        return NULL;
    if (start_ns < list->start_ns) {
        ph__hold_write(&sink->hold, list->chain, put, sink);
        list->chain = (struct ph__hold_chain){0};
        list->start_ns = start_ns;
    }
    return list;
}

/* Has the packet that was made, (inner) behind it, and (end) where that is of the same time, wait for the
 * parent. False when it need not, or cannot. */
static bool hold_back(struct sink *sink, const ph_trace_span *span, struct ph__hold_chain inner,
                      const uint8_t *end, size_t end_size) {
    const struct ph__protobuf *begin = &sink->perfetto.packet;

    if (!span->parent)
        return false;
    if (!ph__hold_has_room(&sink->hold, begin->used + end_size)) {
        ph__hold_write_all(&sink->hold, put, sink);
        return false;
    }
    struct ph__hold_list *list = list_of(sink, span->parent, span->start_ns);
    if (!list)
        return false;
    ph__hold_add(&sink->hold, &list->chain, begin->bytes, begin->used);
    ph__hold_append(&sink->hold, &list->chain, inner);
    ph__hold_add(&sink->hold, &list->chain, end, end_size);
    return true;
}

static void take_nested(struct sink *sink, const ph_trace_span *span) {
    uint8_t end[END_BYTES];
    uint64_t track = uuid_of(span->sandbox, track_of(span->kind));
    uint64_t inner_ns = 0;
    struct ph__hold_chain inner = ph__hold_take(&sink->hold, span->id, &inner_ns);
    bool is_point = span->end_ns <= span->start_ns;

    if (inner.first && inner_ns > span->start_ns) {
        ph__hold_write(&sink->hold, inner, put, sink);
        inner = (struct ph__hold_chain){0};
    }
    make_begin(sink, span, track);
    put_definitions(sink);
    size_t end_size = make_end(span, track, end);
    if (sink->perfetto.packet.cut) {
        ph__hold_write(&sink->hold, inner, put, sink);
    } else if (hold_back(sink, span, inner, end, is_point ? end_size : 0)) {
        if (!is_point)
            put(sink, end, end_size);
    } else {
        put(sink, sink->perfetto.packet.bytes, sink->perfetto.packet.used);
        ph__hold_write(&sink->hold, inner, put, sink);
        put(sink, end, end_size);
    }
}

/* Those of one name in one sandbox are drawn together, although each has its track. */
static void take_async(struct sink *sink, const ph_trace_span *span) {
    uint8_t end[END_BYTES];
    uint64_t track = ++sink->counters.last << UUID_BITS;
    const char *name = span->name ? span->name : "";
    uint64_t inner_ns = 0;

    ph__hold_write(&sink->hold, ph__hold_take(&sink->hold, span->id, &inner_ns), put, sink);
    size_t descriptor = begin_track(sink, track, uuid_of(span->sandbox, PROCESS));
    ph__protobuf_string(&sink->perfetto.packet, TRACK_NAME, name, strnlen(name, COUNTER_MOST));
    end_track(sink, descriptor);
    make_begin(sink, span, track);
    put_packet(sink);
    put(sink, end, make_end(span, track, end));
}

static void take_span(void *context, const ph_trace_span *span) {
    struct sink *sink = context;

    make_room(sink);
    describe_sandbox(sink, span->sandbox);
    if (span->kind == PH_SPAN_ASYNC)
        take_async(sink, span);
    else
        take_nested(sink, span);
}

/* ---- all else ------------------------------------------------------------------------------------------ */

static void take_event(void *context, const ph_trace_event *event) {
    struct sink *sink = context;

    make_room(sink);
    describe_sandbox(sink, event->sandbox);
    ph__perfetto_begin_event(&sink->perfetto, FLAG_NEEDS_STATE, event->time_ns, TYPE_INSTANT,
                             uuid_of(event->sandbox, GUEST));
    ph__perfetto_add_event(&sink->perfetto, event);
    ph__perfetto_end_event(&sink->perfetto);
    put_packet(sink);
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct sink *sink = context;
    struct ph__protobuf *packet = &sink->perfetto.packet;

    describe_sandbox(sink, counter->sandbox);
    uint64_t track = counter_track(sink, counter->sandbox, counter->name ? counter->name : "");
    ph__perfetto_begin_event(&sink->perfetto, 0, counter->time_ns, TYPE_COUNTER, track);
    if (counter->value.type == PH_F64)
        ph__protobuf_double(packet, EVENT_DOUBLE_COUNTER_VALUE, counter->value.f64);
    else
        ph__protobuf_varint(packet, EVENT_COUNTER_VALUE, (uint64_t)counter->value.i64);
    ph__perfetto_end_event(&sink->perfetto);
    put_packet(sink);
}

static void flush(void *context) {
    struct sink *sink = context;

    ph__hold_write_all(&sink->hold, put, sink);
    write_out(sink);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    flush(sink);
    ph__file_sink_close(sink->file, sink->close_file);
    free(sink);
}

static void add_clock(struct ph__protobuf *packet, unsigned id, clockid_t clock) {
    size_t message = ph__protobuf_begin(packet, SNAPSHOT_CLOCKS);

    ph__protobuf_varint(packet, CLOCK_ID, id);
    ph__protobuf_varint(packet, CLOCK_TIMESTAMP, ph__time_ns(clock));
    ph__protobuf_end(packet, message);
}

/* The first packet: what the times are of, and that nothing was lost before it. The trace's clock is that of
 * our spans, so that no reader moves them. */
static void put_first(struct sink *sink) {
    struct ph__protobuf *packet = &sink->perfetto.packet;

    ph__perfetto_begin(&sink->perfetto, FLAG_STATE_CLEARED, 0);
    ph__protobuf_varint(packet, PACKET_PREVIOUS_DROPPED, 1);
    ph__protobuf_varint(packet, PACKET_FIRST_ON_SEQUENCE, 1);
    size_t snapshot = ph__protobuf_begin(packet, PACKET_CLOCK_SNAPSHOT);
    add_clock(packet, BUILTIN_REALTIME, CLOCK_REALTIME);
    add_clock(packet, BUILTIN_MONOTONIC, CLOCK_MONOTONIC);
    add_clock(packet, BUILTIN_BOOTTIME, CLOCK_BOOTTIME);
    ph__protobuf_varint(packet, SNAPSHOT_PRIMARY, BUILTIN_REALTIME);
    ph__protobuf_end(packet, snapshot);
    ph__perfetto_end(&sink->perfetto);
    put_packet(sink);
}

ph_status ph_perfetto_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error) {
    ph_file_sink taken;

    ph_status status = ph__file_sink_take(options, sink, &taken, error);
    if (status != PH_OK)
        return status;
    struct sink *opened = calloc(1, sizeof *opened);
    if (!opened)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink of Perfetto's packets");
    opened->file = taken.file;
    opened->close_file = taken.close_file;
    ph__hold_init(&opened->hold);
    ph__perfetto_clear(&opened->perfetto);
    put_first(opened);
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = flush,
                      .close = close_sink};
    return PH_OK;
}
