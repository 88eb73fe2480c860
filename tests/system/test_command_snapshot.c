/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Snapshots by the command: `call --restore`, `call --snapshot`, and `snapshot save`, `info` and `verify`, on
 * real guests and files, with what each refuses.
 */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

#define GUEST(name) test_guest_path(name)

/* A folder of this test alone, and paths in it. */
static char folder[] = "/tmp/pinhole-snapshot-XXXXXX";
static char snap[64], other[64];

static int folder_make(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(snap, sizeof snap, "%s/snap", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int folder_remove(void **state) {
    (void)state;
    unlink(snap);
    unlink(other);
    return rmdir(folder);
}

/* Saves the guest called snapshot after it has counted once. */
static void save_counted(void) {
    assert_prints(
        run_command(ARGUMENTS("snapshot", "save", GUEST("snapshot"), "-o", snap, "--call", "count")), 0, "");
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* "pinhole: SUBJECT: REST" in static storage. */
static const char *line_about(const char *about, const char *rest) {
    static char line[1024];

    snprintf(line, sizeof line, "pinhole: %s: %s", about, rest);
    return line;
}

/* ---- call --restore ------------------------------------------------------------------------------------ */

static void restore_forgets_what_each_repeat_has_done(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "5", GUEST("snapshot"), "count")), 0, "5\n");
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "5", "--restore", GUEST("snapshot"), "count")), 0,
                  "1\n");
    /* What the guest has for such an event runs each time, and is put back too. */
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "3", "--restore", GUEST("snapshot"), "hooks")), 0,
                  "12\n");
    assert_prints(run_command(ARGUMENTS("call", "--repeat", "1", "--restore", GUEST("snapshot"), "hooks")), 0,
                  "0\n");
}

static void pages_that_are_copied_back_are_counted(void **state) {
    (void)state;
    test_needs_kvm();
    for (int restore = 0; restore < 2; restore++) {
        struct outcome outcome = run_command(ARGUMENTS(
            "call", "--stats", "--repeat=3", restore ? "--restore" : "--raw", GUEST("snapshot"), "count"));
        json_t *stats = json_loads(outcome.err, 0, NULL);
        assert_non_null(stats);
        assert_int_equal(json_integer_value(json_object_get(stats, "calls")), 3);
        assert_int_equal(json_integer_value(json_object_get(stats, "pages_copied")) > 0, restore);
        json_decref(stats);
        outcome_free(&outcome);
    }
}

static void restore_wants_something_to_restore_for(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("call", "--restore", GUEST("snapshot"), "count")), 2,
                 "pinhole: --restore does nothing without --repeat;");
}

static void a_failed_call_ends_the_repeats(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", "--repeat", "3", "--restore", GUEST("snapshot"), "undefined")),
                 1, "pinhole: undefined: undefined-instruction: ");
}

/* ---- save, and call --snapshot ------------------------------------------------------------------------- */

static void a_call_begins_where_the_snapshot_was_saved(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("snapshot", "save", GUEST("snapshot"), "-o", snap)), 0, "");
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "count")), 0, "1\n");
    save_counted();
    /* Twice, since no call changes the file. */
    for (int i = 0; i < 2; i++)
        assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "count")), 0,
                      "2\n");
    assert_prints(
        run_command(ARGUMENTS("call", "--snapshot", snap, "--repeat", "3", GUEST("snapshot"), "count")), 0,
        "4\n");
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, "--repeat", "3", "--restore",
                                        GUEST("snapshot"), "count")),
                  0, "2\n");
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "hooks")), 0, "12\n");
}

static void options_of_save_stand_on_both_sides_of_the_file(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("snapshot", "save", "-o", snap, "--memory=32M", GUEST("types"),
                                        "--timeout", "1m", "--call", "echo_i32", "-7")),
                  0, "");
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("types"), "echo_i32", "-9")), 0,
                  "-9\n");
}

static void a_database_is_warm(void **state) {
    static const char make[] = "\"create table t (a); insert into t values (1), (2)\"";
    static const char add[] = "\"insert into t values (3); select count(*) as n from t\"";

    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("snapshot", "save", GUEST("sqlite"), "-o", snap, "--call", "query", make)), 0,
        "");
    for (int i = 0; i < 2; i++)
        assert_prints(
            run_command(ARGUMENTS("call", "--raw", "--snapshot", snap, GUEST("sqlite"), "query", add)), 0,
            "[{\"n\":3}]");
}

