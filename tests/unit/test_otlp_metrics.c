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
            "9223372036854775808\"") "," POINT("2", "\"asInt\":\"9223372036854775807\"") "]}},"
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
                                                                                                       "\"") "]}}]");
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

/* The metric that is open ends before a request does, also where there was no room for one more point. */
static void a_full_batch_is_a_whole_request(void **state) {
    struct ph__otlp_settings settings = otlp_settings();
    struct otlp_pair pair;

    (void)state;
    settings.batch_bytes = 1;
    otlp_open(&pair, PH_EXPORT_METRICS, &settings);
    for (unsigned i = 0; i < 2; i++) {
        size_t added = 0, points = 0, size;
        ph_trace_counter counter = counter_of("slots", 1, 1);
        ph_metric metric = metric_of("pinhole.calls", PH_METRIC_COUNTER, "ok", 12);
        /* Different names, and names of every length, so that the room ends everywhere in a metric. */
        char name[64];
        do {
            memset(name, 'a', sizeof name);
            name[added % 50] = 0;
            counter.name = added % 3 ? name : "slots";
        } while ((added % 2 ? ph__otlp_batch_metric(pair.batches[i], &metric, BASE)
                            : ph__otlp_batch_counter(pair.batches[i], &counter)) &&
                 ++added);
        assert_true(added > 10);
        uint8_t *bytes = ph__otlp_batch_take(pair.batches[i], &size);
        assert_non_null(bytes);
        json_t *each, *tree = i == PH__OTLP_JSON ? otlp_tree_of_json(bytes, size)
                                                 : otlp_tree_of_protobuf(PH_EXPORT_METRICS, bytes, size);
        size_t at;
        json_array_foreach(otlp_items(tree, "pinhole.guest"), at, each) {
            points += json_array_size(json_object_get(json_object_get(each, "gauge"), "dataPoints"));
        }
        json_array_foreach(otlp_items(tree, "pinhole.host"), at, each) {
            points += json_array_size(json_object_get(json_object_get(each, "sum"), "dataPoints"));
        }
        assert_int_equal(points, added);
        json_decref(tree);
        free(bytes);
    }
    otlp_close(&pair);
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
