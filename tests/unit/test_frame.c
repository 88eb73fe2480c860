/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Frames carry every value bit for bit, refuse what does not fit without touching the box, and a frame that
 * lies in any field is refused, with nothing read outside its bytes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi/frame.h"
#include "support/guarded.h"

#define BOX_SIZE 4096u

static struct guarded box_memory;
static struct guarded frame_memory;

static uint32_t frame_size(const void *box) {
    return ((const struct ph__frame *)box)->size;
}

/* A box for (capacity) bytes. Boxes lie on 16-byte boundaries, so up to 15 bytes are left between its end and
 * the forbidden page; box_check finds writes to those. */
static uint8_t *box_take(size_t capacity) {
    uint8_t *box = guarded_end(&box_memory, (capacity + 15) & ~(size_t)15);

    memset(box, 0x5a, (capacity + 15) & ~(size_t)15);
    return box;
}

static void box_check(const uint8_t *box, size_t start) {
    for (const uint8_t *byte = box + start; byte < guarded_end(&box_memory, 0); byte++)
        assert_int_equal(*byte, 0x5a);
}

/* Encodes (values) into a box that just holds them, and returns it. */
static uint8_t *encode(const ph_value *values, size_t count) {
    const struct ph__frame head = {.kind = PH__FRAME_CALL, .index = 7, .code = -3};
    static _Alignas(16) uint8_t large[BOX_SIZE];
    uint8_t *box;

    assert_int_equal(ph__frame_encode(large, sizeof large, sizeof large, &head, values, count), PH__FRAME_OK);
    box = box_take(frame_size(large));
    assert_int_equal(ph__frame_encode(box, frame_size(large), sizeof large, &head, values, count),
                     PH__FRAME_OK);
    box_check(box, frame_size(large));
    return box;
}

/* Decodes a frame of (size) bytes from memory that ends behind it. */
static enum ph__frame_status decode(const void *frame, size_t size, const ph_type *types, size_t count,
                                    ph_value *values) {
    return ph__frame_decode(guarded_copy(&frame_memory, frame, size), size, types, count, values);
}

/* Sends one value of (type) through a frame. */
static ph_value pass(ph_value value) {
    ph_type type = value.type;
    ph_value result;
    uint8_t *frame = encode(&value, 1);

    memset(&result, 0xa5, sizeof result);
    assert_int_equal(decode(frame, frame_size(frame), &type, 1, &result), PH__FRAME_OK);
    assert_int_equal(result.type, type);
    return result;
}

static void integers_pass_bit_for_bit(void **state) {
    static const int64_t numbers[] = {0, 1, -1, 42, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t number = numbers[i];
        assert_int_equal(pass((ph_value){.type = PH_I32, .i32 = (int32_t)number}).i32, (int32_t)number);
        assert_int_equal(pass((ph_value){.type = PH_U32, .u32 = (uint32_t)number}).u32, (uint32_t)number);
        assert_int_equal(pass((ph_value){.type = PH_I64, .i64 = number}).i64, number);
        assert_int_equal(pass((ph_value){.type = PH_U64, .u64 = (uint64_t)number}).u64, (uint64_t)number);
    }
    assert_true(pass((ph_value){.type = PH_BOOL, .boolean = true}).boolean);
    assert_false(pass((ph_value){.type = PH_BOOL, .boolean = false}).boolean);
}

static void floats_pass_bit_for_bit(void **state) {
    /* Zeros, one, the smallest, infinities, and NaNs: quiet and signalling, with a sign and a payload. */
    static const uint32_t words32[] = {0,          0x80000000, 0x3f800000, 1,          0x7f800000,
                                       0xff800000, 0x7fc00000, 0x7fa00001, 0xffc12345, 0xff812345};
    static const uint64_t words64[] = {0,
                                       0x8000000000000000,
                                       0x3ff0000000000000,
                                       1,
                                       0x7ff0000000000000,
                                       0xfff0000000000000,
                                       0x7ff8000000000000,
                                       0x7ff4000000000001,
                                       0xfff8123456789abc,
                                       0xfff0123456789abc};
    (void)state;
    for (size_t i = 0; i < sizeof words32 / sizeof words32[0]; i++) {
        ph_value value = {.type = PH_F32, .u32 = words32[i]};
        assert_int_equal(pass(value).u32, words32[i]);
    }
    for (size_t i = 0; i < sizeof words64 / sizeof words64[0]; i++) {
        ph_value value = {.type = PH_F64, .u64 = words64[i]};
        assert_int_equal(pass(value).u64, words64[i]);
    }
}

