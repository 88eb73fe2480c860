/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * OTLP's two encodings (otlp_writer.h).
 */
#include "export/otlp_writer.h"

#include <stdlib.h>
#include <string.h>

/* ---- the buffer ---------------------------------------------------------------------------------------- */

static bool is_json(const struct ph__otlp_writer *writer) {
    return writer->encoding == PH__OTLP_JSON;
}

bool ph__otlp_writer_init(struct ph__otlp_writer *writer, enum ph__otlp_encoding encoding, size_t capacity) {
    *writer = (struct ph__otlp_writer){.encoding = encoding};
    return ph__otlp_writer_grow(writer, capacity);
}

void ph__otlp_writer_free(struct ph__otlp_writer *writer) {
    free(ph__otlp_writer_bytes(writer));
    *writer = (struct ph__otlp_writer){.encoding = writer->encoding};
}

bool ph__otlp_writer_grow(struct ph__otlp_writer *writer, size_t capacity) {
    uint8_t *bytes = realloc(ph__otlp_writer_bytes(writer), capacity);

    if (!bytes)
        return false;
    writer->allocated = capacity;
    if (is_json(writer))
        writer->json.bytes = (char *)bytes;
    else
        writer->protobuf.bytes = bytes;
    ph__otlp_writer_limit(writer, capacity, 0);
    return true;
}

void ph__otlp_writer_limit(struct ph__otlp_writer *writer, size_t most, size_t reserve) {
    size_t capacity = most < writer->allocated ? most : writer->allocated;

    capacity = capacity > reserve ? capacity - reserve : 0;
    if (capacity < ph__otlp_writer_used(writer))
        capacity = ph__otlp_writer_used(writer);
    writer->json.capacity = writer->protobuf.capacity = capacity;
    writer->json.cut = writer->protobuf.cut = false;
}

void ph__otlp_writer_clear(struct ph__otlp_writer *writer) {
    writer->comma = false;
    writer->json.used = writer->protobuf.used = 0;
    writer->json.cut = writer->protobuf.cut = false;
}

uint8_t *ph__otlp_writer_bytes(const struct ph__otlp_writer *writer) {
    return is_json(writer) ? (uint8_t *)writer->json.bytes : writer->protobuf.bytes;
}

size_t ph__otlp_writer_used(const struct ph__otlp_writer *writer) {
    return is_json(writer) ? writer->json.used : writer->protobuf.used;
}

