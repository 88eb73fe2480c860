/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The text sink draws a tree in order whatever order its parts come in, keeps a bounded part of a large one,
 * and lets no text of a guest drive the terminal. The JSON-lines sink writes what a JSON parser reads back as
 * it was.
 */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinhole/trace.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define US 1000u

/* A sink that writes to memory. */
struct writer {
    FILE *file;
    char *text;
    size_t size;
    ph_sink sink;
};

typedef ph_status open_fn(const ph_file_sink *options, ph_sink *sink, ph_error *error);

static void writer_init(struct writer *writer, open_fn *open, uint32_t most_spans, ph_colour colour) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;

    *writer = (struct writer){0};
    writer->file = open_memstream(&writer->text, &writer->size);
    assert_non_null(writer->file);
    options.file = writer->file;
    options.close_file = true;
    options.most_spans = most_spans;
    options.colour = colour;
    assert_int_equal(open(&options, &writer->sink, &error), PH_OK);
}

/* What has been written up to now. */
static const char *written(struct writer *writer) {
    writer->sink.flush(writer->sink.context);
    return writer->text;
}

static void writer_close(struct writer *writer) {
    writer->sink.close(writer->sink.context);
}

static void writer_free(struct writer *writer) {
    free(writer->text);
}

/* ---- what is fed --------------------------------------------------------------------------------------- */

static ph_trace_span span_of(uint64_t id, uint64_t parent, const char *name, uint64_t start_ns,
                             uint64_t end_ns) {
    return (ph_trace_span){.size = sizeof(ph_trace_span),
                           .sandbox = 1,
                           .id = id,
                           .parent = parent,
                           .kind = parent ? PH_SPAN_USER : PH_SPAN_CALL,
                           .level = PH_LEVEL_INFO,
                           .name = name,
                           .start_ns = start_ns,
                           .end_ns = end_ns};
}

static void give(struct writer *writer, ph_trace_span span) {
    writer->sink.span(writer->sink.context, &span);
}

static void give_span(struct writer *writer, uint64_t id, uint64_t parent, const char *name,
                      uint64_t start_ns, uint64_t end_ns) {
    give(writer, span_of(id, parent, name, start_ns, end_ns));
}

static void give_event(struct writer *writer, uint64_t span, ph_level level, const char *name,
                       const char *message, uint64_t time_ns, const ph_field *fields, size_t count) {
    const ph_trace_event event = {.size = sizeof event,
                                  .sandbox = 1,
                                  .span = span,
                                  .level = level,
                                  .name = name,
                                  .message = message,
                                  .time_ns = time_ns,
                                  .fields = fields,
                                  .field_count = count};

    writer->sink.event(writer->sink.context, &event);
}

static ph_field string_field(const char *name, const char *text) {
    size_t size = strlen(text);

    return (ph_field){.name = name, .value = {.type = PH_STR, .str = text}, .size = size, .full_size = size};
}

static ph_field integer_field(const char *name, int64_t value) {
    return (ph_field){.name = name, .value = {.type = PH_I64, .i64 = value}};
}

/* Where (needle) is, which has to be there, behind (*after), which is moved to it. */
static void assert_follows(const char **after, const char *needle) {
    const char *found = strstr(*after, needle);

    if (!found)
        fail_msg("'%s' is not in:\n%s", needle, *after);
    *after = found + strlen(needle);
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static void a_tree_is_drawn_when_its_root_has_ended(void **state) {
    const ph_field rows = integer_field("rows", 17);
    const ph_field sql = string_field("sql", "select 1");
    const ph_field key = string_field("key", "t1");
    const ph_trace_counter pages = {.size = sizeof pages,
                                    .sandbox = 1,
                                    .span = 2,
                                    .name = "pages",
                                    .time_ns = 390 * US,
                                    .value = {.type = PH_I64, .i64 = 12}};
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 3, PH_LEVEL_INFO, "cache.miss", NULL, 22 * US, &key, 1);
    ph_trace_span prepare = span_of(3, 2, "prepare", 10 * US, 31 * US + 400);
    prepare.fields = &sql;
    prepare.field_count = 1;
    give(&writer, prepare);
    give_event(&writer, 4, PH_LEVEL_WARN, "slow: %s", "slow: table scan", 100 * US, NULL, 0);
    ph_trace_span step = span_of(4, 2, "step", 40 * US, 380 * US);
    step.fields = &rows;
    step.field_count = 1;
    give(&writer, step);
    writer.sink.counter(writer.sink.context, &pages);
    give_span(&writer, 2, 1, "guest query", 5 * US, 400 * US);
    assert_string_equal(written(&writer), "");
    give_span(&writer, 1, 0, "call query", 0, 412318);
    assert_string_equal(written(&writer),
                        "call query                               412.318 us\n"
                        "└─ guest query                           395.000 us\n"
                        "   ├─ prepare                             21.400 us  sql=\"select 1\"\n"
                        "   │  ·  info cache.miss                 +12.000 us  key=\"t1\"\n"
                        "   ├─ step                               340.000 us  rows=17\n"
                        "   │  ·  warn                            +60.000 us  slow: table scan\n"
                        "   ~  pages = 12                        +385.000 us\n");
    writer_close(&writer);
    writer_free(&writer);
}

