/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sink for HTML writes a page whose policy names its one script and its one style, and a trace in
 * elements that no text of a guest's ends, which a JSON parser reads back; bounded, and whole up to its last
 * line at any time. What the page does with it is tested in a browser (system/test_html_page.c).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/export.h>
#include <pinhole/pinhole.h>

#include "base/sha256.h"
#include "unit/sink_feed.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define CHUNK "<script type=\"application/json\" class=\"chunk\">"

/* Where the page ends and the trace begins. */
static const char *trace_of(const char *text) {
    const char *trace = strstr(text, CHUNK);

    assert_non_null(trace);
    return trace;
}

/* All items of all chunks; what is between them is nothing. */
static json_t *items_of(const char *text) {
    json_t *items = json_array();
    const char *at = trace_of(text);

    while (strncmp(at, CHUNK, strlen(CHUNK)) == 0) {
        json_error_t error;
        const char *begin = at + strlen(CHUNK), *end = strstr(begin, "</script>");
        assert_non_null(end);
        json_t *chunk = json_loadb(begin, (size_t)(end - begin), JSON_REJECT_DUPLICATES, &error);
        if (!chunk)
            fail_msg("%d: %s", error.line, error.text);
        assert_int_equal(json_array_extend(items, chunk), 0);
        json_decref(chunk);
        at = end + strlen("</script>\n");
    }
    assert_string_equal(at, "</body>\n</html>\n");
    return items;
}

/* The (skip)th item that begins with (word). */
static json_t *item_of(const json_t *items, const char *word, size_t skip) {
    size_t i;
    json_t *item;

    json_array_foreach(items, i, item) {
        if (json_is_array(item) && strcmp(json_string_value(json_array_get(item, 0)), word) == 0 &&
            skip-- == 0)
            return item;
    }
    fail_msg("no item %s", word);
    return NULL;
}

static size_t count_of(const json_t *items, const char *word) {
    size_t i, count = 0;
    json_t *item;

    json_array_foreach(items, i, item) {
        count += json_is_array(item) && strcmp(json_string_value(json_array_get(item, 0)), word) == 0;
    }
    return count;
}

/* A text, or what the text with its number is: those are the strings among the items, from 1 on. */
static const char *text_of(const json_t *items, const json_t *reference) {
    json_int_t number = json_integer_value(reference);
    size_t i;
    json_t *item;

    if (json_is_string(reference))
        return json_string_value(reference);
    assert_true(json_is_integer(reference));
    json_array_foreach(items, i, item) {
        if (json_is_string(item) && --number == 0)
            return json_string_value(item);
    }
    fail_msg("no such text");
    return NULL;
}

static void assert_text(const json_t *items, const json_t *reference, const char *text) {
    assert_string_equal(text_of(items, reference), text);
}

static json_int_t number_at(const json_t *item, size_t index) {
    assert_true(json_is_integer(json_array_get(item, index)));
    return json_integer_value(json_array_get(item, index));
}

static ph_field text_field(const char *name, const char *text) {
    return (ph_field){.name = name,
                      .value = {.type = PH_STR, .str = text},
                      .size = strlen(text),
                      .full_size = strlen(text)};
}

/* ---- the page ------------------------------------------------------------------------------------------ */

/* The policy's word for the one element (tag), by what is in it. */
static void hash_element(const char *text, const char *tag, char word[80]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char mark[16];
    uint8_t digest[PH__SHA256_SIZE + 1] = {0};
    struct ph__sha256 hash;

    snprintf(mark, sizeof mark, "<%s>", tag);
    const char *begin = strstr(text, mark);
    assert_non_null(begin);
    begin += strlen(mark);
    assert_null(strstr(begin, mark));
    snprintf(mark, sizeof mark, "</%s>", tag);
    const char *end = strstr(begin, mark);
    assert_non_null(end);
    ph__sha256_begin(&hash);
    ph__sha256_add(&hash, begin, (size_t)(end - begin));
    ph__sha256_end(&hash, digest);
    size_t used = (size_t)snprintf(word, 80, "%s-src 'sha256-", tag);
    for (size_t i = 0; i < PH__SHA256_SIZE; i += 3) {
        uint32_t bits = (uint32_t)digest[i] << 16 | (uint32_t)digest[i + 1] << 8 |
                        (i + 2 < PH__SHA256_SIZE ? digest[i + 2] : 0);
        for (int shift = 18; shift >= 0; shift -= 6)
            word[used++] = digits[bits >> shift & 63];
    }
    word[used - 1] = '=';
    snprintf(word + used, 80 - used, "'");
}

