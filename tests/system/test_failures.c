/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every system call and allocation that a sandbox's life makes fails once: the 1st, then the 2nd, until none
 * fails. Each time there is the right status with a message, or the call was one that is not needed; and
 * nothing stays behind.
 */
#include "failing_life.h"

#include <string.h>

/* Mappings that the allocator may add for itself; AddressSanitizer's keeps what is freed in quarantine. */
#ifdef __SANITIZE_ADDRESS__
#define MALLOC_GROWS 64
#else
#define MALLOC_GROWS 1
#endif

/* Every call of a life is failed with (how), but for its number. */
static void fail_every_call(FILE *file, struct failing how) {
    ph_error error;
    ph_image *image = test_image("loops");

    assert_int_equal(failing_life_live(image, file, &error), PH_OK); /* makes what a process makes once */
    const unsigned descriptors = failing_descriptors();
    unsigned mappings = failing_mappings();
    for (how.at = 1;; how.at++) {
        memset(&error, 0, sizeof error);
        failing = how;
        ph_status status = failing_life_live(image, file, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_true(how.at > 20);
            break;
        }
        failing_life_check(how.at, failed, status, &error);
        /* Elsewhere these may fail without harm, but not here. */
        if (strcmp(failed, "KVM_RUN") == 0 || strcmp(failed, "open") == 0 ||
            strcmp(failed, "pthread_sigmask") == 0)
            assert_int_not_equal(status, PH_OK);
        assert_int_equal(failing_descriptors(), descriptors);
        /* What the kernel has refused to unmap stays, for want of another way; nothing else does. */
        if (strcmp(failed, "munmap") == 0)
            mappings = failing_mappings();
        assert_in_range(failing_mappings(), 0, mappings + MALLOC_GROWS);
    }
    assert_int_equal(failing_life_live(image, file, &error), PH_OK);
    ph_image_close(image);
}

static void every_failing_call_has_a_status_and_leaves_nothing_behind(void **state) {
    static const char *const names[] = {
        "calloc", "close",    "fcntl",  "fstat",           "ftruncate", "getrandom", "madvise", "malloc",
        "mmap",   "mprotect", "munmap", "pthread_sigmask", "pwrite",    "sigaction", "strdup",
    };
    static const char *const kvm_names[] = {"KVM_RUN", "ioctl", "open"};

    (void)state;
    test_needs_kvm();
    fail_every_call(NULL, (struct failing){0});
    failing_life_check_reached(names, sizeof names / sizeof names[0]);
    if (!test_is_soft())
        failing_life_check_reached(kvm_names, sizeof kvm_names / sizeof kvm_names[0]);
}

/* A trace may miss what there was no memory for. */
static void so_it_is_with_a_trace(void **state) {
    static const char *const names[] = {"isatty", "realloc"};
    FILE *file = tmpfile();

    (void)state;
    test_needs_kvm();
    assert_non_null(file);
    fail_every_call(file, (struct failing){0});
    failing_life_check_reached(names, sizeof names / sizeof names[0]);
    fclose(file);
}

static void so_it_is_when_no_file_can_be_closed_properly(void **state) {
    (void)state;
    test_needs_kvm();
    fail_every_call(NULL, (struct failing){.closes_fail = true});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_has_a_status_and_leaves_nothing_behind),
        cmocka_unit_test(so_it_is_with_a_trace),
        cmocka_unit_test(so_it_is_when_no_file_can_be_closed_properly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
