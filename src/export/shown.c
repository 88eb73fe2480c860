/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Texts and values for a terminal (out.h). What they hold was written by a guest, which must neither move the
 * cursor nor make up a line of its own.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "export/out.h"

/* What of one value is shown. */
#define CHARACTERS_MAX 200u
#define BYTES_MAX 32u

static void show_escape(struct ph__out *out, int32_t point) {
    static const char letters[] = "abtnvfr"; /* from 7 on */

    if (point >= 7 && point <= 13)
        ph__out_format(out, "\\%c", letters[point - 7]);
    else if (point < 0x80)
        ph__out_format(out, "\\x%02x", (unsigned)point);
    else
        ph__out_format(out, "\\u{%x}", (unsigned)point);
}

bool ph__shown_text(struct ph__out *out, const char *text, size_t length, size_t most, bool quoted) {
    size_t at = 0;

    while (at < length && most > 0) {
        size_t size = ph__out_plain(text + at, length - at < most ? length - at : most);
        if (size > 0) {
            ph__out_add(out, text + at, size);
            at += size;
            most -= size;
            continue;
        }
        size = 1;
        int32_t point = ph__text_take_code_point((const uint8_t *)text + at, length - at, &size);
        if (point < 0)
            ph__out_format(out, "\\x%02x", (unsigned)(uint8_t)text[at]);
        else if (ph__text_is_control(point) || (out->ascii && point >= 0x80))
            show_escape(out, point);
        else if (quoted && (point == '"' || point == '\\'))
            ph__out_format(out, "\\%c", (char)point);
        else
            ph__out_add(out, text + at, size);
        at += size;
        most--;
    }
    return at == length;
}

static void show_cut(struct ph__out *out, size_t size) {
    ph__out_format(out, "%s(%zu bytes)", out->ascii ? "..." : "\u2026", size);
}

static void show_string(struct ph__out *out, const char *text, size_t size, size_t full_size) {
    ph__out_text(out, "\"");
    bool whole = ph__shown_text(out, text ? text : "", text ? size : 0, CHARACTERS_MAX, true);
    ph__out_text(out, "\"");
    if (!whole || full_size > size)
        show_cut(out, full_size > size ? full_size : size);
}

static void show_bytes(struct ph__out *out, ph_bytes bytes, size_t full_size) {
    const uint8_t *data = bytes.data;

    ph__out_text(out, "<");
    for (size_t i = 0; data && i < bytes.size && i < BYTES_MAX; i++)
        ph__out_format(out, "%02x", data[i]);
    ph__out_text(out, ">");
    if (bytes.size > BYTES_MAX || full_size > bytes.size)
        show_cut(out, full_size > bytes.size ? full_size : bytes.size);
}

void ph__shown_value(struct ph__out *out, const ph_value *value, size_t size, size_t full_size) {
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
        ph__out_u64(out, value->u64);
        break;
    case PH_F32:
        ph__out_f64(out, (double)value->f32);
        break;
    case PH_F64:
        ph__out_f64(out, value->f64);
        break;
    case PH_BOOL:
        ph__out_text(out, value->boolean ? "true" : "false");
        break;
    case PH_STR:
        show_string(out, value->str, size, full_size);
        break;
    case PH_BYTES:
        show_bytes(out, (ph_bytes){value->bytes.data, size}, full_size);
        break;
    case PH_POINTER:
        ph__out_format(out, "0x%" PRIx64, value->u64);
        break;
    default:
        ph__out_text(out, "void");
    }
}

void ph__shown_field(struct ph__out *out, const ph_field *field) {
    if (field->name && *field->name) {
        ph__shown_text(out, field->name, strlen(field->name), CHARACTERS_MAX, false);
        ph__out_text(out, "=");
    }
    ph__shown_value(out, &field->value, field->size, field->full_size);
}

void ph__shown_duration(struct ph__out *out, uint64_t ns) {
    uint64_t unit = ns < 1000000 ? 1000 : ns < 1000000000 ? 1000000 : 1000000000;

    if (ns < 1000)
        ph__out_format(out, "%" PRIu64 " ns", ns);
    else
        ph__out_format(out, "%" PRIu64 ".%03" PRIu64 " %s", ns / unit, ns % unit / (unit / 1000),
                       unit == 1000      ? "us"
                       : unit == 1000000 ? "ms"
                                         : "s");
}
