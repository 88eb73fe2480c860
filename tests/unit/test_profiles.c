/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The sinks of folded stacks and of speedscope's profiles add up self time by stack: no nanosecond is lost or
 * counted twice, also beyond their bounds and without memory, and no name of a guest makes a line or a frame
 * of its own.
 */
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/export.h>

#include "support/failing.h"
#include "unit/sink_feed.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define STACKS_MAX 65536u
#define EPOCH_NS 1700000000000000000u

/* The sum of all numbers of the folded stacks in (text), each line of which must be well formed; (*lines) is
 * how many there are. */
static uint64_t sum_of(const char *text, unsigned *lines) {
    uint64_t sum = 0;

    *lines = 0;
    while (*text) {
        const char *end = strchr(text, '\n');
        assert_non_null(end);
        const char *blank = memrchr(text, ' ', (size_t)(end - text));
        assert_non_null(blank);
        assert_true(blank > text);
        assert_int_equal(strspn(blank + 1, "0123456789"), end - blank - 1);
        sum += strtoull(blank + 1, NULL, 10);
        ++*lines;
        text = end + 1;
    }
    return sum;
}

/* ---- folded -------------------------------------------------------------------------------------------- */

static void self_time_is_what_the_children_leave(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    feed_span(&feed, 4, 3, "read", EPOCH_NS + 30, EPOCH_NS + 37);
    feed_span(&feed, 3, 2, "step", EPOCH_NS + 20, EPOCH_NS + 50);
    feed_span(&feed, 5, 2, "sort", EPOCH_NS + 60, EPOCH_NS + 61);
    feed_span(&feed, 2, 1, "guest f", EPOCH_NS + 10, EPOCH_NS + 90);
    feed_span(&feed, 1, 0, "call f", EPOCH_NS, EPOCH_NS + 1000000000);
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;call f 999999920\n"
                                   "sandbox 1;call f;guest f 49\n"
                                   "sandbox 1;call f;guest f;step 23\n"
                                   "sandbox 1;call f;guest f;step;read 7\n"
                                   "sandbox 1;call f;guest f;sort 1\n");
    feed_free(&feed);
}

/* The second call has what the first one has, and more, and the third one less. */
static void equal_stacks_are_one_line(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t id = 10 * i;
        feed_span(&feed, id + 4, id + 3, "read", 10, 15);
        if (i == 1)
            feed_span(&feed, id + 5, id + 3, "write", 20, 21);
        feed_span(&feed, id + 3, id + 2, "step", 10, 30);
        if (i < 2) {
            feed_span(&feed, id + 7, id + 6, "read", 50, 53);
            feed_span(&feed, id + 6, id + 2, "step", 50, 60);
        }
        feed_span(&feed, id + 2, id + 1, "guest f", 10, 60);
        feed_span(&feed, id + 1, 0, "call f", 0, 100);
    }
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;call f 150\n"
                                   "sandbox 1;call f;guest f 70\n"
                                   "sandbox 1;call f;guest f;step 58\n"
                                   "sandbox 1;call f;guest f;step;read 21\n"
                                   "sandbox 1;call f;guest f;step;write 1\n");
    feed_free(&feed);
}

static void sandboxes_are_apart(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    ph_trace_span inner = feed_span_of(2, 1, "step", 0, 1);
    ph_trace_span other = feed_span_of(4, 3, "step", 0, 2);
    ph_trace_span root = feed_span_of(3, 0, "call f", 0, 5);
    other.sandbox = root.sandbox = UINT64_MAX;
    feed_give(&feed, inner);
    feed_give(&feed, other);
    feed_give(&feed, root);
    feed_span(&feed, 1, 0, "call f", 0, 3);
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;call f 2\n"
                                   "sandbox 1;call f;step 1\n"
                                   "sandbox 18446744073709551615;call f 3\n"
                                   "sandbox 18446744073709551615;call f;step 2\n");
    feed_free(&feed);
}

