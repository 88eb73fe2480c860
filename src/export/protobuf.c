/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Protocol buffers' encoding (protobuf.h).
 */
#include "export/protobuf.h"

#include <string.h>

#include "base/error.h"

/* Wire types. */
#define VARINT 0u
#define I64 1u
#define LEN 2u
#define I32 5u

#define LENGTH_SIZE 4u  /* bytes of a length that is filled in later */
#define LENGTH_BITS 28u /* what these hold */
#define REPLACEMENT "\xef\xbf\xbd"

/* Seven bits in each byte. */
static size_t varint_size(uint64_t value) {
    const unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);

    return (bits + 6) / 7;
}

static uint64_t tag_of(uint32_t field, unsigned wire_type) {
    return (uint64_t)field << 3 | wire_type;
}

/* Whether (size) more bytes fit; from the first time that they do not, none ever do. */
static bool has_room(struct ph__protobuf *out, size_t size) {
    if (size > out->capacity - out->used)
        out->cut = true;
    return !out->cut;
}

/* Where there is room for them. */
static void add(struct ph__protobuf *out, const void *bytes, size_t size) {
    if (size)
        memcpy(out->bytes + out->used, bytes, size);
    out->used += size;
}

/* The same, of a varint. */
static void add_varint(struct ph__protobuf *out, uint64_t value) {
    uint8_t *to = out->bytes + out->used;

    for (; value > 0x7f; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    out->used = (size_t)(to - out->bytes);
}

void ph__protobuf_varint(struct ph__protobuf *out, uint32_t field, uint64_t value) {
    const uint64_t tag = tag_of(field, VARINT);

    if (!has_room(out, varint_size(tag) + varint_size(value)))
        return;
    add_varint(out, tag);
    add_varint(out, value);
}

/* A tag, and the (size) low bytes of (value), the lowest first. */
static void add_fixed(struct ph__protobuf *out, uint32_t field, unsigned wire_type, uint64_t value,
                      unsigned size) {
    const uint64_t tag = tag_of(field, wire_type);

    if (!has_room(out, varint_size(tag) + size))
        return;
    add_varint(out, tag);
    for (unsigned i = 0; i < size; i++)
        out->bytes[out->used++] = (uint8_t)(value >> 8 * i);
}

void ph__protobuf_fixed32(struct ph__protobuf *out, uint32_t field, uint32_t value) {
    add_fixed(out, field, I32, value, 4);
}

void ph__protobuf_fixed64(struct ph__protobuf *out, uint32_t field, uint64_t value) {
    add_fixed(out, field, I64, value, 8);
}

void ph__protobuf_double(struct ph__protobuf *out, uint32_t field, double value) {
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    ph__protobuf_fixed64(out, field, bits);
}

void ph__protobuf_bytes(struct ph__protobuf *out, uint32_t field, const void *bytes, size_t size) {
    const uint64_t tag = tag_of(field, LEN);
    const size_t head = varint_size(tag) + varint_size(size);

    if (!has_room(out, size < SIZE_MAX - head ? head + size : SIZE_MAX))
        return;
    add_varint(out, tag);
    add_varint(out, size);
    add(out, bytes, size);
}

void ph__protobuf_raw(struct ph__protobuf *out, const void *bytes, size_t size) {
    if (has_room(out, size))
        add(out, bytes, size);
}

/* How many of the (length) bytes at (text) are ASCII, or a few less: most text is that, and eight bytes are
 * looked at in one go. */
static size_t ascii_length(const char *text, size_t length) {
    size_t at = 0;

    for (uint64_t eight; length - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, text + at, sizeof eight);
        if (eight & 0x8080808080808080u)
            break;
    }
    return at;
}

/* How many of the (length) bytes at (text) are UTF-8; (*size) is that of what follows them. */
static size_t valid_length(const char *text, size_t length, size_t *size) {
    size_t at = ascii_length(text, length);

    while (at < length) {
        *size = 1;
        if ((uint8_t)text[at] >= 0x80 &&
            ph__text_take_code_point((const uint8_t *)text + at, length - at, size) < 0)
            break;
        at += *size;
    }
    return at;
}

void ph__protobuf_string(struct ph__protobuf *out, uint32_t field, const char *text, size_t length) {
    size_t skip = 0;
    size_t valid = valid_length(text, length, &skip);

    if (valid == length) {
        ph__protobuf_bytes(out, field, text, length);
        return;
    }
    struct ph__protobuf before = *out;
    size_t string = ph__protobuf_begin(out, field);
    while (has_room(out, valid)) {
        add(out, text, valid);
        text += valid;
        length -= valid;
        if (!length || !has_room(out, sizeof REPLACEMENT - 1))
            break;
        add(out, REPLACEMENT, sizeof REPLACEMENT - 1);
        text += skip;
        length -= skip;
        valid = valid_length(text, length, &skip);
    }
    ph__protobuf_end(out, string);
    if (out->cut)
        out->used = before.used;
}

size_t ph__protobuf_begin(struct ph__protobuf *out, uint32_t field) {
    const uint64_t tag = tag_of(field, LEN);

    if (has_room(out, varint_size(tag) + LENGTH_SIZE)) {
        add_varint(out, tag);
        out->used += LENGTH_SIZE;
    }
    return out->used;
}

void ph__protobuf_end(struct ph__protobuf *out, size_t message) {
    size_t length = out->used - message;

    if (length >> LENGTH_BITS)
        out->cut = true;
    /* Of a message that is cut nobody may rely on anything; the place of its length may not even be there. */
    if (out->cut)
        return;
    for (unsigned i = 0; i < LENGTH_SIZE; i++)
        out->bytes[message - LENGTH_SIZE + i] =
            (uint8_t)((length >> 7 * i & 0x7f) | (i + 1 < LENGTH_SIZE ? 0x80 : 0));
}
