/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a processor has and another one lacks: which bits of CPUID count, how they are called, and what is
 * said of those that are missing.
 */
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "vm/features.h"

#define AVX_BIT (1u << 28)
#define AVX2_BIT (1u << 5)
#define XSAVE_BIT (1u << 26)
#define AVX_COMPONENT 0

static ph_error error;

/* A processor with AVX2. */
static const struct ph__features sample = {
    .xcr0 = 7,
    .words = {[PH__FEATURES_1_ECX] = AVX_BIT | XSAVE_BIT, [PH__FEATURES_7_EBX] = AVX2_BIT},
    .components = {[AVX_COMPONENT] = 576},
};

static ph_status check(const struct ph__features *needed, const struct ph__features *had) {
    error = (ph_error){0};
    return ph__features_check(needed, had, "soft", &error);
}

static void assert_refused(const struct ph__features *needed, const struct ph__features *had,
                           const char *message) {
    assert_int_equal(check(needed, had), PH_E_SNAPSHOT);
    assert_string_equal(error.message, message);
}

static void a_processor_has_what_it_has_and_less(void **state) {
    struct ph__features less = sample;

    (void)state;
    assert_int_equal(check(&sample, &sample), PH_OK);
    less.words[PH__FEATURES_7_EBX] = 0;
    assert_int_equal(check(&less, &sample), PH_OK);
    assert_refused(&sample, &less,
                   "the snapshot needs AVX2, which the soft backend's processor does not have");
}

static void what_is_missing_is_named(void **state) {
    struct ph__features less = {.xcr0 = 7, .words = {[PH__FEATURES_1_ECX] = AVX_BIT}};

    (void)state;
    assert_refused(&sample, &less,
                   "the snapshot needs XSAVE and AVX2, which the soft backend's processor does not have");
    less.words[PH__FEATURES_1_ECX] = 0;
    assert_refused(
        &sample, &less,
        "the snapshot needs XSAVE, AVX and AVX2, which the soft backend's processor does not have");
}

static void of_much_that_is_missing_the_rest_is_counted(void **state) {
    const struct ph__features none = {0};
    struct ph__features all = {0};

    (void)state;
    /* Twelve are named, of thirteen eleven. */
    all.words[PH__FEATURES_1_ECX] = 0x7ed83203 & ~(1u << 27 | 1u << 28 | 1u << 29);
    all.words[PH__FEATURES_7_EBX] = 1u << 3;
    assert_refused(
        &all, &none,
        "the snapshot needs SSE3, PCLMULQDQ, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, "
        "AES, XSAVE and 2 more, which the soft backend's processor does not have");
    all.words[PH__FEATURES_7_EBX] = 0;
    assert_refused(
        &all, &none,
        "the snapshot needs SSE3, PCLMULQDQ, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, "
        "AES, XSAVE and RDRAND, which the soft backend's processor does not have");
    /* Whatever a file says, the end of the message is there. */
    memset(all.words, 0xff, sizeof all.words);
    assert_int_equal(check(&all, &none), PH_E_SNAPSHOT);
    assert_non_null(strstr(error.message, " more, which the soft backend's processor does not have"));
}

static void what_only_ring_0_can_use_does_not_count(void **state) {
    static const struct {
        enum ph__feature_word word;
        unsigned bit;
    } bits[] = {
        {PH__FEATURES_1_ECX, 3},         /* MONITOR */
        {PH__FEATURES_1_ECX, 5},         /* VMX */
        {PH__FEATURES_1_ECX, 21},        /* x2APIC */
        {PH__FEATURES_1_ECX, 27},        /* OSXSAVE */
        {PH__FEATURES_1_ECX, 31},        /* hypervisor */
        {PH__FEATURES_1_EDX, 9},         /* APIC */
        {PH__FEATURES_7_EBX, 7},         /* SMEP */
        {PH__FEATURES_7_EBX, 9},         /* ERMS */
        {PH__FEATURES_7_EBX, 20},        /* SMAP */
        {PH__FEATURES_7_ECX, 2},         /* UMIP */
        {PH__FEATURES_7_EDX, 24},        /* AMX-TILE */
        {PH__FEATURES_7_EDX, 31},        /* SSBD */
        {PH__FEATURES_D_1_EAX, 3},       /* XSAVES */
        {PH__FEATURES_80000001_ECX, 2},  /* SVM */
        {PH__FEATURES_80000001_EDX, 29}, /* LM */
        {PH__FEATURES_80000008_EBX, 12}, /* IBPB */
    };
    const struct ph__features none = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        struct ph__features needed = {0};
        needed.words[bits[i].word] = 1u << bits[i].bit;
        if (check(&needed, &none) != PH_OK)
            fail_msg("bit %u of word %d counts: %s", bits[i].bit, (int)bits[i].word, error.message);
    }
}

