/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for the Common Trace Format, version 1.8 (ctf.h): a folder with `metadata`, which is written first
 * and says all about the other file, and `stream`. A span is one event, at its end; what a guest's fields are
 * called and which types they have is in the stream, since a description for each kind of span would grow
 * with what guests think up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pinhole/export.h>

#include "base/error.h"
#include "base/system.h"
#include "export/ctf.h"
#include "export/uuid.h"

/* Most bytes of one field: its name, its type, and its value with two sizes. */
#define FIELD_BYTES_MAX (PH__CTF_NAME_MAX + 1 + 1 + 8 + 4 + PH__CTF_TEXT_MAX + 1)

/* All that an event has besides its fields. */
#define EVENT_BYTES_MAX (PH__CTF_TEXT_MAX + 4 * PH__CTF_NAME_MAX + 256)

/* The last field says how many more there were. */
#define FIELDS_MAX 65535u

_Static_assert(PH__CTF_PACKET_BYTES + EVENT_BYTES_MAX + 2 * FIELD_BYTES_MAX < PH__CTF_BUFFER_BYTES,
               "an event with a field of every size fits behind a packet that is nearly full");

struct sink {
    int no_error; /* where an error goes that nobody wants to know */
    struct ph__ctf_stream stream;
};

/* ---- parts --------------------------------------------------------------------------------------------- */

static void put_name(struct ph__ctf_stream *stream, const char *name) {
    ph__ctf_put_text(stream, name ? name : "", name ? strlen(name) : 0, PH__CTF_NAME_MAX);
}

static void put_message(struct ph__ctf_stream *stream, const char *message) {
    ph__ctf_put_text(stream, message ? message : "", message ? strlen(message) : 0, PH__CTF_TEXT_MAX);
}

static void put_source(struct ph__ctf_stream *stream, const ph_source *source) {
    put_name(stream, source->file);
    ph__ctf_put_u32(stream, source->line);
    put_name(stream, source->function);
}

static void put_number(struct ph__ctf_stream *stream, enum ph__ctf_type type, uint64_t bits) {
    ph__ctf_put_u8(stream, type);
    ph__ctf_put_u64(stream, bits);
}

/* The type is put behind the text, and in front of it: whether all of it fits shows only there. */
static void put_string(struct ph__ctf_stream *stream, const ph_field *field) {
    const size_t from = stream->used;
    uint64_t full = field->full_size > field->size ? field->full_size : field->size;

    if (field->full_size <= field->size) {
        ph__ctf_put_u8(stream, PH__CTF_TEXT);
        if (ph__ctf_put_text(stream, field->value.str, field->size, PH__CTF_TEXT_MAX))
            return;
        stream->used = from;
    }
    put_number(stream, PH__CTF_CUT_TEXT, full);
    ph__ctf_put_text(stream, field->value.str, field->size, PH__CTF_TEXT_MAX);
}

static void put_bytes(struct ph__ctf_stream *stream, const ph_field *field) {
    const size_t size = field->size < PH__CTF_TEXT_MAX ? field->size : PH__CTF_TEXT_MAX;
    const uint64_t full = field->full_size > field->size ? field->full_size : field->size;

    if (full > size)
        put_number(stream, PH__CTF_CUT_BYTES, full);
    else
        ph__ctf_put_u8(stream, PH__CTF_BYTES);
    ph__ctf_put_u32(stream, (uint32_t)size);
    if (size > 0)
        ph__ctf_put(stream, field->value.bytes.data, size);
}

static void put_value(struct ph__ctf_stream *stream, const ph_field *field) {
    const ph_value *value = &field->value;
    uint64_t bits = value->u64;

    switch (value->type) {
    case PH_I32:
        put_number(stream, PH__CTF_I64, (uint64_t)(int64_t)value->i32);
        break;
    case PH_U32:
        put_number(stream, PH__CTF_U64, value->u32);
        break;
    case PH_I64:
        put_number(stream, PH__CTF_I64, (uint64_t)value->i64);
        break;
    case PH_U64:
        put_number(stream, PH__CTF_U64, bits);
        break;
    case PH_F64:
        memcpy(&bits, &value->f64, sizeof bits);
        put_number(stream, PH__CTF_F64, bits);
        break;
    case PH_BOOL:
        ph__ctf_put_u8(stream, PH__CTF_BOOLEAN);
        ph__ctf_put_u8(stream, value->boolean);
        break;
    case PH_STR:
        put_string(stream, field);
        break;
    case PH_BYTES:
        put_bytes(stream, field);
        break;
    case PH_POINTER:
    default:
        put_number(stream, PH__CTF_POINTER, bits);
        break;
    }
}

