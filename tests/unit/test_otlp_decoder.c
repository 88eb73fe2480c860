/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What OpenTelemetry's own package for JavaScript decodes of our protocol buffers (tests/npm/otlp.js) is what
 * our JSON says: numbers and types of fields are not only ours. Skipped where node or the package is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/otlp_tree.h"

#define BASE 1700000000000000000u

static char modules[4096];

/* Leaves (modules) empty where something is missing. */
static void find_decoder(void) {
    char path[4200], word[8];

    snprintf(modules, sizeof modules, "%s/npm/node_modules", getenv("PH_TEST_CACHE"));
    snprintf(path, sizeof path, "%s/@opentelemetry/otlp-transformer/build/src/generated/root.js", modules);
    FILE *node = popen("command -v node", "r"); /* NOLINT(cert-env33-c): of our own */
    assert_non_null(node);
    if (!fgets(word, sizeof word, node) || access(path, R_OK) != 0)
        modules[0] = 0;
    pclose(node);
}

static json_t *decoded(const char *signal, const uint8_t *bytes, size_t size) {
    char path[] = "/tmp/pinhole-otlp-XXXXXX", command[8192];

    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "node '%s' '%s' %s '%s'", getenv("PH_TEST_OTLP_JS"), modules, signal,
             path);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): of paths of our own */
    assert_non_null(pipe);
    json_error_t error;
    json_t *tree = json_loadf(pipe, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
    assert_int_equal(pclose(pipe), 0);
    unlink(path);
    if (!tree)
        fail_msg("%s", error.text);
    return tree;
}

/* Takes both batches, and compares. */
static void check(struct otlp_pair *pair, const char *signal) {
    size_t sizes[2];
    uint8_t *bytes[2];

    for (unsigned i = 0; i < 2; i++) {
        bytes[i] = ph__otlp_batch_take(pair->batches[i], &sizes[i]);
        assert_non_null(bytes[i]);
    }
    /* JavaScript has one type of numbers. */
    json_t *tree = otlp_tree_of_json(bytes[PH__OTLP_JSON], sizes[PH__OTLP_JSON]);
    char *text = json_dumps(tree, 0);
    json_t *expected = json_loads(text, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    assert_non_null(expected);
    json_t *found = decoded(signal, bytes[PH__OTLP_PROTOBUF], sizes[PH__OTLP_PROTOBUF]);
    assert_same_tree(found, expected);
    json_decref(found);
    json_decref(expected);
    json_decref(tree);
    free(text);
    for (unsigned i = 0; i < 2; i++)
        free(bytes[i]);
    otlp_close(pair);
}

static const uint8_t some_bytes[] = {0, 1, 0xfe, 0xff};

static const ph_field fields[] = {
    {.name = "text", .value = {.type = PH_STR, .str = "k\xc3\xb6nig \xf0\x9f\x90\x99\n"}, .size = 12},
    {.name = "least", .value = {.type = PH_I64, .i64 = INT64_MIN}},
    {.name = "most", .value = {.type = PH_U64, .u64 = UINT64_MAX}},
    {.name = "zero", .value = {.type = PH_I64, .i64 = 0}},
    {.name = "real", .value = {.type = PH_F64, .f64 = 0.1}},
    {.name = "nan", .value = {.type = PH_F64, .f64 = __builtin_nan("")}},
    {.name = "no", .value = {.type = PH_BOOL, .boolean = false}},
    {.name = "bytes", .value = {.type = PH_BYTES, .bytes = {some_bytes, 4}}, .size = 4},
    {.name = "no\xff utf8", .value = {.type = PH_STR, .str = "\xc0\x80"}, .size = 2},
};
#define FIELDS (sizeof fields / sizeof fields[0])

static void spans_are_those_of_opentelemetry(void **state) {
    struct otlp_pair pair;
    ph_trace_span span = {.size = sizeof span,
                          .sandbox = 3,
                          .id = 9,
                          .parent = 7,
                          .kind = PH_SPAN_USER,
                          .name = "lookup",
                          .source = {"a.c", "f", 12},
                          .start_ns = BASE,
                          .end_ns = BASE + 1,
                          .fields = fields,
                          .field_count = FIELDS,
                          .trace_id = {1, 2, 3},
                          .trace_state = "vendor=1"};

    (void)state;
    if (!modules[0])
        skip();
    otlp_open(&pair, PH_EXPORT_TRACES, NULL);
    otlp_span(&pair, &span);
    span.kind = PH_SPAN_CALL;
    span.parent = 0;
    span.remote_parent[3] = 9;
    span.unfinished = true;
    span.status = PH_E_TIMED_OUT;
    span.dropped_fields = 3;
    otlp_span(&pair, &span);
    check(&pair, "traces");
}

static void logs_are_those_of_opentelemetry(void **state) {
    struct otlp_pair pair;
    ph_trace_event event = {.size = sizeof event,
                            .sandbox = 3,
                            .span = 7,
                            .level = PH_LEVEL_WARN,
                            .name = "cache.miss",
                            .source = {"a.c", "f", 12},
                            .time_ns = BASE,
                            .fields = fields,
                            .field_count = FIELDS,
                            .trace_id = {1, 2, 3}};

    (void)state;
    if (!modules[0])
        skip();
    otlp_open(&pair, PH_EXPORT_LOGS, NULL);
    otlp_event(&pair, &event);
    event.message = "text";
    otlp_event(&pair, &event);
    event = (ph_trace_event){.size = sizeof event, .level = PH_LEVEL_ERROR, .name = "trace.gap"};
    otlp_event(&pair, &event);
    check(&pair, "logs");
}

static void metrics_are_those_of_opentelemetry(void **state) {
    static const uint64_t buckets[] = {0, 300, UINT64_MAX};
    static const double bounds[] = {0.0001, 2.5};
    struct otlp_pair pair;
    ph_trace_counter counter = {.size = sizeof counter,
                                .sandbox = 1,
                                .name = "slots",
                                .time_ns = BASE,
                                .value = {.type = PH_I64, .i64 = -5}};
    ph_metric metric = {.size = sizeof metric,
                        .name = "pinhole.calls",
                        .unit = "{call}",
                        .description = "Calls.",
                        .kind = PH_METRIC_COUNTER,
                        .attribute = "status",
                        .attribute_value = "ok",
                        .start_ns = BASE,
                        .value = 12,
                        .count = 5,
                        .sum = 0.75,
                        .buckets = buckets,
                        .bounds = bounds,
                        .bucket_count = 3};

    (void)state;
    if (!modules[0])
        skip();
    otlp_open(&pair, PH_EXPORT_METRICS, NULL);
    otlp_counter(&pair, &counter);
    counter.value = (ph_value){.type = PH_F64, .f64 = 0.5};
    otlp_counter(&pair, &counter);
    otlp_metric(&pair, &metric, BASE + 1);
    metric.kind = PH_METRIC_GAUGE;
    otlp_metric(&pair, &metric, BASE + 1);
    metric.kind = PH_METRIC_HISTOGRAM;
    otlp_metric(&pair, &metric, BASE + 1);
    check(&pair, "metrics");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_those_of_opentelemetry),
        cmocka_unit_test(logs_are_those_of_opentelemetry),
        cmocka_unit_test(metrics_are_those_of_opentelemetry),
    };
    find_decoder();
    if (!modules[0])
        puts("skipped: node, or the packages that scripts/fetch-data.sh npm gets, are missing");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
