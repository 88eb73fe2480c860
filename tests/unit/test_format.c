/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A log that is formatted later reads as C's printf would have printed it at once, and a format that lies
 * about its values does no more than to read oddly.
 */
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/format.h"
#include "trace/text.h"

static char text[PH__TRACE_MESSAGE_MAX];

#define I64(number)                                                                                          \
    {                                                                                                        \
        .value = {.type = PH_I64, .i64 = (int64_t)(number) }                                                 \
    }
#define U64(number)                                                                                          \
    {                                                                                                        \
        .value = {.type = PH_U64, .u64 = (uint64_t)(number) }                                                \
    }
#define F64(number)                                                                                          \
    {                                                                                                        \
        .value = {.type = PH_F64, .f64 = (number) }                                                          \
    }
#define BOOL(truth)                                                                                          \
    {                                                                                                        \
        .value = {.type = PH_BOOL, .boolean = (truth) }                                                      \
    }
#define STR(string)                                                                                          \
    { .value = {.type = PH_STR, .str = (string)}, .size = sizeof(string) - 1 }
#define POINTER(address)                                                                                     \
    {                                                                                                        \
        .value = {.type = PH_POINTER, .u64 = (address) }                                                     \
    }

/* (format) with the values behind (expected) gives that. */
#define FORMATTED(format, expected, ...)                                                                     \
    do {                                                                                                     \
        const ph_field values[] = {I64(0x5a5a), __VA_ARGS__};                                                \
        size_t length =                                                                                      \
            ph__trace_format(text, sizeof text, format, values + 1, sizeof values / sizeof values[0] - 1);   \
        assert_string_equal(text, expected);                                                                 \
        assert_int_equal(length, strlen(expected));                                                          \
    } while (0)

/* (format) with one recorded value gives what C says of (argument). */
#define AS_C(format, recorded, argument)                                                                     \
    do {                                                                                                     \
        char expected[sizeof text];                                                                          \
        snprintf(expected, sizeof expected, format, argument);                                               \
        FORMATTED(format, expected, recorded);                                                               \
    } while (0)

static void text_without_conversions_stays(void **state) {
    (void)state;
    FORMATTED("", "", );
    FORMATTED("plain \xc3\xa9", "plain \xc3\xa9", );
    FORMATTED("100%%", "100%", );
    FORMATTED("%%d%%", "%d%", I64(1));
    FORMATTED("%d%% of %s\n", "7% of it", I64(7), STR("it"));
}

static void integers_are_as_wide_as_their_length_says(void **state) {
    (void)state;
    AS_C("%d", I64(-5), -5);
    AS_C("%i|", I64(INT_MIN), INT_MIN);
    AS_C("%x", I64(-1), (unsigned)-1);
    AS_C("%X", I64(0xbeef), 0xbeefu);
    AS_C("%o", I64(-1), (unsigned)-1);
    AS_C("%u", I64(-1), (unsigned)-1);
    AS_C("%lx", I64(-1), (unsigned long)-1);
    AS_C("%llx", I64(-1), (unsigned long long)-1);
    AS_C("%jd", I64(INT64_MIN), (intmax_t)INT64_MIN);
    AS_C("%zu", U64(SIZE_MAX), SIZE_MAX);
    AS_C("%td", I64(-7), (ptrdiff_t)-7);
    AS_C("%ld", I64(LONG_MIN), LONG_MIN);
    AS_C("%lld", I64(LLONG_MAX), LLONG_MAX);
    AS_C("%lu", U64(ULONG_MAX), ULONG_MAX);
    AS_C("%u", U64(UINT_MAX), UINT_MAX);
    AS_C("%d", BOOL(true), true);
    FORMATTED("%hhd", "-1", I64(0x1ff));
    FORMATTED("%hhu", "255", I64(-1));
    FORMATTED("%hhx", "fe", I64(-2));
    FORMATTED("%hd", "-32768", I64(0x18000));
    FORMATTED("%hx", "ffff", I64(-1));
    FORMATTED("%d", "-1", I64(0x1ffffffffLL));
    FORMATTED("%u", "4294967295", U64(UINT64_MAX));
    FORMATTED("%d", "-1", U64(UINT64_MAX));
}

