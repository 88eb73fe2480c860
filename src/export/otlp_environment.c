/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * OpenTelemetry's environment variables one by one (otlp_environment.h): texts, numbers, flags, lists of
 * pairs, and the sampler. What they mean together is in otlp_settings.c. Nothing here is kept.
 */
#include "export/otlp_environment.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NUMBER_MAX 2147483647u /* what the specification asks for at least, and enough */

void ph__otlp_note(const struct ph__otlp_notes *notes, const char *format, ...) {
    char text[512];
    va_list arguments;

    if (!notes->tell)
        return;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    ph__text_copy_printable(text, sizeof text, text, strlen(text));
    notes->tell(notes->context, text);
}

const char *ph__environment_text(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool number_parse(const char *text, uint32_t *number) {
    uint64_t value = 0;

    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > NUMBER_MAX)
            return false;
    }
    *number = (uint32_t)value;
    return true;
}

bool ph__environment_number(const char *name, uint32_t least, uint32_t *number,
                            const struct ph__otlp_notes *notes) {
    uint32_t value = 0;
    const char *text = ph__environment_text(name);

    if (!text)
        return false;
    if (!number_parse(text, &value) || value < least) {
        ph__otlp_note(notes, "%s=%.64s is no number from %u to %u, and is ignored", name, text, least,
                      NUMBER_MAX);
        return false;
    }
    *number = value;
    return true;
}

bool ph__environment_flag(const char *name, const struct ph__otlp_notes *notes) {
    const char *text = ph__environment_text(name);

    if (!text || strcasecmp(text, "false") == 0)
        return false;
    if (strcasecmp(text, "true") == 0)
        return true;
    ph__otlp_note(notes, "%s=%.64s is neither true nor false, and counts as false", name, text);
    return false;
}

/* ---- pairs --------------------------------------------------------------------------------------------- */

void ph__otlp_pairs_free(struct ph__otlp_pairs *pairs) {
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->list[i].name);
        free(pairs->list[i].value);
    }
    free(pairs->list);
    *pairs = (struct ph__otlp_pairs){0};
}

const char *ph__otlp_pairs_get(const struct ph__otlp_pairs *pairs, const char *name) {
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->list[i].name, name) == 0)
            return pairs->list[i].value;
    return NULL;
}

/* Takes (name) and (value), which are of malloc(), in any case. */
static bool pairs_take(struct ph__otlp_pairs *pairs, char *name, char *value) {
    struct ph__otlp_pair *list;

    if (!name || !value)
        goto fail;
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->list[i].name, name) != 0)
            continue;
        free(pairs->list[i].value);
        pairs->list[i].value = value;
        free(name);
        return true;
    }
    list = realloc(pairs->list, (pairs->count + 1) * sizeof *list);
    if (!list)
        goto fail;
    list[pairs->count++] = (struct ph__otlp_pair){name, value};
    pairs->list = list;
    return true;
fail:
    free(name);
    free(value);
    return false;
}

