/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every call into the C library and the kernel that a snapshot's life makes fails once, as in
 * test_failures.c: a snapshot that cannot be taken leaves the sandbox as it was, a restore that fails
 * half-way leaves it broken, and nothing stays behind.
 */
#include "support/failing.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include <pinhole/snapshot.h>

static unsigned count_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "re");
    unsigned count = 0;

    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        count += c == '\n';
    fclose(file);
    return count;
}

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

static void every_failing_call_has_a_status_and_leaves_nothing_behind(void **state) {
    ph_error error;

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("snapshot-musl");
    ph_sandbox *sandbox = test_sandbox(image, NULL);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    assert_int_equal(live(sandbox, image, &error), PH_OK);
    unsigned descriptors = 0, mappings = 0;
    for (unsigned at = 1;; at++) {
        ph_sandbox_destroy(sandbox);
        sandbox = test_sandbox(image, NULL);
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        if (at == 1) {
            descriptors = failing_descriptors();
            mappings = count_mappings();
        }
        memset(&error, 0, sizeof error);
        failing = (struct failing){.at = at};
        ph_status status = live(sandbox, image, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_true(at > 20);
            break;
        }
        if (status != PH_OK && (error.status != status || error.message[0] == 0))
            fail_msg("call %u, %s: status %s without its error", at, failed, ph_status_kind(status));
        /* The sandbox serves, or says that it does not; it may have what it needs for its next restore. */
        ph_state now = ph_sandbox_state(sandbox);
        ph_status next = count(sandbox, image, 1);
        if (now == PH_STATE_READY ? next != PH_OK : next != PH_E_BROKEN)
            fail_msg("call %u, %s: state %d, then status %s", at, failed, (int)now, ph_status_kind(next));
        ph_sandbox_destroy(sandbox);
        sandbox = NULL;
        assert_in_range(failing_descriptors(), 0, descriptors);
        assert_in_range(count_mappings(), 0, mappings + 1); /* malloc may have grown */
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_has_a_status_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
