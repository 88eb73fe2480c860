/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Numbers of JSON (RFC 8259, section 6) to and from the number types. jansson's integers end at 2^63 - 1 and
 * its reals know no -0 without a point, hence our own. The process stays in the C locale, so a point is a
 * point.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/value.h"

static const char *skip_digits(const char *text) {
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

/* Whether all of (text) is a JSON number; (*integer) says whether it has neither fraction nor exponent. */
static bool is_number(const char *text, bool *integer) {
    const char *digits = text + (*text == '-' ? 1 : 0);
    const char *end = skip_digits(digits);

    if (end == digits || (*digits == '0' && end > digits + 1))
        return false;
    *integer = !*end;
    if (*end == '.') {
        digits = end + 1;
        end = skip_digits(digits);
        if (end == digits)
            return false;
    }
    if (*end == 'e' || *end == 'E') {
        digits = end + 1;
        if (*digits == '+' || *digits == '-')
            digits++;
        end = skip_digits(digits);
        if (end == digits)
            return false;
    }
    return !*end;
}

static bool refuse(struct ph__refusal *why, const char *text, ph_type type, const char *reason) {
    snprintf(why->text, sizeof why->text, "'%.100s' %s %s", text, reason, ph__signature_type(type));
    return false;
}

/* Integers as sign and magnitude: wide enough for all four types at once. */
static bool take_integer(const char *text, ph_type type, ph_value *value) {
    bool negative = *text == '-';

    errno = 0;
    uint64_t magnitude = strtoull(text + (negative ? 1 : 0), NULL, 10);
    if (errno)
        return false;
    switch (type) {
    case PH_I32:
        value->i32 = (int32_t)(negative ? 0 - magnitude : magnitude);
        return magnitude <= (negative ? 1ull << 31 : INT32_MAX);
    case PH_I64:
        value->i64 = (int64_t)(negative ? 0 - magnitude : magnitude);
        return magnitude <= (negative ? 1ull << 63 : INT64_MAX);
    case PH_U32:
        value->u32 = (uint32_t)magnitude;
        return magnitude <= (negative ? 0 : UINT32_MAX);
    default:
        value->u64 = magnitude;
        return magnitude == 0 || !negative;
    }
}

/* Each float type by its own function: rounding to f64 first and then to f32 can be off by one unit. */
static bool take_float(const char *text, ph_type type, ph_value *value) {
    if (type == PH_F32) {
        value->f32 = strtof(text, NULL);
        return isfinite(value->f32);
    }
    value->f64 = strtod(text, NULL);
    return isfinite(value->f64);
}

bool ph__number_parse(const char *text, ph_type type, ph_value *value, struct ph__refusal *why) {
    bool integer = false;
    bool is_float = type == PH_F32 || type == PH_F64;

    value->type = type;
    if (!is_number(text, &integer))
        return refuse(why, text, type, "is not a JSON number for");
    if (!is_float && !integer)
        return refuse(why, text, type, "is not a whole number, as it has to be for");
    if (is_float ? !take_float(text, type, value) : !take_integer(text, type, value))
        return refuse(why, text, type, "does not fit");
    return true;
}

/* NaN and infinities: JSON has no numbers for them. */
static bool print_special(FILE *file, double number) {
    if (isfinite(number))
        return false;
    fputs(isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"", file);
    return true;
}

/* Readers take a number without point and exponent for an integer, and an integer has no -0. */
static void print_as_real(FILE *file, const char *text) {
    fprintf(file, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

void ph__f64_print(FILE *file, double number) {
    char text[40];

    if (print_special(file, number))
        return;
    /* 17 digits always read back equal (DBL_DECIMAL_DIG). */
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, number);
        if (strtod(text, NULL) == number)
            break;
    }
    print_as_real(file, text);
}

void ph__f32_print(FILE *file, float number) {
    char text[40];

    if (print_special(file, (double)number))
        return;
    for (int precision = 1; precision <= 9; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, (double)number);
        if (strtof(text, NULL) == number)
            break;
    }
    print_as_real(file, text);
}
