/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Starts the command and collects what it writes (command_runner.h). Output goes to memory files, so that no
 * run waits for its reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/command_runner.h"

#define ARGUMENTS_MAX 64

static const char *environment(const char *name) {
    const char *value = getenv(name);

    if (!value)
        fail_msg("%s is not set: run this by `meson test`", name);
    return value;
}

static int memory_file(void) {
    int file = memfd_create("command", MFD_CLOEXEC);

    assert_true(file >= 0);
    return file;
}

/* In the child: becomes the command. */
static void become_command(const char *command, const char *const *arguments, int input, int output,
                           int errors) {
    const char *words[ARGUMENTS_MAX + 2] = {command};

    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
        words[i + 1] = arguments[i];
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0)
        _exit(99);
    execv(command, (char *const *)words);
    _exit(99);
}

struct running command_start_to(const char *const *arguments, int input, int output) {
    const char *command = environment("PH_TEST_COMMAND");
    struct running running = {.err = memory_file()};

    running.out = output >= 0 ? output : dup(running.err);
    running.process = fork();
    assert_true(running.process >= 0);
    if (running.process == 0)
        become_command(command, arguments, input, running.out, running.err);
    return running;
}

struct running command_start(const char *const *arguments, int input) {
    return command_start_to(arguments, input, memory_file());
}

/* All bytes of the memory file (file), which is closed. What is no memory file has none. */
static char *take_bytes(int file, size_t *size) {
    struct stat information;

    *size = fstat(file, &information) == 0 && S_ISREG(information.st_mode) ? (size_t)information.st_size : 0;
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    for (size_t done = 0; done < *size;) {
        ssize_t got = pread(file, bytes + done, *size - done, (off_t)done);
        assert_true(got > 0);
        done += (size_t)got;
    }
    bytes[*size] = 0;
    close(file);
    return bytes;
}

struct outcome command_wait(struct running *running) {
    struct outcome outcome;
    int status = 0;

    while (waitpid(running->process, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    outcome.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    outcome.out = take_bytes(running->out, &outcome.out_size);
    outcome.err = take_bytes(running->err, &outcome.err_size);
    return outcome;
}

struct outcome run_command_with_input(const char *const *arguments, const void *input, size_t size) {
    int file = memory_file();

    for (size_t done = 0; done < size;) {
        ssize_t written = pwrite(file, (const char *)input + done, size - done, (off_t)done);
        assert_true(written > 0);
        done += (size_t)written;
    }
    struct running running = command_start(arguments, file);
    close(file);
    return command_wait(&running);
}

struct outcome run_command(const char *const *arguments) {
    return run_command_with_input(arguments, "", 0);
}

void outcome_free(struct outcome *outcome) {
    free(outcome->out);
    free(outcome->err);
    *outcome = (struct outcome){0};
}

const char *busybox_path(void) {
    static char path[512];

    snprintf(path, sizeof path, "%s/busybox/bin/busybox", environment("PH_TEST_CACHE"));
    if (access(path, R_OK) != 0)
        skip(); /* `make test` fetches it */
    return path;
}

void assert_prints(struct outcome outcome, int status, const char *out) {
    assert_string_equal(outcome.err, "");
    assert_string_equal(outcome.out, out);
    assert_int_equal(outcome.status, status);
    outcome_free(&outcome);
}

void assert_fails(struct outcome outcome, int status, const char *start) {
    if (strncmp(outcome.err, start, strlen(start)) != 0)
        assert_string_equal(outcome.err, start);
    assert_string_equal(outcome.out, "");
    assert_int_equal(outcome.status, status);
    outcome_free(&outcome);
}