static void a_name_cannot_make_a_frame_or_a_line(void **state) {
    static const struct {
        const char *name, *shown;
    } names[] = {{"a;b", "a:b"},
                 {"a\nsandbox 9;f 1", "a_sandbox 9:f_1"},
                 {"\r\t\x1b[2J\x7f", "___[2J_"},
                 {"\xe2\x80\xae\xe2\x80\xa8", "__"},
                 {"", "[unnamed]"},
                 {NULL, "[unnamed]"},
                 {"phase 2", "phase_2"},
                 {"phase 2.5", "phase_2.5"},
                 {"7", "7"},
                 {"a  b ", "a  b "},
                 {"\"quoted\" \\ 'too'", "\"quoted\" \\ 'too'"},
                 {"größe 大きさ 🔬", "größe 大きさ 🔬"},
                 {"\xff\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    char expected[160];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct sink_feed feed;
        feed_open(&feed, ph_folded_sink_open);
        feed_span(&feed, 1, 0, names[i].name, 5, 6);
        feed_close(&feed);
        snprintf(expected, sizeof expected, "sandbox 1;%s 1\n", names[i].shown);
        assert_string_equal(feed.text, expected);
        feed_free(&feed);
    }
}

static void names_are_those_of_the_text(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    ph_trace_span span = feed_span_of(2, 1, "brk", 0, 1);
    feed_give(&feed, span);
    span.id = 3;
    span.kind = PH_SPAN_SYSTEM_CALL;
    feed_give(&feed, span);
    span.id = 4;
    span.kind = PH_SPAN_FUNCTION;
    feed_give(&feed, span);
    feed_span(&feed, 1, 0, "call f", 0, 3);
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;call f;brk 1\n"
                                   "sandbox 1;call f;syscall brk 1\n"
                                   "sandbox 1;call f;brk() 1\n");
    feed_free(&feed);
}

static void a_long_name_is_cut_at_a_character(void **state) {
    char name[400], expected[400];
    struct sink_feed feed;

    (void)state;
    memset(name, 'x', 254);
    snprintf(name + 254, sizeof name - 254, "üüüü");
    snprintf(expected, sizeof expected, "sandbox 1;%.254s 1\n", name);
    feed_open(&feed, ph_folded_sink_open);
    feed_span(&feed, 1, 0, name, 0, 1);
    feed_close(&feed);
    assert_string_equal(feed.text, expected);
    feed_free(&feed);
}

static void asynchronous_spans_take_no_time_of_a_stack(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    ph_trace_span job = feed_span_of(2, 1, "job", 0, 50);
    job.kind = PH_SPAN_ASYNC;
    feed_give(&feed, job);
    feed_span(&feed, 1, 0, "call f", 0, 10);
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;call f 10\n");
    feed_free(&feed);
}

static void what_never_came_is_unknown(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    feed_span(&feed, 3, 2, "step", 0, 10);
    feed_span(&feed, 9, 9, "its own parent", 0, 10);
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;[unknown];step 10\n");
    feed_free(&feed);
}

static void nothing_is_an_empty_file(void **state) {
    struct sink_feed feed;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    feed_close(&feed);
    assert_string_equal(feed.text, "");
    feed_free(&feed);
}

/* A chain of (depth) spans, the innermost first, of 1 ns of self time each. */
static void give_chain(struct sink_feed *feed, uint64_t depth) {
    char name[24];

    for (uint64_t id = depth; id > 0; id--) {
        snprintf(name, sizeof name, "level%" PRIu64, id);
        feed_span(feed, id, id - 1, name, id, 2 * depth + 1 - id + 1 - (id == depth ? 1 : 0));
    }
}

static void a_thousand_levels_are_there(void **state) {
    struct sink_feed feed;
    unsigned lines;
    char name[24];

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    give_chain(&feed, 1000);
    feed_close(&feed);
    assert_int_equal(sum_of(feed.text, &lines), 2000);
    assert_int_equal(lines, 1000);
    /* The last line has all of them, in order. */
    feed.text[feed.size - 1] = 0;
    const char *at = strrchr(feed.text, '\n') + 1;
    assert_memory_equal(at, "sandbox 1", 9);
    at += 9;
    for (unsigned i = 1; i <= 1000; i++) {
        int length = snprintf(name, sizeof name, ";level%u", i);
        assert_memory_equal(at, name, length);
        at += length;
    }
    assert_string_equal(at, " 1");
    feed_free(&feed);
}

/* ---- bounds -------------------------------------------------------------------------------------------- */

