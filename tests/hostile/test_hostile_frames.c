/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that lie in a frame: in the answer to a call, in a host call, in an abort. The test makes each frame
 * and the guest hostile_frames sends it as it is. Whatever a frame says, the host reads nothing outside it.
 */
#include "hostile/hostile.h"

#include <stdio.h>
#include <string.h>

#define GUEST "hostile_frames"

/* A frame as a guest may write it: sound at first, then bent by the test. Its head and slots are also there
 * by name. */
struct lie {
    union {
        uint8_t bytes[1024];
        struct {
            struct ph__frame head;
            struct ph__slot slots[PH_MAX_ARGS];
        };
    };
    size_t size; /* bytes that are sent */
};

static struct lie frame_of(uint16_t kind, const ph_value *values, size_t count) {
    const struct ph__frame head = {.kind = kind};
    struct lie lie = {0};

    assert_int_equal(ph__frame_encode(lie.bytes, sizeof lie.bytes, sizeof lie.bytes, &head, values, count),
                     PH__FRAME_OK);
    lie.size = lie.head.size;
    return lie;
}

static struct lie text_result(const char *text) {
    const ph_value value = {.type = PH_STR, .str = text};
    return frame_of(PH__FRAME_RESULT, &value, 1);
}

static struct lie bytes_result(void) {
    const ph_value value = BYTES("abcdefgh", 8);
    return frame_of(PH__FRAME_RESULT, &value, 1);
}

static struct lie scalar_result(ph_type type, uint64_t word) {
    struct lie lie = text_result("");

    lie.slots[0] = (struct ph__slot){.type = type, .word = word};
    lie.head.size = sizeof lie.head + sizeof lie.slots[0];
    lie.size = lie.head.size;
    return lie;
}

static struct lie error_frame(const char *message) {
    const ph_value value = {.type = PH_STR, .str = message};
    struct lie lie = frame_of(PH__FRAME_ERROR, &value, 1);

    lie.head.code = 7;
    return lie;
}

/* Sends (lie) through the export (name), expects (wanted), and that no host function ran for it. */
static void expect(const char *name, const struct lie *lie, ph_status wanted, const char *what) {
    struct hostile hostile;
    ph_value result = {.type = PH_VOID};

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, name, ARGS(BYTES(lie->bytes, lie->size)), &result),
                   wanted, what);
    if (wanted != PH_OK)
        assert_int_equal(hostile.host_calls, 0);
    hostile_end(&hostile, what);
}

static void refuse(const char *name, const struct lie *lie, const char *what) {
    expect(name, lie, PH_E_PROTOCOL, what);
}

static uint64_t box_size(void) {
    struct hostile hostile;

    hostile_begin(&hostile, GUEST, NULL);
    uint64_t size = hostile.sandbox->memory.layout.box_size;
    hostile_end(&hostile, "an honest guest");
    return size;
}

/* ---- the head ------------------------------------------------------------------------------------------ */

static void sound_frames_are_accepted(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie text = text_result("hello");
    struct lie bytes = bytes_result();
    struct lie number = scalar_result(PH_I32, 5);
    struct lie nothing = frame_of(PH__FRAME_RESULT, NULL, 0);
    struct lie error = error_frame("no");

    expect("answer_text", &text, PH_OK, "text");
    expect("answer_bytes", &bytes, PH_OK, "bytes");
    expect("answer_i32", &number, PH_OK, "i32");
    expect("answer_void", &nothing, PH_OK, "void");
    expect("answer_void", &error, PH_E_GUEST, "an error");
}

static void a_frame_of_an_impossible_size_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const uint64_t box = box_size();
    const uint32_t sizes[] = {
        0, 1, 4, 31, 32, 47, 48, 52, (uint32_t)box + 1, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff,
    };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct lie lie = text_result("hello");
        char what[64];
        snprintf(what, sizeof what, "a frame that claims %u bytes", sizes[i]);
        lie.head.size = sizes[i];
        refuse("answer_text", &lie, what);
    }
}

static void a_frame_may_claim_the_whole_box(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = text_result("hello");

    lie.head.size = (uint32_t)box_size();
    expect("answer_text", &lie, PH_OK, "a frame as large as the box");
}

static void an_answer_of_another_kind_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const uint16_t kinds[] = {0, PH__FRAME_CALL, 4, 0x102, 0xffff};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct lie lie = text_result("hello");
        lie.head.kind = kinds[i];
        refuse("answer_text", &lie, "an answer that is neither result nor error");
    }
}

