/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The caller's trace goes on in a sandbox, and from there to whom the guest and its host functions call.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pinhole/pool.h>
#include <pinhole/snapshot.h>

#include "contexts.h"
#include "trace/context.h"

static void assert_caller(const ph_trace_span *span, const char *traceparent, const char *tracestate) {
    struct ph__traceparent caller;

    assert_true(ph__traceparent_read(traceparent, &caller));
    assert_memory_equal(span->trace_id, caller.trace_id, sizeof span->trace_id);
    assert_memory_equal(span->remote_parent, caller.parent, sizeof span->remote_parent);
    if (tracestate)
        assert_string_equal(span->trace_state, tracestate);
    else
        assert_null(span->trace_state);
}

static void assert_no_caller(const ph_trace_span *span) {
    static const uint8_t none[8];

    assert_memory_equal(span->remote_parent, none, sizeof none);
    assert_null(span->trace_state);
    assert_memory_not_equal(contexts_of(span, true) + 3, TRACE, sizeof TRACE - 1);
}

/* ---- with a tracer ------------------------------------------------------------------------------------- */

static void a_call_is_in_the_callers_trace_below_its_span(void **state) {
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    contexts_set(&contexts, SAMPLED, "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7");
    assert_true(contexts_work(&contexts, contexts.traced.sandbox));
    traced_flush(&contexts.traced);
    assert_caller(trace_span_named(collect, "call work"), SAMPLED,
                  "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7");
    /* That all below is of the same trace is checked with the collection. */
    assert_string_equal(trace_span_named(collect, "work")->trace_state,
                        "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7");
    assert_memory_equal(trace_event_named(collect, "step")->trace_id,
                        trace_span_named(collect, "call work")->trace_id, 16);
    assert_no_caller(trace_span_named(collect, "start"));
    contexts_end(&contexts);
}

static void guest_and_host_function_read_their_own_span(void **state) {
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;
    char said[64];

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    contexts_set(&contexts, SAMPLED, "a=1");
    snprintf(said, sizeof said, "%s", contexts_asked(&contexts, contexts.traced.sandbox, "traceparent"));
    contexts_work(&contexts, contexts.traced.sandbox);
    traced_flush(&contexts.traced);
    assert_string_equal(said, contexts_of(trace_span_named(collect, "call traceparent"), true));
    assert_memory_equal(said, SAMPLED, sizeof "00-" TRACE - 1);
    assert_true(contexts.visit.known);
    assert_string_equal(contexts.visit.traceparent,
                        contexts_of(trace_span_named(collect, "host visit"), true));
    assert_memory_equal(contexts.visit.traceparent, SAMPLED, sizeof "00-" TRACE - 1);
    assert_string_equal(contexts.visit.tracestate, "a=1");
    contexts_end(&contexts);
}

static void without_a_caller_each_root_begins_a_trace(void **state) {
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;
    const char *const roots[] = {"create", "start", "call traceparent", "call work", "destroy"};
    char said[64];

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    snprintf(said, sizeof said, "%s", contexts_asked(&contexts, contexts.traced.sandbox, "traceparent"));
    contexts_work(&contexts, contexts.traced.sandbox);
    traced_finish(&contexts.traced);
    assert_string_equal(said, contexts_of(trace_span_named(collect, "call traceparent"), true));
    assert_string_equal(contexts.visit.tracestate, "none");
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        const ph_trace_span *root = trace_span_named(collect, roots[i]);
        assert_no_caller(root);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(trace_span_named(collect, roots[j])->trace_id, root->trace_id, 16);
    }
    traced_free(&contexts.traced);
}

