/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Collects what the benchmarks found, prints it, and writes it down as JSON (bench.h, report.h). Keys, units
 * and names of lines are constants of the benchmarks: they hold no character that JSON would want escaped.
 */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
    const char *key;
    const char *unit;
    double value, min, max;
    double floor_us;
    double reach;
    enum bench_goal goal;
};

struct row {
    const char *table;
    const char *what;
    const char *unit;
    double value, min, max;
};

#define NUMBERS_MAX 64
#define ROWS_MAX 256

struct bench_report {
    size_t number_count, row_count;
    struct number numbers[NUMBERS_MAX];
    struct row rows[ROWS_MAX];
};

struct bench_report *bench_report_new(void) {
    struct bench_report *report = calloc(1, sizeof *report);

    if (!report)
        bench_fail("out of memory");
    return report;
}

void bench_report_free(struct bench_report *report) {
    free(report);
}

void bench_report_number(struct bench_report *report, const struct bench_number *number) {
    struct number reported = {
        .key = number->key,
        .unit = number->unit,
        .value = bench_median(number->values, number->count),
        .floor_us = number->floor_us,
        .reach = number->reach,
        .goal = number->goal,
    };

    reported.min = number->values[0];
    reported.max = number->values[number->count - 1];
    if (!isfinite(reported.value) || report->number_count == NUMBERS_MAX)
        bench_fail("%s came to nothing that can be reported", number->key);
    report->numbers[report->number_count++] = reported;
}

/* Reports the numbers at (values), one a round of (floor). */
static void compared(struct bench_report *report, const char *key, const char *unit, double *values,
                     struct bench_floor floor, double reach) {
    size_t rounds = floor.subject->rounds;
    double *floors = bench_numbers(rounds);

    memcpy(floors, floor.subject->wall, rounds * sizeof *floors);
    bench_report_number(report, &(struct bench_number){
                                    .key = key,
                                    .unit = unit,
                                    .values = values,
                                    .count = rounds,
                                    .floor_us = floor.times * bench_median(floors, rounds) / 1000,
                                    .reach = reach,
                                });
    free(floors);
}

void bench_report_ratio(struct bench_report *report, const char *key, const struct bench_subject *subject,
                        struct bench_floor floor, double reach) {
    double *values = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        values[i] = subject->wall[i] / (floor.times * floor.subject->wall[i]);
    compared(report, key, "ratio", values, floor, reach);
    if (subject->processor && floor.subject->processor) {
        for (size_t i = 0; i < subject->rounds; i++)
            values[i] = subject->processor[i] / (floor.times * floor.subject->processor[i]);
        bench_report_row(report, "processor_time", key, "ratio", values, subject->rounds);
    }
    free(values);
}

void bench_report_added(struct bench_report *report, const char *key, const struct bench_subject *subject,
                        struct bench_floor floor, double reach) {
    double *values = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        values[i] = (subject->wall[i] - floor.times * floor.subject->wall[i]) / 1000;
    compared(report, key, "us", values, floor, reach);
    free(values);
}

void bench_report_row(struct bench_report *report, const char *table, const char *what, const char *unit,
                      double *values, size_t count) {
    if (report->row_count == ROWS_MAX)
        bench_fail("too many lines in the tables");
    struct row *row = &report->rows[report->row_count++];
    *row = (struct row){.table = table, .what = what, .unit = unit, .value = bench_median(values, count)};
    row->min = values[0];
    row->max = values[count - 1];
}

void bench_report_ratio_row(struct bench_report *report, const char *table, const char *what,
                            const struct bench_subject *subject, const struct bench_subject *floor) {
    double *values = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        values[i] = subject->wall[i] / floor->wall[i];
    bench_report_row(report, table, what, "ratio", values, subject->rounds);
    free(values);
}

/* Whether the row at (index) is the first of its table. */
static bool starts_table(const struct bench_report *report, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (strcmp(report->rows[i].table, report->rows[index].table) == 0)
            return false;
    return true;
}

static void print_table(const struct bench_report *report, const char *table) {
    printf("\n%s\n", table);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct row *row = &report->rows[i];
        if (strcmp(row->table, table) == 0)
            printf("  %-46s %10.3f %10.3f %10.3f %s\n", row->what, row->value, row->min, row->max, row->unit);
    }
}

static const char *verdict(const struct number *number) {
    if (number->goal == BENCH_NO_GOAL)
        return "";
    if (number->goal == BENCH_AT_LEAST)
        return number->value >= number->reach ? "reached" : "below";
    return number->value <= number->reach ? "reached" : "above";
}

void bench_report_print(const struct bench_report *report) {
    printf("%-28s %10s %10s %10s %-6s %12s %8s\n", "", "median", "min", "max", "", "floor", "reach");
    for (size_t i = 0; i < report->number_count; i++) {
        const struct number *number = &report->numbers[i];
        printf("%-28s %10.3f %10.3f %10.3f %-6s %9.1f us %8.2f  %s\n", number->key, number->value,
               number->min, number->max, number->unit, number->floor_us, number->reach, verdict(number));
    }
    for (size_t i = 0; i < report->row_count; i++)
        if (starts_table(report, i))
            print_table(report, report->rows[i].table);
}

static void write_table(const struct bench_report *report, const char *table, FILE *file) {
    const char *separator = "";

    fprintf(file, "    \"%s\": [", table);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct row *row = &report->rows[i];
        if (strcmp(row->table, table) != 0)
            continue;
        fprintf(
            file,
            "%s\n      {\"what\": \"%s\", \"value\": %.6g, \"min\": %.6g, \"max\": %.6g, \"unit\": \"%s\"}",
            separator, row->what, row->value, row->min, row->max, row->unit);
        separator = ",";
    }
    fputs("\n    ]", file);
}

void bench_report_write(const struct bench_report *report, const char *path) {
    static const char *const goals[] = {
        [BENCH_AT_MOST] = "at most", [BENCH_AT_LEAST] = "at least", [BENCH_NO_GOAL] = "none"};
    FILE *file = fopen(path, "we");

    if (!file)
        bench_fail("%s: %s", path, strerror(errno));
    fputs("{\n", file);
    for (size_t i = 0; i < report->number_count; i++) {
        const struct number *number = &report->numbers[i];
        fprintf(
            file,
            "  \"%s\": {\"value\": %.6g, \"min\": %.6g, \"max\": %.6g, \"unit\": \"%s\", \"floor\": %.6g, "
            "\"reach\": %.6g, \"goal\": \"%s\"},\n",
            number->key, number->value, number->min, number->max, number->unit, number->floor_us,
            number->reach, goals[number->goal]);
    }
    const char *separator = "\n";
    fputs("  \"tables\": {", file);
    for (size_t i = 0; i < report->row_count; i++) {
        if (!starts_table(report, i))
            continue;
        fputs(separator, file);
        write_table(report, report->rows[i].table, file);
        separator = ",\n";
    }
    fputs("\n  }\n}\n", file);
    bool written = !ferror(file);
    if (fclose(file) != 0 || !written)
        bench_fail("%s: %s", path, strerror(errno));
}
