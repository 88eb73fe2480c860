/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A whole database engine as a guest: the system's SQLite, over the file /db if the host has mapped one,
 * which can only be read, or else over a database in memory, which lives as long as the sandbox. Errors of
 * SQL are guest errors, with SQLite's code and message.
 */
#include <string.h>
#include <unistd.h>

#include <pinhole/guest.h>
#include <sqlite3.h>

#include "json.h"

static sqlite3 *database;

/* Nobody changes the file while we have it, so that needs no locks and no look for a journal; and it is there
 * as memory already, so its pages are used in place. */
#define FILE_URI "file:/db?immutable=1"
#define USE_PAGES_IN_PLACE "PRAGMA mmap_size = 0x7fff0000"

static int file_open(void) {
    int code = sqlite3_open_v2(FILE_URI, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);

    return code != SQLITE_OK ? code : sqlite3_exec(database, USE_PAGES_IN_PLACE, NULL, NULL, NULL);
}

static void database_open(void) {
    int code = access("/db", F_OK) == 0 ? file_open() : sqlite3_open(":memory:", &database);

    if (code != SQLITE_OK)
        ph_abort(code, "cannot open the database: %s", sqlite3_errstr(code));
}
PH_INIT(database_open);

static void value_write(struct json *json, sqlite3_stmt *statement, int column) {
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        json_integer(json, sqlite3_column_int64(statement, column));
        break;
    case SQLITE_FLOAT:
        json_real(json, sqlite3_column_double(statement, column));
        break;
    case SQLITE_TEXT: {
        const unsigned char *text = sqlite3_column_text(statement, column);
        json_string(json, text, (size_t)sqlite3_column_bytes(statement, column));
        break;
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_column_blob(statement, column);
        json_base64(json, blob, (size_t)sqlite3_column_bytes(statement, column));
        break;
    }
    default:
        json_raw(json, "null");
    }
}

static void row_write(struct json *json, sqlite3_stmt *statement) {
    int count = sqlite3_column_count(statement);

    json_raw(json, "{");
    for (int column = 0; column < count; column++) {
        const char *name = sqlite3_column_name(statement, column);
        if (column > 0)
            json_raw(json, ",");
        json_string(json, name, name ? strlen(name) : 0);
        json_raw(json, ":");
        value_write(json, statement, column);
    }
    json_raw(json, "}");
}

static _Noreturn void fail(void) {
    PH_LOG_ERROR("SQL error %d: %s", sqlite3_errcode(database), sqlite3_errmsg(database));
    ph_fail(sqlite3_errcode(database), "%s", sqlite3_errmsg(database));
}

/* The first statement in (*sql), which is moved behind it; NULL when that is a comment or nothing. */
static sqlite3_stmt *statement_prepare(const char **sql) {
    PH_SPAN_AS(span, PH_LEVEL_INFO, "prepare");
    sqlite3_stmt *statement;

    if (sqlite3_prepare_v2(database, *sql, -1, &statement, sql) != SQLITE_OK)
        fail();
    if (statement)
        PH_SPAN_FIELDS(span, ph_str("sql", sqlite3_sql(statement)));
    return statement;
}

/* Runs (statement) to its end. Its rows become (json)'s text, if it is of a kind that has rows. */
static void statement_run(sqlite3_stmt *statement, struct json *json) {
    PH_SPAN_AS(span, PH_LEVEL_INFO, "step");
    bool has_rows = sqlite3_column_count(statement) > 0;
    const char *separator = "";
    int64_t rows = 0;
    int code;

    if (has_rows) {
        json->size = 0;
        json_raw(json, "[");
    }
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        json_raw(json, separator);
        row_write(json, statement);
        separator = ",";
        rows++;
        PH_EVENT_AT(PH_LEVEL_DEBUG, "row", ph_i64("row", rows), ph_u64("json_bytes", json->size));
    }
    if (code != SQLITE_DONE)
        fail();
    if (has_rows) {
        json_raw(json, "]");
        PH_SPAN_FIELDS(span, ph_i64("rows", rows));
    } else {
        PH_SPAN_FIELDS(span, ph_i64("changes", sqlite3_changes(database)));
    }
}

/* A call that failed left its statement open. */
static void statements_finalize(void) {
    sqlite3_stmt *statement;

    while ((statement = sqlite3_next_stmt(database, NULL)))
        sqlite3_finalize(statement);
}

/* Runs the statements in (sql). Gives the rows of the last one that is a query as an array of objects. */
static const char *query(const char *sql) {
    struct json json = {0};

    statements_finalize();
    json_raw(&json, "[]");
    while (*(sql += strspn(sql, " \t\r\n"))) {
        sqlite3_stmt *statement = statement_prepare(&sql);
        if (!statement)
            continue;
        statement_run(statement, &json);
        sqlite3_finalize(statement);
    }
    return json.text;
}
PH_EXPORT(query, PH_STR, PH_STR);