static void an_answer_with_another_count_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const uint8_t counts[] = {0, 2, 12, 13, 255};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct lie lie = text_result("hello");
        lie.head.count = counts[i];
        refuse("answer_text", &lie, "a result with another number of values");
    }
}

static void an_answer_of_another_level_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const uint8_t levels[] = {1, 2, 255};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct lie lie = text_result("hello");
        lie.head.level = levels[i];
        refuse("answer_text", &lie, "a result of a call that is not there");
    }
}

static void a_return_without_an_answer_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    hostile_lie(GUEST, "answer_nothing", NO_ARGS, PH_E_PROTOCOL, NULL);
}

/* ---- scalars ------------------------------------------------------------------------------------------- */

static void a_result_for_a_void_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = scalar_result(PH_I32, 1);

    refuse("answer_void", &lie, "a result for a void");
    lie = scalar_result(PH_VOID, 0);
    refuse("answer_void", &lie, "a void value for a void");
}

static void no_result_for_a_value_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = frame_of(PH__FRAME_RESULT, NULL, 0);

    refuse("answer_i32", &lie, "no result");
}

static void a_slot_of_another_type_is_refused(void **state) {
    static const struct {
        const char *name;
        ph_type type;
    } exports[] = {
        {"answer_i32", PH_I32}, {"answer_u32", PH_U32},   {"answer_i64", PH_I64},  {"answer_f32", PH_F32},
        {"answer_f64", PH_F64}, {"answer_bool", PH_BOOL}, {"answer_text", PH_STR}, {"answer_bytes", PH_BYTES},
    };
    static const uint32_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x101, 0x80000000, 0xffffffff};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        for (size_t j = 0; j < sizeof types / sizeof types[0]; j++) {
            if (types[j] == (uint32_t)exports[i].type || hostile_skip())
                continue;
            struct lie lie = text_result("");
            char what[64];
            snprintf(what, sizeof what, "%s with a value of type %u", exports[i].name, types[j]);
            lie.slots[0].type = types[j];
            if (exports[i].type != PH_STR && exports[i].type != PH_BYTES)
                lie.slots[0].word = 0;
            refuse(exports[i].name, &lie, what);
        }
    }
}

static void a_bool_that_is_neither_is_refused(void **state) {
    static const uint64_t words[] = {2, 3, 255, 256, 0x100000001, 1ull << 63, ~0ull};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct lie lie = scalar_result(PH_BOOL, words[i]);
        refuse("answer_bool", &lie, "a bool that is neither true nor false");
    }
}

static void a_small_scalar_with_high_bits_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = scalar_result(PH_I32, 0xffffffffffffffff);

    refuse("answer_i32", &lie, "an i32 that was sign-extended");
    lie = scalar_result(PH_I32, 1ull << 32);
    refuse("answer_i32", &lie, "an i32 with a bit 32");
    lie = scalar_result(PH_U32, 1ull << 63);
    refuse("answer_u32", &lie, "a u32 with a bit 63");
    lie = scalar_result(PH_F32, 1ull << 32);
    refuse("answer_f32", &lie, "an f32 with a bit 32");
}

static void a_scalar_with_a_length_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = scalar_result(PH_I64, 1);

    lie.slots[0].length = 1;
    refuse("answer_i64", &lie, "an i64 with a length");
    lie.slots[0].type = PH_F64;
    lie.slots[0].length = 0xffffffff;
    refuse("answer_f64", &lie, "an f64 with a length");
}

/* ---- strings and bytes --------------------------------------------------------------------------------- */

static void a_string_without_an_end_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = text_result("hello");
    size_t start = (size_t)lie.slots[0].word;

    lie.bytes[start + 5] = 'x';
    refuse("answer_text", &lie, "a string whose end is missing");
    lie = text_result("hello");
    lie.head.size--;
    refuse("answer_text", &lie, "a string whose end is outside the frame");
    lie = text_result("");
    lie.bytes[start] = 'x';
    refuse("answer_text", &lie, "an empty string without an end");
}

static void a_string_with_a_nul_inside_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < 5; i++) {
        struct lie lie = text_result("hello");
        lie.bytes[lie.slots[0].word + i] = 0;
        refuse("answer_text", &lie, "a string with a NUL inside");
    }
}

