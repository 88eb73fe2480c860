/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Attributes of OTLP (otlp_parts.h): ours first, under names that a guest cannot use, then a guest's fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/field.h"
#include "export/otlp_fields.h"
#include "export/otlp_parts.h"

/* Names of attributes begin with these where they are ours, or say something of the host or the resource. */
static const char *const ours[] = {"pinhole.", "code.",    "exception.", "host.",      "os.",
                                   "otel.",    "process.", "service.",   "telemetry.", NULL};

bool ph__otlp_is_ours(const char *name) {
    return ph__field_is_ours(name, ours);
}

struct ph__otlp_attributes ph__otlp_attributes_begin(struct ph__otlp_writer *writer,
                                                     struct ph__otlp_field field, uint32_t most,
                                                     uint32_t value_bytes) {
    ph__otlp_begin_list(writer, field);
    return (struct ph__otlp_attributes){
        .writer = writer, .field = field, .most = most, .value_bytes = value_bytes};
}

void ph__otlp_attributes_end(struct ph__otlp_attributes *attributes) {
    ph__otlp_end_list(attributes->writer);
}

/* An attribute under way: the pair, and its value. */
struct pair {
    size_t pair;
    size_t value;
};

/* False when there may be no more of them. */
static bool begin_pair(struct ph__otlp_attributes *attributes, const char *name, struct pair *pair) {
    if (attributes->count >= attributes->most) {
        attributes->dropped++;
        return false;
    }
    attributes->count++;
    pair->pair = ph__otlp_begin_item(attributes->writer, attributes->field);
    ph__otlp_text(attributes->writer, PAIR_KEY, name, strlen(name));
    pair->value = ph__otlp_begin(attributes->writer, PAIR_VALUE);
    return true;
}

static void end_pair(struct ph__otlp_attributes *attributes, const struct pair *pair) {
    ph__otlp_end(attributes->writer, pair->value);
    ph__otlp_end(attributes->writer, pair->pair);
}

static void add_text(struct ph__otlp_attributes *attributes, const char *text, size_t length) {
    ph__otlp_text(attributes->writer, ANY_STRING, text, ph__text_fit(text, length, attributes->value_bytes));
}

void ph__otlp_attribute_text(struct ph__otlp_attributes *attributes, const char *name, const char *text) {
    struct pair pair;

    if (!text || !begin_pair(attributes, name, &pair))
        return;
    add_text(attributes, text, strlen(text));
    end_pair(attributes, &pair);
}

void ph__otlp_attribute_i64(struct ph__otlp_attributes *attributes, const char *name, int64_t value) {
    struct pair pair;

    if (!begin_pair(attributes, name, &pair))
        return;
    ph__otlp_i64(attributes->writer, ANY_INT, value);
    end_pair(attributes, &pair);
}

void ph__otlp_attribute_bool(struct ph__otlp_attributes *attributes, const char *name, bool value) {
    struct pair pair;

    if (!begin_pair(attributes, name, &pair))
        return;
    ph__otlp_bool(attributes->writer, ANY_BOOL, value);
    end_pair(attributes, &pair);
}

void ph__otlp_attributes_source(struct ph__otlp_attributes *attributes, const ph_source *source) {
    if (source->file && *source->file)
        ph__otlp_attribute_text(attributes, "code.file.path", source->file);
    if (source->line)
        ph__otlp_attribute_i64(attributes, "code.line.number", source->line);
    if (source->function && *source->function)
        ph__otlp_attribute_text(attributes, "code.function.name", source->function);
}

/* There is no unsigned type: what is too large for the signed one is text, as pointers are. */
static void add_u64(struct ph__otlp_attributes *attributes, uint64_t value) {
    char text[32];

    if (value <= INT64_MAX) {
        ph__otlp_i64(attributes->writer, ANY_INT, (int64_t)value);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64, value);
    add_text(attributes, text, strlen(text));
}

static void add_pointer(struct ph__otlp_attributes *attributes, uint64_t address) {
    char text[32];

    snprintf(text, sizeof text, "0x%" PRIx64, address);
    add_text(attributes, text, strlen(text));
}

static void add_value(struct ph__otlp_attributes *attributes, const ph_value *value, size_t size) {
    struct ph__otlp_writer *writer = attributes->writer;
    size_t most = attributes->value_bytes;

    switch (value->type) {
    case PH_I32:
        ph__otlp_i64(writer, ANY_INT, value->i32);
        break;
    case PH_U32:
        ph__otlp_i64(writer, ANY_INT, value->u32);
        break;
    case PH_I64:
        ph__otlp_i64(writer, ANY_INT, value->i64);
        break;
    case PH_U64:
        add_u64(attributes, value->u64);
        break;
    case PH_F32:
        ph__otlp_double(writer, ANY_DOUBLE, (double)value->f32);
        break;
    case PH_F64:
        ph__otlp_double(writer, ANY_DOUBLE, value->f64);
        break;
    case PH_BOOL:
        ph__otlp_bool(writer, ANY_BOOL, value->boolean);
        break;
    case PH_STR:
        add_text(attributes, value->str ? value->str : "", value->str ? size : 0);
        break;
    case PH_BYTES:
        size = value->bytes.data ? size : 0;
        ph__otlp_bytes(writer, ANY_BYTES, value->bytes.data, size < most ? size : most);
        break;
    case PH_POINTER:
        add_pointer(attributes, value->u64);
        break;
    default:
        break;
    }
}

void ph__otlp_attributes_fields(struct ph__otlp_attributes *attributes, const ph_field *fields,
                                size_t count) {
    char name[PH__FIELD_NAME_SIZE];
    struct pair pair;

    for (size_t i = 0; i < count; i++) {
        if (attributes->count >= attributes->most) {
            attributes->dropped += (uint32_t)(count - i);
            return;
        }
        begin_pair(attributes, ph__field_name(fields, i, ours, name), &pair);
        add_value(attributes, &fields[i].value, fields[i].size);
        end_pair(attributes, &pair);
    }
}

void ph__otlp_put_text(struct ph__otlp_writer *writer, struct ph__otlp_field field, const char *text,
                       size_t most) {
    if (text)
        ph__otlp_text(writer, field, text, ph__text_fit(text, strlen(text), most));
}
