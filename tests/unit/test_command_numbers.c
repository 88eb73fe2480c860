/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The command's numbers and base64, on many random values: what it prints reads back to the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/value.h"

#define ROUNDS 50000

/* xorshift64 (Marsaglia, 2003): the same numbers in every run. */
static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* What (print) writes, in static memory. */
struct printed {
    char text[64];
};

static struct printed print_f64(double number) {
    struct printed printed = {""};
    FILE *file = fmemopen(printed.text, sizeof printed.text, "w");

    assert_non_null(file);
    ph__f64_print(file, number);
    fclose(file);
    return printed;
}

static struct printed print_f32(float number) {
    struct printed printed = {""};
    FILE *file = fmemopen(printed.text, sizeof printed.text, "w");

    assert_non_null(file);
    ph__f32_print(file, number);
    fclose(file);
    return printed;
}

static void doubles_read_back_to_the_same_bits(void **state) {
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bits = next(&seed);
        double number;
        ph_value value;
        struct ph__refusal why = {""};
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        struct printed printed = print_f64(number);
        assert_true(ph__number_parse(printed.text, PH_F64, &value, &why));
        assert_memory_equal(&value.f64, &number, sizeof number);
    }
}

static void floats_read_back_to_the_same_bits(void **state) {
    uint64_t seed = 2;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t bits = (uint32_t)next(&seed);
        float number;
        ph_value value;
        struct ph__refusal why = {""};
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        struct printed printed = print_f32(number);
        assert_true(ph__number_parse(printed.text, PH_F32, &value, &why));
        assert_memory_equal(&value.f32, &number, sizeof number);
    }
}

/* Halfway between two floats, and a little above in double: rounding twice would give the lower one. */
static void floats_are_rounded_once(void **state) {
    ph_value value;
    struct ph__refusal why = {""};

    (void)state;
    assert_true(ph__number_parse("1.00000005960464477540", PH_F32, &value, &why));
    assert_true(value.f32 > 1.0f);
}

static void bytes_come_back_from_base64(void **state) {
    static char text[16384];
    static uint8_t bytes[9000];
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next(&seed);
    for (size_t size = 0; size <= sizeof bytes; size += size < 200 ? 1 : 977) {
        FILE *file = fmemopen(text, sizeof text, "w");
        assert_non_null(file);
        ph__base64_print(file, bytes, size);
        fclose(file);
        size_t length = (size + 2) / 3 * 4;
        size_t decoded_size;
        uint8_t *decoded = ph__base64_decode(text, length, &decoded_size);
        assert_non_null(decoded);
        assert_int_equal(decoded_size, size);
        assert_memory_equal(decoded, bytes, size);
        free(decoded);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_read_back_to_the_same_bits),
        cmocka_unit_test(floats_read_back_to_the_same_bits),
        cmocka_unit_test(floats_are_rounded_once),
        cmocka_unit_test(bytes_come_back_from_base64),
    };
    return cmocka_run_group_tests_name("command numbers", tests, NULL, NULL);
}
