/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Interrupts and time-outs: they end the call that they are meant for, in whatever it is doing, and no other.
 * Also run under ThreadSanitizer.
 */
#include "support/support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

/* A host function that does something to the sandbox while its call is under way. */
struct visitor {
    ph_sandbox *sandbox;
    atomic_uint visits;
    bool interrupts;
    unsigned sleep_ms;
};

static void sleep_ms(unsigned ms) {
    struct timespec wanted = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&wanted, &wanted) != 0)
        ;
}

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    struct visitor *visitor = context;

    (void)call;
    atomic_fetch_add(&visitor->visits, 1);
    if (visitor->interrupts)
        ph_interrupt(visitor->sandbox);
    if (visitor->sleep_ms)
        sleep_ms(visitor->sleep_ms);
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

/* A started sandbox of the `loops` guest. (*image) stays valid as long as the sandbox. */
static ph_sandbox *loops(struct visitor *visitor, ph_image **image, uint64_t timeout_ns) {
    ph_config config = PH_CONFIG_INIT;

    config.timeout_ns = timeout_ns;
    *image = test_image("loops");
    ph_sandbox *sandbox = test_sandbox(*image, &config);
    visitor->sandbox = sandbox;
    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, visitor), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    ph_image_close(*image); /* the sandbox holds it */
    return sandbox;
}

static ph_status add(ph_sandbox *sandbox, ph_image *image, int32_t a, int32_t b, int32_t *sum) {
    const ph_value args[] = {{.type = PH_I32, .i32 = a}, {.type = PH_I32, .i32 = b}};
    ph_value result;
    ph_status status = test_call(sandbox, image, "add", args, 2, &result);

    if (status == PH_OK)
        *sum = result.i32;
    return status;
}

/* Interrupts (sandbox) a while after it was started. */
struct delayed {
    ph_sandbox *sandbox;
    unsigned ms;
};

static void *interrupt_later(void *argument) {
    const struct delayed *delayed = argument;

    sleep_ms(delayed->ms);
    ph_interrupt(delayed->sandbox);
    return NULL;
}

/* Calls (name) without a time-out and interrupts it after 50 ms. */
static void expect_interrupted(const char *name) {
    struct visitor visitor = {0};
    ph_image *image;
    ph_sandbox *sandbox = loops(&visitor, &image, 0);
    struct delayed delayed = {sandbox, 50};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, interrupt_later, &delayed), 0);
    test_status(sandbox, ph_call_timeout(sandbox, test_export(image, name), NULL, 0, NULL, 0),
                PH_E_INTERRUPTED);
    pthread_join(thread, NULL);
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
    int32_t sum;
    test_status(sandbox, add(sandbox, image, 1, 2, &sum), PH_E_POISONED);
    ph_sandbox_destroy(sandbox);
}

static void interrupt_ends_a_tight_loop(void **state) {
    (void)state;
    test_needs_kvm();
    expect_interrupted("spin");
}

static void interrupt_ends_a_flood_of_host_calls(void **state) {
    (void)state;
    test_needs_kvm();
    expect_interrupted("visit_for_ever");
}

static void interrupt_ends_a_flood_of_system_calls(void **state) {
    (void)state;
    test_needs_kvm();
    expect_interrupted("system_calls_for_ever");
}

static void interrupt_ends_a_flood_of_output(void **state) {
    (void)state;
    test_needs_kvm();
    expect_interrupted("write_for_ever");
}

static void interrupt_ends_a_flood_of_faults(void **state) {
    (void)state;
    test_needs_kvm();
    expect_interrupted("fault_for_ever");
}

static void interrupt_ends_a_sleep(void **state) {
    (void)state;
    test_needs_kvm();
    expect_interrupted("sleep_for_ever");
}

static void interrupted_error_names_the_function(void **state) {
    struct visitor visitor = {0};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, 0);

    test_status(sandbox, ph_call_timeout(sandbox, test_export(image, "spin"), NULL, 0, NULL, 50000000),
                PH_E_TIMED_OUT);
    assert_string_equal(ph_sandbox_error(sandbox)->function, "tight_loop");
    assert_non_null(strstr(ph_sandbox_error(sandbox)->message, "tight_loop"));
    ph_sandbox_destroy(sandbox);
}

static void interrupt_in_a_host_function_ends_the_call_at_its_return(void **state) {
    struct visitor visitor = {.interrupts = true};
    const ph_value argument = {.type = PH_I32, .i32 = 1};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, TEST_TIMEOUT_NS);

    test_status(sandbox, test_call(sandbox, image, "visit_once", &argument, 1, NULL), PH_E_INTERRUPTED);
    assert_int_equal(visitor.visits, 1);
    ph_sandbox_destroy(sandbox);
}

static void time_out_in_a_host_function_ends_the_call_at_its_return(void **state) {
    struct visitor visitor = {.sleep_ms = 200};
    const ph_value argument = {.type = PH_I32, .i32 = 1};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, TEST_TIMEOUT_NS);

    test_status(sandbox,
                ph_call_timeout(sandbox, test_export(image, "visit_once"), &argument, 1, NULL, 20000000),
                PH_E_TIMED_OUT);
    ph_sandbox_destroy(sandbox);
}

