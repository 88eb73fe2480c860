/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Bytes on their way to a sink's file, and how values look in a terminal and in JSON. It never allocates, so
 * that a trace does not get worse when memory is short, and it does not depend on the process's locale.
 */
#ifndef PH_EXPORT_OUT_H
#define PH_EXPORT_OUT_H

#include <stdio.h>
#include <string.h>

#include <pinhole/trace.h>

/* Where bytes are put. With a (file) they are written to it whenever (bytes) is full; without one, what does
 * not fit is left out, at the end and between characters, and (cut) says so. (ascii): characters beyond ASCII
 * are escaped for a terminal. (markup): what begins or ends something in HTML is escaped in JSON's texts. */
struct ph__out {
    FILE *file;
    char *bytes;
    size_t capacity;
    size_t used;
    uint64_t written; /* to the file, so far */
    bool cut;
    bool ascii;
    bool markup;
};

/* As ph__out_add, which calls it for what does not fit, or is behind what was cut. */
void ph__out_add_more(struct ph__out *out, const char *bytes, size_t size);

/* Adds (size) bytes, which are a whole character or many. */
static inline void ph__out_add(struct ph__out *out, const void *bytes, size_t size) {
    if (out->cut || size > out->capacity - out->used) {
        ph__out_add_more(out, bytes, size);
        return;
    }
    if (size > 0)
        memcpy(out->bytes + out->used, bytes, size);
    out->used += size;
}

static inline void ph__out_text(struct ph__out *out, const char *text) {
    ph__out_add(out, text, strlen(text));
}

/* A decimal number. What a trace has most of, so not by printf. */
void ph__out_u64(struct ph__out *out, uint64_t number);
/* With (digits) digits at least, 20 at most, of which the first may be zeroes. */
void ph__out_digits(struct ph__out *out, uint64_t number, size_t digits);
void ph__out_i64(struct ph__out *out, int64_t number);

/* How many of the (length) bytes at (text) are ASCII characters that nothing has to be done for, in a
 * terminal as in JSON. */
size_t ph__out_plain(const char *text, size_t length);

/* Adds at most 127 bytes in printf's form. Only for integers and constant text: floats would come out in the
 * locale's form. */
void ph__out_format(struct ph__out *out, const char *format, ...) PH_PRINTF(2, 3);

/* Hands what is there to the file. A failure shows in ferror(file), and from there on nothing goes to it any
 * more: what it has is the begin of the trace, without holes. */
void ph__out_flush(struct ph__out *out);

/* As short as reads back equal, with a point or an exponent; NaN, Infinity and -Infinity. */
void ph__out_f64(struct ph__out *out, double number);

/* ---- shown.c: for a terminal --------------------------------------------------------------------------- */

/* At most (most) characters of the (length) bytes at (text). Controls, marks that turn text around and bytes
 * that are not UTF-8 are escaped, as in C or as \u{HEX}; in (quoted) text also quotes and backslashes, so
 * that it can be told from what was escaped. Returns whether all of it was shown. */
bool ph__shown_text(struct ph__out *out, const char *text, size_t length, size_t most, bool quoted);

/* `name=value`, a long value cut. */
void ph__shown_field(struct ph__out *out, const ph_field *field);

/* (value) without a name; (size) and (full_size) as in a ph_field. */
void ph__shown_value(struct ph__out *out, const ph_value *value, size_t size, size_t full_size);

/* `412 ns`, `21.400 us`, `1.500 s`. Cut off behind the third digit, not rounded. */
void ph__shown_duration(struct ph__out *out, uint64_t ns);

/* ---- json.c -------------------------------------------------------------------------------------------- */

/* The (length) bytes at (text) as a JSON string. What is not UTF-8 becomes U+FFFD, and what could drive a
 * terminal is escaped. */
void ph__json_text(struct ph__out *out, const char *text, size_t length);

/* (value) as JSON; (size) as in a ph_field. */
void ph__json_value(struct ph__out *out, const ph_value *value, size_t size);

#endif
