/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Files for speedscope are what its own schema describes, which its package has: of any trace, also of none,
 * with names of any text, and beyond the sink's bounds. tests/npm/check-speedscope.js asks the schema.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinhole/export.h>

#include "unit/sink_feed.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define SANDBOXES_MAX 65536u

/* Skips where there is no node, or nobody has fetched the packages. */
static void needs_schema(void) {
    char path[512];

    snprintf(path, sizeof path, "%s/npm/node_modules/speedscope/dist/release/file-format-schema.json",
             getenv("PH_TEST_CACHE"));
    bool has_node = system("command -v node >/dev/null") == 0; /* NOLINT(cert-env33-c): a constant */
    if (has_node && access(path, R_OK) == 0)
        return;
    print_message("speedscope's schema is not asked: %s\n",
                  has_node ? "scripts/fetch-data.sh npm gets it" : "there is no node here");
    skip();
}

/* What the checker's exit status says of (text) as a file. */
static int check(const char *text, size_t size) {
    char path[] = "/tmp/pinhole-speedscope-XXXXXX";
    char command[1024];
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(write(file, text, size), size);
    close(file);
    snprintf(command, sizeof command, "node '%s/check-speedscope.js' '%s/npm/node_modules' '%s'",
             getenv("PH_TEST_NPM"), getenv("PH_TEST_CACHE"), path);
    int status = system(command); /* NOLINT(cert-env33-c): of paths of our own */
    unlink(path);
    return status;
}

static void finish(struct sink_feed *feed) {
    feed_close(feed);
    assert_int_equal(check(feed->text, feed->size), 0);
    feed_free(feed);
}

static void a_trace_of_nothing_fits(void **state) {
    struct sink_feed feed;

    (void)state;
    needs_schema();
    feed_open(&feed, ph_speedscope_sink_open);
    finish(&feed);
}

static void any_trace_fits(void **state) {
    static const char *const names[] = {"step", "", "a;b\n\x01\"\\", "größe 大きさ 🔬", "\xff\xed\xa0\x80"};
    struct sink_feed feed;

    (void)state;
    needs_schema();
    feed_open(&feed, ph_speedscope_sink_open);
    for (uint64_t sandbox = 1; sandbox <= 3; sandbox++)
        for (uint64_t i = 1000; i > 0; i--) {
            uint64_t id = 1000 * sandbox + i;
            ph_trace_span span = feed_span_of(id, i > 1 ? id - 1 : 0, names[i % COUNT(names)], i, 2001 - i);
            span.sandbox = sandbox;
            feed_give(&feed, span);
        }
    feed_span(&feed, 9001, 9000, "its parent never came", 5, 6);
    finish(&feed);
}

static void what_is_beyond_the_bounds_fits(void **state) {
    struct sink_feed feed;

    (void)state;
    needs_schema();
    feed_open(&feed, ph_speedscope_sink_open);
    for (uint64_t i = 1; i <= SANDBOXES_MAX + 10; i++) {
        ph_trace_span root = feed_span_of(i, 0, "call f", 0, 3);
        root.sandbox = i;
        feed_give(&feed, root);
    }
    finish(&feed);
}

/* The checks are worth something. */
static void what_does_not_fit_is_noticed(void **state) {
    static const char *const wrong[][2] = {
        {"\"unit\":\"nanoseconds\"", "\"unit\":\"nanosecunds\""},
        {"\"startValue\":0", "\"startvalue\":0"},
        {"\"samples\":[\n[1]", "\"samples\":[\n[7]"},
        {"\"weights\":[\n1", "\"weights\":[\n2"},
    };
    struct sink_feed feed;

    (void)state;
    needs_schema();
    feed_open(&feed, ph_speedscope_sink_open);
    feed_span(&feed, 1, 0, "call f", 0, 1);
    feed_close(&feed);
    assert_int_equal(check(feed.text, feed.size), 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *at = strstr(feed.text, wrong[i][0]);
        assert_non_null(at);
        memcpy(at, wrong[i][1], strlen(wrong[i][1]));
        assert_int_not_equal(check(feed.text, feed.size), 0);
        memcpy(at, wrong[i][0], strlen(wrong[i][0]));
    }
    feed_free(&feed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_of_nothing_fits),
        cmocka_unit_test(any_trace_fits),
        cmocka_unit_test(what_is_beyond_the_bounds_fits),
        cmocka_unit_test(what_does_not_fit_is_noticed),
    };
    return cmocka_run_group_tests_name("speedscope", tests, NULL, NULL);
}
