/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Values on the command line: every type there and back through a real guest, and what is refused.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

struct echo {
    const char *function, *argument, *result; /* without its line break; NULL is the argument itself */
};

static void assert_echoes(const struct echo *echoes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s\n", echoes[i].result ? echoes[i].result : echoes[i].argument);
        assert_prints(
            run_command(ARGUMENTS("call", test_guest_path("types"), echoes[i].function, echoes[i].argument)),
            0, line);
    }
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void integers_come_back_whole(void **state) {
    static const struct echo echoes[] = {
        {"echo_i32", "2147483647", NULL},
        {"echo_i32", "-2147483648", NULL},
        {"echo_i32", " 5\n", "5"},
        {"echo_u32", "4294967295", NULL},
        {"echo_i64", "9223372036854775807", NULL},
        {"echo_i64", "-9223372036854775808", NULL},
        {"echo_u64", "9223372036854775808", NULL},
        {"echo_u64", "18446744073709551615", NULL},
        {"echo_u64", "-0", "0"},
    };

    (void)state;
    test_needs_kvm();
    assert_echoes(echoes, COUNT(echoes));
}

static void floats_read_back_equal(void **state) {
    static const struct echo echoes[] = {
        {"echo_f64", "0.1", NULL},
        {"echo_f64", "1", "1.0"},
        {"echo_f64", "-0", "-0.0"},
        {"echo_f64", "-0.0", NULL},
        {"echo_f64", "1e308", "1e+308"},
        {"echo_f64", "5e-324", NULL},
        {"echo_f64", "0.30000000000000004", NULL},
        {"echo_f64", "1.7976931348623157e308", "1.7976931348623157e+308"},
        {"echo_f64", "123456789012345678901234567890", "1.2345678901234568e+29"},
        {"echo_f32", "0.1", NULL},
        {"echo_f32", "16777217", "16777216.0"},
        {"echo_f32", "3.4028235e38", "3.4028235e+38"},
        {"echo_f32", "1e-45", NULL},
        {"echo_f64", "\"NaN\"", NULL},
        {"echo_f64", "\"Infinity\"", NULL},
        {"echo_f32", "\"-Infinity\"", NULL},
        {"echo_f32", "\"NaN\"", NULL},
    };

    (void)state;
    test_needs_kvm();
    assert_echoes(echoes, COUNT(echoes));
}

static void other_types_are_plain_json(void **state) {
    static const struct echo echoes[] = {
        {"echo_bool", "true", NULL},
        {"echo_bool", " false ", "false"},
        {"echo_str", "\"\"", NULL},
        {"echo_str", "\"@home\"", NULL},
        {"echo_str", "\"\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        {"echo_str", "\"a\\\"b\\\\c\\n\\t\\u0001\"", NULL},
        {"echo_bytes", "\"\"", NULL},
        {"echo_bytes", "\"AA==\"", NULL},
        {"echo_bytes", "\"aGk=\"", NULL},
        {"echo_bytes", "\"+/+/\"", NULL},
    };

    (void)state;
    test_needs_kvm();
    assert_echoes(echoes, COUNT(echoes));
    assert_prints(run_command(ARGUMENTS("call", test_guest_path("types"), "echo_void")), 0, "null\n");
}

