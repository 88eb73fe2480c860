/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The trace options of `pinhole call` and `pinhole run`: what goes where and in which order, what they
 * refuse, and that all of a trace is there however the guest ended.
 */
#include <fcntl.h>
#include <jansson.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

#define GUEST(name) test_guest_path(name)
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* A name for a file of this test's own, which is not there yet. */
static const char *new_path(void) {
    static char path[64];
    static unsigned count;

    snprintf(path, sizeof path, "/tmp/pinhole-trace-%d-%u", (int)getpid(), count++);
    unlink(path);
    return path;
}

/* All of the file at (path), which is removed. To be freed. */
static char *take_file(const char *path) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_true(getdelim(&text, &size, 0, file) >= 0 || feof(file));
    fclose(file);
    unlink(path);
    return text;
}

static void assert_has(const char *text, const char *part) {
    if (!text || !strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text ? text : "");
}

/* ---- usage --------------------------------------------------------------------------------------------- */

static void wrong_options_are_refused(void **state) {
    static const struct {
        const char *arguments[6];
        const char *message;
    } wrong[] = {
        {{"--trace", "xml"},
         "pinhole: --trace takes text, jsonl, otlp, otlp-json, html, perfetto, chrome, ctf, folded or "
         "speedscope, and :PATH (of otlp, :URL) behind it, not 'xml';"},
        {{"--trace", ""}, "pinhole: --trace takes text, jsonl,"},
        {{"--trace", "textual:x"}, "pinhole: --trace takes text, jsonl,"},
        {{"--trace", "text:"}, "pinhole: --trace text: wants a path behind the colon;"},
        {{"--trace"}, "pinhole: --trace needs a value;"},
        {{"--trace", "text", "--trace", "jsonl"},
         "pinhole: only one trace can go to standard error: give jsonl a path;"},
        {{"--trace", "text", "--trace", "text"},
         "pinhole: only one trace can go to standard error: give one of the two a path;"},
        {{"--trace", "text:a", "--trace", "jsonl:a"}, "pinhole: two traces cannot go to one file, a;"},
        {{"--trace", "text:/etc/passwd", "--trace", "jsonl:/etc//passwd"},
         "pinhole: two traces cannot go to one file, which /etc/passwd and /etc//passwd are;"},
        {{"--trace", "ctf:new", "--trace", "jsonl:new/metadata"},
         "pinhole: --trace jsonl:new/metadata would be in the folder of --trace ctf:new;"},
        {{"--trace", "text:-"},
         "pinhole: --trace text:- would make a file of that name: standard output is /dev/stdout;"},
        {{"--trace", "otlp:"}, "pinhole: --trace otlp: wants a URL behind the colon;"},
        {{"--trace", "otlp", "--trace", "otlp"}, "pinhole: --trace otlp is there twice;"},
        {{"--trace", "html"}, "pinhole: --trace html wants a file: html:PATH;"},
        {{"--trace", "otlp-json"}, "pinhole: --trace otlp-json wants a file: otlp-json:PATH;"},
        {{"--flush-timeout", "1s"}, "pinhole: --flush-timeout does nothing without --trace;"},
        {{"--trace=otlp", "--flush-timeout", "x"}, "pinhole: --flush-timeout "},
        {{"--trace=text", "--flush-timeout", "1s"},
         "pinhole: --flush-timeout does nothing without --trace otlp;"},
        {{"--trace-level", "info"}, "pinhole: --trace-level does nothing without --trace;"},
        {{"--trace-filter", "info"}, "pinhole: --trace-filter does nothing without --trace;"},
        {{"--trace-policy", "drop"}, "pinhole: --trace-policy does nothing without --trace;"},
        {{"--trace-ring", "64K"}, "pinhole: --trace-ring does nothing without --trace;"},
        {{"--trace=text", "--trace-level", "loud"},
         "pinhole: --trace-level takes off, error, warn, info, debug or trace, not 'loud';"},
        {{"--trace=text", "--trace-policy", "lossy"},
         "pinhole: --trace-policy takes complete, drop or flight, not 'lossy';"},
        {{"--trace=text", "--trace-filter", "a=loud"}, "pinhole: --trace-filter: "},
        {{"--trace=text", "--trace-filter", ""}, "pinhole: --trace-filter: "},
        {{"--trace=text", "--trace-filter", "[a=off"},
         "pinhole: --trace-filter: the filter's element '[a=off' has a '[' without its ']'"},
        {{"--trace=text", "--trace-ring", "8K"},
         "pinhole: --trace-ring wants a power of two from 16K to 64M, not '8K';"},
        {{"--trace=text", "--trace-ring", "128M"}, "pinhole: --trace-ring wants a power of two"},
        {{"--trace=text", "--trace-ring", "100K"}, "pinhole: --trace-ring wants a power of two"},
        {{"--trace=text", "--trace-ring", "x"},
         "pinhole: --trace-ring wants a power of two from 16K to 64M, not 'x';"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *words[8] = {"call"};
        for (size_t j = 0; j < COUNT(wrong[i].arguments) && wrong[i].arguments[j]; j++)
            words[j + 1] = wrong[i].arguments[j];
        assert_fails(run_command(words), 2, wrong[i].message);
        words[0] = "run";
        assert_fails(run_command(words), 125, wrong[i].message);
    }
}

static void a_trace_that_cannot_be_opened_is_like_a_missing_file(void **state) {
    (void)state;
    assert_fails(
        run_command(ARGUMENTS("call", "--trace", "text:/nonexistent/trace", GUEST("types"), "echo_i32", "1")),
        2, "pinhole: /nonexistent/trace: No such file or directory\n");
    assert_fails(run_command(ARGUMENTS("run", "--trace", "text:/nonexistent/trace", GUEST("hello"))), 125,
                 "pinhole: /nonexistent/trace: No such file or directory\n");
}

/* Nothing is written over before it is clear that there will be a trace. */
static void a_wrong_command_line_leaves_files_alone(void **state) {
    const char *path = new_path();
    char output[80];

    (void)state;
    snprintf(output, sizeof output, "text:%s", path);
    assert_fails(run_command(ARGUMENTS("call", "--trace", output, "--trace-filter", "x=y", GUEST("types"),
                                       "echo_i32", "1")),
                 2, "pinhole: --trace-filter: ");
    assert_fails(run_command(ARGUMENTS("call", "--trace", output, GUEST("types"), "nothing")), 2,
                 "pinhole: ");
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Fails unless `(command) --trace text:(path) ...` is refused with (status) and the file at (path) is still
 * as it was. */
static void assert_spared(const char *const *arguments, int status, const char *path, const char *content) {
    char message[200];
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    snprintf(message, sizeof message, "pinhole: --trace text:%s would overwrite ", path);
    assert_fails(run_command(arguments), status, message);
    char *now = take_file(path);
    assert_string_equal(now, content);
    free(now);
}

static void a_trace_overwrites_nothing_that_the_command_reads(void **state) {
    const char *path = new_path();
    char output[80], argument[80], host[96];

    (void)state;
    snprintf(output, sizeof output, "text:%s", path);
    snprintf(argument, sizeof argument, "@%s", path);
    snprintf(host, sizeof host, "weekday=@%s", path);
    assert_spared(ARGUMENTS("call", "--trace", output, GUEST("types"), "echo_str", argument), 2, path,
                  "text");
    assert_spared(ARGUMENTS("call", "--trace", output, "--host", host, GUEST("hello"), "greet", "\"W\""), 2,
                  path, "Friday");

    /* The guest itself, by another name of it. */
    assert_int_equal(symlink(GUEST("hello"), path), 0);
    for (int i = 0; i < 2; i++) {
        const char *const *arguments = i ? ARGUMENTS("run", "--trace", output, GUEST("hello"))
                                         : ARGUMENTS("call", "--trace", output, "--host", "weekday=\"F\"",
                                                     GUEST("hello"), "greet", "\"W\"");
        struct stat before, after;
        assert_int_equal(stat(path, &before), 0);
        assert_fails(run_command(arguments), i ? 125 : 2, "pinhole: --trace text:/tmp/");
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(before.st_size, after.st_size);
    }
    unlink(path);
}

static void a_trace_overwrites_no_standard_stream_that_is_a_file(void **state) {
    const char *path = new_path();
    char output[80], message[200];

    (void)state;
    snprintf(output, sizeof output, "jsonl:%s", path);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, "input", 5), 5);
    struct running running =
        command_start(ARGUMENTS("run", "--stdin", "--trace", output, GUEST("hello")), file);
    snprintf(message, sizeof message,
             "pinhole: --trace jsonl:%s would overwrite the file that is standard input;", path);
    assert_fails(command_wait(&running), 125, message);
    close(file);
    char *now = take_file(path);
    assert_string_equal(now, "input");
    free(now);
}