static void what_is_not_valid_counts_as_none(void **state) {
    static const char *const invalid[] = {
        "",
        "ff-" TRACE "-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        SAMPLED "-more",
        NULL,
    };
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;
    char too_long[PH__TRACESTATE_MAX + 2] = {0};

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        contexts_set(&contexts, SAMPLED, "a=1"); /* of which nothing stays */
        contexts_set(&contexts, invalid[i], "b=1");
        trace_collect_clear(&contexts.traced.collect);
        contexts_work(&contexts, contexts.traced.sandbox);
        assert_string_equal(contexts.visit.tracestate, "none");
        traced_flush(&contexts.traced);
        assert_no_caller(trace_span_named(collect, "call work"));
    }
    /* The one without the other is well. */
    memset(too_long, 'a', sizeof too_long - 1);
    contexts_set(&contexts, SAMPLED, too_long);
    trace_collect_clear(&contexts.traced.collect);
    contexts_work(&contexts, contexts.traced.sandbox);
    traced_flush(&contexts.traced);
    assert_caller(trace_span_named(collect, "call work"), SAMPLED, NULL);
    too_long[PH__TRACESTATE_MAX] = '\0';
    contexts_set(&contexts, SAMPLED, too_long);
    trace_collect_clear(&contexts.traced.collect);
    contexts_work(&contexts, contexts.traced.sandbox);
    traced_flush(&contexts.traced);
    assert_caller(trace_span_named(collect, "call work"), SAMPLED, too_long);
    assert_string_equal(contexts.visit.tracestate, too_long);
    contexts_end(&contexts);
}

static void set_within(struct visit *visit) {
    assert_int_equal(ph_sandbox_set_traceparent(visit->context, SAMPLED, NULL), PH_E_BUSY);
}

static void a_host_function_cannot_change_who_calls(void **state) {
    struct contexts contexts;

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    contexts.visit.during = set_within;
    contexts.visit.context = contexts.traced.sandbox;
    contexts_work(&contexts, contexts.traced.sandbox);
    assert_int_equal(contexts.visit.count, 1);
    assert_int_equal(ph_sandbox_set_traceparent(NULL, SAMPLED, NULL), PH_E_ARGUMENT);
    contexts_end(&contexts);
}

static void the_config_says_it_from_the_beginning(void **state) {
    char traceparent[] = SAMPLED, tracestate[] = "a=1";
    ph_config config = PH_CONFIG_INIT;
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;
    char said[64];

    (void)state;
    test_needs_kvm();
    config.traceparent = traceparent;
    config.tracestate = tracestate;
    contexts_create(&contexts, &config, NULL);
    memset(traceparent, 'x', sizeof traceparent);
    memset(tracestate, 'x', sizeof tracestate);
    test_status(contexts.traced.sandbox, ph_sandbox_start(contexts.traced.sandbox), PH_OK);
    snprintf(said, sizeof said, "%s",
             contexts_asked(&contexts, contexts.traced.sandbox, "first_traceparent"));
    traced_finish(&contexts.traced);
    assert_string_equal(said, contexts_of(trace_span_named(collect, "start"), true));
    assert_caller(trace_span_named(collect, "create"), SAMPLED, "a=1");
    assert_caller(trace_span_named(collect, "start"), SAMPLED, "a=1");
    assert_caller(trace_span_named(collect, "destroy"), SAMPLED, "a=1");
    traced_free(&contexts.traced);
}

static void a_whole_program_reads_that_of_its_run(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct traced traced;
    char wanted[64];

    (void)state;
    test_needs_kvm();
    config.traceparent = SAMPLED;
    config.keep_output = 4096;
    traced_create(&traced, "context-program", &config, NULL);
    test_status(traced.sandbox, ph_sandbox_run(traced.sandbox, NULL), PH_OK);
    traced_flush(&traced);
    const ph_trace_span *run = trace_span_named(&traced.collect, "run context-program");
    assert_caller(run, SAMPLED, NULL);
    snprintf(wanted, sizeof wanted, "%s\n", contexts_of(run, true));
    const ph_bytes output = ph_sandbox_output(traced.sandbox, 1);
    assert_int_equal(output.size, strlen(wanted));
    assert_memory_equal(output.data, wanted, output.size);
    traced_end(&traced);
}

