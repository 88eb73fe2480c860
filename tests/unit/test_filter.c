/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A filter gives each file, function and name the level of its most specific rule, and one that makes no
 * sense is refused with the words that say why. Sites ask it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/failing.h"
#include "trace/sites.h"

static struct ph__filter filter;
static ph_error error;

static void parse(const char *text) {
    ph__filter_free(&filter);
    if (ph__filter_parse(text, &filter, &error) != PH_OK)
        fail_msg("refused: %s", error.message);
}

static int level(const char *file, const char *function, const char *name) {
    return ph__filter_level(&filter, file, function, name);
}

/* (text) is refused, and the message says (why). */
static void assert_refused(const char *text, const char *why) {
    ph__filter_free(&filter);
    memset(&filter, 0xaa, sizeof filter);
    assert_int_equal(ph__filter_parse(text, &filter, &error), PH_E_ARGUMENT);
    assert_int_equal(error.status, PH_E_ARGUMENT);
    if (!strstr(error.message, why) || !strstr(error.message, "off, error, warn, info, debug or trace"))
        fail_msg("'%s' is refused with '%s' and not with '%s'", text, error.message, why);
    assert_int_equal(filter.count, 0);
    assert_null(filter.rules);
    assert_int_equal(ph__filter_parse(text, &filter, NULL), PH_E_ARGUMENT);
}

static int free_the_filter(void **state) {
    (void)state;
    failing = (struct failing){0};
    ph__filter_free(&filter);
    return 0;
}

static void a_level_alone_is_for_everything(void **state) {
    static const char *const names[] = {"off", "error", "warn", "info", "debug", "trace"};

    (void)state;
    for (int i = 0; i < 6; i++) {
        parse(names[i]);
        assert_int_equal(level("a.c", "f", "n"), i);
        assert_int_equal(level(NULL, NULL, NULL), i);
        assert_int_equal(ph__filter_highest(&filter), i);
    }
    parse("trace,warn");
    assert_int_equal(level("a.c", "f", "n"), PH_LEVEL_WARN);
    parse("net*=debug");
    assert_int_equal(level("a.c", "f", "n"), PH_LEVEL_INFO);
}

static void a_target_is_a_file_a_function_or_a_name(void **state) {
    (void)state;
    parse("off,src/*.c=error,parse_*=warn,query=debug,main.c=trace");
    assert_int_equal(level("src/net/http.c", "f", "n"), PH_LEVEL_ERROR);
    assert_int_equal(level("/home/src/net/http.c", "f", "n"), PH_LEVEL_OFF);
    assert_int_equal(level("other.c", "parse_url", "n"), PH_LEVEL_WARN);
    assert_int_equal(level("other.c", "f", "query"), PH_LEVEL_DEBUG);
    assert_int_equal(level("other.c", "query", "n"), PH_LEVEL_DEBUG);
    assert_int_equal(level("main.c", "f", "n"), PH_LEVEL_TRACE);
    assert_int_equal(level("lib/main.c", "f", "n"), PH_LEVEL_TRACE);
    assert_int_equal(level("lib/main.cc", "f", "n"), PH_LEVEL_OFF);
    assert_int_equal(level("xmain.c", "f", "n"), PH_LEVEL_OFF);
    assert_int_equal(level(NULL, NULL, "main.c"), PH_LEVEL_TRACE);
    assert_int_equal(ph__filter_highest(&filter), PH_LEVEL_TRACE);
}