bool ph__otlp_pairs_set(struct ph__otlp_pairs *pairs, const char *name, const char *value) {
    return pairs_take(pairs, strdup(name), strdup(value));
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void trim(const char **text, size_t *length) {
    while (*length > 0 && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        (*length)--;
}

/* Decodes the (length) bytes at (text), without the blanks around them, to memory of malloc(). PH_E_ARGUMENT
 * for what is no percent-encoding, or would be a NUL. */
static ph_status decode(const char *text, size_t length, char **result) {
    size_t used = 0;

    trim(&text, &length);
    char *out = malloc(length + 1);
    if (!out)
        return PH_E_MEMORY;
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if (byte == '%') {
            const int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
            const int low = i + 2 < length ? hex_digit(text[i + 2]) : -1;
            byte = high < 0 || low < 0 ? 0 : (char)(high << 4 | low);
            i += 2;
        }
        if (!byte) {
            free(out);
            return PH_E_ARGUMENT;
        }
        out[used++] = byte;
    }
    out[used] = 0;
    *result = out;
    return PH_OK;
}

/* One pair of (length) bytes. */
/* More is a mistake; and each name is looked for among those before it. */
#define PAIRS_MAX 1024u

static ph_status pair_parse(const char *text, size_t length, struct ph__otlp_pairs *pairs,
                            const char **problem) {
    char *name = NULL;
    char *value = NULL;
    const char *equals = memchr(text, '=', length);

    *problem = "a pair without '='";
    if (!equals)
        return PH_E_ARGUMENT;
    *problem = "more than 1024 pairs";
    if (pairs->count == PAIRS_MAX)
        return PH_E_ARGUMENT;
    const size_t name_length = (size_t)(equals - text);
    *problem = "a '%' without two hexadecimal digits, or a NUL";
    ph_status status = decode(text, name_length, &name);
    if (status == PH_OK)
        status = decode(equals + 1, length - name_length - 1, &value);
    if (status == PH_OK && !*name) {
        *problem = "a pair without a name";
        status = PH_E_ARGUMENT;
    }
    if (status != PH_OK) {
        free(name);
        free(value);
        return status;
    }
    return pairs_take(pairs, name, value) ? PH_OK : PH_E_MEMORY;
}

ph_status ph__otlp_pairs_parse(const char *text, struct ph__otlp_pairs *pairs, const char **problem) {
    ph_status status = PH_OK;

    while (status == PH_OK && *text) {
        const size_t length = strcspn(text, ",");
        /* Empty places in a list are allowed in HTTP (RFC 9110, 5.6.1). */
        if (strspn(text, " \t") < length)
            status = pair_parse(text, length, pairs, problem);
        text += length;
        text += *text == ',';
    }
    if (status != PH_OK)
        ph__otlp_pairs_free(pairs);
    return status;
}

/* ---- the sampler --------------------------------------------------------------------------------------- */

/* A number from 0 to 1, with a point whatever the process's locale has. */
static bool ratio_parse(const char *text, double *ratio) {
    char *end = NULL;

    if (strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    const double value = strtod_l(text, &end, c);
    freelocale(c);
    if (end == text || *end || !(value >= 0 && value <= 1))
        return false;
    *ratio = value;
    return true;
}

void ph_otlp_sampler_from_environment(ph_sampler *sampler, double *ratio, ph_diagnostics_fn diagnostics,
                                      void *diagnostics_context) {
    static const struct {
        const char *name;
        ph_sampler sampler;
    } known[] = {
        {"always_on", PH_SAMPLER_ALWAYS_ON},
        {"always_off", PH_SAMPLER_ALWAYS_OFF},
        {"traceidratio", PH_SAMPLER_RATIO},
        {"parentbased_always_on", PH_SAMPLER_PARENT_ALWAYS_ON},
        {"parentbased_always_off", PH_SAMPLER_PARENT_ALWAYS_OFF},
        {"parentbased_traceidratio", PH_SAMPLER_PARENT_RATIO},
    };
    const struct ph__otlp_notes notes = {diagnostics, diagnostics_context};
    const char *name = ph__environment_text("OTEL_TRACES_SAMPLER");
    const char *argument = ph__environment_text("OTEL_TRACES_SAMPLER_ARG");
    size_t i = 0;

    if (!sampler || !ratio || !name)
        return;
    while (i < sizeof known / sizeof known[0] && strcmp(known[i].name, name) != 0)
        i++;
    if (i == sizeof known / sizeof known[0]) {
        ph__otlp_note(&notes, "OTEL_TRACES_SAMPLER=%s is no sampler that pinhole has, and is ignored", name);
        return;
    }
    *sampler = known[i].sampler;
    if (*sampler != PH_SAMPLER_RATIO && *sampler != PH_SAMPLER_PARENT_RATIO)
        return;
    *ratio = 1;
    if (argument && !ratio_parse(argument, ratio))
        ph__otlp_note(&notes, "OTEL_TRACES_SAMPLER_ARG=%s is no number from 0 to 1, and is ignored",
                      argument);
}
