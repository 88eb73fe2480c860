/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Values from words of the command line, and as JSON on stdout (value.h).
 */
#include "cli/value.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/file.h"

#define SPACE " \t\r\n" /* what JSON allows around a value */

static bool refuse(struct ph__refusal *why, const char *reason) {
    snprintf(why->text, sizeof why->text, "%s", reason);
    return false;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* A copy of (length) bytes with a NUL behind them. */
static char *copy(const char *bytes, size_t length) {
    char *made = malloc(length + 1);

    if (!made)
        return NULL;
    memcpy(made, bytes, length);
    made[length] = 0;
    return made;
}

/* Takes over (bytes), from malloc and with a NUL behind them, as a string or as bytes. */
static bool adopt(char *bytes, size_t size, ph_value *value, struct ph__refusal *why) {
    if (value->type == PH_BYTES) {
        value->bytes = (ph_bytes){bytes, size};
        return true;
    }
    value->str = bytes;
    if (strlen(bytes) == size)
        return true;
    ph__value_free(value);
    return refuse(why, "a string cannot hold a NUL");
}

static bool take_file(const char *path, ph_value *value, struct ph__refusal *why) {
    size_t size = 0;
    char *bytes;

    if (value->type != PH_STR && value->type != PH_BYTES)
        return refuse(why, "@PATH is for string and bytes only");
    bytes = ph__file_read(path, &size, why);
    return bytes && adopt(bytes, size, value, why);
}

static bool take_bytes(const json_t *json, ph_value *value, struct ph__refusal *why) {
    size_t size;
    void *bytes = ph__base64_decode(json_string_value(json), json_string_length(json), &size);

    if (!bytes)
        return refuse(why, size ? "there is no memory for it" : "bytes are written in base64, with padding");
    value->bytes = (ph_bytes){bytes, size};
    return true;
}

static bool take_string(const json_t *json, ph_value *value, struct ph__refusal *why) {
    char *text = copy(json_string_value(json), json_string_length(json));

    if (!text)
        return refuse(why, "there is no memory for it");
    return adopt(text, json_string_length(json), value, why);
}

/* NaN and infinities, which JSON can only write as strings. */
static bool take_special(const json_t *json, ph_value *value, struct ph__refusal *why) {
    static const struct {
        const char *name;
        double number;
    } specials[] = {{"NaN", (double)NAN}, {"Infinity", HUGE_VAL}, {"-Infinity", -HUGE_VAL}};

    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        if (strcmp(json_string_value(json), specials[i].name) != 0)
            continue;
        if (value->type == PH_F32)
            value->f32 = (float)specials[i].number;
        else
            value->f64 = specials[i].number;
        return true;
    }
    return refuse(why, "the only strings for a float are \"NaN\", \"Infinity\" and \"-Infinity\"");
}

/* Everything but numbers. */
static bool take_json(const json_t *json, ph_value *value, struct ph__refusal *why) {
    bool is_float = value->type == PH_F32 || value->type == PH_F64;

    if (value->type == PH_VOID && json_is_null(json))
        return true;
    if (value->type == PH_BOOL && json_is_boolean(json)) {
        value->boolean = json_is_true(json);
        return true;
    }
    if (value->type == PH_STR && json_is_string(json))
        return take_string(json, value, why);
    if (value->type == PH_BYTES && json_is_string(json))
        return take_bytes(json, value, why);
    if (is_float && json_is_string(json))
        return take_special(json, value, why);
    snprintf(why->text, sizeof why->text, "it is not the JSON of %s %s",
             value->type == PH_I32 || value->type == PH_I64 ? "an" : "a", ph__signature_type(value->type));
    return false;
}

static const char *advice_for(ph_type type) {
    switch (type) {
    case PH_STR:
        return ": a string is quoted twice, '\"like this\"', or @PATH";
    case PH_BYTES:
        return ": bytes are a quoted string in base64, '\"aGk=\"', or @PATH";
    case PH_BOOL:
        return ": a bool is true or false";
    case PH_VOID:
        return ": nothing is null";
    default:
        return "";
    }
}