static void put_fields(struct ph__ctf_stream *stream, const ph_field *fields, size_t count) {
    const size_t count_at = stream->used;
    size_t put = 0;

    ph__ctf_put_u16(stream, 0);
    for (; put < count; put++) {
        /* One more has to fit, the one that says how many did not. */
        if (put == FIELDS_MAX - 1 || stream->used + 2 * FIELD_BYTES_MAX > PH__CTF_BUFFER_BYTES) {
            put_name(stream, "pinhole.fields_left_out");
            put_number(stream, PH__CTF_U64, count - put);
            put++;
            break;
        }
        put_name(stream, fields[put].name);
        put_value(stream, &fields[put]);
    }
    const uint16_t field_count = (uint16_t)put;
    memcpy(stream->bytes + count_at, &field_count, sizeof field_count);
}

/* ---- events -------------------------------------------------------------------------------------------- */

/* Spans come at their ends, and those of several sandboxes in any order. Readers refuse a stream in which
 * time goes back, so that of the event is then the latest one before; what it says of itself is exact. */
static void take_span(void *context, const ph_trace_span *span) {
    struct ph__ctf_stream *stream = &((struct sink *)context)->stream;

    ph__ctf_event_begin(stream, PH__CTF_SPAN, span->end_ns);
    put_name(stream, span->name);
    ph__ctf_put_u64(stream, span->sandbox);
    ph__ctf_put_u64(stream, span->id);
    ph__ctf_put_u64(stream, span->parent);
    ph__ctf_put_u8(stream, span->kind);
    ph__ctf_put_u8(stream, span->level);
    ph__ctf_put_u64(stream, span->start_ns);
    ph__ctf_put_u64(stream, span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    ph__ctf_put_u8(stream, span->unfinished);
    put_name(stream, span->status == PH_OK ? "" : ph_status_kind(span->status));
    put_message(stream, span->message);
    put_source(stream, &span->source);
    put_fields(stream, span->fields, span->field_count);
    ph__ctf_event_end(stream);
}

/* How many records the host says it has lost: at least one, when it does not know. 0 of any other event: what
 * a guest calls by that name has a place in its source. */
static uint64_t lost(const ph_trace_event *event) {
    if (!event->name || strcmp(event->name, "trace.gap") != 0 || event->message || event->source.file ||
        event->source.function)
        return 0;
    for (size_t i = 0; i < event->field_count; i++)
        if (event->fields[i].value.type == PH_U64 && event->fields[i].name &&
            strcmp(event->fields[i].name, "records") == 0)
            return event->fields[i].value.u64;
    return 1;
}

static void take_event(void *context, const ph_trace_event *event) {
    struct ph__ctf_stream *stream = &((struct sink *)context)->stream;

    ph__ctf_event_begin(stream, event->message ? PH__CTF_LOG : PH__CTF_EVENT, event->time_ns);
    if (event->message)
        put_message(stream, event->message);
    put_name(stream, event->name);
    ph__ctf_put_u64(stream, event->sandbox);
    ph__ctf_put_u64(stream, event->span);
    ph__ctf_put_u8(stream, event->level);
    ph__ctf_put_u64(stream, event->time_ns);
    put_source(stream, &event->source);
    put_fields(stream, event->fields, event->field_count);
    ph__ctf_event_end(stream);
    ph__ctf_stream_discard(stream, lost(event));
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct ph__ctf_stream *stream = &((struct sink *)context)->stream;
    const ph_field value = {.value = counter->value};

    ph__ctf_event_begin(stream, PH__CTF_COUNTER, counter->time_ns);
    put_name(stream, counter->name);
    put_value(stream, &value);
    ph__ctf_put_u64(stream, counter->sandbox);
    ph__ctf_put_u64(stream, counter->span);
    ph__ctf_put_u64(stream, counter->time_ns);
    put_source(stream, &counter->source);
    ph__ctf_event_end(stream);
}

static void flush(void *context) {
    struct sink *sink = context;

    ph__ctf_stream_flush(&sink->stream);
}

static void close_sink(void *context) {
    struct sink *sink = context;

    ph__ctf_stream_flush(&sink->stream);
    /* Some file systems report a full disk no earlier than here. */
    if (ph__system.close(sink->stream.file) != 0 && !*sink->stream.system_error)
        *sink->stream.system_error = errno;
    free(sink);
}

/* ---- the folder ---------------------------------------------------------------------------------------- */

/* PH_E_FILE when there is something in (folder), or it cannot be looked into. */
static ph_status check_empty(const char *folder, ph_error *error) {
    DIR *listing = opendir(folder);
    ph_status status = PH_OK;

    if (!listing)
        return ph__error_set_system(error, PH_E_FILE, errno, "%s", folder);
    errno = 0;
    /* cppcheck-suppress readdirCalled ; no other thread has this folder */
    for (struct dirent *entry = readdir(listing); entry && status == PH_OK; entry = readdir(listing))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = ph__error_set(error, PH_E_FILE, "%s: the folder for a trace has to be empty", folder);
    if (status == PH_OK && errno)
        status = ph__error_set_system(error, PH_E_FILE, errno, "%s", folder);
    closedir(listing);
    return status;
}

static ph_status make_folder(const char *folder, ph_error *error) {
    if (ph__system.mkdir(folder, 0777) == 0)
        return PH_OK;
    if (errno == EEXIST)
        return check_empty(folder, error);
    return ph__error_set_system(error, PH_E_FILE, errno, "%s", folder);
}

/* Allocated; NULL without memory. */
static char *path_in(const char *folder, const char *name) {
    char *path = NULL;

    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Makes the file at (path), one of path_in. Whoever put one there meanwhile keeps it. */
static ph_status make_file(const char *path, int *file, ph_error *error) {
    if (!path)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a path");
    *file = ph__system.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return *file < 0 ? ph__error_set_system(error, PH_E_FILE, errno, "%s", path) : PH_OK;
}

/* Makes the file at (path), which is whole when this succeeds, and not there when it fails. */
static ph_status write_metadata(const char *path, const uint8_t uuid[PH__CTF_UUID_BYTES], ph_error *error) {
    size_t size = 0;
    size_t done = 0;
    int file = -1;
    char *text = ph__ctf_metadata(uuid, &size);

    if (!text)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the description of a trace");
    ph_status status = make_file(path, &file, error);
    while (status == PH_OK && done < size) {
        ssize_t written = ph__system.pwrite(file, text + done, size - done, (off_t)done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            status = ph__error_set_system(error, PH_E_FILE, written == 0 ? ENOSPC : errno, "%s", path);
    }
    if (file >= 0 && ph__system.close(file) != 0 && status == PH_OK)
        status = ph__error_set_system(error, PH_E_FILE, errno, "%s", path);
    if (file >= 0 && status != PH_OK)
        (void)ph__system.unlink(path);
    free(text);
    return status;
}

/* Makes both files in (folder), or none: what is left behind would be in the way of the next try. */
static ph_status make_files(const char *folder, struct ph__ctf_stream *stream, ph_error *error) {
    char *metadata = path_in(folder, "metadata");
    char *path = path_in(folder, "stream");

    ph_status status = write_metadata(metadata, stream->uuid, error);
    if (status == PH_OK) {
        status = make_file(path, &stream->file, error);
        if (status != PH_OK)
            (void)ph__system.unlink(metadata);
    }
    free(metadata);
    free(path);
    return status;
}

ph_status ph__ctf_sink_open(const char *folder, int *system_error, ph_sink *sink, ph_error *error) {
    const ph_sink nothing = PH_SINK_INIT;

    if (!sink)
        return ph__error_set(error, PH_E_ARGUMENT, "a sink to fill in is needed");
    *sink = nothing;
    if (!folder || !*folder)
        return ph__error_set(error, PH_E_ARGUMENT, "a folder for the trace is needed");
    struct sink *opened = calloc(1, sizeof *opened);
    if (!opened)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a sink of the Common Trace Format");
    opened->stream.system_error = system_error ? system_error : &opened->no_error;
    (void)ph__uuid_make(opened->stream.uuid);
    ph_status status = make_folder(folder, error);
    if (status == PH_OK)
        status = make_files(folder, &opened->stream, error);
    if (status != PH_OK) {
        free(opened);
        return status;
    }
    *sink = (ph_sink){.size = sizeof *sink,
                      .context = opened,
                      .span = take_span,
                      .event = take_event,
                      .counter = take_counter,
                      .flush = flush,
                      .close = close_sink};
    return PH_OK;
}

ph_status ph_ctf_sink_open(const char *folder, ph_sink *sink, ph_error *error) {
    return ph__ctf_sink_open(folder, NULL, sink, error);
}
