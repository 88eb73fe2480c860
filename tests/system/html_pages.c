/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Pages for a browser to read (html_pages.h).
 */
#include "system/html_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinhole/export.h>

#include "base/time.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

struct page {
    ph_sink sink;
    uint64_t zero; /* since 1970 */
};

static struct page page_open(const char *path) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    struct page page;
    ph_error error;

    options.file = fopen(path, "we");
    options.close_file = true;
    assert_non_null(options.file);
    assert_int_equal(ph_html_sink_open(&options, &page.sink, &error), PH_OK);
    page.zero = ph__time_ns(CLOCK_REALTIME);
    return page;
}

static void page_close(struct page *page) {
    page->sink.close(page->sink.context);
}

static ph_trace_span span_of(uint64_t id, uint64_t parent, ph_span_kind kind, const char *name,
                             uint64_t start, uint64_t end) {
    return (ph_trace_span){.size = sizeof(ph_trace_span),
                           .sandbox = 1,
                           .id = id,
                           .parent = parent,
                           .kind = kind,
                           .level = PH_LEVEL_INFO,
                           .name = name,
                           .start_ns = start,
                           .end_ns = end};
}

/* Times of (span) are from the page's zero on. */
static void give(struct page *page, ph_trace_span span) {
    span.start_ns += page->zero;
    span.end_ns += page->zero;
    page->sink.span(page->sink.context, &span);
}

static void give_span(struct page *page, uint64_t id, uint64_t parent, ph_span_kind kind, const char *name,
                      uint64_t start, uint64_t end) {
    give(page, span_of(id, parent, kind, name, start, end));
}

static void give_event(struct page *page, uint64_t sandbox, uint64_t span, ph_level level, const char *name,
                       const char *message, uint64_t time) {
    const ph_trace_event event = {.size = sizeof event,
                                  .sandbox = sandbox,
                                  .span = span,
                                  .level = level,
                                  .name = name,
                                  .message = message,
                                  .source = {"src/store.c", "store_write", 88},
                                  .time_ns = page->zero + time};

    page->sink.event(page->sink.context, &event);
}

static void give_counter(struct page *page, const char *name, ph_value value, uint64_t time) {
    const ph_trace_counter counter = {
        .size = sizeof counter, .sandbox = 1, .name = name, .time_ns = page->zero + time, .value = value};

    page->sink.counter(page->sink.context, &counter);
}

static ph_field text_field(const char *name, const char *text) {
    return (ph_field){.name = name,
                      .value = {.type = PH_STR, .str = text},
                      .size = strlen(text),
                      .full_size = strlen(text)};
}

