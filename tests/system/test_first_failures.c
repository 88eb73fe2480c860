/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a process makes once (what it knows of KVM, the timer's thread, the page that notices a fork) fails
 * like the rest: every call that the first image, tracer and sandbox of a process make fails once, each in a
 * process of its own. The next sandbox of that process then lives, with all that it needs.
 */
#include "failing_life.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pinhole/trace.h>

/* How a child ends; any other way is a failed assertion in it. */
enum { ALL_WENT_WELL = 10, ONE_FAILED, HAS_NO_KVM };

/* Where a child says which call failed: its strings are at the same addresses. */
static const char **failed_in_child;

/* Starts and stops a tracer's thread as well. */
static ph_status live_first(const char *path, ph_error *error) {
    ph_image *image = NULL;
    ph_tracer *tracer = NULL;
    ph_status status = ph_image_open(path, 0, &image, error);

    if (status == PH_OK)
        status = ph_tracer_create(NULL, &tracer, error);
    if (status == PH_OK)
        status = failing_life_live(image, NULL, error);
    ph_tracer_destroy(tracer);
    ph_image_close(image);
    return status;
}

static void live_in_child(const char *path, unsigned at) {
    const unsigned descriptors = failing_descriptors();
    ph_error error = {0};
    sigset_t none;

    failing = (struct failing){.at = at};
    ph_status status = live_first(path, &error);
    const char *failed = failing.failed;
    failing = (struct failing){0};
    *failed_in_child = failed;
    if (!failed && status == PH_E_BACKEND)
        _exit(HAS_NO_KVM);
    if (!failed) {
        assert_int_equal(status, PH_OK);
        _exit(ALL_WENT_WELL);
    }
    failing_life_check(at, failed, status, &error);
    assert_int_equal(failing_descriptors(), descriptors);
    /* As in failing_life.c. */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    status = live_first(path, &error);
    if (status != PH_OK)
        fail_msg("call %u, %s: the life behind it ends with %s: %s", at, failed, ph_status_kind(status),
                 error.message);
    _exit(ONE_FAILED);
}

static void every_first_call_may_fail_and_the_next_life_has_what_it_needs(void **state) {
    static const char *const needed[] = {"madvise",         "mmap", "open",  "pthread_create",
                                         "pthread_sigmask", "read", "access"};
    /* The last is about KVM. */
    const size_t needed_count = sizeof needed / sizeof needed[0] - test_is_soft();
    bool seen[sizeof needed / sizeof needed[0]] = {false};
    const char *path = test_guest_path("loops");
    int end = 0;

    (void)state;
    failed_in_child =
        mmap(NULL, sizeof *failed_in_child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(failed_in_child != MAP_FAILED);
    for (unsigned at = 1; end != ALL_WENT_WELL; at++) {
        fflush(NULL);
        pid_t child = fork();
        assert_int_not_equal(child, -1);
        if (child == 0)
            live_in_child(path, at);
        assert_int_equal(waitpid(child, &end, 0), child);
        assert_true(WIFEXITED(end));
        end = WEXITSTATUS(end);
        if (end == HAS_NO_KVM)
            test_needs_kvm();
        if (end != ONE_FAILED && end != ALL_WENT_WELL)
            fail_msg("call %u: see above", at);
        for (size_t i = 0; i < needed_count && *failed_in_child; i++)
            seen[i] |= strcmp(needed[i], *failed_in_child) == 0;
    }
    for (size_t i = 0; i < needed_count; i++)
        if (!seen[i])
            fail_msg("%s is not in a process's first life, or went around the table", needed[i]);
    munmap(failed_in_child, sizeof *failed_in_child);
}

/* One test: a failed assertion in a child would go on with the next one. */
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_first_call_may_fail_and_the_next_life_has_what_it_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
