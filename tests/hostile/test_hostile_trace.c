/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests that lie in their trace ring: no record, no position and no text in it does harm, reading goes on at
 * the next good record, and what is the host's stays so.
 */
#include "hostile/lying.h"

#include <stdlib.h>
#include <string.h>

#include "abi/trace.h"

/* ---- one record ---------------------------------------------------------------------------------------- */

static void records_of_every_length_and_type_do_not_stop_the_reading(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    for (uint32_t type = 0; type < 16; type++)
        for (uint32_t length = 0; length < 9; length++) {
            const uint64_t word = PH__RECORD_WORD(type, 1, length < 8 ? length : 255);
            lie(&lying, "forge", ARGS(U64(word), U64(0), U64(0), U64(0), U32(4)));
        }
    const ph_trace_stats stats = lying_stats(&lying);
    assert_true(stats.malformed > 16);
    lying_end(&lying, "lengths and types");
}

static void sites_that_are_not_there_are_counted(void **state) {
    static const uint32_t sites[] = {8, 9, 1000, PH__SITE_MAX - 1, PH__SITE_MAX};
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        for (uint32_t type = 1; type < 13; type++) {
            const uint64_t word = PH__RECORD_WORD(type, sites[i], 4);
            lie(&lying, "forge", ARGS(U64(word), U64(0), U64(1), U64(2), U32(4)));
        }
    assert_true(lying_stats(&lying).malformed >= 5);
    lying_end(&lying, "sites");
}

static void times_are_moved_into_their_span(void **state) {
    static const uint64_t times[] = {1, 1000, 1ull << 32, 1ull << 62, 1ull << 63, UINT64_MAX};
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const uint64_t begin_word = PH__RECORD_WORD(PH__RECORD_SYSTEM_CALL_BEGIN, 39, 2);
        const uint64_t event_word = PH__RECORD_WORD(PH__RECORD_EVENT, 0, 3);
        lie(&lying, "forge", ARGS(U64(begin_word), U64(times[i]), U64(0), U64(0), U32(2)));
        lie(&lying, "forge", ARGS(U64(event_word), U64(times[i]), U64(1u << 31), U64(0), U32(3)));
    }
    /* That they all lie inside their calls is checked at the end. */
    assert_int_equal(lying_stats(&lying).malformed, 0);
    lying_end(&lying, "times");
}

static void fields_that_do_not_fit_their_record_are_counted(void **state) {
    const struct {
        uint32_t site, length;
        uint64_t words[4];
        uint32_t count;
    } records[] = {
        {3, 3, {100 | 100ull << 32}, 1},                         /* no room for its string */
        {3, 4, {65535 | 65535ull << 32, 0x4141414141414141}, 2}, /* beyond all records */
        {3, 2, {0}, 0},                                          /* no field at all */
        {3, 6, {8 | 8ull << 32, 0x4141414141414141, 1, 2}, 4},   /* more than its fields */
        {4, 3, {~0ull}, 1},                                      /* types of a log */
        {4, 5, {0x111111111111, 1, 2}, 3},                       /* more types than words */
        {4, 5, {PH_STR, 64 | 64ull << 32, 1}, 3},                /* a log's string */
        {2, 5, {~0ull, 0, 0}, 3},                                /* fields of no span */
        {2, 4, {8, 255}, 2},
        {5, 2, {0}, 0}, /* a counter without a value */
        {6, 2, {0}, 0}, /* no id */
        {7, 2, {0}, 0},
    };
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        const uint64_t before = lying_stats(&lying).malformed + lying_stats(&lying).unknown_ends;
        lie(&lying, "forge_site",
            ARGS(U32(records[i].site), U32(records[i].length),
                 BYTES(records[i].words, 8 * records[i].count)));
        if (lying_stats(&lying).malformed + lying_stats(&lying).unknown_ends == before)
            fail_msg("the record number %zu was not counted", i);
    }
    lying_end(&lying, "fields");
}