static void the_policy_names_the_one_script_and_the_one_style(void **state) {
    struct sink_feed feed;
    char word[80];

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    feed_close(&feed);
    const char *policy = strstr(feed.text, "http-equiv=\"Content-Security-Policy\"");
    const char *head_end = strstr(feed.text, "</head>");
    assert_non_null(policy);
    assert_non_null(strstr(policy, "content=\"default-src 'none'; "));
    assert_null(strstr(policy, "unsafe"));
    assert_true(policy < strstr(feed.text, "<script"));
    assert_true(policy < strstr(feed.text, "<style"));
    assert_true(head_end < trace_of(feed.text));
    static const char *const tags[] = {"script", "style"};
    for (size_t i = 0; i < COUNT(tags); i++) {
        hash_element(feed.text, tags[i], word);
        if (!strstr(policy, word))
            fail_msg("the policy has no %s", word);
    }
    feed_free(&feed);
}

/* No address, and nothing that makes markup of a text. */
static void the_page_asks_for_nothing(void **state) {
    static const char *const words[] = {"http://",
                                        "https://",
                                        "src=",
                                        "@import",
                                        "url(",
                                        "fetch(",
                                        "XMLHttp",
                                        "WebSocket",
                                        "innerHTML",
                                        "outerHTML",
                                        "insertAdjacentHTML",
                                        "document.write",
                                        "eval(",
                                        "Function(",
                                        "DOMParser",
                                        "import("};
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    feed_close(&feed);
    for (size_t i = 0; i < COUNT(words); i++)
        if (strstr(feed.text, words[i]))
            fail_msg("%s is in the page", words[i]);
    feed_free(&feed);
}

/* ---- items --------------------------------------------------------------------------------------------- */