/* ---- without a tracer ---------------------------------------------------------------------------------- */

static void without_a_tracer_it_is_passed_on_unchanged(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct contexts contexts;
    ph_sandbox *sandbox;

    (void)state;
    test_needs_kvm();
    config.traceparent = "00-" TRACE "-" PARENT "-03"; /* a flag that is not known here */
    config.tracestate = "a=1";
    contexts_begin_untraced(&contexts, &config);
    sandbox = contexts.traced.sandbox;
    assert_string_equal(contexts_asked(&contexts, sandbox, "first_traceparent"), config.traceparent);
    assert_string_equal(contexts_asked(&contexts, sandbox, "traceparent"), config.traceparent);
    contexts_work(&contexts, sandbox);
    assert_true(contexts.visit.known);
    assert_string_equal(contexts.visit.traceparent, config.traceparent);
    assert_string_equal(contexts.visit.tracestate, "a=1");

    contexts_set(&contexts, NOT_SAMPLED, NULL);
    contexts_work(&contexts, sandbox);
    assert_string_equal(contexts.visit.traceparent, NOT_SAMPLED);
    assert_string_equal(contexts.visit.tracestate, "none");
    assert_string_equal(contexts_asked(&contexts, sandbox, "traceparent"), NOT_SAMPLED);

    contexts_set(&contexts, NULL, NULL);
    contexts_work(&contexts, sandbox);
    assert_false(contexts.visit.known);
    assert_string_equal(contexts.visit.traceparent, "");
    assert_string_equal(contexts_asked(&contexts, sandbox, "traceparent"), "");
    contexts_end(&contexts);
}

static void without_either_there_is_none(void **state) {
    struct contexts contexts;

    (void)state;
    test_needs_kvm();
    contexts_begin_untraced(&contexts, NULL);
    assert_string_equal(contexts_asked(&contexts, contexts.traced.sandbox, "first_traceparent"), "");
    assert_string_equal(contexts_asked(&contexts, contexts.traced.sandbox, "traceparent"), "");
    contexts_work(&contexts, contexts.traced.sandbox);
    assert_false(contexts.visit.known);
    assert_string_equal(contexts.visit.traceparent, "");
    contexts_end(&contexts);
}

/* ---- who can ask --------------------------------------------------------------------------------------- */

/* What `page` says is what the control page has, whether or not the guest can ask for it. */
static void assert_told(const char *guest, bool asks, bool traced) {
    ph_config config = PH_CONFIG_INIT;
    struct contexts contexts = {0};
    char page[64];

    config.traceparent = SAMPLED;
    if (traced)
        traced_create(&contexts.traced, guest, &config, NULL);
    else
        contexts.traced.sandbox = test_sandbox(contexts.traced.image = test_image(guest), &config);
    ph_sandbox *sandbox = contexts.traced.sandbox;
    contexts_register(&contexts, sandbox);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    snprintf(page, sizeof page, "%s", contexts_asked(&contexts, sandbox, "page"));
    if (strncmp(page, asks ? SAMPLED : "", asks ? sizeof "00-" TRACE : 1) != 0)
        fail_msg("%s: the control page has '%s'", guest, page);
    /* Its host functions can ask in any case. */
    assert_true(contexts.visit.known);
    assert_memory_equal(contexts.visit.traceparent, SAMPLED, sizeof "00-" TRACE - 1);
    if (asks && !traced)
        assert_string_equal(contexts_asked(&contexts, sandbox, "traceparent"), SAMPLED);
    if (asks && traced) {
        snprintf(page, sizeof page, "%s", contexts_asked(&contexts, sandbox, "traceparent"));
        traced_flush(&contexts.traced);
        assert_string_equal(
            page, contexts_of(trace_span_named(&contexts.traced.collect, "call traceparent"), true));
    }
    contexts_end(&contexts);
}

