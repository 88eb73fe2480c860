/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What can go wrong with a trace in the Common Trace Format: what was lost is counted, also for want of room;
 * babeltrace2 reads what a process leaves that is killed at any moment; and a folder with something in it is
 * left alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system.h"
#include "ctf_fixture.h"

/* ---- losses -------------------------------------------------------------------------------------------- */

static void give_gap(struct writer *writer, uint64_t time_ns, uint64_t records) {
    const ph_field fields[] = {text_field("cause", "ring"), number_field("bytes", PH_U64, 640),
                               number_field("records", PH_U64, records)};

    give_event(writer, "trace.gap", NULL, time_ns, fields, records ? 3 : 2);
}

static void what_was_lost_is_counted(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer);
    give_event(&writer, "e", NULL, 1, NULL, 0);
    give_gap(&writer, 2, 17);
    give_event(&writer, "e", NULL, 3, NULL, 0);
    writer.sink.flush(writer.sink.context);
    give_gap(&writer, 4, 0); /* nobody knows how many */
    give_gap(&writer, 5, 24);
    writer.sink.flush(writer.sink.context);
    char *text = take(&writer);
    assert_has(text, "Tracer discarded 17 events between [1700000000.000000002] and [1700000000.000000003]");
    assert_has(text, "Tracer discarded 25 events between [1700000000.000000003] and [1700000000.000000005]");
    free(text);
}

static void a_loss_at_the_very_end_is_counted(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer);
    give_gap(&writer, 2, 5);
    char *text = take(&writer);
    assert_has(text, "Tracer discarded 5 events ");
    free(text);
}

static void a_guest_cannot_make_up_a_loss(void **state) {
    const ph_field records = number_field("records", PH_U64, 1000);
    ph_trace_event event = {.size = sizeof event,
                            .sandbox = 1,
                            .name = "trace.gap",
                            .source = {.file = "guest.c", .function = "main", .line = 1},
                            .time_ns = EPOCH,
                            .fields = &records,
                            .field_count = 1};
    struct writer writer;

    (void)state;
    writer_init(&writer);
    writer.sink.event(writer.sink.context, &event);
    writer.sink.flush(writer.sink.context);
    writer.sink.event(writer.sink.context, &event);
    char *text = take(&writer);
    assert_null(strstr(text, "discarded"));
    free(text);
}

/* ---- the end of the process, and of the disk -------------------------------------------------------------
 */

/* Events that are short, and some that take several packets' room. */
static void give_mixed(struct writer *writer, uint64_t i) {
    static char large[20000];

    memset(large, 'x', sizeof large - 1);
    give_event(writer, "e", i % 40 == 39 ? large : NULL, i, NULL, 0);
}

static void a_killed_process_leaves_a_readable_trace(void **state) {
    struct writer writer;
    int pipes[2];
    char byte;

    (void)state;
    writer_init(&writer);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (uint64_t i = 0;; i++) {
            give_mixed(&writer, i);
            if (i == 5000 && write(pipes[1], "", 1) != 1)
                _exit(1);
        }
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    char *text = read_back(&writer);
    assert_true(lines_of(text) > 4900);
    free(text);
    writer_close(&writer);
    writer_remove(&writer);
    close(pipes[0]);
    close(pipes[1]);
}

static ssize_t (*real_pwrite)(int file, const void *bytes, size_t size, off_t offset);
static unsigned writes_left;

static ssize_t last_pwrite(int file, const void *bytes, size_t size, off_t offset) {
    if (writes_left-- == 0)
        _exit(3);
    return real_pwrite(file, bytes, size, offset);
}

static void it_is_readable_after_each_single_write(void **state) {
    bool ended = false;

    (void)state;
    for (unsigned writes = 0; !ended; writes++) {
        struct writer writer;
        int status;
        writer_init(&writer);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            real_pwrite = ph__system.pwrite;
            ph__system.pwrite = last_pwrite;
            writes_left = writes;
            for (uint64_t i = 0; i < 100; i++)
                give_mixed(&writer, i);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        ended = WEXITSTATUS(status) == 0;
        assert_true(ended || WEXITSTATUS(status) == 3);
        free(read_back(&writer));
        writer_close(&writer);
        writer_remove(&writer);
    }
}

static ssize_t full_pwrite(int file, const void *bytes, size_t size, off_t offset) {
    if (writes_left > 0) {
        writes_left--;
        return real_pwrite(file, bytes, size / 2, offset);
    }
    errno = ENOSPC;
    return -1;
}

