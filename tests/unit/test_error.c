/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A ph_error is filled whatever it held before, and no text that a guest, a file or a path brings along gets
 * through as anything but printable UTF-8 that fits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/guarded.h"

/* Copies the (length) bytes of (text) into room for (capacity), with nothing readable behind the one and
 * nothing writable behind the other. */
static const char *printable(const char *text, size_t length, size_t capacity) {
    static char result[4096];
    struct guarded from, to;
    char *out;
    size_t written;

    guarded_init(&from, 4096);
    guarded_init(&to, 4096);
    out = (char *)guarded_end(&to, capacity);
    memset(out, 'x', capacity);
    written = ph__text_copy_printable(out, capacity, (const char *)guarded_copy(&from, text, length), length);
    assert_true(written < capacity);
    assert_true(written <= length);
    assert_int_equal(out[written], 0);
    assert_int_equal(strlen(out), written);
    memcpy(result, out, written + 1);
    guarded_free(&to);
    guarded_free(&from);
    return result;
}

/* Expects the bytes of the literal (text) to come out as (expected). */
#define ASSERT_PRINTED(text, expected) assert_string_equal(printable(text, sizeof(text) - 1, 4096), expected)

static void printable_text_stays_as_it_is(void **state) {
    (void)state;
    ASSERT_PRINTED("", "");
    ASSERT_PRINTED("plain text, 100%s of it", "plain text, 100%s of it");
    /* The first and last code points of each length, less the controls. */
    ASSERT_PRINTED(" ~", " ~");
    ASSERT_PRINTED("\xc2\xa0 \xdf\xbf", "\xc2\xa0 \xdf\xbf");
    ASSERT_PRINTED("\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf",
                   "\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf");
    ASSERT_PRINTED("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf");
}

static void control_characters_become_question_marks(void **state) {
    (void)state;
    ASSERT_PRINTED("a\nb\tc\rd", "a?b?c?d");
    ASSERT_PRINTED("\x1b[31mred", "?[31mred");
    ASSERT_PRINTED("nul\0within", "nul?within");
    ASSERT_PRINTED("\x01\x1f\x7f", "???");
    /* U+0080, U+009B (a control sequence in one character), U+009F. */
    ASSERT_PRINTED("\xc2\x80 \xc2\x9b \xc2\x9f", "? ? ?");
    /* Line and paragraph separator; turning text around. */
    ASSERT_PRINTED("\xe2\x80\xa8 \xe2\x80\xa9", "? ?");
    ASSERT_PRINTED("\xe2\x80\xaa \xe2\x80\xae \xe2\x81\xa6 \xe2\x81\xa9", "? ? ? ?");
}

static void bytes_that_are_not_utf8_become_question_marks(void **state) {
    (void)state;
    ASSERT_PRINTED("\x80 \xbf \xff \xfe", "? ? ? ?");
    /* Overlong, surrogates, above U+10FFFF: one mark a byte. */
    ASSERT_PRINTED("\xc0\xaf \xc1\xbf", "?? ??");
    ASSERT_PRINTED("\xe0\x9f\xbf", "???");
    ASSERT_PRINTED("\xed\xa0\x80", "???");
    ASSERT_PRINTED("\xed\xbf\xbf", "???");
    ASSERT_PRINTED("\xf0\x8f\xbf\xbf", "????");
    ASSERT_PRINTED("\xf4\x90\x80\x80", "????");
    ASSERT_PRINTED("\xf5\x80\x80\x80", "????");
    /* Cut off in the middle, at the end and before another character. */
    ASSERT_PRINTED("\xc3", "?");
    ASSERT_PRINTED("\xe2\x82", "??");
    ASSERT_PRINTED("\xf0\x9f\x98", "???");
    ASSERT_PRINTED("\xe2\x82x", "??x");
    ASSERT_PRINTED("\xc3\xc3\xa9", "?\xc3\xa9");
}

static void text_is_cut_where_a_character_ends(void **state) {
    (void)state;
    assert_string_equal(printable("abcdef", 6, 7), "abcdef");
    assert_string_equal(printable("abcdef", 6, 6), "abcde");
    assert_string_equal(printable("abcdef", 6, 1), "");
    assert_string_equal(printable("ab\xe2\x82\xac", 5, 6), "ab\xe2\x82\xac");
    assert_string_equal(printable("ab\xe2\x82\xac", 5, 5), "ab");
    assert_string_equal(printable("ab\xe2\x82\xac", 5, 4), "ab");
    assert_string_equal(printable("\xf0\x9f\x98\x80", 4, 4), "");
}

static void text_may_be_made_printable_in_place(void **state) {
    char text[] = "\xe2\x80\xa8 a \xe2\x82\xac\n";

    (void)state;
    ph__text_copy_printable(text, sizeof text, text, sizeof text - 1);
    assert_string_equal(text, "? a \xe2\x82\xac?");
}

