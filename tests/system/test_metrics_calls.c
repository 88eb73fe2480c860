/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics of real sandboxes: every way in which a call ends counts once, exits are those of ph_call_stats,
 * and restores, host functions, output and traces are counted as they are.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pinhole/metrics.h>
#include <pinhole/snapshot.h>

#include "support/openmetrics.h"
#include "support/traced.h"

static ph_metrics *metrics;

static int setup(void **state) {
    ph_error error;

    (void)state;
    return ph_metrics_create(&metrics, &error);
}

static int teardown(void **state) {
    (void)state;
    ph_metrics_destroy(metrics);
    metrics = NULL;
    return 0;
}

static ph_metrics_values values(void) {
    ph_metrics_values now = PH_METRICS_VALUES_INIT;

    assert_int_equal(ph_metrics_read(metrics, &now), PH_OK);
    return now;
}

/* The value of a series, by its name in Prometheus and the value of its label. */
static uint64_t series(const char *name, const char *label, const char *value) {
    char key[256];
    char *text = ph_metrics_text(metrics, PH_METRICS_OPENMETRICS, NULL);

    if (openmetrics_check(text))
        fail_msg("%s", openmetrics_check(text));
    snprintf(key, sizeof key, label ? "%s{%s=\"%s\"}" : "%s", name, label, value);
    const double found = openmetrics_value(text, key);
    if (found < 0)
        fail_msg("there is no %s", key);
    free(text);
    return (uint64_t)found;
}

static uint64_t errors(ph_status status) {
    return series("pinhole_call_errors_total", "error_type", ph_status_kind(status));
}

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    uint32_t *left = context;

    if (left && *left == 0)
        return ph_host_fail(call, 7, "no more");
    if (left)
        --*left;
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

/* A started sandbox of (guest) that is counted. (left): calls of its host function that go well, NULL for
 * all.
 */
static ph_sandbox *counted(ph_image *image, ph_config *config, uint32_t *left) {
    static const ph_signature signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

    config->metrics = metrics;
    ph_sandbox *sandbox = test_sandbox(image, config);
    ph_sandbox_register(sandbox, "visit", &signature, visit, left);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

/* ---- how calls end ------------------------------------------------------------------------------------- */

static void every_fault_counts_once(void **state) {
    static const struct {
        const char *function;
        ph_status status;
        bool fault;
    } ends[] = {
        {"page_fault_read", PH_E_PAGE_FAULT, true},
        {"page_fault_exec", PH_E_PAGE_FAULT, true},
        {"undefined", PH_E_UNDEFINED_INSTRUCTION, true},
        {"divide", PH_E_DIVIDE, true},
        {"general_protection", PH_E_GENERAL_PROTECTION, true},
        {"breakpoint", PH_E_BREAKPOINT, true},
        {"privileged", PH_E_PRIVILEGED_INSTRUCTION, true},
        {"foreign_port", PH_E_PROTOCOL, false},
        {"double_fault", PH_E_DOUBLE_FAULT, true},
        {"stack_overflow", PH_E_STACK_OVERFLOW, true},
        {"abort", PH_E_ABORTED, false},
        {"exit", PH_E_EXITED, false},
    };
    ph_image *image = test_image("faults");
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        ph_config config = PH_CONFIG_INIT;
        ph_sandbox *sandbox = counted(image, &config, NULL);
        const ph_metrics_values before = values();
        const uint64_t errors_before = errors(ends[i].status);
        test_status(sandbox, test_call(sandbox, image, ends[i].function, NULL, 0, NULL), ends[i].status);
        assert_int_equal(errors(ends[i].status), errors_before + 1);
        ph_metrics_values after = values();
        assert_int_equal(after.errors, before.errors + 1);
        assert_int_equal(after.faults, before.faults + ends[i].fault);
        assert_int_equal(after.calls, before.calls + 1);
        if (ends[i].fault)
            assert_int_equal(
                series("pinhole_guest_faults_total", "error_type", ph_status_kind(ends[i].status)),
                errors_before + 1);
        /* One that is refused is an error, and no call. */
        test_status(sandbox, test_call(sandbox, image, ends[i].function, NULL, 0, NULL), PH_E_POISONED);
        assert_int_equal(errors(PH_E_POISONED), i + 1);
        assert_int_equal(values().calls, after.calls);
        ph_sandbox_destroy(sandbox);
    }
    ph_image_close(image);
}