static void flags_width_and_precision_are_those_of_c(void **state) {
    (void)state;
    AS_C("[%5d]", I64(42), 42);
    AS_C("[%-5d]", I64(42), 42);
    AS_C("[%05d]", I64(-42), -42);
    AS_C("[%+d]", I64(42), 42);
    AS_C("[% d]", I64(42), 42);
    AS_C("[%#x]", I64(42), 42u);
    AS_C("[%#o]", I64(42), 42u);
    AS_C("[%.5d]", I64(42), 42);
    AS_C("[%8.5d]", I64(-42), -42);
    AS_C("[%-8.5d]", I64(42), 42);
    AS_C("[%.0d]", I64(0), 0);
    AS_C("[%.d]", I64(0), 0);
    AS_C("[%#10.4x]", I64(255), 255u);
    FORMATTED("[%-+ #0'5d]", "[+42  ]", I64(42));
    FORMATTED("[%*d]", "[   42]", I64(5), I64(42));
    FORMATTED("[%*d]", "[42   ]", I64(-5), I64(42));
    FORMATTED("[%.*d]", "[00042]", I64(5), I64(42));
    FORMATTED("[%.*d]", "[42]", I64(-5), I64(42));
    FORMATTED("[%0*.*f]", "[003.14]", I64(6), I64(2), F64(3.14159));
}

static void floats_are_those_of_c(void **state) {
    (void)state;
    AS_C("%f", F64(3.14159), 3.14159);
    AS_C("%F", F64(INFINITY), INFINITY);
    AS_C("%e", F64(-1.5e300), -1.5e300);
    AS_C("%E", F64(0.0), 0.0);
    AS_C("%g", F64(1e-5), 1e-5);
    AS_C("%G", F64(1e100), 1e100);
    AS_C("%a", F64(0.1), 0.1);
    AS_C("%A", F64(-0.0), -0.0);
    AS_C("%lf", F64(2.5), 2.5);
    AS_C("%Lf", F64(2.5), 2.5L);
    AS_C("%La", F64(2.5), 2.5L);
    AS_C("%f", F64((double)NAN), (double)NAN);
    AS_C("[%+10.3f]", F64(2.5), 2.5);
    AS_C("[%-10.0f]", F64(2.5), 2.5);
    AS_C("[%#.0f]", F64(2.5), 2.5);
    AS_C("%f", F64(DBL_MAX), DBL_MAX);
}

static void a_programs_locale_changes_nothing(void **state) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        FORMATTED("%.1f", "2.5", F64(2.5));
        assert_string_equal(localeconv()->decimal_point, ",");
        setlocale(LC_ALL, "C");
        return;
    }
    skip();
}