static void an_error_is_filled_whatever_it_held(void **state) {
    ph_error error;

    (void)state;
    memset(&error, 0xa5, sizeof error);
    assert_int_equal(ph__error_set(&error, PH_E_IMAGE, "%s is number %d", "this", 7), PH_E_IMAGE);
    assert_int_equal(error.status, PH_E_IMAGE);
    assert_string_equal(error.message, "this is number 7");
    assert_string_equal(error.function, "");
    assert_int_equal(error.system_error, 0);
    assert_int_equal(error.code, 0);
    assert_int_equal(error.signal, 0);
    assert_int_equal(error.vector, 0);
    assert_int_equal(error.error_code, 0);
    assert_int_equal(error.address, 0);
    assert_int_equal(error.rip, 0);
    assert_int_equal(error.function_offset, 0);
}

static void nobody_needs_to_want_the_error(void **state) {
    (void)state;
    assert_int_equal(ph__error_set(NULL, PH_E_MEMORY, "lost"), PH_E_MEMORY);
    assert_int_equal(ph__error_set_system(NULL, PH_E_SYSTEM, ENOMEM, "lost"), PH_E_SYSTEM);
    ph__error_set_function(NULL, "lost", 1);
}

static void a_system_error_is_described(void **state) {
    ph_error error;

    (void)state;
    assert_int_equal(ph__error_set_system(&error, PH_E_SYSTEM, ENOENT, "opening %s", "it"), PH_E_SYSTEM);
    assert_int_equal(error.system_error, ENOENT);
    assert_string_equal(error.message, "opening it: No such file or directory");
    ph__error_set_system(&error, PH_E_SYSTEM, ENOENT, "%s", "");
    assert_string_equal(error.message, "No such file or directory");
}

static void a_message_is_printable_and_fits(void **state) {
    ph_error error;
    char text[4096];

    (void)state;
    ph__error_set(&error, PH_E_GUEST, "guest says %s", "\x1b[2J\n\xff");
    assert_string_equal(error.message, "guest says ?[2J??");

    /* Characters of three bytes, of which only whole ones fit. */
    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 4);
    ph__error_set(&error, PH_E_GUEST, "%s", text);
    assert_int_equal(strlen(error.message), (PH_ERROR_MESSAGE_MAX - 1) / 3 * 3);
    assert_null(strchr(error.message, '?'));
    ph__error_set(&error, PH_E_GUEST, "x%s", text);
    assert_int_equal(strlen(error.message), 1 + (PH_ERROR_MESSAGE_MAX - 2) / 3 * 3);
    assert_null(strchr(error.message, '?'));
    ph__error_set_system(&error, PH_E_GUEST, ENOENT, "%s", text);
    assert_null(strchr(error.message, '?'));

    /* Characters that shrink: what was not kept for them is not made up. */
    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x80\xa8", 4);
    ph__error_set(&error, PH_E_GUEST, "%s", text);
    size_t length = strlen(error.message);
    assert_true(length > 0 && length < PH_ERROR_MESSAGE_MAX / 2);
    assert_int_equal(strspn(error.message, "?"), length);
    ph__error_set_system(&error, PH_E_GUEST, ENOENT, "%s", text);
    assert_int_equal(strlen(error.message), length);
}

static void a_message_may_be_made_of_the_old_one(void **state) {
    ph_error error;

    (void)state;
    ph__error_set(&error, PH_E_GUEST, "reason");
    ph__error_set(&error, PH_E_POISONED, "failed before: %s", error.message);
    assert_string_equal(error.message, "failed before: reason");
}

static void a_function_name_is_printable_and_fits(void **state) {
    ph_error error;
    char name[1024];

    (void)state;
    ph__error_set(&error, PH_E_PAGE_FAULT, "oops");
    ph__error_set_function(&error, "busy\nloop", 0x12);
    assert_string_equal(error.function, "busy?loop");
    assert_int_equal(error.function_offset, 0x12);
    assert_string_equal(error.message, "oops");

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    ph__error_set_function(&error, name, 0);
    assert_int_equal(strlen(error.function), PH_ERROR_FUNCTION_MAX - 1);

    ph__error_set_function(&error, NULL, 0x12);
    assert_string_equal(error.function, "");
    assert_int_equal(error.function_offset, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_text_stays_as_it_is),
        cmocka_unit_test(control_characters_become_question_marks),
        cmocka_unit_test(bytes_that_are_not_utf8_become_question_marks),
        cmocka_unit_test(text_is_cut_where_a_character_ends),
        cmocka_unit_test(text_may_be_made_printable_in_place),
        cmocka_unit_test(an_error_is_filled_whatever_it_held),
        cmocka_unit_test(nobody_needs_to_want_the_error),
        cmocka_unit_test(a_system_error_is_described),
        cmocka_unit_test(a_message_is_printable_and_fits),
        cmocka_unit_test(a_message_may_be_made_of_the_old_one),
        cmocka_unit_test(a_function_name_is_printable_and_fits),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