static void host_functions_are_answered_anew(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("snapshot", "save", GUEST("hello"), "-o", snap)), 2,
                 line_about(GUEST("hello"), "unregistered: the guest calls the host function 'weekday'; "));
    assert_prints(run_command(ARGUMENTS("snapshot", "save", "--host", "weekday=\"Friday\"", GUEST("hello"),
                                        "-o", snap, "--call", "greet", "\"A\"")),
                  0, "");
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("hello"), "greet", "\"B\"")), 2,
                 "pinhole: greet: unregistered: the guest calls the host function 'weekday'; ");
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, "--host", "weekday=\"Monday\"",
                                        GUEST("hello"), "greet", "\"B\"")),
                  0, "\"Hello, B! Today is Monday.\"\n");
}

static void a_failed_call_keeps_its_line_and_status(void **state) {
    (void)state;
    test_needs_kvm();
    save_counted();
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "undefined")), 1,
                 "pinhole: undefined: undefined-instruction: ");
    assert_fails(
        run_command(ARGUMENTS("call", "--snapshot", snap, "--timeout", "300ms", GUEST("snapshot"), "spin")),
        1, "pinhole: spin: time-out: the time-out ended the guest in spin\n");
}

static void a_warm_up_that_fails_leaves_what_was_there(void **state) {
    static const char *const ends[] = {"undefined", "give_up", "leave"};

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        assert_fails(
            run_command(ARGUMENTS("snapshot", "save", GUEST("snapshot"), "-o", other, "--call", ends[i])), 1,
            line_about(ends[i], ""));
        assert_false(exists(other));
    }
    save_counted();
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "--timeout", "300ms", GUEST("snapshot"), "-o",
                                       snap, "--call", "spin")),
                 1, "pinhole: spin: time-out: ");
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "count")), 0, "2\n");
}

static void a_signal_ends_the_warm_up(void **state) {
    (void)state;
    test_needs_kvm();
    struct running running =
        command_start(ARGUMENTS("snapshot", "save", GUEST("snapshot"), "-o", other, "--call", "spin"), 0);
    usleep(500000);
    assert_int_equal(kill(running.process, SIGTERM), 0);
    assert_fails(command_wait(&running), 128 + SIGTERM, "pinhole: spin: interrupted: ");
    assert_false(exists(other));
}

static void what_the_warm_up_prints_goes_to_stderr(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome =
        run_command(ARGUMENTS("snapshot", "save", GUEST("chatty"), "-o", snap, "--call", "speak"));
    assert_string_equal(outcome.out, "");
    assert_string_equal(outcome.err, "to stdout\nto stderr\n");
    assert_int_equal(outcome.status, 0);
    outcome_free(&outcome);
}

static void a_file_that_cannot_be_written_is_status_1(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("snapshot", "save", GUEST("snapshot"), "-o", "/nonexistent/snap")), 1,
                 "pinhole: /nonexistent/snap: ");
}

static void a_traced_guest_is_saved_and_traced_again(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome =
        run_command(ARGUMENTS("snapshot", "save", "--trace", "text", GUEST("snapshot"), "-o", snap));
    assert_int_equal(outcome.status, 0);
    assert_non_null(strstr(outcome.err, "\nsnapshot "));
    outcome_free(&outcome);
    outcome = run_command(
        ARGUMENTS("call", "--snapshot", snap, "--trace", "text", GUEST("snapshot"), "traced", "7"));
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.out, "1\n");
    assert_non_null(strstr(outcome.err, "number=7"));
    assert_null(strstr(outcome.err, "guest.init"));
    outcome_free(&outcome);
    /* The ring is a part of the memory. */
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "count")), 2,
                 "pinhole: count: snapshot: ");
}

/* ---- what does not fit --------------------------------------------------------------------------------- */

