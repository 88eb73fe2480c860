/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Life of a sandbox: nothing of it stays behind, many live at once, one thread at a time uses it, and a child
 * after fork() can only destroy it.
 */
#include "support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

static ph_sandbox *loops(ph_image *image) {
    ph_sandbox *sandbox = test_sandbox(image, NULL);

    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

static int32_t add(ph_sandbox *sandbox, const ph_function *function, int32_t a, int32_t b) {
    const ph_value args[] = {{.type = PH_I32, .i32 = a}, {.type = PH_I32, .i32 = b}};
    ph_value result = {.type = PH_VOID};

    test_status(sandbox, ph_call(sandbox, function, args, 2, &result), PH_OK);
    return result.i32;
}

/* ---- what is left behind ------------------------------------------------------------------------------- */

static unsigned count_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(folder)) /* cppcheck-suppress readdirCalled; the folder is ours alone */
        count++;
    closedir(folder);
    return count;
}

static unsigned count_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "re");
    unsigned count = 0;

    for (int c; (c = getc(file)) != EOF;)
        count += c == '\n';
    fclose(file);
    return count;
}

/* Bytes that malloc has handed out. A sanitizer's own malloc says 0, and checks for leaks itself. */
static size_t heap_bytes(void) {
    return mallinfo2().uordblks;
}

static void one_life(ph_image *image, bool use) {
    ph_sandbox *sandbox = use ? loops(image) : test_sandbox(image, NULL);

    if (use)
        assert_int_equal(add(sandbox, test_export(image, "add"), 2, 3), 5);
    ph_sandbox_destroy(sandbox);
}

static void sandboxes_leave_no_descriptor_mapping_or_byte_behind(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");

    for (int i = 0; i < 10; i++)
        one_life(image, true); /* whatever is made once is made now */
    unsigned files = count_files();
    unsigned mappings = count_mappings();
    size_t bytes = heap_bytes();
    for (unsigned i = 0; i < test_scaled(2000); i++)
        one_life(image, i % 8 == 0);
    assert_int_equal(count_files(), files);
    assert_in_range(count_mappings(), 0, mappings);
    if (test_is_soft())
        bytes += (size_t)TEST_UNICORN_FORGETS * test_scaled(2000);
    assert_in_range(heap_bytes(), 0, bytes);
    ph_image_close(image);
}

static void images_leave_nothing_behind(void **state) {
    (void)state;
    unsigned files = count_files();

    for (int i = 0; i < 100; i++)
        ph_image_close(test_image("hello"));
    assert_int_equal(count_files(), files);
}

static void image_may_be_closed_while_sandboxes_live(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = loops(image);
    const ph_function *function = test_export(image, "add");

    ph_image_close(image);
    assert_int_equal(add(sandbox, function, 40, 2), 42);
    ph_sandbox_destroy(sandbox);
}