/* The second path is a link to where the first one has just made a file. */
static void two_traces_do_not_share_a_file(void **state) {
    char path[64], link[64], text[80], lines[80], message[300];

    (void)state;
    test_needs_kvm();
    snprintf(path, sizeof path, "%s", new_path());
    snprintf(link, sizeof link, "%s", new_path());
    assert_int_equal(symlink(path, link), 0);
    snprintf(text, sizeof text, "text:%s", path);
    snprintf(lines, sizeof lines, "jsonl:%s", link);
    snprintf(message, sizeof message, "pinhole: two traces cannot go to one file, which %s and %s are;", path,
             link);
    assert_fails(
        run_command(ARGUMENTS("call", "--trace", text, "--trace", lines, GUEST("types"), "echo_i32", "7")), 2,
        message);
    unlink(link);
    unlink(path);
    assert_prints(run_command(ARGUMENTS("call", "--trace", "text:/dev/null", "--trace", "jsonl:/dev/null",
                                        GUEST("types"), "echo_i32", "7")),
                  0, "7\n");
}

/* ---- where it goes ------------------------------------------------------------------------------------- */

static void a_trace_goes_to_stderr_behind_all_else(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", "text", GUEST("chatty"), "speak_and_fail"));
    const char *first = "pinhole: speak_and_fail: guest-error: code 0x12: gone wrong\nbefore\n";
    assert_memory_equal(outcome.err, first, strlen(first));
    assert_has(outcome.err + strlen(first), "\ncall speak_and_fail ");
    assert_has(outcome.err, "└─ guest speak_and_fail ");
    assert_int_equal(outcome.status, 1);
    outcome_free(&outcome);

    outcome = run_command(ARGUMENTS("call", "--trace", "text", GUEST("types"), "echo_i32", "7"));
    assert_string_equal(outcome.out, "7\n");
    assert_has(outcome.err, "\ncall echo_i32 ");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void a_trace_goes_to_files(void **state) {
    char text[80], lines[80];
    char *shown;

    (void)state;
    test_needs_kvm();
    snprintf(text, sizeof text, "text:%s", new_path());
    snprintf(lines, sizeof lines, "jsonl:%s", new_path());
    assert_prints(
        run_command(ARGUMENTS("call", "--trace", text, "--trace", lines, GUEST("types"), "echo_i32", "7")), 0,
        "7\n");
    shown = take_file(strchr(text, '/'));
    assert_has(shown, "\ncall echo_i32 ");
    free(shown);
    shown = take_file(strchr(lines, '/'));
    assert_has(shown, "\"name\":\"call echo_i32\"");
    free(shown);
}

/* The objects of a trace in lines, as an array. */
static json_t *objects_of(const char *lines) {
    json_t *objects = json_array();

    while (*lines) {
        size_t length = strcspn(lines, "\n");
        json_error_t error;
        json_t *object = json_loadb(lines, length, JSON_REJECT_DUPLICATES, &error);
        if (!object)
            fail_msg("%s: %.*s", error.text, (int)length, lines);
        json_array_append_new(objects, object);
        lines += length + (lines[length] ? 1 : 0);
    }
    return objects;
}

/* The object that is called (name); fails without one. */
static const json_t *object_named(const json_t *objects, const char *name) {
    size_t i;
    const json_t *object;

    json_array_foreach(objects, i, object) {
        const char *text = json_string_value(json_object_get(object, "name"));
        if (text && strcmp(text, name) == 0)
            return object;
    }
    fail_msg("nothing is called %s", name);
    return NULL;
}

static json_int_t number_of(const json_t *object, const char *key) {
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static void lines_are_objects_whose_parents_enclose_them(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", "--trace", "jsonl", "--host", "weekday=\"Friday\"",
                                                   GUEST("hello"), "greet", "\"W\""));
    assert_int_equal(outcome.status, 0);
    json_t *objects = objects_of(outcome.err);
    const json_t *call = object_named(objects, "call greet");
    const json_t *guest = object_named(objects, "guest greet");
    const json_t *host = object_named(objects, "host weekday");
    object_named(objects, "create");
    object_named(objects, "load");
    object_named(objects, "start");
    object_named(objects, "destroy");
    assert_int_equal(number_of(guest, "parent"), number_of(call, "id"));
    assert_true(number_of(guest, "start_ns") >= number_of(call, "start_ns"));
    assert_true(number_of(guest, "end_ns") <= number_of(call, "end_ns"));
    assert_true(number_of(host, "start_ns") >= number_of(guest, "start_ns"));
    assert_true(number_of(host, "end_ns") <= number_of(guest, "end_ns"));
    json_decref(objects);
    outcome_free(&outcome);
}