static void children_are_in_order_of_time(void **state) {
    struct writer writer;
    char name[16];

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    for (uint64_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "child %02u;", (unsigned)(i * 37 % 100));
        give_span(&writer, 10 + i, 1, name, 1000 + i * 37 % 100 * 10, 1000 + i * 37 % 100 * 10 + 5);
    }
    /* At one time, they are in the order in which they came. */
    give_event(&writer, 1, PH_LEVEL_INFO, "first", NULL, 1000, NULL, 0);
    give_event(&writer, 1, PH_LEVEL_INFO, "second", NULL, 1000, NULL, 0);
    give_span(&writer, 1, 0, "call f", 0, 3000);
    const char *at = written(&writer);
    assert_follows(&at, "call f");
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "child %02u;", i);
        assert_follows(&at, name);
        if (i == 0) {
            assert_follows(&at, "first");
            assert_follows(&at, "second");
        }
    }
    writer_close(&writer);
    writer_free(&writer);
}

static void durations_have_a_sensible_unit(void **state) {
    static const struct {
        uint64_t ns;
        const char *shown;
    } durations[] = {{0, "  0 ns\n"},
                     {999, " 999 ns\n"},
                     {1000, " 1.000 us\n"},
                     {999999, " 999.999 us\n"},
                     {1234567, " 1.234 ms\n"},
                     {999999999, " 999.999 ms\n"},
                     {61500000000, " 61.500 s\n"},
                     {UINT64_MAX, " 18446744073.709 s\n"}};
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    for (size_t i = 0; i < COUNT(durations); i++)
        give_span(&writer, 1, 0, "f", 0, durations[i].ns);
    const char *at = written(&writer);
    for (size_t i = 0; i < COUNT(durations); i++)
        assert_follows(&at, durations[i].shown);
    writer_close(&writer);
    writer_free(&writer);
}

static void kinds_of_spans_can_be_told_apart(void **state) {
    static const struct {
        ph_span_kind kind;
        const char *shown;
    } kinds[] = {{PH_SPAN_USER, "─ name  "},
                 {PH_SPAN_FUNCTION, "─ name()  "},
                 {PH_SPAN_SYSTEM_CALL, "─ syscall name  "},
                 {PH_SPAN_ASYNC, "─ name (async)  "},
                 {PH_SPAN_HOST_FUNCTION, "─ name  "}};
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        ph_trace_span span = span_of(2 + i, 1, "name", i, i + 1);
        span.kind = kinds[i].kind;
        give(&writer, span);
    }
    give_span(&writer, 1, 0, "call f", 0, 100);
    const char *at = written(&writer);
    for (size_t i = 0; i < COUNT(kinds); i++)
        assert_follows(&at, kinds[i].shown);
    writer_close(&writer);
    writer_free(&writer);
}

static void what_failed_says_why(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_ALWAYS);
    ph_trace_span span = span_of(2, 1, "step", 0, 1);
    span.unfinished = true;
    give(&writer, span);
    span = span_of(3, 1, "step", 2, 3);
    span.unfinished = true;
    span.status = PH_E_PAGE_FAULT;
    span.message = "read of \x1b[2J 0x0";
    give(&writer, span);
    span = span_of(1, 0, "call f", 0, 10);
    span.status = PH_E_PAGE_FAULT;
    span.message = "read of \x1b[2J 0x0";
    give(&writer, span);
    const char *at = written(&writer);
    assert_follows(&at, "\033[31mcall f\033[0m");
    assert_follows(&at, "\033[31m[page-fault: read of \\x1b[2J 0x0]\033[0m\n");
    assert_follows(&at, "\033[31m[unfinished]\033[0m\n");
    assert_follows(&at, "\033[31m[unfinished: page-fault]\033[0m\n");
    writer_close(&writer);
    writer_free(&writer);
}