static void a_snapshot_of_something_else_is_status_2(void **state) {
    (void)state;
    test_needs_kvm();
    save_counted();
    struct outcome outcome = run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("types"), "echo_void"));
    assert_non_null(strstr(outcome.err, "another image"));
    assert_fails(outcome, 2, "pinhole: echo_void: snapshot: ");
    assert_fails(
        run_command(ARGUMENTS("call", "--snapshot", snap, "--memory", "128M", GUEST("snapshot"), "count")), 2,
        "pinhole: count: snapshot: ");
    assert_fails(
        run_command(ARGUMENTS("call", "--snapshot", snap, "--max-message", "1M", GUEST("snapshot"), "count")),
        2, "pinhole: count: snapshot: ");
    assert_fails(
        run_command(ARGUMENTS("call", "--snapshot", snap, "--trace", "text", GUEST("snapshot"), "count")), 2,
        "pinhole: count: snapshot: ");
    /* What it has may be said again. */
    assert_prints(run_command(ARGUMENTS("call", "--snapshot", snap, "--memory", "64M", "--max-message", "16M",
                                        GUEST("snapshot"), "count")),
                  0, "2\n");
}

static void arguments_beyond_the_snapshots_limit_are_refused(void **state) {
    static char text[100000];

    (void)state;
    test_needs_kvm();
    memset(text, 'a', sizeof text - 1);
    text[0] = text[sizeof text - 2] = '"';
    assert_prints(
        run_command(ARGUMENTS("snapshot", "save", "--max-message", "64K", GUEST("types"), "-o", snap)), 0,
        "");
    struct outcome outcome =
        run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("types"), "echo_str", text));
    assert_non_null(strstr(outcome.err, "--max-message of `pinhole snapshot save`"));
    assert_fails(outcome, 1, "pinhole: echo_str: too-large: ");
}

static void what_is_no_snapshot_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", GUEST("types"), GUEST("types"), "echo_void")), 2,
                 "pinhole: echo_void: snapshot: ");
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", "/nonexistent", GUEST("types"), "echo_void")), 2,
                 "pinhole: echo_void: file: ");
}

static void a_whole_program_has_no_snapshot(void **state) {
    (void)state;
    assert_fails(run_command(ARGUMENTS("run", "--snapshot", "snap", GUEST("types"))), 125,
                 "pinhole: --snapshot is for `pinhole call`: ");
}

/* ---- info and verify ----------------------------------------------------------------------------------- */

static void info_says_what_a_sandbox_has_to_have(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(run_command(ARGUMENTS("snapshot", "save", "--memory", "32M", "--max-message", "1M",
                                        GUEST("snapshot"), "-o", snap)),
                  0, "");
    struct outcome outcome = run_command(ARGUMENTS("snapshot", "info", snap));
    assert_string_equal(outcome.err, "");
    assert_int_equal(outcome.status, 0);
    assert_int_equal(strncmp(outcome.out, "format ", 7), 0);
    assert_non_null(strstr(outcome.out, "\nimage "));
    assert_non_null(strstr(outcome.out, "snapshot\n"));
    assert_non_null(strstr(outcome.out, "\nmemory       32M\n"));
    assert_non_null(strstr(outcome.out, "\nmax-message  1M\n"));
    assert_non_null(strstr(outcome.out, "\ntrace-ring   not traced\n"));
    assert_non_null(strstr(outcome.out, " of 4096 bytes\n"));
    outcome_free(&outcome);
}

static void info_is_json_for_programs(void **state) {
    static const char *const counts[] = {"format",      "abi",        "memory",   "stack",
                                         "max_message", "trace_ring", "files",    "pages",
                                         "page_size",   "file_size",  "saved_ns", "xcr0"};
    struct stat information;

    (void)state;
    test_needs_kvm();
    save_counted();
    struct outcome outcome = run_command(ARGUMENTS("snapshot", "info", "--json", snap));
    assert_string_equal(outcome.err, "");
    assert_int_equal(outcome.status, 0);
    json_t *info = json_loads(outcome.out, 0, NULL);
    assert_non_null(info);
    assert_int_equal(json_object_size(info), sizeof counts / sizeof counts[0] + 3);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_true(json_is_integer(json_object_get(info, counts[i])));
    assert_true(json_is_string(json_object_get(info, "image")));
    assert_true(json_array_size(json_object_get(info, "features")) > 10);
    assert_string_equal(json_string_value(json_array_get(json_object_get(info, "features"), 0)), "SSE3");
    const json_t *id = json_object_get(info, "build_id");
    if (!id)
        id = json_object_get(info, "sha256");
    assert_true(json_string_length(id) >= 16);
    assert_int_equal(stat(snap, &information), 0);
    assert_int_equal(json_integer_value(json_object_get(info, "file_size")), information.st_size);
    assert_int_equal(json_integer_value(json_object_get(info, "memory")), 64 << 20);
    assert_int_equal(json_integer_value(json_object_get(info, "max_message")), 16 << 20);
    json_decref(info);
    outcome_free(&outcome);
}

