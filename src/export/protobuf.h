/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Protocol buffers' encoding, appended to a buffer that is the caller's
 * (https://protobuf.dev/programming-guides/encoding/). It never allocates and never writes outside. What does
 * not fit is left out whole, a tag with its value, and all that would follow it: (cut) says so. A copy of the
 * struct is a mark to go back to, as long as no message that was open at that time has been ended since.
 */
#ifndef PH_EXPORT_PROTOBUF_H
#define PH_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ph__protobuf {
    uint8_t *bytes;
    size_t capacity;
    size_t used;
    bool cut;
};

/* Field numbers are 1 to 2^29 - 1. int32, int64, uint32, uint64, bool and enum; a negative number is cast. */
void ph__protobuf_varint(struct ph__protobuf *out, uint32_t field, uint64_t value);

void ph__protobuf_fixed32(struct ph__protobuf *out, uint32_t field, uint32_t value);

/* fixed64 and sfixed64. */
void ph__protobuf_fixed64(struct ph__protobuf *out, uint32_t field, uint64_t value);
void ph__protobuf_double(struct ph__protobuf *out, uint32_t field, double value);

/* bytes, or what is encoded already. */
void ph__protobuf_bytes(struct ph__protobuf *out, uint32_t field, const void *bytes, size_t size);

/* Whole fields that are encoded already, with their numbers. */
void ph__protobuf_raw(struct ph__protobuf *out, const void *bytes, size_t size);

/* A string has to be UTF-8: what in (text) is not becomes U+FFFD. */
void ph__protobuf_string(struct ph__protobuf *out, uint32_t field, const char *text, size_t length);

/* A message in the one under way, until ph__protobuf_end is called with what this returns. Its length always
 * takes four bytes, so that nothing has to be moved once it is known: a reader accepts a varint that is
 * longer than it has to be. */
size_t ph__protobuf_begin(struct ph__protobuf *out, uint32_t field);
void ph__protobuf_end(struct ph__protobuf *out, size_t message);

#endif