/* Whether a sink that decides by itself uses colour on a terminal. */
static bool terminal_gets_colour(void) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    struct writer writer = {0};
    char shown[4096] = "";
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    options.file = fopen(ptsname(terminal), "we");
    assert_non_null(options.file);
    options.close_file = true;
    assert_int_equal(ph_text_sink_open(&options, &writer.sink, NULL), PH_OK);
    give_span(&writer, 1, 0, "call f", 0, 10);
    writer.sink.flush(writer.sink.context);
    assert_true(read(terminal, shown, sizeof shown - 1) > 0);
    writer_close(&writer);
    close(terminal);
    assert_non_null(strstr(shown, "call f"));
    return strchr(shown, '\033');
}

static void colour_is_for_terminals_alone(void **state) {
    struct writer writer;

    (void)state;
    assert_true(terminal_gets_colour());
    setenv("NO_COLOR", "1", 1);
    assert_false(terminal_gets_colour());
    setenv("NO_COLOR", "", 1);
    assert_true(terminal_gets_colour());
    unsetenv("NO_COLOR");
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_span(&writer, 1, 0, "call f", 0, 10);
    assert_null(strchr(written(&writer), '\033'));
    writer_close(&writer);
    writer_free(&writer);
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_ALWAYS);
    give_span(&writer, 1, 0, "call f", 0, 10);
    assert_non_null(strchr(written(&writer), '\033'));
    writer_close(&writer);
    writer_free(&writer);
}

/* Everything that a guest can write: names, messages, names and values of fields. */
static void give_hostile(struct writer *writer, const char *text) {
    const ph_field fields[] = {string_field(text, text), string_field("plain", text)};

    give_event(writer, 1, PH_LEVEL_INFO, text, NULL, 1, fields, 2);
    give_event(writer, 1, PH_LEVEL_INFO, text, text, 1, fields, 2);
    give_event(writer, 0, PH_LEVEL_INFO, text, text, 1, fields, 2);
    const ph_trace_counter counter = {
        .size = sizeof counter, .sandbox = 1, .span = 1, .name = text, .value = {.type = PH_I64}};
    writer->sink.counter(writer->sink.context, &counter);
    ph_trace_span span = span_of(2, 1, text, 0, 2);
    span.fields = fields;
    span.field_count = 2;
    span.status = PH_E_GUEST;
    span.message = text;
    span.source = (ph_source){text, text, 1};
    give(writer, span);
    give_span(writer, 1, 0, text, 0, 3);
}

static void no_text_of_a_guest_drives_the_terminal(void **state) {
    /* Escape sequences, lines and tabs, C1, DEL, line separators, and marks that turn text around. */
    static const char *const hostile[] = {
        "\033[31mred\033]0;title\a", "a\nforged 1 ns", "\r\b\v\f\t",
        "\302\2332J\302\205",        "\177",           "\u2028\u2029",
        "\u202etxt\u202c",           "\u2066\u2069",   "\u200e\u200f\u061c",
        "\377\376\300\200",
    };
    struct writer writer;

    (void)state;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
        give_hostile(&writer, hostile[i]);
        unsigned lines = 0;
        for (const char *at = written(&writer); *at; at++) {
            lines += *at == '\n';
            assert_true((unsigned char)*at >= 0x20 || *at == '\n');
            assert_int_not_equal(*at, 0x7f);
        }
        assert_int_equal(lines, 6);
        assert_null(strstr(writer.text, hostile[i]));
        writer_close(&writer);
        writer_free(&writer);
    }
}

static void what_is_escaped_can_be_read(void **state) {
    const ph_field text = string_field("text", "a\"b\\c\nd\x1b"
                                               "e\xe2\x80\xaezü\xff");
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 0, PH_LEVEL_INFO, "e", NULL, 1, &text, 1);
    const char *at = written(&writer);
    assert_follows(&at, "text=\"a\\\"b\\\\c\\nd\\x1be\\u{202e}zü\\xff\"\n");
    writer_close(&writer);
    writer_free(&writer);
}

