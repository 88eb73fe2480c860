/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A second's work for SQLite, in memory and without a system call in its midst: fill, index, join, group,
 * sort, change and take text apart.
 */
#include "work.h"

#include <sqlite3.h>
#include <stdlib.h>

static const char statements[] =
    "PRAGMA temp_store = MEMORY;"
    "CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER, price REAL, name TEXT);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 240000)"
    "  INSERT INTO item SELECT i, (i * 7919) % 997, ((i * 104729) % 100000) / 100.0, printf('item %x', i * "
    "31) FROM n;"
    "CREATE INDEX item_kind ON item(kind, price);"
    "CREATE TABLE kind (id INTEGER PRIMARY KEY, factor REAL);"
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 996)"
    "  INSERT INTO kind SELECT i, 1.0 + (i % 13) / 10.0 FROM n;"
    "CREATE TABLE result (value INTEGER);"
    "INSERT INTO result SELECT CAST(sum(price * factor) * 100 AS INTEGER) FROM item JOIN kind ON kind.id = "
    "item.kind;"
    "INSERT INTO result SELECT count(*) FROM (SELECT kind, max(price) AS top FROM item GROUP BY kind HAVING "
    "top > 990);"
    "INSERT INTO result SELECT count(*) FROM item WHERE name LIKE '%3f%' AND instr(upper(name), 'A') > 0;"
    "UPDATE item SET price = price * 1.01 WHERE kind % 3 = 0;"
    "INSERT INTO result SELECT sum(id * rank) % 1000003 FROM"
    "  (SELECT id, row_number() OVER (PARTITION BY kind % 50 ORDER BY price, name) AS rank FROM item);"
    "DELETE FROM item WHERE id % 5 = 0;"
    "INSERT INTO result SELECT sum(length(name)) FROM (SELECT name FROM item ORDER BY name DESC LIMIT "
    "50000);";

static sqlite3_int64 result_of(sqlite3 *database) {
    sqlite3_stmt *statement;
    sqlite3_int64 result = 0;

    if (sqlite3_prepare_v2(database, "SELECT value FROM result", -1, &statement, NULL) != SQLITE_OK)
        abort();
    while (sqlite3_step(statement) == SQLITE_ROW)
        result = result * 31 + sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return result;
}

static uint64_t work(void) {
    sqlite3 *database;

    if (sqlite3_open(":memory:", &database) != SQLITE_OK ||
        sqlite3_exec(database, statements, NULL, NULL, NULL) != SQLITE_OK)
        abort();
    sqlite3_int64 result = result_of(database);
    sqlite3_close(database);
    return (uint64_t)result;
}