static void strings_and_bytes_pass_with_any_content(void **state) {
    static const char text[] = "gr\xc3\xbc\xc3\x9f dich, \x01\xff";
    static const char bytes[] = "a\0b\0";

    (void)state;
    assert_string_equal(pass((ph_value){.type = PH_STR, .str = text}).str, text);
    assert_string_equal(pass((ph_value){.type = PH_STR, .str = ""}).str, "");
    assert_string_equal(pass((ph_value){.type = PH_STR, .str = NULL}).str, "");
    ph_value value = pass((ph_value){.type = PH_BYTES, .bytes = {bytes, sizeof bytes}});
    assert_int_equal(value.bytes.size, sizeof bytes);
    assert_memory_equal(value.bytes.data, bytes, sizeof bytes);
    assert_int_equal(pass((ph_value){.type = PH_BYTES, .bytes = {NULL, 0}}).bytes.size, 0);
}

static void the_most_arguments_pass_together(void **state) {
    static const ph_value values[PH_MAX_ARGS] = {
        {.type = PH_I32, .i32 = -1},
        {.type = PH_STR, .str = "one"},
        {.type = PH_U32, .u32 = UINT32_MAX},
        {.type = PH_BYTES, .bytes = {"\0\1\2", 3}},
        {.type = PH_I64, .i64 = INT64_MIN},
        {.type = PH_STR, .str = ""},
        {.type = PH_U64, .u64 = UINT64_MAX},
        {.type = PH_BYTES, .bytes = {NULL, 0}},
        {.type = PH_F32, .f32 = -0.0f},
        {.type = PH_STR, .str = "a string that is longer than sixteen bytes"},
        {.type = PH_F64, .f64 = 1e300},
        {.type = PH_BOOL, .boolean = true},
    };
    ph_type types[PH_MAX_ARGS];
    ph_value results[PH_MAX_ARGS];
    uint8_t *frame = encode(values, PH_MAX_ARGS);

    (void)state;
    for (size_t i = 0; i < PH_MAX_ARGS; i++)
        types[i] = values[i].type;
    assert_int_equal(decode(frame, frame_size(frame), types, PH_MAX_ARGS, results), PH__FRAME_OK);
    assert_int_equal(results[0].i32, -1);
    assert_string_equal(results[1].str, "one");
    assert_int_equal(results[3].bytes.size, 3);
    assert_memory_equal(results[3].bytes.data, "\0\1\2", 3);
    assert_string_equal(results[5].str, "");
    assert_int_equal(results[7].bytes.size, 0);
    assert_true(signbit(results[8].f32) && results[8].f32 == 0);
    assert_string_equal(results[9].str, values[9].str);
    assert_true(results[10].f64 > 0.9e300);
    assert_true(results[11].boolean);
}

static void the_head_says_what_it_was_told(void **state) {
    const struct ph__frame *head = (const struct ph__frame *)(const void *)encode(NULL, 0);

    (void)state;
    assert_int_equal(head->size, sizeof *head);
    assert_int_equal(head->kind, PH__FRAME_CALL);
    assert_int_equal(head->index, 7);
    assert_int_equal(head->code, -3);
    assert_int_equal(head->count, 0);
    assert_int_equal(head->level, 0);
}

static void a_frame_without_values_passes(void **state) {
    uint8_t *frame = encode(NULL, 0);

    (void)state;
    assert_int_equal(decode(frame, frame_size(frame), NULL, 0, NULL), PH__FRAME_OK);
}

static void payloads_lie_on_boundaries_and_do_not_overlap(void **state) {
    const ph_value values[] = {
        {.type = PH_STR, .str = "fifteen bytes !"},
        {.type = PH_STR, .str = "sixteen bytes !!"},
        {.type = PH_BYTES, .bytes = {"x", 1}},
    };
    const ph_type types[] = {PH_STR, PH_STR, PH_BYTES};
    ph_value results[3];
    uint8_t *frame = encode(values, 3);

    (void)state;
    assert_int_equal(ph__frame_decode(frame, frame_size(frame), types, 3, results), PH__FRAME_OK);
    assert_int_equal((const uint8_t *)results[0].str - frame, 80);
    assert_int_equal((const uint8_t *)results[1].str - frame, 96);
    assert_int_equal((const uint8_t *)results[2].bytes.data - frame, 128);
}

