/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Fills a ph_error and makes text printable (error.h). Called on every failure path, so nothing here
 * allocates or can fail.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t ph__text_take_code_point(const uint8_t *text, size_t length, size_t *size) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t point = text[0];
    size_t need = 1;

    if (point >= 0xf0 && point <= 0xf4) {
        need = 4;
        point &= 0x07;
    } else if (point >= 0xe0 && point <= 0xef) {
        need = 3;
        point &= 0x0f;
    } else if (point >= 0xc2 && point <= 0xdf) {
        need = 2;
        point &= 0x1f;
    } else if (point >= 0x80) {
        return -1;
    }
    if (need > length)
        return -1;
    for (size_t i = 1; i < need; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return -1;
        point = point << 6 | (text[i] & 0x3f);
    }
    if (point < smallest[need] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return -1;
    *size = need;
    return (int32_t)point;
}

bool ph__text_is_control(int32_t point) {
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x2028 || point == 0x2029 ||
           (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) || point == 0x061c ||
           point == 0x200e || point == 0x200f;
}

size_t ph__text_copy_printable(char *out, size_t capacity, const char *text, size_t length) {
    size_t from = 0;
    size_t to = 0;

    while (from < length) {
        size_t size = 1;
        int32_t point = ph__text_take_code_point((const uint8_t *)text + from, length - from, &size);
        bool keep = point >= 0 && !ph__text_is_control(point);
        size_t written = keep ? size : 1;
        if (written > capacity - 1 - to)
            break;
        if (keep)
            memmove(out + to, text + from, size);
        else
            out[to] = '?';
        to += written;
        from += size;
    }
    out[to] = 0;
    return to;
}

/* The text is formed apart from (error), since arguments may point into it, and in more room than it will
 * get: the cut is then made by ph__text_copy_printable, which knows where characters end. */
static void error_fill(ph_error *error, ph_status status, int system_error, const char *format,
                       va_list arguments) PH_PRINTF(4, 0);

static void error_fill(ph_error *error, ph_status status, int system_error, const char *format,
                       va_list arguments) {
    char text[PH_ERROR_MESSAGE_MAX + 64];
    int length = vsnprintf(text, sizeof text, format, arguments);
    size_t used = length < 0 ? 0 : (size_t)length;

    if (used >= sizeof text)
        used = sizeof text - 1;
    if (system_error) {
        /* Thread-safe in the C libraries that we build with: constants, or a buffer of the thread's own. */
        length = snprintf(text + used, sizeof text - used, "%s%s", used ? ": " : "", strerror(system_error));
        used += length < 0 ? 0 : (size_t)length;
        if (used >= sizeof text)
            used = sizeof text - 1;
    }
    *error = (ph_error){.status = status, .system_error = system_error};
    ph__text_copy_printable(error->message, sizeof error->message, text, used);
}

ph_status ph__error_set(ph_error *error, ph_status status, const char *format, ...) {
    va_list arguments;

    if (error) {
        va_start(arguments, format);
        error_fill(error, status, 0, format, arguments);
        va_end(arguments);
    }
    return status;
}

ph_status ph__error_set_system(ph_error *error, ph_status status, int system_error, const char *format, ...) {
    va_list arguments;

    if (error) {
        va_start(arguments, format);
        error_fill(error, status, system_error, format, arguments);
        va_end(arguments);
    }
    return status;
}

void ph__error_set_function(ph_error *error, const char *name, uint64_t offset) {
    if (!error)
        return;
    error->function[0] = 0;
    error->function_offset = 0;
    if (name) {
        ph__text_copy_printable(error->function, sizeof error->function, name, strlen(name));
        error->function_offset = offset;
    }
}
