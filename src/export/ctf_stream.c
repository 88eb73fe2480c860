/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The binary stream of a trace in the Common Trace Format (ctf.h; chapters 5 and 6 of the specification).
 *
 * The file holds whole packets at any time, since a reader gives up on a trace of which one is torn: a packet
 * is put together in memory, and goes to the file in one write. A packet whose write failed is taken back,
 * and its events count as discarded.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/system.h"
#include "export/ctf.h"

#define MAGIC 0xc1fc1fc1u

/* The packet's header and context, as the metadata declares them: everything is aligned to bytes. */
struct head {
    uint32_t magic;
    uint8_t uuid[PH__CTF_UUID_BYTES];
    uint32_t stream_id;
    uint64_t timestamp_begin;
    uint64_t timestamp_end;
    uint64_t content_size; /* in bits, as the next one; from the packet's first byte on */
    uint64_t packet_size;
    uint64_t events_discarded;
} __attribute__((packed));

static size_t round_up(size_t size) {
    return (size + PH__CTF_PACKET_BYTES - 1) / PH__CTF_PACKET_BYTES * PH__CTF_PACKET_BYTES;
}

/* ---- packets ------------------------------------------------------------------------------------------- */

static void head_init(const struct ph__ctf_stream *stream, struct head *head, size_t content, size_t whole) {
    *head = (struct head){.magic = MAGIC,
                          .timestamp_begin = stream->begin_ns,
                          .timestamp_end = stream->last_ns,
                          .content_size = (uint64_t)content * 8,
                          .packet_size = (uint64_t)whole * 8,
                          .events_discarded = stream->discarded};
    memcpy(head->uuid, stream->uuid, sizeof head->uuid);
}

/* Writes to (at) behind the whole packets. False with errno. */
static bool write_at(const struct ph__ctf_stream *stream, const void *bytes, size_t size, size_t at) {
    size_t done = 0;

    while (done < size) {
        ssize_t written = ph__system.pwrite(stream->file, (const uint8_t *)bytes + done, size - done,
                                            (off_t)(stream->offset + at + done));
        if (written == 0)
            errno = ENOSPC;
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            return false;
    }
    return true;
}

/* Writes the packet that is put together, of (whole) bytes. Several pages are written in an order in which
 * the file holds whole packets after each step: empty ones of a page each; one of all pages, empty; what is
 * behind its first page, as padding; and the first page, which makes it content. False with errno. */
static bool write_pages(const struct ph__ctf_stream *stream, size_t whole) {
    uint8_t page[PH__CTF_PACKET_BYTES] = {0};
    struct head head;
    bool written = true;

    head_init(stream, &head, sizeof head, sizeof page);
    memcpy(page, &head, sizeof head);
    for (size_t at = 0; whole > sizeof page && at < whole && written; at += sizeof page)
        written = write_at(stream, page, sizeof page, at);
    head_init(stream, &head, sizeof head, whole);
    if (whole > sizeof page && written)
        written = write_at(stream, &head, sizeof head, 0) &&
                  write_at(stream, stream->bytes + sizeof page, whole - sizeof page, sizeof page);
    return written && write_at(stream, stream->bytes, sizeof page, 0);
}

static void add_discarded(struct ph__ctf_stream *stream, uint64_t count) {
    stream->discarded = count > UINT64_MAX - stream->discarded ? UINT64_MAX : stream->discarded + count;
}

/* Writes the packet, which ends at (size) and has room behind that to be filled up. */
static void write_packet(struct ph__ctf_stream *stream, size_t size) {
    const size_t whole = round_up(size);
    struct head head;

    head_init(stream, &head, size, whole);
    memcpy(stream->bytes, &head, sizeof head);
    memset(stream->bytes + size, 0, whole - size);
    if (write_pages(stream, whole)) {
        stream->offset += whole;
        stream->told = stream->discarded;
    } else {
        if (!*stream->system_error)
            *stream->system_error = errno;
        /* A piece of a packet would make the reader refuse what is before it. */
        (void)ph__system.ftruncate(stream->file, (off_t)stream->offset);
        add_discarded(stream, stream->events);
    }
    stream->events = 0;
    stream->used = 0;
}