/* What does not fit is refused, and the box is as it was. */
static void assert_too_large(size_t capacity, size_t max_payload, const ph_value *values, size_t count) {
    const struct ph__frame head = {.kind = PH__FRAME_CALL};
    uint8_t *box = box_take(capacity);

    assert_int_equal(ph__frame_encode(box, capacity, max_payload, &head, values, count), PH__FRAME_TOO_LARGE);
    box_check(box, 0);
}

static void what_does_not_fit_leaves_the_box_as_it_was(void **state) {
    const ph_value string = {.type = PH_STR, .str = "ten bytes."};
    const ph_value bytes = {.type = PH_BYTES, .bytes = {"ten bytes.", 10}};
    const ph_value pair[] = {string, bytes};
    const ph_value number = {.type = PH_I64, .i64 = 1};
    const ph_value many[PH_MAX_ARGS + 1] = {{0}};

    (void)state;
    /* Any capacity that is too small, down to nothing. */
    for (size_t capacity = 0; capacity < 32 + 16 + 11; capacity++)
        assert_too_large(capacity, BOX_SIZE, &string, 1);
    for (size_t capacity = 0; capacity < 32 + 16 + 10; capacity++)
        assert_too_large(capacity, BOX_SIZE, &bytes, 1);
    for (size_t capacity = 0; capacity < 32 + 16; capacity++)
        assert_too_large(capacity, BOX_SIZE, &number, 1);
    /* The limit counts the payload of all values together, and nothing else. */
    assert_too_large(BOX_SIZE, 9, &string, 1);
    assert_too_large(BOX_SIZE, 19, pair, 2);
    assert_too_large(BOX_SIZE, BOX_SIZE, many, PH_MAX_ARGS + 1);
    /* A size that would wrap. */
    const ph_value huge = {.type = PH_BYTES, .bytes = {"", SIZE_MAX}};
    assert_too_large(BOX_SIZE, SIZE_MAX, &huge, 1);
    /* More than a frame's positions can say, in a box that would hold it; nothing of either is touched. */
    const struct ph__frame head = {.kind = PH__FRAME_CALL};
    const ph_value large = {.type = PH_BYTES, .bytes = {"", UINT32_MAX - 47}};
    uint8_t *box = box_take(0);
    assert_int_equal(ph__frame_encode(box, SIZE_MAX / 2, SIZE_MAX / 2, &head, &large, 1),
                     PH__FRAME_TOO_LARGE);
}

static void a_message_of_the_limit_fits_into_a_box_of_the_limit(void **state) {
    const struct ph__frame head = {.kind = PH__FRAME_CALL};
    uint8_t content[64];
    ph_value values[PH_MAX_ARGS];

    (void)state;
    /* However the payload is cut up. */
    memset(content, 'c', sizeof content);
    for (size_t size = 0; size < sizeof content; size++) {
        uint8_t strings[PH_MAX_ARGS][sizeof content] = {{0}};
        size_t payload = 0;
        for (size_t i = 0; i < PH_MAX_ARGS; i++) {
            size_t own = (size + i) % sizeof content;
            memcpy(strings[i], content, own);
            values[i] = (ph_value){.type = PH_STR, .str = (const char *)strings[i]};
            payload += own;
        }
        size_t capacity = PH__FRAME_OVERHEAD + payload;
        uint8_t *box = box_take(capacity);
        assert_int_equal(ph__frame_encode(box, capacity, payload, &head, values, PH_MAX_ARGS), PH__FRAME_OK);
    }
}

/* A frame with a string, a number and bytes, for tests to damage. */
struct sample {
    _Alignas(16) uint8_t bytes[BOX_SIZE];
    size_t size;
};

static const ph_type sample_types[] = {PH_STR, PH_I32, PH_BYTES};

static struct sample sample_make(void) {
    const ph_value values[] = {
        {.type = PH_STR, .str = "text"},
        {.type = PH_I32, .i32 = 5},
        {.type = PH_BYTES, .bytes = {"\1\2\3", 3}},
    };
    struct sample sample = {.size = 0};
    uint8_t *frame = encode(values, 3);

    sample.size = frame_size(frame);
    memcpy(sample.bytes, frame, sample.size);
    return sample;
}

static struct ph__frame *sample_head(struct sample *sample) {
    return (struct ph__frame *)(void *)sample->bytes;
}

static struct ph__slot *sample_slot(struct sample *sample, unsigned index) {
    return (struct ph__slot *)(void *)(sample->bytes + sizeof(struct ph__frame)) + index;
}

