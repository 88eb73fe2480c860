/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A strict reader of OpenMetrics (openmetrics.h). Section numbers are those of the specification 1.0
 * (https://prometheus.io/docs/specs/om/open_metrics_spec/).
 */
#include "support/openmetrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_HERE 128
#define FAMILIES_MAX 128

struct family {
    char name[NAME_MAX_HERE];
    char type[16];
    bool typed, helped, has_unit, sampled;
};

struct reader {
    struct family families[FAMILIES_MAX]; /* the last is the one under way */
    size_t count;
    char last_labels[512]; /* of the sample before, with its name */
    /* The histogram under way. */
    double last_bound, last_bucket;
    bool infinite;
};

static char wrong[256];

#define WRONG(...) (snprintf(wrong, sizeof wrong, __VA_ARGS__), false)

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

/* metricname and label-name, but for the colons of recording rules. */
static bool take_name(const char **at, char *name) {
    size_t length = 0;

    while (is_letter((*at)[length]) || (length && is_digit((*at)[length])))
        length++;
    if (!length || length >= NAME_MAX_HERE)
        return WRONG("no name");
    memcpy(name, *at, length);
    name[length] = 0;
    *at += length;
    return true;
}

static bool take(const char **at, const char *text) {
    if (strncmp(*at, text, strlen(text)) != 0)
        return WRONG("'%s' is missing", text);
    *at += strlen(text);
    return true;
}

/* realnumber */
static bool take_number(const char **at, double *number) {
    const char *begin = *at;

    if (strncmp(begin, "+Inf", 4) == 0) {
        *at += 4;
        *number = HUGE_VAL;
        return true;
    }
    const char *end = begin + (*begin == '-' || *begin == '+');
    size_t digits = 0;
    for (; is_digit(*end); end++)
        digits++;
    if (*end == '.')
        for (end++; is_digit(*end); end++)
            digits++;
    if (!digits)
        return WRONG("no number");
    if (*end == 'e' || *end == 'E') {
        end += 1 + (end[1] == '-' || end[1] == '+');
        if (!is_digit(*end))
            return WRONG("an exponent without digits");
        while (is_digit(*end))
            end++;
    }
    *number = strtod(begin, NULL);
    *at = end;
    return true;
}

/* What follows a name in a descriptor: the rest of the line. */
static bool check_help(const char *text) {
    for (; *text; text++)
        if ((*text == '\\' && !strchr("\\n\"", *++text)) || !*text)
            return WRONG("a wrong escape in HELP");
    return true;
}

/* The family of a descriptor: the one under way, or a new one. */
static struct family *family_of(struct reader *reader, const char *name) {
    struct family *last = reader->count ? &reader->families[reader->count - 1] : NULL;

    if (last && strcmp(last->name, name) == 0)
        return last->sampled ? NULL : last;
    for (size_t i = 0; i < reader->count; i++)
        if (strcmp(reader->families[i].name, name) == 0)
            return NULL;
    if (reader->count == FAMILIES_MAX)
        return NULL;
    last = &reader->families[reader->count++];
    memset(last, 0, sizeof *last);
    snprintf(last->name, sizeof last->name, "%s", name);
    reader->last_labels[0] = 0;
    return last;
}

/* A histogram has to be whole when the next family begins. */
static bool family_end(struct reader *reader) {
    const struct family *last = reader->count ? &reader->families[reader->count - 1] : NULL;

    if (last && !last->sampled)
        return WRONG("%s has no sample", last->name);
    return true;
}

static bool check_descriptor(struct reader *reader, const char *line) {
    static const char *const types[] = {"counter", "gauge", "histogram"};
    char name[NAME_MAX_HERE];
    const char *at = line + 2;
    const char kind = *at;

    if (!take(&at, kind == 'T'   ? "TYPE "
                   : kind == 'H' ? "HELP "
                                 : "UNIT ") ||
        !take_name(&at, name) || !take(&at, " "))
        return false;
    if (!reader->count || strcmp(reader->families[reader->count - 1].name, name) != 0)
        if (!family_end(reader))
            return false;
    struct family *family = family_of(reader, name);
    if (!family)
        return WRONG("%s is described behind its samples, or again", name);
    bool *seen = kind == 'T' ? &family->typed : kind == 'H' ? &family->helped : &family->has_unit;
    if (*seen)
        return WRONG("said twice of %s", name);
    *seen = true;
    if (kind == 'H')
        return check_help(at);
    if (kind == 'U')
        return (ends_with(name, at) && name[strlen(name) - strlen(at) - 1] == '_') ||
               WRONG("%s does not end with its unit %s", name, at);
    snprintf(family->type, sizeof family->type, "%s", at);
    if (ends_with(name, "_total") || ends_with(name, "_created") || ends_with(name, "_bucket") ||
        ends_with(name, "_count") || ends_with(name, "_sum") || ends_with(name, "_info"))
        return WRONG("%s has the end of a sample's name", name);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(at, types[i]) == 0)
            return true;
    return WRONG("no type %s", at);
}