static void a_bit_that_nobody_knows_counts_and_is_named_by_its_place(void **state) {
    const struct ph__features none = {0};
    struct ph__features needed = {0};

    (void)state;
    needed.words[PH__FEATURES_7_EDX] = 1u << 17;
    assert_refused(&needed, &none,
                   "the snapshot needs CPUID.7.0:EDX[17], which the soft backend's processor does not have");
    needed = (struct ph__features){0};
    needed.words[PH__FEATURES_80000001_ECX] = 1u << 31;
    assert_refused(
        &needed, &none,
        "the snapshot needs CPUID.80000001.0:ECX[31], which the soft backend's processor does not have");
}

static void xcr0_is_the_same_or_was_never_seen(void **state) {
    struct ph__features more = sample, none = sample;

    (void)state;
    more.xcr0 = 0xe7;
    none.xcr0 = 0;
    assert_refused(
        &sample, &more,
        "the snapshot needs vector state as XCR0 0x7 has it, and the soft backend's processor has 0xe7");
    assert_refused(
        &more, &sample,
        "the snapshot needs vector state as XCR0 0xe7 has it, and the soft backend's processor has 0x7");
    assert_refused(
        &sample, &none,
        "the snapshot needs vector state as XCR0 0x7 has it, and the soft backend's processor has 0x0");
    assert_int_equal(check(&none, &sample), PH_OK);
    assert_int_equal(check(&none, &more), PH_OK);
}

