/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Files of snapshots that are damaged, cut off, or cut while they are in use: whatever is wrong has a status,
 * and the host goes on. Where only pages are wrong and nobody has looked (map mode before a verification), a
 * guest may do anything that a hostile one could.
 */
#include "snapshot_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinhole/pool.h>

/* A file of a guest that has counted to 1, as bytes. */
struct sample {
    ph_image *image;
    uint8_t *bytes;
    size_t size;
    struct ph__snapshot_head head;
};

static struct sample begin(void) {
    struct sample sample = {.image = test_image("snapshot-musl")};

    snapshot_file_make(sample.image, "file", 1);
    sample.bytes = file_take(in_folder("file"), &sample.size);
    sample.head = file_head(sample.bytes);
    assert_int_equal(sample.size, ph__snapshot_file_size(&sample.head));
    return sample;
}

static void end(struct sample *sample) {
    free(sample->bytes);
    ph_image_close(sample->image);
}

static void a_file_that_is_cut_off_anywhere_is_refused(void **state) {
    (void)state;
    test_needs_kvm();
    struct sample sample = begin();
    const uint64_t tables = PH__SNAPSHOT_HEAD_SIZE + ph__snapshot_tables_size(&sample.head);
    const uint64_t data = ph__snapshot_data_offset(&sample.head);
    const uint64_t edges[] = {
        0,          1, 8, 512, 4096, PH__SNAPSHOT_HEAD_SIZE, tables, data, data + 4096, sample.size - 4096,
        sample.size};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        for (uint64_t near = 0; near < 3; near++) {
            uint64_t size = edges[i] + near - 1;
            if (size >= sample.size)
                continue;
            file_put(in_folder("cut"), sample.bytes, size);
            assert_load_refused(sample.image, "cut", "");
            ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;
            assert_int_equal(ph_snapshot_examine(in_folder("cut"), false, &info, NULL), PH_E_SNAPSHOT);
        }
    end(&sample);
}

/* Holes cost nothing: a small file could have the host read gigabytes. */
static void tables_that_no_guest_has_are_not_even_read(void **state) {
    (void)state;
    test_needs_kvm();
    struct sample sample = begin();
    struct ph__snapshot_head head = sample.head;
    for (int which = 0; which < 2; which++) {
        head.page_count = which ? 1ull << 28 : 0;
        head.protection_count = which ? 0 : 1ull << 28;
        head.file_size = ph__snapshot_file_size(&head);
        ph__snapshot_head_encode(&head, sample.bytes);
        file_put(in_folder("holes"), sample.bytes, PH__SNAPSHOT_HEAD_SIZE);
        assert_int_equal(truncate(in_folder("holes"), (off_t)head.file_size), 0);
        assert_load_refused(sample.image, "holes", "tables are larger than those of any guest");
    }
    end(&sample);
}

/* The unit tests flip each bit of head and tables; here some of them in a file. */
static void bits_that_flip_before_the_pages_are_found_in_both_modes(void **state) {
    (void)state;
    test_needs_kvm();
    struct sample sample = begin();
    const uint64_t data = ph__snapshot_data_offset(&sample.head);
    int file = open(in_folder("file"), O_WRONLY);
    assert_true(file >= 0);
    for (uint64_t i = 0; i < data; i += i < 600 ? 1 : 151) {
        uint8_t byte = sample.bytes[i] ^ (uint8_t)(1u << i % 8);
        assert_int_equal(pwrite(file, &byte, 1, (off_t)i), 1);
        assert_load_refused(sample.image, "file", "");
        assert_int_equal(pwrite(file, &sample.bytes[i], 1, (off_t)i), 1);
    }
    close(file);
    ph_snapshot_close(snapshot_load(sample.image, "file", PH_SNAPSHOT_COPY));
    end(&sample);
}

/* Runs what is in a file whose pages may be anything. */
static void run_hostile(ph_snapshot *snapshot) {
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;

    config.timeout_ns = 2000000000ull; /* a guest may well loop */
    if (ph_sandbox_create_from(snapshot, &config, &sandbox, &error) != PH_OK)
        fail_msg("%s", error.message);
    for (int turn = 0; turn < 2; turn++) {
        ph_value result;
        (void)test_call(sandbox, sandbox->image, "count", NO_ARGS, &result);
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
    }
    ph_sandbox_destroy(sandbox);
}

