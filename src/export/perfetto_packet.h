/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * One packet of a Perfetto trace at a time, with what spans and events say of themselves, and the packets
 * that define the names it uses. Names are interned in a table that its owner empties when it is full; what
 * has no room there stands in the packet itself.
 */
#ifndef PH_EXPORT_PERFETTO_PACKET_H
#define PH_EXPORT_PERFETTO_PACKET_H

#include <pinhole/trace.h>

#include "export/intern.h"
#include "export/protobuf.h"

/* Field numbers of Perfetto's public schema, protos/perfetto/trace/ in https://github.com/google/perfetto,
 * each under its message and with the file that has it. */
enum {
    TRACE_PACKET = 1, /* Trace: trace.proto */

    /* TracePacket: trace_packet.proto */
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_PREVIOUS_DROPPED = 42,
    PACKET_CLOCK_ID = 58,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_FIRST_ON_SEQUENCE = 87,

    /* TracePacket.SequenceFlags */
    FLAG_STATE_CLEARED = 1,
    FLAG_NEEDS_STATE = 2,

    /* ClockSnapshot and ClockSnapshot.Clock: clock_snapshot.proto; the clocks: ../common/builtin_clock.proto
     */
    SNAPSHOT_CLOCKS = 1,
    SNAPSHOT_PRIMARY = 2,
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
    BUILTIN_REALTIME = 1,
    BUILTIN_MONOTONIC = 3,
    BUILTIN_BOOTTIME = 6,

    /* TrackDescriptor: track_event/track_descriptor.proto */
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,

    /* ProcessDescriptor and ThreadDescriptor: track_event/{process,thread}_descriptor.proto */
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,

    /* TrackEvent: track_event/track_event.proto */
    EVENT_CATEGORY_IIDS = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORIES = 22,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_SOURCE = 33,
    EVENT_SOURCE_IID = 34,
    EVENT_DOUBLE_COUNTER_VALUE = 44,
    EVENT_FLOWS = 47,
    EVENT_TERMINATING_FLOWS = 48,

    /* TrackEvent.Type */
    TYPE_SLICE_BEGIN = 1,
    TYPE_SLICE_END = 2,
    TYPE_INSTANT = 3,
    TYPE_COUNTER = 4,

    /* DebugAnnotation: track_event/debug_annotation.proto */
    ANNOTATION_NAME_IID = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_POINTER = 7,
    ANNOTATION_NAME = 10,
    ANNOTATION_DICT_ENTRIES = 11,

    /* InternedData: interned_data/interned_data.proto. These are also the kinds of keys in the table. */
    INTERNED_CATEGORIES = 1,
    INTERNED_EVENT_NAMES = 2,
    INTERNED_ANNOTATION_NAMES = 3,
    INTERNED_SOURCES = 4,

    /* EventCategory, EventName, DebugAnnotationName: track_event/{track_event,debug_annotation}.proto */
    INTERNED_IID = 1,
    INTERNED_NAME = 2,

    /* SourceLocation: track_event/source_location.proto */
    SOURCE_FILE = 2,
    SOURCE_FUNCTION = 3,
    SOURCE_LINE = 4,
};

#define PH__PERFETTO_PACKET_BYTES 65536u

struct ph__perfetto {
    /* The packet under way, as it stands in the file; its messages are open. */
    struct ph__protobuf packet;
    size_t packet_message;
    size_t event_message;
    /* What it defines: an InternedData. */
    struct ph__protobuf defined;
    /* Names belong to a sequence of packets. It changes when they are forgotten, so that packets which wait
     * keep theirs; what is defined next says that nothing is known of it. */
    uint32_t sequence;
    bool cleared;
    struct ph__intern names;
    uint8_t packet_bytes[PH__PERFETTO_PACKET_BYTES];
    uint8_t defined_bytes[PH__PERFETTO_PACKET_BYTES];
};

/* Whether what a packet may need is sure to find room among the names. */
bool ph__perfetto_has_room(const struct ph__perfetto *perfetto);

/* Forgets the names, of which there are none at first: a new sequence begins. */
void ph__perfetto_clear(struct ph__perfetto *perfetto);

/* Begins a packet of (flags) at a time, 0: of none. */
void ph__perfetto_begin(struct ph__perfetto *perfetto, unsigned flags, uint64_t time_ns);
void ph__perfetto_end(struct ph__perfetto *perfetto);

/* The same for one with a TrackEvent in it. */
void ph__perfetto_begin_event(struct ph__perfetto *perfetto, unsigned flags, uint64_t time_ns, unsigned type,
                              uint64_t track);
void ph__perfetto_end_event(struct ph__perfetto *perfetto);

/* Into the TrackEvent. (category) is one of ours. (event)'s name is its message where it has one. */
void ph__perfetto_add_span(struct ph__perfetto *perfetto, const char *category, const ph_trace_span *span);
void ph__perfetto_add_event(struct ph__perfetto *perfetto, const ph_trace_event *event);

/* Makes the packet that defines what the one before uses, and has to stand in front of it, at (bytes): its
 * size, 0 when it uses nothing new. */
size_t ph__perfetto_definitions(struct ph__perfetto *perfetto, uint8_t *bytes, size_t capacity);

#endif
