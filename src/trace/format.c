/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * printf of recorded values (format.h). The guest's format is only ever read here: what snprintf gets is one
 * conversion at a time, put together from the flags, the length and the letter that were understood.
 */
#include "trace/format.h"

#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

struct output {
    char *text;
    size_t room; /* without the NUL */
    size_t used;
    bool full;
};

/* What is left of the values. */
struct values {
    const ph_field *next;
    size_t count;
};

enum length {
    LENGTH_NONE,
    LENGTH_HH,
    LENGTH_H,
    LENGTH_L,
    LENGTH_LL, /* also j, z and t: all 64 bits */
    LENGTH_LONG_DOUBLE,
};

/* A conversion as it is written: %[flags][width][.precision][length]letter. */
struct conversion {
    bool left, plus, space, alternative, zero;
    bool width_is_value, precision_is_value;
    int width;
    int precision; /* -1: none */
    enum length length;
    char letter;
};

/* Appends (length) bytes of valid UTF-8, up to the last whole character that fits. */
static void put(struct output *output, const char *text, size_t length) {
    size_t room = output->room - output->used;

    if (output->full)
        return;
    if (length > room) {
        output->full = true;
        length = room;
        while (length > 0 && (text[length] & 0xc0) == 0x80)
            length--;
    }
    memcpy(output->text + output->used, text, length);
    output->used += length;
}

static void put_spaces(struct output *output, size_t count) {
    for (; count > 0 && !output->full; count--)
        put(output, " ", 1);
}

/* Appends text in its field: at least (width) bytes of it are used. */
static void put_padded(struct output *output, const struct conversion *conversion, const char *text,
                       size_t length) {
    size_t width = (size_t)conversion->width;
    size_t padding = width > length ? width - length : 0;

    if (!conversion->left)
        put_spaces(output, padding);
    put(output, text, length);
    if (conversion->left)
        put_spaces(output, padding);
}

/* Hands one value to the C library, with a (specification) that this file has made: by way of a va_list,
 * since it is no literal that a compiler could check. The result is ASCII. */
static void put_number(struct output *output, const char *specification, ...) {
    size_t room = output->room - output->used;
    va_list arguments;

    if (output->full)
        return;
    va_start(arguments, specification);
    int length = vsnprintf(output->text + output->used, room + 1, specification, arguments);
    va_end(arguments);
    if (length < 0)
        return; /* no memory for digits */
    output->full = (size_t)length > room;
    output->used += output->full ? room : (size_t)length;
}

/* Writes the specification for a conversion that takes width and precision as arguments, with (modifier) for
 * its length. (out) has room for SPECIFICATION_MAX bytes. */
#define SPECIFICATION_MAX 16
static const char *specification_write(char *out, const struct conversion *conversion, const char *modifier) {
    char *to = out;

    *to++ = '%';
    if (conversion->left)
        *to++ = '-';
    if (conversion->plus)
        *to++ = '+';
    if (conversion->space)
        *to++ = ' ';
    if (conversion->alternative)
        *to++ = '#';
    if (conversion->zero)
        *to++ = '0';
    *to++ = '*';
    *to++ = '.'; /* a negative precision is as good as none */
    *to++ = '*';
    while (*modifier)
        *to++ = *modifier++;
    *to++ = conversion->letter;
    *to = 0;
    return out;
}

static bool integer_of(const ph_field *value, int64_t *integer) {
    if (value->value.type == PH_I64 || value->value.type == PH_U64)
        *integer = value->value.i64;
    else if (value->value.type == PH_BOOL)
        *integer = value->value.boolean;
    else
        return false;
    return true;
}

static bool put_integer(struct output *output, const struct conversion *conversion, const ph_field *value) {
    bool is_signed = conversion->letter == 'd' || conversion->letter == 'i';
    char specification[SPECIFICATION_MAX];
    int64_t integer;

    if (conversion->length == LENGTH_LONG_DOUBLE || !integer_of(value, &integer))
        return false;
    /* What C would have passed is of the type that the length says. */
    switch (conversion->length) {
    case LENGTH_HH:
        integer = is_signed ? (int8_t)integer : (uint8_t)integer;
        break;
    case LENGTH_H:
        integer = is_signed ? (int16_t)integer : (uint16_t)integer;
        break;
    case LENGTH_NONE:
        integer = is_signed ? (int32_t)integer : (int64_t)(uint32_t)integer;
        break;
    default:
        break;
    }
    put_number(output, specification_write(specification, conversion, "ll"), conversion->width,
               conversion->precision, (long long)integer);
    return true;
}

