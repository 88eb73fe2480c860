/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading what a collector answers: whole messages, every cut of one, fields that are not known, and bytes
 * that are no message at all.
 */
#include "support/guarded.h"
#include "support/support.h"

#include <string.h>

#include "export/otlp_answer.h"

#define WORDS "too many attributes"

/* A field 15 (fixed32), partial_success with a field 9 (fixed64), rejected 300, the words; a field 16. */
static const char message[] = "\x7d\1\2\3\4"
                              "\x0a\x21\x49\1\2\3\4\5\6\7\x08\x08\xac\x02\x12\x13" WORDS "\x82\x01\x02zz";
static const size_t size = sizeof message - 1;

static bool holds(const struct ph__otlp_answer *answer, const char *words) {
    return answer->message && answer->message_size == strlen(words) &&
           memcmp(answer->message, words, answer->message_size) == 0;
}

static void a_partial_success_is_read_among_other_fields(void **state) {
    struct ph__otlp_answer answer;

    (void)state;
    ph__otlp_answer_read((const uint8_t *)message, size, &answer);
    assert_int_equal(answer.rejected, 300);
    assert_true(holds(&answer, WORDS));
}

static void an_empty_answer_says_nothing(void **state) {
    struct ph__otlp_answer answer;

    (void)state;
    ph__otlp_answer_read((const uint8_t *)"", 0, &answer);
    assert_int_equal(answer.rejected, 0);
    assert_null(answer.message);
    /* A partial_success that is there and empty. */
    ph__otlp_answer_read((const uint8_t *)"\x0a\x00", 2, &answer);
    assert_int_equal(answer.rejected, 0);
    assert_null(answer.message);
}

static void a_cut_answer_says_what_is_there(void **state) {
    struct guarded guarded;

    (void)state;
    guarded_init(&guarded, size);
    for (size_t i = 0; i <= size; i++) {
        struct ph__otlp_answer answer;
        const uint8_t *bytes = guarded_copy(&guarded, message, i);
        ph__otlp_answer_read(bytes, i, &answer);
        /* The number ends with the 19th byte. */
        assert_int_equal(answer.rejected, i >= 19 ? 300 : 0);
        if (answer.message)
            assert_true((const uint8_t *)answer.message + answer.message_size <= bytes + i);
    }
    guarded_free(&guarded);
}

static void a_failures_words_are_read(void **state) {
    struct ph__otlp_answer answer;

    (void)state;
    /* code 3, message "bad", a detail */
    ph__otlp_failure_read((const uint8_t *)"\x08\x03\x12\x03"
                                           "bad\x1a\x01x",
                          10, &answer);
    assert_true(holds(&answer, "bad"));
    assert_int_equal(answer.rejected, 0);
}

static void bytes_that_are_no_message_are_read_to_their_end_at_most(void **state) {
    uint32_t random = 12345;
    struct guarded guarded;

    (void)state;
    guarded_init(&guarded, 64);
    for (unsigned round = 0; round < 100000; round++) {
        struct ph__otlp_answer answer;
        const size_t length = round % 64;
        uint8_t *at = guarded_end(&guarded, length);
        for (size_t i = 0; i < length; i++) {
            random = random * 1103515245 + 12345;
            at[i] = (uint8_t)(random >> 16);
        }
        /* What begins as a message gets further. */
        if (length > 0 && round % 2)
            at[0] = 0x0a;
        ph__otlp_answer_read(at, length, &answer);
        assert_true(answer.rejected <= INT64_MAX);
        if (answer.message)
            assert_true((const uint8_t *)answer.message >= at &&
                        (const uint8_t *)answer.message + answer.message_size <= at + length);
        ph__otlp_failure_read(at, length, &answer);
        if (answer.message)
            assert_true((const uint8_t *)answer.message + answer.message_size <= at + length);
    }
    guarded_free(&guarded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partial_success_is_read_among_other_fields),
        cmocka_unit_test(an_empty_answer_says_nothing),
        cmocka_unit_test(a_cut_answer_says_what_is_there),
        cmocka_unit_test(a_failures_words_are_read),
        cmocka_unit_test(bytes_that_are_no_message_are_read_to_their_end_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
