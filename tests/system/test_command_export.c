/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `--trace` in the formats of other people's tools: what a query leaves in each file, that it is one trace in
 * all of them, and what is there when the command was killed.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
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

/* `FORMAT:PATH` for a file of this test's own. */
struct output {
    char word[96];
};

static struct output output_of(const char *format) {
    struct output output;

    snprintf(output.word, sizeof output.word, "%s:/tmp/pinhole-export-%d.%s", format, (int)getpid(), format);
    return output;
}

static const char *path_of(const struct output *output) {
    return strchr(output->word, ':') + 1;
}

/* All of its file, which is removed. To be freed. */
static char *take(const struct output *output) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path_of(output), "re");

    assert_non_null(file);
    assert_true(getdelim(&text, &size, 0, file) >= 0 || feof(file));
    fclose(file);
    unlink(path_of(output));
    return text;
}

static json_t *take_json(const struct output *output) {
    json_error_t error;
    json_t *json = json_load_file(path_of(output), JSON_REJECT_DUPLICATES, &error);

    if (!json)
        fail_msg("%s:%d: %s", path_of(output), error.line, error.text);
    unlink(path_of(output));
    return json;
}

static void a_path_is_needed(void **state) {
    static const char *const formats[] = {"chrome", "folded", "speedscope", "html"};
    char message[120], empty[24];

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        snprintf(message, sizeof message, "pinhole: --trace %s wants a file: %s:PATH;", formats[i],
                 formats[i]);
        assert_fails(run_command(ARGUMENTS("call", "--trace", formats[i], GUEST("types"), "echo_i32", "7")),
                     2, message);
        assert_fails(run_command(ARGUMENTS("run", "--trace", formats[i], GUEST("hello"))), 125, message);
        snprintf(empty, sizeof empty, "%s:", formats[i]);
        assert_fails(run_command(ARGUMENTS("call", "--trace", empty, GUEST("types"), "echo_i32", "7")), 2,
                     "pinhole: --trace ");
    }
}

/* The duration of all calls and of the host's work beside them, in nanoseconds, by Chrome's trace: a root has
 * no parent. */
static int64_t roots_of(const json_t *array) {
    int64_t sum = 0;
    size_t i;
    const json_t *object;

    json_array_foreach(array, i, object) {
        const json_t *arguments = json_object_get(object, "args");
        if (strcmp(json_string_value(json_object_get(object, "ph")), "X") == 0 &&
            !json_object_get(arguments, "pinhole.parent"))
            sum += (int64_t)(json_real_value(json_object_get(object, "dur")) * 1000 + 0.5);
    }
    return sum;
}

/* The sum of the numbers behind the lines of (text). */
static int64_t sum_of(const char *text) {
    int64_t sum = 0;

    while (*text) {
        const char *end = strchr(text, '\n');
        assert_non_null(end);
        assert_memory_equal(text, "sandbox 1;", 10);
        const char *blank = memrchr(text, ' ', (size_t)(end - text));
        assert_non_null(blank);
        sum += strtoll(blank, NULL, 10);
        text = end + 1;
    }
    return sum;
}

static void a_query_is_the_same_in_every_format(void **state) {
    struct output chrome = output_of("chrome"), folded = output_of("folded"),
                  speedscope = output_of("speedscope");

    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("call", "--trace", chrome.word, "--trace", folded.word, "--trace",
                                        speedscope.word, GUEST("sqlite"), "query", "\"SELECT 1 AS n\"")),
                  0, "\"[{\\\"n\\\":1}]\"\n");
    json_t *array = take_json(&chrome);
    json_t *file = take_json(&speedscope);
    char *lines = take(&folded);
    const json_t *profiles = json_object_get(file, "profiles");
    int64_t total = roots_of(array);

    assert_true(total > 0);
    assert_int_equal(json_array_size(profiles), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(profiles, 0), "endValue")), total);
    assert_non_null(strstr(lines, "sandbox 1;call query;guest query;"));
    assert_non_null(strstr(lines, ";syscall "));
    assert_int_equal(sum_of(lines), total);
    free(lines);
    json_decref(array);
    json_decref(file);
}

/* All that write to one file; the first of them meanwhile, the others at their end, or in large pieces. */
static const char *const streams[] = {"chrome", "perfetto",   "jsonl", "text",
                                      "folded", "speedscope", "html",  "otlp-json"};
#define WRITTEN_MEANWHILE 4u

static void a_full_disk_is_said(void **state) {
    char option[64];

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(streams); i++) {
        snprintf(option, sizeof option, "%s:/dev/full", streams[i]);
        struct outcome outcome =
            run_command(ARGUMENTS("call", "--trace", option, GUEST("types"), "echo_i32", "7"));
        assert_string_equal(outcome.out, "7\n");
        assert_string_equal(
            outcome.err,
            "pinhole: warning: writing the trace to /dev/full failed: No space left on device\n");
        assert_int_equal(outcome.status, 0);
        outcome_free(&outcome);
    }
}