static void a_span_is_read_back(void **state) {
    static const uint8_t bytes[] = {1, 2, 3};
    const ph_field fields[] = {text_field("sql", "SELECT 1"),
                               {.name = "n", .value = {.type = PH_I64, .i64 = INT64_MIN}},
                               {.name = "most", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
                               {.name = "x", .value = {.type = PH_F64, .f64 = 0.5}},
                               {.name = "yes", .value = {.type = PH_BOOL, .boolean = true}},
                               {.name = "at", .value = {.type = PH_POINTER, .u64 = 255}},
                               {.name = "key",
                                .value = {.type = PH_BYTES, .bytes = {bytes, sizeof bytes}},
                                .size = sizeof bytes,
                                .full_size = 77},
                               text_field(NULL, "no name")};
    static const char *const read_back[][3] = {{"sql", "string", "SELECT 1"},
                                               {"n", "i64", "-9223372036854775808"},
                                               {"most", "u64", "18446744073709551615"},
                                               {"x", "f64", "0.5"},
                                               {"yes", "bool", "true"},
                                               {"at", "pointer", "0xff"},
                                               {"key", "bytes", "AQID"},
                                               {"", "string", "no name"}};
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    json_t *items = NULL;
    ph_trace_span span = feed_span_of(8, 7, "step", 0, 0);
    span.sandbox = 3;
    span.unfinished = true;
    span.status = PH_E_PAGE_FAULT;
    span.message = "why";
    span.source = (ph_source){"file.c", "function", 7};
    span.fields = fields;
    span.field_count = COUNT(fields);
    feed_give(&feed, span);
    feed_close(&feed);
    items = items_of(feed.text);
    const json_t *item = item_of(items, "s", 0), *extras = json_array_get(item, 9);
    static const json_int_t numbers[] = {3, 8, 7, PH_SPAN_USER, PH_LEVEL_INFO};
    for (size_t i = 0; i < COUNT(numbers); i++)
        assert_int_equal(number_at(item, i + 1), numbers[i]);
    assert_text(items, json_array_get(item, 6), "step");
    assert_int_equal(number_at(item, 8), 0);
    assert_int_equal(json_integer_value(json_object_get(extras, "u")), 1);
    assert_text(items, json_object_get(extras, "s"), "page-fault");
    assert_text(items, json_object_get(extras, "m"), "why");
    assert_text(items, json_object_get(extras, "f"), "file.c");
    assert_int_equal(json_integer_value(json_object_get(extras, "l")), 7);
    assert_text(items, json_object_get(extras, "n"), "function");
    for (size_t i = 0; i < COUNT(fields); i++) {
        const json_t *field = json_array_get(json_object_get(extras, "v"), i);
        for (size_t part = 0; part < 3; part++)
            assert_text(items, json_array_get(field, part), read_back[i][part]);
        assert_int_equal(json_array_size(field), fields[i].full_size > fields[i].size ? 4 : 3);
    }
    assert_int_equal(number_at(json_array_get(json_object_get(extras, "v"), 6), 3), 77);
    json_decref(items);
    feed_free(&feed);
}

static void assert_w3c_id(const json_t *extras, uint64_t id) {
    uint8_t bytes[8];
    char hex[2 * sizeof bytes + 1];

    ph_trace_span_id(id, bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(json_string_value(json_object_get(extras, "i")), hex);
}

/* Only a root has them; and what the host did has the id that other systems know it by. */
static void a_root_has_its_trace(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    for (uint64_t id = 1; id <= 3; id++) {
        ph_trace_span span = feed_span_of(id, id == 2 ? 1 : 0, "call f", 0, 1);
        memset(span.trace_id, id == 3 ? 0 : 0xa0, sizeof span.trace_id);
        memset(span.remote_parent, id == 3 ? 0 : 0x0b, sizeof span.remote_parent);
        span.trace_state = id == 3 ? NULL : "a=<b>";
        span.dropped_fields = id == 2 ? 7 : 0;
        feed_give(&feed, span);
    }
    feed_close(&feed);
    json_t *items = items_of(feed.text);
    assert_string_equal(json_string_value(json_array_get(item_of(items, "zero", 0), 2)), ph_version());
    const json_t *extras = json_array_get(item_of(items, "s", 0), 9);
    assert_text(items, json_object_get(extras, "t"), "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0");
    assert_text(items, json_object_get(extras, "r"), "0b0b0b0b0b0b0b0b");
    assert_text(items, json_object_get(extras, "w"), "a=<b>");
    assert_w3c_id(extras, 1);
    extras = json_array_get(item_of(items, "s", 1), 9);
    assert_int_equal(json_object_size(extras), 1);
    assert_int_equal(json_integer_value(json_object_get(extras, "d")), 7);
    extras = json_array_get(item_of(items, "s", 2), 9);
    assert_int_equal(json_object_size(extras), 1);
    assert_w3c_id(extras, 3);
    json_decref(items);
    feed_free(&feed);
}

/* As offsets from the trace's zero, up to a month behind it, and before it. */
static void times_are_to_the_nanosecond(void **state) {
    static const int64_t starts[] = {0, 1, 999, 1000000001, 2592000000000001, -1};
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    fflush(feed.file);
    feed.sink.flush(feed.sink.context);
    const char *zero_text = strstr(trace_of(feed.text), "[\"zero\",\"");
    assert_non_null(zero_text);
    uint64_t zero = strtoull(zero_text + 9, NULL, 10);
    for (size_t i = 0; i < COUNT(starts); i++)
        feed_span(&feed, i + 1, 0, "call f", zero + (uint64_t)starts[i],
                  zero + (uint64_t)starts[i] + 1000000001 * i);
    feed_close(&feed);
    json_t *items = items_of(feed.text);
    for (size_t i = 0; i < COUNT(starts); i++) {
        assert_int_equal(number_at(item_of(items, "s", i), 7), starts[i]);
        assert_int_equal(number_at(item_of(items, "s", i), 8), 1000000001 * i);
    }
    json_decref(items);
    feed_free(&feed);
}

static const char *const texts[][2] = {
    {"</script><script>alert(1)</script>", NULL},
    {"<!--<script>", NULL},
    {"-->", NULL},
    {"]]>", NULL},
    {"</SCRIPT >", NULL},
    {"&lt;&#60;", NULL},
    {"\"],[\"end\",0,0,0]]\\", NULL},
    {"\r\n\t\x01\x1b[0m\x7f", NULL},
    {"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae", NULL},
    {"\xff<\xc0\x80>\xed\xa0\x80",
     "\xef\xbf\xbd<\xef\xbf\xbd\xef\xbf\xbd>\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"gr\xc3\xb6\xc3\x9f"
     "e \xf0\x9f\x94\xac",
     NULL},
    {"", NULL},
};

static void give_text_everywhere(struct sink_feed *feed, const char *text) {
    const ph_field fields[] = {text_field(text, text)};
    ph_trace_span span = feed_span_of(1, 0, text, 0, 1);
    const ph_trace_event event = {.size = sizeof event,
                                  .sandbox = 1,
                                  .span = 1,
                                  .level = PH_LEVEL_WARN,
                                  .name = text,
                                  .message = text,
                                  .source = {text, text, 1},
                                  .fields = fields,
                                  .field_count = 1};
    const ph_trace_counter counter = {
        .size = sizeof counter, .sandbox = 1, .name = text, .value = {.type = PH_I64, .i64 = INT64_MIN}};

    span.status = PH_E_GUEST;
    span.message = text;
    span.source = (ph_source){text, text, 1};
    span.fields = fields;
    span.field_count = 1;
    feed_give(feed, span);
    feed->sink.event(feed->sink.context, &event);
    feed->sink.counter(feed->sink.context, &counter);
}

static void assert_extras(const json_t *items, const json_t *extras, const char *text) {
    const json_t *field = json_array_get(json_object_get(extras, "v"), 0);

    assert_text(items, json_object_get(extras, "m"), text);
    assert_text(items, json_object_get(extras, "f"), text);
    assert_text(items, json_object_get(extras, "n"), text);
    assert_text(items, json_array_get(field, 0), text);
    assert_text(items, json_array_get(field, 2), text);
}

/* And none of what HTML looks for is in what is written of it. */
static void any_text_is_read_back(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *text = texts[i][0], *read_back = texts[i][1] ? texts[i][1] : text;
        struct sink_feed feed;
        feed_open(&feed, ph_html_sink_open);
        give_text_everywhere(&feed, text);
        feed_close(&feed);
        json_t *items = items_of(feed.text);
        const json_t *span = item_of(items, "s", 0), *event = item_of(items, "v", 0),
                     *counter = item_of(items, "c", 0);
        assert_text(items, json_array_get(span, 6), read_back);
        assert_extras(items, json_array_get(span, 9), read_back);
        assert_text(items, json_array_get(event, 4), read_back);
        assert_extras(items, json_array_get(event, 6), read_back);
        assert_text(items, json_array_get(counter, 3), read_back);
        assert_text(items, json_array_get(counter, 5), "-9223372036854775808");
        for (const char *at = trace_of(feed.text); (at = strpbrk(at, "<&")); at++)
            if (strncmp(at, CHUNK, strlen(CHUNK)) != 0 && strncmp(at, "</", 2) != 0)
                fail_msg("this is not ours: %.40s", at);
        json_decref(items);
        feed_free(&feed);
    }
}

/* ---- bounds and ends ----------------------------------------------------------------------------------- */

#define KEPT 100000

static void what_is_beyond_the_bounds_is_counted(void **state) {
    const ph_trace_event event = {.size = sizeof event, .sandbox = 1, .level = PH_LEVEL_INFO, .name = "e"};
    const ph_trace_counter counter = {
        .size = sizeof counter, .sandbox = 1, .name = "c", .value = {.type = PH_I64}};
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    for (uint64_t i = 0; i < KEPT + 30; i++) {
        feed_span(&feed, i + 2, 1, "step", 0, 1);
        if (i < KEPT + 20)
            feed.sink.event(feed.sink.context, &event);
        if (i < KEPT + 10)
            feed.sink.counter(feed.sink.context, &counter);
    }
    for (uint64_t i = 0; i < 2000; i++) /* what was around them */
        feed_span(&feed, KEPT * 2 + i, 0, "call f", 0, 1);
    feed_close(&feed);
    json_t *items = items_of(feed.text);
    const json_t *end = item_of(items, "end", 0);
    assert_int_equal(count_of(items, "s"), KEPT + 1000);
    assert_int_equal(count_of(items, "v"), KEPT);
    assert_int_equal(count_of(items, "c"), KEPT);
    assert_int_equal(number_at(end, 1), 30 + 1000);
    assert_int_equal(number_at(end, 2), 20);
    assert_int_equal(number_at(end, 3), 10);
    json_decref(items);
    feed_free(&feed);
}

/* 64 MiB, and what one item more has. */
static void the_size_is_bounded_too(void **state) {
    static char tall[1 << 20];
    struct sink_feed feed;

    (void)state;
    memset(tall, 'x', sizeof tall - 1);
    const ph_field fields[] = {text_field("tall", tall)};
    feed_open(&feed, ph_html_sink_open);
    for (uint64_t i = 0; i < 100; i++) {
        ph_trace_span span = feed_span_of(i + 2, 1, "step", 0, 1);
        span.fields = fields;
        span.field_count = 1;
        feed_give(&feed, span);
    }
    feed_close(&feed);
    json_t *items = items_of(feed.text);
    assert_int_equal(count_of(items, "s"), 64);
    assert_int_equal(number_at(item_of(items, "end", 0), 1), 100 - (json_int_t)count_of(items, "s"));
    json_decref(items);
    feed_free(&feed);
}

/* Texts without end: the table of those with a number is of one size, and all is read back. */
static void more_texts_than_have_a_number_are_written(void **state) {
    struct sink_feed feed;
    char name[32];

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    for (uint64_t i = 0; i < 9000; i++) {
        snprintf(name, sizeof name, "name %d", (int)(i % 4500));
        feed_span(&feed, i + 2, 1, name, 0, 1);
    }
    feed_close(&feed);
    json_t *items = items_of(feed.text);
    for (size_t i = 0; i < 9000; i += 487) {
        snprintf(name, sizeof name, "name %d", (int)(i % 4500));
        assert_text(items, json_array_get(item_of(items, "s", i), 6), name);
    }
    json_decref(items);
    feed_free(&feed);
}

/* As the page does: all lines but the last, and an end. */
static void what_is_there_is_whole_up_to_its_last_line(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_html_sink_open);
    for (uint64_t id = 1; id <= 1200; id++) {
        feed_span(&feed, id, 0, "call f", 0, 1);
        if (id % 149)
            continue;
        feed.sink.flush(feed.sink.context);
        size_t spans = 0;
        for (const char *at = trace_of(feed.text), *next; at && *at; at = next) {
            next = strstr(at + 1, CHUNK);
            const char *end = strstr(at + strlen(CHUNK), "]</script>");
            char *chunk = NULL;
            assert_true((end != NULL) == (next != NULL));
            assert_true(asprintf(&chunk, "%.*s]", (int)((end ? end : at + strlen(at)) - at), at) > 0);
            json_t *items = json_loads(chunk + strlen(CHUNK), 0, NULL);
            assert_non_null(items);
            spans += count_of(items, "s");
            json_decref(items);
            free(chunk);
        }
        assert_int_equal(spans, id);
    }
    feed_close(&feed);
    json_decref(items_of(feed.text));
    feed_free(&feed);
}