static void stacks_beyond_the_bound_are_other(void **state) {
    struct sink_feed feed;
    unsigned lines;
    char name[32];

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    for (uint64_t i = 0; i < 3 * STACKS_MAX; i++) {
        snprintf(name, sizeof name, "name%" PRIu64, i);
        feed_span(&feed, 10 + i, 1, name, i, i + 1);
    }
    feed_span(&feed, 1, 0, "call f", 0, 3 * STACKS_MAX + 7);
    feed_span(&feed, 2, 0, "call late", 0, 5);
    feed_close(&feed);
    assert_int_equal(sum_of(feed.text, &lines), 3 * STACKS_MAX + 7 + 5);
    assert_true(lines <= STACKS_MAX && lines > STACKS_MAX - 10);
    assert_non_null(strstr(feed.text, "sandbox 1;call f 7\n"));
    assert_non_null(strstr(feed.text, "\nsandbox 1;call f;name0 1\n"));
    const char *other = strstr(feed.text, "\nsandbox 1;[other] ");
    assert_non_null(other);
    assert_int_equal(strtoull(other + 19, NULL, 10), 3 * STACKS_MAX + 7 + 5 - 7 - (lines - 2));
    feed_free(&feed);
}

static void sandboxes_beyond_the_bound_are_other(void **state) {
    struct sink_feed feed;
    unsigned lines;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    for (uint64_t i = 1; i <= STACKS_MAX; i++) {
        ph_trace_span child = feed_span_of(2 * i, 2 * i + 1, "step", 0, 1);
        ph_trace_span root = feed_span_of(2 * i + 1, 0, "call f", 0, 3);
        child.sandbox = root.sandbox = i;
        feed_give(&feed, child);
        feed_give(&feed, root);
    }
    feed_close(&feed);
    assert_int_equal(sum_of(feed.text, &lines), 3 * (uint64_t)STACKS_MAX);
    assert_true(lines <= STACKS_MAX);
    assert_non_null(strstr(feed.text, "\n[other] "));
    feed_free(&feed);
}

/* Deeper than any tracer lets a guest go: one long stack, and many that are long together. */
static void stacks_that_are_too_deep_are_other(void **state) {
    struct sink_feed feed;
    unsigned lines;

    (void)state;
    feed_open(&feed, ph_folded_sink_open);
    for (uint64_t id = 10000; id > 0; id--)
        feed_span(&feed, id, id - 1, "again", 0, 5);
    feed_close(&feed);
    assert_string_equal(feed.text, "sandbox 1;[other] 5\n");
    feed_free(&feed);

    feed_open(&feed, ph_folded_sink_open);
    give_chain(&feed, 8000);
    feed_close(&feed);
    assert_int_equal(sum_of(feed.text, &lines), 16000);
    assert_true(lines > 5000 && lines < 6000);
    assert_non_null(strstr(feed.text, "\nsandbox 1;[other] "));
    feed_free(&feed);
}

static void memory_does_not_grow_with_the_trace(void **state) {
    struct sink_feed feed;
    char names[10][8];
    size_t before = 0;

    (void)state;
    for (unsigned i = 0; i < COUNT(names); i++)
        snprintf(names[i], sizeof names[i], "name%u", i);
    feed_open(&feed, ph_folded_sink_open);
    for (uint64_t id = 1; id < 1000000; id += 21) {
        for (uint64_t i = 0; i < 10; i++) {
            feed_span(&feed, id + 2 * i + 2, id + 2 * i + 1, names[i], 20 * i, 20 * i + 1);
            feed_span(&feed, id + 2 * i + 1, id, names[id % 10], 20 * i, 20 * i + 2);
        }
        feed_span(&feed, id, 0, "call f", 0, 1000);
        if (id == 1 + 21 * 100)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks <= before);
    feed_close(&feed);
    feed_free(&feed);
}

/* Whichever allocation fails, the times add up. */
static void nothing_is_lost_without_memory(void **state) {
    struct sink_feed feed;
    unsigned refused = 0, lines;
    char name[16];

    (void)state;
    for (unsigned at = 1;; at++) {
        failing = (struct failing){.at = at};
        ph_status status = feed_try_open(&feed, ph_folded_sink_open);
        if (status != PH_OK) {
            assert_int_equal(status, PH_E_MEMORY);
            assert_null(feed.sink.close);
            refused++;
            feed_free(&feed);
            continue;
        }
        for (uint64_t i = 0; i < 5000; i++) {
            snprintf(name, sizeof name, "name%" PRIu64, i);
            feed_span(&feed, 3 * i + 12, 3 * i + 11, name, i, i + 1);
            feed_span(&feed, 3 * i + 11, 1, "step", i, i + 1);
        }
        feed_span(&feed, 1, 0, "call f", 0, 6000);
        bool failed = failing.failed;
        failing = (struct failing){0};
        feed_close(&feed);
        assert_int_equal(sum_of(feed.text, &lines), 6000);
        feed_free(&feed);
        if (!failed)
            break;
    }
    assert_true(refused >= 6);
}

