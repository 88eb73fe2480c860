/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The parts of the sink for the Common Trace Format, version 1.8 (https://diamon.org/ctf/v1.8.3/, "the
 * specification" below): the stream and its packets, the description of both, and the sink itself.
 */
#ifndef PH_EXPORT_CTF_H
#define PH_EXPORT_CTF_H

#include <pinhole/trace.h>

/* Numbers of the kinds of events in the stream: the `id` of their declarations in the metadata. */
enum ph__ctf_event {
    PH__CTF_SPAN = 0,
    PH__CTF_EVENT = 1,
    PH__CTF_LOG = 2,
    PH__CTF_COUNTER = 3,
};

/* What the value of a field is: the enumeration `type` in the metadata. */
enum ph__ctf_type {
    PH__CTF_I64 = 0,
    PH__CTF_U64 = 1,
    PH__CTF_F64 = 2,
    PH__CTF_BOOLEAN = 3,
    PH__CTF_TEXT = 4,
    PH__CTF_BYTES = 5,
    PH__CTF_POINTER = 6,
    PH__CTF_CUT_TEXT = 7,
    PH__CTF_CUT_BYTES = 8,
};

#define PH__CTF_UUID_BYTES 16u

/* A packet is this long, but for one whose only event is longer: that is a multiple of it. The write of one
 * page to a page of a file is not torn by the end of the process. */
#define PH__CTF_PACKET_BYTES 4096u

/* Room for one event behind a packet that is nearly full. */
#define PH__CTF_BUFFER_BYTES (256u << 10)

/* Most bytes of a name (or a path) and of a text: of longer ones the start is kept. What reaches a sink from
 * a tracer is shorter. */
#define PH__CTF_NAME_MAX 4096u
#define PH__CTF_TEXT_MAX 65536u

/* ---- ctf_stream.c: the stream -------------------------------------------------------------------------- */

/* The file of binary packets, and the packet under way. Zeroed to begin with, but for (file), (uuid) and
 * (system_error). */
struct ph__ctf_stream {
    int file;
    int *system_error; /* gets the errno of the first write that failed */
    uint8_t uuid[PH__CTF_UUID_BYTES];
    uint64_t offset;    /* bytes of whole packets in the file */
    uint64_t discarded; /* events, in all of the stream up to now */
    uint64_t told;      /* how many of them the last packet in the file has */
    uint64_t begin_ns;  /* of the packet's first event */
    uint64_t last_ns;   /* of the stream's last event: times never go back from here */
    uint64_t event_ns;
    uint32_t events; /* in the packet */
    size_t event_at;
    size_t used;
    uint8_t bytes[PH__CTF_BUFFER_BYTES + PH__CTF_PACKET_BYTES];
};

/* An event begins at (time_ns), or at the time of the one before when that is later. */
void ph__ctf_event_begin(struct ph__ctf_stream *stream, enum ph__ctf_event kind, uint64_t time_ns);

/* It is whole. Packets that are full are written. */
void ph__ctf_event_end(struct ph__ctf_stream *stream);

/* Writes what there is, as a packet: one without events when only the count of those discarded has grown. */
void ph__ctf_stream_flush(struct ph__ctf_stream *stream);

/* (count) events have been lost. The next packet says so. */
void ph__ctf_stream_discard(struct ph__ctf_stream *stream, uint64_t count);

/* Parts of an event, in the order of its declaration. */
void ph__ctf_put(struct ph__ctf_stream *stream, const void *bytes, size_t size);
void ph__ctf_put_u8(struct ph__ctf_stream *stream, unsigned number);
void ph__ctf_put_u16(struct ph__ctf_stream *stream, unsigned number);
void ph__ctf_put_u32(struct ph__ctf_stream *stream, uint32_t number);
void ph__ctf_put_u64(struct ph__ctf_stream *stream, uint64_t number);

/* A string of at most (most) bytes, cut between characters. What is not UTF-8 becomes U+FFFD, and a NUL too,
 * which would end it. False when it was cut. */
bool ph__ctf_put_text(struct ph__ctf_stream *stream, const char *text, size_t length, size_t most);

/* ---- ctf_metadata.c: what is in the stream --------------------------------------------------------------
 */

/* The description of the trace, a text whose length is in (*size), for a stream with (uuid). To be freed;
 * NULL without memory. */
char *ph__ctf_metadata(const uint8_t uuid[PH__CTF_UUID_BYTES], size_t *size);

/* ---- ctf.c ----------------------------------------------------------------------------------------------
 */

/* ph_ctf_sink_open, for who wants to know whether all could be written: (*system_error) gets the errno of the
 * first write that failed, and has to outlive the sink. */
ph_status ph__ctf_sink_open(const char *folder, int *system_error, ph_sink *sink, ph_error *error);

#endif
