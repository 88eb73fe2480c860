/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Sinks of the Common Trace Format for tests (ctf_fixture.h).
 */
#include "ctf_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void writer_init(struct writer *writer) {
    static unsigned count;
    ph_error error;

    *writer = (struct writer){0};
    snprintf(writer->folder, sizeof writer->folder, "/tmp/pinhole-ctf-%d-%u", (int)getpid(), count++);
    if (ph__ctf_sink_open(writer->folder, &writer->system_error, &writer->sink, &error) != PH_OK)
        fail_msg("%s", error.message);
}

void writer_close(struct writer *writer) {
    writer->sink.close(writer->sink.context);
}

static void remove_file(const char *folder, const char *name) {
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

void writer_remove(struct writer *writer) {
    remove_file(writer->folder, "metadata");
    remove_file(writer->folder, "stream");
    assert_int_equal(rmdir(writer->folder), 0);
}

off_t stream_size(const struct writer *writer) {
    char path[128];
    struct stat information;

    snprintf(path, sizeof path, "%s/stream", writer->folder);
    assert_int_equal(stat(path, &information), 0);
    return information.st_size;
}

/* ---- reading back -------------------------------------------------------------------------------------- */

char *read_back(const struct writer *writer) {
    char command[256];
    char *text = NULL;
    size_t size = 0;

    fflush(NULL);
    snprintf(command, sizeof command, "babeltrace2 --clock-seconds --no-delta %s 2>&1", writer->folder);
    FILE *reader = popen(command, "r"); /* NOLINT(cert-env33-c): a path of the test's own */
    assert_non_null(reader);
    assert_true(getdelim(&text, &size, 0, reader) >= 0 || feof(reader));
    int status = pclose(reader);
    if (status != 0)
        fail_msg("babeltrace2 ended with %d: %s", status, text ? text : "");
    return text;
}

char *take(struct writer *writer) {
    writer_close(writer);
    assert_int_equal(writer->system_error, 0);
    char *text = read_back(writer);
    writer_remove(writer);
    return text;
}

void assert_follows(const char **after, const char *needle) {
    const char *found = strstr(*after, needle);

    if (!found)
        fail_msg("'%s' is not in:\n%.8000s", needle, *after);
    *after = found + strlen(needle);
}

void assert_has(const char *text, const char *needle) {
    assert_follows(&text, needle);
}

size_t lines_of(const char *text) {
    size_t lines = 0;

    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

/* ---- what is fed --------------------------------------------------------------------------------------- */

ph_trace_span span_of(uint64_t id, uint64_t parent, const char *name, uint64_t start_ns, uint64_t end_ns) {
    return (ph_trace_span){.size = sizeof(ph_trace_span),
                           .sandbox = 1,
                           .id = id,
                           .parent = parent,
                           .kind = parent ? PH_SPAN_USER : PH_SPAN_CALL,
                           .level = PH_LEVEL_INFO,
                           .name = name,
                           .start_ns = EPOCH + start_ns,
                           .end_ns = EPOCH + end_ns};
}

void give(struct writer *writer, ph_trace_span span) {
    writer->sink.span(writer->sink.context, &span);
}

void give_span(struct writer *writer, uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
               uint64_t end_ns) {
    give(writer, span_of(id, parent, name, start_ns, end_ns));
}

void give_event(struct writer *writer, const char *name, const char *message, uint64_t time_ns,
                const ph_field *fields, size_t count) {
    const ph_trace_event event = {.size = sizeof event,
                                  .sandbox = 1,
                                  .span = 3,
                                  .level = PH_LEVEL_WARN,
                                  .name = name,
                                  .message = message,
                                  .time_ns = EPOCH + time_ns,
                                  .fields = fields,
                                  .field_count = count};

    writer->sink.event(writer->sink.context, &event);
}

ph_field text_field(const char *name, const char *text) {
    size_t size = strlen(text);

    return (ph_field){.name = name, .value = {.type = PH_STR, .str = text}, .size = size, .full_size = size};
}

ph_field number_field(const char *name, ph_type type, uint64_t bits) {
    return (ph_field){.name = name, .value = {.type = type, .u64 = bits}};
}
