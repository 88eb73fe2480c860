/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics in requests of OTLP: guests' counters as gauges in the guests' scope, and the host's sums, gauges
 * and histograms, read back by protoc and as JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/otlp_tree.h"

#define BASE 1700000000000000000u

static ph_trace_counter counter_of(const char *name, uint64_t sandbox, int64_t value) {
    return (ph_trace_counter){.size = sizeof(ph_trace_counter),
                              .sandbox = sandbox,
                              .name = name,
                              .time_ns = BASE + 7,
                              .value = {.type = PH_I64, .i64 = value}};
}

static ph_metric metric_of(const char *name, ph_metric_kind kind, const char *attribute_value,
                           uint64_t value) {
    return (ph_metric){.size = sizeof(ph_metric),
                       .name = name,
                       .unit = "{call}",
                       .description = "Calls of guests.",
                       .kind = kind,
                       .attribute = attribute_value ? "status" : NULL,
                       .attribute_value = attribute_value,
                       .start_ns = BASE,
                       .value = value};
}

static void assert_items(const json_t *tree, const char *scope, const char *expected) {
    json_error_t error;
    json_t *wanted = json_loads(expected, 0, &error);

    if (!wanted)
        fail_msg("%s at %d", error.text, error.position);
    assert_non_null(otlp_items(tree, scope));
    assert_same_tree(otlp_items(tree, scope), wanted);
    json_decref(wanted);
}

#define POINT(sandbox, value)                                                                                \
    "{\"timeUnixNano\":\"1700000000000000007\"," value ",\"attributes\":[{\"key\":\"pinhole.sandbox\","      \
    "\"value\":{\"intValue\":\"" sandbox "\"}}]}"

static void points_of_one_counter_share_its_metric(void **state) {
    struct otlp_pair pair;
    ph_trace_counter counter = counter_of("slots", 1, INT64_MIN);

    (void)state;
    otlp_open(&pair, PH_EXPORT_METRICS, NULL);
    otlp_counter(&pair, &counter);
    counter = counter_of("slots", 2, INT64_MAX);
    otlp_counter(&pair, &counter);
    counter = counter_of("load", 2, 0);
    counter.value = (ph_value){.type = PH_F64, .f64 = 0.25};
    otlp_counter(&pair, &counter);
    counter = counter_of("slots", 2, 0);
    otlp_counter(&pair, &counter);
    assert_int_equal(ph__otlp_batch_items(pair.batches[0]), 4);
    json_t *tree = otlp_take(&pair);
    assert_items(
        tree, "pinhole.guest",
        "[{\"name\":\"slots\",\"gauge\":{\"dataPoints\":[" POINT(
            "1",
            "\"asInt\":\"-"
            "9223372036854775808\"") "," POINT("2",
                                               "\"asInt\":\"9223372036854775807\"") "]}},"
                                                                                    "{\"name\":\"load\","
                                                                                    "\"gauge\":{"
                                                                                    "\"dataPoints\":"
                                                                                    "[" POINT(
                                                                                        "2",
                                                                                        "\"asDouble\":0."
                                                                                        "25") "]}},"
                                                                                              "{\"name\""
                                                                                              ":"
                                                                                              "\"slots\""
                                                                                              ","
                                                                                              "\"gauge\""
                                                                                              ":{"
                                                                                              "\"dataPoi"
                                                                                              "nts\":"
                                                                                              "[" POINT(
                                                                                                  "2",
                                                                                                  "\"asI"
                                                                                                  "nt\":"
                                                                                                  "\"0"
                                                                                                  "\"") "]}}"
                                                                                                        "]");
    assert_null(otlp_items(tree, "pinhole.host"));
    json_decref(tree);

    /* Nothing is left open by what was taken. */
    counter = counter_of("slots", 1, 1);
    otlp_counter(&pair, &counter);
    tree = otlp_finish(&pair);
    assert_items(tree, "pinhole.guest",
                 "[{\"name\":\"slots\",\"gauge\":{\"dataPoints\":[" POINT("1", "\"asInt\":\"1\"") "]}}]");
    json_decref(tree);
}

static void a_guests_counter_does_not_pass_for_the_hosts(void **state) {
    static const char *const names[][2] = {{"pinhole.calls", "guest.pinhole.calls"},
                                           {"process.cpu.time", "guest.process.cpu.time"},
                                           {"pinholes", "pinholes"},
                                           {"", ""},
                                           {NULL, ""}};
    struct otlp_pair pair;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ph_trace_counter counter = counter_of(names[i][0], 1, 1);
        otlp_open(&pair, PH_EXPORT_METRICS, NULL);
        otlp_counter(&pair, &counter);
        json_t *tree = otlp_finish(&pair);
        const json_t *metric = json_array_get(otlp_items(tree, "pinhole.guest"), 0);
        assert_string_equal(json_string_value(json_object_get(metric, "name")), names[i][1]);
        json_decref(tree);
    }
}