/* Positions and lengths that together, or alone, lead out of the frame or into its head. */
static void payload_outside_the_frame_is_refused(void **state) {
    static const struct {
        uint64_t word;
        uint32_t length;
    } places[] = {
        {0, 5},                     /* the head */
        {0, 0},                     /**/
        {16, 0},                    /**/
        {31, 1},                    /**/
        {32, 5},                    /* the slot */
        {47, 1},                    /**/
        {48, 100},                  /* too long */
        {48, 0x7fffffff},           /**/
        {48, 0xfffffff0},           /**/
        {48, 0xffffffff},           /* with its NUL, 2^32 */
        {1024, 0},                  /* behind the frame */
        {65536, 1},                 /**/
        {0xfffffff0, 16},           /* 32 bits wrap */
        {0xffffffff, 1},            /**/
        {0x100000030, 5},           /* 48 in the low half */
        {1ull << 63, 5},            /**/
        {0xffffffffffffffd0, 0x60}, /* 64 bits wrap, to the slot */
        {0xffffffffffffffff, 1},    /**/
        {0xffffffffffffffff, 0},    /**/
        {0xfffffffffffffffb, 5},    /**/
        {0xffffffff00000030, 5},    /* 48 in the low half, negative */
        {0xffffffff00000040, 0xffffffff},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char what[96];
        if (hostile_skip())
            continue;
        struct lie text = text_result("hello");
        struct lie bytes = bytes_result();
        snprintf(what, sizeof what, "%u bytes at 0x%llx", places[i].length,
                 (unsigned long long)places[i].word);
        text.slots[0].word = bytes.slots[0].word = places[i].word;
        text.slots[0].length = bytes.slots[0].length = places[i].length;
        refuse("answer_text", &text, what);
        refuse("answer_bytes", &bytes, what);
    }
}

static void payload_at_the_frames_very_end_is_accepted(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie text = text_result("hello");
    struct lie bytes = bytes_result();

    text.slots[0].word = text.head.size - 1u;
    text.slots[0].length = 0;
    expect("answer_text", &text, PH_OK, "an empty string in the last byte");
    bytes.slots[0].word = bytes.head.size;
    bytes.slots[0].length = 0;
    expect("answer_bytes", &bytes, PH_OK, "no bytes behind the last byte");
    bytes.slots[0].length = 1;
    refuse("answer_bytes", &bytes, "a byte behind the last byte");
    text.slots[0].word = text.head.size;
    refuse("answer_text", &text, "an empty string behind the last byte");
}

/* The largest frames that there are: as far as the box goes, and not a byte further. */
static void the_ends_of_a_large_box_are_no_exception(void **state) {
    (void)state;
    test_needs_kvm();
    ph_config config = PH_CONFIG_INIT;

    config.max_message = 64ull << 20;
    for (int beyond = 0; beyond <= 1; beyond++) {
        struct hostile hostile;
        struct lie lie = bytes_result();
        ph_value result = {.type = PH_VOID};
        hostile_begin(&hostile, GUEST, &config);
        const uint64_t box = hostile.sandbox->memory.layout.box_size;
        lie.head.size = (uint32_t)box;
        lie.slots[0].length = (uint32_t)(box - lie.slots[0].word) + (uint32_t)beyond;
        hostile_expect(&hostile,
                       hostile_call(&hostile, "answer_bytes", ARGS(BYTES(lie.bytes, lie.size)), &result),
                       beyond ? PH_E_PROTOCOL : PH_OK, "a frame as large as a large box");
        if (!beyond) {
            const uint8_t *bytes = result.bytes.data;
            assert_int_equal(result.bytes.size, box - lie.slots[0].word);
            assert_memory_equal(bytes, "abcdefgh", 8);
            assert_int_equal(bytes[result.bytes.size - 1], 0);
        }
        hostile_end(&hostile, "a frame as large as a large box");
    }
}

static void a_result_is_a_copy(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    struct lie lie = text_result("hello");
    ph_value result = {.type = PH_VOID};

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "answer_text", ARGS(BYTES(lie.bytes, lie.size)), &result),
                   PH_OK, "a sound frame");
    const struct ph__memory *memory = &hostile.sandbox->memory;
    const uint8_t *at = (const uint8_t *)result.str;
    assert_false(at >= memory->base && at < memory->base + memory->layout.size);
    /* What the guest's memory holds later does not matter. */
    memset(memory->base + memory->layout.messages.offset, 0xff, 3 * memory->layout.box_size);
    assert_string_equal(result.str, "hello");
    hostile_end(&hostile, "a sound frame");
}

/* ---- errors and aborts --------------------------------------------------------------------------------- */

