/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Sizes, durations and counts of the command line (options.h). All arithmetic is on integers and checked, so
 * that a quantity that does not fit is refused and never wraps.
 */
#include <string.h>

#include "cli/options.h"

/* Takes digits off (*text) into (*number). False when there are none, or too many. */
static bool take_integer(const char **text, uint64_t *number) {
    const char *start = *text;

    *number = 0;
    while (**text >= '0' && **text <= '9') {
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(**text - '0'), number))
            return false;
        *text += 1;
    }
    return *text > start;
}

bool ph__count_parse(const char *text, uint64_t *count) {
    return take_integer(&text, count) && !*text && *count > 0;
}

bool ph__size_parse(const char *text, uint64_t *bytes) {
    static const char units[] = "KMG";

    if (!take_integer(&text, bytes))
        return false;
    const char *found = *text ? strchr(units, *text) : NULL;
    if (found) {
        uint64_t unit = 1024;
        for (const char *smaller = units; smaller < found; smaller++)
            unit *= 1024;
        if (__builtin_mul_overflow(*bytes, unit, bytes))
            return false;
        text++;
    }
    return !*text && *bytes > 0;
}

/* The nanoseconds of the unit (name); 0 when there is no such unit, or none at all: a bare number means
 * something else to everybody. */
static uint64_t unit_of(const char *name) {
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(name, units[i].name) == 0)
            return units[i].ns;
    return 0;
}

bool ph__duration_parse(const char *text, uint64_t *ns) {
    uint64_t whole, fraction = 0, scale = 1, scaled;

    if (!take_integer(&text, &whole))
        return false;
    if (*text == '.') {
        const char *digits = ++text;
        if (!take_integer(&text, &fraction))
            return false;
        for (; digits < text; digits++)
            if (__builtin_mul_overflow(scale, 10, &scale))
                return false;
    }
    uint64_t unit = unit_of(text);
    if (!unit || __builtin_mul_overflow(whole, unit, ns) || __builtin_mul_overflow(fraction, unit, &scaled))
        return false;
    /* Rounded up: a little time is not none, which would be no limit at all. */
    uint64_t rest = scaled / scale + (scaled % scale ? 1 : 0);
    return !__builtin_add_overflow(*ns, rest, ns) && *ns > 0;
}