static void the_hosts_counters_are_sums_and_its_gauges_gauges(void **state) {
    struct otlp_pair pair;
    ph_metric metric = metric_of("pinhole.calls", PH_METRIC_COUNTER, "ok", 12);

    (void)state;
    otlp_open(&pair, PH_EXPORT_METRICS, NULL);
    otlp_metric(&pair, &metric, BASE + 9);
    metric = metric_of("pinhole.calls", PH_METRIC_COUNTER, "time-out", UINT64_MAX);
    otlp_metric(&pair, &metric, BASE + 9);
    metric = metric_of("pinhole.sandboxes", PH_METRIC_GAUGE, NULL, 2);
    otlp_metric(&pair, &metric, BASE + 9);
    json_t *tree = otlp_finish(&pair);
    assert_items(tree, "pinhole.host",
                 "[{\"name\":\"pinhole.calls\",\"description\":\"Calls of guests.\",\"unit\":\"{call}\","
                 "\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":["
                 "{\"startTimeUnixNano\":\"1700000000000000000\",\"timeUnixNano\":\"1700000000000000009\","
                 "\"asInt\":\"12\",\"attributes\":[{\"key\":\"status\",\"value\":{\"stringValue\":\"ok\"}}]},"
                 "{\"startTimeUnixNano\":\"1700000000000000000\",\"timeUnixNano\":\"1700000000000000009\","
                 "\"asInt\":\"9223372036854775807\",\"attributes\":[{\"key\":\"status\","
                 "\"value\":{\"stringValue\":\"time-out\"}}]}]}},"
                 "{\"name\":\"pinhole.sandboxes\",\"description\":\"Calls of guests.\",\"unit\":\"{call}\","
                 "\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"1700000000000000009\",\"asInt\":\"2\"}]}}]");
    json_decref(tree);
}

static void a_histogram_has_its_buckets(void **state) {
    static const uint64_t buckets[] = {0, 5, UINT64_MAX};
    static const double bounds[] = {0.0001, 2.5};
    struct otlp_pair pair;
    ph_metric metric = metric_of("pinhole.call.duration", PH_METRIC_HISTOGRAM, "ok", 0);

    (void)state;
    metric.unit = "s";
    metric.description = NULL;
    metric.count = 5;
    metric.sum = 0.75;
    metric.buckets = buckets;
    metric.bounds = bounds;
    metric.bucket_count = 3;
    otlp_open(&pair, PH_EXPORT_METRICS, NULL);
    otlp_metric(&pair, &metric, BASE + 9);
    json_t *tree = otlp_finish(&pair);
    assert_items(tree, "pinhole.host",
                 "[{\"name\":\"pinhole.call.duration\",\"unit\":\"s\","
                 "\"histogram\":{\"aggregationTemporality\":2,\"dataPoints\":["
                 "{\"startTimeUnixNano\":\"1700000000000000000\",\"timeUnixNano\":\"1700000000000000009\","
                 "\"count\":\"5\",\"sum\":0.75,\"bucketCounts\":[\"0\",\"5\",\"18446744073709551615\"],"
                 "\"explicitBounds\":[0.0001,2.5],"
                 "\"attributes\":[{\"key\":\"status\",\"value\":{\"stringValue\":\"ok\"}}]}]}}]");
    json_decref(tree);
}

/* As many points as there is room for, of a counter whose name has (length) bytes, and of the host for some
 * lengths. */
static size_t fill(struct ph__otlp_batch *batch, size_t length) {
    char name[512];
    size_t added = 0;
    ph_trace_counter counter = counter_of(name, 1, 1);
    ph_metric metric = metric_of("pinhole.calls", PH_METRIC_COUNTER, "ok", 12);

    memset(name, 'a', length);
    name[length] = 0;
    while (added % 8 || length % 2 ? ph__otlp_batch_counter(batch, &counter)
                                   : ph__otlp_batch_metric(batch, &metric, BASE + added))
        added++;
    return added;
}

static size_t count_points(const json_t *tree, const char *scope, const char *data) {
    const json_t *each;
    size_t points = 0, i;

    json_array_foreach(otlp_items(tree, scope), i, each) {
        points += json_array_size(json_object_get(json_object_get(each, data), "dataPoints"));
    }
    return points;
}

/* The metric that is open ends before a request does, wherever in it the room does: names of every length
 * leave everything from nothing to a whole point. */
static void a_full_batch_is_a_whole_request(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    struct otlp_pair pair;

    (void)state;
    settings.batch_bytes = 20000;
    for (size_t length = 1; length <= 240; length++)
        for (unsigned i = length % 40 ? PH__OTLP_JSON : PH__OTLP_PROTOBUF; i < 2; i++) {
            size_t size;
            otlp_open(&pair, PH_EXPORT_METRICS, &settings);
            const size_t added = fill(pair.batches[i], length);
            assert_true(added > 50);
            uint8_t *bytes = ph__otlp_batch_take(pair.batches[i], &size);
            assert_non_null(bytes);
            assert_true(size <= settings.batch_bytes);
            json_t *tree = i == PH__OTLP_JSON ? otlp_tree_of_json(bytes, size)
                                              : otlp_tree_of_protobuf(PH_EXPORT_METRICS, bytes, size);
            assert_int_equal(count_points(tree, "pinhole.guest", "gauge") +
                                 count_points(tree, "pinhole.host", "sum"),
                             added);
            json_decref(tree);
            free(bytes);
            otlp_close(&pair);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_of_one_counter_share_its_metric),
        cmocka_unit_test(a_guests_counter_does_not_pass_for_the_hosts),
        cmocka_unit_test(the_hosts_counters_are_sums_and_its_gauges_gauges),
        cmocka_unit_test(a_histogram_has_its_buckets),
        cmocka_unit_test(a_full_batch_is_a_whole_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