static void a_trace_that_cannot_be_written_is_a_warning_and_the_result_stands(void **state) {
    (void)state;
    test_needs_kvm();
    for (int i = 0; i < 2; i++) {
        struct outcome outcome = run_command(ARGUMENTS(
            "call", "--trace", i ? "jsonl:/dev/full" : "text:/dev/full", GUEST("types"), "echo_i32", "7"));
        assert_string_equal(
            outcome.err,
            "pinhole: warning: writing the trace to /dev/full failed: No space left on device\n");
        assert_string_equal(outcome.out, "7\n");
        assert_int_equal(outcome.status, 0);
        outcome_free(&outcome);
    }
}

/* A pipe without a reader, at (*path). */
static int open_broken_pipe(char *path, size_t size) {
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    snprintf(path, size, "jsonl:/dev/fd/%d", ends[1]);
    return ends[1];
}

static void a_pipe_that_nobody_reads_is_a_warning_too(void **state) {
    char output[64];

    (void)state;
    test_needs_kvm();
    /* Opened by its path it would wait for a reader; by /dev/fd it is the same pipe, broken. */
    int pipe_end = open_broken_pipe(output, sizeof output);
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", output, GUEST("types"), "echo_i32", "7"));
    close(pipe_end);
    assert_string_equal(outcome.out, "7\n");
    assert_non_null(strstr(outcome.err, "pinhole: warning: writing the trace to /dev/fd/"));
    assert_non_null(strstr(outcome.err, " failed: Broken pipe\n"));
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

/* ---- what is in it ------------------------------------------------------------------------------------- */

static void levels_and_filters_choose(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(
        ARGUMENTS("call", "--trace", "text", "--trace-level", "off", GUEST("types"), "echo_i32", "7"));
    assert_string_equal(outcome.err, "");
    outcome_free(&outcome);
    outcome = run_command(ARGUMENTS("call", "--trace", "text", "--trace-level", "off", "--trace-filter",
                                    "call*=info", GUEST("types"), "echo_i32", "7"));
    assert_memory_equal(outcome.err, "call echo_i32 ", 14);
    assert_null(strchr(strchr(outcome.err, '\n'), 'c'));
    outcome_free(&outcome);
    outcome = run_command(
        ARGUMENTS("call", "--trace", "text", "--trace-level", "debug", GUEST("types"), "echo_i32", "7"));
    assert_has(outcome.err, "arg1=7");
    outcome_free(&outcome);
}

static void a_guest_that_faults_shows_all_up_to_there(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", "--trace", "text", GUEST("faults"), "null"));
    assert_memory_equal(outcome.err, "pinhole: null: page-fault: ", 27);
    assert_has(outcome.err, "\ncall null ");
    assert_has(outcome.err, "[page-fault: ");
    assert_has(outcome.err, "└─ guest null ");
    assert_has(outcome.err, "[unfinished: page-fault]\n");
    assert_int_equal(outcome.status, 1);
    outcome_free(&outcome);
}

static void a_guest_that_is_stopped_is_traced_to_its_end(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--trace", "text", "--timeout", "300ms", GUEST("faults"), "spin"));
    assert_memory_equal(outcome.err, "pinhole: spin: time-out: ", 25);
    assert_has(outcome.err, "└─ guest spin ");
    assert_has(outcome.err, "[unfinished: time-out]\n");
    assert_int_equal(outcome.status, 1);
    outcome_free(&outcome);

    struct running running = command_start(ARGUMENTS("call", "--trace", "text", GUEST("faults"), "spin"), 0);
    usleep(500000);
    assert_int_equal(kill(running.process, SIGINT), 0);
    outcome = command_wait(&running);
    assert_memory_equal(outcome.err, "pinhole: spin: interrupted: ", 28);
    assert_has(outcome.err, "[unfinished: interrupted]\n");
    assert_int_equal(outcome.status, 130);
    outcome_free(&outcome);
}

static void an_ordinary_program_shows_its_system_calls(void **state) {
    const char *path = busybox_path();

    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("run", "--trace", "text", path, "echo", "hi"));
    assert_string_equal(outcome.out, "hi\n");
    assert_has(outcome.err, "\nrun busybox ");
    assert_has(outcome.err, "syscall write ");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
    outcome = run_command(
        ARGUMENTS("run", "--trace", "text", "--trace-filter", "syscall *=off", path, "echo", "hi"));
    assert_has(outcome.err, "guest busybox ");
    assert_null(strstr(outcome.err, "syscall "));
    outcome_free(&outcome);
}

