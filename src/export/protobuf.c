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

#define VARINT_MOST 10u /* bytes of 64 bits, seven in each */
#define LENGTH_SIZE 4u  /* bytes of a length that is filled in later */
#define LENGTH_BITS 28u /* what these hold */
#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes that are put together before there is known to be room for all of them. */
struct head {
    uint8_t bytes[2 * VARINT_MOST];
    size_t size;
};

static void head_add(struct head *head, uint64_t value) {
    for (; value > 0x7f; value >>= 7)
        head->bytes[head->size++] = (uint8_t)(value | 0x80);
    head->bytes[head->size++] = (uint8_t)value;
}

static struct head head_of(uint32_t field, unsigned wire_type) {
    struct head head = {.size = 0};

    head_add(&head, (uint64_t)field << 3 | wire_type);
    return head;
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

void ph__protobuf_varint(struct ph__protobuf *out, uint32_t field, uint64_t value) {
    struct head head = head_of(field, VARINT);

    head_add(&head, value);
    if (has_room(out, head.size))
        add(out, head.bytes, head.size);
}

void ph__protobuf_fixed64(struct ph__protobuf *out, uint32_t field, uint64_t value) {
    struct head head = head_of(field, I64);

    for (unsigned i = 0; i < 8; i++)
        head.bytes[head.size++] = (uint8_t)(value >> 8 * i);
    if (has_room(out, head.size))
        add(out, head.bytes, head.size);
}

void ph__protobuf_double(struct ph__protobuf *out, uint32_t field, double value) {
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    ph__protobuf_fixed64(out, field, bits);
}

void ph__protobuf_bytes(struct ph__protobuf *out, uint32_t field, const void *bytes, size_t size) {
    struct head head = head_of(field, LEN);

    head_add(&head, size);
    if (size <= SIZE_MAX - head.size && has_room(out, head.size + size)) {
        add(out, head.bytes, head.size);
        add(out, bytes, size);
    }
}

/* How many of the (length) bytes at (text) are UTF-8; (*size) is that of what follows them. */
static size_t valid_length(const char *text, size_t length, size_t *size) {
    size_t at = 0;

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
    struct head head = head_of(field, LEN);

    if (has_room(out, head.size + LENGTH_SIZE)) {
        add(out, head.bytes, head.size);
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