static void only_ascii_is_written_where_the_locale_says_so(void **state) {
    static const struct {
        const char *locale;
        bool ascii;
    } locales[] = {
        {"C", true}, {"POSIX", true}, {"de_DE.ISO-8859-1", true}, {"C.UTF-8", false}, {"de_DE.utf8", false}};
    const ph_field text = string_field("text", "ü");
    struct writer writer;

    (void)state;
    for (size_t i = 0; i < COUNT(locales); i++) {
        setenv("LC_ALL", locales[i].locale, 1);
        writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
        give_event(&writer, 1, PH_LEVEL_INFO, "e", NULL, 1, &text, 1);
        give_span(&writer, 2, 1, "name", 1, 2);
        give_span(&writer, 1, 0, "call f", 0, 3);
        bool ascii = true;
        for (const char *at = written(&writer); *at; at++)
            ascii = ascii && (unsigned char)*at < 0x80;
        assert_int_equal(ascii, locales[i].ascii);
        if (ascii)
            assert_string_equal(writer.text,
                                "call f                                         3 ns\n"
                                "*  info e                                     +1 ns  text=\"\\u{fc}\"\n"
                                "`- name                                        1 ns\n");
        writer_close(&writer);
        writer_free(&writer);
    }
    unsetenv("LC_ALL");
}

static void values_are_shown_by_type(void **state) {
    const ph_field fields[] = {
        integer_field("i", INT64_MIN),
        {.name = "u", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
        {.name = "f", .value = {.type = PH_F64, .f64 = 0.1}},
        {.name = "n", .value = {.type = PH_F64, .f64 = NAN}},
        {.name = "b", .value = {.type = PH_BOOL, .boolean = true}},
        {.name = "p", .value = {.type = PH_POINTER, .u64 = 0x400123}},
        {.name = "d", .value = {.type = PH_BYTES, .bytes = {"\0\xff", 2}}, .size = 2, .full_size = 2},
        {.name = "s", .value = {.type = PH_STR, .str = "cut"}, .size = 3, .full_size = 5000},
        {.name = NULL, .value = {.type = PH_BOOL}},
    };
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 0, PH_LEVEL_DEBUG, "e", NULL, 1, fields, COUNT(fields));
    const char *at = written(&writer);
    assert_follows(&at, "debug e");
    assert_follows(&at, "  i=-9223372036854775808  u=18446744073709551615  f=0.1  n=NaN  b=true  p=0x400123"
                        "  d=<00ff>  s=\"cut\"…(5000 bytes)  false\n");
    writer_close(&writer);
    writer_free(&writer);
}

static void a_long_line_is_cut_and_keeps_its_reason(void **state) {
    ph_field fields[12];
    char text[2001];
    struct writer writer;

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = '\x1b';
    text[sizeof text - 1] = 0;
    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i] = string_field("field", text);
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    ph_trace_span span = span_of(1, 0, text, 0, 1);
    span.fields = fields;
    span.field_count = COUNT(fields);
    span.status = PH_E_DIVIDE;
    span.message = "why";
    give(&writer, span);
    const char *at = written(&writer);
    assert_in_range(writer.size, 1000, 8192);
    assert_follows(&at, "…(2000 bytes)");
    assert_follows(&at, "…  [divide-error: why]\n");
    writer_close(&writer);
    writer_free(&writer);
}

static void a_large_tree_is_kept_in_part(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 10, PH_COLOUR_AUTO);
    for (uint64_t i = 0; i < 1000; i++)
        give_span(&writer, 100 + i, 3, "leaf", i, i + 1);
    give_event(&writer, 3, PH_LEVEL_INFO, "leaf", NULL, 1000, NULL, 0);
    /* Their parents are there all the same. */
    give_span(&writer, 3, 2, "inner", 0, 1001);
    give_span(&writer, 2, 1, "outer", 0, 1002);
    give_span(&writer, 1, 0, "call f", 0, 1003);
    const char *at = written(&writer);
    assert_follows(&at, "call f");
    assert_follows(&at, "outer");
    assert_follows(&at, "inner");
    for (unsigned i = 0; i < 9; i++)
        assert_follows(&at, "leaf");
    assert_follows(&at, "\n… 992 more spans and events not shown; a trace as jsonl has them all\n");
    assert_string_equal(at, "");
    /* The next tree has all the room again. */
    give_span(&writer, 5, 4, "leaf", 2000, 2001);
    give_span(&writer, 4, 0, "call g", 2000, 2002);
    at = written(&writer);
    assert_follows(&at, "call g");
    assert_follows(&at, "leaf");
    assert_null(strstr(at, "more spans"));
    writer_close(&writer);
    writer_free(&writer);
}