bool ph__otlp_writer_is_cut(const struct ph__otlp_writer *writer) {
    return is_json(writer) ? writer->json.cut : writer->protobuf.cut;
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* The name of the member that comes next. */
static void add_key(struct ph__otlp_writer *writer, struct ph__otlp_field field) {
    const unsigned skip = writer->comma ? 0 : 1;

    ph__out_add(&writer->json, field.key + skip, field.key_size - skip);
    writer->comma = true;
}

static void add_mark(struct ph__otlp_writer *writer, const char *mark, bool comma) {
    ph__out_add(&writer->json, mark, 1);
    writer->comma = comma;
}

void ph__otlp_open(struct ph__otlp_writer *writer) {
    if (is_json(writer))
        add_mark(writer, "{", false);
}

void ph__otlp_close(struct ph__otlp_writer *writer) {
    if (is_json(writer))
        ph__out_add(&writer->json, "}\n", 2);
}

size_t ph__otlp_begin(struct ph__otlp_writer *writer, struct ph__otlp_field field) {
    if (!is_json(writer))
        return ph__protobuf_begin(&writer->protobuf, field.number);
    add_key(writer, field);
    add_mark(writer, "{", false);
    return 0;
}

void ph__otlp_end(struct ph__otlp_writer *writer, size_t message) {
    if (is_json(writer))
        add_mark(writer, "}", true);
    else
        ph__protobuf_end(&writer->protobuf, message);
}

void ph__otlp_begin_list(struct ph__otlp_writer *writer, struct ph__otlp_field field) {
    if (!is_json(writer))
        return;
    add_key(writer, field);
    add_mark(writer, "[", false);
}

size_t ph__otlp_begin_item(struct ph__otlp_writer *writer, struct ph__otlp_field field) {
    if (!is_json(writer))
        return ph__protobuf_begin(&writer->protobuf, field.number);
    if (writer->comma)
        ph__out_add(&writer->json, ",", 1);
    add_mark(writer, "{", false);
    return 0;
}

void ph__otlp_end_list(struct ph__otlp_writer *writer) {
    if (is_json(writer))
        add_mark(writer, "]", true);
}

void ph__otlp_raw(struct ph__otlp_writer *writer, const struct ph__otlp_writer *from) {
    if (!is_json(writer)) {
        ph__protobuf_raw(&writer->protobuf, from->protobuf.bytes, from->protobuf.used);
    } else if (from->json.used) {
        if (writer->comma)
            ph__out_add(&writer->json, ",", 1);
        ph__out_add(&writer->json, from->json.bytes, from->json.used);
        writer->comma = true;
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* A number that would lose digits in a reader's doubles. */
static void add_long(struct ph__out *json, int64_t value) {
    ph__out_add(json, "\"", 1);
    ph__out_i64(json, value);
    ph__out_add(json, "\"", 1);
}

static void add_unsigned_long(struct ph__out *json, uint64_t value) {
    ph__out_add(json, "\"", 1);
    ph__out_u64(json, value);
    ph__out_add(json, "\"", 1);
}

static void add_double(struct ph__out *json, double value) {
    ph__json_value(json, &(ph_value){.type = PH_F64, .f64 = value}, 0);
}

void ph__otlp_text(struct ph__otlp_writer *writer, struct ph__otlp_field field, const char *text,
                   size_t length) {
    if (!is_json(writer)) {
        ph__protobuf_string(&writer->protobuf, field.number, text, length);
        return;
    }
    add_key(writer, field);
    ph__json_text(&writer->json, text, length);
}

void ph__otlp_id(struct ph__otlp_writer *writer, struct ph__otlp_field field, const uint8_t *id,
                 size_t size) {
    static const char digits[] = "0123456789abcdef";
    char hex[2 * 16 + 2] = "\"";

    if (!is_json(writer)) {
        ph__protobuf_bytes(&writer->protobuf, field.number, id, size);
        return;
    }
    add_key(writer, field);
    for (size_t i = 0; i < size; i++) {
        hex[2 * i + 1] = digits[id[i] >> 4];
        hex[2 * i + 2] = digits[id[i] & 15];
    }
    hex[2 * size + 1] = '"';
    ph__out_add(&writer->json, hex, 2 * size + 2);
}

void ph__otlp_bytes(struct ph__otlp_writer *writer, struct ph__otlp_field field, const uint8_t *bytes,
                    size_t size) {
    if (!is_json(writer)) {
        ph__protobuf_bytes(&writer->protobuf, field.number, bytes, size);
        return;
    }
    add_key(writer, field);
    ph__json_value(&writer->json, &(ph_value){.type = PH_BYTES, .bytes = {bytes, size}}, size);
}

void ph__otlp_bool(struct ph__otlp_writer *writer, struct ph__otlp_field field, bool value) {
    if (!is_json(writer)) {
        ph__protobuf_varint(&writer->protobuf, field.number, value);
        return;
    }
    add_key(writer, field);
    ph__out_text(&writer->json, value ? "true" : "false");
}

void ph__otlp_double(struct ph__otlp_writer *writer, struct ph__otlp_field field, double value) {
    if (!is_json(writer)) {
        ph__protobuf_double(&writer->protobuf, field.number, value);
        return;
    }
    add_key(writer, field);
    add_double(&writer->json, value);
}

static void add_u32(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint32_t value) {
    add_key(writer, field);
    ph__out_u64(&writer->json, value);
}

void ph__otlp_u32(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint32_t value) {
    if (is_json(writer))
        add_u32(writer, field, value);
    else
        ph__protobuf_varint(&writer->protobuf, field.number, value);
}

void ph__otlp_fixed32(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint32_t value) {
    if (is_json(writer))
        add_u32(writer, field, value);
    else
        ph__protobuf_fixed32(&writer->protobuf, field.number, value);
}

void ph__otlp_i64(struct ph__otlp_writer *writer, struct ph__otlp_field field, int64_t value) {
    if (!is_json(writer)) {
        ph__protobuf_varint(&writer->protobuf, field.number, (uint64_t)value);
        return;
    }
    add_key(writer, field);
    add_long(&writer->json, value);
}

void ph__otlp_fixed64(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint64_t value) {
    if (!is_json(writer)) {
        ph__protobuf_fixed64(&writer->protobuf, field.number, value);
        return;
    }
    add_key(writer, field);
    add_unsigned_long(&writer->json, value);
}

void ph__otlp_sfixed64(struct ph__otlp_writer *writer, struct ph__otlp_field field, int64_t value) {
    if (!is_json(writer)) {
        ph__protobuf_fixed64(&writer->protobuf, field.number, (uint64_t)value);
        return;
    }
    add_key(writer, field);
    add_long(&writer->json, value);
}

/* ---- lists of numbers ---------------------------------------------------------------------------------- */

static void pack(struct ph__protobuf *out, uint32_t number, const uint64_t *bits, size_t count) {
    uint8_t bytes[8 * PH_METRIC_BUCKETS];

    for (size_t i = 0; i < 8 * count; i++)
        bytes[i] = (uint8_t)(bits[i / 8] >> 8 * (i % 8));
    ph__protobuf_bytes(out, number, bytes, 8 * count);
}

void ph__otlp_fixed64_list(struct ph__otlp_writer *writer, struct ph__otlp_field field,
                           const uint64_t *values, size_t count) {
    if (!is_json(writer)) {
        pack(&writer->protobuf, field.number, values, count);
        return;
    }
    ph__otlp_begin_list(writer, field);
    for (size_t i = 0; i < count; i++) {
        ph__out_text(&writer->json, i ? "," : "");
        add_unsigned_long(&writer->json, values[i]);
    }
    ph__otlp_end_list(writer);
}

void ph__otlp_double_list(struct ph__otlp_writer *writer, struct ph__otlp_field field, const double *values,
                          size_t count) {
    uint64_t bits[PH_METRIC_BUCKETS];

    if (!is_json(writer)) {
        memcpy(bits, values, count * sizeof values[0]);
        pack(&writer->protobuf, field.number, bits, count);
        return;
    }
    ph__otlp_begin_list(writer, field);
    for (size_t i = 0; i < count; i++) {
        ph__out_text(&writer->json, i ? "," : "");
        add_double(&writer->json, values[i]);
    }
    ph__otlp_end_list(writer);
}
