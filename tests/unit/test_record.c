/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reading records gives what a guest wrote, or says that it wrote none; whatever the bytes are, nothing
 * outside them is read, and texts come out as valid UTF-8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/guarded.h"
#include "trace/record.h"

static struct guarded memory;
static ph_field fields[PH__TRACE_FIELDS_MAX];
static char text[PH__RECORD_TEXT_MAX];
static uint32_t count;

/* Takes a record from a copy of (words) that ends before a page that nobody may touch. */
static size_t take(const uint64_t *words, size_t size, struct ph__record *record) {
    memset(record, 0xaa, sizeof *record);
    return ph__record_take(guarded_copy(&memory, words, size), size, record);
}

static bool values(const uint64_t *words, uint32_t word_count, const uint8_t *types, uint32_t type_count) {
    const uint8_t *copy = guarded_copy(&memory, words, word_count * sizeof *words);

    memset(fields, 0xaa, sizeof fields);
    memset(text, 0xaa, sizeof text);
    return ph__record_values((const uint64_t *)(const void *)copy, word_count, types, type_count, fields,
                             text);
}

static bool log_values(const uint64_t *words, uint32_t word_count) {
    const uint8_t *copy = guarded_copy(&memory, words, word_count * sizeof *words);

    return ph__record_log_values((const uint64_t *)(const void *)copy, word_count, fields, &count, text);
}

/* The word in front of a string. */
static uint64_t sizes(uint64_t size, uint64_t full_size) {
    return size | full_size << 32;
}

static void a_record_is_its_words(void **state) {
    const uint64_t words[] = {PH__RECORD_WORD(PH__RECORD_EVENT, 0xabcde, 4) | 0x12345678ull << 32, 99, 5, 6};
    struct ph__record record;

    (void)state;
    assert_int_equal(take(words, sizeof words, &record), 32);
    assert_int_equal(record.type, PH__RECORD_EVENT);
    assert_int_equal(record.site, 0xabcde);
    assert_int_equal(record.stack, 0x12345678);
    assert_int_equal(record.begin_position, 0);
    assert_int_equal(record.tsc, 99);
    assert_int_equal(record.count, 2);
    assert_int_equal(record.words[0], 5);
    assert_int_equal(record.words[1], 6);
}

static void the_end_of_a_span_names_its_begin(void **state) {
    const uint64_t position = 0x000fffffffffffffull * 8;
    const uint64_t words[] = {2 | PH__RECORD_SPAN_END << PH__RECORD_TYPE_SHIFT | position / 8 << 12, 7};
    struct ph__record record;

    (void)state;
    assert_int_equal(take(words, sizeof words, &record), 16);
    assert_int_equal(record.type, PH__RECORD_SPAN_END);
    assert_true(record.begin_position == position);
    assert_int_equal(record.site, 0);
    assert_int_equal(record.stack, 0);
    assert_int_equal(record.count, 0);
}

static void an_impossible_length_is_no_record(void **state) {
    uint64_t words[256] = {0};
    struct ph__record record;

    (void)state;
    assert_int_equal(take(words, 0, &record), 0);
    for (uint64_t length = 0; length < 256; length++) {
        words[0] = PH__RECORD_WORD(PH__RECORD_EVENT, 1, length);
        assert_int_equal(take(words, sizeof words, &record), length < 2 ? 0 : length * 8);
        if (length < 2)
            continue;
        assert_int_equal(take(words, length * 8, &record), length * 8);
        assert_int_equal(take(words, length * 8 - 8, &record), 0);
        assert_int_equal(take(words, 8, &record), 0);
    }
}

static void any_type_is_passed_on(void **state) {
    struct ph__record record;

    (void)state;
    for (uint64_t type = 0; type < 16; type++) {
        const uint64_t words[] = {PH__RECORD_WORD(type, 1, 2), 0};
        assert_int_equal(take(words, sizeof words, &record), 16);
        assert_int_equal(record.type, type);
    }
}