/* Turns a bit of the byte at (offset) of the file, from its end when that is negative. */
static void damage(const char *path, off_t offset) {
    struct stat information;
    unsigned char byte;
    int file = open(path, O_RDWR | O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(fstat(file, &information), 0);
    if (offset < 0)
        offset += information.st_size;
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    close(file);
}

static off_t size_of(const char *path) {
    struct stat information;

    assert_int_equal(stat(path, &information), 0);
    return information.st_size;
}

static void verify_finds_every_damage(void **state) {
    (void)state;
    test_needs_kvm();
    save_counted();
    const off_t size = size_of(snap);
    const off_t places[] = {0, 9, 100, size / 3, size / 2, size - 1};
    assert_prints(run_command(ARGUMENTS("snapshot", "verify", snap)), 0, "");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        damage(snap, places[i]);
        assert_fails(run_command(ARGUMENTS("snapshot", "verify", snap)), 1, line_about(snap, ""));
        damage(snap, places[i]);
    }
    assert_prints(run_command(ARGUMENTS("snapshot", "verify", snap)), 0, "");
    /* A head that is damaged is no head. */
    damage(snap, 0);
    assert_fails(run_command(ARGUMENTS("snapshot", "info", snap)), 2, line_about(snap, ""));
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "count")), 2,
                 "pinhole: count: snapshot: ");
}

static void verify_finds_that_something_is_missing(void **state) {
    (void)state;
    test_needs_kvm();
    save_counted();
    const off_t size = size_of(snap);
    const off_t sizes[] = {size - 1, size / 2, 4096, 10, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(truncate(snap, sizes[i]), 0);
        assert_fails(run_command(ARGUMENTS("snapshot", "verify", snap)), 1, line_about(snap, ""));
        assert_fails(run_command(ARGUMENTS("call", "--snapshot", snap, GUEST("snapshot"), "count")), 2,
                     "pinhole: count: snapshot: ");
    }
}

static void what_cannot_be_read_is_status_2(void **state) {
    static const char *const commands[] = {"info", "verify"};

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        assert_fails(run_command(ARGUMENTS("snapshot", commands[i], "/nonexistent")), 2,
                     "pinhole: /nonexistent: ");
        assert_fails(run_command(ARGUMENTS("snapshot", commands[i])), 2, "pinhole: which file?;");
        assert_fails(run_command(ARGUMENTS("snapshot", commands[i], "a", "b")), 2,
                     "pinhole: one file only, options go before it;");
    }
    assert_fails(run_command(ARGUMENTS("snapshot", "info", GUEST("types"))), 2,
                 line_about(GUEST("types"), ""));
    assert_fails(run_command(ARGUMENTS("snapshot", "verify", GUEST("types"))), 1,
                 line_about(GUEST("types"), ""));
}

/* ---- usage --------------------------------------------------------------------------------------------- */

static void a_wrong_command_line_is_status_2(void **state) {
    const char *guest = GUEST("snapshot");

    (void)state;
    assert_fails(run_command(ARGUMENTS("snapshot")), 2,
                 "pinhole: which command of snapshot?; see 'pinhole snapshot --help'\n");
    assert_fails(run_command(ARGUMENTS("snapshot", "fly")), 2,
                 "pinhole: there is no command 'snapshot fly'; see 'pinhole snapshot --help'\n");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "--foo")), 2,
                 "pinhole: unknown option --foo; see 'pinhole snapshot save --help'\n");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "-o", snap)), 2, "pinhole: which file?;");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "-o", snap, "--call", "count", guest)), 2,
                 "pinhole: which file? It goes before --call;");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", guest)), 2,
                 "pinhole: where to? It wants -o SNAP, in front of --call;");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", guest, "count", "-o", snap)), 2,
                 "pinhole: one file only, not 'count' too; a function goes behind --call;");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", guest, "-o", snap, "--call")), 2,
                 "pinhole: --call needs a value;");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", guest, "-o", snap, "--call", "count", "1")), 2,
                 "pinhole: count takes 0 arguments, 1 was given;");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", guest, "-o", snap, "--call", "fly")), 2,
                 "pinhole: ");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "/nonexistent/guest", "-o", snap)), 2,
                 "pinhole: /nonexistent/guest: ");
}