static void the_most_specific_target_decides_and_of_equals_the_last(void **state) {
    (void)state;
    parse("query_rows=debug,query_*=error,*=trace");
    assert_int_equal(level("a.c", "f", "query_rows"), PH_LEVEL_DEBUG);
    assert_int_equal(level("a.c", "f", "query_row"), PH_LEVEL_ERROR);
    assert_int_equal(level("a.c", "f", "other"), PH_LEVEL_TRACE);
    parse("a?c=error,*ac=warn,a*c=debug,ac*=off");
    assert_int_equal(level("x", "f", "ac"), PH_LEVEL_OFF);
    assert_int_equal(level("x", "f", "abc"), PH_LEVEL_DEBUG);
    /* Sets and stars are no characters, however long; what a backslash hides is one. */
    parse("[a-z][[:digit:]]*=error,a*=warn");
    assert_int_equal(level("x", "f", "a1"), PH_LEVEL_WARN);
    assert_int_equal(filter.rules[0].literals, 0);
    parse("\\*\\[=error,[]x]y=off,[!]]=off,a\\[b=off,\xc3\xa9=off,[[.].]]z=off,[\\]]=off,\\=off");
    static const uint32_t literals[] = {2, 1, 0, 3, 1, 1, 0, 1};
    assert_int_equal(filter.count, 8);
    for (uint32_t i = 0; i < filter.count; i++)
        assert_int_equal(filter.rules[i].literals, literals[i]);
    assert_int_equal(level("x", "f", "*["), PH_LEVEL_ERROR);
}

static void spaces_and_equal_signs_are_where_they_are(void **state) {
    (void)state;
    parse(" debug ,\tnet* = warn , operator== =error ");
    assert_int_equal(level("x", "f", "n"), PH_LEVEL_DEBUG);
    assert_int_equal(level("x", "f", "net.c"), PH_LEVEL_WARN);
    assert_int_equal(level("x", "operator==", "n"), PH_LEVEL_ERROR);
}

static void what_makes_no_sense_is_named(void **state) {
    char text[1000];

    (void)state;
    assert_refused("", "element 1 is empty");
    assert_refused("  ", "element 1 is empty");
    assert_refused("info,,debug", "element 2 is empty");
    assert_refused("info,", "element 2 is empty");
    assert_refused("net*=debug,loud", "'loud' has the level 'loud', which is none");
    assert_refused("net*=louder", "'net*=louder' has the level 'louder'");
    assert_refused("INFO", "the level 'INFO'");
    assert_refused("inf", "the level 'inf'");
    assert_refused("infos", "the level 'infos'");
    assert_refused("a=", "'a=' has the level ''");
    assert_refused("a=b c", "the level 'b c'");
    assert_refused("=debug", "'=debug' has no target");
    assert_refused(" = debug", "'= debug' has no target");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    assert_refused(text, "xxx' has the level 'xxx");
}

static void a_set_that_does_not_end_is_refused(void **state) {
    static const char *const elements[] = {"[=debug",   "a[b=debug",   "x[]=debug",
                                           "[!]=debug", "[a\\]=debug", "[a]b[c=debug"};
    char why[200];

    (void)state;
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "info,b*=off,%s", elements[i]);
        snprintf(why, sizeof why, "the filter's element '%s' has a '[' without its ']'", elements[i]);
        assert_int_equal(ph__filter_parse(text, &filter, &error), PH_E_ARGUMENT);
        if (!strstr(error.message, why))
            fail_msg("'%s' is refused with '%s'", text, error.message);
        assert_int_equal(filter.count, 0);
        assert_null(filter.rules);
    }
    parse("\\[=debug,[[]=debug");
    assert_int_equal(level("x", "f", "["), PH_LEVEL_DEBUG);
}

static void there_are_up_to_1024_targets(void **state) {
    static char text[8 * (PH__FILTER_RULES_MAX + 10)];
    size_t used = 0;

    (void)state;
    for (unsigned i = 0; i < PH__FILTER_RULES_MAX; i++)
        used += (size_t)sprintf(text + used, "%sx%u=off", i ? "," : "", i % 100);
    parse(text);
    assert_int_equal(filter.count, PH__FILTER_RULES_MAX);
    /* Levels alone are no targets. */
    memcpy(text + used, ",debug", sizeof ",debug");
    parse(text);
    memcpy(text + used, ",y=off", sizeof ",y=off");
    ph__filter_free(&filter);
    assert_int_equal(ph__filter_parse(text, &filter, &error), PH_E_ARGUMENT);
    assert_non_null(strstr(error.message, "more than 1024 targets"));
}

