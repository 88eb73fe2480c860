/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The monitor's system calls, seen by ordinary static programs (tests/guests/sys_*.c) that check themselves.
 * Each runs natively first, so that it is Linux that says what is right, and then in a VM; with glibc and
 * with musl.
 */
#include "support/support.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What a program printed. */
struct output {
    char text[8192];
    size_t size;
};

static int64_t keep_output(void *context, int stream, const void *data, size_t size) {
    struct output *output = context;
    size_t room = sizeof output->text - 1 - output->size;
    size_t kept = size < room ? size : room;

    (void)stream;
    memcpy(output->text + output->size, data, kept);
    output->size += kept;
    return (int64_t)size;
}

static void run_natively(const char *name, const char *argument) {
    char *words[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)argument, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY,
                                     0); /* a terminal would be waited for */
    assert_int_equal(posix_spawn(&child, test_guest_path(name), &actions, NULL, words, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%s does not hold on Linux: wait status 0x%x", name, (unsigned)status);
}

static void run_in_a_vm(const char *name, const char *argument) {
    const char *const words[] = {argument, NULL};
    struct output output = {.size = 0};
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = test_image(name);
    int exit_status = -1;

    config.argv = words;
    config.output = keep_output;
    config.output_context = &output;
    config.timeout_ns = 120000000000ull;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    ph_status status = ph_sandbox_run(sandbox, &exit_status);
    output.text[output.size] = 0;
    if (status != PH_OK || exit_status != 0)
        fail_msg("%s: %s, exit status %d: %s\n%s", name, ph_status_kind(status), exit_status,
                 ph_sandbox_error(sandbox)->message, output.text);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* (state) points at the name of the program. */
static void holds_on_linux_and_in_a_vm(void **state) {
    const char *name = *state;
    char musl[64];

    test_needs_kvm();
    snprintf(musl, sizeof musl, "%s-musl", name);
    run_natively(name, NULL);
    run_natively(musl, NULL);
    run_in_a_vm(name, NULL);
    run_in_a_vm(musl, NULL);
}

static void random_system_calls_never_break_the_monitor(void **state) {
    char count[16];
    (void)state;

    test_needs_kvm();
    snprintf(count, sizeof count, "%u", test_scaled(100000));
    run_in_a_vm("sys_storm", count);
}

static void calls_that_are_not_served_are_counted(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("sys_process");
    ph_sandbox *sandbox = test_sandbox(image, NULL);
    int exit_status;

    test_status(sandbox, ph_sandbox_run(sandbox, &exit_status), PH_OK);
    assert_true(ph_sandbox_unserved(sandbox, 334) >= 1);  /* rseq, which glibc tries at start */
    assert_int_equal(ph_sandbox_unserved(sandbox, 1), 0); /* write */
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void input_and_output_cross_as_bytes(void **state) {
    static char bytes[200001];
    static const char *const words[] = {"echo", NULL};
    ph_config config = PH_CONFIG_INIT;
    int exit_status = -1;
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("sys_files");

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 13);
    config.argv = words;
    config.input_bytes = (ph_bytes){bytes, sizeof bytes};
    config.keep_output = sizeof bytes;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    test_status(sandbox, ph_sandbox_run(sandbox, &exit_status), PH_OK);
    ph_bytes output = ph_sandbox_output(sandbox, 1);
    assert_int_equal(exit_status, 0);
    assert_int_equal(output.size, sizeof bytes);
    assert_memory_equal(output.data, bytes, sizeof bytes);
    assert_int_equal(ph_sandbox_output(sandbox, 2).size, 0);
    assert_int_equal(ph_sandbox_output(sandbox, 3).size, 0);
    ph_sandbox_destroy(sandbox);

    /* One byte less of room: what fits is kept, and the guest is told that there is no more. */
    config.keep_output = sizeof bytes - 1;
    sandbox = test_sandbox(image, &config);
    test_status(sandbox, ph_sandbox_run(sandbox, &exit_status), PH_OK);
    assert_int_equal(exit_status, 1);
    assert_int_equal(ph_sandbox_output(sandbox, 1).size, sizeof bytes - 1);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

#define PROGRAM_TEST(name, program)                                                                          \
    { #name, holds_on_linux_and_in_a_vm, NULL, NULL, (void *)(uintptr_t)(program) }

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(heap_and_mappings_behave_as_on_linux, "sys_memory"),
        PROGRAM_TEST(clocks_and_sleeps_behave_as_on_linux, "sys_time"),
        PROGRAM_TEST(signals_behave_as_on_linux, "sys_signals"),
        PROGRAM_TEST(faults_reach_handlers_as_on_linux, "sys_faults"),
        PROGRAM_TEST(descriptors_and_paths_behave_as_documented, "sys_files"),
        PROGRAM_TEST(bad_pointers_are_efault, "sys_pointers"),
        PROGRAM_TEST(identity_and_processes_behave_as_documented, "sys_process"),
        cmocka_unit_test(random_system_calls_never_break_the_monitor),
        cmocka_unit_test(calls_that_are_not_served_are_counted),
        cmocka_unit_test(input_and_output_cross_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
