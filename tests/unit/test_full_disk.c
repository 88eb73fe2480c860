/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a sink leaves in a file where a disk was full, or the reader of a pipe gone, for a while: the begin of
 * the trace and nothing behind it, in every format that is written to a stream.
 */
#include <errno.h>
#include <string.h>

#include <pinhole/export.h>
#include <pinhole/otlp.h>

#include "unit/sink_feed.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define ROOM 3000u

/* It takes ROOM bytes, refuses what more there is of one write, and takes all that comes then. */
struct disk {
    char bytes[ROOM];
    size_t used;
    bool has_refused;
    size_t after;
};

static ssize_t disk_write(void *cookie, const char *bytes, size_t size) {
    struct disk *disk = cookie;
    size_t room = ROOM - disk->used;

    if (disk->has_refused) {
        disk->after += size;
        return (ssize_t)size;
    }
    if (size > room) {
        disk->has_refused = true;
        errno = ENOSPC;
        size = room;
    }
    memcpy(disk->bytes + disk->used, bytes, size);
    disk->used += size;
    return (ssize_t)size;
}

static void nothing_follows_what_could_not_be_written(void **state) {
    static const struct {
        sink_open_fn *open;
        const char *begin;
    } formats[] = {
        {ph_chrome_sink_open, "[\n{\"ph\":\"M\""},
        {ph_perfetto_sink_open, "\n"},
        {ph_folded_sink_open, "sandbox 1;call_0"},
        {ph_speedscope_sink_open, "{\"$schema\""},
        {ph_jsonl_sink_open, "{\"type\":\"span\""},
        {ph_text_sink_open, "call 0"},
        {ph_html_sink_open, "<!"},
        {ph_otlp_json_sink_open, "{\"resourceSpans\""},
    };
    static const cookie_io_functions_t functions = {.write = disk_write};

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        struct disk disk = {.used = 0};
        struct sink_feed feed = {.file = fopencookie(&disk, "w", functions)};
        ph_file_sink options = PH_FILE_SINK_INIT;
        char name[24];
        assert_non_null(feed.file);
        options.file = feed.file;
        options.colour = PH_COLOUR_NEVER;
        assert_int_equal(formats[i].open(&options, &feed.sink, NULL), PH_OK);
        for (unsigned j = 0; j < 2000; j++) {
            snprintf(name, sizeof name, "call %u", j);
            feed_span(&feed, j + 1, 0, name, 10 * j, 10 * j + 9);
            if (feed.sink.flush && j % 200 == 0)
                feed.sink.flush(feed.sink.context);
        }
        feed_close(&feed);
        assert_true(ferror(feed.file));
        fclose(feed.file);
        assert_true(disk.has_refused);
        assert_int_equal(disk.used, ROOM);
        assert_int_equal(disk.after, 0);
        assert_memory_equal(disk.bytes, formats[i].begin, strlen(formats[i].begin));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_follows_what_could_not_be_written),
    };
    return cmocka_run_group_tests_name("full_disk", tests, NULL, NULL);
}
