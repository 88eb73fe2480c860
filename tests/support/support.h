/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What tests of real VMs share: finding guests, making sandboxes, skipping clearly where there is no KVM.
 * Every helper fails the running test with a message when it cannot do its work.
 */
#ifndef PH_TESTS_SUPPORT_H
#define PH_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pinhole/pinhole.h>

/* A time-out for calls that should return at once: generous, so that a slow machine does not fail a test. */
#define TEST_TIMEOUT_NS 30000000000ull

/* Skips the running test, saying why, when it would run on KVM and this machine has no usable one, or the
 * environment's PINHOLE_BACKEND is soft; fails it where the environment has PH_TEST_REQUIRE_KVM, since KVM is
 * then what the run is about. Call it first in each test that makes a sandbox. */
void test_needs_kvm(void);

/* Whether the tests run on the soft backend. */
bool test_is_soft(void);

/* Skips the running test on the soft backend, saying why. Call it behind test_needs_kvm. */
void test_not_on_soft(const char *why);

/* Whether AddressSanitizer is in this process. It keeps what is freed for a while, and with it the plug-in is
 * opened in a way that leaves Unicorn its abort() (src/vm/soft_guard.c). */
bool test_has_address_sanitizer(void);

/* Skips the running test where Unicorn would end the process. */
void test_needs_soft_guard(void);

/* Bytes: Unicorn itself forgets some tens with each sandbox, and with each restore of one whose code has
 * changed. Ours to lose would be more. */
#define TEST_UNICORN_FORGETS 1024u

/* (count) divided by the environment's PH_TEST_SCALE, for processors that are emulated; at least 1. */
unsigned test_scaled(unsigned count);

/* The path of a guest: an example (build/guests) or one of the tests' own (build/tests/guests). Static
 * storage. */
const char *test_guest_path(const char *name);

/* Opens a guest by name. */
ph_image *test_image(const char *name);

/* A sandbox of (image), not started. (config) may be NULL; a missing time-out becomes TEST_TIMEOUT_NS. */
ph_sandbox *test_sandbox(ph_image *image, const ph_config *config);

/* A started sandbox of the guest called (name), without host functions. */
ph_sandbox *test_started(const char *name, const ph_config *config);

/* The export (name) of the sandbox's image. */
const ph_function *test_export(ph_image *image, const char *name);

/* Calls an export of (image) by name. */
ph_status test_call(ph_sandbox *sandbox, ph_image *image, const char *name, const ph_value *args,
                    size_t count, ph_value *result);

/* Asserts on a status, showing both by kind, and the sandbox's message. */
void test_status(ph_sandbox *sandbox, ph_status got, ph_status wanted);

/* Nanoseconds of the monotonic clock. */
uint64_t test_now_ns(void);

/* How many pages of memory this process has. */
unsigned long test_resident_pages(void);

#endif