static void one_sandbox_does_not_take_anothers_room(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 10, PH_COLOUR_AUTO);
    for (uint64_t i = 0; i < 1000; i++)
        give_span(&writer, 100 + i, 1, "leaf", i, i + 1);
    ph_trace_span span = span_of(51, 50, "other's leaf", 0, 1);
    span.sandbox = 2;
    give(&writer, span);
    span = span_of(50, 0, "call other", 0, 2);
    span.sandbox = 2;
    give(&writer, span);
    const char *at = written(&writer);
    assert_follows(&at, "call other");
    assert_follows(&at, "other's leaf");
    writer_close(&writer);
    writer_free(&writer);
}

static void a_deep_tree_does_not_grow_to_the_right_for_ever(void **state) {
    const uint64_t depth = 5000;
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    for (uint64_t i = depth; i > 0; i--)
        give_span(&writer, i, i - 1, "f", i, 2 * depth - i);
    const char *at = written(&writer);
    /* The times of lines that say their depth are in one column with those that do not. */
    const char *line = at;
    for (unsigned i = 0; i < 32; i++)
        line = strchr(line, '\n') + 1;
    size_t length = strcspn(line, "\n");
    assert_int_equal(strcspn(line + length + 1, "\n"), length + strlen("  (depth 33)"));
    assert_follows(&at, " us  (depth 33)\n");
    assert_follows(&at, " (depth 4999)\n");
    assert_true(writer.size < depth * 300);
    writer_close(&writer);
    writer_free(&writer);
}

static void sandboxes_are_marked_when_there_are_several(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_span(&writer, 1, 0, "call f", 0, 1);
    assert_null(strstr(written(&writer), "sandbox"));
    ph_trace_span span = span_of(2, 0, "call g", 0, 1);
    span.sandbox = 7;
    give(&writer, span);
    const char *at = written(&writer);
    assert_follows(&at, "call g");
    assert_follows(&at, "[sandbox 7]\n");
    writer_close(&writer);
    writer_free(&writer);
}

static void an_event_without_a_span_is_a_line_of_its_own(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 0, PH_LEVEL_WARN, "trace.gap", "12 records were dropped", 5, NULL, 0);
    assert_string_equal(written(&writer),
                        "·  warn                                              12 records were dropped\n");
    writer_close(&writer);
    writer_free(&writer);
}

static void a_span_that_outlives_its_parent_is_a_tree_of_its_own(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    /* In time: under its parent. */
    ph_trace_span span = span_of(2, 1, "early", 10, 20);
    span.kind = PH_SPAN_ASYNC;
    give(&writer, span);
    give_span(&writer, 1, 0, "call f", 5, 30);
    span = span_of(3, 1, "late", 11, 200);
    span.kind = PH_SPAN_ASYNC;
    give(&writer, span);
    const char *at = written(&writer);
    assert_follows(&at, "call f");
    assert_follows(&at, "└─ early (async)");
    assert_follows(&at, "\nlate (async)");
    assert_follows(&at, "189 ns  [outlived its parent, which is above]\n");
    assert_string_equal(at, "");
    /* One of the next call waits for that. */
    span = span_of(5, 4, "next", 301, 302);
    span.kind = PH_SPAN_ASYNC;
    give(&writer, span);
    assert_string_equal(written(&writer) + (at - writer.text), "");
    give_span(&writer, 4, 0, "call g", 300, 400);
    at = written(&writer);
    assert_follows(&at, "call g");
    assert_follows(&at, "└─ next (async)");
    writer_close(&writer);
    writer_free(&writer);
}

static void orphans_are_drawn_at_the_end(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_text_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 8, PH_LEVEL_INFO, "alone", NULL, 3, NULL, 0);
    give_span(&writer, 3, 2, "inner", 1, 2);
    give_span(&writer, 2, 9, "outer", 0, 5);
    assert_string_equal(written(&writer), "");
    writer_close(&writer);
    const char *at = writer.text;
    assert_non_null(strstr(at, "(a span that has not ended)\n·  info alone"));
    assert_follows(&at, "└─ outer");
    assert_follows(&at, "   └─ inner");
    writer_free(&writer);
}

/* ---- JSON lines ---------------------------------------------------------------------------------------- */

/* The only line that has been written, as an object. */
static json_t *only_line(struct writer *writer) {
    json_error_t error;
    const char *text = written(writer);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!object)
        fail_msg("%s: %s", error.text, text);
    const char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_string_equal(end, "\n");
    return object;
}

static void assert_text(const json_t *object, const char *key, const char *text) {
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_string(value));
    assert_string_equal(json_string_value(value), text);
}

static void assert_integer(const json_t *object, const char *key, int64_t number) {
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    assert_int_equal(json_integer_value(value), number);
}