static void characters_strings_and_pointers(void **state) {
    (void)state;
    FORMATTED("[%c]", "[x]", I64('x'));
    FORMATTED("[%3c]", "[  x]", I64('x'));
    FORMATTED("[%-3c]", "[x  ]", I64('x'));
    FORMATTED("%c%c", "\xef\xbf\xbd\xef\xbf\xbd", I64(0xc3), I64(0));
    FORMATTED("%lc%lc%lc", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", I64(0xe9), I64(0x20ac), I64(0x1f600));
    FORMATTED("%lc%lc", "\xef\xbf\xbd\xef\xbf\xbd", I64(0xd800), I64(0x110000));
    FORMATTED("[%s]", "[text]", STR("text"));
    FORMATTED("[%8s]", "[    text]", STR("text"));
    FORMATTED("[%-8s]", "[text    ]", STR("text"));
    FORMATTED("[%.2s]", "[te]", STR("text"));
    FORMATTED("[%.s]", "[]", STR("text"));
    FORMATTED("[%.9s]", "[text]", STR("text"));
    FORMATTED("[%.*s]", "[tex]", I64(3), STR("text"));
    FORMATTED("[%-*.*s]", "[tex  ]", I64(5), I64(3), STR("text"));
    /* Between characters. */
    FORMATTED("[%.2s]", "[x]", STR("x\xc3\xa9"));
    FORMATTED("[%.3s]", "[x\xc3\xa9]", STR("x\xc3\xa9"));
    AS_C("%p", POINTER(0x7f0012345678), (void *)0x7f0012345678);
    AS_C("%p", POINTER(0), (void *)0);
    AS_C("[%20p]", POINTER(0x1000), (void *)0x1000);
}

static void one_final_newline_is_left_out(void **state) {
    (void)state;
    FORMATTED("line\n", "line", );
    FORMATTED("line\n\n", "line\n", );
    FORMATTED("\n", "", );
    FORMATTED("two\nlines", "two\nlines", );
    FORMATTED("%s", "line", STR("line\n"));
}

static void a_conversion_without_its_value_is_printed_as_it_stands(void **state) {
    (void)state;
    FORMATTED("%d", "%d", );
    FORMATTED("%d %d", "1 %d", I64(1));
    FORMATTED("%5.2f %s", "%5.2f x", I64(1), STR("x"));
    FORMATTED("%d", "%d", STR("x"));
    FORMATTED("%d", "%d", F64(1));
    FORMATTED("%x", "%x", POINTER(1));
    FORMATTED("%s", "%s", I64(0x41414141));
    FORMATTED("%s", "%s", POINTER(0x41414141));
    FORMATTED("%s", "%s", {.value = {.type = PH_BYTES, .bytes = {"x", 1}}});
    FORMATTED("%p", "%p", I64(1));
    FORMATTED("%f", "%f", U64(1));
    FORMATTED("%c", "%c", STR("x"));
    FORMATTED("%*d", "%*d", I64(1));
    FORMATTED("%*d", "%*d", );
    FORMATTED("%*.*d|%d", "%*.*d|4", I64(1), STR("x"), I64(3), I64(4));
    FORMATTED("%Ld %hf %lp %hs", "%Ld %hf %lp %hs", I64(1), F64(1), POINTER(1), STR("x"));
    FORMATTED("%d", "%d", {.value = {.type = PH_VOID}});
}

static void what_is_no_conversion_is_printed_as_it_stands(void **state) {
    (void)state;
    FORMATTED("%", "%", I64(1));
    FORMATTED("%5", "%5", I64(1));
    FORMATTED("%-+ #0.", "%-+ #0.", I64(1));
    FORMATTED("%ll", "%ll", I64(1));
    FORMATTED("%y %d", "%y 1", I64(1));
    FORMATTED("%\xc3\xa9 %d", "%\xc3\xa9 1", I64(1));
    FORMATTED("%1$d", "%1$d", I64(1));
    FORMATTED("%hhhd", "%hhhd", I64(1));
    /* %n writes nothing, anywhere. */
    FORMATTED("%n%hhn%5ln%d", "1", I64(1));
}

static void more_values_than_conversions_are_left_over(void **state) {
    (void)state;
    FORMATTED("%d", "1", I64(1), STR("x"), F64(1));
    FORMATTED("nothing", "nothing", I64(1));
}

static void monstrous_widths_and_precisions_are_bounded(void **state) {
    char *last = text + sizeof text - 2;

    (void)state;
    ph_field values[] = {I64(INT64_MAX), I64(7)};
    assert_int_equal(ph__trace_format(text, sizeof text, "%99999999999999999999d", values + 1, 1), 2047);
    assert_int_equal(*last, ' ');
    assert_int_equal(ph__trace_format(text, sizeof text, "%2000000000s", values, 2), 12);
    values[0].value.i64 = INT_MAX;
    assert_int_equal(ph__trace_format(text, sizeof text, "%*d", values, 2), 2047);
    values[0].value.i64 = INT_MIN;
    assert_int_equal(ph__trace_format(text, sizeof text, "%*d", values, 2), 2047);
    assert_int_equal(text[0], '7');
    values[0].value.i64 = INT_MAX;
    assert_int_equal(ph__trace_format(text, sizeof text, "%.*d", values, 2), 2047);
    assert_int_equal(*last, '0');
    values[0] = (ph_field)F64(DBL_MAX);
    assert_int_equal(ph__trace_format(text, sizeof text, "%.2147483647f", values, 1), 2047);
    values[0] = (ph_field)STR("s");
    assert_int_equal(ph__trace_format(text, sizeof text, "%-4294967297s|", values, 1), 2047);
}

/* Into every size there is: the start of the whole, as valid UTF-8, and no byte beyond. */
static void what_does_not_fit_is_cut_between_characters(void **state) {
    static const char format[] = "\xc3\xa9 %s %5d %% %.3f %c %lc %-4s %y\xe2\x82\xac%d";
    const ph_field values[] = {
        STR("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), I64(-42), F64(2.5), I64(0xff), I64(0x20ac), STR("\xc3\xa9")};
    char again[3 * sizeof text + 1];
    size_t whole = ph__trace_format(text, sizeof text, format, values, 6);

    (void)state;
    assert_int_equal(ph__trace_format(NULL, 0, format, values, 6), 0);
    for (size_t size = 1; size <= whole + 1; size++) {
        char *out = malloc(size);
        size_t length = ph__trace_format(out, size, format, values, 6);
        assert_true(length < size && length + 4 >= size && strlen(out) == length);
        assert_memory_equal(out, text, length);
        assert_int_equal(ph__text_make_valid(again, out, length, 0), length);
        assert_memory_equal(again, out, length);
        free(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_conversions_stays),
        cmocka_unit_test(integers_are_as_wide_as_their_length_says),
        cmocka_unit_test(flags_width_and_precision_are_those_of_c),
        cmocka_unit_test(floats_are_those_of_c),
        cmocka_unit_test(a_programs_locale_changes_nothing),
        cmocka_unit_test(characters_strings_and_pointers),
        cmocka_unit_test(one_final_newline_is_left_out),
        cmocka_unit_test(a_conversion_without_its_value_is_printed_as_it_stands),
        cmocka_unit_test(what_is_no_conversion_is_printed_as_it_stands),
        cmocka_unit_test(more_values_than_conversions_are_left_over),
        cmocka_unit_test(monstrous_widths_and_precisions_are_bounded),
        cmocka_unit_test(what_does_not_fit_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
