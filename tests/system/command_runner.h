/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Runs the pinhole command as a user's shell would, for test_command*.c, and keeps what it said.
 */
#ifndef PH_TESTS_COMMAND_RUNNER_H
#define PH_TESTS_COMMAND_RUNNER_H

#include <stddef.h>
#include <sys/types.h>

/* What one run left behind. (out) and (err) have a NUL behind their bytes. */
struct outcome {
    int status; /* as a shell says it: 128 + signal when one ended the command itself */
    char *out, *err;
    size_t out_size, err_size;
};

/* A run under way. */
struct running {
    pid_t process;
    int out, err;
};

/* Arguments of the command, without its name: ARGUMENTS("call", "--raw", path). */
#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Runs the command to its end, with nothing on its stdin. */
struct outcome run_command(const char *const *arguments);

/* As above; its stdin holds (size) bytes of (input). */
struct outcome run_command_with_input(const char *const *arguments, const void *input, size_t size);

/* Starts the command with the descriptor (input) as its stdin, for tests that do something meanwhile. */
struct running command_start(const char *const *arguments, int input);

/* Starts the command, with its stdout at (output), which is closed when it has ended; -1 is where its stderr
 * goes. */
struct running command_start_to(const char *const *arguments, int input, int output);

/* Waits for its end. */
struct outcome command_wait(struct running *running);

void outcome_free(struct outcome *outcome);

/* The path of the unmodified busybox. Skips the running test where nobody has fetched it. */
const char *busybox_path(void);

/* Fails the test unless the run ended with (status), printed (out) and nothing on stderr. Frees (outcome). */
void assert_prints(struct outcome outcome, int status, const char *out);

/* Fails the test unless the run ended with (status), printed nothing on stdout, and its first line on stderr
 * begins with (start). Frees (outcome). */
void assert_fails(struct outcome outcome, int status, const char *start);

#endif
