/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What tests of snapshots' files share (snapshot_files.h).
 */
#include "snapshot_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const ph_config small_config = {
    .size = sizeof small_config, .memory = 12ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

static char folder[] = "/tmp/pinhole-test-snapshot-XXXXXX";
static char path[256];

int folder_make(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

int folder_remove(void **state) {
    (void)state;
    DIR *list = opendir(folder);

    if (!list)
        return -1;
    /* The stream is this thread's own. */
    /* cppcheck-suppress readdirCalled */
    for (const struct dirent *entry; (entry = readdir(list));)
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
    return rmdir(folder);
}

size_t folder_count(void) {
    DIR *list = opendir(folder);
    size_t count = 0;

    assert_non_null(list);
    /* cppcheck-suppress readdirCalled */
    while (readdir(list))
        count++;
    closedir(list);
    return count - 2;
}

const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

uint8_t *file_take(const char *from, size_t *size) {
    FILE *file = fopen(from, "rbe");

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

void file_put(const char *to, const uint8_t *bytes, size_t size) {
    FILE *file = fopen(to, "wbe");

    assert_non_null(file);
    if (size)
        assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

struct ph__snapshot_head file_head(const uint8_t *bytes) {
    struct ph__snapshot_head head;
    const uint64_t all = UINT64_MAX;

    /* Of a size that it does not have: it is read all the same. */
    ph__snapshot_head_decode(bytes, PH__SNAPSHOT_HEAD_SIZE, all, &head, NULL);
    return head;
}

void file_seal(uint8_t *bytes, const struct ph__snapshot_head *head) {
    struct ph__snapshot_head copy = *head;

    ph__snapshot_head_encode(&copy, bytes);
    ph__snapshot_digest(bytes, bytes + PH__SNAPSHOT_HEAD_SIZE, ph__snapshot_tables_size(head), copy.digest);
    ph__snapshot_head_encode(&copy, bytes);
}

ph_value called(ph_sandbox *sandbox, const char *name, const ph_value *args, size_t count) {
    ph_value result;

    test_status(sandbox, test_call(sandbox, sandbox->image, name, args, count, &result), PH_OK);
    return result;
}

uint32_t counted(ph_sandbox *sandbox) {
    return called(sandbox, "count", NO_ARGS).u32;
}

void snapshot_file_make(ph_image *image, const char *name, uint32_t count) {
    ph_sandbox *sandbox = test_sandbox(image, &small_config);
    ph_snapshot *snapshot = NULL;
    ph_error error;

    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    called(sandbox, "change", ARGS(U32(0)));
    for (uint32_t i = 0; i < count; i++)
        counted(sandbox);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    if (ph_snapshot_save(snapshot, in_folder(name), &error) != PH_OK)
        fail_msg("saving a snapshot: %s", error.message);
    ph_snapshot_close(snapshot);
    ph_sandbox_destroy(sandbox);
}

ph_snapshot *snapshot_load(ph_image *image, const char *name, ph_snapshot_mode mode) {
    ph_snapshot *snapshot = NULL;
    ph_error error;

    if (ph_snapshot_load(image, in_folder(name), mode, &snapshot, &error) != PH_OK)
        fail_msg("loading a snapshot: %s", error.message);
    assert_non_null(snapshot);
    return snapshot;
}

ph_sandbox *sandbox_from(ph_snapshot *snapshot, const ph_config *config) {
    ph_config with_limit = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;

    with_limit.timeout_ns = TEST_TIMEOUT_NS;
    if (ph_sandbox_create_from(snapshot, config ? config : &with_limit, &sandbox, &error) != PH_OK)
        fail_msg("creating from a snapshot: %s", error.message);
    return sandbox;
}

void assert_load_refused(ph_image *image, const char *name, const char *why) {
    for (int mode = PH_SNAPSHOT_MAP; mode <= PH_SNAPSHOT_COPY; mode++) {
        ph_snapshot *snapshot = (ph_snapshot *)1;
        ph_error error = {0};
        ph_status status =
            ph_snapshot_load(image, in_folder(name), (ph_snapshot_mode)mode, &snapshot, &error);
        if (status != PH_E_SNAPSHOT || error.status != status || !strstr(error.message, why))
            fail_msg("%s with '%s', and not refused with '%s'", ph_status_kind(status), error.message, why);
        assert_null(snapshot);
    }
}
