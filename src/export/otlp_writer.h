/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Messages of OTLP, in protocol buffers or as JSON (https://opentelemetry.io/docs/specs/otlp/): whoever
 * describes a message calls the same functions for both. In JSON, ids are in hex and not in base64, 64-bit
 * integers are strings, enums are integers and names are in lowerCamelCase, as that page says.
 *
 * It puts all into a buffer of its own, which only ph__otlp_writer_grow makes larger. What does not fit is
 * left out, and all that would follow it: then the writer is cut.
 */
#ifndef PH_EXPORT_OTLP_WRITER_H
#define PH_EXPORT_OTLP_WRITER_H

#include "export/otlp_batch.h"
#include "export/out.h"
#include "export/protobuf.h"

/* A field of a message: its number in protocol buffers, and its name in JSON as `,"name":`. */
struct ph__otlp_field {
    const char *key;
    uint32_t key_size;
    uint32_t number;
};

#define PH__OTLP_FIELD(number, name)                                                                         \
    ((struct ph__otlp_field){",\"" name "\":", sizeof ",\"" name "\":" - 1, (number)})

/* A copy of the struct is a mark to go back to, as long as the buffer has not grown since. */
struct ph__otlp_writer {
    enum ph__otlp_encoding encoding;
    bool comma;       /* JSON: something stands before the next member or element */
    size_t allocated; /* bytes of the buffer, of which fewer may be used for now */
    struct ph__protobuf protobuf;
    struct ph__out json;
};

/* Takes (capacity) bytes. False without memory. */
bool ph__otlp_writer_init(struct ph__otlp_writer *writer, enum ph__otlp_encoding encoding, size_t capacity);
void ph__otlp_writer_free(struct ph__otlp_writer *writer);

/* Has room for (capacity) bytes from now on. False, and as before, without memory. */
bool ph__otlp_writer_grow(struct ph__otlp_writer *writer, size_t capacity);

/* Has (most) bytes used from now on, at most, and keeps (reserve) bytes of these, and of the buffer, back. */
void ph__otlp_writer_limit(struct ph__otlp_writer *writer, size_t most, size_t reserve);

/* Nothing in it again. */
void ph__otlp_writer_clear(struct ph__otlp_writer *writer);

uint8_t *ph__otlp_writer_bytes(const struct ph__otlp_writer *writer);
size_t ph__otlp_writer_used(const struct ph__otlp_writer *writer);
bool ph__otlp_writer_is_cut(const struct ph__otlp_writer *writer);

/* ---- messages ------------------------------------------------------------------------------------------ */

/* The message around all others, which is a line in JSON. */
void ph__otlp_open(struct ph__otlp_writer *writer);
void ph__otlp_close(struct ph__otlp_writer *writer);

/* A message in the one under way, until ph__otlp_end is called with what this returns. */
size_t ph__otlp_begin(struct ph__otlp_writer *writer, struct ph__otlp_field field);
void ph__otlp_end(struct ph__otlp_writer *writer, size_t message);

/* A repeated field: a list, with messages that are begun with the same (field). */
void ph__otlp_begin_list(struct ph__otlp_writer *writer, struct ph__otlp_field field);
size_t ph__otlp_begin_item(struct ph__otlp_writer *writer, struct ph__otlp_field field);
void ph__otlp_end_list(struct ph__otlp_writer *writer);

/* Items of a list, or members of a message, that another writer of the same encoding has made. */
void ph__otlp_raw(struct ph__otlp_writer *writer, const struct ph__otlp_writer *from);

/* ---- values -------------------------------------------------------------------------------------------- */

void ph__otlp_text(struct ph__otlp_writer *writer, struct ph__otlp_field field, const char *text,
                   size_t length);
void ph__otlp_id(struct ph__otlp_writer *writer, struct ph__otlp_field field, const uint8_t *id, size_t size);
void ph__otlp_bytes(struct ph__otlp_writer *writer, struct ph__otlp_field field, const uint8_t *bytes,
                    size_t size);
void ph__otlp_bool(struct ph__otlp_writer *writer, struct ph__otlp_field field, bool value);
void ph__otlp_double(struct ph__otlp_writer *writer, struct ph__otlp_field field, double value);

/* uint32 and enums, which are numbers in JSON. */
void ph__otlp_u32(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint32_t value);
void ph__otlp_fixed32(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint32_t value);

/* int64, fixed64 and sfixed64, which are strings in JSON. */
void ph__otlp_i64(struct ph__otlp_writer *writer, struct ph__otlp_field field, int64_t value);
void ph__otlp_fixed64(struct ph__otlp_writer *writer, struct ph__otlp_field field, uint64_t value);
void ph__otlp_sfixed64(struct ph__otlp_writer *writer, struct ph__otlp_field field, int64_t value);

/* Repeated numbers, packed; at most PH_METRIC_BUCKETS of them. */
void ph__otlp_fixed64_list(struct ph__otlp_writer *writer, struct ph__otlp_field field,
                           const uint64_t *values, size_t count);
void ph__otlp_double_list(struct ph__otlp_writer *writer, struct ph__otlp_field field, const double *values,
                          size_t count);

#endif