static void an_error_without_a_message_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = error_frame("no");

    lie.head.count = 0;
    refuse("answer_i32", &lie, "an error without a message");
    lie = error_frame("no");
    lie.slots[0].type = PH_BYTES;
    refuse("answer_i32", &lie, "an error whose message is bytes");
    lie = error_frame("no");
    lie.slots[0].type = PH_I64;
    refuse("answer_i32", &lie, "an error whose message is a number");
    lie = error_frame("no");
    lie.head.count = 2;
    refuse("answer_i32", &lie, "an error with two messages");
    lie = error_frame("no");
    lie.slots[0].length = 0xffffffff;
    refuse("answer_i32", &lie, "an error with an endless message");
    lie = error_frame("no");
    lie.slots[0].word = ~0ull;
    refuse("answer_i32", &lie, "an error with a message somewhere else");
    lie = error_frame("no");
    lie.head.size = sizeof lie.head;
    refuse("answer_i32", &lie, "an error that ends before its message");
}

static void an_errors_message_cannot_reach_a_terminal(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    struct lie lie = error_frame("\x1b[2Jgone\r\nphantom: line\x7f\xc2\x9b\xff\xfe %s%n \xe2\x80\xae");

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "answer_i32", ARGS(BYTES(lie.bytes, lie.size)), NULL),
                   PH_E_GUEST, "a message of control characters");
    const ph_error *error = ph_sandbox_error(hostile.sandbox);
    assert_int_equal(error->code, 7);
    for (const char *at = error->message; *at; at++)
        assert_true((unsigned char)*at >= ' ' && (unsigned char)*at < 0x7f);
    assert_non_null(strstr(error->message, "phantom: line"));
    assert_non_null(strstr(error->message, "%s%n"));
    hostile_end(&hostile, "a message of control characters");
}

static void an_abort_without_its_frame_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = {.size = 64};

    refuse("abort_with", &lie, "an abort with an empty outbox");
    lie = text_result("hello");
    refuse("abort_with", &lie, "an abort with a result");
    lie = error_frame("no");
    lie.head.kind = PH__FRAME_CALL;
    refuse("abort_with", &lie, "an abort with a call");
    lie = error_frame("no");
    lie.head.count = 0;
    refuse("abort_with", &lie, "an abort without a message");
    lie = error_frame("no");
    lie.bytes[lie.slots[0].word + 2] = 'x';
    refuse("abort_with", &lie, "an abort with a message that has no end");
    lie = error_frame("no");
    lie.head.size = 0xffffffff;
    refuse("abort_with", &lie, "an abort with an endless frame");
    lie = error_frame("no");
    expect("abort_with", &lie, PH_E_ABORTED, "a sound abort");
}

/* ---- host calls ---------------------------------------------------------------------------------------- */

/* The frame index of the import (name). */
static uint32_t import_index(const char *name) {
    ph_image *image = test_image(GUEST);
    uint32_t index = UINT32_MAX;

    for (size_t i = 0; i < ph_image_import_count(image); i++)
        if (strcmp(ph_image_import(image, i)->name, name) == 0)
            for (uint32_t entry = 0; entry < image->import_entry_count; entry++)
                if (image->import_of_entry[entry] == i)
                    index = entry;
    ph_image_close(image);
    assert_int_not_equal(index, UINT32_MAX);
    return index;
}

static struct lie call_frame(const char *name, const ph_value *args, size_t count) {
    struct lie lie = frame_of(PH__FRAME_CALL, args, count);

    lie.head.index = import_index(name);
    return lie;
}

static void a_sound_host_call_is_served(void **state) {
    (void)state;
    test_needs_kvm();
    const ph_value text = {.type = PH_STR, .str = "hello"};
    struct lie lie = call_frame("take_text", &text, 1);

    expect("host_call", &lie, PH_OK, "a sound host call");
}

static void a_host_call_of_what_is_not_imported_is_refused(void **state) {
    static const uint32_t indices[] = {5, 6, 255, 65536, 0x7fffffff, 0x80000000, 0xffffffff};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
        struct lie lie = call_frame("take_nothing", NULL, 0);
        lie.head.index = indices[i];
        refuse("host_call", &lie, "a host call of what is not imported");
    }
}

