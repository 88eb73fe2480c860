/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every call into the C library and the kernel that a sandbox's life makes fails once: the 1st, then the 2nd,
 * until none fails. Each time there is a status with a message, or the call was one that is not needed; and
 * nothing stays behind.
 */
#include "support/failing.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include <pinhole/trace.h>

static const ph_signature visit_signature = {.result = PH_I32, .count = 1, .args = {PH_I32}};

static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->i32 = args[0].i32 + 1;
    return PH_OK;
}

static unsigned count_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "re");
    unsigned count = 0;

    for (int c; (c = getc(file)) != EOF;)
        count += c == '\n';
    fclose(file);
    return count;
}

/* Creates, starts, calls twice and destroys. Gives the first status that is not PH_OK, its error in (error).
 */
static ph_status live(ph_image *image, ph_tracer *tracer, ph_error *error) {
    const ph_value argument = {.type = PH_I32, .i32 = 4};
    const char *const words[] = {"one", NULL};
    const ph_file files[] = {
        {.guest_path = "/file", .host_path = "/proc/self/exe"},
        {.guest_path = "/bytes", .bytes = {"bytes", 5}},
    };
    ph_config config = PH_CONFIG_INIT;
    ph_sandbox *sandbox = NULL;
    ph_value result;

    config.timeout_ns = TEST_TIMEOUT_NS;
    config.tracer = tracer;
    config.argv = config.envp = words;
    config.files = files;
    config.file_count = 2;
    ph_status status = ph_sandbox_create(image, &config, &sandbox, error);
    if (status != PH_OK) {
        assert_null(sandbox);
        return status;
    }
    status = ph_sandbox_register(sandbox, "visit", &visit_signature, visit, NULL);
    if (status == PH_OK)
        status = ph_sandbox_start(sandbox);
    for (int i = 0; i < 2 && status == PH_OK; i++)
        status = ph_call(sandbox, ph_image_find_export(image, "visit_once"), &argument, 1, &result);
    if (status == PH_OK)
        assert_int_equal(result.i32, 5);
    else {
        *error = *ph_sandbox_error(sandbox);
        /* What failed half-way is not tried again. */
        ph_status again = ph_sandbox_start(sandbox);
        assert_int_not_equal(again, PH_OK);
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
static ph_status live_traced(ph_image *image, FILE *file, ph_error *error) {
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
        status = live(image, tracer, error);
    ph_tracer_destroy(tracer);
    return status;
}

/* A life, traced to (file) unless that is NULL. */
static ph_status live_once(ph_image *image, FILE *file, ph_error *error) {
    return file ? live_traced(image, file, error) : live(image, NULL, error);
}

/* Mappings that the allocator may add for itself; AddressSanitizer's keeps what is freed in quarantine. */
#ifdef __SANITIZE_ADDRESS__
#define MALLOC_GROWS 64
#else
#define MALLOC_GROWS 1
#endif

static void fail_every_call(FILE *file) {
    ph_error error;
    ph_image *image = test_image("loops");

    assert_int_equal(live_once(image, file, &error), PH_OK); /* what is made once for a process is made now */
    const unsigned descriptors = failing_descriptors();
    const unsigned mappings = count_mappings();
    for (unsigned at = 1;; at++) {
        memset(&error, 0, sizeof error);
        failing = (struct failing){.at = at};
        ph_status status = live_once(image, file, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (!failed) {
            assert_int_equal(status, PH_OK);
            assert_true(at > 20);
            break;
        }
        if (status != PH_OK) {
            if (error.status != status || error.message[0] == 0)
                fail_msg("call %u, %s: status %s without its error", at, failed, ph_status_kind(status));
        }
        assert_int_equal(failing_descriptors(), descriptors);
        assert_in_range(count_mappings(), 0, mappings + MALLOC_GROWS);
    }
    assert_int_equal(live_once(image, file, &error), PH_OK);
    ph_image_close(image);
}

static void every_failing_call_has_a_status_and_leaves_nothing_behind(void **state) {
    (void)state;
    test_needs_kvm();
    fail_every_call(NULL);
}

/* A trace may miss what there was no memory for. */
static void so_it_is_with_a_trace(void **state) {
    FILE *file = tmpfile();

    (void)state;
    test_needs_kvm();
    assert_non_null(file);
    fail_every_call(file);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_has_a_status_and_leaves_nothing_behind),
        cmocka_unit_test(so_it_is_with_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
