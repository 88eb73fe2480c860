/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The static library that is installed: KVM only, and whoever asks it for more is told so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pinhole/pinhole.h>

#include "base/system.h"
#include "support/hidden_kvm.h"

#define ADVICE "there is no soft backend in libpinhole.a, which has KVM only: link libpinhole.so"

static ph_error error;

static ph_status make(ph_backend backend, ph_sandbox **sandbox) {
    ph_config config = PH_CONFIG_INIT;
    char path[4096];
    ph_image *image;

    config.backend = backend;
    snprintf(path, sizeof path, "%s/snapshot", getenv("PH_TEST_OWN_GUESTS"));
    if (ph_image_open(path, 0, &image, &error) != PH_OK)
        fail_msg("%s", error.message);
    ph_status status = ph_sandbox_create(image, &config, sandbox, &error);
    ph_image_close(image);
    return status;
}

static void soft_is_refused_with_what_to_do(void **state) {
    ph_sandbox *sandbox = NULL;

    (void)state;
    assert_int_equal(make(PH_BACKEND_SOFT, &sandbox), PH_E_BACKEND);
    assert_null(sandbox);
    assert_non_null(strstr(error.message, ADVICE));
}

static void auto_without_kvm_says_what_is_wrong_with_both(void **state) {
    ph_sandbox *sandbox = NULL;

    (void)state;
    ph__system.open = open_without_kvm;
    ph_status status = make(PH_BACKEND_AUTO, &sandbox);
    ph__system.open = open;
    assert_int_equal(status, PH_E_BACKEND);
    assert_null(sandbox);
    assert_non_null(strstr(error.message, "cannot open /dev/kvm"));
    assert_non_null(strstr(error.message, ADVICE));
}

/* test_needs_kvm of what other tests link. */
static void needs_kvm(void) {
    const char *wanted = getenv("PINHOLE_BACKEND");
    ph_sandbox *sandbox = NULL;
    const bool unwanted = wanted && strcmp(wanted, "soft") == 0;

    if (!unwanted && make(PH_BACKEND_KVM, &sandbox) == PH_OK) {
        ph_sandbox_destroy(sandbox);
        return;
    }
    if (getenv("PH_TEST_REQUIRE_KVM") && !unwanted)
        fail_msg("%s", error.message);
    fprintf(stderr, "SKIPPED, this test needs KVM: %s\n", unwanted ? "it is unwanted" : error.message);
    skip();
}

static void auto_is_kvm_where_it_works(void **state) {
    ph_sandbox *sandbox = NULL;

    (void)state;
    needs_kvm();
    assert_int_equal(make(PH_BACKEND_AUTO, &sandbox), PH_OK);
    assert_int_equal(ph_sandbox_start(sandbox), PH_OK);
    ph_sandbox_destroy(sandbox);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soft_is_refused_with_what_to_do),
        cmocka_unit_test(auto_without_kvm_says_what_is_wrong_with_both),
        cmocka_unit_test(auto_is_kvm_where_it_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