static void interrupt_outside_a_call_is_not_remembered(void **state) {
    struct visitor visitor = {0};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, TEST_TIMEOUT_NS);

    for (int32_t i = 0; i < 200; i++) {
        int32_t sum = 0;
        ph_interrupt(sandbox);
        test_status(sandbox, add(sandbox, image, i, 1, &sum), PH_OK);
        assert_int_equal(sum, i + 1);
        ph_interrupt(sandbox);
    }
    ph_sandbox_destroy(sandbox);
}

static void sandbox_without_a_call_cannot_be_interrupted_before_its_start(void **state) {
    struct visitor visitor = {0};
    ph_image *image = test_image("loops");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_sandbox(image, NULL);
    int32_t sum = 0;

    ph_interrupt(sandbox);
    test_status(sandbox, ph_sandbox_register(sandbox, "visit", &visit_signature, visit, &visitor), PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    test_status(sandbox, add(sandbox, image, 20, 3, &sum), PH_OK);
    assert_int_equal(sum, 23);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static ph_sandbox *signalled;

static void on_alarm(int number) {
    (void)number;
    ph_interrupt(signalled);
}

static void interrupt_works_from_a_signal_handler(void **state) {
    struct visitor visitor = {0};
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, 0);

    signalled = sandbox;
    sigaction(SIGALRM, &action, NULL);
    ualarm(50000, 0);
    test_status(sandbox, ph_call_timeout(sandbox, test_export(image, "spin"), NULL, 0, NULL, 0),
                PH_E_INTERRUPTED);
    sigaction(SIGALRM, &standard, NULL);
    ph_sandbox_destroy(sandbox);
}

static void time_out_ends_start_too(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = test_image("endless-start");
    (void)state;
    test_needs_kvm();

    config.timeout_ns = 50000000;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_E_TIMED_OUT);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void time_out_of_one_nanosecond_ends_the_call(void **state) {
    struct visitor visitor = {0};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, TEST_TIMEOUT_NS);

    test_status(sandbox, ph_call_timeout(sandbox, test_export(image, "spin"), NULL, 0, NULL, 1),
                PH_E_TIMED_OUT);
    ph_sandbox_destroy(sandbox);
}

static void short_time_outs_among_long_ones_are_kept(void **state) {
    struct visitor visitor = {0};
    ph_image *image;
    (void)state;
    test_needs_kvm();

    for (int i = 0; i < 3; i++) {
        ph_sandbox *sandbox = loops(&visitor, &image, TEST_TIMEOUT_NS);
        int32_t sum;
        test_status(sandbox, add(sandbox, image, 1, 1, &sum), PH_OK); /* the timer now sleeps for long */
        uint64_t start = test_now_ns();
        test_status(sandbox, ph_call_timeout(sandbox, test_export(image, "spin"), NULL, 0, NULL, 20000000),
                    PH_E_TIMED_OUT);
        assert_true(test_now_ns() - start >= 20000000);
        assert_true(test_now_ns() - start < TEST_TIMEOUT_NS / 2);
        ph_sandbox_destroy(sandbox);
    }
}

static void three_sandboxes_on_one_thread_keep_their_interrupts_apart(void **state) {
    struct visitor visitors[3] = {{0}};
    ph_image *images[3];
    ph_sandbox *sandboxes[3];
    pthread_t thread;
    (void)state;
    test_needs_kvm();

    for (int i = 0; i < 3; i++)
        sandboxes[i] = loops(&visitors[i], &images[i], TEST_TIMEOUT_NS);
    struct delayed delayed = {sandboxes[1], 50};
    assert_int_equal(pthread_create(&thread, NULL, interrupt_later, &delayed), 0);
    test_status(sandboxes[1], test_call(sandboxes[1], images[1], "spin", NULL, 0, NULL), PH_E_INTERRUPTED);
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i += 2) {
        int32_t sum = 0;
        ph_interrupt(sandboxes[1]);
        test_status(sandboxes[i], add(sandboxes[i], images[i], i, 7, &sum), PH_OK);
        assert_int_equal(sum, i + 7);
    }
    for (int i = 0; i < 3; i++)
        ph_sandbox_destroy(sandboxes[i]);
}

static void sleep_can_be_shorter_than_the_time_out(void **state) {
    struct visitor visitor = {0};
    const ph_value ms = {.type = PH_U32, .u32 = 30};
    ph_image *image;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = loops(&visitor, &image, TEST_TIMEOUT_NS);
    uint64_t start = test_now_ns();

    test_status(sandbox, test_call(sandbox, image, "sleep_ms", &ms, 1, NULL), PH_OK);
    assert_true(test_now_ns() - start >= 30000000);
    ph_sandbox_destroy(sandbox);
}

/* ---- many threads, random kills ------------------------------------------------------------------------ */

#define CALLERS 100u

