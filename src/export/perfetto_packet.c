/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A packet of a Perfetto trace (perfetto_packet.h). What is ours of its arguments is in a dictionary
 * "pinhole", so that no field of a guest's passes for it.
 */
#include "export/perfetto_packet.h"

#include <string.h>

#include "base/error.h"
#include "base/level.h"
#include "export/field.h"
#include "export/out.h"

#define OURS "pinhole"
#define TEXT_MOST 8192u   /* of a message or a name: the rest of a packet has room behind some of these */
#define SOURCE_MOST 1000u /* of a file's or a function's name */
#define BYTES_MOST 3000u  /* of a field */

/* What a packet may define: names of events, of its category, of its fields, and ours. */
#define NAMES_MOST 48u
#define NAMES_SIZE 24576u

/* What a definition takes beside its text, which may grow to three times its size where it is not UTF-8. */
#define DEFINITION_MOST 64u

bool ph__perfetto_has_room(const struct ph__perfetto *perfetto) {
    return ph__intern_has_room(&perfetto->names, NAMES_MOST, NAMES_SIZE);
}

void ph__perfetto_clear(struct ph__perfetto *perfetto) {
    ph__intern_empty(&perfetto->names);
    perfetto->sequence++;
    perfetto->cleared = true;
}

static struct ph__protobuf writer_of(uint8_t *bytes, size_t capacity) {
    return (struct ph__protobuf){.bytes = bytes, .capacity = capacity};
}

static void add_head(struct ph__protobuf *packet, uint32_t sequence, unsigned flags, uint64_t time_ns) {
    if (time_ns) {
        ph__protobuf_varint(packet, PACKET_TIMESTAMP, time_ns);
        ph__protobuf_varint(packet, PACKET_CLOCK_ID, BUILTIN_REALTIME);
    }
    ph__protobuf_varint(packet, PACKET_SEQUENCE_ID, sequence);
    if (flags)
        ph__protobuf_varint(packet, PACKET_SEQUENCE_FLAGS, flags);
}

void ph__perfetto_begin(struct ph__perfetto *perfetto, unsigned flags, uint64_t time_ns) {
    perfetto->packet = writer_of(perfetto->packet_bytes, sizeof perfetto->packet_bytes);
    perfetto->defined = writer_of(perfetto->defined_bytes, sizeof perfetto->defined_bytes);
    perfetto->packet_message = ph__protobuf_begin(&perfetto->packet, TRACE_PACKET);
    add_head(&perfetto->packet, perfetto->sequence, flags, time_ns);
}

void ph__perfetto_end(struct ph__perfetto *perfetto) {
    ph__protobuf_end(&perfetto->packet, perfetto->packet_message);
}

void ph__perfetto_begin_event(struct ph__perfetto *perfetto, unsigned flags, uint64_t time_ns, unsigned type,
                              uint64_t track) {
    ph__perfetto_begin(perfetto, flags, time_ns);
    perfetto->event_message = ph__protobuf_begin(&perfetto->packet, PACKET_TRACK_EVENT);
    ph__protobuf_varint(&perfetto->packet, EVENT_TYPE, type);
    ph__protobuf_varint(&perfetto->packet, EVENT_TRACK, track);
}

void ph__perfetto_end_event(struct ph__perfetto *perfetto) {
    ph__protobuf_end(&perfetto->packet, perfetto->event_message);
    ph__perfetto_end(perfetto);
}

