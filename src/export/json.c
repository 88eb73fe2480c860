/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Texts and values as JSON (out.h; RFC 8259).
 */
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "export/out.h"

/* JSON in a page: without these three, nothing in it is a tag, a comment or an entity. */
static bool is_escaped(const struct ph__out *out, int32_t point) {
    return ph__text_is_control(point) || (out->markup && (point == '<' || point == '>' || point == '&'));
}

/* How many of the (length) bytes at (text) go as they are. */
static size_t plain_of(const struct ph__out *out, const char *text, size_t length) {
    size_t at = 0;

    if (!out->markup)
        return ph__out_plain(text, length);
    while (at < length && ph__out_plain(text + at, 1) == 1 && !is_escaped(out, text[at]))
        at++;
    return at;
}

void ph__json_text(struct ph__out *out, const char *text, size_t length) {
    ph__out_text(out, "\"");
    for (size_t at = 0;;) {
        size_t plain = plain_of(out, text + at, length - at);
        size_t size = 1;
        ph__out_add(out, text + at, plain);
        at += plain;
        if (at == length)
            break;
        int32_t point = ph__text_take_code_point((const uint8_t *)text + at, length - at, &size);
        if (point < 0)
            ph__out_text(out, "\xef\xbf\xbd");
        else if (is_escaped(out, point))
            ph__out_format(out, "\\u%04x", (unsigned)point);
        else if (point == '"' || point == '\\')
            ph__out_format(out, "\\%c", (char)point);
        else
            ph__out_add(out, text + at, size);
        at += size;
    }
    ph__out_text(out, "\"");
}

/* RFC 4648, section 4. */
static void add_base64(struct ph__out *out, const uint8_t *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    ph__out_text(out, "\"");
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        if (i + 1 < size)
            bits |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < size)
            bits |= data[i + 2];
        char group[] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        i + 1 < size ? digits[bits >> 6 & 63] : '=', i + 2 < size ? digits[bits & 63] : '='};
        ph__out_add(out, group, sizeof group);
    }
    ph__out_text(out, "\"");
}

/* JSON has no NaN and no infinities. */
static void add_f64(struct ph__out *out, double number) {
    const char *quote = isfinite(number) ? "" : "\"";

    ph__out_text(out, quote);
    ph__out_f64(out, number);
    ph__out_text(out, quote);
}

/* Beyond what many readers take as an integer, jansson among them, it is a string. */
static void add_u64(struct ph__out *out, uint64_t number) {
    const char *quote = number > INT64_MAX ? "\"" : "";

    ph__out_text(out, quote);
    ph__out_u64(out, number);
    ph__out_text(out, quote);
}

void ph__json_value(struct ph__out *out, const ph_value *value, size_t size) {
    switch (value->type) {
    case PH_I32:
        ph__out_i64(out, value->i32);
        break;
    case PH_U32:
        ph__out_u64(out, value->u32);
        break;
    case PH_I64:
        ph__out_i64(out, value->i64);
        break;
    case PH_U64:
        add_u64(out, value->u64);
        break;
    case PH_F32:
        add_f64(out, (double)value->f32);
        break;
    case PH_F64:
        add_f64(out, value->f64);
        break;
    case PH_BOOL:
        ph__out_text(out, value->boolean ? "true" : "false");
        break;
    case PH_STR:
        ph__json_text(out, value->str ? value->str : "", value->str ? size : 0);
        break;
    case PH_BYTES:
        add_base64(out, value->bytes.data, value->bytes.data ? size : 0);
        break;
    case PH_POINTER:
        ph__out_format(out, "\"0x%" PRIx64 "\"", value->u64);
        break;
    default:
        ph__out_text(out, "null");
    }
}
