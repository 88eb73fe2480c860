/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the sink for Perfetto writes is what protoc reads by Perfetto's field numbers (protos/perfetto.proto),
 * and what Perfetto's trace processor would make of it: packets sorted by time, of one time by place in the
 * file, ends that close what was begun last on their track. No tree of spans comes out another one.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinhole/export.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define BASE 1700000000000000000u
#define MOST_IIDS 100000u

/* ---- writing ------------------------------------------------------------------------------------------- */

struct writer {
    char path[64];
    ph_sink sink;
};

static void writer_open(struct writer *writer) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;

    snprintf(writer->path, sizeof writer->path, "/tmp/pinhole-perfetto-XXXXXX");
    int fd = mkstemp(writer->path);
    assert_true(fd >= 0);
    options.file = fdopen(fd, "w");
    assert_non_null(options.file);
    options.close_file = true;
    assert_int_equal(ph_perfetto_sink_open(&options, &writer->sink, &error), PH_OK);
}

static ph_trace_span span_of(uint64_t id, uint64_t parent, const char *name, uint64_t start, uint64_t end) {
    return (ph_trace_span){.size = sizeof(ph_trace_span),
                           .sandbox = 1,
                           .id = id,
                           .parent = parent,
                           .kind = PH_SPAN_USER,
                           .level = PH_LEVEL_INFO,
                           .name = name,
                           .start_ns = BASE + start,
                           .end_ns = BASE + end};
}

static void give(struct writer *writer, ph_trace_span span) {
    writer->sink.span(writer->sink.context, &span);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* All that (command) prints. To be freed. */
static char *output_of(const char *command) {
    char *text = NULL;
    size_t size = 0;
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): of paths of our own */

    assert_non_null(pipe);
    ssize_t length = getdelim(&text, &size, 0, pipe);
    assert_true(length >= 0 || feof(pipe));
    assert_non_null(text);
    if (length < 0)
        *text = 0;
    assert_int_equal(pclose(pipe), 0);
    return text;
}

/* The trace as protoc prints it. */
static char *decoded(const char *path) {
    char command[512];

    snprintf(command, sizeof command, "protoc -I '%s' --decode=perfetto.protos.Trace perfetto.proto <'%s'",
             getenv("PH_TEST_PROTOS"), path);
    char *text = output_of(command);
    /* A field that the schema does not have has a number for its name. */
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n ");
        assert_false(*line >= '0' && *line <= '9');
    }
    return text;
}

