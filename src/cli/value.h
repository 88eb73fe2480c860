/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Values as the command line and its output write them: JSON, typed by a signature. Numbers go by their
 * digits and never through another type, so that all of u64 and the sign of -0 come through.
 */
#ifndef PH_CLI_VALUE_H
#define PH_CLI_VALUE_H

#include <stdio.h>

#include <pinhole/pinhole.h>

/* Why a value was refused. */
struct ph__refusal {
    char text[512];
};

/* Reads (text), JSON or @PATH, as a value of (type). Strings and bytes are allocated, for ph__value_free.
 * False with the reason in (why). */
bool ph__value_parse(const char *text, ph_type type, ph_value *value, struct ph__refusal *why);

/* Frees what ph__value_parse allocated. */
void ph__value_free(ph_value *value);

/* The bytes that (value) adds to a message beside its slot. */
size_t ph__value_payload(const ph_value *value);

/* Writes (value) as JSON, without a line break. Bytes of a string that are not UTF-8 become U+FFFD. What
 * fails to be written shows in ferror(file). */
void ph__value_print(FILE *file, const ph_value *value);

/* number.c: (text), a JSON number, as a value of the number type (type). */
bool ph__number_parse(const char *text, ph_type type, ph_value *value, struct ph__refusal *why);

/* number.c: writes a float so that it reads back equal, as short as that allows; NaN and infinities as
 * strings. */
void ph__f64_print(FILE *file, double number);
void ph__f32_print(FILE *file, float number);

/* base64.c (RFC 4648, section 4). Decoding allocates (*bytes), also when there are none; NULL when (text) is
 * not base64 or there is no memory, which is so with (*size) = SIZE_MAX. */
void ph__base64_print(FILE *file, const void *bytes, size_t size);
void *ph__base64_decode(const char *text, size_t length, size_t *size);

#endif