static void texts_are_made_valid_whatever_is_in_them(void **state) {
    char bytes[8 + 64] = {0};
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;
    uint64_t seed = 11;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    for (int i = 0; i < 100; i++) {
        const uint64_t word = 64 | 70ull << 32;
        memcpy(bytes, &word, 8);
        for (size_t j = 8; j < sizeof bytes; j++)
            bytes[j] = (char)(hostile_random(&seed) >> 56);
        lie(&lying, "forge_site", ARGS(U32(3), U32(2 + 9), BYTES(bytes, sizeof bytes)));
    }
    assert_int_equal(trace_events_named(&lying.collect, "text"), 100);
    assert_int_equal(lying_stats(&lying).malformed, 0);
    lying_end(&lying, "texts");
}

/* ---- positions ----------------------------------------------------------------------------------------- */

static void a_head_that_cannot_be_is_counted_and_left_behind(void **state) {
    static const int64_t moves[] = {1,       -1,     4,      7,         -8,        -4096,         262144,
                                    -262144, 262145, 262152, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1LL << 40};
    (void)state;
    test_needs_kvm();

    for (int synchronous = 0; synchronous < 2; synchronous++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        lying_begin(&lying, &config, synchronous, true);
        for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
            lie(&lying, "head_move", ARGS(I64(moves[i])));
        assert_true(lying_stats(&lying).malformed + lying_stats(&lying).gaps > 0);
        lying_end(&lying, "head");
    }
}

static void the_rest_of_the_rings_page_says_nothing_to_the_host(void **state) {
    static const uint64_t values[] = {0, 1, 7, 1ull << 32, 1ull << 63, UINT64_MAX};
    (void)state;
    test_needs_kvm();

    for (int policy = PH_TRACE_COMPLETE; policy <= PH_TRACE_DROP; policy++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        config.trace_policy = (ph_trace_policy)policy;
        lying_begin(&lying, &config, true, true);
        for (uint32_t word = 1; word < 16; word++)
            for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
                lie(&lying, "page_word", ARGS(U32(word), U64(values[i])));
        lying_end(&lying, "page");
    }
}

static void policy_flight_survives_the_same_lies(void **state) {
    static const struct {
        uint32_t word;
        uint64_t value;
    } words[] = {{0, 0}, {0, 1}, {0, UINT64_MAX}, {4, 0}, {4, 7}, {4, 1ull << 63}, {4, UINT64_MAX}, {5, 9}};
    static const int64_t moves[] = {1, -1, -8, -4096, 1 << 20, INT64_MAX, INT64_MIN};
    const size_t word_count = sizeof words / sizeof words[0];

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < word_count + sizeof moves / sizeof moves[0]; i++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        config.trace_policy = PH_TRACE_FLIGHT;
        lying_begin(&lying, &config, i % 2 == 0, true);
        lying.hostile.brief = true;
        assert_int_equal(hostile_call(&lying.hostile, "end_badly", NO_ARGS, NULL), PH_OK);
        if (i < word_count)
            hostile_call(&lying.hostile, "page_word", ARGS(U32(words[i].word), U64(words[i].value), U64(1)),
                         NULL);
        else
            hostile_call(&lying.hostile, "head_move", ARGS(I64(moves[i - word_count]), U64(1)), NULL);
        hostile_expect(&lying.hostile, lying.hostile.last, PH_E_UNDEFINED_INSTRUCTION, "flight");
        lying_end(&lying, "flight");
    }
}

/* Where the monitor is sent to look for a recorder's bounds. */
static void bounds_of_recorders_that_are_nowhere_do_no_harm(void **state) {
    static const uint64_t addresses[] = {
        0,
        8,
        0x123400000000,
        1ull << 47,
        UINT64_MAX,
        UINT64_MAX - 7,
        PH__TRACE_GVA,
        PH__TRACE_GVA - 4,
        PH__GVA(PH__CONTROL_GPA),
        PH__GVA(PH__CONTROL_GPA) + PH__PAGE_SIZE - 4, /* half of them are not there */
        PH__GVA(PH__TABLES_GPA),                      /* ring 0's */
        PH__GVA(PH__MONITOR_GPA),
        PH__GVA(PH__MONITOR_STACK_GPA),
    };
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        lie(&lying, "critical", ARGS(U64(addresses[i])));
    assert_int_equal(trace_spans_named(&lying.collect, "span"), sizeof addresses / sizeof addresses[0]);
    lying_end(&lying, "critical");
}

/* ---- what is not the guest's --------------------------------------------------------------------------- */