size_t ph__perfetto_definitions(struct ph__perfetto *perfetto, uint8_t *bytes, size_t capacity) {
    struct ph__protobuf out = writer_of(bytes, capacity);

    if (!perfetto->defined.used)
        return 0;
    size_t packet = ph__protobuf_begin(&out, TRACE_PACKET);
    add_head(&out, perfetto->sequence,
             perfetto->cleared ? FLAG_STATE_CLEARED | FLAG_NEEDS_STATE : FLAG_NEEDS_STATE, 0);
    ph__protobuf_bytes(&out, PACKET_INTERNED_DATA, perfetto->defined.bytes, perfetto->defined.used);
    ph__protobuf_end(&out, packet);
    perfetto->cleared = false;
    return out.cut ? 0 : out.used;
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* The length of (text), or less, between characters. */
static size_t length_of(const char *text, size_t most) {
    return ph__text_fit(text, strnlen(text, most + 1), most);
}

/* The number of (key) in its table; (*is_new): it has to be defined, for which there is room. 0: without. */
static uint64_t number_of(struct ph__perfetto *perfetto, unsigned kind, const void *key, size_t size,
                          bool *is_new) {
    const struct ph__protobuf *defined = &perfetto->defined;

    *is_new = false;
    if (defined->capacity - defined->used < 3 * size + 2 * DEFINITION_MOST)
        return 0;
    return ph__intern_number(&perfetto->names, kind, key, size, is_new);
}

/* A name in (out): by its number in the field (iid), or as itself in (inline_field). */
static void add_name(struct ph__perfetto *perfetto, unsigned kind, const char *name, size_t length,
                     unsigned iid, unsigned inline_field) {
    bool is_new;
    uint64_t number = number_of(perfetto, kind, name, length, &is_new);

    if (is_new) {
        size_t message = ph__protobuf_begin(&perfetto->defined, kind);
        ph__protobuf_varint(&perfetto->defined, INTERNED_IID, number);
        ph__protobuf_string(&perfetto->defined, INTERNED_NAME, name, length);
        ph__protobuf_end(&perfetto->defined, message);
    }
    if (number)
        ph__protobuf_varint(&perfetto->packet, iid, number);
    else
        ph__protobuf_string(&perfetto->packet, inline_field, name, length);
}

static void add_event_name(struct ph__perfetto *perfetto, const char *name) {
    name = name ? name : "";
    add_name(perfetto, INTERNED_EVENT_NAMES, name, length_of(name, TEXT_MOST), EVENT_NAME_IID, EVENT_NAME);
}

static void add_category(struct ph__perfetto *perfetto, const char *category) {
    add_name(perfetto, INTERNED_CATEGORIES, category, strlen(category), EVENT_CATEGORY_IIDS,
             EVENT_CATEGORIES);
}

static void add_source_message(struct ph__protobuf *out, unsigned field, uint64_t number,
                               const ph_source *source) {
    size_t message = ph__protobuf_begin(out, field);

    if (number)
        ph__protobuf_varint(out, INTERNED_IID, number);
    if (source->file)
        ph__protobuf_string(out, SOURCE_FILE, source->file, length_of(source->file, SOURCE_MOST));
    if (source->function)
        ph__protobuf_string(out, SOURCE_FUNCTION, source->function, length_of(source->function, SOURCE_MOST));
    if (source->line)
        ph__protobuf_varint(out, SOURCE_LINE, source->line);
    ph__protobuf_end(out, message);
}

static void add_source(struct ph__perfetto *perfetto, const ph_source *source) {
    char key[sizeof source->line + 2 * SOURCE_MOST + 1];
    bool is_new;

    if (!source->file && !source->function && !source->line)
        return;
    const char *file = source->file ? source->file : "";
    const char *function = source->function ? source->function : "";
    size_t file_length = length_of(file, SOURCE_MOST);
    size_t function_length = length_of(function, SOURCE_MOST);
    size_t size = sizeof source->line + file_length + 1 + function_length;
    memcpy(key, &source->line, sizeof source->line);
    memcpy(key + sizeof source->line, file, file_length);
    key[sizeof source->line + file_length] = 0;
    memcpy(key + sizeof source->line + file_length + 1, function, function_length);
    uint64_t number = number_of(perfetto, INTERNED_SOURCES, key, size, &is_new);
    if (is_new)
        add_source_message(&perfetto->defined, INTERNED_SOURCES, number, source);
    if (number)
        ph__protobuf_varint(&perfetto->packet, EVENT_SOURCE_IID, number);
    else
        add_source_message(&perfetto->packet, EVENT_SOURCE, 0, source);
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* Begins an annotation in the message under way, which has them in (field). */
static size_t begin_annotation(struct ph__perfetto *perfetto, unsigned field, const char *name) {
    size_t message = ph__protobuf_begin(&perfetto->packet, field);

    add_name(perfetto, INTERNED_ANNOTATION_NAMES, name, length_of(name, TEXT_MOST), ANNOTATION_NAME_IID,
             ANNOTATION_NAME);
    return message;
}

static void add_number(struct ph__perfetto *perfetto, const char *name, uint64_t number) {
    size_t message = begin_annotation(perfetto, ANNOTATION_DICT_ENTRIES, name);

    ph__protobuf_varint(&perfetto->packet, ANNOTATION_UINT, number);
    ph__protobuf_end(&perfetto->packet, message);
}

static void add_text(struct ph__perfetto *perfetto, const char *name, const char *text) {
    if (!text)
        return;
    size_t message = begin_annotation(perfetto, ANNOTATION_DICT_ENTRIES, name);
    ph__protobuf_string(&perfetto->packet, ANNOTATION_STRING, text, length_of(text, TEXT_MOST));
    ph__protobuf_end(&perfetto->packet, message);
}

/* In base64, as in JSON: an annotation has no type for bytes. */
static void add_bytes(struct ph__protobuf *packet, const ph_value *value, size_t size) {
    char bytes[BYTES_MOST / 3 * 4 + 8];
    struct ph__out out = {.bytes = bytes, .capacity = sizeof bytes};

    ph__json_value(&out, value, size < BYTES_MOST ? size : BYTES_MOST);
    ph__protobuf_string(packet, ANNOTATION_STRING, bytes + 1, out.used - 2);
}

static void add_value(struct ph__protobuf *packet, const ph_field *field) {
    const ph_value *value = &field->value;

    switch (value->type) {
    case PH_I32:
        ph__protobuf_varint(packet, ANNOTATION_INT, (uint64_t)(int64_t)value->i32);
        break;
    case PH_U32:
        ph__protobuf_varint(packet, ANNOTATION_UINT, value->u32);
        break;
    case PH_I64:
        ph__protobuf_varint(packet, ANNOTATION_INT, (uint64_t)value->i64);
        break;
    case PH_U64:
        ph__protobuf_varint(packet, ANNOTATION_UINT, value->u64);
        break;
    case PH_F32:
        ph__protobuf_double(packet, ANNOTATION_DOUBLE, (double)value->f32);
        break;
    case PH_F64:
        ph__protobuf_double(packet, ANNOTATION_DOUBLE, value->f64);
        break;
    case PH_BOOL:
        ph__protobuf_varint(packet, ANNOTATION_BOOL, value->boolean);
        break;
    case PH_STR:
        ph__protobuf_string(packet, ANNOTATION_STRING, value->str ? value->str : "",
                            value->str ? field->size : 0);
        break;
    case PH_BYTES:
        add_bytes(packet, value, field->size);
        break;
    case PH_POINTER:
        ph__protobuf_varint(packet, ANNOTATION_POINTER, value->u64);
        break;
    default:
        break;
    }
}

static const char *field_name(const ph_field *fields, size_t i, char name[PH__FIELD_NAME_SIZE]) {
    static const char *const ours[] = {OURS, NULL};

    return ph__field_name(fields, i, ours, name);
}

/* As many as the packet has room for. */
static void add_fields(struct ph__perfetto *perfetto, const ph_field *fields, size_t count) {
    char name[PH__FIELD_NAME_SIZE];

    for (size_t i = 0; i < count; i++) {
        const struct ph__protobuf before = perfetto->packet;
        size_t message = begin_annotation(perfetto, EVENT_ANNOTATIONS, field_name(fields, i, name));
        add_value(&perfetto->packet, &fields[i]);
        ph__protobuf_end(&perfetto->packet, message);
        if (perfetto->packet.cut) {
            perfetto->packet = before;
            return;
        }
    }
}

static bool is_cut(const ph_field *field) {
    return (field->value.type == PH_STR || field->value.type == PH_BYTES) && field->full_size > field->size;
}

/* The whole sizes of fields that are cut. */
static void add_cut(struct ph__perfetto *perfetto, const ph_field *fields, size_t count) {
    char name[PH__FIELD_NAME_SIZE];
    size_t i = 0;

    while (i < count && !is_cut(&fields[i]))
        i++;
    if (i == count)
        return;
    size_t message = begin_annotation(perfetto, ANNOTATION_DICT_ENTRIES, "cut");
    for (; i < count; i++)
        if (is_cut(&fields[i]))
            add_number(perfetto, field_name(fields, i, name), fields[i].full_size);
    ph__protobuf_end(&perfetto->packet, message);
}

/* ---- what is told ------------------------------------------------------------------------------------- */

void ph__perfetto_add_span(struct ph__perfetto *perfetto, const char *category, const ph_trace_span *span) {
    add_category(perfetto, category);
    add_event_name(perfetto, span->name);
    add_source(perfetto, &span->source);
    size_t ours = begin_annotation(perfetto, EVENT_ANNOTATIONS, OURS);
    add_number(perfetto, "id", span->id);
    if (span->parent)
        add_number(perfetto, "parent", span->parent);
    if (span->level != PH_LEVEL_INFO)
        add_text(perfetto, "level", ph__level_name(span->level));
    if (span->unfinished)
        add_text(perfetto, "unfinished", "true");
    if (span->status != PH_OK)
        add_text(perfetto, "status", ph_status_kind(span->status));
    add_text(perfetto, "message", span->message);
    add_cut(perfetto, span->fields, span->field_count);
    ph__protobuf_end(&perfetto->packet, ours);
    add_fields(perfetto, span->fields, span->field_count);
}

void ph__perfetto_add_event(struct ph__perfetto *perfetto, const ph_trace_event *event) {
    add_category(perfetto, event->message ? "log" : "event");
    /* A log's text is not likely to come again: it would push names out of the table. */
    if (event->message)
        ph__protobuf_string(&perfetto->packet, EVENT_NAME, event->message,
                            length_of(event->message, TEXT_MOST));
    else
        add_event_name(perfetto, event->name);
    add_source(perfetto, &event->source);
    size_t ours = begin_annotation(perfetto, EVENT_ANNOTATIONS, OURS);
    add_text(perfetto, "level", ph__level_name(event->level));
    if (event->span)
        add_number(perfetto, "span", event->span);
    if (event->message)
        add_text(perfetto, "format", event->name);
    add_cut(perfetto, event->fields, event->field_count);
    ph__protobuf_end(&perfetto->packet, ours);
    add_fields(perfetto, event->fields, event->field_count);
}