/* Calls (function), which fails with (status), and checks that this and nothing else was counted. */
static void fails_once(ph_sandbox *sandbox, const ph_function *function, const ph_value *args, size_t count,
                       uint64_t timeout_ns, ph_status status) {
    const ph_metrics_values before = values();
    const uint64_t errors_before = errors(status);

    test_status(sandbox, ph_call_timeout(sandbox, function, args, count, NULL, timeout_ns), status);
    assert_int_equal(errors(status), errors_before + 1);
    assert_int_equal(values().errors, before.errors + 1);
    assert_int_equal(values().interrupts, before.interrupts + (status == PH_E_INTERRUPTED));
    assert_int_equal(values().time_outs, before.time_outs + (status == PH_E_TIMED_OUT));
}

static void every_limit_counts_once(void **state) {
    static const struct {
        const char *function;
        ph_config config;
        uint64_t timeout_ns;
        ph_status status;
    } ends[] = {
        {"spin", PH_CONFIG_INIT, 20000000, PH_E_TIMED_OUT},
        {"spin", {.size = sizeof(ph_config), .cpu_time_ns = 1000000000}, 0, PH_E_CPU_TIME},
        {"write_often", {.size = sizeof(ph_config), .output_bytes_max = 9}, 0, PH_E_OUTPUT_LIMIT},
        {"visit_often", {.size = sizeof(ph_config), .host_calls_max = 2}, 0, PH_E_HOST_CALL_LIMIT},
    };
    ph_image *image = test_image("limits");
    (void)state;
    test_needs_kvm();

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        ph_config config = ends[i].config;
        const ph_value args[] = {U32(5), U32(5)};
        ph_sandbox *sandbox = counted(image, &config, NULL);
        const ph_function *function = test_export(image, ends[i].function);
        fails_once(sandbox, function, args, function->signature.count, ends[i].timeout_ns, ends[i].status);
        ph_sandbox_destroy(sandbox);
    }
    assert_int_equal(series("pinhole_guest_output_bytes_total", NULL, NULL), 9);
    assert_int_equal(series("pinhole_call_timeouts_total", NULL, NULL), 1);
    ph_image_close(image);
}

static ph_status interrupting(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)call;
    ph_interrupt(*(ph_sandbox **)context);
    result->i32 = args[0].i32;
    return PH_OK;
}

static void an_interrupt_counts_once(void **state) {
    static const ph_signature signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};
    const ph_value once = U32(1);
    ph_config config = {.size = sizeof config, .metrics = metrics};
    ph_image *image = test_image("limits");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_sandbox(image, &config);

    ph_sandbox_register(sandbox, "visit", &signature, interrupting, &sandbox);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    fails_once(sandbox, test_export(image, "visit_often"), &once, 1, 0, PH_E_INTERRUPTED);
    assert_int_equal(series("pinhole_call_interrupts_total", NULL, NULL), 1);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static ph_status busy(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    ph_sandbox *sandbox = *(ph_sandbox **)context;

    (void)call;
    assert_int_equal(ph_sandbox_start(sandbox), PH_E_BUSY);
    result->i32 = args[0].i32;
    return PH_OK;
}

static void what_is_refused_is_an_error_alone(void **state) {
    static const ph_signature signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};
    static const char large[100000];
    const ph_value once = U32(1), much = {.type = PH_BYTES, .bytes = {large, sizeof large}};
    ph_config config = {.size = sizeof config, .metrics = metrics};
    ph_image *image = test_image("limits"), *other = test_image("deflate");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_sandbox(image, &config);
    const ph_function *function = test_export(image, "visit_often");

    fails_once(sandbox, function, &once, 1, 0, PH_E_STATE);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_E_UNREGISTERED);
    assert_int_equal(errors(PH_E_UNREGISTERED), 1);
    ph_sandbox_register(sandbox, "visit", &signature, busy, &sandbox);
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    fails_once(sandbox, function, NULL, 0, 0, PH_E_SIGNATURE);
    fails_once(sandbox, test_export(other, "expand"), NULL, 0, 0, PH_E_NOT_FOUND);
    assert_int_equal(values().calls, 0);
    test_status(sandbox, ph_call(sandbox, function, &once, 1, NULL), PH_OK);
    assert_int_equal(errors(PH_E_BUSY), 1);
    assert_int_equal(values().calls, 1);
    ph_sandbox_destroy(sandbox);
    sandbox = counted(other, &config, NULL);
    const uint64_t guest_ns = values().guest_ns;
    fails_once(sandbox, test_export(other, "expand"), &much, 1, 0, PH_E_TOO_LARGE);
    assert_int_equal(values().calls, 1);
    assert_int_equal(values().guest_ns, guest_ns);
    ph_sandbox_destroy(sandbox);
    ph_image_close(other);
    ph_image_close(image);
}