static void only_a_guest_that_can_ask_is_told(void **state) {
    static const struct {
        const char *guest;
        bool asks;
    } guests[] = {
        {"context-page", false},         {"context-page-lto", false},     {"context-asks", true},
        {"context-asks-O0", true},       {"context-asks-pie", true},      {"context-asks-lto", true},
        {"context-asks-gc", true},       {"context-asks-stripped", true}, {"context-asks-musl-lto", true},
        {"context-asks-musl-pie", true}, {"context-asks-clang", true},
    };

    (void)state;
    test_needs_kvm();
    for (size_t i = 0; i < sizeof guests / sizeof guests[0]; i++) {
        /* Without clang there is none of its. */
        if (strstr(guests[i].guest, "clang") && access(test_guest_path(guests[i].guest), R_OK) != 0)
            continue;
        assert_told(guests[i].guest, guests[i].asks, true);
        assert_told(guests[i].guest, guests[i].asks, false);
    }
}

/* ---- snapshots and pools ------------------------------------------------------------------------------- */

static void a_restored_guest_reads_the_call_that_it_is_in(void **state) {
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;
    ph_sandbox *sandbox;
    ph_snapshot *snapshot = NULL;
    char said[64];

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    sandbox = contexts.traced.sandbox;
    contexts_set(&contexts, SAMPLED, "a=1");
    contexts_work(&contexts, sandbox);
    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    contexts_set(&contexts, "00-11111111111111111111111111111111-2222222222222222-01", NULL);
    for (int turn = 0; turn < 6; turn++) {
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
        trace_collect_clear(&contexts.traced.collect);
        /* It was the same call in which its hook for restores ran. */
        snprintf(said, sizeof said, "%s", contexts_asked(&contexts, sandbox, "restored_traceparent"));
        traced_flush(&contexts.traced);
        const ph_trace_span *call = trace_span_named(collect, "call restored_traceparent");
        assert_caller(call, "00-11111111111111111111111111111111-2222222222222222-01", NULL);
        assert_string_equal(said, contexts_of(call, true));
    }
    traced_finish(&contexts.traced);
    traced_free(&contexts.traced);
    ph_snapshot_close(snapshot);
}

static void a_sandbox_of_a_snapshot_has_a_caller_of_its_own(void **state) {
    ph_config config = PH_CONFIG_INIT;
    struct contexts contexts;
    ph_snapshot *snapshot = NULL;
    ph_sandbox *other = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    contexts_begin_untraced(&contexts, NULL);
    contexts_set(&contexts, SAMPLED, "a=1");
    contexts_work(&contexts, contexts.traced.sandbox);
    test_status(contexts.traced.sandbox, ph_snapshot_take(contexts.traced.sandbox, &snapshot), PH_OK);
    if (ph_sandbox_create_from(snapshot, NULL, &other, &error) != PH_OK)
        fail_msg("%s", error.message);
    contexts_register(&contexts, other);
    assert_string_equal(contexts_asked(&contexts, other, "restored_traceparent"), "");
    ph_sandbox_destroy(other);
    config.traceparent = NOT_SAMPLED;
    if (ph_sandbox_create_from(snapshot, &config, &other, &error) != PH_OK)
        fail_msg("%s", error.message);
    contexts_register(&contexts, other);
    assert_string_equal(contexts_asked(&contexts, other, "restored_traceparent"), NOT_SAMPLED);
    ph_sandbox_destroy(other);
    ph_snapshot_close(snapshot);
    contexts_end(&contexts);
}