static void every_type_of_value_is_read(void **state) {
    static const uint8_t types[] = {PH_I64, PH_U64, PH_F64, PH_BOOL, PH_STR, PH_BYTES, PH_POINTER, PH_BOOL};
    uint64_t words[11] = {(uint64_t)-5, UINT64_MAX, 0, 0, sizes(9, 9), 0, 0, sizes(3, 3), 0, 0xdead, 2};
    const double number = -0.5;

    (void)state;
    memcpy(&words[2], &number, 8);
    memcpy(&words[5], "nine byteXXXXXXX", 16);
    memcpy(&words[8], "\0\xff\1YYYYY", 8);
    assert_true(values(words, 11, types, 8));
    assert_int_equal(fields[0].value.type, PH_I64);
    assert_true(fields[0].value.i64 == -5);
    assert_int_equal(fields[0].size, 0);
    assert_true(fields[1].value.u64 == UINT64_MAX);
    assert_int_equal(fields[2].value.type, PH_F64);
    assert_true(fields[2].value.f64 == -0.5);
    assert_int_equal(fields[3].value.type, PH_BOOL);
    assert_false(fields[3].value.boolean);
    assert_int_equal(fields[4].value.type, PH_STR);
    assert_string_equal(fields[4].value.str, "nine byte");
    assert_int_equal(fields[4].size, 9);
    assert_int_equal(fields[4].full_size, 9);
    assert_int_equal(fields[5].value.type, PH_BYTES);
    assert_int_equal(fields[5].value.bytes.size, 3);
    assert_memory_equal(fields[5].value.bytes.data, "\0\xff\1", 3);
    assert_int_equal(fields[5].size, 3);
    assert_int_equal(fields[6].value.type, PH_POINTER);
    assert_int_equal(fields[6].value.u64, 0xdead);
    assert_true(fields[7].value.boolean); /* any number but 0 */
}

static void the_words_are_exactly_the_values(void **state) {
    static const uint8_t types[] = {PH_I64, PH_STR};
    uint64_t words[6] = {1, sizes(16, 16)};

    (void)state;
    memcpy(&words[2], "sixteen bytes !!", 16);
    assert_true(values(words, 4, types, 2));
    assert_false(values(words, 3, types, 2));
    assert_false(values(words, 5, types, 2));
    assert_false(values(words, 1, types, 2));
    assert_false(values(words, 0, types, 2));
    assert_true(values(words, 0, types, 0));
    assert_false(values(words, 1, types, 0));
    words[1] = sizes(17, 17);
    assert_false(values(words, 4, types, 2));
    words[1] = sizes(9, 9);
    assert_true(values(words, 4, types, 2));
    words[1] = sizes(8, 8);
    assert_false(values(words, 4, types, 2));
    words[1] = sizes(0xffff, UINT32_MAX);
    assert_false(values(words, 4, types, 2));
}

static void only_a_fields_types_are_values(void **state) {
    const uint64_t words[] = {0};

    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        uint8_t types[] = {(uint8_t)type};
        bool known = type == PH_I64 || type == PH_U64 || type == PH_F64 || type == PH_BOOL ||
                     type == PH_STR || type == PH_BYTES || type == PH_POINTER;
        assert_int_equal(values(words, 1, types, 1), known);
    }
}

static void more_than_a_record_can_hold_is_refused(void **state) {
    static uint8_t types[256];
    static uint64_t words[PH__RECORD_WORDS_MAX + 1];

    (void)state;
    memset(types, PH_I64, sizeof types);
    assert_true(values(words, 12, types, 12));
    assert_false(values(words, 13, types, 13));
    /* 1,024 bytes of a string are the most. */
    types[0] = PH_STR;
    words[0] = sizes(1024, 1024);
    assert_true(values(words, 129, types, 1));
    words[0] = sizes(1025, 1025);
    assert_false(values(words, 130, types, 1));
}

