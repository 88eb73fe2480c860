/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Has any text and any value written as JSON: a parser reads what went in, with U+FFFD for what is no UTF-8,
 * no control character stands in it, and a buffer of any size is kept to. The input is the capacity of a
 * small buffer, a type, eight bytes of a number, and the text. By hand, from the top of the source tree:
 *
 *   clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *       -Iinclude -Isrc tests/fuzz/fuzz_json.c src/export/json.c src/export/out.c src/base/error.c \
 *       src/base/system.c -ljansson -lm -o fuzz_json
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "export/out.h"

#define INPUT_MOST 2048u
#define HEAD 11u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* What a reader should see of (text). */
static size_t expected_of(const uint8_t *text, size_t length, char *to) {
    static const char replacement[] = "\xef\xbf\xbd";
    size_t used = 0;

    while (length > 0) {
        size_t size = 1;
        if (ph__text_take_code_point(text, length, &size) < 0) {
            memcpy(to + used, replacement, sizeof replacement - 1);
            used += sizeof replacement - 1;
        } else {
            memcpy(to + used, text, size);
            used += size;
        }
        text += size;
        length -= size;
    }
    return used;
}

static json_t *parsed(const struct ph__out *out) {
    expect(!out->cut, "there is room in a large buffer");
    for (size_t i = 0; i < out->used; i++)
        expect((uint8_t)out->bytes[i] >= 0x20 && out->bytes[i] != 0x7f, "no control character is in it");
    json_t *value = json_loadb(out->bytes, out->used, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    expect(value != NULL, "it is JSON");
    return value;
}

static void expect_text(const struct ph__out *out, const uint8_t *text, size_t length) {
    static char wanted[3 * INPUT_MOST];
    const size_t size = expected_of(text, length, wanted);

    json_t *value = parsed(out);
    expect(json_is_string(value) && json_string_length(value) == size &&
               memcmp(json_string_value(value), wanted, size) == 0,
           "a text is what went in");
    json_decref(value);
}

static unsigned digit_of(char digit) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = strchr(digits, digit);

    expect(found != NULL, "bytes are in base64");
    return (unsigned)(found - digits);
}

static void expect_bytes(const json_t *value, const uint8_t *bytes, size_t size) {
    const char *text = json_string_value(value);

    expect(text && json_string_length(value) == (size + 2) / 3 * 4, "bytes are a string of their length");
    for (size_t i = 0; i < size; i++) {
        const char *group = text + i / 3 * 4;
        const unsigned high = digit_of(group[i % 3]), low = digit_of(group[i % 3 + 1]);
        const unsigned shift = 2 * (unsigned)(i % 3);
        expect((uint8_t)(high << (2 + shift) | low >> (4 - shift)) == bytes[i], "bytes are what went in");
    }
}

/* The number is written as it is, or, where a reader may not take it, as a string. */
static void expect_number(const json_t *value, const ph_value *from) {
    char text[32];

    switch (from->type) {
    case PH_I64:
        expect(json_is_integer(value) && json_integer_value(value) == from->i64, "an integer reads back");
        break;
    case PH_U64:
        snprintf(text, sizeof text, "%llu", (unsigned long long)from->u64);
        expect(json_is_string(value)
                   ? strcmp(json_string_value(value), text) == 0
                   : json_is_integer(value) && (uint64_t)json_integer_value(value) == from->u64,
               "an unsigned integer reads back");
        break;
    case PH_POINTER:
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)from->u64);
        expect(json_is_string(value) && strcmp(json_string_value(value), text) == 0, "an address reads back");
        break;
    default:
        expect(isfinite(from->f64) ? json_is_real(value) && json_real_value(value) == from->f64
                                   : json_is_string(value),
               "a real reads back");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const ph_type types[] = {PH_STR, PH_BYTES, PH_I64, PH_U64, PH_F64, PH_POINTER};
    static char large[8 * INPUT_MOST];

    if (size < HEAD || size > INPUT_MOST)
        return 0;
    const size_t capacity = data[0] | (size_t)(data[1] & 15) << 8;
    const uint8_t *text = data + HEAD;
    const size_t length = size - HEAD;
    ph_value value = {.type = types[data[2] % (sizeof types / sizeof types[0])]};
    if (value.type == PH_STR)
        value.str = (const char *)text;
    else if (value.type == PH_BYTES)
        value.bytes.data = text;
    else
        memcpy(&value.u64, data + 3, sizeof value.u64);

    struct ph__out whole = {.bytes = large, .capacity = sizeof large};
    ph__json_text(&whole, (const char *)text, length);
    expect_text(&whole, text, length);
    whole.used = 0;
    ph__json_value(&whole, &value, length);
    json_t *read = parsed(&whole);
    if (value.type == PH_STR)
        expect_text(&whole, text, length);
    else if (value.type == PH_BYTES)
        expect_bytes(read, text, length);
    else
        expect_number(read, &value);
    json_decref(read);

    /* Its own allocation, so that the sanitizer sees the first byte behind it. */
    char *bytes = malloc(capacity ? capacity : 1);
    if (!bytes)
        return 0;
    struct ph__out out = {.bytes = bytes, .capacity = capacity};
    ph__json_value(&out, &value, length);
    expect(out.used <= capacity, "no more is used than there is");
    expect(out.cut == (whole.used > capacity), "it is cut when there is no room, and only then");
    expect(memcmp(bytes, large, out.used) == 0, "what is there is the same in any buffer");
    free(bytes);
    return 0;
}