static void bits_that_flip_in_pages_are_found_where_somebody_looks(void **state) {
    (void)state;
    test_needs_kvm();
    struct sample sample = begin();
    const uint64_t data = ph__snapshot_data_offset(&sample.head);
    int file = open(in_folder("file"), O_WRONLY);
    assert_true(file >= 0);
    for (uint64_t i = data; i < sample.size; i += sample.size / 23) {
        uint8_t byte = sample.bytes[i] ^ (uint8_t)(1u << i % 8);
        ph_snapshot *snapshot = NULL;
        ph_snapshot_info info = PH_SNAPSHOT_INFO_INIT;
        ph_error error;
        assert_int_equal(pwrite(file, &byte, 1, (off_t)i), 1);
        assert_int_equal(
            ph_snapshot_load(sample.image, in_folder("file"), PH_SNAPSHOT_COPY, &snapshot, &error),
            PH_E_SNAPSHOT);
        assert_non_null(strstr(error.message, "its pages are not what their digest says"));
        assert_int_equal(ph_snapshot_examine(in_folder("file"), false, &info, &error), PH_OK);
        assert_int_equal(ph_snapshot_examine(in_folder("file"), true, &info, &error), PH_E_SNAPSHOT);
        assert_int_equal(info.pages, sample.head.page_count);
        snapshot = snapshot_load(sample.image, "file", PH_SNAPSHOT_MAP);
        assert_int_equal(ph_snapshot_verify(snapshot, &error), PH_E_SNAPSHOT);
        run_hostile(snapshot);
        ph_snapshot_close(snapshot);
        assert_int_equal(pwrite(file, &sample.bytes[i], 1, (off_t)i), 1);
    }
    close(file);
    ph_snapshot *snapshot = snapshot_load(sample.image, "file", PH_SNAPSHOT_MAP);
    assert_int_equal(ph_snapshot_verify(snapshot, NULL), PH_OK);
    ph_snapshot_close(snapshot);
    end(&sample);
}

/* Pages of noise, the monitor's data among them. */
static void pages_of_noise_harm_the_guest_alone(void **state) {
    (void)state;
    test_needs_kvm();
    struct sample sample = begin();
    uint64_t random = 0x9e3779b97f4a7c15;
    for (int turn = 0; turn < 6; turn++) {
        for (size_t i = ph__snapshot_data_offset(&sample.head); i < sample.size; i++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            sample.bytes[i] = turn == 0 ? 0xff : turn == 1 ? 0 : (uint8_t)(random >> 56);
        }
        file_put(in_folder("noise"), sample.bytes, sample.size);
        ph_snapshot *snapshot = snapshot_load(sample.image, "noise", PH_SNAPSHOT_MAP);
        run_hostile(snapshot);
        ph_snapshot_close(snapshot);
    }
    end(&sample);
}

static void cut(uint64_t size) {
    assert_int_equal(truncate(in_folder("file"), (off_t)size), 0);
}

/* Calls until the guest has met a page that is lost. */
static void assert_call_fails(ph_sandbox *sandbox) {
    ph_value result;
    ph_status status = test_call(sandbox, sandbox->image, "change", ARGS(U32(1)), &result);

    test_status(sandbox, status, PH_E_PAGE_FAULT);
    assert_non_null(strstr(ph_sandbox_error(sandbox)->message, "snapshot's file, now shorter, has lost"));
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
}

static void a_file_that_is_cut_while_it_is_mapped_ends_calls_with_a_status(void **state) {
    (void)state;
    test_needs_kvm();
    test_not_on_soft("a file that becomes shorter is a SIGBUS of the emulator's");
    struct sample sample = begin();
    const uint64_t data = ph__snapshot_data_offset(&sample.head);
    const uint64_t sizes[] = {0, data, data + 8 * 4096, sample.size / 2 / 4096 * 4096};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int used = 0; used < 3; used++) {
            file_put(in_folder("file"), sample.bytes, sample.size);
            ph_snapshot *snapshot = snapshot_load(sample.image, "file", PH_SNAPSHOT_MAP);
            ph_sandbox *sandbox = sandbox_from(snapshot, NULL);
            ph_snapshot *other = NULL;
            ph_error error;
            for (int turn = 0; turn < used; turn++) {
                /* Twice the same: the second restore need not look for new pages. */
                called(sandbox, "change", ARGS(U32(1)));
                test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
                called(sandbox, "change", ARGS(U32(1)));
            }
            cut(sizes[i]);
            assert_int_equal(ph_snapshot_verify(snapshot, &error), PH_E_SNAPSHOT);
            assert_int_equal(ph_snapshot_save(snapshot, in_folder("saved"), &error), PH_E_FILE);
            assert_non_null(strstr(error.message, "has become shorter"));
            assert_int_not_equal(access(in_folder("saved"), F_OK), 0);
            ph_status status = ph_snapshot_take(sandbox, &other);
            if (status != PH_OK)
                test_status(sandbox, status, PH_E_FILE);
            assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_READY);
            if (used == 2)
                test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_E_FILE);
            if (ph_sandbox_state(sandbox) == PH_STATE_READY)
                assert_call_fails(sandbox);
            ph_snapshot_close(other);
            /* What needs nothing of the file heals it. */
            file_put(in_folder("whole"), sample.bytes, sample.size);
            other = snapshot_load(sample.image, "whole", PH_SNAPSHOT_COPY);
            test_status(sandbox, ph_sandbox_restore(sandbox, other), PH_OK);
            assert_int_equal(counted(sandbox), 2);
            ph_snapshot_close(other);
            ph_sandbox_destroy(sandbox);
            ph_snapshot_close(snapshot);
        }
    }
    end(&sample);
}

