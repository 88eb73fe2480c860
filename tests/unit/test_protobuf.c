/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The protobuf writer makes the bytes that the encoding's documentation shows
 * (https://protobuf.dev/programming-guides/encoding/), and never writes outside of its buffer: what does not
 * fit is left out whole, and all that follows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/protobuf.h"

static uint8_t bytes[256];

static struct ph__protobuf empty(size_t capacity) {
    memset(bytes, 0xee, sizeof bytes);
    return (struct ph__protobuf){.bytes = bytes, .capacity = capacity};
}

#define assert_bytes(out, text)                                                                              \
    do {                                                                                                     \
        assert_false((out)->cut);                                                                            \
        assert_int_equal((out)->used, sizeof(text) - 1);                                                     \
        assert_memory_equal((out)->bytes, text, sizeof(text) - 1);                                           \
    } while (0)

static void numbers_are_those_of_the_documentation(void **state) {
    (void)state;
    struct ph__protobuf out = empty(sizeof bytes);
    ph__protobuf_varint(&out, 1, 150);
    assert_bytes(&out, "\x08\x96\x01");
    out = empty(sizeof bytes);
    ph__protobuf_varint(&out, 1, (uint64_t)-2);
    assert_bytes(&out, "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    out = empty(sizeof bytes);
    ph__protobuf_varint(&out, 16, 0);
    assert_bytes(&out, "\x80\x01\x00");
    out = empty(sizeof bytes);
    ph__protobuf_varint(&out, 536870911, 1);
    assert_bytes(&out, "\xf8\xff\xff\xff\x0f\x01");
    out = empty(sizeof bytes);
    ph__protobuf_fixed64(&out, 1, 0x0123456789abcdef);
    assert_bytes(&out, "\x09\xef\xcd\xab\x89\x67\x45\x23\x01");
    out = empty(sizeof bytes);
    ph__protobuf_fixed32(&out, 16, 0x01234567);
    assert_bytes(&out, "\x85\x01\x67\x45\x23\x01");
    out = empty(sizeof bytes);
    ph__protobuf_double(&out, 4, 25.4);
    assert_bytes(&out, "\x21\x66\x66\x66\x66\x66\x66\x39\x40");
}

static void strings_and_bytes_carry_their_length(void **state) {
    (void)state;
    struct ph__protobuf out = empty(sizeof bytes);
    ph__protobuf_string(&out, 2, "testing", 7);
    assert_bytes(&out, "\x12\x07\x74\x65\x73\x74\x69\x6e\x67");
    out = empty(sizeof bytes);
    ph__protobuf_string(&out, 2, "", 0);
    ph__protobuf_bytes(&out, 3, NULL, 0);
    ph__protobuf_bytes(&out, 3, "\0\xff", 2);
    assert_bytes(&out, "\x12\x00\x1a\x00\x1a\x02\x00\xff");
}

/* The documentation's Test3 {c {a: 150}} is 1a 03 08 96 01; the length has four bytes here. */
static void a_message_has_its_length_in_four_bytes(void **state) {
    (void)state;
    struct ph__protobuf out = empty(sizeof bytes);
    size_t outer = ph__protobuf_begin(&out, 3);
    ph__protobuf_varint(&out, 1, 150);
    size_t inner = ph__protobuf_begin(&out, 4);
    ph__protobuf_end(&out, inner);
    ph__protobuf_end(&out, outer);
    assert_bytes(&out, "\x1a\x88\x80\x80\x00\x08\x96\x01\x22\x80\x80\x80\x00");
}

static void a_length_beyond_seven_bits_is_spread(void **state) {
    char text[200] = {0};

    (void)state;
    struct ph__protobuf out = empty(sizeof bytes);
    size_t message = ph__protobuf_begin(&out, 1);
    ph__protobuf_bytes(&out, 1, text, 197);
    ph__protobuf_end(&out, message);
    assert_false(out.cut);
    assert_memory_equal(bytes, "\x0a\xc8\x81\x80\x00\x0a\xc5\x01", 8);
}

static void text_that_is_no_utf8_is_replaced(void **state) {
    (void)state;
    struct ph__protobuf out = empty(sizeof bytes);
    ph__protobuf_string(&out, 1,
                        "a\xff"
                        "b\xc3\xbc\xed\xa0\x80",
                        8);
    assert_false(out.cut);
    const char expected[] = "\x0a\x90\x80\x80\x00"
                            "a\xef\xbf\xbd"
                            "b\xc3\xbc\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd";
    assert_memory_equal(bytes, expected, 8);
    assert_memory_equal(bytes + 5, expected + 5, sizeof expected - 6);
    assert_int_equal(out.used, sizeof expected - 1);
}

static void add_some(struct ph__protobuf *out) {
    size_t message = ph__protobuf_begin(out, 1);

    ph__protobuf_varint(out, 2, UINT64_MAX);
    ph__protobuf_fixed64(out, 3, 1);
    ph__protobuf_fixed32(out, 8, 1);
    ph__protobuf_raw(out, "\x48\x01", 2);
    ph__protobuf_bytes(out, 4, "bytes", 5);
    size_t inner = ph__protobuf_begin(out, 5);
    ph__protobuf_string(out, 6, "\xff\xfe", 2);
    ph__protobuf_end(out, inner);
    ph__protobuf_end(out, message);
    ph__protobuf_varint(out, 7, 1);
}

static void nothing_is_written_outside_however_small_the_buffer(void **state) {
    (void)state;
    struct ph__protobuf whole = empty(sizeof bytes);
    add_some(&whole);
    assert_false(whole.cut);
    for (size_t capacity = 0; capacity <= whole.used; capacity++) {
        struct ph__protobuf out = empty(capacity);
        add_some(&out);
        assert_int_equal(out.cut, capacity < whole.used);
        assert_true(out.used <= capacity);
        for (size_t i = capacity; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], 0xee);
    }
}

static void what_follows_something_cut_is_left_out_too(void **state) {
    (void)state;
    struct ph__protobuf out = empty(4);
    ph__protobuf_bytes(&out, 1, "too long", 8);
    assert_true(out.cut);
    ph__protobuf_varint(&out, 1, 1);
    assert_int_equal(out.used, 0);
}

static void a_copy_is_a_mark_to_go_back_to(void **state) {
    (void)state;
    struct ph__protobuf out = empty(16);
    size_t message = ph__protobuf_begin(&out, 1);
    ph__protobuf_varint(&out, 1, 1);
    const struct ph__protobuf before = out;
    ph__protobuf_bytes(&out, 2, "does not fit any more", 21);
    assert_true(out.cut);
    out = before;
    ph__protobuf_end(&out, message);
    assert_bytes(&out, "\x0a\x82\x80\x80\x00\x08\x01");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_documentation),
        cmocka_unit_test(strings_and_bytes_carry_their_length),
        cmocka_unit_test(a_message_has_its_length_in_four_bytes),
        cmocka_unit_test(a_length_beyond_seven_bits_is_spread),
        cmocka_unit_test(text_that_is_no_utf8_is_replaced),
        cmocka_unit_test(nothing_is_written_outside_however_small_the_buffer),
        cmocka_unit_test(what_follows_something_cut_is_left_out_too),
        cmocka_unit_test(a_copy_is_a_mark_to_go_back_to),
    };

    return cmocka_run_group_tests_name("protobuf", tests, NULL, NULL);
}