static void a_span_is_an_object_with_what_applies(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give_span(&writer, 1, 0, "call f", 1700000000000000001, 1700000000000000011);
    assert_string_equal(written(&writer),
                        "{\"type\":\"span\",\"sandbox\":1,\"id\":1,\"kind\":\"call\",\"level\":\"info\","
                        "\"name\":\"call f\",\"start_ns\":1700000000000000001,"
                        "\"end_ns\":1700000000000000011,\"duration_ns\":10}\n");
    writer_close(&writer);
    writer_free(&writer);

    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    ph_trace_span span = span_of(2, 1, "step", 1, 3);
    span.kind = PH_SPAN_SYSTEM_CALL;
    span.unfinished = true;
    span.status = PH_E_PAGE_FAULT;
    span.message = "why";
    span.source = (ph_source){"file.c", "function", 7};
    give(&writer, span);
    json_t *object = only_line(&writer);
    assert_integer(object, "parent", 1);
    assert_text(object, "kind", "system-call");
    assert_true(json_is_true(json_object_get(object, "unfinished")));
    assert_text(object, "status", "page-fault");
    assert_text(object, "message", "why");
    assert_text(object, "file", "file.c");
    assert_integer(object, "line", 7);
    assert_text(object, "function", "function");
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);
}

/* Also of a name, which may be empty, and of times beyond what a double holds. */
static void a_thousand_levels_keep_names_parents_and_times(void **state) {
    static const char *const names[] = {"step", "", "\"\\/\b\n\x01\x7f", "größe 大きさ 🔬", "a;b {} [] ,"};
    const uint64_t epoch = 1700000000000000000;
    struct writer writer;
    char *line = NULL;
    size_t size = 0;

    (void)state;
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    for (uint64_t id = 1000; id > 0; id--)
        give_span(&writer, id, id - 1, names[id % COUNT(names)], epoch + id, epoch + 3001 - id);
    writer_close(&writer);
    FILE *file = fmemopen(writer.text, writer.size, "r");
    assert_non_null(file);
    for (int64_t id = 1000; id > 0; id--) {
        assert_true(getline(&line, &size, file) > 0);
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        assert_integer(object, "id", id);
        assert_int_equal(json_integer_value(json_object_get(object, "parent")), id - 1);
        assert_text(object, "name", names[(size_t)id % COUNT(names)]);
        assert_integer(object, "start_ns", (int64_t)epoch + id);
        assert_integer(object, "end_ns", (int64_t)epoch + 3001 - id);
        assert_integer(object, "duration_ns", 3001 - 2 * id);
        json_decref(object);
    }
    assert_int_equal(getline(&line, &size, file), -1);
    fclose(file);
    free(line);
    writer_free(&writer);
}

static void a_root_says_which_trace_it_is_of(void **state) {
    ph_trace_span root = span_of(1, 0, "call f", 1, 3), child = span_of(2, 1, "step", 1, 3);
    struct writer writer;

    (void)state;
    memcpy(root.trace_id, "\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36", 16);
    memcpy(child.trace_id, root.trace_id, 16);
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give(&writer, root);
    json_t *object = only_line(&writer);
    assert_text(object, "trace_id", "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_null(json_object_get(object, "remote_parent"));
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);

    memcpy(root.remote_parent, "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8);
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give(&writer, root);
    object = only_line(&writer);
    assert_text(object, "trace_id", "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_text(object, "remote_parent", "00f067aa0ba902b7");
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);

    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give(&writer, child);
    object = only_line(&writer);
    assert_null(json_object_get(object, "trace_id"));
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);
}

