/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What restores leave behind: nothing, however often and whatever the guest before did - neither in this
 * process, nor in the files of memory behind a sandbox, nor as work for the restores that follow.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pinhole/snapshot.h>
#include <pinhole/trace.h>

#include "sandbox/snapshot.h"
#include "support/traced.h"

static const ph_config small = {.size = sizeof small, .memory = 12ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

static ph_status call(ph_sandbox *sandbox, const char *name, const ph_value *args, size_t count) {
    return test_call(sandbox, sandbox->image, name, args, count, NULL);
}

static ph_snapshot *take(ph_sandbox *sandbox) {
    ph_snapshot *snapshot = NULL;

    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    return snapshot;
}

static void restore(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
}

/* What the process holds. */
struct holdings {
    unsigned descriptors;
    unsigned mappings;
    size_t allocated;   /* bytes, by malloc */
    uint64_t resident;  /* KiB */
    uint64_t file_size; /* blocks of 512 bytes, of images and snapshots */
    uint64_t shared;    /* KiB resident of what is shared with the guest */
};

/* Sums up /proc/self/smaps. */
static void mappings_get(struct holdings *holdings) {
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    bool counts = false;

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char permissions[5] = "";
        if (sscanf(line, "%*[0-9a-f]-%*[0-9a-f] %4s", permissions) == 1) {
            holdings->mappings++;
            counts = permissions[3] == 's' && strstr(line, "/memfd:pinhole-shared");
        } else if (strncmp(line, "Rss:", 4) == 0) {
            holdings->resident += strtoull(line + 4, NULL, 10);
        } else if (strncmp(line, "Pss:", 4) == 0 && counts) { /* mapped twice, and counted once */
            holdings->shared += strtoull(line + 4, NULL, 10);
        }
    }
    fclose(file);
}

static struct holdings holdings_get(void) {
    struct holdings holdings = {.allocated = mallinfo2().uordblks};
    DIR *folder = opendir("/proc/self/fd");

    assert_non_null(folder);
    /* cppcheck-suppress readdirCalled ; no other thread has this folder */
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char link[64] = "";
        struct stat info;
        holdings.descriptors++;
        if (readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1) > 0 &&
            strncmp(link, "/memfd:", 7) == 0 && !strstr(link, "pinhole-shared") &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0)
            holdings.file_size += (uint64_t)info.st_blocks;
    }
    closedir(folder);
    mappings_get(&holdings);
    return holdings;
}

/* A tenth of PH_TEST_CALLS, which is 1000000 in `soak`: restores take longer than calls. */
static unsigned turns_wanted(void) {
    const char *wanted = getenv("PH_TEST_CALLS");

    return wanted ? (unsigned)strtoul(wanted, NULL, 10) / 10 : test_scaled(2000);
}

static void restores_of_poisoned_guests_leak_nothing(void **state) {
    static const char *const ends[] = {"undefined", "null_write", "give_up",       "leave",
                                       "kill_self", "abort_libc", "stack_overflow"};
    const unsigned turns = turns_wanted();
    struct holdings before = {0};

    (void)state;
    test_needs_kvm();
    holdings_get(); /* what asking costs, malloc keeps */
    ph_sandbox *first = test_started("snapshot", &small);
    ph_snapshot *snapshot = take(first);
    ph_sandbox *second = NULL;
    ph_error error;
    assert_int_equal(ph_sandbox_create_from(snapshot, NULL, &second, &error), PH_OK);
    for (unsigned turn = 0; turn < turns; turn++) {
        ph_sandbox *sandbox = turn % 2 ? first : second;
        if (turn % 16 == 0)
            test_status(sandbox, call(sandbox, "change", ARGS(U32(turn))), PH_OK);
        if (turn % 256 < 2 || turn < 8) /* the largest first, for which lists have to grow */
            test_status(sandbox, call(sandbox, "greedy", ARGS(U32(1500))), PH_OK);
        assert_true(call(sandbox, ends[turn < 8 ? 6 : turn % 7], NO_ARGS) < 0);
        assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
        restore(sandbox, snapshot);
        if (turn == turns / 2)
            before = holdings_get();
    }
    struct holdings after = holdings_get();
    assert_int_equal(after.descriptors, before.descriptors);
    assert_int_equal(after.mappings, before.mappings);
    if (test_is_soft())
        assert_true(after.allocated < before.allocated + (size_t)TEST_UNICORN_FORGETS * turns);
    else
        assert_int_equal(after.allocated, before.allocated);
    assert_int_equal(after.file_size, before.file_size);
    assert_int_equal(after.shared, before.shared);
    assert_in_range(after.resident, 0, before.resident + 2048);
    ph_sandbox_destroy(first);
    ph_sandbox_destroy(second);
    ph_snapshot_close(snapshot);
}