static enum ph__frame_status sample_decode(const struct sample *sample) {
    ph_value values[3];

    return decode(sample->bytes, sample->size, sample_types, 3, values);
}

/* Makes a sound sample, does (damage) to it, and expects it to be refused. */
#define ASSERT_MALFORMED(damage)                                                                             \
    do {                                                                                                     \
        struct sample sample = sample_make();                                                                \
        struct ph__frame *head = sample_head(&sample);                                                       \
        struct ph__slot *text = sample_slot(&sample, 0);                                                     \
        struct ph__slot *number = sample_slot(&sample, 1);                                                   \
        struct ph__slot *bytes = sample_slot(&sample, 2);                                                    \
        (void)head, (void)text, (void)number, (void)bytes;                                                   \
        assert_int_equal(sample_decode(&sample), PH__FRAME_OK);                                              \
        damage;                                                                                              \
        assert_int_equal(sample_decode(&sample), PH__FRAME_MALFORMED);                                       \
    } while (0)

static void a_head_that_lies_is_refused(void **state) {
    (void)state;
    ASSERT_MALFORMED(head->size++);
    ASSERT_MALFORMED(head->size = UINT32_MAX);
    ASSERT_MALFORMED(head->size = sizeof *head + 3 * sizeof *text - 1);
    ASSERT_MALFORMED(head->size = 0);
    ASSERT_MALFORMED(head->count = 2);
    ASSERT_MALFORMED(head->count = 4);
    ASSERT_MALFORMED(head->count = UINT8_MAX);
    ASSERT_MALFORMED(head->level = 1);
}

static void a_type_that_is_not_the_expected_one_is_refused(void **state) {
    (void)state;
    for (uint32_t type = 0; type < 300; type++) {
        if (type != PH_STR)
            ASSERT_MALFORMED(text->type = type);
        if (type != PH_I32)
            ASSERT_MALFORMED(number->type = type);
        if (type != PH_BYTES)
            ASSERT_MALFORMED(bytes->type = type);
    }
    ASSERT_MALFORMED(bytes->type = PH_BYTES | 0x80000000);
}

static void a_payload_outside_the_frame_is_refused(void **state) {
    (void)state;
    ASSERT_MALFORMED(bytes->word = 0);
    ASSERT_MALFORMED(bytes->word = sizeof *head + 3 * sizeof *text - 1);
    ASSERT_MALFORMED(bytes->word = head->size - 2);
    ASSERT_MALFORMED(bytes->word = head->size + 1ull);
    ASSERT_MALFORMED(bytes->word = UINT64_MAX);
    ASSERT_MALFORMED(bytes->word = UINT64_MAX - 2);
    ASSERT_MALFORMED(bytes->word += 1ull << 32);
    ASSERT_MALFORMED(bytes->length++);
    ASSERT_MALFORMED(bytes->length = UINT32_MAX);
    ASSERT_MALFORMED(text->word = UINT64_MAX);
    ASSERT_MALFORMED(text->length = UINT32_MAX);
    ASSERT_MALFORMED(text->word = head->size);
    /* Inside what may be read, but behind the frame's own end. */
    ASSERT_MALFORMED(head->size--);
}

static void a_string_without_its_end_is_refused(void **state) {
    (void)state;
    ASSERT_MALFORMED(text->length--);
    ASSERT_MALFORMED(text->length++);
    ASSERT_MALFORMED(sample.bytes[text->word + 4] = 'x');
    ASSERT_MALFORMED(sample.bytes[text->word + 2] = 0);
    /* Its NUL would be the first byte behind the frame. */
    ASSERT_MALFORMED((text->word = head->size - 3, text->length = 3));
}

static void a_scalar_with_bits_that_its_type_lacks_is_refused(void **state) {
    static const ph_type narrow[] = {PH_I32, PH_U32, PH_F32, PH_BOOL};
    ph_value values[1];

    (void)state;
    ASSERT_MALFORMED(number->length = 1);
    ASSERT_MALFORMED(number->word |= 1ull << 32);
    ASSERT_MALFORMED(number->word = UINT64_MAX);
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        ph_value value = {.type = narrow[i]};
        uint8_t *frame = encode(&value, 1);
        struct ph__slot *slot = (struct ph__slot *)(void *)(frame + sizeof(struct ph__frame));
        assert_int_equal(decode(frame, frame_size(frame), &narrow[i], 1, values), PH__FRAME_OK);
        slot->word = 1ull << 32;
        assert_int_equal(decode(frame, frame_size(frame), &narrow[i], 1, values), PH__FRAME_MALFORMED);
        slot->word = 2;
        assert_int_equal(decode(frame, frame_size(frame), &narrow[i], 1, values),
                         narrow[i] == PH_BOOL ? PH__FRAME_MALFORMED : PH__FRAME_OK);
    }
}

