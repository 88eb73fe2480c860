/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes JSON text (RFC 8259) into memory of the call. It appends tokens and knows nothing of nesting: who
 * calls it puts commas and brackets with json_raw.
 */
#ifndef GUESTS_SQLITE_JSON_H
#define GUESTS_SQLITE_JSON_H

#include <stddef.h>
#include <stdint.h>

/* A growing text, NUL-terminated. All zero is an empty one, whose (text) is NULL. */
struct json {
    char *text;
    size_t size;
    size_t capacity;
};

void json_raw(struct json *json, const char *text);
void json_integer(struct json *json, int64_t value);

/* The shortest digits that read back as (value); infinities and NaN, which JSON lacks, as strings. */
void json_real(struct json *json, double value);

/* A string of (size) bytes; what is not UTF-8 becomes U+FFFD. */
void json_string(struct json *json, const void *bytes, size_t size);

/* Bytes as a string in base64 (RFC 4648, section 4). */
void json_base64(struct json *json, const void *bytes, size_t size);

#endif
