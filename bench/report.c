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

/* Adds (number), whose key, unit and reach are set: value, min and max from the numbers at (values), one a
 * round. */
static void add_number(struct bench_report *report, struct number number, struct bench_floor floor,
                       double *values) {
    size_t rounds = floor.subject->rounds;

    number.value = bench_median(values, rounds);
    number.min = values[0];
    number.max = values[rounds - 1];
    memcpy(values, floor.subject->wall, rounds * sizeof *values);
    number.floor_us = floor.times * bench_median(values, rounds) / 1000;
    if (!isfinite(number.value) || report->number_count == NUMBERS_MAX)
        bench_fail("%s came to nothing that can be reported", number.key);
    report->numbers[report->number_count++] = number;
}

void bench_report_ratio(struct bench_report *report, const char *key, const struct bench_subject *subject,
                        struct bench_floor floor, double reach) {
    double *values = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        values[i] = subject->wall[i] / (floor.times * floor.subject->wall[i]);
    add_number(report, (struct number){.key = key, .unit = "ratio", .reach = reach}, floor, values);
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
    add_number(report, (struct number){.key = key, .unit = "us", .reach = reach}, floor, values);
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
            printf("  %-38s %10.3f %10.3f %10.3f %s\n", row->what, row->value, row->min, row->max, row->unit);
    }
}

void bench_report_print(const struct bench_report *report) {
    printf("%-26s %10s %10s %10s %-6s %12s %8s\n", "", "median", "min", "max", "", "floor", "reach");
    for (size_t i = 0; i < report->number_count; i++) {
        const struct number *number = &report->numbers[i];
        printf("%-26s %10.3f %10.3f %10.3f %-6s %9.1f us %8.2f  %s\n", number->key, number->value,
               number->min, number->max, number->unit, number->floor_us, number->reach,
               number->value <= number->reach ? "reached" : "above");
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
    FILE *file = fopen(path, "we");

    if (!file)
        bench_fail("%s: %s", path, strerror(errno));
    fputs("{\n", file);
    for (size_t i = 0; i < report->number_count; i++) {
        const struct number *number = &report->numbers[i];
        fprintf(
            file,
            "  \"%s\": {\"value\": %.6g, \"min\": %.6g, \"max\": %.6g, \"unit\": \"%s\", \"floor\": %.6g, "
            "\"reach\": %.6g},\n",
            number->key, number->value, number->min, number->max, number->unit, number->floor_us,
            number->reach);
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
