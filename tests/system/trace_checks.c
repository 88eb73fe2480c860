/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Comparing what came with what a guest said (trace_checks.h).
 */
#include "system/trace_checks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool guest_is_built(const char *guest) {
    return !strstr(guest, "clang") || access(test_guest_path(guest), R_OK) == 0;
}

void filtered_begin(struct traced *traced, const char *guest, const char *filter, const ph_config *config) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;

    tracer_config.filter = filter;
    traced_begin(traced, guest, config, &tracer_config);
    traced_flush(traced);
}

void traced_run(struct traced *traced, const char *name, const ph_value *args, size_t count) {
    trace_collect_clear(&traced->collect);
    traced_call(traced, name, args, count, PH_OK, NULL);
    traced_flush(traced);
}

void sound_end(struct traced *traced) {
    const ph_trace_stats stats = traced_stats(traced);

    assert_int_equal(stats.malformed, 0);
    assert_int_equal(stats.unknown_ends, 0);
    assert_int_equal(stats.gaps, 0);
    traced_end(traced);
}

static bool is_equal(const ph_field *got, const ph_value *wanted) {
    if (got->value.type != wanted->type)
        return false;
    switch (wanted->type) {
    case PH_BOOL:
        return got->value.boolean == wanted->boolean;
    case PH_STR:
        return strcmp(got->value.str, wanted->str) == 0 && got->size == strlen(wanted->str) &&
               got->full_size == got->size;
    case PH_BYTES:
        return got->size == wanted->bytes.size && got->value.bytes.size == got->size &&
               got->full_size == got->size &&
               (got->size == 0 || memcmp(got->value.bytes.data, wanted->bytes.data, got->size) == 0);
    default:
        return got->value.u64 == wanted->u64; /* also -0.0 and NaN, bit by bit */
    }
}

void fields_check(const char *what, const ph_field *fields, size_t count, const struct want *wanted,
                  size_t wanted_count) {
    if (count != wanted_count)
        fail_msg("`%s` has %zu fields, not %zu", what, count, wanted_count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, wanted[i].name) != 0 || !is_equal(&fields[i], &wanted[i].value))
            fail_msg("`%s`: field %zu, `%s`, is not `%s` with its value", what, i, fields[i].name,
                     wanted[i].name);
}

/* Text of line (line) of (file), a path as seen from the build directory. False when it is not at hand: tests
 * are run elsewhere, too. */
static bool line_read(const char *file, uint32_t line, char *text, int size) {
    char path[1024] = "";
    bool found = true;

    if (file[0] != '/') {
        snprintf(path, sizeof path, "%s", test_guest_path("trace"));
        for (int i = 0; i < 3; i++) /* tests/guests/trace */
            *strrchr(path, '/') = 0;
    }
    snprintf(path + strlen(path), sizeof path - strlen(path), "%s%s", *path ? "/" : "", file);
    FILE *stream = fopen(path, "r");
    if (!stream)
        return false;
    for (uint32_t i = 0; found && i < line; i++)
        found = fgets(text, size, stream) != NULL;
    fclose(stream);
    if (!found)
        fail_msg("%s has no line %u", path, line);
    return true;
}

void source_check(const ph_source *source, const char *name, const char *file, const char *function) {
    char text[512], quoted[64];

    assert_non_null(source->file);
    size_t length = strlen(source->file);
    if (length < strlen(file) || strcmp(source->file + length - strlen(file), file) != 0)
        fail_msg("`%s` is in %s", name, source->file);
    if (strcmp(source->function, function) != 0)
        fail_msg("`%s` is in %s, not in %s", name, source->function, function);
    assert_true(source->line > 0);
    snprintf(quoted, sizeof quoted, "\"%s", name);
    if (line_read(source->file, source->line, text, sizeof text) && !strstr(text, quoted))
        fail_msg("`%s` is not in line %u: %s", name, source->line, text);
}

const ph_trace_span *span_number(const struct traced *traced, const char *name, size_t index) {
    const ph_trace_span *span = NULL;
    size_t at = 0;

    for (size_t i = 0; i <= index; i++, at++) {
        span = trace_span_find(&traced->collect, name, at, &at);
        if (!span) {
            trace_collect_print(&traced->collect);
            fail_msg("there are only %zu spans `%s`", i, name);
        }
    }
    return span;
}

const ph_trace_span *span_in(const struct traced *traced, const char *name, size_t index,
                             const ph_trace_span *parent) {
    const ph_trace_span *span = span_number(traced, name, index);

    if (span->parent != parent->id) {
        trace_collect_print(&traced->collect);
        fail_msg("`%s` is not right under `%s`", name, parent->name);
    }
    if (span->unfinished)
        fail_msg("`%s` is unfinished", name);
    assert_int_equal(span->status, PH_OK);
    return span;
}

const ph_trace_event *event_in(const struct traced *traced, const char *name, const ph_trace_span *span) {
    const ph_trace_event *event = trace_event_named(&traced->collect, name);

    if (event->span != span->id)
        fail_msg("`%s` is not in `%s`", name, span->name);
    return event;
}

const ph_trace_event *event_next(const struct traced *traced, size_t *at) {
    if (*at >= traced->collect.event_count)
        fail_msg("there are only %zu events", (size_t)traced->collect.event_count);
    return &traced->collect.events[(*at)++].event;
}
