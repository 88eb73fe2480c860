/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every status has a number, a kind and a message that nothing else has, in the form that programs may rely
 * on.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pinhole/pinhole.h>

static const struct {
    ph_status status;
    const char *name;
} statuses[] = {
#define STATUS(name, number, kind, message) {PH_##name, #name},
    PH_STATUS_MAP(STATUS)
#undef STATUS
};
#define STATUS_COUNT (sizeof statuses / sizeof statuses[0])

static void success_is_zero_and_failures_are_negative(void **state) {
    (void)state;
    assert_int_equal(PH_OK, 0);
    for (size_t i = 1; i < STATUS_COUNT; i++)
        assert_true(statuses[i].status < 0);
}

static void numbers_that_were_published_stay(void **state) {
    (void)state;
    assert_int_equal(PH_E_ARGUMENT, -1);
    assert_int_equal(PH_E_UNREGISTERED, -17);
    assert_int_equal(PH_E_GUEST, -30);
    assert_int_equal(PH_E_ABORTED, -50);
    assert_int_equal(PH_E_TIMED_OUT, -55);
    assert_int_equal(PH_E_CPU_TIME, -56);
    assert_int_equal(PH_E_OUTPUT_LIMIT, -57);
    assert_int_equal(PH_E_HOST_CALL_LIMIT, -58);
    assert_int_equal(PH_E_MEMORY_LIMIT, -59);
    assert_int_equal(PH_E_PAGE_FAULT, -60);
    assert_int_equal(PH_E_TRIPLE_FAULT, -71);
}

static void a_kind_is_one_lower_case_word_of_its_own(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        const char *kind = ph_status_kind(statuses[i].status);
        assert_true(kind[0] != 0);
        for (const char *letter = kind; *letter; letter++)
            if (!islower((unsigned char)*letter) && *letter != '-')
                fail_msg("%s: '%s' is no word", statuses[i].name, kind);
        for (size_t j = 0; j < i; j++)
            if (strcmp(kind, ph_status_kind(statuses[j].status)) == 0)
                fail_msg("%s and %s have one kind", statuses[i].name, statuses[j].name);
    }
    assert_string_equal(ph_status_kind(PH_OK), "ok");
    assert_string_equal(ph_status_kind(PH_E_PAGE_FAULT), "page-fault");
}

static void a_message_is_one_line_of_its_own(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        const char *message = ph_status_message(statuses[i].status);
        assert_true(message[0] != 0);
        assert_true(strlen(message) < PH_ERROR_MESSAGE_MAX);
        assert_null(strpbrk(message, "\r\n"));
        for (size_t j = 0; j < i; j++)
            if (strcmp(message, ph_status_message(statuses[j].status)) == 0)
                fail_msg("%s and %s have one message", statuses[i].name, statuses[j].name);
    }
    assert_string_equal(ph_status_message(PH_OK), "success");
}

static void a_number_that_is_no_status_has_words_too(void **state) {
    (void)state;
    assert_string_equal(ph_status_kind((ph_status)-1000), "unknown");
    assert_string_equal(ph_status_kind((ph_status)1), "unknown");
    assert_string_equal(ph_status_message((ph_status)-1000), "an unknown status");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_zero_and_failures_are_negative),
        cmocka_unit_test(numbers_that_were_published_stay),
        cmocka_unit_test(a_kind_is_one_lower_case_word_of_its_own),
        cmocka_unit_test(a_message_is_one_line_of_its_own),
        cmocka_unit_test(a_number_that_is_no_status_has_words_too),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