/* Cuts the file and makes it whole again, all the time. */
struct cutter {
    pthread_t thread;
    int file;
    size_t size;
    atomic_bool stop;
};

/* Who takes is told, and gets no sandbox whose guest cannot run. */
static void a_pool_on_a_file_that_was_cut_hands_nothing_out(void **state) {
    (void)state;
    test_needs_kvm();
    struct sample sample = begin();
    ph_pool *pool;
    ph_sandbox *sandbox;
    ph_error error;

    file_put(in_folder("file"), sample.bytes, sample.size);
    ph_snapshot *snapshot = snapshot_load(sample.image, "file", PH_SNAPSHOT_MAP);
    assert_int_equal(ph_pool_create(snapshot, NULL, &pool, &error), PH_OK);
    assert_int_equal(ph_pool_take(pool, 0, &sandbox, &error), PH_OK);
    cut(ph__snapshot_data_offset(&sample.head));
    ph_pool_give(pool, sandbox);
    ph_pool_stats stats = PH_POOL_STATS_INIT;
    assert_int_equal(ph_pool_stats_get(pool, &stats), PH_OK);
    while (stats.idle > 0) { /* made before, and not looked at since */
        assert_int_equal(ph_pool_take(pool, 0, &sandbox, &error), PH_OK);
        ph_pool_give(pool, sandbox);
        assert_int_equal(ph_pool_stats_get(pool, &stats), PH_OK);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ph_pool_take(pool, 0, &sandbox, &error), PH_E_FILE);
        assert_non_null(strstr(error.message, "has become shorter"));
    }
    ph_pool_destroy(pool);
    ph_snapshot_close(snapshot);
    end(&sample);
}

static void *cutter_run(void *context) {
    struct cutter *cutter = context;

    while (!atomic_load(&cutter->stop))
        if (ftruncate(cutter->file, 0) != 0 || ftruncate(cutter->file, (off_t)cutter->size) != 0)
            return context;
    return NULL;
}

static void a_file_that_is_cut_at_any_moment_is_no_end_of_the_host(void **state) {
    (void)state;
    test_needs_kvm();
    test_not_on_soft("a file that becomes shorter is a SIGBUS of the emulator's");
    struct sample sample = begin();
    ph_snapshot *whole = snapshot_load(sample.image, "file", PH_SNAPSHOT_COPY);
    unsigned turns = test_scaled(50);

    for (unsigned turn = 0; turn < turns; turn++) {
        file_put(in_folder("file"), sample.bytes, sample.size);
        struct cutter cutter = {.size = sample.size, .file = open(in_folder("file"), O_WRONLY)};
        ph_snapshot *snapshot = snapshot_load(sample.image, "file", PH_SNAPSHOT_MAP);
        ph_config config = PH_CONFIG_INIT;
        config.timeout_ns = 20000000; /* no call needs to come through */
        ph_sandbox *sandbox = sandbox_from(snapshot, &config);
        ph_value result;
        (void)test_call(sandbox, sample.image, "change", ARGS(U32(1)), &result);
        assert_int_equal(pthread_create(&cutter.thread, NULL, cutter_run, &cutter), 0);
        for (int i = 0; i < 3; i++) {
            ph_snapshot *other = NULL;
            (void)ph_sandbox_restore(sandbox, snapshot);
            (void)test_call(sandbox, sample.image, "change", ARGS(U32(1)), &result);
            (void)ph_snapshot_take(sandbox, &other);
            ph_snapshot_close(other);
            /* Another one begins on what is there now, or on nothing. */
            ph_sandbox *second = NULL;
            if (ph_sandbox_create_from(snapshot, &config, &second, NULL) == PH_OK)
                (void)test_call(second, sample.image, "count", NO_ARGS, &result);
            ph_sandbox_destroy(second);
        }
        atomic_store(&cutter.stop, true);
        void *failed;
        pthread_join(cutter.thread, &failed);
        assert_null(failed);
        test_status(sandbox, ph_sandbox_restore(sandbox, whole), PH_OK);
        ph_sandbox_destroy(sandbox);
        ph_snapshot_close(snapshot);
        close(cutter.file);
    }
    ph_sandbox *sandbox = sandbox_from(whole, NULL);
    assert_int_equal(counted(sandbox), 2);
    ph_sandbox_destroy(sandbox);
    ph_snapshot_close(whole);
    end(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_cut_off_anywhere_is_refused),
        cmocka_unit_test(tables_that_no_guest_has_are_not_even_read),
        cmocka_unit_test(bits_that_flip_before_the_pages_are_found_in_both_modes),
        cmocka_unit_test(bits_that_flip_in_pages_are_found_where_somebody_looks),
        cmocka_unit_test(pages_of_noise_harm_the_guest_alone),
        cmocka_unit_test(a_file_that_is_cut_while_it_is_mapped_ends_calls_with_a_status),
        cmocka_unit_test(a_pool_on_a_file_that_was_cut_hands_nothing_out),
        cmocka_unit_test(a_file_that_is_cut_at_any_moment_is_no_end_of_the_host),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
