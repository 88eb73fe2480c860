/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What memory does a sandbox take? 500 of the example guest hello-musl, made of one snapshot, not traced:
 * idle, after a call each, and after a call and a restore each. The key is the host process's private memory.
 * The kernel's own is in the table beside it, as what it counts under its names, and as what all of the
 * machine has less: that is right only where nothing else happens on it.
 *
 * Private is what the kernel calls so: pages that a single mapping has. Those of guest memory that the host
 * has mapped twice are shared with nobody else all the same; "proportional" has them too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "guest.h"

#define ROUNDS 3u
#define SANDBOXES 500u
#define SETTLE_SECONDS 1u

/* One number of one file in /proc, the sum of one or two lines of it. */
static const struct {
    const char *what;
    const char *path;
    const char *lines[2];
    bool left; /* it says what is left, and not what is taken */
} numbers[] = {
    {"private", "/proc/self/smaps_rollup", {"Private_Clean:", "Private_Dirty:"}, false},
    {"proportional", "/proc/self/smaps_rollup", {"Pss:"}, false},
    {"kernel: slab", "/proc/meminfo", {"Slab:"}, false},
    {"kernel: page tables", "/proc/meminfo", {"PageTables:"}, false},
    {"kernel: page tables of KVM", "/proc/meminfo", {"SecPageTables:"}, false},
    {"kernel: vmalloc", "/proc/meminfo", {"VmallocUsed:"}, false},
    {"the machine: available", "/proc/meminfo", {"MemAvailable:"}, true},
    {"the machine: free", "/proc/meminfo", {"MemFree:"}, true},
};

#define NUMBER_COUNT (sizeof numbers / sizeof numbers[0])
#define PRIVATE 0u /* its index */

/* The KiB in the line (name) of (path), 0 where an older kernel has no such line. */
static double read_kib(const char *path, const char *name) {
    FILE *file = fopen(path, "re");
    char line[256];
    double kib = 0;

    if (!file)
        bench_fail("%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtod(line + strlen(name), NULL);
    fclose(file);
    return kib;
}

struct reading {
    double kib[NUMBER_COUNT];
};

static struct reading take_reading(void) {
    struct reading reading = {0};

    for (size_t i = 0; i < NUMBER_COUNT; i++)
        for (size_t j = 0; j < 2 && numbers[i].lines[j]; j++)
            reading.kib[i] += read_kib(numbers[i].path, numbers[i].lines[j]);
    return reading;
}

enum moment { IDLE, CALLED, RESTORED, MOMENTS };

/* KiB for each sandbox, of each number at each moment, one a round. */
static double found[MOMENTS][NUMBER_COUNT][ROUNDS];

static void note(enum moment moment, size_t round, const struct reading *before) {
    struct reading now = take_reading();

    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        double more = now.kib[i] - before->kib[i];
        found[moment][i][round] = (numbers[i].left ? -more : more) / SANDBOXES;
    }
}

static void measure(const struct bench_guest *guest, size_t round) {
    const ph_value name = {.type = PH_STR, .str = "bench"};
    static ph_sandbox *sandboxes[SANDBOXES];

    /* The kernel takes back in its own time what VMs before have left. */
    sleep(SETTLE_SECONDS);
    struct reading before = take_reading();
    for (size_t i = 0; i < SANDBOXES; i++)
        sandboxes[i] = bench_guest_sandbox(guest);
    note(IDLE, round, &before);
    for (size_t i = 0; i < SANDBOXES; i++)
        bench_guest_call(guest, sandboxes[i], &name);
    note(CALLED, round, &before);
    for (size_t i = 0; i < SANDBOXES; i++)
        bench_guest_restore(guest, sandboxes[i]);
    note(RESTORED, round, &before);
    for (size_t i = 0; i < SANDBOXES; i++)
        ph_sandbox_destroy(sandboxes[i]);
}

/* As many files as are allowed: each sandbox has a few. */
static void allow_files(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_fail("getrlimit: %s", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_fail("setrlimit: %s", strerror(errno));
}

void bench_memory(const struct bench_paths *paths, struct bench_report *report) {
    static const char *const tables[MOMENTS] = {
        [IDLE] = "memory_idle", [CALLED] = "memory_after_a_call", [RESTORED] = "memory_after_a_restore"};
    struct bench_guest guest = bench_guest_open(paths->guests, "hello-musl", "greet", bench_register_weekday);

    allow_files();
    bench_guest_warm(&guest);
    /* What the process needs once is there already: the first round would have it as the sandboxes'. */
    ph_sandbox_destroy(bench_guest_sandbox(&guest));
    for (size_t round = 0; round < ROUNDS; round++)
        measure(&guest, round);
    bench_report_number(report, &(struct bench_number){
                                    .key = "memory.per_sandbox_kib",
                                    .unit = "KiB",
                                    .values = found[IDLE][PRIVATE],
                                    .count = ROUNDS,
                                    .reach = 64,
                                    .goal = BENCH_AT_MOST,
                                });
    for (size_t moment = 0; moment < MOMENTS; moment++)
        for (size_t i = 0; i < NUMBER_COUNT; i++)
            bench_report_row(report, tables[moment], numbers[i].what, "KiB", found[moment][i], ROUNDS);
    bench_guest_close(&guest);
}