/* A file that is read, and what is no file at all, would be gone. */
static void nothing_of_the_users_is_replaced_by_a_snapshot(void **state) {
    char word[96];

    (void)state;
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_fails(run_command(ARGUMENTS("snapshot", "save", GUEST("types"), "-o", other)), 2, "pinhole: -o ");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", GUEST("types"), "-o", folder)), 2, "pinhole: -o ");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", GUEST("types"), "-o", "-")), 2, "pinhole: -o - ");
    assert_int_equal(unlink(other), 0);
    assert_fails(run_command(ARGUMENTS("snapshot", "save", GUEST("types"), "-o", GUEST("types"))), 2,
                 "pinhole: -o ");
    FILE *file = fopen(other, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    snprintf(word, sizeof word, "@%s", other);
    assert_fails(
        run_command(ARGUMENTS("snapshot", "save", GUEST("types"), "-o", other, "--call", "echo_str", word)),
        2, "pinhole: -o ");
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "--file", other, GUEST("types"), "-o", other)), 2,
                 "pinhole: -o ");
    assert_int_equal(unlink(other), 0);
    snprintf(word, sizeof word, "text:%s", other);
    assert_fails(run_command(ARGUMENTS("snapshot", "save", "--trace", word, GUEST("types"), "-o", other)), 2,
                 "pinhole: --trace ");
    assert_int_equal(unlink(other), 0);
}

static void a_trace_does_not_replace_the_snapshot(void **state) {
    char word[96];

    (void)state;
    test_needs_kvm();
    save_counted();
    snprintf(word, sizeof word, "text:%s", snap);
    assert_fails(
        run_command(ARGUMENTS("call", "--trace", word, "--snapshot", snap, GUEST("snapshot"), "count")), 2,
        "pinhole: --trace ");
    assert_prints(run_command(ARGUMENTS("snapshot", "verify", snap)), 0, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_forgets_what_each_repeat_has_done),
        cmocka_unit_test(pages_that_are_copied_back_are_counted),
        cmocka_unit_test(restore_wants_something_to_restore_for),
        cmocka_unit_test(a_failed_call_ends_the_repeats),
        cmocka_unit_test(a_call_begins_where_the_snapshot_was_saved),
        cmocka_unit_test(options_of_save_stand_on_both_sides_of_the_file),
        cmocka_unit_test(a_database_is_warm),
        cmocka_unit_test(host_functions_are_answered_anew),
        cmocka_unit_test(a_failed_call_keeps_its_line_and_status),
        cmocka_unit_test(a_warm_up_that_fails_leaves_what_was_there),
        cmocka_unit_test(a_signal_ends_the_warm_up),
        cmocka_unit_test(what_the_warm_up_prints_goes_to_stderr),
        cmocka_unit_test(a_file_that_cannot_be_written_is_status_1),
        cmocka_unit_test(a_traced_guest_is_saved_and_traced_again),
        cmocka_unit_test(a_snapshot_of_something_else_is_status_2),
        cmocka_unit_test(arguments_beyond_the_snapshots_limit_are_refused),
        cmocka_unit_test(what_is_no_snapshot_is_refused),
        cmocka_unit_test(a_whole_program_has_no_snapshot),
        cmocka_unit_test(info_says_what_a_sandbox_has_to_have),
        cmocka_unit_test(info_is_json_for_programs),
        cmocka_unit_test(verify_finds_every_damage),
        cmocka_unit_test(verify_finds_that_something_is_missing),
        cmocka_unit_test(what_cannot_be_read_is_status_2),
        cmocka_unit_test(a_wrong_command_line_is_status_2),
        cmocka_unit_test(nothing_of_the_users_is_replaced_by_a_snapshot),
        cmocka_unit_test(a_trace_does_not_replace_the_snapshot),
    };
    return cmocka_run_group_tests_name("command snapshot", tests, folder_make, folder_remove);
}