/* A thread that calls in a loop. While (gate) is held, no other call of it begins: an interrupt that is sent
 * meanwhile hits the call whose number is in (call), or nothing. */
struct caller {
    ph_image *image;
    ph_sandbox *sandbox;
    struct visitor visitor;
    pthread_mutex_t gate;
    unsigned calls;
    unsigned seed;
    unsigned call;   /* the call under way, 0 between calls */
    unsigned killed; /* the call that was interrupted last */
    unsigned wrong;  /* calls that reported an interrupt and were not killed, or anything else */
    unsigned interrupted;
};

static atomic_uint callers_done;
static atomic_bool
    any_interrupted; /* until then callers go on: a busy machine may have no time for the killer */
#define MOST_CALLS 2000u

static void restart(struct caller *caller) {
    ph_sandbox_destroy(caller->sandbox);
    caller->sandbox = test_sandbox(caller->image, NULL);
    caller->visitor.sandbox = caller->sandbox;
    ph_sandbox_register(caller->sandbox, "visit", &visit_signature, visit, &caller->visitor);
    if (ph_sandbox_start(caller->sandbox) != PH_OK)
        abort();
}

static void *caller_main(void *argument) {
    struct caller *caller = argument;
    const ph_function *work = ph_image_find_export(caller->image, "work");

    for (unsigned i = 1; i <= caller->calls || (!atomic_load(&any_interrupted) && i <= MOST_CALLS); i++) {
        const ph_value turns = {.type = PH_U32, .u32 = (uint32_t)rand_r(&caller->seed) % 2000000};
        pthread_mutex_lock(&caller->gate);
        caller->call = i;
        pthread_mutex_unlock(&caller->gate);
        ph_status status = ph_call(caller->sandbox, work, &turns, 1, NULL);
        pthread_mutex_lock(&caller->gate);
        caller->call = 0;
        if (status != PH_OK) {
            if (status != PH_E_INTERRUPTED || caller->killed != i)
                caller->wrong++;
            caller->interrupted++;
            atomic_store(&any_interrupted, true);
            restart(caller);
        }
        pthread_mutex_unlock(&caller->gate);
    }
    atomic_fetch_add(&callers_done, 1);
    return NULL;
}

/* Interrupts whatever call (caller) is in, if it is in one. */
static void kill_call(struct caller *caller) {
    pthread_mutex_lock(&caller->gate);
    if (caller->call) {
        caller->killed = caller->call;
        ph_interrupt(caller->sandbox);
    }
    pthread_mutex_unlock(&caller->gate);
}

static void random_kills_among_100_threads_hit_only_their_calls(void **state) {
    struct caller *callers = calloc(CALLERS, sizeof *callers);
    pthread_t threads[CALLERS];
    ph_image *image = test_image("loops");
    const unsigned count = test_scaled(CALLERS);
    unsigned seed = 12345, interrupted = 0;
    (void)state;
    test_needs_kvm();

    assert_true(count > 0);
    for (unsigned i = 0; i < count; i++) {
        callers[i] = (struct caller){.image = image, .calls = 20, .seed = i + 1};
        pthread_mutex_init(&callers[i].gate, NULL);
        restart(&callers[i]);
    }
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
    while (atomic_load(&callers_done) < count) {
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): what is scaled is at least 1 */
        kill_call(&callers[(unsigned)rand_r(&seed) % count]);
        usleep((useconds_t)rand_r(&seed) % 2000);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
        interrupted += callers[i].interrupted;
        ph_sandbox_destroy(callers[i].sandbox);
        pthread_mutex_destroy(&callers[i].gate);
    }
    assert_true(interrupted > 0); /* or else this has shown nothing */
    ph_image_close(image);
    free(callers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupt_ends_a_tight_loop),
        cmocka_unit_test(interrupt_ends_a_flood_of_host_calls),
        cmocka_unit_test(interrupt_ends_a_flood_of_system_calls),
        cmocka_unit_test(interrupt_ends_a_flood_of_output),
        cmocka_unit_test(interrupt_ends_a_flood_of_faults),
        cmocka_unit_test(interrupt_ends_a_sleep),
        cmocka_unit_test(interrupted_error_names_the_function),
        cmocka_unit_test(interrupt_in_a_host_function_ends_the_call_at_its_return),
        cmocka_unit_test(time_out_in_a_host_function_ends_the_call_at_its_return),
        cmocka_unit_test(interrupt_outside_a_call_is_not_remembered),
        cmocka_unit_test(sandbox_without_a_call_cannot_be_interrupted_before_its_start),
        cmocka_unit_test(interrupt_works_from_a_signal_handler),
        cmocka_unit_test(time_out_ends_start_too),
        cmocka_unit_test(time_out_of_one_nanosecond_ends_the_call),
        cmocka_unit_test(short_time_outs_among_long_ones_are_kept),
        cmocka_unit_test(three_sandboxes_on_one_thread_keep_their_interrupts_apart),
        cmocka_unit_test(sleep_can_be_shorter_than_the_time_out),
        cmocka_unit_test(random_kills_among_100_threads_hit_only_their_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
