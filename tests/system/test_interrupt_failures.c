/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Interrupts and time-outs end a call also where the kernel has no room for one more signal, and where a
 * sleeping guest cannot be put to sleep: the signal is sent until it goes through. A test that fails here
 * does not come back, and alarm(2) ends it.
 */
#include "support/support.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/system.h"

static struct ph__system real;
static atomic_int failing_signals; /* so many are not sent, ... */
static atomic_int refused_signals; /* ... and so many were not */
static atomic_bool futex_fails;

static int failing_tgkill(pid_t process, pid_t thread, int number) {
    if (atomic_fetch_sub(&failing_signals, 1) <= 0)
        return real.tgkill(process, thread, number);
    atomic_fetch_add(&refused_signals, 1);
    errno = EAGAIN;
    return -1;
}

static int failing_futex_wait(_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout) {
    if (!atomic_load(&futex_fails))
        return real.futex_wait(word, expected, timeout);
    errno = ENOSYS;
    return -1;
}

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)call;
    if (context)
        ph_interrupt(context);
    result->i32 = args[0].i32;
    return PH_OK;
}

static ph_sandbox *start(ph_image *image, const ph_config *config, bool interrupts_itself) {
    static const ph_signature signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};
    ph_sandbox *sandbox = test_sandbox(image, config);

    test_status(sandbox,
                ph_sandbox_register(sandbox, "visit", &signature, visit, interrupts_itself ? sandbox : NULL),
                PH_OK);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

#define REFUSED 5

static void refuse_signals(int count) {
    atomic_store(&refused_signals, 0);
    atomic_store(&failing_signals, count);
    alarm(20);
}

/* On the soft backend the mark that comes with a signal is enough: the guest may end before one goes through.
 */
static void assert_refused(int count) {
    alarm(0);
    assert_in_range(atomic_load(&refused_signals), test_is_soft() && count > 0 ? 1 : count, count);
    atomic_store(&failing_signals, 0);
}

static void a_time_out_ends_a_call_when_signals_are_refused(void **state) {
    ph_config config = PH_CONFIG_INIT;

    (void)state;
    test_needs_kvm();
    config.timeout_ns = 1000000000; /* of the start too, which takes long where it is emulated */
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = start(image, &config, false);
    refuse_signals(REFUSED);
    test_status(sandbox, test_call(sandbox, image, "spin", NULL, 0, NULL), PH_E_TIMED_OUT);
    assert_refused(REFUSED);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void so_does_the_limit_of_processor_time(void **state) {
    ph_config config = PH_CONFIG_INIT;

    (void)state;
    test_needs_kvm();
    config.cpu_time_ns = 1000000000;
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = start(image, &config, false);
    refuse_signals(REFUSED);
    test_status(sandbox, test_call(sandbox, image, "spin", NULL, 0, NULL), PH_E_CPU_TIME);
    assert_refused(REFUSED);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void *interrupt_soon(void *sandbox) {
    const struct timespec pause = {.tv_nsec = 20000000};

    nanosleep(&pause, NULL);
    ph_interrupt(sandbox);
    return NULL;
}

static void interrupt(const char *function, int refused) {
    ph_config config = PH_CONFIG_INIT;
    pthread_t thread;

    config.timeout_ns = UINT64_MAX; /* no time-out helps */
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = start(image, &config, false);
    refuse_signals(refused);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, sandbox), 0);
    test_status(sandbox, test_call(sandbox, image, function, NULL, 0, NULL), PH_E_INTERRUPTED);
    pthread_join(thread, NULL);
    assert_refused(refused);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void so_does_an_interrupt(void **state) {
    (void)state;
    test_needs_kvm();
    interrupt("spin", REFUSED);
    interrupt("sleep_for_ever", REFUSED);
}

static void an_interrupt_by_the_calls_own_thread_does_not_wait_for_its_signal(void **state) {
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = start(image, NULL, true);
    refuse_signals(1);
    test_status(sandbox, test_call(sandbox, image, "visit_for_ever", NULL, 0, NULL), PH_E_INTERRUPTED);
    assert_refused(1);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void a_guest_that_cannot_be_put_to_sleep_waits_all_the_same(void **state) {
    const ph_value ms = {.type = PH_U32, .u32 = 20};

    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox = start(image, NULL, false);
    atomic_store(&futex_fails, true);
    test_status(sandbox, test_call(sandbox, image, "sleep_ms", &ms, 1, NULL), PH_OK);
    interrupt("sleep_for_ever", 0);
    atomic_store(&futex_fails, false);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_out_ends_a_call_when_signals_are_refused),
        cmocka_unit_test(so_does_the_limit_of_processor_time),
        cmocka_unit_test(so_does_an_interrupt),
        cmocka_unit_test(an_interrupt_by_the_calls_own_thread_does_not_wait_for_its_signal),
        cmocka_unit_test(a_guest_that_cannot_be_put_to_sleep_waits_all_the_same),
    };

    real = ph__system;
    ph__system.tgkill = failing_tgkill;
    ph__system.futex_wait = failing_futex_wait;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
