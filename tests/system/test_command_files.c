/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `--file` of the command: files for programs and for calls, a database for the sqlite guest, and what is
 * refused.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"
#include "system/command_runner.h"

#define SQLITE GUEST("sqlite")
#define GUEST(name) test_guest_path(name)

/* A folder of this test alone, with a database and a text in it, whose name has a colon. */
static char folder[] = "/tmp/pinhole-files-XXXXXX";
static char database_path[64];
static char text_path[64];

static int files_make(void **state) {
    sqlite3 *database;
    (void)state;

    if (!mkdtemp(folder))
        return -1;
    snprintf(database_path, sizeof database_path, "%s/data.db", folder);
    snprintf(text_path, sizeof text_path, "%s/a:b", folder);
    FILE *file = fopen(text_path, "we");
    if (!file || fputs("*hello\n", file) < 0 || fclose(file) != 0)
        return -1;
    if (sqlite3_open(database_path, &database) != SQLITE_OK)
        return -1;
    int code = sqlite3_exec(database,
                            "CREATE TABLE numbers(n, text);"
                            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000)"
                            "INSERT INTO numbers SELECT n, 'number ' || n FROM r",
                            NULL, NULL, NULL);
    sqlite3_close(database);
    return code == SQLITE_OK ? 0 : -1;
}

static int files_remove(void **state) {
    (void)state;
    unlink(database_path);
    unlink(text_path);
    rmdir(folder);
    return 0;
}

/* HOST:GUEST in static storage. */
static const char *pair(const char *host, const char *guest) {
    static char word[200];

    snprintf(word, sizeof word, "%s:%s", host, guest);
    return word;
}

static void a_database_is_queried_in_place(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("call", "--raw", "--file", pair(database_path, "/db"), SQLITE, "query",
                              "\"SELECT count(*) AS c, sum(n) AS s, max(text) AS m FROM numbers\"")),
        0, "[{\"c\":20000,\"s\":200010000,\"m\":\"number 9999\"}]");
    assert_fails(run_command(ARGUMENTS("call", "--file", pair(database_path, "/db"), SQLITE, "query",
                                       "\"DELETE FROM numbers\"")),
                 1, "pinhole: query: guest-error: code 0x8: attempt to write a readonly database");
    /* Under another name it is not the database. */
    assert_fails(
        run_command(ARGUMENTS("call", "--file", database_path, SQLITE, "query", "\"SELECT n FROM numbers\"")),
        1, "pinhole: query: guest-error: code 0x1: no such table: numbers");
}

/* The guest has the file open: it is given again, since a snapshot holds none. */
static void a_snapshot_goes_on_with_the_file(void **state) {
    char snap[80];

    (void)state;
    test_needs_kvm();
    snprintf(snap, sizeof snap, "%s/snap", folder);
    const char *file = pair(database_path, "/db");
    assert_prints(run_command(ARGUMENTS("snapshot", "save", "--file", file, SQLITE, "-o", snap, "--call",
                                        "query", "\"SELECT count(*) FROM numbers\"")),
                  0, "");
    assert_prints(run_command(ARGUMENTS("call", "--raw", "--snapshot", snap, "--file", file, SQLITE, "query",
                                        "\"SELECT sum(n) AS s FROM numbers\"")),
                  0, "[{\"s\":200010000}]");
    assert_fails(run_command(ARGUMENTS("call", "--snapshot", snap, SQLITE, "query", "\"SELECT 1\"")), 2,
                 "pinhole: query: snapshot: ");
    unlink(snap);
}

static void what_is_no_database_is_the_guests_error(void **state) {
    (void)state;
    test_needs_kvm();
    struct outcome outcome = run_command(
        ARGUMENTS("call", "--file", pair(text_path, "/db"), SQLITE, "query", "\"SELECT a FROM b\""));
    assert_int_equal(outcome.status, 1);
    assert_non_null(strstr(outcome.err, "file is not a database"));
    outcome_free(&outcome);
}

static void programs_read_files(void **state) {
    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("run", "--file", pair(text_path, "/big"), GUEST("mapped_files"), "touch-ends")),
        0, "first 42\nlast 10 size 7\n");
}

static void an_unmodified_busybox_reads_files(void **state) {
    static const char *const script =
        "read a < etc/motd; test -f /data.db && test -d /etc && test ! -e /etc/passwd && echo \"$a\"";

    (void)state;
    test_needs_kvm();
    assert_prints(
        run_command(ARGUMENTS("run", "--file", pair(text_path, "/motd"), busybox_path(), "cat", "motd")), 0,
        "*hello\n");
    assert_prints(run_command(ARGUMENTS("run", "--file", pair(text_path, "/etc/motd"), "--file",
                                        database_path, busybox_path(), "sh", "-c", script)),
                  0, "*hello\n");
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    test_needs_kvm();
    assert_fails(run_command(ARGUMENTS("call", "--file", "/nonexistent", SQLITE, "query", "\"\"")), 2,
                 "pinhole: query: file: /nonexistent: No such file or directory");
    assert_fails(run_command(ARGUMENTS("run", "--file", "/nonexistent", GUEST("mapped_files"))), 125,
                 "pinhole: ");
    assert_fails(run_command(ARGUMENTS("call", "--file", folder, SQLITE, "query", "\"\"")), 2,
                 "pinhole: query: file: ");
    static const char *const words[] = {"", ":", ":/db", "a:", "a:db", "a:b:c"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_fails(run_command(ARGUMENTS("call", "--file", words[i], SQLITE, "query", "\"\"")), 2,
                     "pinhole: --file wants HOST or HOST:/PATH, not ");
        assert_fails(run_command(ARGUMENTS("run", "--file", words[i], GUEST("mapped_files"))), 125,
                     "pinhole: --file wants HOST or HOST:/PATH, not ");
    }
    assert_fails(
        run_command(ARGUMENTS("call", "--file", pair(text_path, "/a/../b"), SQLITE, "query", "\"\"")), 2,
        "pinhole: query: argument: a file's path in the guest is absolute");
    assert_fails(run_command(ARGUMENTS("call", "--file", database_path, "--file", database_path, SQLITE,
                                       "query", "\"\"")),
                 2, "pinhole: query: argument: /data.db and /data.db cannot both be files in the guest");
}

static void no_trace_goes_over_a_file(void **state) {
    char trace[96];

    (void)state;
    snprintf(trace, sizeof trace, "jsonl:%s", database_path);
    assert_fails(run_command(ARGUMENTS("call", "--trace", trace, "--file", pair(database_path, "/db"), SQLITE,
                                       "query", "\"\"")),
                 2, "pinhole: --trace jsonl:");
    assert_fails(run_command(ARGUMENTS("run", "--timeout", "2s", "--trace", trace, "--file",
                                       pair(database_path, "/db"), GUEST("mapped_files"))),
                 125, "pinhole: --trace jsonl:");
    FILE *file = fopen(database_path, "re");
    assert_non_null(file);
    assert_int_equal(getc(file), 'S'); /* "SQLite format 3" */
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_is_queried_in_place),
        cmocka_unit_test(a_snapshot_goes_on_with_the_file),
        cmocka_unit_test(what_is_no_database_is_the_guests_error),
        cmocka_unit_test(programs_read_files),
        cmocka_unit_test(an_unmodified_busybox_reads_files),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(no_trace_goes_over_a_file),
    };
    return cmocka_run_group_tests(tests, files_make, files_remove);
}
