/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every call into the C library and the kernel that saving and loading make fails once, as in
 * test_failures.c: the old file stays or the new one is there, and nothing else is left behind, in the folder
 * or in the process.
 */
#include "snapshot_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/failing.h"

/* What one turn does. */
typedef ph_status attempt_fn(ph_image *image, ph_snapshot *snapshot, ph_error *error);

static ph_status save(ph_image *image, ph_snapshot *snapshot, ph_error *error) {
    (void)image;
    return ph_snapshot_save(snapshot, in_folder("saved"), error);
}

static ph_status load(ph_image *image, ph_snapshot_mode mode, ph_error *error) {
    ph_snapshot *loaded = NULL;
    ph_status status = ph_snapshot_load(image, in_folder("file"), mode, &loaded, error);

    assert_int_equal(loaded != NULL, status == PH_OK);
    if (loaded && mode == PH_SNAPSHOT_MAP)
        status = ph_snapshot_verify(loaded, error);
    ph_snapshot_close(loaded);
    return status;
}

static ph_status map(ph_image *image, ph_snapshot *snapshot, ph_error *error) {
    (void)snapshot;
    return load(image, PH_SNAPSHOT_MAP, error);
}

static ph_status copy(ph_image *image, ph_snapshot *snapshot, ph_error *error) {
    (void)snapshot;
    return load(image, PH_SNAPSHOT_COPY, error);
}

static ph_status examine(ph_image *image, ph_snapshot *snapshot, ph_error *error) {
    ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;

    (void)image;
    (void)snapshot;
    return ph_snapshot_examine(in_folder("file"), true, &info, error);
}

/* Advice may be ignored, and so may what frees things. */
static bool is_harmless(const char *failed) {
    return strcmp(failed, "madvise") == 0 || strcmp(failed, "munmap") == 0 || strcmp(failed, "close") == 0;
}

/* Fails the 1st call, the 2nd, and so on. Gives how many there are. */
static unsigned fail_each(attempt_fn *attempt, ph_image *image, ph_snapshot *snapshot) {
    const unsigned descriptors = failing_descriptors();
    const size_t files = folder_count();

    for (unsigned at = 1;; at++) {
        ph_error error = {0};
        failing = (struct failing){.at = at};
        ph_status status = attempt(image, snapshot, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        assert_int_equal(failing_descriptors(), descriptors);
        assert_int_equal(folder_count(), files);
        if (!failed) {
            assert_int_equal(status, PH_OK);
            return at - 1;
        }
        if (status == PH_OK && !is_harmless(failed))
            fail_msg("call %u, %s, is not missed", at, failed);
        if (status != PH_OK && (error.status != status || error.message[0] == 0))
            fail_msg("call %u, %s: status %s without its error", at, failed, ph_status_kind(status));
        if (status == PH_E_SNAPSHOT)
            fail_msg("call %u, %s: the file is blamed", at, failed);
    }
}

static ph_snapshot *taken(ph_image *image) {
    ph_sandbox *sandbox = test_sandbox(image, &small_config);
    ph_snapshot *snapshot = NULL;

    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    counted(sandbox);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    ph_sandbox_destroy(sandbox);
    return snapshot;
}

static void a_save_that_fails_leaves_the_old_file(void **state) {
    ph_error error;
    size_t size, after_size;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_snapshot *snapshot = taken(image);
    snapshot_file_make(image, "saved", 40);
    uint8_t *before = file_take(in_folder("saved"), &size);
    for (unsigned at = 1;; at++) {
        failing = (struct failing){.at = at};
        ph_status status = save(image, snapshot, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        uint8_t *after = file_take(in_folder("saved"), &after_size);
        bool same = size == after_size && memcmp(before, after, size) == 0;
        free(after);
        /* The folder's fsync comes when the new file is there. */
        if (status != PH_OK && !same && strcmp(failed, "fsync") != 0)
            fail_msg("call %u, %s: the old file is gone", at, failed);
        if (!same)
            snapshot_file_make(image, "saved", 40);
        if (!failed)
            break;
        free(before);
        before = file_take(in_folder("saved"), &size);
    }
    free(before);
    ph_snapshot *loaded = snapshot_load(image, "saved", PH_SNAPSHOT_COPY);
    ph_snapshot_close(loaded);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

static void every_failing_call_has_a_status_and_leaves_nothing_behind(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    snapshot_file_make(image, "file", 1);
    ph_snapshot *snapshot = taken(image);
    assert_int_equal(ph_snapshot_save(snapshot, in_folder("saved"), NULL), PH_OK);
    assert_true(fail_each(save, image, snapshot) > 20);
    assert_true(fail_each(map, image, snapshot) > 10);
    assert_true(fail_each(copy, image, snapshot) > 10);
    assert_true(fail_each(examine, image, snapshot) >= 4);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

static void transfers_in_pieces_come_to_the_same(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_snapshot *snapshot = taken(image);
    for (int kind = 0; kind < 2; kind++) {
        failing = (struct failing){.short_transfers = kind == 0, .interrupted_transfers = kind == 1};
        assert_int_equal(ph_snapshot_save(snapshot, in_folder("saved"), NULL), PH_OK);
        ph_snapshot *loaded = snapshot_load(image, "saved", PH_SNAPSHOT_COPY);
        failing = (struct failing){0};
        ph_sandbox *sandbox = sandbox_from(loaded, NULL);
        assert_int_equal(counted(sandbox), 2);
        ph_sandbox_destroy(sandbox);
        ph_snapshot_close(loaded);
    }
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

/* The size that a file has when it is opened is not what can be read of it. */
static void a_file_that_shrinks_while_it_is_loaded_is_cut_off(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    size_t size;
    snapshot_file_make(image, "file", 1);
    uint8_t *bytes = file_take(in_folder("file"), &size);
    const struct ph__snapshot_head head = file_head(bytes);
    const uint64_t data = ph__snapshot_data_offset(&head);
    const size_t sizes[] = {PH__SNAPSHOT_HEAD_SIZE, data - 1, data, data + 4095};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        file_put(in_folder("file"), bytes, sizes[i]);
        failing = (struct failing){.file_grows_by = size - sizes[i]};
        assert_load_refused(image, "file", "cut off within its");
        failing = (struct failing){0};
    }
    free(bytes);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_has_a_status_and_leaves_nothing_behind),
        cmocka_unit_test(a_save_that_fails_leaves_the_old_file),
        cmocka_unit_test(transfers_in_pieces_come_to_the_same),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_loaded_is_cut_off),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
