/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Runs the benchmarks, all or one: `pinhole-bench --guests DIR --bench-guests DIR --output FILE [NAME]`.
 * Called by scripts/bench.sh, which knows the folders.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const struct {
    const char *name;
    void (*run)(const struct bench_paths *paths, struct bench_report *report);
} questions[] = {
    {"call", bench_call},
    {"create", bench_create},
    {"create-from", bench_create_from},
    {"restore", bench_restore},
    {"restore-greedy", bench_greedy},
    {"memory", bench_memory},
    {"interrupt", bench_interrupt},
    {"pool", bench_pool},
    {"compute", bench_compute},
    {"soft", bench_soft},
    {"trace", bench_trace},
    {"trace-drain", bench_trace_drain},
    {"trace-decode", bench_trace_decode},
    {"trace-policy", bench_trace_policy},
    {"trace-lttng", bench_trace_lttng},
    {"export-speed", bench_export_speed},
    {"export-otlp", bench_export_otlp},
    {"export-memory", bench_export_memory},
    {"export-call", bench_export_call},
};

#define QUESTION_COUNT (sizeof questions / sizeof questions[0])

static _Noreturn void usage(void) {
    fputs("usage: pinhole-bench --guests DIR --bench-guests DIR --output FILE [NAME]\nNAME is one of:",
          stderr);
    for (size_t i = 0; i < QUESTION_COUNT; i++)
        fprintf(stderr, " %s", questions[i].name);
    fputc('\n', stderr);
    exit(2);
}

/* Whether (only) is (name), or its first part: `trace` is `trace-drain` too. */
static bool is_asked(const char *name, const char *only) {
    size_t length = strlen(only);
    return strncmp(name, only, length) == 0 && (name[length] == '\0' || name[length] == '-');
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"guests", required_argument, NULL, 'g'},
        {"bench-guests", required_argument, NULL, 'b'},
        {"output", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0},
    };
    struct bench_paths paths = {0};
    const char *output = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'g')
            paths.guests = optarg;
        else if (option == 'b')
            paths.bench_guests = optarg;
        else if (option == 'o')
            output = optarg;
        else
            usage();
    }
    const char *only = argv[optind];
    if (!paths.guests || !paths.bench_guests || !output || (only && argv[optind + 1]))
        usage();

    struct bench_report *report = bench_report_new();
    size_t run = 0;
    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        if (only && !is_asked(questions[i].name, only))
            continue;
        fprintf(stderr, "bench: %s\n", questions[i].name);
        questions[i].run(&paths, report);
        run++;
    }
    if (run == 0)
        usage();
    bench_report_print(report);
    bench_report_write(report, output);
    bench_report_free(report);
    return 0;
}