/* ---- what calls do ------------------------------------------------------------------------------------- */

static void exits_are_those_of_the_calls(void **state) {
    static const char *const kinds[] = {"host-call", "write", "read",      "sleep", "protect", "zero",
                                        "trace",     "end",   "exception", "kick",  "other"};
    const ph_value one = {.type = PH_I32, .i32 = 1};
    uint64_t sums[11] = {0}, guest_ns = 0, host_ns = 0, all = 0;
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = test_image("limits");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = counted(image, &config, NULL);

    for (int i = 0; i < 4; i++) {
        ph_call_stats stats = PH_CALL_STATS_INIT;
        if (i > 0)
            test_status(sandbox,
                        test_call(sandbox, image, i == 2 ? "known" : "nothing", &one, i == 2 ? 0 : 1, NULL),
                        PH_OK);
        assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_OK);
        const uint64_t found[] = {
            stats.exits_host_call, stats.exits_write, stats.exits_read,  stats.exits_sleep,
            stats.exits_protect,   stats.exits_zero,  stats.exits_trace, stats.exits_end,
            stats.exits_exception, stats.exits_kick,  stats.exits_other,
        };
        for (size_t j = 0; j < 11; j++)
            sums[j] += found[j];
        all += stats.exits;
        guest_ns += stats.guest_ns;
        host_ns += stats.host_ns;
    }
    for (size_t j = 0; j < 11; j++)
        assert_int_equal(series("pinhole_guest_exits_total", "pinhole_exit_kind", kinds[j]), sums[j]);
    assert_int_equal(sums[0], 3);
    ph_metrics_values now = values();
    assert_int_equal(now.exits, all);
    assert_int_equal(now.calls, 3);
    assert_int_equal(now.host_calls, 3);
    assert_int_equal(now.output_bytes, 10);
    /* Each was cut to whole nanoseconds by itself. */
    assert_in_range(now.guest_ns, guest_ns - 10, guest_ns + 10);
    assert_in_range(now.host_ns, host_ns - 10, host_ns + 10);
    assert_true(now.call_ns > now.host_ns);
    assert_int_equal(series("pinhole_guest_duration_seconds_count", NULL, NULL), 4);
    assert_int_equal(series("pinhole_start_duration_seconds_count", NULL, NULL), 1);
    /* One sleeps for longer than that, and a busy machine may take longer for the others too. */
    assert_in_range(series("pinhole_call_duration_seconds_bucket{le=\"0.01\"}", NULL, NULL), 0, 2);
    assert_int_equal(series("pinhole_call_duration_seconds_bucket{le=\"+Inf\"}", NULL, NULL), 3);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void host_functions_that_fail_are_counted(void **state) {
    const ph_value three = U32(3);
    uint32_t left = 2;
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = test_image("limits");
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = counted(image, &config, &left);

    test_status(sandbox, test_call(sandbox, image, "visit_often", &three, 1, NULL), PH_E_HOST_FUNCTION);
    assert_int_equal(values().host_calls, 3);
    assert_int_equal(values().host_call_errors, 1);
    assert_int_equal(errors(PH_E_HOST_FUNCTION), 1);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void restores_count_their_pages(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_snapshot *snapshot, *foreign;
    uint64_t pages = 0;
    (void)state;
    test_needs_kvm();
    ph_image *image = test_image("limits");
    ph_sandbox *sandbox = counted(image, &config, NULL);
    ph_sandbox *other = test_started("faults", NULL);

    test_status(sandbox, ph_snapshot_take(sandbox, &snapshot), PH_OK);
    for (unsigned i = 0; i < 6; i++) {
        ph_call_stats stats = PH_CALL_STATS_INIT;
        const ph_value args[] = {U32(i), U32(1)};
        test_status(sandbox, test_call(sandbox, image, "write_often", args, 2, NULL), PH_OK);
        test_status(sandbox, ph_sandbox_restore(sandbox, snapshot), PH_OK);
        test_status(sandbox, test_call(sandbox, image, "write_often", args, 2, NULL), PH_OK);
        assert_int_equal(ph_sandbox_call_stats(sandbox, &stats), PH_OK);
        pages += stats.pages_copied;
        assert_int_equal(values().restores, i + 1);
        assert_int_equal(values().pages_copied, pages);
    }
    assert_true(pages > 0);
    test_status(other, ph_snapshot_take(other, &foreign), PH_OK);
    test_status(sandbox, ph_sandbox_restore(sandbox, foreign), PH_E_SNAPSHOT);
    assert_int_equal(series("pinhole_restore_errors_total", NULL, NULL), 1);
    assert_int_equal(values().restores, 6);
    assert_int_equal(values().errors, 0);
    ph_snapshot_close(foreign);
    ph_sandbox_destroy(other);
    /* One that is made of a snapshot is one more that was made. */
    assert_int_equal(ph_sandbox_create_from(snapshot, &config, &other, NULL), PH_OK);
    assert_int_equal(values().sandboxes, 2);
    assert_int_equal(values().sandboxes_created, 2);
    ph_sandbox_destroy(other);
    ph_sandbox_destroy(sandbox);
    assert_int_equal(values().sandboxes, 0);
    assert_int_equal(values().restores, 6);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}

static void a_run_is_no_call(void **state) {
    ph_config config = {.size = sizeof config, .metrics = metrics, .timeout_ns = TEST_TIMEOUT_NS};
    ph_image *image = test_image("limits-program");
    int exit_status = -1;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_sandbox(image, &config);

    test_status(sandbox, ph_sandbox_run(sandbox, &exit_status), PH_OK);
    assert_int_equal(series("pinhole_run_duration_seconds_count", NULL, NULL), 1);
    assert_int_equal(values().calls, 0);
    assert_int_equal(values().errors, 0);
    assert_true(values().exits > 0);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

static void a_sandbox_that_could_not_be_made_is_none(void **state) {
    ph_config config = {.size = sizeof config, .metrics = metrics, .memory = UINT64_MAX / 2};
    ph_image *image = test_image("loops");
    ph_sandbox *sandbox;
    ph_error error;
    (void)state;
    test_needs_kvm();

    assert_int_not_equal(ph_sandbox_create(image, &config, &sandbox, &error), PH_OK);
    assert_int_equal(values().sandboxes_created, 0);
    assert_int_equal(values().sandboxes, 0);
    ph_image_close(image);
}

/* ---- traces -------------------------------------------------------------------------------------------- */

static void records_and_drops_are_those_of_the_tracer(void **state) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = {.size = sizeof config, .metrics = metrics, .trace_call_records = 500};
    const ph_value many[] = {U32(999), STR("x"), BYTES("y", 1)};
    struct traced traced;
    (void)state;
    test_needs_kvm();

    tracer_config.synchronous = true;
    traced_begin(&traced, "trace-work", &config, &tracer_config);
    const uint64_t before = traced_stats(&traced).records;
    assert_int_equal(ph_metrics_watch_tracer(metrics, traced.tracer), PH_OK);
    assert_int_equal(values().trace_records, 0);
    traced_call(&traced, "recurse", many, 3, PH_OK, NULL);
    ph_trace_stats stats = traced_stats(&traced);
    assert_true(stats.dropped_budget > 0);
    assert_int_equal(values().trace_records, stats.records - before);
    assert_int_equal(values().trace_dropped, stats.dropped_budget);
    assert_int_equal(series("pinhole_trace_drops_total", "pinhole_drop_cause", "budget"),
                     stats.dropped_budget);
    assert_int_equal(values().trace_queued_bytes, 0);
    /* It stays when nobody looks at the tracer any more, and counts once when it is watched again. */
    assert_int_equal(ph_metrics_watch_tracer(metrics, NULL), PH_OK);
    assert_int_equal(values().trace_records, stats.records - before);
    assert_int_equal(ph_metrics_watch_tracer(metrics, traced.tracer), PH_OK);
    assert_int_equal(ph_metrics_watch_tracer(metrics, traced.tracer), PH_OK);
    assert_int_equal(values().trace_records, stats.records - before);
    assert_int_equal(ph_metrics_watch_tracer(metrics, NULL), PH_OK);
    traced_end(&traced);
    assert_int_equal(values().trace_records, stats.records - before);
}

/* A tracer that is destroyed lets go of those that watch it, and the other way round. */
static void a_watched_tracer_may_go_first_or_last(void **state) {
    ph_config config = {.size = sizeof config, .metrics = metrics};
    const ph_value few[] = {U32(9), STR("x"), BYTES("y", 1)};
    ph_metrics *other;
    struct traced traced;

    (void)state;
    test_needs_kvm();
    assert_int_equal(ph_metrics_create(&other, NULL), PH_OK);
    traced_begin(&traced, "trace-work", &config, NULL);
    assert_int_equal(ph_metrics_watch_tracer(metrics, traced.tracer), PH_OK);
    assert_int_equal(ph_metrics_watch_tracer(other, traced.tracer), PH_OK);
    ph_metrics_destroy(other);
    traced_call(&traced, "recurse", few, 3, PH_OK, NULL);
    traced_flush(&traced);
    assert_true(traced_stats(&traced).records > 0);
    traced_end(&traced);
    assert_true(values().trace_records > 0);
    assert_int_equal(values().trace_queued_bytes, 0);
    assert_int_equal(ph_metrics_watch_tracer(metrics, NULL), PH_OK);
}

/* A sink that stops until it may go on. */
struct gate {
    atomic_bool stopped, open;
};

static void stop_at(void *context, const ph_trace_span *span) {
    struct gate *gate = context;

    (void)span;
    atomic_store(&gate->stopped, true);
    while (!atomic_load(&gate->open))
        usleep(1000);
}

/* Without an end when who asks for counts waits for the sink. */
static void a_sink_that_has_stopped_holds_up_no_reader(void **state) {
    struct gate gate = {0};
    ph_sink sink = PH_SINK_INIT;
    ph_tracer *tracer;
    ph_error error;
    ph_trace_stats stats;
    (void)state;
    test_needs_kvm();

    assert_int_equal(ph_tracer_create(NULL, &tracer, &error), PH_OK);
    sink.context = &gate;
    sink.span = stop_at;
    assert_int_equal(ph_tracer_add_sink(tracer, &sink, &error), PH_OK);
    assert_int_equal(ph_metrics_watch_tracer(metrics, tracer), PH_OK);
    ph_config config = {.size = sizeof config, .metrics = metrics, .tracer = tracer};
    ph_image *image = test_image("trace-work");
    config.timeout_ns = TEST_TIMEOUT_NS;
    ph_sandbox *sandbox = test_sandbox(image, &config);
    while (!atomic_load(&gate.stopped))
        usleep(1000);
    ph_tracer_stats(tracer, &stats);
    assert_true(stats.spans > 0);
    assert_true(values().trace_queued_bytes > 0);
    assert_int_equal(values().sandboxes, 1);
    atomic_store(&gate.open, true);
    assert_int_equal(ph_tracer_flush(tracer, 0), PH_OK);
    assert_int_equal(values().trace_queued_bytes, 0);
    ph_sandbox_destroy(sandbox);
    assert_int_equal(ph_metrics_watch_tracer(metrics, NULL), PH_OK);
    ph_tracer_destroy(tracer);
    ph_image_close(image);
}

/* ---- fork ---------------------------------------------------------------------------------------------- */

static int in_the_child(ph_sandbox *sandbox, ph_image *image) {
    ph_config config = {.size = sizeof config, .metrics = metrics};
    const ph_value one = U32(1);
    ph_sandbox *own;

    if (ph_call(sandbox, test_export(image, "visit_often"), &one, 1, NULL) != PH_E_FORKED)
        return 1;
    ph_sandbox_destroy(sandbox);
    if (ph_sandbox_create(image, &config, &own, NULL) != PH_E_FORKED)
        return 2;
    ph_metrics_destroy(metrics);
    return 0;
}

static void a_child_counts_nothing(void **state) {
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = test_image("limits");
    int status;
    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = counted(image, &config, NULL);

    pid_t child = fork();
    if (child == 0)
        _exit(in_the_child(sandbox, image));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(values().sandboxes, 1);
    assert_int_equal(values().errors, 0);
    ph_sandbox_destroy(sandbox);
    ph_image_close(image);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_fault_counts_once),
        TEST(every_limit_counts_once),
        TEST(an_interrupt_counts_once),
        TEST(what_is_refused_is_an_error_alone),
        TEST(exits_are_those_of_the_calls),
        TEST(host_functions_that_fail_are_counted),
        TEST(restores_count_their_pages),
        TEST(a_run_is_no_call),
        TEST(a_sandbox_that_could_not_be_made_is_none),
        TEST(records_and_drops_are_those_of_the_tracer),
        TEST(a_watched_tracer_may_go_first_or_last),
        TEST(a_sink_that_has_stopped_holds_up_no_reader),
        TEST(a_child_counts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
