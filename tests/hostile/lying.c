/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest hostile_trace, traced (lying.h).
 */
#include "hostile/lying.h"

#include <string.h>

static void complain(void *context, const char *message) {
    struct lying *lying = context;

    if (strstr(message, "make no sense"))
        atomic_fetch_add(&lying->complaints, 1);
}

void lying_begin(struct lying *lying, ph_config *config, bool synchronous, bool counters) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_error error;

    memset(lying, 0, sizeof *lying);
    trace_collect_init(&lying->collect);
    tracer_config.synchronous = synchronous;
    tracer_config.diagnostics = complain;
    tracer_config.diagnostics_context = lying;
    ph_sink sink = trace_collect_sink(&lying->collect);
    if (!counters)
        sink.counter = NULL;
    assert_int_equal(ph_tracer_create(&tracer_config, &lying->tracer, &error), PH_OK);
    assert_int_equal(ph_tracer_add_sink(lying->tracer, &sink, &error), PH_OK);
    config->tracer = lying->tracer;
    hostile_begin(&lying->hostile, GUEST, config);
}

void lying_end(struct lying *lying, const char *what) {
    hostile_end(&lying->hostile, what);
    ph_tracer_destroy(lying->tracer);
    assert_int_equal(lying->collect.closes, 1);
    trace_collect_check(&lying->collect);
    trace_collect_free(&lying->collect);
}

ph_trace_stats lying_stats(const struct lying *lying) {
    ph_trace_stats stats;

    ph_sandbox_trace_stats(lying->hostile.sandbox, &stats);
    return stats;
}

bool lying_has_mark(const struct lying *lying, uint64_t n) {
    size_t at = 0;

    for (const ph_trace_event *event; (event = trace_event_find(&lying->collect, "mark", at, &at)); at++)
        if (trace_number(event->fields, event->field_count, "n") == n)
            return true;
    return false;
}

void lie(struct lying *lying, const char *name, const ph_value *args, size_t count) {
    ph_value all[PH_MAX_ARGS];

    for (size_t i = 0; i < count; i++)
        all[i] = args[i];
    all[count] = U64(++lying->n);
    hostile_expect(&lying->hostile, hostile_call(&lying->hostile, name, all, count + 1, NULL), PH_OK, name);
    trace_collect_flush(lying->tracer);
    if (!lying_has_mark(lying, lying->n))
        fail_msg("%s: the good record behind it did not come", name);
}
