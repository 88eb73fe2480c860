/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sink's bytes and numbers (out.h).
 */
#include "export/out.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void ph__out_flush(struct ph__out *out) {
    if (out->file && out->used && !ferror(out->file))
        fwrite(out->bytes, 1, out->used, out->file);
    out->written += out->used;
    out->used = 0;
}

void ph__out_add_more(struct ph__out *out, const char *bytes, size_t size) {
    if (!out->file)
        out->cut = true;
    if (out->cut)
        return;
    while (size > 0) {
        size_t room = out->capacity - out->used;
        size_t part = size < room ? size : room;
        memcpy(out->bytes + out->used, bytes, part);
        out->used += part;
        bytes += part;
        size -= part;
        if (size > 0)
            ph__out_flush(out);
    }
}

void ph__out_digits(struct ph__out *out, uint64_t number, size_t digits) {
    char text[20];
    size_t at = sizeof text;

    for (; number > 0 || sizeof text - at < digits; number /= 10)
        text[--at] = (char)('0' + number % 10);
    ph__out_add(out, text + at, sizeof text - at);
}

void ph__out_u64(struct ph__out *out, uint64_t number) {
    ph__out_digits(out, number, 1);
}

void ph__out_i64(struct ph__out *out, int64_t number) {
    if (number < 0)
        ph__out_add(out, "-", 1);
    ph__out_u64(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

size_t ph__out_plain(const char *text, size_t length) {
    size_t at = 0;

    while (at < length && text[at] >= 0x20 && text[at] < 0x7f && text[at] != '"' && text[at] != '\\')
        at++;
    return at;
}

void ph__out_format(struct ph__out *out, const char *format, ...) {
    char text[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ph__out_text(out, text);
}

/* The significant digits of a finite (number), 17 at most, as few as read back equal, and the power of ten of
 * the first. printf and strtod put the locale's point between the first two digits, which is skipped. */
static int digits_of(double number, char digits[18], int *exponent) {
    char text[64];
    int count = 0;

    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, number);
        if (strtod(text, NULL) == number)
            break;
    }
    for (const char *at = text; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9' && count < 17)
            digits[count++] = *at;
    digits[count] = 0;
    *exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    return count;
}

void ph__out_f64(struct ph__out *out, double number) {
    char digits[18];
    int exponent;

    if (!isfinite(number)) {
        ph__out_text(out, isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
        return;
    }
    int count = digits_of(number, digits, &exponent);
    if (signbit(number))
        ph__out_text(out, "-");
    if (exponent >= 0 && exponent < 17) {
        int before = exponent + 1;
        for (int i = 0; i < before; i++)
            ph__out_add(out, i < count ? &digits[i] : "0", 1);
        ph__out_format(out, ".%s", count > before ? digits + before : "0");
    } else if (exponent < 0 && exponent >= -4) {
        ph__out_format(out, "0.%.*s%s", -exponent - 1, "000", digits);
    } else {
        ph__out_format(out, "%c%s%se%d", digits[0], count > 1 ? "." : "", digits + 1, exponent);
    }
}