static bool put_float(struct output *output, const struct conversion *conversion, const ph_field *value) {
    char specification[SPECIFICATION_MAX];
    locale_t previous = (locale_t)0;
    locale_t c;

    if (value->value.type != PH_F64 || (conversion->length != LENGTH_NONE && conversion->length != LENGTH_L &&
                                        conversion->length != LENGTH_LONG_DOUBLE))
        return false;
    /* The guest's decimal point is a point, whatever this program has set. The C libraries have this locale
     * ready: making it allocates nothing. */
    c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c)
        previous = uselocale(c);
    if (conversion->length == LENGTH_LONG_DOUBLE)
        put_number(output, specification_write(specification, conversion, "L"), conversion->width,
                   conversion->precision, (long double)value->value.f64);
    else
        put_number(output, specification_write(specification, conversion, ""), conversion->width,
                   conversion->precision, value->value.f64);
    if (c) {
        uselocale(previous);
        freelocale(c);
    }
    return true;
}

static bool put_pointer(struct output *output, const struct conversion *conversion, const ph_field *value) {
    char specification[SPECIFICATION_MAX];

    if (value->value.type != PH_POINTER || conversion->length != LENGTH_NONE)
        return false;
    put_number(output, specification_write(specification, conversion, ""), conversion->width,
               conversion->precision, (void *)(uintptr_t)value->value.u64);
    return true;
}

/* Writes the character with the code (point) to (out), 4 bytes. Returns how many it takes. */
static size_t character_write(char *out, uint32_t point) {
    if (point == 0 || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        point = REPLACEMENT;
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)(0xf00u >> length | point);
    return length;
}

/* A byte that is no character by itself, and a NUL, become U+FFFD. */
static bool put_character(struct output *output, const struct conversion *conversion, const ph_field *value) {
    char character[4];
    int64_t integer;

    if (!integer_of(value, &integer) || (conversion->length != LENGTH_NONE && conversion->length != LENGTH_L))
        return false;
    uint32_t point = conversion->length == LENGTH_L ? (uint32_t)integer : (uint8_t)integer;
    if (conversion->length == LENGTH_NONE && point >= 0x80)
        point = 0;
    put_padded(output, conversion, character, character_write(character, point));
    return true;
}

static bool put_string(struct output *output, const struct conversion *conversion, const ph_field *value) {
    size_t length = value->size;
    size_t most = (size_t)conversion->precision;

    if (value->value.type != PH_STR || (conversion->length != LENGTH_NONE && conversion->length != LENGTH_L))
        return false;
    if (conversion->precision >= 0 && most < length) {
        length = most;
        while (length > 0 && (value->value.str[length] & 0xc0) == 0x80)
            length--;
    }
    put_padded(output, conversion, value->value.str, length);
    return true;
}

/* Reads digits. What is beyond the largest message is taken as that. */
static const char *number_take(const char *at, int *number) {
    for (*number = 0; *at >= '0' && *at <= '9'; at++)
        if (*number <= (int)PH__TRACE_MESSAGE_MAX)
            *number = *number * 10 + (*at - '0');
    if (*number > (int)PH__TRACE_MESSAGE_MAX)
        *number = PH__TRACE_MESSAGE_MAX;
    return at;
}

static const char *flags_take(const char *at, struct conversion *conversion) {
    for (;; at++) {
        switch (*at) {
        case '-':
            conversion->left = true;
            break;
        case '+':
            conversion->plus = true;
            break;
        case ' ':
            conversion->space = true;
            break;
        case '#':
            conversion->alternative = true;
            break;
        case '0':
            conversion->zero = true;
            break;
        case '\'': /* groups of digits, of which the C locale has none */
            break;
        default:
            return at;
        }
    }
}

