/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How much memory does a sink take that has seen ten million spans of a hundred stacks? A process for each
 * format: the most that was resident at any time up to the sink's closing, beyond what was before its
 * opening. What is written is thrown away: a stream's at /dev/null, and CTF's file is emptied every hundred
 * thousand spans.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats.h"
#include "spans.h"

#define SPANS 10000000u
#define TREES (SPANS / SPANS_IN_TREE)
#define TREES_AT_A_TIME 1000u

/* The KiB in the line (name) of /proc/self/status. */
static double status_kib(const char *name) {
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    double kib = 0;

    if (!file)
        bench_fail("/proc/self/status: %s", strerror(errno));
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtod(line + strlen(name), NULL);
    fclose(file);
    return kib;
}

/* MiB more than before. */
static double grow(const struct format *format, const char *path) {
    struct spans spans = {0};
    char file[PATH_SIZE];
    double before = status_kib("VmRSS:");
    ph_sink sink = format_open(format, path);

    format_file(format, path, file);
    while (spans.trees < TREES) {
        spans_give(&spans, TREES_AT_A_TIME, sink.span, sink.context);
        if (!format->open && truncate(file, 0) != 0)
            bench_fail("%s: %s", file, strerror(errno));
    }
    sink.close(sink.context);
    return (status_kib("VmHWM:") - before) / 1024;
}

/* grow, in a process that has had no other sink. */
static double grow_apart(const struct format *format, const char *folder) {
    char path[PATH_SIZE] = "/dev/null";
    double grown = 0;
    int ends[2], status;

    if (!format->open)
        snprintf(path, sizeof path, "%.64s/trace", folder);
    fflush(NULL);
    if (pipe(ends) != 0)
        bench_fail("a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        grown = grow(format, path);
        _exit(write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
    }
    close(ends[1]);
    bool is_told = child > 0 && read(ends[0], &grown, sizeof grown) == sizeof grown;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !is_told)
        bench_fail("measuring the memory of %s failed", format->name);
    if (!format->open)
        format_remove(format, path);
    return grown;
}

void bench_export_memory(const struct bench_paths *paths, struct bench_report *report) {
    char folder[PATH_SIZE];
    double most = 0;

    (void)paths;
    folder_make(folder);
    for (size_t i = 0; i < format_count; i++) {
        double grown = grow_apart(&formats[i], folder);
        most = grown > most ? grown : most;
        bench_report_row(report, "export_memory", formats[i].name, "MiB", &grown, 1);
    }
    folder_remove(folder);
    bench_report_number(
        report, &(struct bench_number){
                    .key = "export.rss_growth_mib", .unit = "MiB", .values = &most, .count = 1, .reach = 16});
}
