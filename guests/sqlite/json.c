/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The JSON writer (json.h).
 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/guest.h>

/* Makes room for (size) more bytes and a NUL. What is outgrown goes when the call ends. */
static char *reserve(struct json *json, size_t size) {
    size_t needed = json->size + size + 1;

    if (needed > json->capacity) {
        size_t capacity = needed > 2 * json->capacity ? needed : 2 * json->capacity;
        char *text = ph_alloc(capacity);
        if (json->size)
            memcpy(text, json->text, json->size);
        json->text = text;
        json->capacity = capacity;
    }
    return json->text + json->size;
}

static void append(struct json *json, const char *text, size_t size) {
    memcpy(reserve(json, size), text, size);
    json->size += size;
    json->text[json->size] = 0;
}

void json_raw(struct json *json, const char *text) {
    append(json, text, strlen(text));
}

void json_integer(struct json *json, int64_t value) {
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    json_raw(json, text);
}

void json_real(struct json *json, double value) {
    char text[32];

    if (!isfinite(value)) {
        json_raw(json, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    /* 17 digits tell any two doubles apart; most need fewer. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    json_raw(json, text);
    /* A real stays one for readers that tell 5 from 5.0. */
    if (!strpbrk(text, ".e"))
        json_raw(json, ".0");
}

/* Reads the UTF-8 character at (bytes), of which there are (size). Returns its size, or what a decoder takes
 * for one wrong character, negative: the longest part of it that could have begun one (Unicode, section 3.9).
 * Neither overlong forms nor surrogates are characters. */
static int character_read(const unsigned char *bytes, size_t size) {
    const unsigned char first = bytes[0];
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    int count;

    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        count = 2;
    else if (first >= 0xe0 && first <= 0xef)
        count = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        count = 4;
    else
        return -1;
    for (int i = 1; i < count; i++) {
        if ((size_t)i == size || bytes[i] < low || bytes[i] > high)
            return -i;
        /* Only the second byte has a narrower range. */
        low = 0x80;
        high = 0xbf;
    }
    return count;
}

void json_string(struct json *json, const void *bytes, size_t size) {
    const unsigned char *position = bytes;
    const unsigned char *end = position + size;
    char escape[8];

    json_raw(json, "\"");
    while (position < end) {
        int count = character_read(position, (size_t)(end - position));
        if (count < 0) {
            json_raw(json, "\xef\xbf\xbd"); /* U+FFFD */
            position -= count;
            continue;
        }
        if (*position == '"' || *position == '\\') {
            snprintf(escape, sizeof escape, "\\%c", *position);
            json_raw(json, escape);
        } else if (*position < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", *position);
            json_raw(json, escape);
        } else {
            append(json, (const char *)position, (size_t)count);
        }
        position += count;
    }
    json_raw(json, "\"");
}

void json_base64(struct json *json, const void *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *data = bytes;
    char group[4];

    json_raw(json, "\"");
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        if (i + 1 < size)
            bits |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < size)
            bits |= data[i + 2];
        group[0] = digits[bits >> 18];
        group[1] = digits[bits >> 12 & 63];
        group[2] = i + 1 < size ? digits[bits >> 6 & 63] : '=';
        group[3] = i + 2 < size ? digits[bits & 63] : '=';
        append(json, group, sizeof group);
    }
    json_raw(json, "\"");
}
