/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics without a VM: what is counted is read, whichever way, from any number of sandboxes and threads at
 * once; the two text formats; and the document that lists them all.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metrics/table.h"
#include "metrics/text.h"
#include "support/failing.h"
#include "support/openmetrics.h"
#include "support/support.h"

#define ONE_GHZ 1000000u /* kHz: a cycle is a nanosecond */

static ph_metrics *made(void) {
    ph_metrics *metrics;
    ph_error error;

    assert_int_equal(ph_metrics_create(&metrics, &error), PH_OK);
    return metrics;
}

static struct ph__counts *opened(ph_metrics *metrics) {
    struct ph__counts *counts;
    ph_error error;

    assert_int_equal(ph__counts_open(metrics, ONE_GHZ, &counts, &error), PH_OK);
    assert_non_null(counts);
    return counts;
}

static ph_metrics_values values_of(ph_metrics *metrics) {
    ph_metrics_values values = PH_METRICS_VALUES_INIT;

    assert_int_equal(ph_metrics_read(metrics, &values), PH_OK);
    return values;
}

/* ---- visiting ------------------------------------------------------------------------------------------ */

struct visit {
    char names[128][64];
    size_t count, series, histograms;
    uint64_t start_ns;
};

static bool is_one_of(const char *word, const char *const *list) {
    while (*list && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

/* OpenTelemetry's rules for names and units. */
static void check_conventions(const ph_metric *metric) {
    static const char *const units[] = {"s",      "By",        "{sandbox}", "{call}",   "{error}", "{fault}",
                                        "{exit}", "{restore}", "{page}",    "{record}", "{item}",  NULL};

    assert_int_equal(strspn(metric->name, "abcdefghijklmnopqrstuvwxyz_."), strlen(metric->name));
    assert_int_equal(strncmp(metric->name, "pinhole.", 8), 0);
    if (!is_one_of(metric->unit, units))
        fail_msg("%s has the unit %s", metric->name, metric->unit);
    assert_true(strlen(metric->description) > 10);
    assert_true(metric->description[strlen(metric->description) - 1] == '.');
}

static void on_metric(void *context, const ph_metric *metric) {
    struct visit *visit = context;
    uint64_t sum = 0;

    assert_int_equal(metric->size, sizeof *metric);
    visit->series++;
    visit->start_ns = metric->start_ns;
    check_conventions(metric);
    if (metric->kind == PH_METRIC_HISTOGRAM) {
        visit->histograms++;
        assert_string_equal(metric->unit, "s");
        assert_int_equal(metric->bucket_count, PH_METRIC_BUCKETS);
        for (size_t i = 0; i < PH_METRIC_BUCKETS; i++)
            sum += metric->buckets[i];
        assert_int_equal(sum, metric->count);
    } else {
        assert_null(metric->buckets);
        assert_int_equal(metric->count, 0);
    }
    assert_int_equal(metric->attribute == NULL, metric->attribute_value == NULL);
    if (visit->count && strcmp(visit->names[visit->count - 1], metric->name) == 0)
        return;
    /* A name comes once, and none is a namespace of another. */
    for (size_t i = 0; i < visit->count; i++) {
        const char *one = visit->names[i], *other = metric->name;
        const size_t length = strlen(one) < strlen(other) ? strlen(one) : strlen(other);
        if (strncmp(one, other, length) == 0 && (one[length] == 0 || one[length] == '.') &&
            (other[length] == 0 || other[length] == '.'))
            fail_msg("%s and %s", one, other);
    }
    snprintf(visit->names[visit->count++], sizeof visit->names[0], "%s", metric->name);
}

static void series_of_a_name_come_together_and_keep_the_conventions(void **state) {
    struct visit visit = {0};
    ph_metrics *metrics = made();
    (void)state;

    ph_metrics_visit(metrics, on_metric, &visit);
    assert_int_equal(visit.count, PH__METRIC_FAMILIES);
    assert_int_equal(visit.histograms, 6);
    assert_true(visit.series > 80);
    assert_true(visit.start_ns > 1600000000000000000ull);
    ph_metrics_visit(metrics, NULL, NULL);
    ph_metrics_visit(NULL, on_metric, &visit);
    assert_int_equal(visit.count, PH__METRIC_FAMILIES);
    ph_metrics_destroy(metrics);
    ph_metrics_destroy(NULL);
}

/* ---- counting ------------------------------------------------------------------------------------------ */

static uint64_t cell(const struct ph__counts *counts, unsigned index) {
    return atomic_load(&((struct ph__counts *)counts)->cells[index]);
}

static void a_value_is_in_the_bucket_whose_bound_it_does_not_exceed(void **state) {
    ph_metrics *metrics = made();
    struct ph__counts *counts = opened(metrics);
    (void)state;

    for (unsigned i = 0; i < PH_METRIC_BUCKETS - 1; i++) {
        const uint64_t bound = ph__metric_bounds_ns[i];
        char text[32];
        assert_true((double)bound / 1e9 == ph__metric_bounds[i]);
        snprintf(text, sizeof text, "%.17g", ph__metric_bounds[i]);
        assert_true(strtod(ph__metric_bound_texts[i], NULL) == ph__metric_bounds[i]);
        assert_true(i == 0 || bound > ph__metric_bounds_ns[i - 1]);
        uint64_t before = cell(counts, PH__CELL_CALL + i), next = cell(counts, PH__CELL_CALL + i + 1);
        ph__count_cycles(counts, PH__CELL_CALL, bound);
        assert_int_equal(cell(counts, PH__CELL_CALL + i), before + 1);
        assert_int_equal(cell(counts, PH__CELL_CALL + i + 1), next);
        ph__count_cycles(counts, PH__CELL_CALL, bound + 1);
        assert_int_equal(cell(counts, PH__CELL_CALL + i), before + 1);
        assert_int_equal(cell(counts, PH__CELL_CALL + i + 1), next + 1);
    }
    uint64_t last = cell(counts, PH__CELL_CALL + PH_METRIC_BUCKETS - 1);
    ph__count_cycles(counts, PH__CELL_CALL, UINT64_MAX >> 8);
    assert_int_equal(cell(counts, PH__CELL_CALL + PH_METRIC_BUCKETS - 1), last + 1);
    ph__count_cycles(counts, PH__CELL_GUEST, 0);
    assert_int_equal(cell(counts, PH__CELL_GUEST), 1);
    assert_int_equal(values_of(metrics).calls, 2 * (PH_METRIC_BUCKETS - 1) + 1);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
}

static void what_a_sandbox_has_counted_stays_when_it_is_gone(void **state) {
    ph_metrics *metrics = made();
    struct ph__counts *one = opened(metrics), *two = opened(metrics), *three = opened(metrics);
    (void)state;

    ph__count_end(one, PH__CELL_CALL, ph__count_begin(one), 3000, PH_OK);
    ph__count_end(two, PH__CELL_CALL, ph__count_begin(two), 4000, PH_E_PAGE_FAULT);
    ph__count_end(three, PH__CELL_START, ph__count_begin(three), 5000, PH_E_TIMED_OUT);
    ph__count(two, PH__CELL_OUTPUT, 10);
    for (int left = 3; left >= 0; left--) {
        ph_metrics_values values = values_of(metrics);
        assert_int_equal(values.sandboxes, left);
        assert_int_equal(values.sandboxes_created, 3);
        assert_int_equal(values.calls, 2);
        assert_int_equal(values.errors, 2);
        assert_int_equal(values.faults, 1);
        assert_int_equal(values.time_outs, 1);
        assert_int_equal(values.interrupts, 0);
        assert_int_equal(values.guest_ns, 12000);
        assert_int_equal(values.output_bytes, 10);
        /* From the middle of the list, from its end, from its beginning. */
        struct ph__counts *const next[] = {NULL, three, one, two};
        ph__counts_close(next[left], false);
    }
    ph_metrics_destroy(metrics);
}

static void a_call_that_was_not_begun_is_an_error_alone(void **state) {
    ph_metrics *metrics = made();
    struct ph__counts *counts = opened(metrics);
    (void)state;

    ph__count_end(counts, PH__CELL_CALL, ph__count_begin(counts), 1000, PH_E_TOO_LARGE);
    ph__count_error(counts, PH_E_SIGNATURE);
    ph__count_shared(metrics, ph__count_error_cell(PH_E_BUSY), 1);
    ph_metrics_values values = values_of(metrics);
    assert_int_equal(values.errors, 3);
    assert_int_equal(values.calls, 0);
    assert_int_equal(values.guest_ns, 0);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
}

static void every_status_has_a_count_of_its_own(void **state) {
    static const ph_status all[] = {
#define STATUS(name, number, kind, message) PH_##name,
        PH_STATUS_MAP(STATUS)
#undef STATUS
    };
    ph_metrics *metrics = made();
    struct ph__counts *counts = opened(metrics);
    char key[128];
    (void)state;

    for (unsigned i = 1; i < sizeof all / sizeof all[0]; i++)
        for (unsigned j = 0; j < i; j++)
            ph__count_error(counts, all[i]);
    char *text = ph_metrics_text(metrics, PH_METRICS_PROMETHEUS, NULL);
    for (unsigned i = 1; i < sizeof all / sizeof all[0]; i++) {
        snprintf(key, sizeof key, "pinhole_call_errors_total{error_type=\"%s\"}", ph_status_kind(all[i]));
        assert_int_equal(openmetrics_value(text, key), i);
        snprintf(key, sizeof key, "pinhole_guest_faults_total{error_type=\"%s\"}", ph_status_kind(all[i]));
        assert_int_equal(openmetrics_value(text, key), all[i] <= PH_E_PAGE_FAULT ? (int)i : -1);
    }
    free(text);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
}

static void exports_are_counted_by_signal(void **state) {
    ph_metrics *metrics = made();
    (void)state;

    ph_metrics_count_export(metrics, PH_EXPORT_TRACES, 5, 0);
    ph_metrics_count_export(metrics, PH_EXPORT_LOGS, 6, 1);
    ph_metrics_count_export(metrics, PH_EXPORT_METRICS, 0, 7);
    ph_metrics_count_export(metrics, (ph_export_signal)3, 1000, 1000);
    ph_metrics_count_export(NULL, PH_EXPORT_TRACES, 1000, 1000);
    assert_int_equal(values_of(metrics).exported, 11);
    assert_int_equal(values_of(metrics).export_failures, 8);
    char *text = ph_metrics_text(metrics, PH_METRICS_OPENMETRICS, NULL);
    assert_int_equal(openmetrics_value(text, "pinhole_export_sent_total{signal=\"logs\"}"), 6);
    assert_int_equal(openmetrics_value(text, "pinhole_export_failures_total{signal=\"metrics\"}"), 7);
    free(text);
    ph_metrics_destroy(metrics);
}

/* ---- text ---------------------------------------------------------------------------------------------- */

/* Metrics in which every kind of series has something. */
static ph_metrics *known(struct ph__counts **counts) {
    ph_metrics *metrics = made();

    *counts = opened(metrics);
    ph__count_cycles(*counts, PH__CELL_CALL, 17500);
    ph__count_cycles(*counts, PH__CELL_CALL, 21000);
    ph__count_cycles(*counts, PH__CELL_CALL, 12000000000ull);
    ph__count_cycles(*counts, PH__CELL_HOST_FUNCTION, 999);
    ph__count_error(*counts, PH_E_DIVIDE);
    ph__count(*counts, PH__CELL_EXITS + PH__COUNTED_HOST_CALL, 4);
    ph__count(*counts, PH__CELL_OUTPUT, 18446744073709551615ull);
    ph_metrics_count_export(metrics, PH_EXPORT_LOGS, 3, 2);
    return metrics;
}

static char *content_of(const char *path) {
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    char *text = calloc(1, size + 1);
    rewind(file);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

/* PH_TEST_WRITE_GOLDEN in the environment makes the file anew. */
static void check_golden(ph_metrics_format format, const char *name) {
    char path[1024];
    size_t size;
    struct ph__counts *counts;
    ph_metrics *metrics = known(&counts);
    char *text = ph_metrics_text(metrics, format, &size);

    assert_non_null(text);
    assert_int_equal(strlen(text), size);
    snprintf(path, sizeof path, "%s/%s", getenv("PH_TEST_GOLDEN"), name);
    if (getenv("PH_TEST_WRITE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fwrite(text, 1, size, file);
        fclose(file);
    }
    char *golden = content_of(path);
    if (strcmp(text, golden) != 0) {
        size_t at = 0, line = 0;
        for (; text[at] == golden[at]; at++)
            if (text[at] == '\n')
                line = at + 1;
        fail_msg("%s: '%.*s'", name, (int)strcspn(text + line, "\n"), text + line);
    }
    free(golden);
    free(text);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
}

static void the_texts_are_those_that_were_kept(void **state) {
    (void)state;
    check_golden(PH_METRICS_PROMETHEUS, "metrics.prometheus");
    check_golden(PH_METRICS_OPENMETRICS, "metrics.openmetrics");
}

static void openmetrics_is_what_its_specification_says(void **state) {
    struct ph__counts *counts;
    ph_metrics *metrics = known(&counts);
    char *text = ph_metrics_text(metrics, PH_METRICS_OPENMETRICS, NULL);
    (void)state;

    if (openmetrics_check(text))
        fail_msg("%s", openmetrics_check(text));
    assert_int_equal(openmetrics_value(text, "pinhole_calls_total"), 3);
    assert_int_equal(openmetrics_value(text, "pinhole_call_duration_seconds_bucket{le=\"2e-05\"}"), 1);
    assert_int_equal(openmetrics_value(text, "pinhole_call_duration_seconds_bucket{le=\"10.0\"}"), 2);
    free(text);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
}

/* That the reader is strict is a test of its own. */
static void the_reader_refuses_what_is_wrong(void **state) {
    static const char *const wrong[] = {
        "",
        "# TYPE a counter\na_total 1\n",
        "# TYPE a counter\na_total 1\n# EOF",
        "# TYPE a counter\na_total 1\n# EOF\n\n",
        "# TYPE a counter\na 1\n# EOF\n",
        "# TYPE a_total counter\na_total 1\n# EOF\n",
        "# TYPE a counter\na_total -1\n# EOF\n",
        "# TYPE a gauge\na  1\n# EOF\n",
        "# TYPE a gauge\na 1 \n# EOF\n",
        "# TYPE a gauge\na 1\na 1\n# EOF\n",
        "# TYPE a gauge\n# EOF\n",
        "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na 1\n# EOF\n",
        "# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n",
        "# TYPE a gauge\na{b=\"\\x\"} 1\n# EOF\n",
        "# TYPE a gauge\na{b=\"1\",b=\"1\"} 1\n# EOF\n",
        "# HELP a \\x\n# TYPE a gauge\na 1\n# EOF\n",
        "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_bucket{le=\"+Inf\"} 1\na_count 1\n# EOF\n",
        "# TYPE a histogram\na_bucket{le=\"1.0\"} 2\na_bucket{le=\"+Inf\"} 1\na_count 1\n# EOF\n",
        "# TYPE a histogram\na_bucket{le=\"1.0\"} 1\na_bucket{le=\"+Inf\"} 1\na_count 2\n# EOF\n",
        "# TYPE a histogram\na_bucket{le=\"1.0\"} 1\na_count 1\n# EOF\n",
    };
    (void)state;

    assert_null(openmetrics_check("# HELP a x\\\\\n# TYPE a counter\na_total{b=\"\\\"\"} 1\n# EOF\n"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (!openmetrics_check(wrong[i]))
            fail_msg("taken: %s", wrong[i]);
}

static const char *written(ph_metrics_format format, const ph_metric *metric) {
    static char bytes[2048];
    struct ph__out out = {.bytes = bytes, .capacity = sizeof bytes - 1};

    ph__metrics_text_series(&out, format, metric, true);
    assert_false(out.cut);
    bytes[out.used] = 0;
    return bytes;
}

static void names_units_and_texts_are_made_fit(void **state) {
    ph_metric metric = {
        .size = sizeof metric,
        .name = "a-b..c",
        .unit = "1",
        .description = "a\\b\n\"c\"",
        .kind = PH_METRIC_GAUGE,
        .attribute = "x.y",
        .attribute_value = "\\\n\"",
        .value = 7,
    };
    (void)state;

    assert_string_equal(written(PH_METRICS_PROMETHEUS, &metric),
                        "# HELP a_b_c_ratio a\\\\b\\n\"c\"\n# TYPE a_b_c_ratio gauge\n"
                        "a_b_c_ratio{x_y=\"\\\\\\n\\\"\"} 7\n");
    assert_string_equal(written(PH_METRICS_OPENMETRICS, &metric),
                        "# HELP a_b_c_ratio a\\\\b\\n\\\"c\\\"\n# TYPE a_b_c_ratio gauge\n"
                        "# UNIT a_b_c_ratio ratio\na_b_c_ratio{x_y=\"\\\\\\n\\\"\"} 7\n");
    metric.kind = PH_METRIC_COUNTER;
    metric.attribute = NULL;
    metric.name = "2a.bytes";
    metric.unit = "By";
    metric.description = "x";
    assert_string_equal(written(PH_METRICS_PROMETHEUS, &metric),
                        "# HELP _a_bytes_total x\n# TYPE _a_bytes_total counter\n_a_bytes_total 7\n");
    metric.unit = "1";
    metric.name = "b";
    assert_string_equal(written(PH_METRICS_OPENMETRICS, &metric),
                        "# HELP b x\n# TYPE b counter\nb_total 7\n");
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static void wrong_arguments_are_refused(void **state) {
    ph_metrics_values values = PH_METRICS_VALUES_INIT;
    ph_metrics *metrics = made();
    ph_error error;
    size_t size = 1;
    (void)state;

    assert_int_equal(ph_metrics_create(NULL, &error), PH_E_ARGUMENT);
    assert_int_equal(ph_metrics_read(NULL, &values), PH_E_ARGUMENT);
    assert_int_equal(ph_metrics_read(metrics, NULL), PH_E_ARGUMENT);
    values.size = 0;
    assert_int_equal(ph_metrics_read(metrics, &values), PH_E_ARGUMENT);
    values.size = sizeof values + 1;
    assert_int_equal(ph_metrics_read(metrics, &values), PH_E_ARGUMENT);
    assert_int_equal(ph_metrics_watch_tracer(NULL, NULL), PH_E_ARGUMENT);
    assert_int_equal(ph_metrics_watch_tracer(metrics, NULL), PH_OK);
    assert_null(ph_metrics_text(NULL, PH_METRICS_PROMETHEUS, &size));
    assert_int_equal(size, 0);
    assert_null(ph_metrics_text(metrics, (ph_metrics_format)2, NULL));
    ph_metrics_destroy(metrics);
}

static void no_memory_is_said(void **state) {
    ph_metrics *metrics = made(), *other;
    struct ph__counts *counts;
    ph_error error;
    unsigned failures = 0;
    (void)state;

    failing = (struct failing){.at = 1};
    assert_int_equal(ph_metrics_create(&other, &error), PH_E_MEMORY);
    assert_null(other);
    failing = (struct failing){.at = 1};
    assert_int_equal(ph__counts_open(metrics, ONE_GHZ, &counts, &error), PH_E_MEMORY);
    assert_null(counts);
    for (unsigned at = 1;; at++) {
        size_t size;
        failing = (struct failing){.at = at};
        char *text = ph_metrics_text(metrics, PH_METRICS_OPENMETRICS, &size);
        bool failed = failing.failed != NULL;
        failing = (struct failing){0};
        assert_int_equal(text == NULL, failed);
        free(text);
        if (!failed)
            break;
        failures++;
        assert_int_equal(size, 0);
    }
    assert_true(failures >= 1);
    assert_int_equal(values_of(metrics).sandboxes_created, 0);
    ph_metrics_destroy(metrics);
}

static void a_child_may_only_destroy(void **state) {
    ph_metrics *metrics = made();
    struct ph__counts *counts = opened(metrics);
    ph_tracer *tracer;
    (void)state;

    assert_int_equal(ph_tracer_create(NULL, &tracer, NULL), PH_OK);
    assert_int_equal(ph_metrics_watch_tracer(metrics, tracer), PH_OK);
    pid_t child = fork();
    if (child == 0) {
        ph_metrics_values values = PH_METRICS_VALUES_INIT;
        struct ph__counts *more;
        ph_metrics *own = made();
        bool right = ph_metrics_read(metrics, &values) == PH_E_FORKED &&
                     ph_metrics_watch_tracer(metrics, NULL) == PH_E_FORKED &&
                     !ph_metrics_text(metrics, PH_METRICS_PROMETHEUS, NULL) &&
                     ph__counts_open(metrics, ONE_GHZ, &more, NULL) == PH_E_FORKED &&
                     ph_metrics_watch_tracer(own, tracer) == PH_E_FORKED;
        ph__counts_close(counts, true);
        ph_metrics_destroy(metrics);
        ph_tracer_destroy(tracer);
        ph_metrics_destroy(own);
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(values_of(metrics).sandboxes, 1);
    ph__counts_close(counts, false);
    ph_metrics_destroy(metrics);
    ph_tracer_destroy(tracer);
}

/* ---- the document -------------------------------------------------------------------------------------- */

static void the_document_lists_every_metric_and_no_other(void **state) {
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    char path[1024], row[512], name[128];
    (void)state;

    snprintf(path, sizeof path, "%s/docs/metrics.md", getenv("PH_TEST_SOURCE"));
    char *document = content_of(path);
    for (size_t i = 0; i < PH__METRIC_FAMILIES; i++) {
        const struct ph__metric_family *family = &ph__metric_families[i];
        const ph_metric metric = {.name = family->name, .unit = family->unit, .kind = family->kind};
        struct ph__out out = {.bytes = name, .capacity = sizeof name - 1};
        ph__metrics_text_name(&out, &metric);
        name[out.used] = 0;
        snprintf(row, sizeof row, "\n| `%s` | %s | `%s` | `%s%s` | %s%s%s|\n", family->name,
                 kinds[family->kind], family->unit, name, family->kind == PH_METRIC_COUNTER ? "_total" : "",
                 family->attribute ? "`" : "", family->attribute ? family->attribute : "",
                 family->attribute ? "` " : "");
        if (!strstr(document, row))
            fail_msg("docs/metrics.md has no line%s", row);
    }
    size_t rows = 0;
    for (const char *at = document; (at = strstr(at, "\n| `pinhole.")) != NULL; at++)
        rows++;
    assert_int_equal(rows, PH__METRIC_FAMILIES);
    /* And the values of attributes. */
    for (size_t i = 0; i < PH__METRIC_FAMILIES; i++)
        for (size_t j = 0; ph__metric_families[i].attribute && j < ph__metric_families[i].count; j++) {
            snprintf(name, sizeof name, "`%s`", ph__metric_families[i].values[j]);
            if (ph__metric_families[i].cell != PH__CELL_ERRORS && !strstr(document, name))
                fail_msg("docs/metrics.md does not know %s", name);
        }
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_of_a_name_come_together_and_keep_the_conventions),
        cmocka_unit_test(a_value_is_in_the_bucket_whose_bound_it_does_not_exceed),
        cmocka_unit_test(what_a_sandbox_has_counted_stays_when_it_is_gone),
        cmocka_unit_test(a_call_that_was_not_begun_is_an_error_alone),
        cmocka_unit_test(every_status_has_a_count_of_its_own),
        cmocka_unit_test(exports_are_counted_by_signal),
        cmocka_unit_test(the_texts_are_those_that_were_kept),
        cmocka_unit_test(openmetrics_is_what_its_specification_says),
        cmocka_unit_test(the_reader_refuses_what_is_wrong),
        cmocka_unit_test(names_units_and_texts_are_made_fit),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(no_memory_is_said),
        cmocka_unit_test(a_child_may_only_destroy),
        cmocka_unit_test(the_document_lists_every_metric_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