/* ---- speedscope ---------------------------------------------------------------------------------------- */

/* The profiles of a closed (feed)'s file, which is (*file); what the schema requires is there. The keys are
 * those of file-format-spec.ts in speedscope's sources. */
static const json_t *profiles_of(struct sink_feed *feed, json_t **file) {
    json_error_t error;
    size_t i;
    const json_t *element;

    *file = json_loadb(feed->text, feed->size, JSON_REJECT_DUPLICATES, &error);
    if (!*file)
        fail_msg("%d: %s", error.line, error.text);
    assert_string_equal(json_string_value(json_object_get(*file, "$schema")),
                        "https://www.speedscope.app/file-format-schema.json");
    const json_t *frames = json_object_get(json_object_get(*file, "shared"), "frames");
    assert_true(json_is_array(frames));
    json_array_foreach(frames, i, element) {
        assert_true(json_is_string(json_object_get(element, "name")));
    }
    const json_t *profiles = json_object_get(*file, "profiles");
    assert_true(json_is_array(profiles));
    json_array_foreach(profiles, i, element) {
        assert_string_equal(json_string_value(json_object_get(element, "type")), "sampled");
        assert_string_equal(json_string_value(json_object_get(element, "unit")), "nanoseconds");
        assert_true(json_is_string(json_object_get(element, "name")));
        const json_t *samples = json_object_get(element, "samples");
        const json_t *weights = json_object_get(element, "weights");
        json_int_t sum = 0;
        assert_true(json_is_array(samples));
        assert_int_equal(json_array_size(samples), json_array_size(weights));
        for (size_t j = 0; j < json_array_size(samples); j++) {
            size_t k;
            const json_t *frame;
            sum += json_integer_value(json_array_get(weights, j));
            assert_true(json_array_size(json_array_get(samples, j)) > 0);
            json_array_foreach(json_array_get(samples, j), k, frame) {
                assert_true((size_t)json_integer_value(frame) < json_array_size(frames));
            }
        }
        assert_int_equal(json_integer_value(json_object_get(element, "startValue")), 0);
        assert_int_equal(json_integer_value(json_object_get(element, "endValue")), sum);
    }
    return profiles;
}

/* The name of the (i)th frame from outside in the (j)th stack of (profile). */
static const char *frame_of(const json_t *file, const json_t *profile, size_t j, size_t i) {
    const json_t *frames = json_object_get(json_object_get(file, "shared"), "frames");
    const json_t *number = json_array_get(json_array_get(json_object_get(profile, "samples"), j), i);

    assert_true(json_is_integer(number));
    return json_string_value(
        json_object_get(json_array_get(frames, (size_t)json_integer_value(number)), "name"));
}

static json_int_t weight_of(const json_t *profile, size_t j) {
    return json_integer_value(json_array_get(json_object_get(profile, "weights"), j));
}

static void a_profile_for_each_sandbox(void **state) {
    struct sink_feed feed;
    json_t *file;

    (void)state;
    feed_open(&feed, ph_speedscope_sink_open);
    feed_span(&feed, 2, 1, "step", EPOCH_NS + 1, EPOCH_NS + 4);
    feed_span(&feed, 1, 0, "call f", EPOCH_NS, EPOCH_NS + 3000000000000001);
    ph_trace_span root = feed_span_of(3, 0, "call g", 0, 5);
    root.sandbox = 2;
    feed_give(&feed, root);
    feed_close(&feed);
    const json_t *profiles = profiles_of(&feed, &file);
    assert_int_equal(json_array_size(profiles), 2);
    const json_t *first = json_array_get(profiles, 0), *second = json_array_get(profiles, 1);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "sandbox 1");
    assert_string_equal(json_string_value(json_object_get(second, "name")), "sandbox 2");
    assert_int_equal(json_array_size(json_object_get(first, "samples")), 2);
    assert_string_equal(frame_of(file, first, 0, 0), "call f");
    assert_int_equal(weight_of(first, 0), 2999999999999998);
    assert_string_equal(frame_of(file, first, 1, 0), "call f");
    assert_string_equal(frame_of(file, first, 1, 1), "step");
    assert_int_equal(weight_of(first, 1), 3);
    assert_string_equal(frame_of(file, second, 0, 0), "call g");
    json_decref(file);
    feed_free(&feed);
}