static void values_read_back_as_they_were(void **state) {
    const ph_field fields[] = {
        integer_field("i", INT64_MIN),
        {.name = "u", .value = {.type = PH_U64, .u64 = INT64_MAX}},
        {.name = "U", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
        {.name = "b", .value = {.type = PH_BOOL}},
        {.name = "p", .value = {.type = PH_POINTER, .u64 = UINT64_MAX}},
        {.name = "d", .value = {.type = PH_BYTES, .bytes = {"\0\xff\x10\x20", 4}}, .size = 4, .full_size = 9},
        {.name = "s", .value = {.type = PH_STR, .str = "cut"}, .size = 3, .full_size = 5000},
        {.name = "w", .value = {.type = PH_STR, .str = "whole"}, .size = 5, .full_size = 5},
        {.name = "n", .value = {.type = PH_F64, .f64 = NAN}},
        {.name = "m", .value = {.type = PH_F64, .f64 = -INFINITY}},
    };
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 5, PH_LEVEL_ERROR, "e", "text", 77, fields, COUNT(fields));
    json_t *object = only_line(&writer);
    const json_t *values = json_object_get(object, "fields");
    assert_text(object, "type", "event");
    assert_integer(object, "span", 5);
    assert_integer(object, "time_ns", 77);
    assert_text(object, "message", "text");
    assert_integer(values, "i", INT64_MIN);
    assert_integer(values, "u", INT64_MAX);
    assert_text(values, "U", "18446744073709551615");
    assert_true(json_is_false(json_object_get(values, "b")));
    assert_text(values, "p", "0xffffffffffffffff");
    assert_text(values, "d", "AP8QIA==");
    assert_text(values, "n", "NaN");
    assert_text(values, "m", "-Infinity");
    const json_t *cut = json_object_get(object, "cut");
    assert_int_equal(json_object_size(cut), 2);
    assert_integer(cut, "d", 9);
    assert_integer(cut, "s", 5000);
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);
}

static void floats_are_as_short_as_reads_back_equal(void **state) {
    static const struct {
        double value;
        const char *text;
    } floats[] = {{0.0, "0.0"},
                  {-0.0, "-0.0"},
                  {0.1, "0.1"},
                  {1.0, "1.0"},
                  {100.0, "100.0"},
                  {-2.5, "-2.5"},
                  {1e16, "10000000000000000.0"},
                  {1e17, "1e17"},
                  {0.0001, "0.0001"},
                  {0.00001, "1e-5"},
                  {1.5e-7, "1.5e-7"},
                  {5e-324, "5e-324"},
                  {1.7976931348623157e308, "1.7976931348623157e308"},
                  {1.0 / 3, "0.3333333333333333"},
                  {123456.789, "123456.789"}};
    char expected[64];
    struct writer writer;

    (void)state;
    for (size_t i = 0; i < COUNT(floats); i++) {
        writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
        const ph_trace_counter counter = {.size = sizeof counter,
                                          .sandbox = 1,
                                          .name = "c",
                                          .value = {.type = PH_F64, .f64 = floats[i].value}};
        writer.sink.counter(writer.sink.context, &counter);
        snprintf(expected, sizeof expected, "\"value\":%s}\n", floats[i].text);
        if (!strstr(written(&writer), expected))
            assert_string_equal(writer.text, expected);
        json_t *object = only_line(&writer);
        assert_true(json_real_value(json_object_get(object, "value")) == floats[i].value);
        json_decref(object);
        writer_close(&writer);
        writer_free(&writer);
    }
}

static void any_text_makes_a_valid_line(void **state) {
    static const char hostile[] =
        "\"\\/\b\f\n\r\t\x01\x1f\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8ü\xff\xed\xa0\x80";
    static const char read_back[] = "\"\\/\b\f\n\r\t\x01\x1f\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8ü"
                                    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd";
    const ph_field field = string_field(hostile, hostile);
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 0, PH_LEVEL_INFO, hostile, hostile, 1, &field, 1);
    json_t *object = only_line(&writer);
    assert_text(object, "name", read_back);
    assert_text(object, "message", read_back);
    assert_text(json_object_get(object, "fields"), read_back, read_back);
    /* Nor does it drive a terminal that it is shown on. */
    for (const char *at = writer.text; at[1]; at++)
        assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
    assert_null(strstr(writer.text, "\xc2\x9b"));
    assert_null(strstr(writer.text, "\xe2\x80\xae"));
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);
}

static void a_long_text_is_one_line(void **state) {
    char *text = malloc(100001);
    struct writer writer;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', 100000);
    text[100000] = 0;
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 0, PH_LEVEL_INFO, "e", text, 1, NULL, 0);
    json_t *object = only_line(&writer);
    assert_text(object, "message", text);
    json_decref(object);
    writer_close(&writer);
    writer_free(&writer);
    free(text);
}