static void every_failing_call_leaves_nothing_behind(void **state) {
    (void)state;
    for (unsigned at = 1;; at++) {
        failing = (struct failing){.at = at};
        ph_status status = ph__filter_parse("a=off,b=debug,warn", &filter, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_int_equal(at, 4);
            return;
        }
        assert_int_equal(status, PH_E_MEMORY);
        assert_int_equal(filter.count, 0);
        assert_null(filter.rules);
    }
}

static void no_name_makes_a_filter_slow(void **state) {
    static char name[4096];
    clock_t start = clock();

    (void)state;
    memset(name, 'a', sizeof name - 1);
    parse("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b=debug");
    assert_int_equal(level(name, name, name), PH_LEVEL_INFO);
    assert_true(clock() - start < CLOCKS_PER_SEC);
}

static void assert_site(uint8_t kind, uint8_t count, const char *text, uint64_t word) {
    const struct ph__site site = {
        .name = "name",
        .file = "src/file.c",
        .function = "function",
        .kind = kind,
        .level = PH_LEVEL_DEBUG,
        .count = count,
    };

    parse(text);
    assert_int_equal(ph__site_word(&site, 0x12345, &filter), word);
    assert_int_equal(ph__site_wanted(&site, &filter), word != 0);
    if (word != 0)
        assert_int_equal(ph__site_words(&site), word & PH__RECORD_LENGTH_MASK);
}

static void a_site_that_is_on_has_the_head_of_its_records(void **state) {
    (void)state;
    assert_site(PH__SITE_SPAN, 0, "debug", PH__RECORD_WORD(PH__RECORD_SPAN_BEGIN, 0x12345, 2));
    assert_site(PH__SITE_SPAN, 12, "trace", PH__RECORD_WORD(PH__RECORD_SPAN_BEGIN, 0x12345, 14));
    assert_site(PH__SITE_SPAN, 0, "info", 0);
    assert_site(PH__SITE_SPAN, 0, "off", 0);
    assert_site(PH__SITE_SPAN, 1, "off,name=debug", PH__RECORD_WORD(PH__RECORD_SPAN_BEGIN, 0x12345, 3));
    assert_site(PH__SITE_EVENT, 2, "off,file.c=trace", PH__RECORD_WORD(PH__RECORD_EVENT, 0x12345, 4));
    assert_site(PH__SITE_LOG, 0, "off,function=trace", PH__RECORD_WORD(PH__RECORD_EVENT, 0x12345, 3));
    assert_site(PH__SITE_COUNTER, 1, "debug", PH__RECORD_WORD(PH__RECORD_COUNTER, 0x12345, 3));
    assert_site(PH__SITE_ASYNC_BEGIN, 1, "debug", PH__RECORD_WORD(PH__RECORD_ASYNC_BEGIN, 0x12345, 4));
    assert_site(PH__SITE_ASYNC_END, 0, "debug", PH__RECORD_WORD(PH__RECORD_ASYNC_END, 0x12345, 3));
    /* A format is no name. */
    assert_site(PH__SITE_LOG, 0, "off,name=trace", 0);
    /* Fields follow their span. */
    assert_site(PH__SITE_FIELDS, 2, "off", PH__RECORD_WORD(PH__RECORD_FIELDS, 0x12345, 5));
    /* Functions are on as soon as any may be wanted. */
    assert_site(PH__SITE_FUNCTION, 0, "off,anything=debug",
                PH__RECORD_WORD(PH__RECORD_FUNCTION_BEGIN, 0x12345, 4));
    assert_site(PH__SITE_FUNCTION, 0, "info,anything=warn", 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, free_the_filter)
    const struct CMUnitTest tests[] = {
        TEST(a_level_alone_is_for_everything),
        TEST(a_target_is_a_file_a_function_or_a_name),
        TEST(the_most_specific_target_decides_and_of_equals_the_last),
        TEST(spaces_and_equal_signs_are_where_they_are),
        TEST(what_makes_no_sense_is_named),
        TEST(a_set_that_does_not_end_is_refused),
        TEST(there_are_up_to_1024_targets),
        TEST(every_failing_call_leaves_nothing_behind),
        TEST(no_name_makes_a_filter_slow),
        TEST(a_site_that_is_on_has_the_head_of_its_records),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
