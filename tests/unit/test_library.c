/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What libpinhole.so and libpinhole-export.so ask of a program and show to it: their sonames, libc alone, for
 * the second one the first, libcurl and zlib too, and no name but the public ones. libpinhole.a asks for no
 * dynamic linker.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls (each) for every line that the command (format), a printf format with the path that is in the
 * variable (library), prints. Gives how many there were. */
static unsigned for_each_line(const char *library, const char *format, void (*each)(const char *line)) {
    char command[4096], line[1024];
    unsigned count = 0;
    const char *path = getenv(library);

    assert_non_null(path);
    snprintf(command, sizeof command, "%s '%s'", format, path);
    FILE *output = popen(command, "re"); /* NOLINT(cert-env33-c): readelf and nm of the build's own file */
    assert_non_null(output);
    for (; fgets(line, sizeof line, output); count++) {
        line[strcspn(line, "\n")] = 0;
        each(line);
    }
    assert_int_equal(pclose(output), 0);
    return count;
}

static unsigned needed;

static void check_dynamic(const char *line) {
    if (strstr(line, "(NEEDED)")) {
        needed++;
        /* The dynamic linker is a part of the C library: thread-local variables ask for it. */
        if (!strstr(line, "[libc.so.6]") && !strstr(line, "[ld-linux-x86-64.so.2]"))
            fail_msg("libpinhole.so needs more than libc: %s", line);
    }
    if (strstr(line, "(SONAME)"))
        assert_non_null(strstr(line, "[libpinhole.so.0]"));
}

static void check_export_dynamic(const char *line) {
    if (strstr(line, "[libpinhole.so.0]") || strstr(line, "[libcurl.so.4]") || strstr(line, "[libz.so.1]"))
        needed++;
    else if (strstr(line, "(SONAME)"))
        assert_non_null(strstr(line, "[libpinhole-export.so.0]"));
    else
        check_dynamic(line);
}

static void library_needs_libc_alone(void **state) {
    (void)state;
    needed = 0;
    assert_true(for_each_line("PH_TEST_LIBRARY", "readelf --wide --dynamic", check_dynamic) > 5);
    assert_in_range(needed, 1, 2);
}

/* What the plug-in with the soft backend needs is its own: Unicorn, and nothing of ours. */
static void check_plugin_dynamic(const char *line) {
    if (!strstr(line, "(NEEDED)"))
        return;
    assert_null(strstr(line, "pinhole"));
    needed += strstr(line, "libunicorn") != NULL;
}

/* One name is for the library, the others are for Unicorn (soft_guard.c, soft_buffer.c). */
static const char *const plugin_names[] = {"ph__backend_plugin", "abort",         "exit",
                                           "__assert_fail",      "__fprintf_chk", "mmap64"};
#define PLUGIN_NAMES (sizeof plugin_names / sizeof plugin_names[0])

static void check_plugin_symbol(const char *line) {
    const char *name = strrchr(line, ' ');

    assert_non_null(name);
    for (size_t i = 0; i < PLUGIN_NAMES; i++)
        if (strcspn(name + 1, "\n") == strlen(plugin_names[i]) &&
            strncmp(name + 1, plugin_names[i], strlen(plugin_names[i])) == 0)
            return;
    fail_msg("the plug-in shows another name: %s", line);
}

static void plugin_brings_unicorn_and_shows_few_names(void **state) {
    (void)state;
    if (!getenv("PH_TEST_PLUGIN")) {
        print_message("the soft backend was not built\n");
        skip();
    }
    needed = 0;
    assert_true(for_each_line("PH_TEST_PLUGIN", "readelf --wide --dynamic", check_plugin_dynamic) > 5);
    assert_int_equal(needed, 1);
    assert_int_equal(for_each_line("PH_TEST_PLUGIN", "nm --dynamic --defined-only", check_plugin_symbol),
                     PLUGIN_NAMES);
}

static void check_no_dynamic_linker(const char *line) {
    const char *name = strrchr(line, ' ');

    /* The names of its objects are lines too. */
    if (name && strncmp(name + 1, "dl", 2) == 0)
        fail_msg("the static library asks for the dynamic linker: %s", line);
}

static void static_library_does_without_the_dynamic_linker(void **state) {
    (void)state;
    assert_true(for_each_line("PH_TEST_STATIC_LIBRARY", "nm --undefined-only", check_no_dynamic_linker) >
                200);
}

static void export_library_needs_the_library_curl_and_zlib(void **state) {
    (void)state;
    needed = 0;
    assert_true(for_each_line("PH_TEST_EXPORT_LIBRARY", "readelf --wide --dynamic", check_export_dynamic) >
                5);
    assert_in_range(needed, 4, 5);
}

static void check_symbol(const char *line) {
    const char *name = strrchr(line, ' ');

    assert_non_null(name);
    if (strncmp(name + 1, "ph_", 3) != 0 && strncmp(name + 1, "PINHOLE_", 8) != 0)
        fail_msg("the library shows a name that is not public: %s", line);
    assert_null(strstr(name, "ph__"));
}

static void libraries_show_public_names_alone(void **state) {
    (void)state;
    assert_true(for_each_line("PH_TEST_LIBRARY", "nm --dynamic --defined-only", check_symbol) > 20);
    assert_true(for_each_line("PH_TEST_EXPORT_LIBRARY", "nm --dynamic --defined-only", check_symbol) > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_needs_libc_alone),
        cmocka_unit_test(plugin_brings_unicorn_and_shows_few_names),
        cmocka_unit_test(static_library_does_without_the_dynamic_linker),
        cmocka_unit_test(export_library_needs_the_library_curl_and_zlib),
        cmocka_unit_test(libraries_show_public_names_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
