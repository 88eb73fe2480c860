/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox's life, for tests in which any call into the C library or the kernel on the way may fail.
 */
#ifndef PH_TESTS_FAILING_LIFE_H
#define PH_TESTS_FAILING_LIFE_H

#include <stdio.h>

#include "support/failing.h"
#include "support/support.h"

/* Creates a sandbox of (image), tests/guests/loops.c, starts it, calls it twice and destroys it; traced to
 * (file) unless that is NULL. Gives the first status that is not PH_OK, its error in (error); and fails the
 * test when the sandbox then neither serves nor says that it does not. */
ph_status failing_life_live(ph_image *image, FILE *file, ph_error *error);

/* Fails the test unless (status), with (error), is a right one for a life in which (failed) has failed. */
void failing_life_check(unsigned at, const char *failed, ph_status status, const ph_error *error);

/* Fails the test unless calls of all these names have failed by now. */
void failing_life_check_reached(const char *const *names, size_t count);

#endif