static void what_finds_no_room_is_counted_as_lost(void **state) {
    struct writer writer;

    (void)state;
    writer_init(&writer);
    give_event(&writer, "kept", NULL, 1, NULL, 0);
    writer.sink.flush(writer.sink.context);
    real_pwrite = ph__system.pwrite;
    ph__system.pwrite = full_pwrite;
    writes_left = 1;
    give_event(&writer, "lost", NULL, 2, NULL, 0);
    give_event(&writer, "lost", NULL, 3, NULL, 0);
    writer.sink.flush(writer.sink.context);
    ph__system.pwrite = real_pwrite;
    assert_int_equal(writer.system_error, ENOSPC);
    assert_int_equal(stream_size(&writer), PH__CTF_PACKET_BYTES);
    give_event(&writer, "kept", NULL, 4, NULL, 0);
    writer.system_error = 0;
    char *text = take(&writer);
    assert_null(strstr(text, "\"lost\""));
    assert_has(text, "Tracer discarded 2 events ");
    free(text);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void a_folder_that_is_not_empty_is_refused(void **state) {
    struct writer writer;
    ph_sink sink;
    ph_error error;
    char path[128];

    (void)state;
    writer_init(&writer);
    give_event(&writer, "kept", NULL, 1, NULL, 0);
    assert_int_equal(ph_ctf_sink_open(writer.folder, &sink, &error), PH_E_FILE);
    assert_has(error.message, writer.folder);
    assert_has(error.message, "has to be empty");
    assert_null(sink.close);
    snprintf(path, sizeof path, "%s/metadata", writer.folder);
    assert_int_equal(ph_ctf_sink_open(path, &sink, &error), PH_E_FILE);
    snprintf(path, sizeof path, "%s/not/there", writer.folder);
    assert_int_equal(ph_ctf_sink_open(path, &sink, &error), PH_E_FILE);
    char *text = take(&writer);
    assert_has(text, "\"kept\"");
    free(text);
}

static void an_empty_folder_is_taken(void **state) {
    struct writer writer;
    ph_sink sink;

    (void)state;
    writer_init(&writer);
    writer_close(&writer);
    writer_remove(&writer);
    assert_int_equal(mkdir(writer.folder, 0700), 0);
    assert_int_equal(ph_ctf_sink_open(writer.folder, &sink, NULL), PH_OK);
    sink.close(sink.context);
    free(read_back(&writer)); /* an empty trace is one */
    writer_remove(&writer);
}

static unsigned calls_left;
static struct ph__system real_system;

/* Whether the call is the one that fails. */
static bool fails(void) {
    errno = EDQUOT;
    return calls_left-- == 0;
}

static int failing_mkdir(const char *path, mode_t mode) {
    return fails() ? -1 : real_system.mkdir(path, mode);
}

static int failing_open(const char *path, int flags, ...) {
    return fails() ? -1 : real_system.open(path, flags, 0600);
}

static ssize_t failing_pwrite(int file, const void *bytes, size_t size, off_t offset) {
    return fails() ? -1 : real_system.pwrite(file, bytes, size, offset);
}

static int failing_close(int file) {
    int result = real_system.close(file);

    return fails() ? -1 : result;
}

static void a_failure_to_open_leaves_nothing_in_the_folder(void **state) {
    struct writer writer;
    ph_sink sink;
    ph_error error;
    unsigned failed = 0;

    (void)state;
    writer_init(&writer);
    writer_close(&writer);
    writer_remove(&writer);
    real_system = ph__system;
    for (ph_status status = PH_E_FILE; status != PH_OK; failed++) {
        ph__system.mkdir = failing_mkdir;
        ph__system.open = failing_open;
        ph__system.pwrite = failing_pwrite;
        ph__system.close = failing_close;
        calls_left = failed;
        status = ph_ctf_sink_open(writer.folder, &sink, &error);
        ph__system = real_system;
        if (status == PH_OK)
            break;
        assert_int_equal(status, PH_E_FILE);
        assert_has(error.message, writer.folder);
        assert_null(sink.close);
        assert_true(rmdir(writer.folder) == 0 || errno == ENOENT);
    }
    assert_int_equal(failed, 5);
    sink.close(sink.context);
    writer_remove(&writer);
}

static void wrong_arguments_are_refused(void **state) {
    ph_error error;
    ph_sink sink;

    (void)state;
    assert_int_equal(ph_ctf_sink_open("/tmp/x", NULL, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_ctf_sink_open(NULL, &sink, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_ctf_sink_open("", &sink, &error), PH_E_ARGUMENT);
    assert_null(sink.close);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_lost_is_counted),
        cmocka_unit_test(a_loss_at_the_very_end_is_counted),
        cmocka_unit_test(a_guest_cannot_make_up_a_loss),
        cmocka_unit_test(a_killed_process_leaves_a_readable_trace),
        cmocka_unit_test(it_is_readable_after_each_single_write),
        cmocka_unit_test(what_finds_no_room_is_counted_as_lost),
        cmocka_unit_test(a_folder_that_is_not_empty_is_refused),
        cmocka_unit_test(an_empty_folder_is_taken),
        cmocka_unit_test(a_failure_to_open_leaves_nothing_in_the_folder),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests_name("ctf_ends", tests, NULL, NULL);
}