static void the_worst_strings_fit_the_text(void **state) {
    static const uint8_t types[12] = {PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR,
                                      PH_STR, PH_STR, PH_STR, PH_STR, PH_STR, PH_STR};
    uint64_t words[PH__RECORD_WORDS_MAX];
    uint32_t used = 0;

    (void)state;
    memset(words, 0xff, sizeof words);
    for (unsigned i = 0; i < 12; i++) {
        uint64_t size = i == 0 ? 1024 : i == 1 ? 8 * (PH__RECORD_WORDS_MAX - 12 - 128) : 0;
        words[used] = sizes(size, size);
        used += 1 + (uint32_t)size / 8;
    }
    assert_int_equal(used, PH__RECORD_WORDS_MAX);
    assert_true(values(words, used, types, 12));
    assert_int_equal(fields[0].size, 3072);
    assert_int_equal(strlen(fields[0].value.str), 3072);
    assert_true(fields[11].value.str + 1 <= text + sizeof text);
}

static void a_cut_string_says_what_it_was(void **state) {
    static const uint8_t types[] = {PH_STR, PH_BYTES};
    uint64_t words[4] = {sizes(8, 2000), 0, sizes(1, UINT32_MAX), 'x'};

    (void)state;
    memcpy(&words[1], "sevenny\xc3", 8);
    assert_true(values(words, 4, types, 2));
    /* What the cut has left of a character is left out. */
    assert_string_equal(fields[0].value.str, "sevenny");
    assert_int_equal(fields[0].size, 7);
    assert_int_equal(fields[0].full_size, 2000);
    assert_int_equal(fields[1].full_size, UINT32_MAX);
    /* A guest that says it cut nothing has left it there. */
    words[0] = sizes(8, 3);
    assert_true(values(words, 4, types, 2));
    assert_string_equal(fields[0].value.str, "sevenny\xef\xbf\xbd");
    assert_int_equal(fields[0].size, 10);
    assert_int_equal(fields[0].full_size, 10);
    /* Cut stays visible when the repair makes it longer than it was. */
    words[0] = sizes(8, 9);
    memset(&words[1], 0xff, 8);
    assert_true(values(words, 4, types, 2));
    assert_int_equal(fields[0].size, 24);
    assert_int_equal(fields[0].full_size, 25);
}

static void a_log_says_what_its_values_are(void **state) {
    uint64_t words[14] = {PH_I64 | PH_STR << 4 | PH_POINTER << 8, 7, sizes(2, 2), 0, 8};

    (void)state;
    memcpy(&words[3], "hi", 2);
    assert_true(log_values(words, 5));
    assert_int_equal(count, 3);
    assert_int_equal(fields[0].value.i64, 7);
    assert_string_equal(fields[1].value.str, "hi");
    assert_int_equal(fields[2].value.type, PH_POINTER);
    assert_false(log_values(words, 4));
    assert_false(log_values(words, 0));
    assert_int_equal(count, 0);
    words[0] = 0;
    assert_true(log_values(words, 1));
    assert_int_equal(count, 0);
    assert_false(log_values(words, 2));
    /* Types behind a hole, of nothing, or too many. */
    words[0] = PH_I64 << 4;
    assert_false(log_values(words, 2));
    words[0] = PH_I64 | PH_I64 << 8;
    assert_false(log_values(words, 3));
    words[0] = PH_I32;
    assert_false(log_values(words, 2));
    words[0] = 0x333333333333;
    assert_true(log_values(words, 13));
    assert_int_equal(count, 12);
    words[0] = 0x3333333333333;
    assert_false(log_values(words, 14));
    words[0] = 0xf000333333333333;
    assert_false(log_values(words, 13));
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
        cmocka_unit_test(a_record_is_its_words),
        cmocka_unit_test(the_end_of_a_span_names_its_begin),
        cmocka_unit_test(an_impossible_length_is_no_record),
        cmocka_unit_test(any_type_is_passed_on),
        cmocka_unit_test(every_type_of_value_is_read),
        cmocka_unit_test(the_words_are_exactly_the_values),
        cmocka_unit_test(only_a_fields_types_are_values),
        cmocka_unit_test(more_than_a_record_can_hold_is_refused),
        cmocka_unit_test(the_worst_strings_fit_the_text),
        cmocka_unit_test(a_cut_string_says_what_it_was),
        cmocka_unit_test(a_log_says_what_its_values_are),
    };
    return cmocka_run_group_tests_name("record", tests, make_memory, free_memory);
}
