/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * W3C Trace Context as its specification has it, the samplers, and ids.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/context.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" PARENT "-01"
#define ZEROES_16 "0000000000000000"

/* ---- the headers --------------------------------------------------------------------------------------- */

static void a_traceparent_is_read(void **state) {
    static const uint8_t trace[] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                    0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
    static const uint8_t parent[] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
    struct ph__traceparent read;

    (void)state;
    assert_true(ph__traceparent_read(GOOD, &read));
    assert_memory_equal(read.trace_id, trace, sizeof trace);
    assert_memory_equal(read.parent, parent, sizeof parent);
    assert_true(read.sampled);
}

static void what_is_valid_is_accepted(void **state) {
    static const struct {
        const char *text;
        bool sampled;
    } valid[] = {
        {GOOD, true},
        {"00-" TRACE "-" PARENT "-00", false},
        {"00-" TRACE "-" PARENT "-02", false}, /* flags that are not known say nothing */
        {"00-" TRACE "-" PARENT "-ff", true},
        {"00-" ZEROES_16 "0000000000000001-0000000000000001-01", true},
        {"cc-" TRACE "-" PARENT "-01", true}, /* a later version */
        {"01-" TRACE "-" PARENT "-01-what the future brings", true},
        {"fe-" TRACE "-" PARENT "-00-", false},
    };
    struct ph__traceparent read = {.sampled = false};

    (void)state;
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        if (!ph_traceparent_is_valid(valid[i].text) || !ph__traceparent_read(valid[i].text, &read))
            fail_msg("`%s` is refused", valid[i].text);
        assert_int_equal(read.sampled, valid[i].sampled);
    }
}

static void what_is_not_valid_is_refused(void **state) {
    static const char *const invalid[] = {
        "",
        "00",
        "00-" TRACE "-" PARENT "-0", /* short */
        "00-" TRACE "-" PARENT "-",  /* no flags */
        GOOD "-",                    /* version 00 has nothing more */
        GOOD "-more",
        GOOD " ",
        " " GOOD,
        "01-" TRACE "-" PARENT "-01.more", /* a later one has a dash there */
        "01-" TRACE "-" PARENT "-012",
        "ff-" TRACE "-" PARENT "-01", /* no version */
        "0g-" TRACE "-" PARENT "-01",
        "0-" TRACE "-" PARENT "-010",
        "00-" ZEROES_16 ZEROES_16 "-" PARENT "-01",
        "00-" TRACE "-" ZEROES_16 "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", /* capitals */
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-" TRACE "-" PARENT "-0A",
        "FE-" TRACE "-" PARENT "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-" PARENT "-01",
        "00-" TRACE "-00f067aa0ba902b.-01",
        "00-" TRACE "-" PARENT "-.1",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
    };

    (void)state;
    assert_false(ph_traceparent_is_valid(NULL));
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        if (ph_traceparent_is_valid(invalid[i]))
            fail_msg("`%s` is accepted", invalid[i]);
}

static void nothing_is_read_behind_the_end(void **state) {
    (void)state;
    /* Each in memory of its own size, where a sanitizer or valgrind sees a step too far. */
    for (size_t length = 0; length < sizeof GOOD; length++) {
        char *text = malloc(length + 1);
        assert_non_null(text);
        memcpy(text, GOOD, length);
        text[length] = '\0';
        assert_int_equal(ph_traceparent_is_valid(text), length == sizeof GOOD - 1);
        free(text);
    }
}

static void what_is_written_reads_back(void **state) {
    struct ph__traceparent read;
    char text[PH_TRACEPARENT_SIZE];

    (void)state;
    assert_true(ph__traceparent_read(GOOD, &read));
    ph__traceparent_write(text, &read);
    assert_string_equal(text, GOOD);
    read.sampled = false;
    ph__traceparent_write(text, &read);
    assert_string_equal(text, "00-" TRACE "-" PARENT "-00");
}

static void a_tracestate_is_printable_and_not_too_long(void **state) {
    char text[PH__TRACESTATE_MAX + 2];

    (void)state;
    assert_true(ph__tracestate_is_valid("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"));
    assert_true(ph__tracestate_is_valid("a=1 , b=~"));
    assert_false(ph__tracestate_is_valid(NULL));
    assert_false(ph__tracestate_is_valid(""));
    assert_false(ph__tracestate_is_valid("a=1\nb: 2"));
    assert_false(ph__tracestate_is_valid("a=\x7f"));
    assert_false(ph__tracestate_is_valid("a=\xc3\xbc"));
    memset(text, 'a', sizeof text);
    text[PH__TRACESTATE_MAX] = '\0';
    assert_true(ph__tracestate_is_valid(text));
    text[PH__TRACESTATE_MAX] = 'a';
    text[PH__TRACESTATE_MAX + 1] = '\0';
    assert_false(ph__tracestate_is_valid(text));
}