/* Closes the sink, and takes what it has written. */
static char *finish(struct writer *writer) {
    writer->sink.close(writer->sink.context);
    char *text = decoded(writer->path);
    unlink(writer->path);
    return text;
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

/* (part) in a packet, which ends at (end); NULL without it. Not by strstr, which under a sanitizer counts
 * what is left of the whole text each time. */
static const char *find_in(const char *packet, const char *end, const char *part) {
    return packet < end ? memmem(packet, (size_t)(end - packet), part, strlen(part)) : NULL;
}

/* The number behind (key) in a packet, which ends at (end); 0 without it. */
static uint64_t number_in(const char *packet, const char *end, const char *key) {
    const char *found = find_in(packet, end, key);

    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

/* A slice of the timeline, or its end while they are sorted. */
struct event {
    uint64_t time;
    uint64_t track;
    uint64_t name; /* the number that is its name behind one letter */
    size_t place;
    bool is_end;
};

struct slice {
    uint64_t start;
    uint64_t end;
    uint64_t parent;
    bool seen;
};

static uint64_t names[MOST_IIDS];     /* by iid: the number behind the letter, + 1 */
static uint64_t sequences[MOST_IIDS]; /* by iid: of the packet that defines it */

/* Takes the names that a packet defines, none of them twice; they are those of its sequence, all of which a
 * reader forgets where it says so. */
static void take_names(const char *packet, const char *end) {
    static const char key[] = "\n    event_names {\n      iid: ";

    const uint64_t sequence = number_in(packet, end, "\n  trusted_packet_sequence_id: ");
    if (number_in(packet, end, "\n  sequence_flags: ") & 1)
        for (size_t i = 0; i < MOST_IIDS; i++)
            if (sequences[i] == sequence)
                names[i] = 0;
    for (const char *at = find_in(packet, end, key); at; at = find_in(at + 1, end, key)) {
        uint64_t iid = strtoull(at + sizeof key - 1, NULL, 10);
        assert_true(iid > 0 && iid < MOST_IIDS);
        assert_int_equal(names[iid], 0);
        names[iid] = number_in(at, end, "name: \"n") + 1;
        sequences[iid] = sequence;
    }
}

static int by_time(const void *one, const void *other) {
    const struct event *a = one, *b = other;

    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

/* The begins and ends of slices in (text), in a reader's order. */
static struct event *events_of(const char *text, size_t *count) {
    struct event *events = calloc(strlen(text) / 40 + 1, sizeof *events);

    assert_non_null(events);
    *count = 0;
    memset(names, 0, sizeof names);
    const char *text_end = text + strlen(text);
    for (const char *packet = text; *packet;) {
        const char *end = find_in(packet, text_end, "\n}\n");
        assert_non_null(end);
        take_names(packet, end);
        const char *type = find_in(packet, end, "type: TYPE_SLICE_");
        if (type) {
            struct event *event = &events[*count];
            *event = (struct event){.time = number_in(packet, end, "\n  timestamp: "),
                                    .track = number_in(packet, end, "\n    track_uuid: "),
                                    .place = (*count)++,
                                    .is_end = strncmp(type + 17, "END", 3) == 0};
            uint64_t iid = number_in(packet, end, "\n    name_iid: ");
            assert_true(iid < MOST_IIDS);
            assert_true(event->is_end || names[iid]);
            assert_true(event->is_end ||
                        sequences[iid] == number_in(packet, end, "\n  trusted_packet_sequence_id: "));
            event->name = event->is_end ? 0 : names[iid] - 1;
        }
        packet = end + 3;
    }
    qsort(events, *count, sizeof *events, by_time);
    return events;
}

/* Fills in slices by the number that is their name. All are on one track. */
static void read_slices(const char *text, struct slice *slices, size_t most) {
    size_t count, depth = 0;
    struct event *events = events_of(text, &count);
    uint64_t *stack = calloc(count + 1, sizeof *stack);

    assert_non_null(stack);
    for (size_t i = 0; i < count; i++) {
        if (events[i].is_end) {
            assert_true(depth > 0);
            slices[stack[--depth]].end = events[i].time;
            continue;
        }
        uint64_t name = events[i].name;
        assert_true(name < most && !slices[name].seen);
        slices[name] =
            (struct slice){.start = events[i].time, .parent = depth ? stack[depth - 1] : 0, .seen = true};
        stack[depth++] = name;
    }
    assert_int_equal(depth, 0);
    free(stack);
    free(events);
}

/* ---- trees --------------------------------------------------------------------------------------------- */

#define MOST_SPANS 20000u

static ph_trace_span given[MOST_SPANS]; /* by id */
static uint64_t last_id;

static void give_named(struct writer *writer, ph_trace_span span) {
    char name[24];

    snprintf(name, sizeof name, "n%" PRIu64, span.id);
    span.name = name;
    given[span.id] = span;
    give(writer, span);
}

/* The same numbers in each run: xorshift. */
static uint64_t random_state;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 11;
}

/* A tree in (start) to (end) or less, children first. Times are so few that many are equal. */
static uint64_t grow(struct writer *writer, uint64_t parent, unsigned depth, uint64_t start, uint64_t end) {
    uint64_t id = ++last_id;
    uint64_t until = start + next_random() % (end - start + 1);
    uint64_t at = start;

    for (unsigned i = 0; i < 4 && depth && last_id + 8 < MOST_SPANS && next_random() % 3; i++) {
        at += next_random() % (until - at + 1) * (next_random() % 2);
        at = grow(writer, id, depth - 1, at, until);
    }
    give_named(writer, span_of(id, parent, NULL, start, until));
    return until;
}

static void assert_as_given(const char *text) {
    struct slice *slices = calloc(last_id + 1, sizeof *slices);

    assert_non_null(slices);
    read_slices(text, slices, last_id + 1);
    for (uint64_t id = 1; id <= last_id; id++) {
        assert_true(slices[id].seen);
        assert_int_equal(slices[id].start, given[id].start_ns);
        assert_int_equal(slices[id].end, given[id].end_ns);
        assert_int_equal(slices[id].parent, given[id].parent);
    }
    free(slices);
}

static void trees_come_out_as_they_were_also_when_times_are_equal(void **state) {
    struct writer writer = {0};

    (void)state;
    random_state = 1;
    last_id = 0;
    writer_open(&writer);
    for (unsigned i = 0; last_id + 8 < MOST_SPANS; i++)
        grow(&writer, 0, 6, i * 10, i * 10 + 6);
    char *text = finish(&writer);
    assert_as_given(text);
    free(text);
}

static void a_thousand_levels_nest(void **state) {
    (void)state;
    /* With a time of its own for each level, and with one for all. */
    for (unsigned step = 0; step < 2; step++) {
        struct writer writer = {0};
        last_id = 1000;
        writer_open(&writer);
        for (uint64_t id = 1000; id > 0; id--)
            give_named(&writer, span_of(id, id - 1, NULL, id * step, 5000 - id * step));
        char *text = finish(&writer);
        assert_as_given(text);
        free(text);
    }
}

static void the_table_of_names_begins_anew_when_it_is_full(void **state) {
    struct writer writer = {0};

    (void)state;
    writer_open(&writer);
    last_id = 9000;
    for (uint64_t id = 1; id <= last_id; id++)
        give_named(&writer, span_of(id, 0, NULL, id * 10, id * 10 + 5));
    char *text = finish(&writer);
    assert_has(text, "  sequence_flags: 3\n");
    assert_as_given(text);
    free(text);
}

static void spans_beyond_what_can_wait_are_all_there(void **state) {
    char large[1001];
    struct writer writer = {0};

    (void)state;
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    const ph_field field = {
        .name = "f", .value = {.type = PH_STR, .str = large}, .size = 1000, .full_size = 1000};
    writer_open(&writer);
    last_id = 6000;
    for (uint64_t id = 2; id <= last_id; id++) {
        ph_trace_span span = span_of(id, 1, NULL, 7, 7);
        span.fields = &field;
        span.field_count = 1;
        give_named(&writer, span);
    }
    give_named(&writer, span_of(1, 0, NULL, 7, 8));
    size_t count;
    char *text = finish(&writer);
    free(events_of(text, &count));
    assert_int_equal(count, 2 * last_id);
    free(text);
}

/* ---- one of everything --------------------------------------------------------------------------------- */

static void give_everything(struct writer *writer) {
    const ph_field fields[] = {
        {.name = "i", .value = {.type = PH_I64, .i64 = INT64_MIN}},
        {.name = "u", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
        {.name = "d", .value = {.type = PH_F64, .f64 = 0.1}},
        {.name = "b", .value = {.type = PH_BOOL, .boolean = true}},
        {.name = "p", .value = {.type = PH_POINTER, .u64 = 0x401136}},
        {.name = "s", .value = {.type = PH_STR, .str = "\"\xc3\xbc\n\xff"}, .size = 5, .full_size = 5000},
        {.name = "s", .value = {.type = PH_STR, .str = ""}},
        {.name = "", .value = {.type = PH_BYTES, .bytes = {"\0\xff\x10\x20", 4}}, .size = 4, .full_size = 4},
        {.name = "pinhole", .value = {.type = PH_I32, .i32 = -1}},
    };
    ph_trace_span inner = span_of(3, 2, "step \xe2\x82\xac", 10, 20);
    inner.source = (ph_source){"file.c", "function", 7};
    inner.fields = fields;
    inner.field_count = COUNT(fields);
    inner.unfinished = true;
    inner.status = PH_E_PAGE_FAULT;
    inner.message = "why";
    give(writer, inner);
    ph_trace_span guest = span_of(2, 1, "guest f", 1, 30);
    guest.kind = PH_SPAN_GUEST;
    give(writer, guest);
    ph_trace_span call = span_of(1, 0, "call f", 0, 31);
    call.kind = PH_SPAN_CALL;
    give(writer, call);
    ph_trace_span async = span_of(4, 1, "", 2, 40);
    async.kind = PH_SPAN_ASYNC;
    give(writer, async);
    const ph_trace_event log = {.size = sizeof log,
                                .sandbox = 1,
                                .span = 3,
                                .level = PH_LEVEL_WARN,
                                .name = "%d rows",
                                .message = "12 rows",
                                .time_ns = BASE + 11};
    writer->sink.event(writer->sink.context, &log);
    for (int i = 0; i < 2; i++) {
        const ph_trace_counter counter = {.size = sizeof counter,
                                          .sandbox = 1,
                                          .name = "pages",
                                          .time_ns = BASE + 12,
                                          .value = i ? (ph_value){.type = PH_F64, .f64 = 2.5}
                                                     : (ph_value){.type = PH_I64, .i64 = -3}};
        writer->sink.counter(writer->sink.context, &counter);
    }
}

static void what_went_in_comes_out(void **state) {
    static const char *const parts[] = {
        "    primary_trace_clock: BUILTIN_CLOCK_REALTIME\n",
        "    uuid: 5\n    process {\n      pid: 2\n      process_name: \"sandbox 1\"\n",
        "    uuid: 6\n    thread {\n      pid: 2\n      tid: 2\n      thread_name: \"host\"\n",
        "    }\n    parent_uuid: 5\n",
        "    uuid: 7\n    thread {\n      pid: 2\n      tid: 3\n      thread_name: \"guest\"\n",
        "name: \"step \\342\\202\\254\"\n",
        "      file_name: \"file.c\"\n      function_name: \"function\"\n      line_number: 7\n",
        "  timestamp: 1700000000000000010\n",
        "      int_value: -9223372036854775808\n",
        "      uint_value: 18446744073709551615\n",
        "      double_value: 0.1\n",
        "      bool_value: true\n",
        "      pointer_value: 4198710\n",
        "      string_value: \"\\\"\\303\\274\\n\\357\\277\\275\"\n",
        "      string_value: \"\"\n",
        "name: \"6:s\"\n",
        "name: \"7:\"\n",
        "      string_value: \"AP8QIA==\"\n",
        "name: \"8:pinhole\"\n",
        "        string_value: \"page-fault\"\n",
        "        string_value: \"why\"\n",
        "          uint_value: 5000\n",
        "    flow_ids: 1\n",
        "    terminating_flow_ids: 1\n",
        "    uuid: 4\n    name: \"\"\n    parent_uuid: 5\n",
        "    type: TYPE_INSTANT\n    track_uuid: 7\n    name: \"12 rows\"\n",
        "        string_value: \"%d rows\"\n",
        "    uuid: 8\n    name: \"pages\"\n    parent_uuid: 5\n    counter {\n    }\n",
        "    type: TYPE_COUNTER\n    track_uuid: 8\n    counter_value: -3\n",
        "    type: TYPE_COUNTER\n    track_uuid: 8\n    double_counter_value: 2.5\n",
    };
    struct writer writer = {0};

    (void)state;
    writer_open(&writer);
    give_everything(&writer);
    char *text = finish(&writer);
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_has(text, parts[i]);
    free(text);
}

/* Names of spans, events, counters and fields, as they are defined, and texts where they stand. */
static void any_text_comes_out(void **state) {
    static const struct {
        const char *given, *shown;
    } texts[] = {
        {"\"quoted\" \\ 'too'", "\"\\\"quoted\\\" \\\\ \\'too\\'\""},
        {"line\nfeed\ttab\x01\x7f", "\"line\\nfeed\\ttab\\001\\177\""},
        {"\xf0\x9f\x94\xac", "\"\\360\\237\\224\\254\""},
        {"\xed\xa0\x80", "\"\\357\\277\\275\\357\\277\\275\\357\\277\\275\""},
        {"", "\"\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *given_text = texts[i].given;
        const size_t size = strlen(given_text);
        const ph_field field = {.name = *given_text ? given_text : "x",
                                .value = {.type = PH_STR, .str = given_text},
                                .size = size,
                                .full_size = size};
        struct writer writer;
        char part[128];
        writer_open(&writer);
        ph_trace_span span = span_of(1, 0, given_text, 0, 1);
        span.fields = &field;
        span.field_count = 1;
        give(&writer, span);
        const ph_trace_counter counter = {.size = sizeof counter,
                                          .sandbox = 1,
                                          .name = given_text,
                                          .time_ns = BASE,
                                          .value = {.type = PH_I64, .i64 = 1}};
        writer.sink.counter(writer.sink.context, &counter);
        char *text = finish(&writer);
        snprintf(part, sizeof part, "    event_names {\n      iid: 2\n      name: %s\n", texts[i].shown);
        assert_has(text, part);
        snprintf(part, sizeof part, "      name: %s\n", *given_text ? texts[i].shown : "\"x\"");
        assert_has(strstr(text, "debug_annotation_names {"), part);
        snprintf(part, sizeof part, "      string_value: %s\n", texts[i].shown);
        assert_has(text, part);
        snprintf(part, sizeof part, "    name: %s\n    parent_uuid: 5\n    counter {", texts[i].shown);
        assert_has(text, part);
        free(text);
    }
}

/* All of the file at (path). To be freed. */
static uint8_t *bytes_of(const char *path, size_t *size) {
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    rewind(file);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* The size of the packet at (bytes), its tag and its length of four bytes included. */
static size_t packet_size(const uint8_t *bytes) {
    assert_int_equal(bytes[0], 0x0a);
    return 5 + ((size_t)bytes[1] & 0x7f) + (((size_t)bytes[2] & 0x7f) << 7) +
           (((size_t)bytes[3] & 0x7f) << 14) + ((size_t)bytes[4] << 21);
}

/* But for the first packet, which has the time. PH_TEST_WRITE_GOLDEN in the environment makes the file anew.
 */
static void the_bytes_are_those_that_were_kept(void **state) {
    struct writer writer = {0};
    size_t size, golden_size;

    (void)state;
    writer_open(&writer);
    give_everything(&writer);
    writer.sink.close(writer.sink.context);
    uint8_t *bytes = bytes_of(writer.path, &size);
    unlink(writer.path);
    size_t first = packet_size(bytes);
    if (getenv("PH_TEST_WRITE_GOLDEN")) {
        FILE *file = fopen(getenv("PH_TEST_GOLDEN"), "w");
        assert_non_null(file);
        fwrite(bytes + first, 1, size - first, file);
        fclose(file);
    }
    uint8_t *golden = bytes_of(getenv("PH_TEST_GOLDEN"), &golden_size);
    assert_int_equal(size - first, golden_size);
    assert_memory_equal(bytes + first, golden, golden_size);
    free(golden);
    free(bytes);
}

static void a_file_is_readable_up_to_any_packet(void **state) {
    struct writer writer = {0};
    size_t size;

    (void)state;
    writer_open(&writer);
    give_everything(&writer);
    writer.sink.flush(writer.sink.context);
    uint8_t *bytes = bytes_of(writer.path, &size);
    size_t at = size;
    while (at > 0) {
        size_t last = 0;
        for (size_t next = 0; next < at; next += packet_size(bytes + next))
            last = next;
        at = last;
        assert_int_equal(truncate(writer.path, (off_t)at), 0);
        free(decoded(writer.path));
    }
    free(bytes);
    writer.sink.close(writer.sink.context);
    unlink(writer.path);
}

static void options_that_are_wrong_are_refused(void **state) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;
    ph_sink sink;

    (void)state;
    assert_int_equal(ph_perfetto_sink_open(&options, NULL, &error), PH_E_ARGUMENT);
    options.size = 0;
    assert_int_equal(ph_perfetto_sink_open(&options, &sink, &error), PH_E_ARGUMENT);
    assert_null(sink.close);
}

static void a_failed_write_is_seen_at_the_file(void **state) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_sink sink;

    (void)state;
    options.file = fopen("/dev/full", "w");
    assert_non_null(options.file);
    assert_int_equal(ph_perfetto_sink_open(&options, &sink, NULL), PH_OK);
    sink.flush(sink.context);
    assert_true(ferror(options.file));
    sink.close(sink.context);
    fclose(options.file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_come_out_as_they_were_also_when_times_are_equal),
        cmocka_unit_test(a_thousand_levels_nest),
        cmocka_unit_test(the_table_of_names_begins_anew_when_it_is_full),
        cmocka_unit_test(spans_beyond_what_can_wait_are_all_there),
        cmocka_unit_test(what_went_in_comes_out),
        cmocka_unit_test(any_text_comes_out),
        cmocka_unit_test(the_bytes_are_those_that_were_kept),
        cmocka_unit_test(a_file_is_readable_up_to_any_packet),
        cmocka_unit_test(options_that_are_wrong_are_refused),
        cmocka_unit_test(a_failed_write_is_seen_at_the_file),
    };

    return cmocka_run_group_tests_name("perfetto", tests, NULL, NULL);
}
