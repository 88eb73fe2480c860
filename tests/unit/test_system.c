/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * No source of the library but base/system.c makes a system call by itself: what the objects of its static
 * form ask of libc is looked up in a list of functions that make none. A function that is new to the library
 * is either added here, after a look at what it does, or an entry of struct ph__system.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions of libc without a system call of their own: memory, text, numbers, the allocator, pthread's locks
 * (which the kernel knows of only where they are waited for), and streams that the user of the library has
 * opened. */
static const char *const harmless[] = {
    "calloc",
    "errno_location",
    "fclose",
    "ferror",
    "fflush",
    "fileno",
    "fnmatch",
    "free",
    "freelocale",
    "fwrite",
    "getenv",
    "libc_current_sigrtmin",
    "malloc",
    "memchr",
    "memcmp",
    "memcpy",
    "memmove",
    "memrchr",
    "memset",
    "newlocale",
    "pthread_attr_destroy",
    "pthread_attr_init",
    "pthread_attr_setdetachstate",
    "pthread_cond_broadcast",
    "pthread_cond_destroy",
    "pthread_cond_init",
    "pthread_cond_signal",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_condattr_destroy",
    "pthread_condattr_init",
    "pthread_condattr_setclock",
    "pthread_mutex_destroy",
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_once",
    "qsort",
    "qsort_r",
    "realloc",
    "sigemptyset",
    "sigfillset",
    "sigismember",
    "snprintf",
    "stack_chk_fail",
    "stderr",
    "strcasestr",
    "strchr",
    "strchrnul",
    "strcmp",
    "strcspn",
    "strdup",
    "strerror",
    "strerrorname_np",
    "strlen",
    "strncmp",
    "strnlen",
    "strrchr",
    "strstr",
    "strtod",
    "strtol",
    "sysconf",
    "tls_get_addr",
    "uselocale",
    "vsnprintf",
    /* Arithmetic on 128 bits, from the compiler's own library. */
    "divti3",
    "popcountdi2",
    "udivti3",
};

/* The name in the list above for a symbol: fortified functions are __NAME_chk, those of the C standard's
 * newer versions __isoc99_NAME and __isoc23_NAME. */
static void plain_name(const char *symbol, char *name, size_t size) {
    static const char *const prefixes[] = {"__", "isoc99_", "isoc23_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(symbol, prefixes[i], strlen(prefixes[i])) == 0)
            symbol += strlen(prefixes[i]);
    snprintf(name, size, "%s", symbol);
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, "_chk") == 0)
        name[length - 4] = 0;
}

static bool is_harmless(const char *symbol) {
    char name[256];

    /* Our own, the linker's, and counters of a build that measures coverage. */
    if (strncmp(symbol, "ph_", 3) == 0 || strcmp(symbol, "_GLOBAL_OFFSET_TABLE_") == 0 ||
        strncmp(symbol, "__gcov", 6) == 0)
        return true;
    plain_name(symbol, name, sizeof name);
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (strcmp(harmless[i], name) == 0)
            return true;
    return false;
}

/* What opens the plug-in is in the one file that the installed static library does not have. */
static bool is_plugin_opener(const char *line) {
    const char *symbol = strrchr(line, ' ');

    return strstr(line, "vm_plugin.c.o:") && symbol && strncmp(symbol + 1, "dl", 2) == 0;
}

static void every_system_call_goes_through_the_table(void **state) {
    char command[4096], line[4096];
    unsigned in_table = 0, elsewhere = 0;
    const char *library = getenv("PH_TEST_STATIC_LIBRARY");

    (void)state;
    assert_non_null(library);
    snprintf(command, sizeof command, "nm --print-file-name --undefined-only '%s'", library);
    FILE *output = popen(command, "re"); /* NOLINT(cert-env33-c): nm of the build's own file */
    assert_non_null(output);
    while (fgets(line, sizeof line, output)) {
        line[strcspn(line, "\n")] = 0;
        const char *symbol = strrchr(line, ' ');
        assert_non_null(symbol);
        if (strstr(line, "base_system.c.o:") || is_plugin_opener(line))
            in_table++;
        else if (is_harmless(symbol + 1))
            elsewhere++;
        else
            fail_msg("a call that is not in base/system.h, or new to this test: %s", line);
    }
    assert_int_equal(pclose(output), 0);
    assert_true(in_table > 20);
    assert_true(elsewhere > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_system_call_goes_through_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
