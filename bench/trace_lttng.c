/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The same span traced by a native program with LTTng-UST (lttng_span.c), beside one of ours in a guest, in
 * turns. Skipped, with a line that says so, where the build found no LTTng-UST or there is no `lttng` to run
 * a session.
 *
 * A session daemon that runs already is used and left alone; else one is started here and ended again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "floor.h"
#include "trace.h"

#ifdef BENCH_LTTNG

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 40u
#define BATCH 10u
#define SPANS 2000u /* of one turn, as in lttng_span.c */
#define DAEMON_TRIES 50u

/* Starts the program (arguments)[0], found on PATH, in silence. 0 when it cannot be. */
static pid_t start(const char *const *arguments) {
    posix_spawn_file_actions_t actions;
    pid_t process = 0;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&process, arguments[0], &actions, NULL, (char **)arguments, environ) != 0)
        process = 0;
    posix_spawn_file_actions_destroy(&actions);
    return process;
}

static bool succeeds(const char *const *arguments) {
    pid_t process = start(arguments);
    int status;

    return process && waitpid(process, &status, 0) == process && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* One `lttng` command, which starts no daemon by itself. */
#define LTTNG(...) succeeds((const char *const[]){"lttng", "--no-sessiond", __VA_ARGS__, NULL})

static void pause_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* A session daemon of our own, or 0 where there is one already. False when there is none to be had. */
static bool daemon_start(pid_t *process) {
    static const char *const arguments[] = {"lttng-sessiond", "--no-kernel", "--quiet", NULL};

    *process = 0;
    if (LTTNG("list"))
        return true;
    *process = start(arguments);
    if (!*process)
        return false;
    for (size_t i = 0; i < DAEMON_TRIES; i++) {
        if (LTTNG("list"))
            return true;
        pause_ms(100);
    }
    return false;
}

static void daemon_stop(pid_t process) {
    if (!process)
        return;
    kill(process, SIGTERM);
    waitpid(process, NULL, 0);
}

static bool session_start(const char *name, const char *folder) {
    char output[128];

    snprintf(output, sizeof output, "--output=%s/trace", folder);
    return LTTNG("create", name, output) &&
           LTTNG("enable-event", "--userspace", "--session", name, "pinhole_bench:*") && LTTNG("start", name);
}

static uint64_t lttng_once(void *context) {
    struct floor_native *native = context;

    floor_native_once(native);
    return (uint64_t)bench_cycles_ns(floor_native_result(native));
}

static void measure(const struct bench_paths *paths, struct bench_report *report) {
    struct trace_guest guest =
        trace_guest_open(paths, &(struct trace_way){.traced = true, .synchronous = true});
    struct trace_loop spans = trace_loop_of(&guest, "spans", SPANS);
    struct floor_native *native = floor_native_new(BENCH_LTTNG, environ);
    enum { OURS, LTTNGS, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [OURS] = {.once = trace_loop_once, .context = &spans},
        [LTTNGS] = {.once = lttng_once, .context = native},
    };
    double values[ROUNDS];

    bench_run(subjects, SUBJECTS, 1, BATCH);
    bench_free(subjects, SUBJECTS);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    for (size_t i = 0; i < ROUNDS; i++)
        values[i] = subjects[LTTNGS].wall[i] / subjects[OURS].wall[i];
    bench_report_row(report, "trace_lttng", "LTTng-UST beside ours", "ratio", values, ROUNDS);
    for (size_t i = 0; i < SUBJECTS; i++)
        for (size_t j = 0; j < ROUNDS; j++)
            subjects[i].wall[j] /= SPANS;
    bench_report_row(report, "trace_lttng", "a span of ours, in a guest", "ns", subjects[OURS].wall, ROUNDS);
    bench_report_row(report, "trace_lttng", "a span of LTTng-UST, native", "ns", subjects[LTTNGS].wall,
                     ROUNDS);
    bench_free(subjects, SUBJECTS);
    floor_native_free(native);
    trace_guest_close(&guest);
}

void bench_trace_lttng(const struct bench_paths *paths, struct bench_report *report) {
    char folder[] = "/tmp/pinhole-bench-XXXXXX";
    char name[64];
    pid_t daemon;

    if (!mkdtemp(folder))
        bench_fail("a folder for the trace: %s", strerror(errno));
    snprintf(name, sizeof name, "pinhole-bench-%d", (int)getpid());
    bool started = daemon_start(&daemon);
    bool session = started && session_start(name, folder);
    if (session)
        measure(paths, report);
    else
        fputs("bench: LTTng-UST is left out: no session of it could be started\n", stderr);
    if (started)
        LTTNG("destroy", name);
    daemon_stop(daemon);
    succeeds((const char *const[]){"rm", "-rf", folder, NULL});
}

#else

void bench_trace_lttng(const struct bench_paths *paths, struct bench_report *report) {
    (void)paths;
    (void)report;
    fputs(
        "bench: LTTng-UST is left out: lttng-tools and liblttng-ust-dev were not there when this was built\n",
        stderr);
}

#endif
