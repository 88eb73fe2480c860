/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The library says which version it is, and it is the one of the build.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

const char *ph_version(void);

static void the_library_knows_its_version(void **state) {
    (void)state;
    assert_string_equal(ph_version(), "0.1.0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_knows_its_version),
    };
    return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