static void state_that_lies_elsewhere_is_refused(void **state) {
    struct ph__features other = sample;

    (void)state;
    other.components[AVX_COMPONENT] = 640;
    assert_refused(
        &sample, &other,
        "the snapshot needs the state of XSAVE's component 2 at 576, and the soft backend's processor "
        "has it at 640");
    /* What one of them does not have lies nowhere. */
    other.components[AVX_COMPONENT] = 0;
    assert_int_equal(check(&sample, &other), PH_OK);
    assert_int_equal(check(&other, &sample), PH_OK);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* A processor whose leaves, up to the last ones, say what and where they are. */
struct leaves {
    uint32_t last, last_extended;
};

static void answer(const void *context, uint32_t leaf, uint32_t index, uint32_t words[4]) {
    const struct leaves *leaves = context;

    for (uint32_t part = 0; part < 4; part++)
        words[part] = leaf << 16 | index << 8 | part;
    if (leaf == 0)
        words[0] = leaves->last;
    if (leaf == 0x80000000)
        words[0] = leaves->last_extended;
}

static void each_word_is_of_its_leaf(void **state) {
    const struct leaves leaves = {0x24, 0x80000008};
    struct ph__features features;

    (void)state;
    ph__features_read(answer, &leaves, 0xe7, &features);
    assert_int_equal(features.xcr0, 0xe7);
    assert_int_equal(features.words[PH__FEATURES_1_ECX], 0x10002);
    assert_int_equal(features.words[PH__FEATURES_1_EDX], 0x10003);
    assert_int_equal(features.words[PH__FEATURES_7_EBX], 0x70001);
    assert_int_equal(features.words[PH__FEATURES_7_ECX], 0x70002);
    assert_int_equal(features.words[PH__FEATURES_7_EDX], 0x70003);
    assert_int_equal(features.words[PH__FEATURES_7_1_EAX], 0x70100);
    assert_int_equal(features.words[PH__FEATURES_7_1_EDX], 0x70103);
    assert_int_equal(features.words[PH__FEATURES_D_1_EAX], 0xd0100);
    assert_int_equal(features.words[PH__FEATURES_24_EBX], 1); /* version 1 */
    assert_int_equal(features.words[PH__FEATURES_80000001_ECX], 0x10002);
    assert_int_equal(features.words[PH__FEATURES_80000001_EDX], 0x10003);
    assert_int_equal(features.words[PH__FEATURES_80000008_EBX], 0x80001);
    assert_int_equal(features.components[0], 0xd0201);
    assert_int_equal(features.components[1], 0xd0501);
    assert_int_equal(features.components[4], 0xd0901);
}

static void state_that_is_not_switched_on_lies_nowhere(void **state) {
    const struct leaves leaves = {0x24, 0x80000008};
    struct ph__features features;

    (void)state;
    ph__features_read(answer, &leaves, 7, &features);
    assert_int_equal(features.components[0], 0xd0201);
    assert_int_equal(features.components[1], 0);
    assert_int_equal(features.components[3], 0);
    assert_int_equal(features.components[4], 0xd0901); /* PKRU is no part of XCR0 here */
}

static void leaves_behind_the_last_one_are_zero(void **state) {
    const struct leaves leaves = {1, 0x80000001};
    struct ph__features features;

    (void)state;
    ph__features_read(answer, &leaves, 0, &features);
    assert_int_equal(features.words[PH__FEATURES_1_ECX], 0x10002);
    assert_int_equal(features.words[PH__FEATURES_7_EBX], 0);
    assert_int_equal(features.words[PH__FEATURES_D_1_EAX], 0);
    assert_int_equal(features.words[PH__FEATURES_24_EBX], 0);
    assert_int_equal(features.words[PH__FEATURES_80000001_EDX], 0x10003);
    assert_int_equal(features.words[PH__FEATURES_80000008_EBX], 0);
    assert_int_equal(features.components[4], 0);
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void names_stand_in_a_line_and_end_where_the_room_does(void **state) {
    char text[64], small[sizeof "XSAVE AVX AVX2" - 1];

    (void)state;
    ph__features_name(&sample, text, sizeof text);
    assert_string_equal(text, "XSAVE AVX AVX2");
    ph__features_name(&sample, small, sizeof small);
    assert_string_equal(small, "XSAVE AVX");
    ph__features_name(&(struct ph__features){0}, text, sizeof text);
    assert_string_equal(text, "");
}

static void no_two_bits_have_the_same_name(void **state) {
    static char names[PH__FEATURE_WORDS * 32][64];
    size_t count = 0;

    (void)state;
    for (size_t word = 0; word < PH__FEATURE_WORDS; word++)
        for (unsigned bit = 0; bit < 32; bit++) {
            struct ph__features features = {0};
            features.words[word] = 1u << bit;
            ph__features_name(&features, names[count], sizeof names[count]);
            for (size_t i = 0; i < count; i++)
                if (names[count][0] && strcmp(names[i], names[count]) == 0)
                    fail_msg("%s is a name twice", names[i]);
            count += names[count][0] != 0;
        }
    assert_true(count > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_processor_has_what_it_has_and_less),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(of_much_that_is_missing_the_rest_is_counted),
        cmocka_unit_test(what_only_ring_0_can_use_does_not_count),
        cmocka_unit_test(a_bit_that_nobody_knows_counts_and_is_named_by_its_place),
        cmocka_unit_test(xcr0_is_the_same_or_was_never_seen),
        cmocka_unit_test(state_that_lies_elsewhere_is_refused),
        cmocka_unit_test(each_word_is_of_its_leaf),
        cmocka_unit_test(state_that_is_not_switched_on_lies_nowhere),
        cmocka_unit_test(leaves_behind_the_last_one_are_zero),
        cmocka_unit_test(names_stand_in_a_line_and_end_where_the_room_does),
        cmocka_unit_test(no_two_bits_have_the_same_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