static void statistics_count_the_trace(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(ARGUMENTS("call", "--stats", "--trace", "text:/dev/null", "--repeat",
                                                   "5", GUEST("types"), "echo_i32", "7"));
    json_t *stats = json_loads(outcome.err, 0, NULL);
    assert_non_null(stats);
    assert_int_equal(number_of(stats, "calls"), 5);
    assert_true(number_of(stats, "trace_spans") >= 10);
    assert_int_equal(number_of(stats, "trace_dropped_ring"), 0);
    assert_int_equal(number_of(stats, "trace_exits"), 0);
    json_decref(stats);
    outcome_free(&outcome);
}

/* ---- golden files -------------------------------------------------------------------------------------- */

/* (text) with each time replaced by <time>, and the blanks before it by two. To be freed. */
static char *mask(const char *text) {
    regex_t pattern;
    regmatch_t match;
    char *masked = NULL;
    size_t size;
    FILE *file = open_memstream(&masked, &size);

    assert_non_null(file);
    assert_int_equal(regcomp(&pattern, " +[+]?[0-9]+([.][0-9]{3})? (ns|us|ms|s)", REG_EXTENDED), 0);
    while (regexec(&pattern, text, 1, &match, 0) == 0) {
        fprintf(file, "%.*s  <time>", (int)match.rm_so, text);
        text += match.rm_eo;
    }
    fputs(text, file);
    fclose(file);
    regfree(&pattern);
    /* What the trace says of the machine's clock is no part of the picture. */
    char *clock = strstr(masked, "·  warn  <time>  the time-stamp counter");
    if (clock) {
        char *next = strchr(clock, '\n') + 1;
        memmove(clock, next, strlen(next) + 1);
    }
    return masked;
}