/* labels; (bound) gets the value of le as text, "" without one. */
static bool take_labels(const char **at, char *bound) {
    char name[NAME_MAX_HERE], names[8][NAME_MAX_HERE];
    size_t count = 0;

    bound[0] = 0;
    if (**at != '{')
        return true;
    do {
        size_t length = 0;
        ++*at;
        if (!take_name(at, name) || !take(at, "=\""))
            return false;
        for (size_t i = 0; i < count; i++)
            if (strcmp(names[i], name) == 0)
                return WRONG("two labels %s", name);
        if (count < 8)
            snprintf(names[count++], sizeof names[0], "%s", name);
        for (; **at && **at != '"'; ++*at, length++) {
            if (**at == '\\' && !strchr("\\n\"", *++*at))
                return WRONG("a wrong escape in a label");
            if (strcmp(name, "le") == 0 && length + 1 < NAME_MAX_HERE) {
                bound[length] = **at;
                bound[length + 1] = 0;
            }
        }
        if (!take(at, "\""))
            return false;
    } while (**at == ',');
    return take(at, "}");
}

/* "Canonical Numbers": what le has to be, so that it is the same text everywhere. */
static bool is_canonical(const char *bound) {
    const char *exponent = strchr(bound, 'e');

    if (strcmp(bound, "+Inf") == 0)
        return true;
    return exponent ? strlen(exponent) == 4 : strchr(bound, '.') != NULL;
}

static bool check_bucket(struct reader *reader, const char *bound, double value) {
    const char *at = bound;
    double number;

    if (!take_number(&at, &number) || *at || !is_canonical(bound))
        return WRONG("le=\"%s\" is not canonical", bound);
    if (number <= reader->last_bound || value < reader->last_bucket || reader->infinite)
        return WRONG("bucket %s is not above the one before", bound);
    reader->last_bound = number;
    reader->last_bucket = value;
    reader->infinite = strcmp(bound, "+Inf") == 0;
    return true;
}

static bool check_histogram(struct reader *reader, const char *end, const char *bound, double value) {
    if (strcmp(end, "_bucket") == 0)
        return check_bucket(reader, bound, value);
    if (bound[0])
        return WRONG("le on %s", end);
    if (strcmp(end, "_count") == 0)
        return (reader->infinite && value == reader->last_bucket) ||
               WRONG("the count is not the last bucket");
    return strcmp(end, "_sum") == 0 || WRONG("no sample %s in a histogram", end);
}

static bool check_sample(struct reader *reader, const char *line) {
    char name[NAME_MAX_HERE], bound[NAME_MAX_HERE];
    struct family *family = reader->count ? &reader->families[reader->count - 1] : NULL;
    const char *at = line;
    double value;

    if (!take_name(&at, name) || !take_labels(&at, bound))
        return false;
    const size_t key = (size_t)(at - line);
    if (!take(&at, " ") || !take_number(&at, &value))
        return false;
    if (*at)
        return WRONG("more behind the value: '%s'", at);
    if (!family || !family->typed || strncmp(name, family->name, strlen(family->name)) != 0)
        return WRONG("%s is of no family here", name);
    if (key < sizeof reader->last_labels) {
        if (strncmp(reader->last_labels, line, key) == 0 && reader->last_labels[key] == 0)
            return WRONG("the same sample twice");
        memcpy(reader->last_labels, line, key);
        reader->last_labels[key] = 0;
    }
    const char *end = name + strlen(family->name);
    if (!family->sampled) {
        reader->last_bound = reader->last_bucket = -1;
        reader->infinite = false;
    }
    family->sampled = true;
    if (family->type[0] == 'h')
        return check_histogram(reader, end, bound, value);
    if (strcmp(end, family->type[0] == 'c' ? "_total" : "") != 0)
        return WRONG("a %s with a sample %s", family->type, name);
    return value >= 0 || family->type[0] == 'g' || WRONG("a counter below 0");
}

const char *openmetrics_check(const char *text) {
    static struct reader reader;
    unsigned number = 0;
    char line[1024], message[256];
    bool ended = false;

    memset(&reader, 0, sizeof reader);
    while (*text) {
        const size_t length = strcspn(text, "\n");
        bool right = !ended || WRONG("more behind # EOF");
        number++;
        if (!text[length] || length >= sizeof line || !length)
            right = WRONG("a line that is empty, too long or without its end");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (right && strcmp(line, "# EOF") == 0)
            ended = family_end(&reader), right = ended;
        else if (right)
            right = line[0] == '#' ? check_descriptor(&reader, line) : check_sample(&reader, line);
        if (!right) {
            snprintf(message, sizeof message, "line %u, '%.100s': %.100s", number, line, wrong);
            snprintf(wrong, sizeof wrong, "%s", message);
            return wrong;
        }
        text += length + 1;
    }
    return ended ? NULL : "no # EOF at the end";
}

double openmetrics_value(const char *text, const char *key) {
    const size_t length = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtod(line + length, NULL);
    return -1;
}