static void a_host_call_without_a_call_frame_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct lie lie = {.size = 64};

    refuse("host_call", &lie, "a host call with an empty outbox");
    lie = call_frame("take_nothing", NULL, 0);
    lie.head.kind = PH__FRAME_RESULT;
    refuse("host_call", &lie, "a host call with a result");
    lie = error_frame("no");
    refuse("host_call", &lie, "a host call with an error");
    lie = call_frame("take_nothing", NULL, 0);
    lie.head.size = 0xffffffff;
    refuse("host_call", &lie, "a host call with an endless frame");
    lie = call_frame("take_nothing", NULL, 0);
    lie.head.level = 1;
    refuse("host_call", &lie, "a host call of another level");
}

static void host_call_arguments_that_do_not_match_are_refused(void **state) {
    (void)state;
    test_needs_kvm();
    const ph_value number = I32(1);
    const ph_value text = {.type = PH_STR, .str = "hello"};
    const ph_value pair[] = {{.type = PH_BOOL, .boolean = true}, {.type = PH_F32, .f32 = 1}};

    struct lie lie = call_frame("take_i32", NULL, 0);
    refuse("host_call", &lie, "too few arguments");
    lie = call_frame("take_nothing", &number, 1);
    refuse("host_call", &lie, "too many arguments");
    lie = call_frame("take_i32", &text, 1);
    refuse("host_call", &lie, "a string for a number");
    lie = call_frame("take_text", &number, 1);
    refuse("host_call", &lie, "a number for a string");
    lie = call_frame("take_bytes", &text, 1);
    refuse("host_call", &lie, "a string for bytes");
    lie = call_frame("take_i32", &number, 1);
    lie.slots[0].word = 1ull << 40;
    refuse("host_call", &lie, "an i32 with high bits");
    lie = call_frame("take_bool_f32", pair, 2);
    lie.slots[0].word = 2;
    refuse("host_call", &lie, "a bool of 2");
    lie = call_frame("take_bool_f32", pair, 2);
    lie.slots[1].word |= 1ull << 32;
    refuse("host_call", &lie, "an f32 with high bits");
    lie = call_frame("take_bool_f32", pair, 2);
    lie.head.size -= 8;
    refuse("host_call", &lie, "a slot that is half outside");
    lie = call_frame("take_text", &text, 1);
    lie.slots[0].length = 0xffffffff;
    refuse("host_call", &lie, "an endless string");
    lie = call_frame("take_text", &text, 1);
    lie.slots[0].word = 0xfffffffffffffff0;
    refuse("host_call", &lie, "a string before the box");
    lie = call_frame("take_text", &text, 1);
    lie.bytes[lie.slots[0].word + 5] = 1;
    refuse("host_call", &lie, "a string without an end");
    lie = call_frame("take_bytes", ARGS(BYTES("hello", 5)));
    lie.slots[0].length = (uint32_t)box_size();
    refuse("host_call", &lie, "bytes as many as the box has");
}

static void a_host_calls_frame_is_no_answer(void **state) {
    (void)state;
    test_needs_kvm();
    struct hostile hostile;
    struct lie lie = call_frame("take_nothing", NULL, 0);

    hostile_begin(&hostile, GUEST, NULL);
    hostile_expect(&hostile, hostile_call(&hostile, "host_call", ARGS(BYTES(lie.bytes, lie.size)), NULL),
                   PH_OK, "a sound host call");
    assert_int_equal(hostile.host_calls, 1);
    hostile_expect(&hostile, hostile_call(&hostile, "answer_void", ARGS(BYTES(lie.bytes, lie.size)), NULL),
                   PH_E_PROTOCOL, "a host call's frame as the answer");
    hostile_end(&hostile, "a host call's frame as the answer");
}

/* ---- all of it at random ------------------------------------------------------------------------------- */

static uint64_t interesting(uint64_t *state) {
    static const uint64_t words[] = {0,          1,          2,           7,          16,      31,
                                     32,         47,         48,          49,         53,      64,
                                     255,        256,        1024,        0x10000,    0x10400, 0x7fffffff,
                                     0x80000000, 0xffffffff, 0x100000000, 1ull << 63, ~0ull,   ~0ull - 15};
    uint64_t pick = hostile_random(state);

    if (pick % 4 == 0)
        return hostile_random(state);
    return words[pick / 4 % (sizeof words / sizeof words[0])];
}

