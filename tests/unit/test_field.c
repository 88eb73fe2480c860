/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Names of fields in formats where names are unique: no two are the same and none is one of ours, whatever a
 * guest calls its fields; and a name that is neither stays as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/field.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char *const ours[] = {"pinhole.", "whole", NULL};

static void plain_names_stay(void **state) {
    static const char *const names[] = {"rows", "pinhole", "pinholes.x", "wholes", "whol",
                                        "a:1",  "-1:a",    "12",         "12.a:b", ".pinhole."};
    ph_field fields[COUNT(names)] = {0};
    char name[PH__FIELD_NAME_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        fields[i].name = names[i];
    for (size_t i = 0; i < COUNT(names); i++)
        assert_ptr_equal(ph__field_name(fields, i, ours, name), names[i]);
}

static void a_name_that_is_ours_or_none_or_came_before_gets_its_position(void **state) {
    static const char *const names[][2] = {{"rows", "rows"},
                                           {"", "1:"},
                                           {NULL, "2:"},
                                           {"pinhole.id", "3:pinhole.id"},
                                           {"pinhole.", "4:pinhole."},
                                           {"whole", "5:whole"},
                                           {"rows", "6:rows"},
                                           /* What the one before goes by, as a name of its own. */
                                           {"6:rows", "7:6:rows"},
                                           {"9:rows", "8:9:rows"},
                                           {"rows", "9:rows"}};
    ph_field fields[COUNT(names)] = {0};
    char name[PH__FIELD_NAME_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        fields[i].name = names[i][0];
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(ph__field_name(fields, i, ours, name), names[i][1]);
}

static void a_long_name_behind_its_position_is_cut_between_characters(void **state) {
    char own[1000];
    char name[PH__FIELD_NAME_SIZE];

    (void)state;
    for (size_t before = 0; before < 8; before++) {
        size_t used = (size_t)snprintf(own, sizeof own, "pinhole.%.*s", (int)before, "aaaaaaaa");
        while (used + 5 < sizeof own)
            used += (size_t)snprintf(own + used, 5, "\xf0\x9f\x90\x99");
        const ph_field field = {.name = own};
        assert_ptr_equal(ph__field_name(&field, 0, ours, name), name);
        size_t length = strlen(name);
        assert_true(length > 2 + 246 && length <= 2 + 250);
        assert_memory_equal(name + 2, own, length - 2);
        assert_int_equal((length - 2 - 8 - before) % 4, 0);
    }
}

static void text_is_cut_between_characters(void **state) {
    static const char text[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x99z";
    static const size_t fits[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    (void)state;
    for (size_t most = 0; most < COUNT(fits); most++)
        assert_int_equal(ph__text_fit(text, sizeof text - 1, most), fits[most]);
    /* What has no beginning is cut anywhere. */
    assert_int_equal(ph__text_fit("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
    assert_int_equal(ph__text_fit("\x80\x80", 2, 1), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_stay),
        cmocka_unit_test(a_name_that_is_ours_or_none_or_came_before_gets_its_position),
        cmocka_unit_test(a_long_name_behind_its_position_is_cut_between_characters),
        cmocka_unit_test(text_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