static void void_is_no_value(void **state) {
    const ph_value value = {.type = PH_VOID};
    const ph_type type = PH_VOID;
    ph_value result;
    uint8_t *frame = encode(&value, 1);

    (void)state;
    assert_int_equal(decode(frame, frame_size(frame), &type, 1, &result), PH__FRAME_MALFORMED);
}

static void more_values_than_there_can_be_are_refused(void **state) {
    const struct sample sample = sample_make();
    ph_type types[PH_MAX_ARGS + 1] = {PH_VOID};
    ph_value values[PH_MAX_ARGS + 1];

    (void)state;
    assert_int_equal(decode(sample.bytes, sample.size, types, PH_MAX_ARGS + 1, values), PH__FRAME_MALFORMED);
}

static void a_frame_cut_off_anywhere_is_refused(void **state) {
    struct sample sample = sample_make();
    const size_t whole = sample.size;

    (void)state;
    for (sample.size = 0; sample.size < whole; sample.size++)
        assert_int_equal(sample_decode(&sample), PH__FRAME_MALFORMED);
    /* Also one that admits to be shorter. */
    for (sample.size = sizeof(struct ph__frame); sample.size < whole; sample.size++) {
        sample_head(&sample)->size = (uint32_t)sample.size;
        assert_int_equal(sample_decode(&sample), PH__FRAME_MALFORMED);
    }
}

static void a_frame_with_any_changed_byte_reads_nothing_outside(void **state) {
    struct sample sample = sample_make();
    ph_value values[3];

    (void)state;
    for (size_t i = 0; i < sample.size; i++) {
        uint8_t before = sample.bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            sample.bytes[i] = (uint8_t)value;
            const uint8_t *copy = guarded_copy(&frame_memory, sample.bytes, sample.size);
            if (ph__frame_decode(copy, sample.size, sample_types, 3, values) != PH__FRAME_OK)
                continue;
            /* All of it can be read. */
            size_t start = (size_t)((const uint8_t *)values[0].str - copy);
            assert_true(start + strlen(values[0].str) < sample.size);
            start = (size_t)((const uint8_t *)values[2].bytes.data - copy);
            assert_true(start <= sample.size && values[2].bytes.size <= sample.size - start);
        }
        sample.bytes[i] = before;
    }
}

static int make_memory(void **state) {
    (void)state;
    guarded_init(&box_memory, BOX_SIZE);
    guarded_init(&frame_memory, BOX_SIZE);
    return 0;
}

static int free_memory(void **state) {
    (void)state;
    guarded_free(&frame_memory);
    guarded_free(&box_memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_pass_bit_for_bit),
        cmocka_unit_test(floats_pass_bit_for_bit),
        cmocka_unit_test(strings_and_bytes_pass_with_any_content),
        cmocka_unit_test(the_most_arguments_pass_together),
        cmocka_unit_test(the_head_says_what_it_was_told),
        cmocka_unit_test(a_frame_without_values_passes),
        cmocka_unit_test(payloads_lie_on_boundaries_and_do_not_overlap),
        cmocka_unit_test(what_does_not_fit_leaves_the_box_as_it_was),
        cmocka_unit_test(a_message_of_the_limit_fits_into_a_box_of_the_limit),
        cmocka_unit_test(a_head_that_lies_is_refused),
        cmocka_unit_test(a_type_that_is_not_the_expected_one_is_refused),
        cmocka_unit_test(a_payload_outside_the_frame_is_refused),
        cmocka_unit_test(a_string_without_its_end_is_refused),
        cmocka_unit_test(a_scalar_with_bits_that_its_type_lacks_is_refused),
        cmocka_unit_test(void_is_no_value),
        cmocka_unit_test(more_values_than_there_can_be_are_refused),
        cmocka_unit_test(a_frame_cut_off_anywhere_is_refused),
        cmocka_unit_test(a_frame_with_any_changed_byte_reads_nothing_outside),
    };
    return cmocka_run_group_tests_name("frame", tests, make_memory, free_memory);
}