static void what_does_not_fit_its_type_is_refused(void **state) {
    static const struct echo refused[] = {
        {"echo_i32", "2147483648", "'2147483648' does not fit i32"},
        {"echo_i32", "-2147483649", "'-2147483649' does not fit i32"},
        {"echo_u32", "-1", "'-1' does not fit u32"},
        {"echo_u64", "18446744073709551616", "'18446744073709551616' does not fit u64"},
        {"echo_i64", "1.0", "'1.0' is not a whole number"},
        {"echo_i64", "01", "'01' is not a JSON number"},
        {"echo_i64", "+1", "'+1' is not a JSON number"},
        {"echo_i64", "\"1\"", "it is not the JSON of an i64"},
        {"echo_i64", "@/etc/hostname", "@PATH is for string and bytes only"},
        {"echo_f64", "1e999", "'1e999' does not fit f64"},
        {"echo_f32", "1e39", "'1e39' does not fit f32"},
        {"echo_f64", "NaN", "'NaN' is not a JSON number"},
        {"echo_f64", "\"nan\"", "the only strings for a float are"},
        {"echo_bool", "1", "it is not the JSON of a bool"},
        {"echo_str", "World", "it is not JSON: a string is quoted twice"},
        {"echo_str", "\"a\\u0000b\"", "a string cannot hold a NUL"},
        {"echo_str", "@/nonexistent", "/nonexistent: No such file or directory"},
        {"echo_bytes", "\"a\"", "bytes are written in base64, with padding"},
        {"echo_bytes", "\"aGl=\"", "bytes are written in base64, with padding"},
        {"echo_bytes", "\"====\"", "bytes are written in base64, with padding"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct outcome outcome = run_command(
            ARGUMENTS("call", test_guest_path("types"), refused[i].function, refused[i].argument));
        assert_int_equal(outcome.status, 2);
        assert_string_equal(outcome.out, "");
        if (!strstr(outcome.err, refused[i].result))
            assert_string_equal(outcome.err, refused[i].result);
        assert_non_null(strstr(outcome.err, "argument 1 of echo_"));
        outcome_free(&outcome);
    }
}

/* The argument @PATH for a file with (size) bytes; the file goes with the test program. */
static const char *file_argument(const void *bytes, size_t size) {
    static char argument[64];
    int file = memfd_create("argument", 0);

    assert_int_equal(write(file, bytes, size), size);
    snprintf(argument, sizeof argument, "@/proc/%d/fd/%d", (int)getpid(), file);
    return argument;
}

static void files_are_passed_byte_for_byte(void **state) {
    unsigned char bytes[1024];

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    struct outcome outcome = run_command(ARGUMENTS("call", "--raw", test_guest_path("types"), "echo_bytes",
                                                   file_argument(bytes, sizeof bytes)));
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.out_size, sizeof bytes);
    assert_memory_equal(outcome.out, bytes, sizeof bytes);
    outcome_free(&outcome);
    assert_fails(run_command(ARGUMENTS("call", test_guest_path("types"), "echo_str",
                                       file_argument(bytes, sizeof bytes))),
                 2, "pinhole: argument 1 of echo_str, a value of type string: a string cannot hold a NUL");
}

static void text_that_is_not_utf8_is_replaced_in_json_alone(void **state) {
    static const char text[] = "a\xff\xc3\xa9\xe0\x80";

    (void)state;
    test_needs_kvm();
    const char *argument = file_argument(text, sizeof text - 1);
    assert_prints(run_command(ARGUMENTS("call", test_guest_path("types"), "echo_str", argument)), 0,
                  "\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"\n");
    assert_prints(run_command(ARGUMENTS("call", "--raw", test_guest_path("types"), "echo_str", argument)), 0,
                  text);
}

static void signatures_are_listed(void **state) {
    (void)state;
    assert_prints(run_command(ARGUMENTS("functions", test_guest_path("hello"))), 0,
                  "exports:\n  greet(string) -> string\nimports:\n  weekday(i32) -> string\n");
    assert_prints(run_command(ARGUMENTS("functions", "--json", test_guest_path("hello"))), 0,
                  "{\"exports\": [{\"name\": \"greet\", \"result\": \"string\", \"args\": [\"string\"]}], "
                  "\"imports\": [{\"name\": \"weekday\", \"result\": \"string\", \"args\": [\"i32\"]}]}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_come_back_whole),
        cmocka_unit_test(floats_read_back_equal),
        cmocka_unit_test(other_types_are_plain_json),
        cmocka_unit_test(what_does_not_fit_its_type_is_refused),
        cmocka_unit_test(files_are_passed_byte_for_byte),
        cmocka_unit_test(text_that_is_not_utf8_is_replaced_in_json_alone),
        cmocka_unit_test(signatures_are_listed),
    };
    return cmocka_run_group_tests_name("command values", tests, NULL, NULL);
}
