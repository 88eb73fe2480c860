/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading a collector's answers (otlp_answer.h): the few fields that matter of messages that are not deeper
 * than two, without recursion, without allocating, and never beyond the bytes given. Field numbers are those
 * of opentelemetry/proto/collector and of google/rpc/status.proto.
 */
#include "export/otlp_answer.h"

#define PARTIAL_SUCCESS 1 /* Export...ServiceResponse.partial_success */
#define REJECTED 1        /* Export...PartialSuccess.rejected_spans and its siblings */
#define MESSAGE 2         /* Export...PartialSuccess.error_message, and Status.message */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct reader {
    const uint8_t *bytes;
    size_t left;
};

struct field {
    uint64_t number;
    enum wire wire;
    uint64_t varint;
    struct reader bytes;
};

static bool varint_read(struct reader *from, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (from->left == 0)
            return false;
        const uint8_t byte = *from->bytes++;
        from->left--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool bytes_take(struct reader *from, uint64_t size, struct reader *taken) {
    if (size > from->left)
        return false;
    *taken = (struct reader){from->bytes, (size_t)size};
    from->bytes += size;
    from->left -= (size_t)size;
    return true;
}

/* False at the end, and where there is no field. */
static bool field_read(struct reader *from, struct field *field) {
    uint64_t untrusted = 0;

    if (!varint_read(from, &untrusted))
        return false;
    *field = (struct field){.number = untrusted >> 3, .wire = (enum wire)(untrusted & 7)};
    switch (field->wire) {
    case WIRE_VARINT:
        return varint_read(from, &field->varint);
    case WIRE_64:
        return bytes_take(from, 8, &field->bytes);
    case WIRE_32:
        return bytes_take(from, 4, &field->bytes);
    case WIRE_BYTES:
        /* One that goes on beyond the end is the last, of an answer that was too long to keep. */
        return varint_read(from, &untrusted) &&
               bytes_take(from, untrusted < from->left ? untrusted : from->left, &field->bytes);
    }
    return false;
}

static void message_take(const struct field *field, struct ph__otlp_answer *answer) {
    if (field->number != MESSAGE || field->wire != WIRE_BYTES || field->bytes.left == 0)
        return;
    answer->message = (const char *)field->bytes.bytes;
    answer->message_size = field->bytes.left;
}

static void partial_success_read(struct reader from, struct ph__otlp_answer *answer) {
    struct field field;

    while (field_read(&from, &field)) {
        /* An int64: negative where the highest bit is set. */
        if (field.number == REJECTED && field.wire == WIRE_VARINT)
            answer->rejected = field.varint <= INT64_MAX ? field.varint : 0;
        message_take(&field, answer);
    }
}

void ph__otlp_answer_read(const uint8_t *bytes, size_t size, struct ph__otlp_answer *answer) {
    struct reader from = {bytes, size};
    struct field field;

    *answer = (struct ph__otlp_answer){0};
    while (field_read(&from, &field))
        if (field.number == PARTIAL_SUCCESS && field.wire == WIRE_BYTES)
            partial_success_read(field.bytes, answer);
}

void ph__otlp_failure_read(const uint8_t *bytes, size_t size, struct ph__otlp_answer *answer) {
    struct reader from = {bytes, size};
    struct field field;

    *answer = (struct ph__otlp_answer){0};
    while (field_read(&from, &field))
        message_take(&field, answer);
}