static bool parse_json(const char *text, ph_value *value, struct ph__refusal *why) {
    json_error_t error;
    json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);

    if (!json) {
        snprintf(why->text, sizeof why->text, "it is not JSON%s", advice_for(value->type));
        return false;
    }
    bool taken = take_json(json, value, why);
    json_decref(json);
    return taken;
}

static bool is_number_type(ph_type type) {
    return type == PH_I32 || type == PH_U32 || type == PH_I64 || type == PH_U64 || type == PH_F32 ||
           type == PH_F64;
}

/* Without the space around it, which JSON allows. */
static bool parse_number(const char *text, ph_value *value, struct ph__refusal *why) {
    size_t length = strlen(text);

    while (length && strchr(SPACE, text[length - 1]))
        length--;
    char *word = copy(text, length);
    if (!word)
        return refuse(why, "there is no memory for it");
    bool taken = ph__number_parse(word, value->type, value, why);
    free(word);
    return taken;
}

bool ph__value_parse(const char *text, ph_type type, ph_value *value, struct ph__refusal *why) {
    *value = (ph_value){.type = type};
    if (*text == '@')
        return take_file(text + 1, value, why);
    text += strspn(text, SPACE);
    if (is_number_type(type) && *text != '"')
        return parse_number(text, value, why);
    return parse_json(text, value, why);
}

void ph__value_free(ph_value *value) {
    if (value->type == PH_STR)
        free((void *)value->str);
    else if (value->type == PH_BYTES)
        free((void *)value->bytes.data);
    *value = (ph_value){.type = PH_VOID};
}

size_t ph__value_payload(const ph_value *value) {
    if (value->type == PH_BYTES)
        return value->bytes.size;
    return value->type == PH_STR && value->str ? strlen(value->str) : 0;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* The bytes of the UTF-8 character at (text), which ends in a NUL; 0 when it is none (RFC 3629, section 4).
 */
static size_t character_length(const unsigned char *text) {
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xc2 ? 0
                    : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3
                    : text[0] < 0xf5 ? 4
                                     : 0;

    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* The bytes at (text) that stand in JSON as they are, up to the first that does not. */
static size_t plain_length(const unsigned char *text) {
    size_t length = 0;

    while (text[length] >= 0x20 && text[length] != '"' && text[length] != '\\') {
        size_t step = character_length(text + length);
        if (!step)
            break;
        length += step;
    }
    return length;
}

static void print_escaped(FILE *file, unsigned char byte) {
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (const char *name = names; *name; name += 2)
        if ((unsigned char)*name == byte) {
            fprintf(file, "\\%c", name[1]);
            return;
        }
    if (byte < 0x20)
        fprintf(file, "\\u%04x", byte);
    else
        fputs("\xef\xbf\xbd", file); /* U+FFFD: not UTF-8, and JSON is nothing else */
}

static void print_string(FILE *file, const char *string) {
    const unsigned char *text = (const unsigned char *)string;

    putc('"', file);
    while (*text) {
        size_t length = plain_length(text);
        fwrite(text, 1, length, file);
        text += length;
        if (*text)
            print_escaped(file, *text++);
    }
    putc('"', file);
}

void ph__value_print(FILE *file, const ph_value *value) {
    switch (value->type) {
    case PH_I32:
        fprintf(file, "%" PRId32, value->i32);
        break;
    case PH_U32:
        fprintf(file, "%" PRIu32, value->u32);
        break;
    case PH_I64:
        fprintf(file, "%" PRId64, value->i64);
        break;
    case PH_U64:
        fprintf(file, "%" PRIu64, value->u64);
        break;
    case PH_F32:
        ph__f32_print(file, value->f32);
        break;
    case PH_F64:
        ph__f64_print(file, value->f64);
        break;
    case PH_BOOL:
        fputs(value->boolean ? "true" : "false", file);
        break;
    case PH_STR:
        print_string(file, value->str);
        break;
    case PH_BYTES:
        putc('"', file);
        ph__base64_print(file, value->bytes.data, value->bytes.size);
        putc('"', file);
        break;
    default:
        fputs("null", file);
        break;
    }
}