static void options_that_are_wrong_are_refused(void **state) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;
    ph_sink sink;

    (void)state;
    assert_int_equal(ph_html_sink_open(&options, NULL, &error), PH_E_ARGUMENT);
    options.size = 0;
    assert_int_equal(ph_html_sink_open(&options, &sink, &error), PH_E_ARGUMENT);
    assert_null(sink.close);
}

static void a_failed_write_is_seen_at_the_file(void **state) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    struct sink_feed feed = {0};

    (void)state;
    feed.file = options.file = fopen("/dev/full", "w");
    assert_non_null(feed.file);
    assert_int_equal(ph_html_sink_open(&options, &feed.sink, NULL), PH_OK);
    feed_span(&feed, 1, 0, "call f", 0, 1);
    feed_close(&feed);
    assert_true(ferror(feed.file));
    fclose(feed.file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_names_the_one_script_and_the_one_style),
        cmocka_unit_test(the_page_asks_for_nothing),
        cmocka_unit_test(a_span_is_read_back),
        cmocka_unit_test(a_root_has_its_trace),
        cmocka_unit_test(times_are_to_the_nanosecond),
        cmocka_unit_test(any_text_is_read_back),
        cmocka_unit_test(what_is_beyond_the_bounds_is_counted),
        cmocka_unit_test(the_size_is_bounded_too),
        cmocka_unit_test(more_texts_than_have_a_number_are_written),
        cmocka_unit_test(what_is_there_is_whole_up_to_its_last_line),
        cmocka_unit_test(options_that_are_wrong_are_refused),
        cmocka_unit_test(a_failed_write_is_seen_at_the_file),
    };
    return cmocka_run_group_tests_name("html", tests, NULL, NULL);
}