static void a_caller_keeps_what_is_to_be_passed_on(void **state) {
    struct ph__caller caller = {.known = false};
    char tracestate[] = "a=1";

    (void)state;
    assert_true(ph__caller_set(&caller, "00-" TRACE "-" PARENT "-03", tracestate));
    memset(tracestate, 'x', sizeof tracestate - 1);
    assert_true(caller.known);
    assert_string_equal(caller.traceparent, "00-" TRACE "-" PARENT "-03");
    assert_string_equal(caller.tracestate, "a=1");

    /* A later version becomes the one that is known. */
    assert_true(ph__caller_set(&caller, "cc-" TRACE "-" PARENT "-ff-more", "b=\t"));
    assert_string_equal(caller.traceparent, GOOD);
    assert_null(caller.tracestate);

    /* Without the one, the other is nothing. */
    assert_true(ph__caller_set(&caller, "00-" TRACE "-" ZEROES_16 "-01", "c=1"));
    assert_false(caller.known);
    assert_string_equal(caller.traceparent, "");
    assert_null(caller.tracestate);
    ph__caller_end(&caller);
}

/* ---- samplers ------------------------------------------------------------------------------------------ */

static void each_sampler_decides_as_it_is_called(void **state) {
    enum { NOBODY, NOT_SAMPLED, SAMPLED };
    static const struct {
        ph_sampler sampler;
        bool takes[3];      /* of a trace that the ratio takes */
        bool takes_last[3]; /* and of one that it does not */
    } samplers[] = {
        {PH_SAMPLER_PARENT_ALWAYS_ON, {true, false, true}, {true, false, true}},
        {PH_SAMPLER_PARENT_ALWAYS_OFF, {false, false, true}, {false, false, true}},
        {PH_SAMPLER_PARENT_RATIO, {true, false, true}, {false, false, true}},
        {PH_SAMPLER_ALWAYS_ON, {true, true, true}, {true, true, true}},
        {PH_SAMPLER_ALWAYS_OFF, {false, false, false}, {false, false, false}},
        {PH_SAMPLER_RATIO, {true, true, true}, {false, false, false}},
    };
    const uint8_t taken[PH__TRACE_ID_SIZE] = {[9] = 0xff}, not_taken[PH__TRACE_ID_SIZE] = {0xff, [15] = 1};
    const struct ph__traceparent not_sampled = {.sampled = false}, sampled = {.sampled = true};
    const struct ph__traceparent *const parents[] = {NULL, &not_sampled, &sampled};

    (void)state;
    for (size_t i = 0; i < sizeof samplers / sizeof samplers[0]; i++) {
        const struct ph__sampling sampling = {samplers[i].sampler, ph__ratio_threshold(0.25)};
        for (int parent = NOBODY; parent <= SAMPLED; parent++) {
            assert_int_equal(ph__sampling_takes(&sampling, parents[parent], taken),
                             samplers[i].takes[parent]);
            assert_int_equal(ph__sampling_takes(&sampling, parents[parent], not_taken),
                             samplers[i].takes_last[parent]);
        }
    }
}

static bool ratio_takes(double ratio, uint64_t random) {
    const struct ph__sampling sampling = {PH_SAMPLER_RATIO, ph__ratio_threshold(ratio)};
    uint8_t id[PH__TRACE_ID_SIZE] = {0xaa, 0xaa, 0xaa};

    for (int i = 0; i < 7; i++)
        id[15 - i] = (uint8_t)(random >> (8 * i));
    return ph__sampling_takes(&sampling, NULL, id);
}

static void a_ratio_is_of_the_last_56_bits(void **state) {
    const uint64_t all = 1ull << 56;

    (void)state;
    assert_false(ratio_takes(0, all - 1));
    assert_true(ratio_takes(1, 0));
    assert_true(ratio_takes(0.5, all / 2));
    assert_false(ratio_takes(0.5, all / 2 - 1));
    assert_true(ratio_takes(0.25, all - all / 4));
    assert_false(ratio_takes(0.25, all - all / 4 - 1));
    /* Who is taken at a ratio is taken at all higher ones. */
    for (int step = 1; step <= 64; step++) {
        assert_true(ratio_takes(step / 64.0, all - all / 64));
        assert_int_equal(ratio_takes(step / 64.0, all / 2), step >= 32);
    }
}

/* ---- ids ----------------------------------------------------------------------------------------------- */

static void the_cipher_is_the_published_one(void **state) {
    const uint32_t key[] = {0x03020100, 0x0b0a0908, 0x13121110, 0x1b1a1918};
    struct ph__cipher cipher;

    (void)state;
    ph__cipher_init(&cipher, key);
    assert_true(ph__cipher_apply(&cipher, 0x3b7265747475432dull) == 0x8c6fa548454e028bull);
}