void ph__ctf_stream_flush(struct ph__ctf_stream *stream) {
    if (stream->events == 0 && stream->told == stream->discarded)
        return;
    if (stream->events == 0) {
        stream->begin_ns = stream->last_ns;
        stream->used = sizeof(struct head);
    }
    write_packet(stream, stream->used);
}

void ph__ctf_stream_discard(struct ph__ctf_stream *stream, uint64_t count) {
    /* Readers show how much the count has grown from one packet to the next: there has to be one before. */
    if (count > 0 && stream->offset == 0)
        ph__ctf_stream_flush(stream);
    add_discarded(stream, count);
}

/* ---- events -------------------------------------------------------------------------------------------- */

void ph__ctf_event_begin(struct ph__ctf_stream *stream, enum ph__ctf_event kind, uint64_t time_ns) {
    if (stream->used == 0)
        stream->used = sizeof(struct head);
    stream->event_at = stream->used;
    stream->event_ns = time_ns > stream->last_ns ? time_ns : stream->last_ns;
    ph__ctf_put_u8(stream, kind);
    ph__ctf_put_u64(stream, stream->event_ns);
}

/* The event under way gets a packet of its own. It is moved out of the way of what fills the old one up. */
static void begin_packet(struct ph__ctf_stream *stream) {
    const size_t old = stream->event_at;
    const size_t size = stream->used - old;
    const size_t aside = round_up(old);

    memmove(stream->bytes + aside, stream->bytes + old, size);
    write_packet(stream, old);
    memmove(stream->bytes + sizeof(struct head), stream->bytes + aside, size);
    stream->used = sizeof(struct head) + size;
}

void ph__ctf_event_end(struct ph__ctf_stream *stream) {
    if (stream->used > PH__CTF_PACKET_BYTES && stream->events > 0)
        begin_packet(stream);
    if (stream->events++ == 0)
        stream->begin_ns = stream->event_ns;
    stream->last_ns = stream->event_ns;
    if (stream->used > PH__CTF_PACKET_BYTES)
        ph__ctf_stream_flush(stream);
}

/* ---- parts of an event --------------------------------------------------------------------------------- */

void ph__ctf_put(struct ph__ctf_stream *stream, const void *bytes, size_t size) {
    memcpy(stream->bytes + stream->used, bytes, size);
    stream->used += size;
}

void ph__ctf_put_u8(struct ph__ctf_stream *stream, unsigned number) {
    const uint8_t byte = (uint8_t)number;

    ph__ctf_put(stream, &byte, sizeof byte);
}

void ph__ctf_put_u16(struct ph__ctf_stream *stream, unsigned number) {
    const uint16_t bytes = (uint16_t)number;

    ph__ctf_put(stream, &bytes, sizeof bytes);
}

void ph__ctf_put_u32(struct ph__ctf_stream *stream, uint32_t number) {
    ph__ctf_put(stream, &number, sizeof number);
}

void ph__ctf_put_u64(struct ph__ctf_stream *stream, uint64_t number) {
    ph__ctf_put(stream, &number, sizeof number);
}

bool ph__ctf_put_text(struct ph__ctf_stream *stream, const char *text, size_t length, size_t most) {
    static const char replacement[] = "\xef\xbf\xbd";
    size_t at = 0;

    while (at < length) {
        size_t size = 1;
        int32_t point = (signed char)text[at] > 0
                            ? text[at]
                            : ph__text_take_code_point((const uint8_t *)text + at, length - at, &size);
        const bool valid = point > 0;
        const size_t needed = valid ? size : sizeof replacement - 1;
        if (needed > most)
            break;
        ph__ctf_put(stream, valid ? text + at : replacement, needed);
        most -= needed;
        at += size;
    }
    ph__ctf_put_u8(stream, 0);
    return at == length;
}
