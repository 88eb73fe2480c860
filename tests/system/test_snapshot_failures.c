/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every system call and allocation that a snapshot's life makes fails once, as in
 * test_failures.c: a snapshot that cannot be taken leaves the sandbox as it was, a restore that fails
 * half-way leaves it broken, and nothing stays behind.
 */
#include "failing_life.h"

#include <string.h>

#include <pinhole/snapshot.h>

static ph_status count(ph_sandbox *sandbox, ph_image *image, uint32_t wanted) {
    ph_value result;
    ph_status status = ph_call(sandbox, ph_image_find_export(image, "count"), NULL, 0, &result);

    if (status == PH_OK)
        assert_int_equal(result.u32, wanted);
    return status;
}

/* Takes a snapshot and restores it, in (sandbox) and in one that is made of it. Gives the first status that
 * is not PH_OK, its error in (error). */
static ph_status live(ph_sandbox *sandbox, ph_image *image, ph_error *error) {
    const ph_value salt = {.type = PH_U32, .u32 = 3};
    ph_snapshot *snapshot = NULL;
    ph_sandbox *other = NULL;
    ph_status status = ph_snapshot_take(sandbox, &snapshot);

    if (status != PH_OK) {
        *error = *ph_sandbox_error(sandbox);
        assert_null(snapshot);
        assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_READY);
        return status;
    }
    status = ph_call(sandbox, ph_image_find_export(image, "change"), &salt, 1, NULL);
    if (status == PH_OK)
        status = ph_sandbox_restore(sandbox, snapshot);
    if (status == PH_OK)
        status = count(sandbox, image, 1);
    if (status == PH_OK) /* for the next turn */
        status = ph_sandbox_restore(sandbox, snapshot);
    *error = *ph_sandbox_error(sandbox);
    if (status == PH_OK) {
        status = ph_sandbox_create_from(snapshot, NULL, &other, error);
        if (status == PH_OK) {
            status = count(other, image, 1);
            if (status == PH_OK)
                status = ph_sandbox_restore(other, snapshot);
            if (status != PH_OK)
                *error = *ph_sandbox_error(other);
        } else {
            assert_null(other);
        }
    }
    ph_sandbox_destroy(other);
    ph_snapshot_close(snapshot);
    return status;
}

/* Every call of a snapshot's life is failed with (how), but for its number. */
static void fail_every_call(struct failing how) {
    ph_error error;
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *sandbox = test_sandbox(image, NULL);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    assert_int_equal(live(sandbox, image, &error), PH_OK);
    unsigned descriptors = 0, mappings = 0;
    for (how.at = 1;; how.at++) {
        ph_sandbox_destroy(sandbox);
        sandbox = test_sandbox(image, NULL);
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        if (how.at == 1) {
            descriptors = failing_descriptors();
            mappings = failing_mappings();
        }
        memset(&error, 0, sizeof error);
        failing = how;
        ph_status status = live(sandbox, image, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_true(how.at > 20);
            break;
        }
        failing_life_check(how.at, failed, status, &error);
        /* The sandbox serves, or says that it does not; it may have what it needs for its next restore. */
        ph_state now = ph_sandbox_state(sandbox);
        ph_status next = count(sandbox, image, 1);
        if (now == PH_STATE_READY ? next != PH_OK : next != PH_E_BROKEN)
            fail_msg("call %u, %s: state %d, then status %s", how.at, failed, (int)now, ph_status_kind(next));
        ph_sandbox_destroy(sandbox);
        sandbox = NULL;
        assert_in_range(failing_descriptors(), 0, descriptors);
        /* What the kernel has refused to unmap stays, for want of another way. */
        if (strcmp(failed, "munmap") == 0)
            mappings = failing_mappings();
        assert_in_range(failing_mappings(), 0, mappings + 1); /* malloc may have grown */
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void every_failing_call_has_a_status_and_leaves_nothing_behind(void **state) {
    static const char *const names[] = {
        "calloc",       "close", "fcntl",  "ftruncate",       "getrandom", "madvise", "malloc",
        "memfd_create", "mmap",  "munmap", "pthread_sigmask", "pwrite",    "realloc",
    };
    static const char *const kvm_names[] = {"KVM_RUN", "ioctl", "open"};

    (void)state;
    test_needs_kvm();
    fail_every_call((struct failing){0});
    failing_life_check_reached(names, sizeof names / sizeof names[0]);
    if (!test_is_soft())
        failing_life_check_reached(kvm_names, sizeof kvm_names / sizeof kvm_names[0]);
}

static void so_it_is_where_the_kernel_cannot_scan_pages(void **state) {
    static const char *const names[] = {"pread"};

    (void)state;
    test_needs_kvm();
    fail_every_call((struct failing){.no_page_scan = true, .closes_fail = true});
    failing_life_check_reached(names, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_has_a_status_and_leaves_nothing_behind),
        cmocka_unit_test(so_it_is_where_the_kernel_cannot_scan_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