static void site_words_and_control_page_cannot_be_written(void **state) {
    static const struct {
        const char *name;
        ph_status wanted;
    } lies[] = {{"write_word", PH_E_PAGE_FAULT},
                {"write_control", PH_E_PAGE_FAULT},
                {"run_ring", PH_E_PAGE_FAULT},
                {"read_beyond_ring", PH_E_PAGE_FAULT}};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        lying_begin(&lying, &config, true, true);
        hostile_expect(&lying.hostile, hostile_call(&lying.hostile, lies[i].name, NO_ARGS, NULL),
                       lies[i].wanted, lies[i].name);
        lying_end(&lying, lies[i].name);
    }
}

/* The page-table entry may change, as for any page of the image; the memory behind it stays what it was. */
static void protection_of_site_words_gives_nothing(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct lying lying;
    ph_value answer = {.type = PH_I64};

    (void)state;
    test_needs_kvm();
    lying_begin(&lying, &config, true, true);
    lying.hostile.may_change_tables = true;
    const uint64_t *words = (const uint64_t *)(ph__memory_site_words(&lying.hostile.sandbox->memory));
    const size_t size = lying.hostile.sandbox->memory.layout.site_words.size;
    uint64_t *before = malloc(size);
    assert_non_null(before);
    memcpy(before, words, size);
    hostile_call(&lying.hostile, "protect_and_write_word", NO_ARGS, NULL);
    if (!hostile_is_end(lying.hostile.last))
        fail_msg("the store into a site's word went through");
    assert_memory_equal(words, before, size);
    free(before);
    lying_end(&lying, "protect_and_write_word");

    lying_begin(&lying, &config, true, true);
    lying.hostile.may_change_tables = true;
    hostile_call(&lying.hostile, "protect_control", NO_ARGS, &answer);
    assert_true(answer.i64 < 0);
    hostile_call(&lying.hostile, "protect_ring", ARGS(U32(1)), &answer);
    assert_true(answer.i64 < 0);
    hostile_call(&lying.hostile, "protect_ring", ARGS(U32(0)), &answer);
    assert_true(answer.i64 < 0);
    lie(&lying, "marks", ARGS(U64(1)));
    lying_end(&lying, "protect");
}

static void there_is_no_ring_without_a_tracer(void **state) {
    (void)state;
    test_needs_kvm();
    hostile_lie(GUEST, "read_ring", NO_ARGS, PH_E_PAGE_FAULT, NULL);
    hostile_lie(GUEST, "batches", ARGS(U64(1), U64(1)), PH_E_PROTOCOL, NULL);
}

static void lies_before_the_first_call_are_no_different(void **state) {
    static const char *const names[] = {"garbage", "head", "nest", "flood"};
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *const arguments[] = {names[i], NULL};
        ph_config config = PH_CONFIG_INIT;
        struct lying lying;
        config.argv = arguments;
        lying_begin(&lying, &config, i % 2 == 0, true);
        trace_collect_flush(lying.tracer);
        assert_true(lying_has_mark(&lying, 1));
        lying.n = 1;
        lie(&lying, "marks", ARGS(U64(1)));
        lying_end(&lying, names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_every_length_and_type_do_not_stop_the_reading),
        cmocka_unit_test(sites_that_are_not_there_are_counted),
        cmocka_unit_test(times_are_moved_into_their_span),
        cmocka_unit_test(fields_that_do_not_fit_their_record_are_counted),
        cmocka_unit_test(texts_are_made_valid_whatever_is_in_them),
        cmocka_unit_test(a_head_that_cannot_be_is_counted_and_left_behind),
        cmocka_unit_test(the_rest_of_the_rings_page_says_nothing_to_the_host),
        cmocka_unit_test(policy_flight_survives_the_same_lies),
        cmocka_unit_test(bounds_of_recorders_that_are_nowhere_do_no_harm),
        cmocka_unit_test(site_words_and_control_page_cannot_be_written),
        cmocka_unit_test(protection_of_site_words_gives_nothing),
        cmocka_unit_test(there_is_no_ring_without_a_tracer),
        cmocka_unit_test(lies_before_the_first_call_are_no_different),
    };

    return cmocka_run_group_tests_name("hostile trace", tests, NULL, NULL);
}