static void any_name_is_a_frame(void **state) {
    static const struct {
        const char *name, *read_back;
    } names[] = {{"a;b\n\x01\"\\", "a;b\n\x01\"\\"},
                 {"", ""},
                 {"größe 大きさ 🔬", "größe 大きさ 🔬"},
                 {"\xff", "\xef\xbf\xbd"}};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct sink_feed feed;
        json_t *file;
        feed_open(&feed, ph_speedscope_sink_open);
        feed_span(&feed, 1, 0, names[i].name, 0, 1);
        feed_close(&feed);
        const json_t *profile = json_array_get(profiles_of(&feed, &file), 0);
        assert_string_equal(frame_of(file, profile, 0, 0), names[i].read_back);
        json_decref(file);
        feed_free(&feed);
    }
}

static void a_deep_profile_is_read_back(void **state) {
    struct sink_feed feed;
    json_t *file;

    (void)state;
    feed_open(&feed, ph_speedscope_sink_open);
    give_chain(&feed, 1000);
    feed_close(&feed);
    const json_t *profile = json_array_get(profiles_of(&feed, &file), 0);
    assert_int_equal(json_array_size(json_object_get(profile, "samples")), 1000);
    assert_string_equal(frame_of(file, profile, 999, 0), "level1");
    assert_string_equal(frame_of(file, profile, 999, 999), "level1000");
    json_decref(file);
    feed_free(&feed);
}

static void nothing_is_a_file_without_profiles(void **state) {
    struct sink_feed feed;
    json_t *file;

    (void)state;
    feed_open(&feed, ph_speedscope_sink_open);
    feed_close(&feed);
    assert_int_equal(json_array_size(profiles_of(&feed, &file)), 0);
    json_decref(file);
    feed_free(&feed);
}

static void no_room_for_a_sandbox_is_a_profile_of_its_own(void **state) {
    struct sink_feed feed;
    json_t *file;

    (void)state;
    feed_open(&feed, ph_speedscope_sink_open);
    for (uint64_t i = 1; i <= STACKS_MAX; i++) {
        ph_trace_span root = feed_span_of(i, 0, "call f", 0, 3);
        root.sandbox = i;
        feed_give(&feed, root);
    }
    feed_close(&feed);
    const json_t *profiles = profiles_of(&feed, &file);
    const json_t *last = json_array_get(profiles, json_array_size(profiles) - 1);
    assert_string_equal(json_string_value(json_object_get(last, "name")), "[other]");
    assert_string_equal(frame_of(file, last, 0, 0), "[other]");
    json_decref(file);
    feed_free(&feed);
}

/* What a process killed leaves behind. */
static void nothing_is_written_before_the_end(void **state) {
    sink_open_fn *const opens[] = {ph_folded_sink_open, ph_speedscope_sink_open};

    (void)state;
    for (size_t i = 0; i < COUNT(opens); i++) {
        struct sink_feed feed;
        feed_open(&feed, opens[i]);
        feed_span(&feed, 1, 0, "call f", 0, 1);
        fflush(feed.file);
        assert_int_equal(feed.size, 0);
        feed_close(&feed);
        assert_true(feed.size > 0);
        feed_free(&feed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_time_is_what_the_children_leave),
        cmocka_unit_test(equal_stacks_are_one_line),
        cmocka_unit_test(sandboxes_are_apart),
        cmocka_unit_test(a_name_cannot_make_a_frame_or_a_line),
        cmocka_unit_test(names_are_those_of_the_text),
        cmocka_unit_test(a_long_name_is_cut_at_a_character),
        cmocka_unit_test(asynchronous_spans_take_no_time_of_a_stack),
        cmocka_unit_test(what_never_came_is_unknown),
        cmocka_unit_test(nothing_is_an_empty_file),
        cmocka_unit_test(a_thousand_levels_are_there),
        cmocka_unit_test(stacks_beyond_the_bound_are_other),
        cmocka_unit_test(sandboxes_beyond_the_bound_are_other),
        cmocka_unit_test(stacks_that_are_too_deep_are_other),
        cmocka_unit_test(memory_does_not_grow_with_the_trace),
        cmocka_unit_test(nothing_is_lost_without_memory),
        cmocka_unit_test(a_profile_for_each_sandbox),
        cmocka_unit_test(any_name_is_a_frame),
        cmocka_unit_test(a_deep_profile_is_read_back),
        cmocka_unit_test(nothing_is_a_file_without_profiles),
        cmocka_unit_test(no_room_for_a_sandbox_is_a_profile_of_its_own),
        cmocka_unit_test(nothing_is_written_before_the_end),
    };
    return cmocka_run_group_tests_name("profiles", tests, NULL, NULL);
}