static void a_restore_keeps_the_caller(void **state) {
    struct contexts contexts;
    ph_snapshot *snapshot = NULL;

    (void)state;
    test_needs_kvm();
    contexts_begin_untraced(&contexts, NULL);
    test_status(contexts.traced.sandbox, ph_snapshot_take(contexts.traced.sandbox, &snapshot), PH_OK);
    contexts_set(&contexts, SAMPLED, NULL);
    test_status(contexts.traced.sandbox,
                test_call(contexts.traced.sandbox, contexts.traced.image, "crash", NO_ARGS, NULL),
                PH_E_UNDEFINED_INSTRUCTION);
    /* Who comes next may say so before it puts the sandbox back. */
    contexts_set(&contexts, NOT_SAMPLED, NULL);
    test_status(contexts.traced.sandbox, ph_sandbox_restore(contexts.traced.sandbox, snapshot), PH_OK);
    assert_string_equal(contexts_asked(&contexts, contexts.traced.sandbox, "restored_traceparent"),
                        NOT_SAMPLED);
    ph_snapshot_close(snapshot);
    contexts_end(&contexts);
}

static ph_status prepare(void *context, ph_sandbox *sandbox) {
    contexts_register(context, sandbox);
    return PH_OK;
}

static void a_pool_forgets_the_caller(void **state) {
    ph_pool_config pool_config = PH_POOL_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    struct contexts contexts;
    const struct trace_collect *collect = &contexts.traced.collect;
    ph_snapshot *snapshot = NULL;
    ph_sandbox *sandbox = NULL;
    ph_pool *pool = NULL;
    ph_error error;

    (void)state;
    test_needs_kvm();
    contexts_begin(&contexts, NULL, NULL);
    test_status(contexts.traced.sandbox, ph_snapshot_take(contexts.traced.sandbox, &snapshot), PH_OK);
    config.tracer = contexts.traced.tracer;
    config.traceparent = "00-33333333333333333333333333333333-4444444444444444-01";
    pool_config.sandbox = &config;
    pool_config.prepare = prepare;
    pool_config.prepare_context = &contexts;
    pool_config.capacity = 1;
    if (ph_pool_create(snapshot, &pool_config, &pool, &error) != PH_OK)
        fail_msg("%s", error.message);
    traced_flush(&contexts.traced);
    trace_collect_clear(&contexts.traced.collect);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(ph_pool_take(pool, 0, &sandbox, &error), PH_OK);
        contexts_asked(&contexts, sandbox, "traceparent");
        traced_flush(&contexts.traced);
        assert_caller(trace_span_named(collect, "call traceparent"), config.traceparent, NULL);
        test_status(sandbox, ph_sandbox_set_traceparent(sandbox, SAMPLED, "a=1"), PH_OK);
        trace_collect_clear(&contexts.traced.collect);
        contexts_asked(&contexts, sandbox, "traceparent");
        ph_pool_give(pool, sandbox);
        traced_flush(&contexts.traced);
        assert_caller(trace_span_named(collect, "call traceparent"), SAMPLED, "a=1");
        assert_caller(trace_span_named(collect, "restore"), config.traceparent, NULL);
        trace_collect_clear(&contexts.traced.collect);
    }
    ph_pool_destroy(pool);
    contexts_end(&contexts);
    ph_snapshot_close(snapshot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_in_the_callers_trace_below_its_span),
        cmocka_unit_test(guest_and_host_function_read_their_own_span),
        cmocka_unit_test(without_a_caller_each_root_begins_a_trace),
        cmocka_unit_test(what_is_not_valid_counts_as_none),
        cmocka_unit_test(a_host_function_cannot_change_who_calls),
        cmocka_unit_test(the_config_says_it_from_the_beginning),
        cmocka_unit_test(a_whole_program_reads_that_of_its_run),
        cmocka_unit_test(without_a_tracer_it_is_passed_on_unchanged),
        cmocka_unit_test(without_either_there_is_none),
        cmocka_unit_test(only_a_guest_that_can_ask_is_told),
        cmocka_unit_test(a_restored_guest_reads_the_call_that_it_is_in),
        cmocka_unit_test(a_sandbox_of_a_snapshot_has_a_caller_of_its_own),
        cmocka_unit_test(a_restore_keeps_the_caller),
        cmocka_unit_test(a_pool_forgets_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