static const char *length_take(const char *at, enum length *length) {
    switch (*at) {
    case 'h':
        *length = at[1] == 'h' ? LENGTH_HH : LENGTH_H;
        return at + (at[1] == 'h' ? 2 : 1);
    case 'l':
        *length = at[1] == 'l' ? LENGTH_LL : LENGTH_L;
        return at + (at[1] == 'l' ? 2 : 1);
    case 'j':
    case 'z':
    case 't':
        *length = LENGTH_LL;
        return at + 1;
    case 'L':
        *length = LENGTH_LONG_DOUBLE;
        return at + 1;
    default:
        *length = LENGTH_NONE;
        return at;
    }
}

/* Reads the conversion whose '%' is right before (at). Returns what is behind it: behind the letter where
 * that is a conversion's, else on what is none. */
static const char *conversion_take(const char *at, struct conversion *conversion) {
    *conversion = (struct conversion){.precision = -1};
    at = flags_take(at, conversion);
    if (*at == '*') {
        conversion->width_is_value = true;
        at++;
    } else {
        at = number_take(at, &conversion->width);
    }
    if (*at == '.') {
        at++;
        if (*at == '*') {
            conversion->precision_is_value = true;
            at++;
        } else {
            at = number_take(at, &conversion->precision);
        }
    }
    at = length_take(at, &conversion->length);
    conversion->letter = *at;
    return *at && strchr("diouxXcspfFeEgGaAn%", *at) ? at + 1 : at;
}

static const ph_field *value_take(struct values *values) {
    if (values->count == 0)
        return NULL;
    values->count--;
    return values->next++;
}

/* The int that a `*` stands for. */
static bool star_take(struct values *values, int *number) {
    const ph_field *value = value_take(values);

    if (!value || value->value.type != PH_I64)
        return false;
    *number = (int)value->value.i64;
    return true;
}

static bool stars_take(struct values *values, struct conversion *conversion) {
    const int most = PH__TRACE_MESSAGE_MAX;
    bool sound = true;

    if (conversion->width_is_value)
        sound = star_take(values, &conversion->width);
    if (conversion->precision_is_value && !star_take(values, &conversion->precision))
        sound = false;
    if (conversion->width < 0) {
        conversion->left = true;
        conversion->width = conversion->width < -most ? most : -conversion->width;
    }
    if (conversion->width > most)
        conversion->width = most;
    if (conversion->precision > most)
        conversion->precision = most;
    return sound;
}

/* Prints one conversion. False when it has to be printed as it stands. */
static bool conversion_print(struct output *output, struct conversion *conversion, struct values *values) {
    if (conversion->letter == '%') {
        put(output, "%", 1);
        return true;
    }
    if (conversion->letter == 'n')
        return true;
    if (!strchr("diouxXcspfFeEgGaA", conversion->letter) || conversion->letter == 0)
        return false;
    bool sound = stars_take(values, conversion);
    const ph_field *value = value_take(values);
    if (!sound || !value)
        return false;
    switch (conversion->letter) {
    case 'c':
        return put_character(output, conversion, value);
    case 's':
        return put_string(output, conversion, value);
    case 'p':
        return put_pointer(output, conversion, value);
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        return put_integer(output, conversion, value);
    default:
        return put_float(output, conversion, value);
    }
}

size_t ph__trace_format(char *text, size_t size, const char *format, const ph_field *values, size_t count) {
    struct output output = {.text = text, .room = size ? size - 1 : 0};
    struct values left = {.next = values, .count = count};
    struct conversion conversion;

    if (size == 0)
        return 0;
    while (*format && !output.full) {
        const char *percent = strchrnul(format, '%');
        put(&output, format, (size_t)(percent - format));
        format = percent;
        if (*percent) {
            format = conversion_take(percent + 1, &conversion);
            if (!conversion_print(&output, &conversion, &left))
                put(&output, percent, (size_t)(format - percent));
        }
    }
    if (output.used > 0 && !output.full && text[output.used - 1] == '\n')
        output.used--;
    text[output.used] = 0;
    return output.used;
}
