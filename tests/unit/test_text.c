/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Whatever bytes a guest calls text come out as valid UTF-8, by the Unicode standard's own rule, and no byte
 * beyond them is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/guarded.h"
#include "trace/text.h"

static struct guarded memory;

static void assert_made_valid(const char *bytes, size_t length, int cut, const char *expected) {
    char out[256];
    const char *copy = (const char *)guarded_copy(&memory, bytes, length);

    assert_int_equal(ph__text_make_valid(out, copy, length, cut), strlen(expected));
    assert_string_equal(out, expected);
}

#define MADE_VALID(bytes, expected) assert_made_valid(bytes, sizeof(bytes) - 1, 0, expected)
#define R "\xef\xbf\xbd"

static void valid_text_stays_as_it_is(void **state) {
    (void)state;
    MADE_VALID("", "");
    MADE_VALID("a", "a");
    MADE_VALID("plain text of some length \x01\x1b\x7f", "plain text of some length \x01\x1b\x7f");
    MADE_VALID("\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
               "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
    MADE_VALID("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    MADE_VALID("seven b\xc3\xa9 and on", "seven b\xc3\xa9 and on");
}

/* The examples of the Unicode standard, chapter 3.9, and around them. */
static void each_maximal_subpart_becomes_one_replacement(void **state) {
    (void)state;
    MADE_VALID("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A");
    MADE_VALID("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A");
    MADE_VALID("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B");
    MADE_VALID("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A");
    MADE_VALID("\0", R);
    MADE_VALID("a\0b", "a" R "b");
    MADE_VALID("eight by\0eight b\x80", "eight by" R "eight b" R);
    MADE_VALID("\xe2\x82", R);
    MADE_VALID("\xf5\x80\x80\x80\xc1", R R R R R);
}

static void what_a_cut_leaves_of_a_character_is_left_out(void **state) {
    (void)state;
    assert_made_valid("a\xe2\x82", 3, 1, "a");
    assert_made_valid("a\xf0\x9f\x92", 4, 1, "a");
    assert_made_valid("a\xc3", 2, 1, "a");
    /* These no byte would have made a character. */
    assert_made_valid("a\x82", 2, 1, "a" R);
    assert_made_valid("a\xff", 2, 1, "a" R);
    assert_made_valid("a\xe0\x80", 3, 1, "a" R R);
    assert_made_valid("a\xc3\xa9", 3, 1, "a\xc3\xa9");
}

/* Every string of up to three bytes, of those that mean something: as long a text as is promised, and one
 * that stays as it is. */
static void what_was_made_valid_is_valid(void **state) {
    static const uint8_t bytes[] = {0,    'a',  0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1,
                                    0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};
    enum { COUNT = sizeof bytes };
    char once[16], twice[64];

    (void)state;
    for (unsigned i = 0; i < COUNT * COUNT * COUNT; i++) {
        const char three[] = {(char)bytes[i % COUNT], (char)bytes[i / COUNT % COUNT],
                              (char)bytes[i / COUNT / COUNT]};
        for (int cut = 0; cut < 2; cut++) {
            size_t length = ph__text_make_valid(once, three, sizeof three, cut);
            assert_true(length <= 9 && strlen(once) == length);
            assert_int_equal(ph__text_make_valid(twice, once, length, 0), length);
            assert_string_equal(once, twice);
        }
    }
}

static int make_memory(void **state) {
    (void)state;
    guarded_init(&memory, 4096);
    return 0;
}

static int free_memory(void **state) {
    (void)state;
    guarded_free(&memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_stays_as_it_is),
        cmocka_unit_test(each_maximal_subpart_becomes_one_replacement),
        cmocka_unit_test(what_a_cut_leaves_of_a_character_is_left_out),
        cmocka_unit_test(what_was_made_valid_is_valid),
    };
    return cmocka_run_group_tests_name("text", tests, make_memory, free_memory);
}
