/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Calls and host calls with honest guests: every type bit for bit, every size up to the limit and over it,
 * every error with its code and message, and nothing that grows.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ph_value u64(uint64_t value) {
    return (ph_value){.type = PH_U64, .u64 = value};
}

static ph_value i32(int32_t value) {
    return (ph_value){.type = PH_I32, .i32 = value};
}

static ph_value str(const char *text) {
    return (ph_value){.type = PH_STR, .str = text};
}

static ph_value bytes(const void *data, size_t size) {
    return (ph_value){.type = PH_BYTES, .bytes = {data, size}};
}

/* ---- the guest `types` --------------------------------------------------------------------------------- */

struct types {
    ph_image *image;
    ph_sandbox *sandbox;
};

static struct types types_start(void) {
    struct types types = {.image = test_image("types")};

    types.sandbox = test_sandbox(types.image, NULL);
    test_status(types.sandbox, ph_sandbox_start(types.sandbox), PH_OK);
    return types;
}

static void types_end(struct types *types) {
    ph_sandbox_destroy(types->sandbox);
    ph_image_close(types->image);
}

/* Calls an echo function and gives the result, whose type must be the argument's. */
static ph_value echo(const struct types *types, const char *name, ph_value value) {
    ph_value result = {.type = PH_VOID};

    test_status(types->sandbox, test_call(types->sandbox, types->image, name, &value, 1, &result), PH_OK);
    assert_int_equal(result.type, value.type);
    return result;
}

static void integers_cross_bit_for_bit(void **state) {
    static const uint64_t words[] = {0,          1,          0x7f,       0x80,
                                     0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                     INT64_MAX,  1ull << 63, UINT64_MAX, 0x0123456789abcdef};
    (void)state;
    test_needs_kvm();
    struct types types = types_start();

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const ph_value i64 = {.type = PH_I64, .i64 = (int64_t)words[i]};
        const ph_value u32 = {.type = PH_U32, .u32 = (uint32_t)words[i]};
        assert_true(echo(&types, "echo_u64", u64(words[i])).u64 == words[i]);
        assert_true(echo(&types, "echo_i64", i64).i64 == i64.i64);
        assert_true(echo(&types, "echo_u32", u32).u32 == u32.u32);
        assert_true(echo(&types, "echo_i32", i32((int32_t)words[i])).i32 == (int32_t)words[i]);
    }
    types_end(&types);
}

static void floats_cross_bit_for_bit(void **state) {
    /* Zeroes, denormals, infinities, quiet and signalling NaNs with payloads. */
    static const uint64_t f64s[] = {0,
                                    0x8000000000000000,
                                    1,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000001,
                                    0x7ff0000000000001,
                                    0xfff4123456789abc,
                                    0x3fb999999999999a};
    static const uint32_t f32s[] = {0,          0x80000000, 1,          0x7f800000, 0xff800000,
                                    0x7fc00001, 0x7f800001, 0xffa12345, 0x3dcccccd};
    (void)state;
    test_needs_kvm();
    struct types types = types_start();

    for (size_t i = 0; i < sizeof f64s / sizeof f64s[0]; i++) {
        ph_value f64 = {.type = PH_F64, .u64 = f64s[i]};
        assert_true(echo(&types, "echo_f64", f64).u64 == f64s[i]);
        ph_value f32 = {.type = PH_F32, .u32 = f32s[i]};
        assert_true(echo(&types, "echo_f32", f32).u32 == f32s[i]);
    }
    types_end(&types);
}

