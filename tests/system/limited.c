/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox with limits (limited.h).
 */
#include "limited.h"

#include <string.h>
#include <time.h>

#include "sandbox/sandbox.h"

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

void limited_sleep_ms(unsigned ms) {
    struct timespec wanted = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&wanted, &wanted) != 0)
        ;
}

void limited_mark(ph_sandbox *sandbox) {
    ph__window_mark(&sandbox->window, atomic_load(&sandbox->window.word), PH__WINDOW_CPU_TIME);
}

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    struct visitor *visitor = context;

    (void)call;
    visitor->visits++;
    if (visitor->interrupts)
        ph_interrupt(visitor->sandbox);
    if (visitor->marks)
        limited_mark(visitor->sandbox);
    if (visitor->sleep_ms)
        limited_sleep_ms(visitor->sleep_ms);
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

static int64_t output(void *context, int stream, const void *data, size_t size) {
    struct limited *limited = context;
    uint64_t taken = limited->most && limited->most < size ? limited->most : size;

    (void)stream;
    (void)data;
    limited->output += taken;
    return (int64_t)taken;
}

void limited_create(struct limited *limited, const char *guest, ph_config *config) {
    config->output = config->keep_output ? NULL : output;
    config->output_context = limited;
    limited->image = test_image(guest);
    limited->sandbox = test_sandbox(limited->image, config);
    limited->visitor.sandbox = limited->sandbox;
    test_status(limited->sandbox,
                ph_sandbox_register(limited->sandbox, "visit", &visit_signature, visit, &limited->visitor),
                PH_OK);
}

void limited_begin(struct limited *limited, ph_config *config) {
    limited_create(limited, "limits", config);
    test_status(limited->sandbox, ph_sandbox_start(limited->sandbox), PH_OK);
}

void limited_end(struct limited *limited) {
    ph_sandbox_destroy(limited->sandbox);
    ph_image_close(limited->image);
}

ph_status limited_call(struct limited *limited, const char *name, const ph_value *args, size_t count) {
    return test_call(limited->sandbox, limited->image, name, args, count, NULL);
}

void limited_expect(struct limited *limited, ph_status got, ph_status wanted) {
    test_status(limited->sandbox, got, wanted);
    assert_int_equal(ph_sandbox_state(limited->sandbox),
                     wanted == PH_OK ? PH_STATE_READY : PH_STATE_POISONED);
}

ph_call_stats limited_stats(const struct limited *limited) {
    ph_call_stats stats = PH_CALL_STATS_INIT;

    assert_int_equal(ph_sandbox_call_stats(limited->sandbox, &stats), PH_OK);
    return stats;
}

void limited_expect_ended(struct limited *limited, ph_status got, ph_status status, const char *message) {
    const ph_value one = {.type = PH_I32, .i32 = 1};

    limited_expect(limited, got, status);
    assert_string_equal(ph_sandbox_error(limited->sandbox)->message, message);
    assert_true(ph_sandbox_error(limited->sandbox)->rip != 0);
    test_status(limited->sandbox, limited_call(limited, "nothing", &one, 1), PH_E_POISONED);
    assert_non_null(strstr(ph_sandbox_error(limited->sandbox)->message, message));
}