static void names_that_come_twice_become_an_array(void **state) {
    const ph_field fields[] = {
        integer_field("rows", 1),
        string_field("text", "a"),
        integer_field("rows", 2),
        integer_field(NULL, 3),
        {.name = "text", .value = {.type = PH_STR, .str = "b"}, .size = 1, .full_size = 9},
        integer_field("", 4),
        integer_field("rows", 5),
        integer_field("3", 6)};
    struct writer writer;

    (void)state;
    writer_init(&writer, ph_jsonl_sink_open, 0, PH_COLOUR_AUTO);
    give_event(&writer, 0, PH_LEVEL_INFO, "e", NULL, 1, fields, COUNT(fields));
    json_decref(only_line(&writer));
    const char *at = written(&writer);
    assert_follows(&at, "\"fields\":{\"rows\":[1,2,5],\"text\":[\"a\",\"b\"],\"3\":[3,6],\"5\":4},"
                        "\"cut\":{\"text\":[1,9]}}");
    writer_close(&writer);
    writer_free(&writer);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void options_that_are_wrong_are_refused(void **state) {
    open_fn *const opens[] = {ph_text_sink_open, ph_jsonl_sink_open};

    (void)state;
    for (size_t i = 0; i < COUNT(opens); i++) {
        ph_file_sink options = PH_FILE_SINK_INIT;
        ph_error error;
        ph_sink sink;
        assert_int_equal(opens[i](&options, NULL, &error), PH_E_ARGUMENT);
        options.size = 0;
        assert_int_equal(opens[i](&options, &sink, &error), PH_E_ARGUMENT);
        assert_null(sink.close);
        options.size = sizeof options + 1;
        assert_int_equal(opens[i](&options, &sink, &error), PH_E_ARGUMENT);
        options.size = sizeof options;
        options.colour = (ph_colour)3;
        assert_int_equal(opens[i](&options, &sink, NULL), PH_E_ARGUMENT);
        assert_int_equal(opens[i](NULL, &sink, &error), PH_OK);
        sink.close(sink.context);
    }
}

static void a_failed_write_is_seen_at_the_file(void **state) {
    open_fn *const opens[] = {ph_text_sink_open, ph_jsonl_sink_open};

    (void)state;
    for (size_t i = 0; i < COUNT(opens); i++) {
        ph_file_sink options = PH_FILE_SINK_INIT;
        struct writer writer = {0};
        writer.file = options.file = fopen("/dev/full", "w");
        assert_non_null(writer.file);
        assert_int_equal(opens[i](&options, &writer.sink, NULL), PH_OK);
        give_span(&writer, 1, 0, "call f", 0, 1);
        writer.sink.flush(writer.sink.context);
        assert_true(ferror(writer.file));
        writer_close(&writer);
        fclose(writer.file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_drawn_when_its_root_has_ended),
        cmocka_unit_test(children_are_in_order_of_time),
        cmocka_unit_test(durations_have_a_sensible_unit),
        cmocka_unit_test(kinds_of_spans_can_be_told_apart),
        cmocka_unit_test(what_failed_says_why),
        cmocka_unit_test(colour_is_for_terminals_alone),
        cmocka_unit_test(no_text_of_a_guest_drives_the_terminal),
        cmocka_unit_test(what_is_escaped_can_be_read),
        cmocka_unit_test(only_ascii_is_written_where_the_locale_says_so),
        cmocka_unit_test(values_are_shown_by_type),
        cmocka_unit_test(a_long_line_is_cut_and_keeps_its_reason),
        cmocka_unit_test(a_large_tree_is_kept_in_part),
        cmocka_unit_test(one_sandbox_does_not_take_anothers_room),
        cmocka_unit_test(a_deep_tree_does_not_grow_to_the_right_for_ever),
        cmocka_unit_test(sandboxes_are_marked_when_there_are_several),
        cmocka_unit_test(an_event_without_a_span_is_a_line_of_its_own),
        cmocka_unit_test(a_span_that_outlives_its_parent_is_a_tree_of_its_own),
        cmocka_unit_test(orphans_are_drawn_at_the_end),
        cmocka_unit_test(a_span_is_an_object_with_what_applies),
        cmocka_unit_test(a_thousand_levels_keep_names_parents_and_times),
        cmocka_unit_test(a_root_says_which_trace_it_is_of),
        cmocka_unit_test(values_read_back_as_they_were),
        cmocka_unit_test(floats_are_as_short_as_reads_back_equal),
        cmocka_unit_test(any_text_makes_a_valid_line),
        cmocka_unit_test(a_long_text_is_one_line),
        cmocka_unit_test(names_that_come_twice_become_an_array),
        cmocka_unit_test(options_that_are_wrong_are_refused),
        cmocka_unit_test(a_failed_write_is_seen_at_the_file),
    };

    /* The locale of whoever runs this is not what is tested. */
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    unsetenv("LANG");
    unsetenv("NO_COLOR");
    return cmocka_run_group_tests_name("sinks", tests, NULL, NULL);
}