static void booleans_strings_and_bytes_cross(void **state) {
    unsigned char all[256];
    (void)state;
    test_needs_kvm();
    struct types types = types_start();

    for (unsigned i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i;
    assert_true(echo(&types, "echo_bool", (ph_value){.type = PH_BOOL, .boolean = true}).boolean);
    assert_false(echo(&types, "echo_bool", (ph_value){.type = PH_BOOL, .boolean = false}).boolean);
    assert_string_equal(echo(&types, "echo_str", str("")).str, "");
    assert_string_equal(echo(&types, "echo_str", str("\xff\xfe not UTF-8")).str, "\xff\xfe not UTF-8");
    ph_value back = echo(&types, "echo_bytes", bytes(all, sizeof all));
    assert_int_equal(back.bytes.size, sizeof all);
    assert_memory_equal(back.bytes.data, all, sizeof all);
    assert_int_equal(echo(&types, "echo_bytes", bytes(NULL, 0)).bytes.size, 0);
    ph_value nothing = {.type = PH_I32};
    test_status(types.sandbox, test_call(types.sandbox, types.image, "echo_void", NULL, 0, &nothing), PH_OK);
    assert_int_equal(nothing.type, PH_VOID);
    types_end(&types);
}

static void twelve_arguments_of_all_types_arrive(void **state) {
    const ph_value args[] = {
        i32(-1),
        {.type = PH_U32, .u32 = 4294967295u},
        {.type = PH_I64, .i64 = INT64_MIN},
        u64(UINT64_MAX),
        {.type = PH_F32, .f32 = 0.5f},
        {.type = PH_F64, .f64 = -0.0},
        {.type = PH_BOOL, .boolean = true},
        str("text"),
        bytes("\0\xff", 2),
        i32(7),
        str(""),
        bytes(NULL, 0),
    };
    ph_value result;
    (void)state;
    test_needs_kvm();
    struct types types = types_start();

    test_status(types.sandbox, test_call(types.sandbox, types.image, "mixed", args, 12, &result), PH_OK);
    assert_string_equal(result.str,
                        "i32=-1 u32=4294967295 i64=-9223372036854775808 u64=18446744073709551615 f32=0x1p-1 "
                        "f64=-0x0p+0 bool=true str=text bytes=00ff i32=7 str= bytes=");
    types_end(&types);
}

static void wrong_types_and_counts_are_refused_before_entry(void **state) {
    const ph_value two[] = {i32(1), i32(2)};
    ph_stats before, after;
    (void)state;
    test_needs_kvm();
    struct types types = types_start();
    ph_image *other = test_image("types");

    ph_sandbox_stats(types.sandbox, &before);
    test_status(types.sandbox, test_call(types.sandbox, types.image, "echo_i64", two, 1, NULL),
                PH_E_SIGNATURE);
    assert_non_null(strstr(ph_sandbox_error(types.sandbox)->message, "i64"));
    test_status(types.sandbox, test_call(types.sandbox, types.image, "echo_i32", two, 2, NULL),
                PH_E_SIGNATURE);
    test_status(types.sandbox, test_call(types.sandbox, types.image, "echo_i32", NULL, 0, NULL),
                PH_E_SIGNATURE);
    test_status(types.sandbox, test_call(types.sandbox, other, "echo_i32", two, 1, NULL), PH_E_NOT_FOUND);
    ph_sandbox_stats(types.sandbox, &after);
    assert_int_equal(after.exits, before.exits);
    assert_int_equal(ph_sandbox_state(types.sandbox), PH_STATE_READY);
    assert_int_equal(echo(&types, "echo_i32", i32(3)).i32, 3);
    ph_image_close(other);
    types_end(&types);
}

static void one_call_is_one_exit(void **state) {
    ph_stats before, after;
    (void)state;
    test_needs_kvm();
    struct types types = types_start();

    for (int i = 0; i < 20; i++)
        echo(&types, "echo_str", str("warm"));
    ph_sandbox_stats(types.sandbox, &before);
    for (int i = 0; i < 100; i++)
        echo(&types, "echo_str", str("some text of a usual length"));
    ph_sandbox_stats(types.sandbox, &after);
    /* A signal of somebody else may end a KVM_RUN early. */
    assert_in_range(after.exits - before.exits, 100, 102);
    assert_int_equal(after.calls - before.calls, 100);
    types_end(&types);
}

/* ---- the guest `errors` -------------------------------------------------------------------------------- */

static ph_status host_measure(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    const unsigned char *data = args[0].bytes.data;

    (void)context;
    for (size_t i = 0; i < args[0].bytes.size; i++)
        if (data[i] != (unsigned char)(i * 7))
            return ph_host_fail(call, 3, "byte %zu is wrong", i);
    result->u64 = args[0].bytes.size;
    return PH_OK;
}

static ph_status host_produce(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    unsigned char *data = ph_host_alloc(call, args[0].u64 + 1);

    (void)context;
    for (uint64_t i = 0; i < args[0].u64; i++)
        data[i] = (unsigned char)(i * 3);
    result->bytes = (ph_bytes){data, args[0].u64};
    return PH_OK;
}

static ph_status host_refuse(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    if (args[0].i32 == 0) {
        result->str = "agreed";
        return PH_OK;
    }
    return ph_host_fail(call, args[0].i32, "refused with %d", args[0].i32);
}

struct errors {
    ph_image *image;
    ph_sandbox *sandbox;
};

static struct errors errors_start(uint64_t max_message, uint64_t memory) {
    const ph_signature measure = {.result = PH_U64, .count = 1, .args = {PH_BYTES}};
    const ph_signature produce = {.result = PH_BYTES, .count = 1, .args = {PH_U64}};
    const ph_signature refuse = {.result = PH_STR, .count = 1, .args = {PH_I32}};
    struct errors errors = {.image = test_image("errors")};
    ph_config config = PH_CONFIG_INIT;

    config.max_message = max_message;
    config.memory = memory;
    errors.sandbox = test_sandbox(errors.image, &config);
    test_status(errors.sandbox, ph_sandbox_register(errors.sandbox, "measure", &measure, host_measure, NULL),
                PH_OK);
    test_status(errors.sandbox, ph_sandbox_register(errors.sandbox, "produce", &produce, host_produce, NULL),
                PH_OK);
    test_status(errors.sandbox, ph_sandbox_register(errors.sandbox, "refuse", &refuse, host_refuse, NULL),
                PH_OK);
    test_status(errors.sandbox, ph_sandbox_start(errors.sandbox), PH_OK);
    return errors;
}

static void errors_end(struct errors *errors) {
    ph_sandbox_destroy(errors->sandbox);
    ph_image_close(errors->image);
}

/* Calls and expects (wanted); gives the sandbox's error. */
static const ph_error *expect(const struct errors *errors, ph_status wanted, const char *name,
                              const ph_value *args, size_t count, ph_value *result) {
    test_status(errors->sandbox, test_call(errors->sandbox, errors->image, name, args, count, result),
                wanted);
    return ph_sandbox_error(errors->sandbox);
}

static void guest_error_has_code_and_message_and_leaves_the_sandbox_ready(void **state) {
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    for (int32_t code = 1; code < 50; code++) {
        const ph_value args[] = {i32(code), str("no such table")};
        const ph_error *error = expect(&errors, PH_E_GUEST, "fail_with", args, 2, NULL);
        assert_int_equal(error->code, code);
        assert_string_equal(error->message, "no such table");
        assert_int_equal(ph_sandbox_state(errors.sandbox), PH_STATE_READY);
    }
    errors_end(&errors);
}

static void message_of_a_guest_cannot_move_a_terminal(void **state) {
    const ph_value args[] = {i32(1), str("\x1b[2J\nsecond line\xff")};
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    assert_string_equal(expect(&errors, PH_E_GUEST, "fail_with", args, 2, NULL)->message,
                        "?[2J?second line?");
    errors_end(&errors);
}

static void abort_poisons_and_says_why_to_later_calls(void **state) {
    const ph_value args[] = {i32(5), str("invariant lost")};
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    const ph_error *error = expect(&errors, PH_E_ABORTED, "abort_with", args, 2, NULL);
    assert_int_equal(error->code, 5);
    assert_string_equal(error->message, "invariant lost");
    error = expect(&errors, PH_E_POISONED, "fail_with", args, 2, NULL);
    assert_non_null(strstr(error->message, "invariant lost"));
    assert_non_null(strstr(error->message, "make another"));
    errors_end(&errors);
}

/* The vCPU stands in the monitor then, but the report is about the guest. */
static void abort_and_exit_say_where_the_guest_was(void **state) {
    static const char *const names[] = {"abort", "exit"};
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("faults");

    for (size_t i = 0; i < 2; i++) {
        ph_sandbox *sandbox = test_sandbox(image, NULL);
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        test_status(sandbox, test_call(sandbox, image, names[i], NULL, 0, NULL),
                    i ? PH_E_EXITED : PH_E_ABORTED);
        const ph_error *error = ph_sandbox_error(sandbox);
        assert_true(error->rip != 0 && error->rip < 1ull << 32); /* in the image */
        assert_true(error->function[0] != 0);
        ph_sandbox_destroy(sandbox);
    }
    ph_image_close(image);
}

static void host_function_error_reaches_the_guest_with_code_and_message(void **state) {
    const ph_value nine = i32(9), zero = i32(0);
    ph_value result;
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    expect(&errors, PH_OK, "try_refuse", &nine, 1, &result);
    assert_string_equal(result.str, "9:refused with 9:none");
    expect(&errors, PH_OK, "try_refuse", &zero, 1, &result);
    assert_string_equal(result.str, "0::agreed");
    const ph_error *error = expect(&errors, PH_E_HOST_FUNCTION, "let_refuse", &nine, 1, NULL);
    assert_int_equal(error->code, 9);
    assert_non_null(strstr(error->message, "refused with 9"));
    assert_int_equal(ph_sandbox_state(errors.sandbox), PH_STATE_READY);
    expect(&errors, PH_OK, "let_refuse", &zero, 1, &result);
    assert_string_equal(result.str, "agreed");
    errors_end(&errors);
}

static void arguments_outlive_host_calls(void **state) {
    const ph_value text = str("the argument");
    ph_value result;
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    expect(&errors, PH_OK, "keep", &text, 1, &result);
    assert_string_equal(result.str, "the argument 1000");
    errors_end(&errors);
}

static void messages_up_to_the_limit_pass_and_larger_ones_lose_nothing(void **state) {
    const uint64_t limit = 64 << 10; /* the default */
    ph_value result;
    (void)state;
    test_needs_kvm();
    char *data = calloc(1, limit + 1);
    struct errors errors = errors_start(0, 0);

    for (uint64_t size = limit - 2; size <= limit + 1; size++) {
        const ph_value argument = bytes(data, size);
        const ph_value count = u64(size);
        bool fits = size <= limit;
        expect(&errors, fits ? PH_OK : PH_E_TOO_LARGE, "length", &argument, 1, &result);
        if (fits)
            assert_int_equal(result.u64, size);
        const ph_error *error = expect(&errors, fits ? PH_OK : PH_E_GUEST, "pattern", &count, 1, &result);
        if (fits)
            assert_int_equal(result.bytes.size, size);
        else
            assert_int_equal(error->code, -1);
        expect(&errors, fits ? PH_OK : PH_E_GUEST, "letters", &count, 1, &result);
        if (fits)
            assert_int_equal(strlen(result.str), size);
        expect(&errors, fits ? PH_OK : PH_E_GUEST, "measure_there", &count, 1, &result);
        expect(&errors, fits ? PH_OK : PH_E_HOST_FUNCTION, "produce_here", &count, 1, &result);
        assert_int_equal(ph_sandbox_state(errors.sandbox), PH_STATE_READY);
    }
    errors_end(&errors);
    free(data);
}

static void limit_counts_all_arguments_together(void **state) {
    const uint64_t limit = 1000;
    char data[1001];
    ph_value result;
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(limit, 0);

    memset(data, 'a', sizeof data);
    data[1000] = 0;
    const ph_value fits[] = {bytes(data, 400), str(data + 900), bytes(data, 400), str(data + 900)};
    const ph_value over[] = {bytes(data, 400), str(data + 900), bytes(data, 401), str(data + 900)};
    expect(&errors, PH_OK, "sum_lengths", fits, 4, &result);
    assert_int_equal(result.u64, 1000);
    expect(&errors, PH_E_TOO_LARGE, "sum_lengths", over, 4, &result);
    expect(&errors, PH_OK, "sum_lengths", fits, 4, &result);
    errors_end(&errors);
}

static void messages_of_64_mib_pass_each_way(void **state) {
    const uint64_t size = 64ull << 20;
    ph_value result;
    (void)state;
    test_needs_kvm();
    char *data = malloc(size);
    struct errors errors = errors_start(size, 512ull << 20);
    const ph_value argument = bytes(data, size);
    const ph_value count = u64(size);

    memset(data, 1, size);
    expect(&errors, PH_OK, "length", &argument, 1, &result);
    assert_int_equal(result.u64, size);
    expect(&errors, PH_OK, "pattern", &count, 1, &result);
    assert_int_equal(result.bytes.size, size);
    assert_int_equal(((const unsigned char *)result.bytes.data)[size - 1], (unsigned char)((size - 1) * 7));
    expect(&errors, PH_OK, "measure_there", &count, 1, &result);
    assert_int_equal(result.u64, size);
    expect(&errors, PH_OK, "produce_here", &count, 1, &result);
    assert_int_equal(result.u64, size);
    errors_end(&errors);
    free(data);
}

static void heap_exhausted_by_a_result_is_a_guest_error(void **state) {
    const ph_value huge = u64(1ull << 40), small = u64(10);
    ph_value result;
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    assert_int_equal(expect(&errors, PH_E_GUEST, "pattern", &huge, 1, &result)->code, -2);
    expect(&errors, PH_OK, "pattern", &small, 1, &result);
    errors_end(&errors);
}

/* `soak` runs this with PH_TEST_CALLS=1000000. */
static void many_calls_that_return_strings_grow_nothing(void **state) {
    const char *wanted = getenv("PH_TEST_CALLS");
    unsigned count = wanted ? (unsigned)strtoul(wanted, NULL, 10) : test_scaled(20000);
    uint64_t before, after;
    ph_value result;
    (void)state;
    test_needs_kvm();
    struct errors errors = errors_start(0, 0);

    for (unsigned i = 0; i < 600; i++) {
        const ph_value size = u64(i % 300 * 100);
        expect(&errors, PH_OK, "letters", &size, 1, &result);
    }
    test_status(errors.sandbox, ph_sandbox_pages(errors.sandbox, &before), PH_OK);
    for (unsigned i = 0; i < count; i++) {
        const ph_value size = u64(i % 300 * 100);
        expect(&errors, PH_OK, "letters", &size, 1, &result);
        assert_int_equal(result.str[0], size.u64 ? 'x' : 0);
    }
    test_status(errors.sandbox, ph_sandbox_pages(errors.sandbox, &after), PH_OK);
    assert_int_equal(after, before);
    errors_end(&errors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_cross_bit_for_bit),
        cmocka_unit_test(floats_cross_bit_for_bit),
        cmocka_unit_test(booleans_strings_and_bytes_cross),
        cmocka_unit_test(twelve_arguments_of_all_types_arrive),
        cmocka_unit_test(wrong_types_and_counts_are_refused_before_entry),
        cmocka_unit_test(one_call_is_one_exit),
        cmocka_unit_test(guest_error_has_code_and_message_and_leaves_the_sandbox_ready),
        cmocka_unit_test(message_of_a_guest_cannot_move_a_terminal),
        cmocka_unit_test(abort_poisons_and_says_why_to_later_calls),
        cmocka_unit_test(abort_and_exit_say_where_the_guest_was),
        cmocka_unit_test(host_function_error_reaches_the_guest_with_code_and_message),
        cmocka_unit_test(arguments_outlive_host_calls),
        cmocka_unit_test(messages_up_to_the_limit_pass_and_larger_ones_lose_nothing),
        cmocka_unit_test(limit_counts_all_arguments_together),
        cmocka_unit_test(messages_of_64_mib_pass_each_way),
        cmocka_unit_test(heap_exhausted_by_a_result_is_a_guest_error),
        cmocka_unit_test(many_calls_that_return_strings_grow_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
