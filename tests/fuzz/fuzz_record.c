/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Feeds any bytes to the record decoder, as what a guest left in its ring: what is taken lies inside the
 * bytes and adds up to them, and every text is valid UTF-8. libFuzzer finds the bytes; replay.c takes them
 * from files. The input is a log's format with its NUL, then records. By hand, from the top of the source
 * tree, for as long as one likes:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
 *       -fno-sanitize-recover=all -Iinclude -Isrc \
 *       tests/fuzz/fuzz_record.c -o fuzz_record \
 *       src/trace/{format,record,text}.c
 *   mkdir corpus && cp build/tests/fuzz/records-* corpus
 *   ./fuzz_record -max_len=4096 corpus
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/format.h"
#include "trace/record.h"
#include "trace/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the fields of a few sites are; that of a log comes with its records. */
static const struct {
    uint32_t count;
    uint8_t types[PH__TRACE_FIELDS_MAX];
} sites[] = {
    {0, {0}},
    {1, {PH_I64}},
    {2, {PH_STR, PH_BYTES}},
    {3, {PH_BOOL, PH_F64, PH_STR}},
    {7, {PH_I64, PH_U64, PH_F64, PH_BOOL, PH_STR, PH_BYTES, PH_POINTER}},
    {12, {PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR}},
};

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static int is_valid(const char *text, size_t length) {
    char *again = malloc(3 * length + 1);
    int valid =
        again && ph__text_make_valid(again, text, length, 0) == length && memcmp(again, text, length) == 0;

    free(again);
    return valid;
}

/* (types) is NULL for a log, whose record says what they are. */
static void check_values(const struct ph__record *record, const ph_field *fields, const uint8_t *types,
                         uint32_t count, const char *text, size_t text_size) {
    const char *start = (const char *)record->words;
    size_t words = types ? 0 : 1;

    for (uint32_t i = 0; i < count; i++) {
        const ph_value *value = &fields[i].value;
        uint8_t byte;

        if (types)
            expect(value->type == types[i], "a value has the type that was asked for");
        expect(fields[i].full_size >= fields[i].size, "a value was not shorter than it is");
        words++;
        switch (value->type) {
        case PH_STR:
            expect(value->str >= text && value->str + fields[i].size + 1 <= text + text_size,
                   "a string is in the text");
            expect(value->str[fields[i].size] == 0, "a string ends with a NUL");
            expect(is_valid(value->str, fields[i].size), "a string is valid UTF-8");
            break;
        case PH_BYTES:
            expect(value->bytes.size == fields[i].size, "bytes have one size");
            expect(value->bytes.size == 0 ||
                       ((const char *)value->bytes.data >= start &&
                        (const char *)value->bytes.data + value->bytes.size <= start + record->count * 8),
                   "bytes are in the record");
            words += (value->bytes.size + 7) / 8;
            break;
        case PH_BOOL:
            memcpy(&byte, &value->boolean, sizeof byte);
            expect(byte <= 1, "a bool is 0 or 1");
            break;
        default:
            expect(value->type == PH_I64 || value->type == PH_U64 || value->type == PH_F64 ||
                       value->type == PH_POINTER,
                   "a value is of a type that fields have");
            break;
        }
    }
    expect(words <= record->count, "values are no more than their words");
}

static void check_format(const char *format, const ph_field *fields, uint32_t count) {
    char whole[PH__TRACE_MESSAGE_MAX];
    size_t length = ph__trace_format(whole, sizeof whole, format, fields, count);

    expect(length < sizeof whole && strlen(whole) == length, "a message fits");
    expect(is_valid(whole, length), "a message is valid UTF-8");
    /* A buffer of just the size, so that a sanitizer sees any step outside. */
    for (size_t size = 1; size < 20; size += 6) {
        char *out = malloc(size);
        if (!out)
            return;
        size_t used = ph__trace_format(out, size, format, fields, count);
        expect(used < size && used <= length && memcmp(out, whole, used) == 0, "a cut message is a start");
        expect(is_valid(out, used), "a cut message is valid UTF-8");
        free(out);
    }
}

static void check_record(const struct ph__record *record, const char *format) {
    ph_field fields[PH__TRACE_FIELDS_MAX];
    uint32_t count = 0;
    char *text = malloc(PH__RECORD_TEXT_MAX);

    if (!text)
        return;
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        if (ph__record_values(record->words, record->count, sites[i].types, sites[i].count, fields, text))
            check_values(record, fields, sites[i].types, sites[i].count, text, PH__RECORD_TEXT_MAX);
    }
    if (ph__record_log_values(record->words, record->count, fields, &count, text)) {
        expect(count <= PH__TRACE_FIELDS_MAX, "there are no more values than there can be");
        check_values(record, fields, NULL, count, text, PH__RECORD_TEXT_MAX);
        check_format(format, fields, count);
    } else {
        expect(count == 0, "there are no values where none were read");
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t format_size = strnlen((const char *)data, size);
    char *format = malloc(3 * format_size + 1);
    size_t position = 0;

    if (!format)
        return 0;
    ph__text_make_valid(format, (const char *)data, format_size, 0);
    expect(is_valid(format, strlen(format)), "what was made valid is");
    data += format_size < size ? format_size + 1 : size;
    size -= format_size < size ? format_size + 1 : size;
    size = size / 8 * 8;

    /* A copy of just this size, aligned, so that a sanitizer sees any step outside. */
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) {
        free(format);
        return 0;
    }
    memcpy(bytes, data, size);
    while (position < size) {
        struct ph__record record;
        size_t length = ph__record_take(bytes + position, size - position, &record);
        if (length == 0)
            break;
        expect(length >= 16 && length % 8 == 0 && length <= size - position, "a record is in the bytes");
        expect((const uint8_t *)record.words == bytes + position + 16 && record.count * 8 == length - 16,
               "a record's words are behind its head");
        expect(record.site <= PH__SITE_MAX && record.type < 16, "a head's numbers are as wide as they are");
        check_record(&record, format);
        position += length;
    }
    free(bytes);
    free(format);
    return 0;
}