/* Compares the trace of a call, times aside, with tests/system/golden/NAME. With PH_TEST_GOLDEN set, writes
 * that file instead. */
static void assert_golden(const char *name, const char *const *arguments) {
    char path[512];
    const char *source = getenv("PH_TEST_SOURCE");

    assert_non_null(source);
    snprintf(path, sizeof path, "%s/tests/system/golden/%s", source, name);
    struct outcome outcome = run_command(arguments);
    assert_int_equal(outcome.status, 0);
    char *masked = mask(outcome.err);
    FILE *file = fopen(path, getenv("PH_TEST_GOLDEN") ? "w" : "r");
    assert_non_null(file);
    if (getenv("PH_TEST_GOLDEN")) {
        fputs(masked, file);
    } else {
        char expected[16384] = "";
        assert_true(fread(expected, 1, sizeof expected - 1, file) > 0);
        assert_string_equal(masked, expected);
    }
    fclose(file);
    free(masked);
    outcome_free(&outcome);
}

static void a_greeting_looks_as_it_should(void **state) {
    (void)state;
    test_needs_kvm();
    assert_golden("hello.txt", ARGUMENTS("call", "--trace", "text", "--trace-level", "debug", "--host",
                                         "weekday=\"Friday\"", GUEST("hello-musl"), "greet", "\"World\""));
}

static void a_query_looks_as_it_should(void **state) {
    (void)state;
    test_needs_kvm();
    assert_golden("sqlite.txt",
                  ARGUMENTS("call", "--trace", "text", "--trace-level", "off", "--trace-filter",
                            "call *=debug,guest query=info,sqlite.c=debug", GUEST("sqlite"), "query",
                            "\"CREATE TABLE t (n); INSERT INTO t VALUES (1), (2); SELECT n FROM t\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_trace_that_cannot_be_opened_is_like_a_missing_file),
        cmocka_unit_test(a_wrong_command_line_leaves_files_alone),
        cmocka_unit_test(a_trace_overwrites_nothing_that_the_command_reads),
        cmocka_unit_test(a_trace_overwrites_no_standard_stream_that_is_a_file),
        cmocka_unit_test(two_traces_do_not_share_a_file),
        cmocka_unit_test(a_trace_goes_to_stderr_behind_all_else),
        cmocka_unit_test(a_trace_goes_to_files),
        cmocka_unit_test(lines_are_objects_whose_parents_enclose_them),
        cmocka_unit_test(a_trace_that_cannot_be_written_is_a_warning_and_the_result_stands),
        cmocka_unit_test(a_pipe_that_nobody_reads_is_a_warning_too),
        cmocka_unit_test(levels_and_filters_choose),
        cmocka_unit_test(a_guest_that_faults_shows_all_up_to_there),
        cmocka_unit_test(a_guest_that_is_stopped_is_traced_to_its_end),
        cmocka_unit_test(an_ordinary_program_shows_its_system_calls),
        cmocka_unit_test(statistics_count_the_trace),
        cmocka_unit_test(a_greeting_looks_as_it_should),
        cmocka_unit_test(a_query_looks_as_it_should),
    };

    setenv("LC_ALL", "C.UTF-8", 1);
    return cmocka_run_group_tests_name("command_trace", tests, NULL, NULL);
}