/* ---- the rich one -------------------------------------------------------------------------------------- */

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static void give_fields_of_each_type(struct page *page) {
    static const uint8_t bytes[] = {0xde, 0xad, 0xbe, 0xef};
    const ph_field fields[] = {
        text_field("sql", "SELECT name, moons\n  FROM planets\n WHERE moons > 0"),
        {.name = "rows", .value = {.type = PH_I64, .i64 = -9007199254740993}},
        {.name = "most", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
        {.name = "ratio", .value = {.type = PH_F64, .f64 = 0.1}},
        {.name = "cached", .value = {.type = PH_BOOL, .boolean = true}},
        {.name = "at", .value = {.type = PH_POINTER, .u64 = 0x401136}},
        {.name = "key",
         .value = {.type = PH_BYTES, .bytes = {bytes, sizeof bytes}},
         .size = sizeof bytes,
         .full_size = 5000},
        text_field("rows", "a second one of that name"),
    };
    ph_trace_span span = span_of(12, 11, PH_SPAN_USER, "prepare", 2100 * US, 3400 * US);

    span.fields = fields;
    span.field_count = COUNT(fields);
    span.source = (ph_source){"guests/sqlite/sqlite.c", "query", 114};
    give(page, span);
}

static void give_start(struct page *page) {
    static const char *const calls[] = {"brk",  "arch_prctl", "set_tid_address",
                                        "rseq", "mprotect",   "readlink"};
    uint64_t at = 900 * US;

    give_span(page, 2, 1, PH_SPAN_HOST, "load", 80 * US, 400 * US);
    give_span(page, 1, 0, PH_SPAN_HOST, "create", 0, 640 * US);
    for (uint64_t i = 0; i < COUNT(calls); i++) {
        give_span(page, 5 + i, 4, PH_SPAN_SYSTEM_CALL, calls[i], at, at + 60 * US + 12 * US * i);
        at += 130 * US;
    }
    give_span(page, 4, 3, PH_SPAN_GUEST, "guest.init", 860 * US, 1700 * US);
    give_span(page, 3, 0, PH_SPAN_HOST, "start", 800 * US, 1760 * US);
}

/* A step of a query: functions in functions, and a system call. */
static void give_step(struct page *page, uint64_t id, uint64_t start, uint64_t size) {
    static const char *const names[] = {"btree_next", "page_read", "cell_parse", "row_encode"};
    uint64_t part = size / 5;

    for (uint64_t i = 0; i < COUNT(names); i++) {
        uint64_t at = start + part * i + part / 6;
        give_span(page, id + 10 + i, id + 1 + i, PH_SPAN_SYSTEM_CALL, "pread64", at + part / 4,
                  at + part / 2);
        give_span(page, id + 1 + i, id, PH_SPAN_FUNCTION, names[i], at, at + part * 9 / 10);
    }
    give_span(page, id, 11, PH_SPAN_USER, "step", start, start + size);
}

static void give_query(struct page *page) {
    ph_trace_span call = span_of(10, 0, PH_SPAN_CALL, "call query", 2000 * US, 9800 * US);

    memcpy(call.trace_id, "\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36", 16);
    memcpy(call.remote_parent, "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8);
    call.trace_state = "congo=t61rcWkgMzE";
    call.dropped_fields = 3;
    give_fields_of_each_type(page);
    for (uint64_t i = 0; i < 12; i++)
        give_step(page, 100 + 20 * i, 3500 * US + i * 500 * US, 300 * US + i % 3 * 80 * US);
    give_span(page, 13, 11, PH_SPAN_HOST_FUNCTION, "host weekday", 3420 * US, 3480 * US);
    give_span(page, 11, 10, PH_SPAN_GUEST, "guest query", 2050 * US, 9700 * US);
    give(page, call);
    for (uint64_t i = 0; i < 3; i++) {
        ph_trace_span job = span_of(400 + i, 11, PH_SPAN_ASYNC, i == 1 ? "flush" : "write-back",
                                    4 * MS + i * 900 * US, 7 * MS + i * 1400 * US);
        job.unfinished = i == 2;
        give(page, job);
    }
    for (uint64_t i = 0; i < 80; i++) {
        give_counter(page, "pages", (ph_value){.type = PH_I64, .i64 = (int64_t)(i * 3 % 41 + i)},
                     3500 * US + i * 75 * US);
        if (i % 4 == 0)
            give_counter(page, "hit ratio", (ph_value){.type = PH_F64, .f64 = 0.9 - 0.01 * (double)(i % 24)},
                         3500 * US + i * 75 * US);
    }
}

/* A call that a fault ends. */
static void give_failure(struct page *page) {
    ph_trace_span span = span_of(502, 501, PH_SPAN_USER, "parse", 11200 * US, 12700 * US);

    span.unfinished = true;
    span.status = PH_E_PAGE_FAULT;
    span.source = (ph_source){"guests/faults/faults.c", "parse", 31};
    give(page, span);
    span = span_of(501, 500, PH_SPAN_GUEST, "guest parse", 11100 * US, 12700 * US);
    span.unfinished = true;
    span.status = PH_E_PAGE_FAULT;
    give(page, span);
    span = span_of(500, 0, PH_SPAN_CALL, "call parse", 11 * MS, 13 * MS);
    span.status = PH_E_PAGE_FAULT;
    span.message = "the guest wrote to 0x10, which is not mapped, in parse+0x2c";
    give(page, span);
}

static void give_rich(struct page *page) {
    give_start(page);
    give_query(page);
    give_event(page, 1, 12, PH_LEVEL_INFO, "cache.miss", NULL, 2300 * US);
    give_event(page, 1, 11, PH_LEVEL_WARN, "slow: %d of %d rows sorted", "slow: 2 of 12 rows sorted", 6 * MS);
    give_event(page, 1, 11, PH_LEVEL_DEBUG, "row %d", "row 7", 7200 * US);
    give_failure(page);
    give_event(page, 1, 502, PH_LEVEL_ERROR, "bad header: %s", "bad header: \"PK\"", 12 * MS);
    for (uint64_t i = 0; i < 3; i++) {
        ph_trace_span guest = span_of(601 + 10 * i, 600 + 10 * i, PH_SPAN_GUEST, "guest hash",
                                      (5000 + 2500 * i) * US, (6300 + 2600 * i) * US);
        ph_trace_span call = span_of(600 + 10 * i, 0, PH_SPAN_CALL, "call hash", (4900 + 2500 * i) * US,
                                     (6400 + 2600 * i) * US);
        guest.sandbox = call.sandbox = 2;
        give(page, guest);
        give(page, call);
    }
}

void page_make_rich(const char *path) {
    struct page page = page_open(path);

    give_rich(&page);
    page_close(&page);
}

void page_make_killed(const char *path) {
    struct page page = page_open(path);

    give_rich(&page);
    page.sink.flush(page.sink.context);
    char text[4096];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fseek(file, -(long)sizeof text, SEEK_END), 0);
    assert_int_equal(fread(text, 1, sizeof text, file), sizeof text);
    long size = ftell(file);
    fclose(file);
    page_close(&page);
    assert_int_equal(truncate(path, size - 9), 0);
}

/* ---- the hostile one ----------------------------------------------------------------------------------- */

static const char *const attacks[] = {
    "</script><script>window.__pwned=1</script>",
    "<!--<script>window.__pwned=2</script>",
    "--></script ><img src=x onerror=window.__pwned=3>",
    "<img src=http://127.0.0.1:9/ onerror=alert(4)>",
    "]]></script><svg onload=window.__pwned=5>",
    "\"],[\"s\"],window.__pwned=6,[\"",
    "\\\"];window.__pwned=7//",
    "javascript:window.__pwned=8",
    "${window.__pwned=9}`+alert(9)+`",
    "</title></style></textarea><iframe srcdoc='<script>parent.__pwned=10</script>'>",
    "\xe2\x80\xae txet desrever \xe2\x80\xac\xe2\x80\xa8\xe2\x80\xa9",
    "&lt;script&gt;&#60;b&#62;",
    "\x1b]0;title\x07\r\n\t\x01",
    "\xff\xfe\xc0\x80 not UTF-8",
    "__proto__",
    "constructor",
    "",
};

void page_make_hostile(const char *path) {
    static char tall[4096];
    struct page page = page_open(path);
    uint64_t id = 2;

    memset(tall, 'W', sizeof tall - 1);
    for (size_t i = 0; i < COUNT(attacks); i++) {
        for (ph_span_kind kind = PH_SPAN_HOST; kind <= PH_SPAN_ASYNC; kind++) {
            const ph_field fields[] = {text_field(attacks[i], attacks[i]), text_field("tall", tall)};
            ph_trace_span span = span_of(id, 1, kind, attacks[i], id * 10 * US, id * 10 * US + 8 * US);
            id++;
            span.status = PH_E_GUEST;
            span.message = attacks[i];
            span.source = (ph_source){attacks[i], attacks[i], 1};
            span.fields = fields;
            span.field_count = COUNT(fields);
            give(&page, span);
        }
        give_event(&page, 1, 2, PH_LEVEL_ERROR, attacks[i], attacks[i], id * 10 * US);
        give_event(&page, 1, 2, PH_LEVEL_WARN, attacks[i], NULL, id * 10 * US + US);
        give_counter(&page, attacks[i], (ph_value){.type = PH_I64, .i64 = (int64_t)i}, id * 10 * US);
    }
    give_span(&page, 1, 0, PH_SPAN_CALL, tall, 0, id * 10 * US);
    give_span(&page, id, 0, PH_SPAN_CALL, "</title><script>window.__pwned=11</script>\xe2\x80\xae",
              id * 10 * US, id * 10 * US + US);
    page_close(&page);
}

/* ---- the large one ------------------------------------------------------------------------------------- */

void page_make_large(const char *path, size_t count) {
    static const char *const names[] = {"parse", "lookup", "encode", "hash", "copy", "compare", "split"};
    struct page page = page_open(path);
    uint64_t at = 10 * US;

    for (size_t i = 0; i < count; i += 4) {
        uint64_t id = 10 + i, size = 2 * US + i * 7919 % 3000;
        for (uint64_t part = 0; part < 3 && i + part + 1 < count; part++)
            give_span(&page, id + part + 1, id, part == 2 ? PH_SPAN_SYSTEM_CALL : PH_SPAN_FUNCTION,
                      part == 2 ? "write" : names[(i / 4 + part) % COUNT(names)], at + size * part / 4 + 20,
                      at + size * (part + 1) / 4);
        give_span(&page, id, 2, PH_SPAN_USER, names[i / 4 % COUNT(names)], at, at + size);
        at += size + i % 5 * 200;
    }
    give_event(&page, 1, 2, PH_LEVEL_WARN, "trace.gap", NULL, at);
    give_span(&page, 2, 1, PH_SPAN_GUEST, "guest work", 5 * US, at + 5 * US);
    give_span(&page, 1, 0, PH_SPAN_CALL, "call work", 0, at + 9 * US);
    page_close(&page);
}

void page_make_empty(const char *path) {
    struct page page = page_open(path);

    page_close(&page);
}