/* The first 16 KiB of three boxes and of the trace ring stay once they are there. */
#define SHARED_KEPT_KIB 64u

/* The guest reads all that it can, and the restore comes. Pages of files of memory that it was the first to
 * touch do not stay; content of image and snapshot does not grow even while it runs. */
static void read_all_and_restore(ph_sandbox *sandbox, ph_snapshot *snapshot) {
    restore(sandbox, snapshot);
    struct holdings before = holdings_get();
    test_status(sandbox, call(sandbox, "read_all", NO_ARGS), PH_OK);
    struct holdings during = holdings_get();
    assert_int_equal(during.file_size, before.file_size);
    assert_true(during.shared > before.shared + 1024); /* the test sees what it means to */
    restore(sandbox, snapshot);
    struct holdings after = holdings_get();
    assert_int_equal(after.file_size, before.file_size);
    assert_in_range(after.shared, 0, before.shared + SHARED_KEPT_KIB);
}

static void reading_all_memory_grows_no_file_that_outlives_the_guest(void **state) {
    ph_tracer *tracer = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    assert_int_equal(ph_tracer_create(NULL, &tracer, &error), PH_OK);
    for (int traced = 0; traced < 2; traced++) {
        ph_config config = small;
        config.tracer = traced ? tracer : NULL;
        struct holdings before = holdings_get();
        ph_sandbox *first = test_started("hostile_tenant", &config);
        ph_snapshot *snapshot = take(first);
        for (int turn = 0; turn < 6; turn++) /* laid on the snapshot on the way */
            read_all_and_restore(first, snapshot);
        ph_sandbox_destroy(first);
        ph_sandbox *second = NULL;
        assert_int_equal(ph_sandbox_create_from(snapshot, &config, &second, &error), PH_OK);
        for (int turn = 0; turn < 2; turn++)
            read_all_and_restore(second, snapshot);
        test_status(second, call(second, "read_all", NO_ARGS), PH_OK);
        ph_sandbox_destroy(second);
        ph_snapshot_close(snapshot);
        struct holdings after = holdings_get();
        assert_int_equal(after.file_size, before.file_size);
        assert_int_equal(after.shared, before.shared);
        assert_int_equal(after.descriptors, before.descriptors);
    }
    ph_tracer_destroy(tracer);
}

/* Pages that the next restore will have to look at. */
static size_t pages_to_look_at(ph_sandbox *sandbox) {
    struct ph__page_list list = {0};
    ph_error error;

    assert_int_equal(ph__private_pages_scan(&sandbox->memory, false, &list, &error), PH_OK);
    free(list.pages);
    return list.count;
}

/* What the allocator may keep of lists of 65,536 pages; AddressSanitizer's keeps what is freed in quarantine.
 */
#ifdef __SANITIZE_ADDRESS__
#define FREED_KIB 8192u
#else
#define FREED_KIB 1024u
#endif

static void a_call_that_dirtied_256_mib_does_not_tax_later_restores(void **state) {
    const uint32_t pages = test_scaled(65536);
    ph_config config = small;

    (void)state;
    test_needs_kvm();
    config.memory = 320ull << 20;
    ph_sandbox *first = test_started("snapshot", &config);
    ph_snapshot *snapshot = take(first);
    ph_sandbox *sandboxes[] = {first, NULL};
    ph_error error;
    assert_int_equal(ph_sandbox_create_from(snapshot, NULL, &sandboxes[1], &error), PH_OK);
    for (int i = 0; i < 2; i++) {
        ph_sandbox *sandbox = sandboxes[i];
        struct holdings before = {0}, after;
        size_t usual = 0;
        for (int turn = 0; turn < 6; turn++) {
            test_status(sandbox, call(sandbox, "change", ARGS(U32(1))), PH_OK);
            usual = pages_to_look_at(sandbox);
            restore(sandbox, snapshot);
            before = holdings_get();
        }
        test_status(sandbox, call(sandbox, "greedy", ARGS(U32(pages))), PH_OK);
        assert_true(pages_to_look_at(sandbox) > pages);
        restore(sandbox, snapshot);
        test_status(sandbox, call(sandbox, "change", ARGS(U32(1))), PH_OK);
        size_t next = pages_to_look_at(sandbox);
        restore(sandbox, snapshot);
        after = holdings_get();
        assert_in_range(next, 0, usual + usual / 5);
        assert_in_range(after.resident, 0, before.resident + FREED_KIB);
    }
    ph_sandbox_destroy(sandboxes[0]);
    ph_sandbox_destroy(sandboxes[1]);
    ph_snapshot_close(snapshot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restores_of_poisoned_guests_leak_nothing),
        cmocka_unit_test(reading_all_memory_grows_no_file_that_outlives_the_guest),
        cmocka_unit_test(a_call_that_dirtied_256_mib_does_not_tax_later_restores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
