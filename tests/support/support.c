/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Shared helpers of the system and hostile tests (support.h).
 */
#include "support/support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vm/backend.h"
#include "vm/plugin.h"

/* PH_TEST_BACKEND says what every sandbox of a test runs on that asks for nothing else: kvm, or soft. */
__attribute__((constructor)) static void choose_backend(void) {
    const char *name = getenv("PH_TEST_BACKEND");
    const struct ph__backend *backend;
    ph_error error;

    ph__plugin_path = getenv("PH_TEST_PLUGIN");
    if (!name || strcmp(name, "soft") != 0)
        return;
    if (ph__backend_find(PH_BACKEND_SOFT, NULL, NULL, &backend, &error) != PH_OK) {
        fprintf(stderr, "no soft backend for the tests: %s\n", error.message);
        _exit(1); /* on KVM they would say nothing of what was asked for */
    }
    ph__backend_instead = backend;
}

bool test_is_soft(void) {
    return ph__backend_instead != NULL;
}

void test_not_on_soft(const char *why) {
    if (!test_is_soft())
        return;
    fprintf(stderr, "SKIPPED on the soft backend: %s\n", why);
    skip();
}

bool test_has_address_sanitizer(void) {
    return dlsym(RTLD_DEFAULT, "__asan_init") != NULL;
}

void test_needs_soft_guard(void) {
    if (!test_has_address_sanitizer())
        return;
    fprintf(stderr, "SKIPPED with AddressSanitizer: an emulator that gives up ends the process\n");
    skip();
}

/* Whoever runs the tests with PINHOLE_BACKEND=soft wants none on KVM. */
static bool kvm_is_unwanted(void) {
    const char *wanted = getenv("PINHOLE_BACKEND");

    return wanted && strcmp(wanted, "soft") == 0 && !test_is_soft();
}

void test_needs_kvm(void) {
    static int known; /* 1: usable, 2: not */
    static ph_error error;

    if (kvm_is_unwanted()) {
        fprintf(stderr, "SKIPPED, this test needs KVM, and PINHOLE_BACKEND is soft\n");
        skip();
    }
    if (!known) {
        ph_image *image = test_image("hello");
        ph_sandbox *sandbox = NULL;
        ph_status status = ph_sandbox_create(image, NULL, &sandbox, &error);
        known = status == PH_E_BACKEND ? 2 : 1;
        ph_sandbox_destroy(sandbox);
        ph_image_close(image);
    }
    if (known == 2 && getenv("PH_TEST_REQUIRE_KVM"))
        fail_msg("this test needs KVM: %s", error.message);
    if (known == 2) {
        fprintf(stderr, "SKIPPED, this test needs KVM: %s\n", error.message);
        skip();
    }
}

unsigned test_scaled(unsigned count) {
    const char *text = getenv("PH_TEST_SCALE");
    unsigned scale = text ? (unsigned)strtoul(text, NULL, 10) : 1;

    if (scale > 1)
        count /= scale;
    return count ? count : 1;
}

const char *test_guest_path(const char *name) {
    static _Thread_local char path[4096];
    static const char *const variables[] = {"PH_TEST_GUESTS", "PH_TEST_OWN_GUESTS"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *folder = getenv(variables[i]);
        if (!folder)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (access(path, R_OK) == 0)
            return path;
    }
    fail_msg("there is no guest `%s`; run the tests with `make test`", name);
    return NULL;
}

ph_image *test_image(const char *name) {
    ph_image *image = NULL;
    ph_error error;

    if (ph_image_open(test_guest_path(name), 0, &image, &error) != PH_OK)
        fail_msg("opening %s: %s", name, error.message);
    return image;
}

ph_sandbox *test_sandbox(ph_image *image, const ph_config *config) {
    const ph_config defaults = PH_CONFIG_INIT;
    ph_config used = config ? *config : defaults;
    ph_sandbox *sandbox = NULL;
    ph_error error;

    if (used.timeout_ns == 0)
        used.timeout_ns = TEST_TIMEOUT_NS;
    if (ph_sandbox_create(image, &used, &sandbox, &error) != PH_OK)
        fail_msg("creating a sandbox: %s", error.message);
    return sandbox;
}

ph_sandbox *test_started(const char *name, const ph_config *config) {
    ph_image *image = test_image(name);
    ph_sandbox *sandbox = test_sandbox(image, config);

    ph_image_close(image); /* the sandbox holds it */
    test_status(sandbox, ph_sandbox_start(sandbox), PH_OK);
    return sandbox;
}

const ph_function *test_export(ph_image *image, const char *name) {
    const ph_function *function = ph_image_find_export(image, name);

    if (!function)
        fail_msg("the image does not export `%s`", name);
    return function;
}

ph_status test_call(ph_sandbox *sandbox, ph_image *image, const char *name, const ph_value *args,
                    size_t count, ph_value *result) {
    return ph_call(sandbox, test_export(image, name), args, count, result);
}

void test_status(ph_sandbox *sandbox, ph_status got, ph_status wanted) {
    if (got != wanted)
        fail_msg("status %s instead of %s: %s", ph_status_kind(got), ph_status_kind(wanted),
                 ph_sandbox_error(sandbox)->message);
}

uint64_t test_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

unsigned long test_resident_pages(void) {
    char line[128] = "";
    char *rest;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    strtoul(line, &rest, 10);
    return strtoul(rest, NULL, 10);
}