static void descriptors_are_closed_on_exec(void **state) {
    char path[64];
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = loops(image);

    for (int file = 3; file < 256; file++) {
        int flags = fcntl(file, F_GETFD);
        char target[256] = {0};
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        if (flags < 0 || readlink(path, target, sizeof target - 1) < 0)
            continue;
        bool ours = strstr(target, "kvm") || strstr(target, "memfd");
        assert_true(!ours || (flags & FD_CLOEXEC));
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* ---- threads ------------------------------------------------------------------------------------------- */

#define SANDBOXES 64u
#define THREADS 8u

struct worker {
    ph_image *image;
    ph_sandbox **sandboxes;
    unsigned first;
    unsigned wrong;
};

static void *work_main(void *argument) {
    struct worker *worker = argument;
    const ph_function *function = ph_image_find_export(worker->image, "add");

    for (int round = 0; round < 20; round++) {
        for (unsigned i = worker->first; i < SANDBOXES; i += THREADS) {
            const ph_value args[] = {{.type = PH_I32, .i32 = (int32_t)i}, {.type = PH_I32, .i32 = round}};
            ph_value result = {.type = PH_VOID};
            if (ph_call(worker->sandboxes[i], function, args, 2, &result) != PH_OK ||
                result.i32 != (int32_t)i + round)
                worker->wrong++;
        }
    }
    return NULL;
}

static void sixty_four_sandboxes_work_at_once_on_eight_threads(void **state) {
    ph_sandbox *sandboxes[SANDBOXES];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");

    for (unsigned i = 0; i < SANDBOXES; i++)
        sandboxes[i] = loops(image);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){image, sandboxes, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work_main, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    for (unsigned i = 0; i < SANDBOXES; i++)
        ph_sandbox_destroy(sandboxes[i]);
    ph_image_close(image);
}

static void *add_elsewhere(void *argument) {
    ph_sandbox *sandbox = ((void **)argument)[0];
    const ph_function *function = ((void **)argument)[1];

    return (void *)(intptr_t)add(sandbox, function, 30, 4);
}

static void sandbox_may_move_between_threads(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = loops(image);
    const ph_function *function = test_export(image, "add");

    for (int i = 0; i < 5; i++) {
        void *argument[] = {sandbox, (void *)(uintptr_t)function};
        pthread_t thread;
        void *sum;
        assert_int_equal(pthread_create(&thread, NULL, add_elsewhere, argument), 0);
        pthread_join(thread, &sum);
        assert_int_equal((intptr_t)sum, 34);
        assert_int_equal(add(sandbox, function, 1, 2), 3);
    }
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* A host function that tries to use the sandbox of its own call. */
struct reentry {
    ph_sandbox *sandbox;
    const ph_function *function;
    ph_status call, start, pages;
};

static ph_status reenter(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    struct reentry *reentry = context;
    const ph_value two[] = {{.type = PH_I32, .i32 = 1}, {.type = PH_I32, .i32 = 2}};
    uint64_t pages;

    (void)call;
    reentry->call = ph_call(reentry->sandbox, reentry->function, two, 2, NULL);
    reentry->start = ph_sandbox_start(reentry->sandbox);
    reentry->pages = ph_sandbox_pages(reentry->sandbox, &pages);
    result->i32 = args[0].i32;
    return PH_OK;
}

static void host_function_that_uses_its_own_sandbox_is_told_busy(void **state) {
    struct reentry reentry = {0};
    const ph_value argument = {.type = PH_I32, .i32 = 9};
    ph_value result;
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");

    reentry.sandbox = test_sandbox(image, NULL);
    reentry.function = test_export(image, "add");
    ph_sandbox_register(reentry.sandbox, "visit", &visit_signature, reenter, &reentry);
    test_status(reentry.sandbox, ph_sandbox_start(reentry.sandbox), PH_OK);
    test_status(reentry.sandbox, test_call(reentry.sandbox, image, "visit_once", &argument, 1, &result),
                PH_OK);
    assert_int_equal(result.i32, 9);
    assert_int_equal(reentry.call, PH_E_BUSY);
    assert_int_equal(reentry.start, PH_E_BUSY);
    assert_int_equal(reentry.pages, PH_E_BUSY);
    assert_int_equal(add(reentry.sandbox, reentry.function, 1, 1), 2);
    ph_sandbox_destroy(reentry.sandbox);
    ph_image_close(image);
}

/* Knocks at a sandbox that another thread uses. */
struct knocker {
    ph_sandbox *sandbox;
    const ph_function *function;
    atomic_bool done;
    unsigned busy, other;
};

static void *knock(void *argument) {
    struct knocker *knocker = argument;
    const ph_value args[] = {{.type = PH_I32, .i32 = 1}, {.type = PH_I32, .i32 = 2}};

    while (!atomic_load(&knocker->done)) {
        ph_status status = ph_call(knocker->sandbox, knocker->function, args, 2, NULL);
        knocker->busy += status == PH_E_BUSY;
        knocker->other += status != PH_E_BUSY && status != PH_OK;
        usleep(1000);
    }
    return NULL;
}

static void second_thread_at_the_same_time_is_told_busy(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = loops(image);
    struct knocker knocker = {.sandbox = sandbox, .function = test_export(image, "add")};
    const ph_value ms = {.type = PH_U32, .u32 = 300};
    ph_status slept;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, knock, &knocker), 0);
    do /* the knocker may be in */
        slept = test_call(sandbox, image, "sleep_ms", &ms, 1, NULL);
    while (slept == PH_E_BUSY);
    atomic_store(&knocker.done, true);
    pthread_join(thread, NULL);
    test_status(sandbox, slept, PH_OK);
    assert_true(knocker.busy > 0);
    assert_int_equal(knocker.other, 0);
    assert_int_equal(add(sandbox, knocker.function, 4, 4), 8);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* ---- fork ---------------------------------------------------------------------------------------------- */

static int child_after_fork(ph_sandbox *sandbox, ph_image *image) {
    const ph_value args[] = {{.type = PH_I32, .i32 = 1}, {.type = PH_I32, .i32 = 2}};
    uint64_t pages;
    ph_sandbox *own = NULL;
    ph_value result = {.type = PH_VOID};

    if (ph_call(sandbox, ph_image_find_export(image, "add"), args, 2, NULL) != PH_E_FORKED)
        return 1;
    if (ph_sandbox_start(sandbox) != PH_E_FORKED || ph_sandbox_pages(sandbox, &pages) != PH_E_FORKED)
        return 2;
    ph_interrupt(sandbox);
    ph_sandbox_destroy(sandbox);
    /* The child may make sandboxes of its own, of the image that it inherited, with time-outs. */
    ph_config config = PH_CONFIG_INIT;
    config.timeout_ns = TEST_TIMEOUT_NS;
    if (ph_sandbox_create(image, &config, &own, NULL) != PH_OK)
        return 3;
    ph_sandbox_register(own, "visit", &visit_signature, visit, NULL);
    if (ph_sandbox_start(own) != PH_OK)
        return 4;
    if (ph_call(own, ph_image_find_export(image, "add"), args, 2, &result) != PH_OK || result.i32 != 3)
        return 5;
    if (ph_call_timeout(own, ph_image_find_export(image, "spin"), NULL, 0, NULL, 20000000) != PH_E_TIMED_OUT)
        return 6;
    ph_sandbox_destroy(own);
    ph_image_close(image);
    return 0;
}

static void child_after_fork_may_only_destroy(void **state) {
    int status;
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = loops(image);

    assert_int_equal(add(sandbox, test_export(image, "add"), 1, 2),
                     3); /* the parent's timer thread is there */
    pid_t child = fork();
    if (child == 0)
        _exit(child_after_fork(sandbox, image));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(add(sandbox, test_export(image, "add"), 20, 2), 22);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

/* ---- configuration ------------------------------------------------------------------------------------- */

static void foreign_handler(int number) {
    (void)number;
}

static void signal_that_is_taken_is_refused_and_another_works(void **state) {
    const struct sigaction taken = {.sa_handler = foreign_handler};
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");

    config.interrupt_signal = SIGRTMIN + 7;
    sigaction(SIGRTMIN + 7, &taken, NULL);
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_SIGNAL_TAKEN);
    assert_null(sandbox);
    assert_non_null(strstr(error.message, "interrupt_signal"));
    sigaction(SIGRTMIN + 7, &standard, NULL);
    config.interrupt_signal = SIGRTMIN + 8;
    sandbox = test_sandbox(image, &config);
    ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    test_status(sandbox, ph_call_timeout(sandbox, test_export(image, "spin"), NULL, 0, NULL, 20000000),
                PH_E_TIMED_OUT);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void *call_with_blocked_signal(void *argument) {
    ph_sandbox *sandbox = argument;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return (void *)(intptr_t)ph_sandbox_start(sandbox);
}

static void thread_that_blocks_the_signal_is_told(void **state) {
    pthread_t thread;
    void *status;
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = test_sandbox(image, NULL);

    ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL);
    assert_int_equal(pthread_create(&thread, NULL, call_with_blocked_signal, sandbox), 0);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, PH_E_SIGNAL_BLOCKED);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void memory_that_is_too_small_says_how_much_is_needed(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;
    (void)state;
    ph_image *image = test_image("loops");

    config.memory = 1 << 20;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    assert_non_null(strstr(error.message, "at least"));
    config.memory = 64 << 20;
    config.stack = 128 << 20;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    config.stack = 0;
    config.memory = UINT64_MAX;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    config.memory = 0;
    config.max_message = UINT64_MAX;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    ph_image_close(image);
}

static void config_of_another_size_is_refused(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_error error;
    (void)state;
    ph_image *image = test_image("loops");

    config.size = 0;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    config.size = sizeof config + 8;
    assert_int_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_E_ARGUMENT);
    ph_image_close(image);
}

static void calls_before_start_and_second_starts_are_refused(void **state) {
    const ph_value args[] = {{.type = PH_I32, .i32 = 1}, {.type = PH_I32, .i32 = 2}};
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = test_sandbox(image, NULL);

    test_status(sandbox, test_call(sandbox, image, "add", args, 2, NULL), PH_E_STATE);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_E_UNREGISTERED);
    assert_non_null(strstr(ph_sandbox_error(sandbox)->message, "visit"));
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_NEW);
    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_E_STATE);
    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL), PH_E_STATE);
    test_status(sandbox, test_call(sandbox, image, "add", args, 2, NULL), PH_OK);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void sixteen_gib_can_be_created_and_used(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_value result = {.type = PH_VOID};
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("memory");

    config.memory = 16ull << 30;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    /* One byte in each of many blocks, until the heap is exhausted. */
    test_status(sandbox, test_call(sandbox, image, "fill_sparsely", NULL, 0, &result), PH_OK);
    assert_in_range(result.u64, 15ull << 30, 16ull << 30);
    uint64_t pages;
    test_status(sandbox, ph_sandbox_pages(sandbox, &pages), PH_OK);
    assert_in_range(pages, 10, 100000);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sandboxes_leave_no_descriptor_mapping_or_byte_behind),
        cmocka_unit_test(images_leave_nothing_behind),
        cmocka_unit_test(image_may_be_closed_while_sandboxes_live),
        cmocka_unit_test(descriptors_are_closed_on_exec),
        cmocka_unit_test(sixty_four_sandboxes_work_at_once_on_eight_threads),
        cmocka_unit_test(sandbox_may_move_between_threads),
        cmocka_unit_test(host_function_that_uses_its_own_sandbox_is_told_busy),
        cmocka_unit_test(second_thread_at_the_same_time_is_told_busy),
        cmocka_unit_test(child_after_fork_may_only_destroy),
        cmocka_unit_test(signal_that_is_taken_is_refused_and_another_works),
        cmocka_unit_test(thread_that_blocks_the_signal_is_told),
        cmocka_unit_test(memory_that_is_too_small_says_how_much_is_needed),
        cmocka_unit_test(config_of_another_size_is_refused),
        cmocka_unit_test(calls_before_start_and_second_starts_are_refused),
        cmocka_unit_test(sixteen_gib_can_be_created_and_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
