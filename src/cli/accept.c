/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The header Accept (RFC 9110, section 12.5.1) as far as two formats need it: a list of types, each with
 * parameters, of which `q` is its weight and `version` the version that is meant. It comes from anybody.
 */
#include "cli/accept.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Weights count in thousandths, which is what the header can say. */
#define WEIGHT_MAX 1000u

/* A part of the header. */
struct word {
    const char *text;
    size_t length;
};

static bool is(const struct word *word, const char *name) {
    return word->length == strlen(name) && strncasecmp(word->text, name, word->length) == 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Takes what is before the next of (ends) off (*text), which then is at that character. Without the blanks
 * around it. */
static struct word take(const char **text, const char *ends) {
    struct word word = {*text, strcspn(*text, ends)};

    *text += word.length;
    while (word.length && is_blank(word.text[0])) {
        word.text++;
        word.length--;
    }
    while (word.length && is_blank(word.text[word.length - 1]))
        word.length--;
    return word;
}

/* `0`, `0.5`, `1.000`: all else counts as not wanted. */
static unsigned weight_of(const struct word *word) {
    unsigned weight = 0, digit = WEIGHT_MAX;

    if (!word->length || (word->length > 1 && word->text[1] != '.'))
        return 0;
    for (size_t i = 0; i < word->length && i < 5; i++) {
        if (i == 1)
            continue;
        if (word->text[i] < '0' || word->text[i] > '9')
            return 0;
        weight += (unsigned)(word->text[i] - '0') * digit;
        digit /= 10;
    }
    return weight <= WEIGHT_MAX ? weight : 0;
}

/* Takes one type with its parameters off (*text). */
struct range {
    struct word type;
    struct word version; /* without its quotes; empty for any */
    unsigned weight;
};

static struct range take_range(const char **text) {
    struct range range = {.type = take(text, ",;"), .weight = WEIGHT_MAX};

    while (**text == ';') {
        ++*text;
        const struct word name = take(text, ",;=");
        struct word value = {*text, 0};
        if (**text == '=') {
            ++*text;
            value = take(text, ",;");
        }
        if (value.length >= 2 && value.text[0] == '"' && value.text[value.length - 1] == '"')
            value = (struct word){value.text + 1, value.length - 2};
        if (is(&name, "q"))
            range.weight = weight_of(&value);
        else if (is(&name, "version"))
            range.version = value;
    }
    return range;
}

ph_metrics_format ph__accept_format(const char *accept) {
    unsigned open = 0, plain = 0;

    while (accept && *accept) {
        const struct range range = take_range(&accept);
        if (*accept == ',')
            accept++;
        if (is(&range.type, "application/openmetrics-text") &&
            (!range.version.length || is(&range.version, "1.0.0"))) {
            if (range.weight > open)
                open = range.weight;
        } else if (is(&range.type, "text/plain") && range.weight > plain) {
            plain = range.weight;
        }
    }
    return open > 0 && open >= plain ? PH_METRICS_OPENMETRICS : PH_METRICS_PROMETHEUS;
}