static int compare(const void *one, const void *other) {
    return memcmp(one, other, PH__SPAN_ID_SIZE);
}

static void ids_of_spans_are_unique_and_stay(void **state) {
    static uint8_t ids[1 << 16][PH__SPAN_ID_SIZE];
    uint8_t again[PH__SPAN_ID_SIZE];

    (void)state;
    for (uint64_t id = 1; id <= sizeof ids / sizeof ids[0]; id++)
        ph_trace_span_id(id, ids[id - 1]);
    ph_trace_span_id(77, again);
    assert_memory_equal(again, ids[76], sizeof again);
    qsort(ids, sizeof ids / sizeof ids[0], sizeof ids[0], compare);
    for (size_t i = 1; i < sizeof ids / sizeof ids[0]; i++)
        assert_memory_not_equal(ids[i - 1], ids[i], sizeof ids[i]);
    assert_true(ph__id_is_set(ids[0], sizeof ids[0]));
    ph_trace_span_id(0, again);
    assert_false(ph__id_is_set(again, sizeof again));
}

static void a_child_of_fork_has_ids_of_its_own(void **state) {
    uint8_t ours[PH__SPAN_ID_SIZE], theirs[PH__SPAN_ID_SIZE] = {0};
    int ends[2];

    (void)state;
    ph_trace_span_id(5, ours);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        ph_trace_span_id(5, theirs);
        _exit(write(ends[1], theirs, sizeof theirs) == sizeof theirs ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    assert_true(ph__id_is_set(theirs, sizeof theirs));
    assert_memory_not_equal(theirs, ours, sizeof ours);
}

/* Takes ids, each from a new draw or one behind the other. Fails unless the bits from (first_bit) on are as
 * often 1 as 0, within ten standard deviations. */
static void assert_random(bool drawn_anew, unsigned first_bit) {
    struct ph__trace_ids ids = {0};
    unsigned ones[8 * PH__TRACE_ID_SIZE] = {0};
    const unsigned count = 4096;
    uint8_t id[PH__TRACE_ID_SIZE], last[PH__TRACE_ID_SIZE] = {0};

    for (unsigned i = 0; i < count; i++) {
        if (drawn_anew)
            ids.left = 0;
        ph__trace_id_next(&ids, id);
        assert_memory_not_equal(id + first_bit / 8, last + first_bit / 8, sizeof id - first_bit / 8);
        memcpy(last, id, sizeof last);
        for (unsigned bit = 0; bit < 8 * PH__TRACE_ID_SIZE; bit++)
            ones[bit] += id[bit / 8] >> bit % 8 & 1;
    }
    for (unsigned bit = first_bit; bit < 8 * PH__TRACE_ID_SIZE; bit++)
        assert_in_range(ones[bit], count / 2 - 320, count / 2 + 320);
}

static void ids_of_traces_are_random(void **state) {
    (void)state;
    assert_random(true, 0);
    assert_random(false, 64);
}

static int compare_traces(const void *one, const void *other) {
    return memcmp(one, other, PH__TRACE_ID_SIZE);
}

static void ids_of_traces_do_not_come_again(void **state) {
    static uint8_t taken[20 * PH__TRACE_IDS_AT_ONCE][PH__TRACE_ID_SIZE];
    const size_t count = sizeof taken / sizeof taken[0];
    struct ph__trace_ids ids = {0};

    (void)state;
    for (size_t i = 0; i < count; i++)
        ph__trace_id_next(&ids, taken[i]);
    qsort(taken, count, sizeof taken[0], compare_traces);
    for (size_t i = 1; i < count; i++)
        assert_memory_not_equal(taken[i - 1], taken[i], sizeof taken[i]);
}

static void no_id_of_a_trace_is_0(void **state) {
    struct ph__trace_ids ids = {.left = 1};
    uint8_t id[PH__TRACE_ID_SIZE];

    (void)state;
    ph__trace_id_next(&ids, id);
    assert_true(ph__id_is_set(id, sizeof id));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_read),
        cmocka_unit_test(what_is_valid_is_accepted),
        cmocka_unit_test(what_is_not_valid_is_refused),
        cmocka_unit_test(nothing_is_read_behind_the_end),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_tracestate_is_printable_and_not_too_long),
        cmocka_unit_test(a_caller_keeps_what_is_to_be_passed_on),
        cmocka_unit_test(each_sampler_decides_as_it_is_called),
        cmocka_unit_test(a_ratio_is_of_the_last_56_bits),
        cmocka_unit_test(the_cipher_is_the_published_one),
        cmocka_unit_test(ids_of_spans_are_unique_and_stay),
        cmocka_unit_test(a_child_of_fork_has_ids_of_its_own),
        cmocka_unit_test(ids_of_traces_are_random),
        cmocka_unit_test(ids_of_traces_do_not_come_again),
        cmocka_unit_test(no_id_of_a_trace_is_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
