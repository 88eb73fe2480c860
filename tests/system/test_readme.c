/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The README's code is the code of the tree: each block in C is one of the examples, word for word behind its
 * licence line, and the examples, which the build has compiled, do what the README says they do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static const char *environment(const char *name) {
    const char *value = getenv(name);

    if (!value)
        fail_msg("%s is not set: run this by `meson test`", name);
    return value;
}

/* The whole of a file of the tree, to be freed. */
static char *read_source(const char *name) {
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", environment("PH_TEST_SOURCE"), name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

/* The code of an example: what follows its first line, which is the licence. */
static const char *behind_licence(const char *text) {
    assert_non_null(strstr(text, "SPDX-License-Identifier"));
    return strchr(text, '\n') + 1;
}

static void assert_readme_has(const char *name) {
    char *readme = read_source("README.md");
    char *source = read_source(name);
    size_t length = strlen(source) + 16;
    char *block = malloc(length);

    assert_non_null(block);
    snprintf(block, length, "```c\n%s```\n", behind_licence(source));
    if (!strstr(readme, block))
        fail_msg("README.md has no block of C that is %s behind its licence line", name);
    free(block);
    free(source);
    free(readme);
}

static void the_guest_is_the_one_in_the_tree(void **state) {
    (void)state;
    assert_readme_has("guests/hello/hello.c");
}

static void the_host_is_the_one_in_the_tree(void **state) {
    (void)state;
    assert_readme_has("examples/hello_host.c");
}

static void there_is_no_other_code(void **state) {
    char *readme = read_source("README.md");
    int blocks = 0;

    (void)state;
    for (const char *at = readme; (at = strstr(at, "```c\n")); at++)
        blocks++;
    assert_int_equal(blocks, 2);
    free(readme);
}

/* Runs a shell's line and gives what it printed, in static memory. */
static const char *output_of(const char *line) {
    static char output[32768];
    FILE *pipe = popen(line, "r"); // NOLINT(cert-env33-c): a constant line, with paths of the build

    assert_non_null(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = 0;
    assert_int_equal(pclose(pipe), 0);
    return output;
}

static void the_host_greets(void **state) {
    char line[2048];

    (void)state;
    test_needs_kvm();
    test_not_on_soft("the smallest host takes what the library gives to all that do not ask, which is KVM");
    snprintf(line, sizeof line, "'%s/hello_host' '%s' World", environment("PH_TEST_EXAMPLES"),
             test_guest_path("hello"));
    assert_string_equal(output_of(line), "Hello, World! Today is Friday.\n");
}

static void the_database_answers(void **state) {
    char line[2048];

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "'%s/sqlite_host' '%s'", environment("PH_TEST_EXAMPLES"),
             test_guest_path("sqlite"));
    assert_string_equal(output_of(line),
                        "[]\n[]\nguest-error: no such column: nonsense\n"
                        "[{\"name\":\"Jupiter\",\"moons\":95},{\"name\":\"Mars\",\"moons\":2}]\n");
}

static void the_trace_has_what_was_asked_for(void **state) {
    char line[2048];

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "'%s/trace_host' '%s' 2>&1", environment("PH_TEST_EXAMPLES"),
             test_guest_path("sqlite"));
    const char *output = output_of(line);
    assert_non_null(strstr(output, "[]\n  4 spans, 0 rows traced\n"));
    assert_non_null(strstr(output, "[{\"n\":1},{\"n\":2},{\"n\":3}]\n  2 spans, 0 rows traced\n"));
    assert_non_null(strstr(output, "[{\"n\":1},{\"n\":2},{\"n\":3}]\n  2 spans, 3 rows traced\n"));
    assert_non_null(strstr(output, "\n0 records lost\n"));
    assert_non_null(strstr(output, "\ncall query "));
    assert_non_null(strstr(output, "  debug row "));
}

#define CALLERS_TRACE "00-0af7651916cd43dd8448eb211c80319c-"
#define CALLERS_SPAN CALLERS_TRACE "b7ad6b7169203331-01"

/* What otlp_host prints with these (variables) in its environment. */
static const char *output_of_otlp_host(const char *variables) {
    char line[2048];

    snprintf(line, sizeof line, "%s '%s/otlp_host' '%s' " CALLERS_SPAN " 2>&1", variables,
             environment("PH_TEST_EXAMPLES"), test_guest_path("hello"));
    return output_of(line);
}

static void the_trace_is_passed_on(void **state) {
    (void)state;
    test_needs_kvm();
    /* There is no collector here; test_command_otlp.c has one. */
    const char *output = output_of_otlp_host("OTEL_SDK_DISABLED=true");
    assert_memory_equal(output, "traceparent: " CALLERS_TRACE, 13 + strlen(CALLERS_TRACE));
    assert_null(strstr(output, CALLERS_SPAN)); /* whoever is asked is asked by the host function */
    assert_non_null(strstr(output, "-01\nHello, World! Today is Friday.\n"));
}

/* Nobody listens at port 1. */
static void a_collector_that_is_away_costs_a_line_and_no_result(void **state) {
    (void)state;
    test_needs_kvm();
    const char *output =
        output_of_otlp_host("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_TIMEOUT=100");
    assert_non_null(strstr(output, "Hello, World! Today is Friday.\n"));
    assert_non_null(strstr(output, "traces: http://127.0.0.1:1/v1/traces: "));
    assert_non_null(strstr(output, " spans lost\n"));
}

static void requests_find_nothing_of_each_other(void **state) {
    char line[2048];

    (void)state;
    test_needs_kvm();
    snprintf(line, sizeof line, "'%s/pool_host' '%s' 2>&1", environment("PH_TEST_EXAMPLES"),
             test_guest_path("sqlite"));
    assert_string_equal(output_of(line), "100 requests, 3 sandboxes\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guest_is_the_one_in_the_tree),
        cmocka_unit_test(the_host_is_the_one_in_the_tree),
        cmocka_unit_test(there_is_no_other_code),
        cmocka_unit_test(the_host_greets),
        cmocka_unit_test(the_database_answers),
        cmocka_unit_test(the_trace_has_what_was_asked_for),
        cmocka_unit_test(the_trace_is_passed_on),
        cmocka_unit_test(a_collector_that_is_away_costs_a_line_and_no_result),
        cmocka_unit_test(requests_find_nothing_of_each_other),
    };
    return cmocka_run_group_tests_name("readme", tests, NULL, NULL);
}