/* Where the signal for that is ignored; else that ends the command, as any other. */
static void a_closed_pipe_is_said(void **state) {
    char wanted[160];

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < WRITTEN_MEANWHILE; i++) {
        struct output output = output_of(streams[i]);
        unlink(path_of(&output));
        assert_int_equal(mkfifo(path_of(&output), 0600), 0);
        int reader = open(path_of(&output), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(reader >= 0);
        struct running running = command_start(
            ARGUMENTS("call", "--trace", output.word, "--repeat", "5000", GUEST("types"), "echo_i32", "7"),
            0);
        struct pollfd readable = {.fd = reader, .events = POLLIN};
        assert_int_equal(poll(&readable, 1, 60000), 1);
        close(reader);
        struct outcome outcome = command_wait(&running);
        unlink(path_of(&output));
        snprintf(wanted, sizeof wanted, "pinhole: warning: writing the trace to %s failed: Broken pipe\n",
                 path_of(&output));
        assert_string_equal(outcome.err, wanted);
        assert_string_equal(outcome.out, "7\n");
        assert_int_equal(outcome.status, 0);
        outcome_free(&outcome);
    }
}

/* Runs the command with traces to the (count) (outputs) and kills it when the first of them has (size) bytes.
 */
static void kill_amid(const struct output *outputs, size_t count, off_t size) {
    const char *arguments[24] = {"call"};
    size_t used = 1;
    struct stat information = {0};

    for (size_t i = 0; i < count; i++) {
        unlink(path_of(&outputs[i]));
        arguments[used++] = "--trace";
        arguments[used++] = outputs[i].word;
    }
    const char *const rest[] = {"--repeat", "100000000", GUEST("types"), "echo_i32", "7"};
    memcpy(arguments + used, rest, sizeof rest);
    struct running running = command_start(arguments, 0);
    for (int i = 0; i < 3000 && information.st_size < size; i++) {
        usleep(10000);
        if (stat(path_of(&outputs[0]), &information) != 0)
            information.st_size = 0;
    }
    assert_int_equal(kill(running.process, SIGKILL), 0);
    struct outcome outcome = command_wait(&running);
    assert_int_equal(outcome.status, 128 + SIGKILL);
    outcome_free(&outcome);
}

/* Whole up to its last comma. */
static void check_killed_chrome(const struct output *output) {
    json_error_t error;
    char *text = take(output);
    size_t end = 0;

    for (const char *at = text; (at = strstr(at, ",\n")); at++)
        end = (size_t)(at - text);
    assert_true(end > 0);
    text[end] = ']';
    text[end + 1] = 0;
    json_t *array = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!array)
        fail_msg("%d: %s", error.line, error.text);
    assert_true(json_array_size(array) > 100);
    json_decref(array);
    free(text);
}

/* Lines that are whole, but for the last; each but a few has its parent's behind it. */
static void check_killed_jsonl(const struct output *output) {
    char *text = take(output);
    size_t lines = 0;
    json_int_t parent = 0;

    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        const char *name = json_string_value(json_object_get(object, "name"));
        if (strcmp(name, "guest echo_i32") == 0) {
            parent = json_integer_value(json_object_get(object, "parent"));
        } else if (strcmp(name, "call echo_i32") == 0) {
            assert_int_equal(json_integer_value(json_object_get(object, "id")), parent);
            lines++;
        }
        json_decref(object);
    }
    assert_true(lines > 100);
    free(text);
}

/* Lines that are whole, but for the last, each of hundreds of spans. */
static void check_killed_otlp_json(const struct output *output) {
    char *text = take(output);
    size_t lines = 0;

    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        *end = 0;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        json_decref(object);
    }
    assert_true(lines > 0);
    free(text);
}

/* Trees that are complete, but for the last line. */
static void check_killed_text(const struct output *output) {
    char *text = take(output);
    size_t calls = 0;

    for (const char *at = text; (at = strstr(at, "\ncall echo_i32 ")); calls++) {
        const char *inner = strchr(at + 1, '\n');
        if (!inner || !strchr(inner + 1, '\n'))
            break;
        assert_memory_equal(inner, "\n└─ guest echo_i32 ", strlen("\n└─ guest echo_i32 "));
        at = inner;
    }
    assert_true(calls > 100);
    free(text);
}

static void check_killed_profile(const struct output *output) {
    struct stat information;

    assert_int_equal(stat(path_of(output), &information), 0);
    assert_int_equal(information.st_size, 0);
    unlink(path_of(output));
}

/* perfetto and ctf have readers of their own: test_command_perfetto.c, unit/test_ctf_ends.c. */
static void what_a_kill_leaves_behind_is_as_documented(void **state) {
    static const struct {
        const char *format;
        void (*check)(const struct output *output);
    } formats[] = {
        {"chrome", check_killed_chrome},      {"jsonl", check_killed_jsonl},
        {"text", check_killed_text},          {"folded", check_killed_profile},
        {"speedscope", check_killed_profile}, {"otlp-json", check_killed_otlp_json},
    };
    struct output outputs[COUNT(formats)];

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < COUNT(formats); i++)
        outputs[i] = output_of(formats[i].format);
    /* Some thousand spans: the JSON of OpenTelemetry has 512 in a line. */
    kill_amid(outputs, COUNT(outputs), 500000);
    for (size_t i = 0; i < COUNT(formats); i++)
        formats[i].check(&outputs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_needed),
        cmocka_unit_test(a_query_is_the_same_in_every_format),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(a_closed_pipe_is_said),
        cmocka_unit_test(what_a_kill_leaves_behind_is_as_documented),
    };
    return cmocka_run_group_tests_name("command_export", tests, NULL, NULL);
}
