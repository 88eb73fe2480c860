/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `--trace ctf:FOLDER` of `pinhole call` and `pinhole run`: babeltrace2 reads what comes of a real guest, and
 * a folder in which there is something is refused before the guest runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

#define GUEST(name) test_guest_path(name)

/* A folder of this test's own, which is not there yet, and the --trace for it. */
struct output {
    char folder[64];
    char option[80];
};

static struct output new_output(void) {
    static unsigned count;
    struct output output;

    snprintf(output.folder, sizeof output.folder, "/tmp/pinhole-ctf-command-%d-%u", (int)getpid(), count++);
    snprintf(output.option, sizeof output.option, "ctf:%s", output.folder);
    return output;
}

static const char *in_folder(const struct output *output, const char *name) {
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", output->folder, name);
    return path;
}

static void remove_output(const struct output *output) {
    unlink(in_folder(output, "metadata"));
    unlink(in_folder(output, "stream"));
    assert_int_equal(rmdir(output->folder), 0);
}

/* What babeltrace2 prints of the trace and says about it, to be freed. Removes the folder. */
static char *take(const struct output *output) {
    char command[160];
    char *text = NULL;
    size_t size = 0;

    snprintf(command, sizeof command, "babeltrace2 --clock-seconds %s 2>&1", output->folder);
    FILE *reader = popen(command, "r"); /* NOLINT(cert-env33-c): a path of the test's own */
    assert_non_null(reader);
    assert_true(getdelim(&text, &size, 0, reader) >= 0 || feof(reader));
    int status = pclose(reader);
    if (status != 0)
        fail_msg("babeltrace2 ended with %d: %s", status, text ? text : "");
    remove_output(output);
    return text;
}

static void assert_has(const char *text, const char *part) {
    if (!text || !strstr(text, part))
        fail_msg("'%s' is not in:\n%.8000s", part, text ? text : "");
}

/* The number behind `(key) = ` in the line of the span called (name). */
static unsigned long long number_of(const char *text, const char *name, const char *key) {
    char start[96], field[48];

    snprintf(start, sizeof start, "span: { name = \"%s\"", name);
    snprintf(field, sizeof field, ", %s = ", key);
    assert_has(text, start);
    const char *found = strstr(strstr(text, start), field);
    assert_non_null(found);
    return strtoull(found + strlen(field), NULL, 10);
}

static void a_query_can_be_read_by_babeltrace2(void **state) {
    const struct output output = new_output();

    (void)state;
    test_needs_kvm();
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", output.option, "--trace-level", "debug", GUEST("sqlite"),
                              "query", "\"SELECT 1 AS gr\u00fc\u00df\""));
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.err, "");
    outcome_free(&outcome);
    char *text = take(&output);
    assert_has(
        text,
        "name = \"arg1\", type = ( \"text\" : container = 4 ), value = { \"SELECT 1 AS gr\u00fc\u00df\" }");
    assert_int_equal(number_of(text, "call query", "parent"), 0);
    assert_true(number_of(text, "guest query", "parent") == number_of(text, "call query", "id"));
    assert_true(number_of(text, "prepare", "parent") == number_of(text, "guest query", "id"));
    unsigned long long start = number_of(text, "prepare", "start_ns");
    assert_true(start >= number_of(text, "guest query", "start_ns"));
    assert_true(start + number_of(text, "prepare", "duration_ns") <=
                number_of(text, "guest query", "start_ns") + number_of(text, "guest query", "duration_ns"));
    free(text);
}

static void a_program_can_be_read_by_babeltrace2(void **state) {
    const struct output output = new_output();

    (void)state;
    test_needs_kvm();
    struct outcome outcome =
        run_command(ARGUMENTS("run", "--trace", output.option, "--trace", "text", GUEST("sys_process")));
    assert_int_equal(outcome.status, 0);
    assert_has(outcome.err, "run sys_process");
    outcome_free(&outcome);
    char *text = take(&output);
    assert_has(text, "span: { name = \"run sys_process\"");
    free(text);
}

/* The guest prints nothing, and its file need not be there. */
static void a_folder_with_something_in_it_is_refused(void **state) {
    const struct output output = new_output();
    char message[160];

    (void)state;
    assert_int_equal(mkdir(output.folder, 0700), 0);
    int file = open(in_folder(&output, "metadata"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
    snprintf(message, sizeof message, "pinhole: %s: the folder for a trace has to be empty\n", output.folder);
    assert_fails(run_command(ARGUMENTS("call", "--trace", output.option, GUEST("types"), "echo_i32", "1")), 2,
                 message);
    assert_fails(run_command(ARGUMENTS("run", "--trace", output.option, GUEST("hello"))), 125, message);
    remove_output(&output);
}

static void a_folder_is_needed(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("call", "--trace", "ctf")), 2,
                 "pinhole: --trace ctf wants a folder: ctf:PATH;");
    assert_fails(
        run_command(ARGUMENTS("call", "--trace", "ctf:/nonexistent/a", GUEST("types"), "echo_i32", "1")), 2,
        "pinhole: /nonexistent/a: No such file or directory\n");
    assert_fails(
        run_command(ARGUMENTS("call", "--trace", "ctf:/tmp/a", "--trace", "ctf:/tmp/a", GUEST("types"))), 2,
        "pinhole: two traces cannot go to one ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_can_be_read_by_babeltrace2),
        cmocka_unit_test(a_program_can_be_read_by_babeltrace2),
        cmocka_unit_test(a_folder_with_something_in_it_is_refused),
        cmocka_unit_test(a_folder_is_needed),
    };

    return cmocka_run_group_tests_name("command_trace_ctf", tests, NULL, NULL);
}
