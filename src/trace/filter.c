/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Parses filters and answers them (filter.h). The filter comes from whoever traces; what it is compared with
 * comes from a guest's file. fnmatch of both glibc and musl goes back to the last star only, so no name makes
 * it slow.
 */
#include "trace/filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/level.h"

/* Bytes of an element that a message shows. */
#define SHOWN_MAX 120

/* A part of the text, without the spaces around it. */
struct part {
    const char *start;
    size_t length;
};

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct part part_of(const char *start, const char *end) {
    while (start < end && is_space(*start))
        start++;
    while (end > start && is_space(end[-1]))
        end--;
    return (struct part){start, (size_t)(end - start)};
}

/* For a message: cut, and ph__error_set makes a character that the cut broke printable. */
static int shown(const struct part *part) {
    return part->length < SHOWN_MAX ? (int)part->length : SHOWN_MAX;
}

/* The end of the set of characters that begins with the '[' at (glob), NULL when it has none. */
static const char *set_end(const char *glob) {
    const char *at = glob + 1;

    if (*at == '!' || *at == '^')
        at++;
    if (*at == ']')
        at++;
    while (*at && *at != ']') {
        /* [:alpha:], [.x.] and [=x=] have a ']' of their own. */
        if (*at == '[' && (at[1] == ':' || at[1] == '.' || at[1] == '=')) {
            const char closing[] = {at[1], ']', 0};
            const char *end = strstr(at + 2, closing);
            if (end)
                at = end + 1;
        } else if (*at == '\\' && at[1]) {
            at++;
        }
        at++;
    }
    return *at ? at : NULL;
}

/* The '[' in (glob) that has no ']', NULL when there is none. fnmatch would take it for a character, which is
 * not what anybody means. */
static const char *unclosed_find(const char *glob) {
    for (const char *at = glob; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++;
        } else if (*at == '[') {
            const char *end = set_end(at);
            if (!end)
                return at;
            at = end;
        }
    }
    return NULL;
}

/* How many characters of (glob), whose sets are closed, stand for themselves. */
static uint32_t literals_count(const char *glob) {
    uint32_t count = 0;

    for (const char *at = glob; *at; at++) {
        if (*at == '*' || *at == '?')
            continue;
        if (*at == '[') {
            at = set_end(at);
            continue;
        }
        if (*at == '\\' && at[1])
            at++;
        count += (*at & 0xc0) != 0x80 ? 1 : 0;
    }
    return count;
}

/* Takes one element of the list, the (number)th. */
static ph_status element_take(struct part element, uint32_t number, struct ph__filter *filter,
                              ph_error *error) {
    const char *equals = element.length ? memrchr(element.start, '=', element.length) : NULL;
    struct part target = {0};
    struct part level = element;
    ph_level wanted;

    if (element.length == 0)
        return ph__error_set(
            error, PH_E_ARGUMENT,
            "the filter's element %u is empty: an element is [TARGET=]LEVEL, and LEVEL is " PH__LEVELS,
            number);
    if (equals) {
        target = part_of(element.start, equals);
        level = part_of(equals + 1, element.start + element.length);
        if (target.length == 0)
            return ph__error_set(error, PH_E_ARGUMENT,
                                 "the filter's element '%.*s' has no target before its '=': an element is "
                                 "[TARGET=]LEVEL, and LEVEL is " PH__LEVELS,
                                 shown(&element), element.start);
    }
    if (!ph__level_find(level.start, level.length, &wanted))
        return ph__error_set(
            error, PH_E_ARGUMENT,
            "the filter's element '%.*s' has the level '%.*s', which is none: LEVEL is " PH__LEVELS,
            shown(&element), element.start, shown(&level), level.start);
    if (!equals) {
        filter->level = wanted;
        return PH_OK;
    }

    if (filter->count == PH__FILTER_RULES_MAX)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the filter has more than %u targets, the most that there can be",
                             PH__FILTER_RULES_MAX);
    struct ph__filter_rule *rule = &filter->rules[filter->count];
    rule->target = malloc(target.length + 1);
    if (!rule->target)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a filter");
    memcpy(rule->target, target.start, target.length);
    rule->target[target.length] = 0;
    if (unclosed_find(rule->target)) {
        free(rule->target);
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the filter's element '%.*s' has a '[' without its ']': \\[ is the character",
                             shown(&element), element.start);
    }
    rule->literals = literals_count(rule->target);
    rule->level = wanted;
    filter->count++;
    return PH_OK;
}

ph_status ph__filter_parse(const char *text, struct ph__filter *filter, ph_error *error) {
    ph_status status = PH_OK;
    uint32_t elements = 1;
    uint32_t number = 1;

    *filter = (struct ph__filter){.level = PH_LEVEL_INFO};
    for (const char *at = text; *at; at++)
        elements += *at == ',' && elements < PH__FILTER_RULES_MAX ? 1 : 0;
    filter->rules = calloc(elements, sizeof *filter->rules);
    if (!filter->rules)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a filter");

    for (const char *start = text;; number++) {
        const char *end = strchrnul(start, ',');
        status = element_take(part_of(start, end), number, filter, error);
        if (status != PH_OK) {
            ph__filter_free(filter);
            return status;
        }
        if (*end == 0)
            return PH_OK;
        start = end + 1;
    }
}

void ph__filter_free(struct ph__filter *filter) {
    for (uint32_t i = 0; i < filter->count; i++)
        free(filter->rules[i].target);
    free(filter->rules);
    *filter = (struct ph__filter){.level = PH_LEVEL_INFO};
}

static bool is_match(const char *glob, const char *text) {
    return text && fnmatch(glob, text, 0) == 0;
}

ph_level ph__filter_level(const struct ph__filter *filter, const char *file, const char *function,
                          const char *name) {
    const char *slash = file ? strrchr(file, '/') : NULL;
    const struct ph__filter_rule *best = NULL;

    for (uint32_t i = 0; i < filter->count; i++) {
        const struct ph__filter_rule *rule = &filter->rules[i];
        if (best && rule->literals < best->literals)
            continue;
        if (is_match(rule->target, name) || is_match(rule->target, function) ||
            is_match(rule->target, file) || (slash && is_match(rule->target, slash + 1)))
            best = rule;
    }
    return best ? best->level : filter->level;
}

ph_level ph__filter_highest(const struct ph__filter *filter) {
    ph_level highest = filter->level;

    for (uint32_t i = 0; i < filter->count; i++)
        if (filter->rules[i].level > highest)
            highest = filter->rules[i].level;
    return highest;
}