static void bend(struct lie *lie, uint64_t *state) {
    switch (hostile_random(state) % 8) {
    case 0:
        lie->head.size = (uint32_t)interesting(state);
        break;
    case 1:
        lie->head.kind = (uint16_t)(hostile_random(state) % 5);
        break;
    case 2:
        lie->head.count = (uint8_t)(hostile_random(state) % 14);
        break;
    case 3:
        lie->slots[hostile_random(state) % 3].type = (uint32_t)(hostile_random(state) % 11);
        break;
    case 4:
        lie->slots[hostile_random(state) % 3].length = (uint32_t)interesting(state);
        break;
    case 5:
        lie->slots[hostile_random(state) % 3].word = interesting(state);
        break;
    case 6:
        lie->head.index = (uint32_t)(hostile_random(state) % 8);
        break;
    default:
        lie->bytes[hostile_random(state) % 128] = (uint8_t)hostile_random(state);
        break;
    }
}

static void random_frames_do_no_harm(void **state) {
    static const char *const exports[] = {"answer_void", "answer_i32",   "answer_bool", "answer_text",
                                          "answer_f64",  "answer_bytes", "host_call",   "abort_with"};
    const unsigned count = test_scaled(1500);
    struct hostile hostile;
    bool open = false;

    (void)state;
    test_needs_kvm();
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t random = seed * 0x9e3779b97f4a7c15ull;
        struct lie lie = hostile_random(&random) % 2 ? text_result("hello") : error_frame("no");
        const char *name = exports[hostile_random(&random) % 8];
        char what[64];
        ph_value result = {.type = PH_VOID};
        if (strcmp(name, "host_call") == 0)
            lie.head.kind = PH__FRAME_CALL;
        for (uint64_t bends = hostile_random(&random) % 4; bends > 0; bends--)
            bend(&lie, &random);
        snprintf(what, sizeof what, "%s, seed %llu", name, (unsigned long long)seed);
        if (!open)
            hostile_begin(&hostile, GUEST, NULL);
        lie.size = sizeof lie.bytes;
        ph_status status = hostile_call(&hostile, name, ARGS(BYTES(lie.bytes, lie.size)), &result);
        if (status != PH_OK && status != PH_E_GUEST && status != PH_E_PROTOCOL && status != PH_E_ABORTED)
            fail_msg("%s: %s (%s)", what, ph_status_kind(status), ph_sandbox_error(hostile.sandbox)->message);
        if (status == PH_OK && result.type == PH_STR)
            assert_true(strlen(result.str) < sizeof lie.bytes);
        open = !hostile_is_end(status);
        hostile.brief = seed % 16 != 0;
        if (!open)
            hostile_end(&hostile, what);
    }
    hostile.brief = false;
    if (open)
        hostile_end(&hostile, "random frames");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_frames_are_accepted),
        cmocka_unit_test(a_frame_of_an_impossible_size_is_refused),
        cmocka_unit_test(a_frame_may_claim_the_whole_box),
        cmocka_unit_test(an_answer_of_another_kind_is_refused),
        cmocka_unit_test(an_answer_with_another_count_is_refused),
        cmocka_unit_test(an_answer_of_another_level_is_refused),
        cmocka_unit_test(a_return_without_an_answer_is_refused),
        cmocka_unit_test(a_result_for_a_void_is_refused),
        cmocka_unit_test(no_result_for_a_value_is_refused),
        cmocka_unit_test(a_slot_of_another_type_is_refused),
        cmocka_unit_test(a_bool_that_is_neither_is_refused),
        cmocka_unit_test(a_small_scalar_with_high_bits_is_refused),
        cmocka_unit_test(a_scalar_with_a_length_is_refused),
        cmocka_unit_test(a_string_without_an_end_is_refused),
        cmocka_unit_test(a_string_with_a_nul_inside_is_refused),
        cmocka_unit_test(payload_outside_the_frame_is_refused),
        cmocka_unit_test(payload_at_the_frames_very_end_is_accepted),
        cmocka_unit_test(the_ends_of_a_large_box_are_no_exception),
        cmocka_unit_test(a_result_is_a_copy),
        cmocka_unit_test(an_error_without_a_message_is_refused),
        cmocka_unit_test(an_errors_message_cannot_reach_a_terminal),
        cmocka_unit_test(an_abort_without_its_frame_is_refused),
        cmocka_unit_test(a_sound_host_call_is_served),
        cmocka_unit_test(a_host_call_of_what_is_not_imported_is_refused),
        cmocka_unit_test(a_host_call_without_a_call_frame_is_refused),
        cmocka_unit_test(host_call_arguments_that_do_not_match_are_refused),
        cmocka_unit_test(a_host_calls_frame_is_no_answer),
        cmocka_unit_test(random_frames_do_no_harm),
    };

    return cmocka_run_group_tests_name("hostile frames", tests, NULL, NULL);
}
