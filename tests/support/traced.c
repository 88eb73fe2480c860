/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox that is traced into a collection (traced.h).
 */
#include "support/traced.h"

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->u64 = args[0].u64 + 1;
    return PH_OK;
}

void traced_create(struct traced *traced, const char *guest, const ph_config *config,
                   const ph_tracer_config *tracer_config) {
    static const ph_signature signature = {.result = PH_U64, .count = 1, .args = {PH_U64}};
    const ph_config defaults = PH_CONFIG_INIT;
    ph_config used = config ? *config : defaults;

    trace_collect_init(&traced->collect);
    traced->tracer = trace_collect_tracer(&traced->collect, tracer_config);
    used.tracer = traced->tracer;
    traced->image = test_image(guest);
    traced->sandbox = test_sandbox(traced->image, &used);
    /* A name that the image does not import is accepted, one of another signature is not. */
    for (size_t i = 0; i < ph_image_import_count(traced->image); i++)
        test_status(traced->sandbox,
                    ph_sandbox_register(traced->sandbox, ph_image_import(traced->image, i)->name, &signature,
                                        visit, NULL),
                    PH_OK);
}

void traced_begin(struct traced *traced, const char *guest, const ph_config *config,
                  const ph_tracer_config *tracer_config) {
    traced_create(traced, guest, config, tracer_config);
    test_status(traced->sandbox, ph_sandbox_start(traced->sandbox), PH_OK);
}

void traced_call(struct traced *traced, const char *name, const ph_value *args, size_t count,
                 ph_status wanted, ph_value *result) {
    ph_status status = test_call(traced->sandbox, traced->image, name, args, count, result);

    if (status != wanted)
        fail_msg("%s: %s instead of %s (%s)", name, ph_status_kind(status), ph_status_kind(wanted),
                 ph_sandbox_error(traced->sandbox)->message);
}

void traced_flush(struct traced *traced) {
    trace_collect_flush(traced->tracer);
}

ph_trace_stats traced_stats(const struct traced *traced) {
    ph_trace_stats stats;

    ph_sandbox_trace_stats(traced->sandbox, &stats);
    return stats;
}

void traced_finish(struct traced *traced) {
    ph_sandbox_destroy(traced->sandbox);
    ph_tracer_destroy(traced->tracer);
    ph_image_close(traced->image);
    traced->sandbox = NULL;
    traced->tracer = NULL;
    traced->image = NULL;
    assert_int_equal(traced->collect.closes, 1);
    trace_collect_check(&traced->collect);
}

void traced_free(struct traced *traced) {
    trace_collect_free(&traced->collect);
}
