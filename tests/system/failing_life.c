/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The life of a sandbox whose calls fail (failing_life.h).
 */
#include "failing_life.h"

#include <signal.h>
#include <string.h>

#include <pinhole/metrics.h>
#include <pinhole/trace.h>

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

static ph_status register_visit(ph_sandbox *sandbox) {
    return ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL);
}

static ph_status call(ph_sandbox *sandbox, ph_image *image) {
    const ph_value argument = {.type = PH_I32, .i32 = 4};
    ph_value result;
    ph_status status = ph_call(sandbox, ph_image_find_export(image, "visit_once"), &argument, 1, &result);

    if (status == PH_OK)
        assert_int_equal(result.i32, 5);
    return status;
}

/* What was refused before it had an effect can be tried again; what failed half-way cannot. */
static void assert_usable_or_broken(ph_sandbox *sandbox, ph_image *image) {
    sigset_t none;

    /* A mask that could not be set back, after a thread was started. Calls say so (PH_E_SIGNAL_BLOCKED). */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    switch (ph_sandbox_state(sandbox)) {
    case PH_STATE_NEW:
        test_status(sandbox, register_visit(sandbox), PH_OK);
        test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
        test_status(sandbox, call(sandbox, image), PH_OK);
        break;
    case PH_STATE_READY:
        test_status(sandbox, call(sandbox, image), PH_OK);
        break;
    case PH_STATE_POISONED:
        test_status(sandbox, call(sandbox, image), PH_E_POISONED);
        break;
    case PH_STATE_BROKEN:
        test_status(sandbox, ph_sandbox_start(sandbox), PH_E_BROKEN);
        test_status(sandbox, call(sandbox, image), PH_E_BROKEN);
        break;
    }
}

static ph_status live(ph_image *image, ph_tracer *tracer, ph_metrics *metrics, ph_error *error) {
    const char *const words[] = {"one", NULL};
    const ph_file files[] = {
        {.guest_path = "/file", .host_path = "/proc/self/exe"},
        {.guest_path = "/bytes", .bytes = {"bytes", 5}},
    };
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;

    config.timeout_ns = TEST_TIMEOUT_NS;
    config.tracer = tracer;
    config.metrics = metrics;
    config.argv = config.envp = words;
    config.files = files;
    config.file_count = 2;
    ph_status status = ph_sandbox_create(image, &config, &sandbox, error);
    if (status != PH_OK) {
        assert_null(sandbox);
        return status;
    }
    status = register_visit(sandbox);
    if (status == PH_OK)
        status = ph_sandbox_start(sandbox);
    for (int i = 0; i < 2 && status == PH_OK; i++)
        status = call(sandbox, image);
    if (status != PH_OK) {
        *error = *ph_sandbox_error(sandbox);
        assert_usable_or_broken(sandbox, image);
    }
    ph_sandbox_destroy(sandbox);
    return status;
}

/* One that writes text and one that writes JSON, both to (file). */
static ph_status add_sinks(ph_tracer *tracer, FILE *file, ph_error *error) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_sink sink;

    options.file = file;
    ph_status status = ph_text_sink_open(&options, &sink, error);
    if (status == PH_OK)
        status = ph_tracer_add_sink(tracer, &sink, error);
    if (status == PH_OK)
        status = ph_jsonl_sink_open(&options, &sink, error);
    return status == PH_OK ? ph_tracer_add_sink(tracer, &sink, error) : status;
}

/* Synchronous: whoever decodes on another thread would make the numbers of the calls depend on time. */
static ph_status live_traced(ph_image *image, FILE *file, ph_metrics *metrics, ph_error *error) {
    ph_tracer_config config = PH_TRACER_CONFIG_INIT;
    ph_tracer *tracer;

    config.synchronous = true;
    ph_status status = ph_tracer_create(&config, &tracer, error);
    if (status != PH_OK) {
        assert_null(tracer);
        return status;
    }
    status = add_sinks(tracer, file, error);
    if (status == PH_OK)
        status = live(image, tracer, metrics, error);
    ph_tracer_destroy(tracer);
    return status;
}

ph_status failing_life_live(ph_image *image, FILE *file, ph_error *error) {
    ph_metrics *metrics;

    ph_status status = ph_metrics_create(&metrics, error);
    if (status != PH_OK) {
        assert_null(metrics);
        return status;
    }
    status = file ? live_traced(image, file, metrics, error) : live(image, NULL, metrics, error);
    ph_metrics_destroy(metrics);
    return status;
}

/* The statuses that calls lead to. Where one is not needed, or needed only at some places, PH_OK is as right.
 */
static const struct {
    const char *name;
    bool needed;
    ph_status statuses[3];
} expected[] = {
    {"KVM_RUN", false, {PH_E_SYSTEM}},
    {"access", false, {PH_OK}},
    {"calloc", false, {PH_E_MEMORY}},
    {"close", false, {PH_OK}},
    {"fcntl", true, {PH_E_SYSTEM}},
    {"fstat", true, {PH_E_FILE, PH_E_SYSTEM}},
    {"ftruncate", true, {PH_E_SYSTEM}},
    {"getrandom", true, {PH_E_SYSTEM}},
    {"getrusage", false, {PH_OK}},
    {"ioctl", false, {PH_E_SYSTEM, PH_E_BACKEND}},
    {"isatty", false, {PH_OK}},
    {"lseek", false, {PH_E_SYSTEM}},
    {"madvise", false, {PH_E_SYSTEM, PH_E_FILE}},
    {"malloc", false, {PH_E_MEMORY}},
    {"memfd_create", true, {PH_E_SYSTEM}},
    {"mmap", true, {PH_E_MEMORY, PH_E_SYSTEM}},
    {"mprotect", true, {PH_E_MEMORY}},
    {"munmap", false, {PH_OK}},
    {"open", false, {PH_E_BACKEND, PH_E_FILE, PH_E_SYSTEM}},
    {"pread", true, {PH_E_SYSTEM}},
    {"process_vm_writev", false, {PH_OK}},
    {"pthread_create", true, {PH_E_SYSTEM}},
    {"pthread_sigmask", false, {PH_E_SIGNAL_BLOCKED, PH_E_SYSTEM}},
    {"pwrite", true, {PH_E_MEMORY, PH_E_SYSTEM}},
    {"read", false, {PH_E_FILE}},
    {"realloc", false, {PH_E_MEMORY}},
    {"sigaction", true, {PH_E_ARGUMENT}},
    {"strdup", true, {PH_E_MEMORY}},
};

static bool is_right(const char *failed, ph_status status) {
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (strcmp(expected[i].name, failed) != 0)
            continue;
        if (status == PH_OK)
            return !expected[i].needed;
        for (size_t j = 0; j < sizeof expected[i].statuses / sizeof expected[i].statuses[0]; j++)
            if (expected[i].statuses[j] == status)
                return true;
    }
    return false; /* also for a call that is new to this list */
}

void failing_life_check(unsigned at, const char *failed, ph_status status, const ph_error *error) {
    if (!is_right(failed, status))
        fail_msg("call %u, %s: status %s is not the right one: %s", at, failed, ph_status_kind(status),
                 error->message);
    if (status != PH_OK && (error->status != status || error->message[0] == 0))
        fail_msg("call %u, %s: status %s without its error", at, failed, ph_status_kind(status));
}

void failing_life_check_reached(const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!failing_has_failed(names[i]))
            fail_msg("%s was never called, or went around the table", names[i]);
}
