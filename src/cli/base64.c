/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Base64 with padding (RFC 4648, section 4): how bytes are written in JSON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/value.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ph__base64_print(FILE *file, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    char block[4096];
    size_t used = 0;

    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)from[i] << 16;
        if (left > 1)
            group |= (uint32_t)from[i + 1] << 8;
        if (left > 2)
            group |= from[i + 2];
        block[used++] = digits[group >> 18];
        block[used++] = digits[group >> 12 & 63];
        block[used++] = digits[group >> 6 & 63];
        block[used++] = digits[group & 63];
        if (left < 3)
            memset(block + used - (3 - left), '=', 3 - left);
        if (used == sizeof block) {
            fwrite(block, 1, used, file);
            used = 0;
        }
    }
    if (used)
        fwrite(block, 1, used, file);
}

/* The six bits that (digit) stands for, -1 when it is none. */
static int bits_of(char digit) {
    const char *found = digit ? strchr(digits, digit) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Decodes (count) digits at (text), 2 to 4 of them, to one byte less at (out). False for a foreign digit, and
 * for bits that no byte takes. */
static bool decode_group(const char *text, size_t count, uint8_t *out) {
    uint32_t group = 0;

    for (size_t i = 0; i < 4; i++) {
        int bits = i < count ? bits_of(text[i]) : 0;
        if (bits < 0)
            return false;
        group = group << 6 | (uint32_t)bits;
    }
    for (size_t i = 0; i < count - 1; i++)
        out[i] = (uint8_t)(group >> (16 - 8 * i));
    return (group & ((1u << (8 * (4 - count))) - 1)) == 0;
}

void *ph__base64_decode(const char *text, size_t length, size_t *size) {
    size_t padding = 0;

    *size = 0;
    if (length % 4 != 0)
        return NULL;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    uint8_t *bytes = malloc(length / 4 * 3 + 1);
    if (!bytes) {
        *size = SIZE_MAX;
        return NULL;
    }
    for (size_t i = 0; i < length; i += 4) {
        size_t count = i + 4 == length ? 4 - padding : 4;
        if (!decode_group(text + i, count, bytes + *size)) {
            free(bytes);
            *size = 0;
            return NULL;
        }
        *size += count - 1;
    }
    return bytes;
}
