/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does tracing cost a guest? A record and a span that it times itself, beside the least that a record
 * can be (guests/trace.c); a site that is off; and a call that traces, beside the same call in a sandbox
 * without a tracer.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 60u
#define BATCH 20u
#define QUIET_CALLS 200000u
#define QUIET_BATCH 5u
#define CALL_ROUNDS 40u
#define CALL_PARTS 20u /* of a round, each of which gives both calls a batch */
#define CALL_BATCH 20u
#define CALL_RECORDS 30u
#define WARM_UP 200u
#define COUNTED_CALLS 50u

/* An exit that costs as much as this or more is one that trace.call_ratio has a goal for. */
#define EXIT_NS 15000.0

struct trace_guest trace_guest_open(const struct bench_paths *paths, const struct trace_way *way) {
    struct trace_guest guest = {.image = bench_open(paths->bench_guests, "trace")};
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    ph_error error;

    tracer_config.synchronous = way->synchronous;
    if (way->traced)
        bench_check(ph_tracer_create(&tracer_config, &guest.tracer, &error), "a tracer", &error);
    config.tracer = guest.tracer;
    config.trace_policy = way->policy;
    bench_check(ph_sandbox_create(guest.image, &config, &guest.sandbox, &error), "a sandbox", &error);
    bench_check(ph_sandbox_start(guest.sandbox), "starting", ph_sandbox_error(guest.sandbox));
    return guest;
}

void trace_guest_close(struct trace_guest *guest) {
    ph_sandbox_destroy(guest->sandbox);
    ph_tracer_destroy(guest->tracer);
    ph_image_close(guest->image);
}

struct trace_loop trace_loop_of(const struct trace_guest *guest, const char *name, uint64_t count) {
    return (struct trace_loop){guest->sandbox, bench_export(guest->image, name), count};
}

uint64_t trace_loop_once(void *context) {
    const struct trace_loop *loop = context;
    const ph_value count = {.type = PH_U64, .u64 = loop->count};
    ph_value result;

    bench_check(ph_call(loop->sandbox, loop->function, &count, 1, &result), loop->function->name,
                ph_sandbox_error(loop->sandbox));
    return (uint64_t)bench_cycles_ns(result.u64);
}

/* Adds a line to the table trace_record: what one of (count) things that (subject) does takes. */
static void report_each(struct bench_report *report, const char *what, const struct bench_subject *subject,
                        double count) {
    double *values = bench_numbers(subject->rounds);

    for (size_t i = 0; i < subject->rounds; i++)
        values[i] = subject->wall[i] / count;
    bench_report_row(report, "trace_record", what, "ns", values, subject->rounds);
    free(values);
}

/* ---- records, timed by the guest -------------------------------------------------------------------------
 */

/* Records of (guest) that have been decoded; none may be missing. */
static uint64_t records_of(const struct trace_guest *guest) {
    ph_trace_stats stats;

    ph_sandbox_trace_stats(guest->sandbox, &stats);
    if (stats.gaps || stats.dropped_ring || stats.dropped_queue || stats.dropped_budget || stats.malformed)
        bench_fail("records were lost where none may be");
    return stats.records;
}

static void measure_records(const struct trace_guest *guest, struct bench_report *report) {
    struct trace_loop least = trace_loop_of(guest, "floor_records", TRACE_RECORDS);
    struct trace_loop begins = trace_loop_of(guest, "begin_records", TRACE_RECORDS);
    struct trace_loop spans = trace_loop_of(guest, "spans", TRACE_RECORDS / 2);
    enum { FLOOR, BEGINS, SPANS, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [FLOOR] = {.once = trace_loop_once, .context = &least},
        [BEGINS] = {.once = trace_loop_once, .context = &begins},
        [SPANS] = {.once = trace_loop_once, .context = &spans},
    };
    const struct bench_floor one = {&subjects[FLOOR], 1};

    uint64_t before = records_of(guest);
    bench_run(subjects, SUBJECTS, 1, WARM_UP);
    bench_free(subjects, SUBJECTS);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    /* Each call brings two more, its own begin and end. */
    const uint64_t calls = WARM_UP + ROUNDS * BATCH;
    if (records_of(guest) - before != calls * (2 * TRACE_RECORDS + 2 * SUBJECTS))
        bench_fail("a guest has not written the records that it was timed for");
    bench_report_ratio(report, "trace.record_ratio", &subjects[BEGINS], one, 1.10);
    bench_report_ratio(report, "trace.span_ratio", &subjects[SPANS], one, 1.10);
    report_each(report, "floor of a record", &subjects[FLOOR], TRACE_RECORDS);
    report_each(report, "begin of a span", &subjects[BEGINS], TRACE_RECORDS);
    report_each(report, "span, begin and end", &subjects[SPANS], TRACE_RECORDS / 2.0);
    bench_free(subjects, SUBJECTS);
}

static void measure_quiet(const struct trace_guest *guest, struct bench_report *report) {
    struct trace_loop empty = trace_loop_of(guest, "call_empty", QUIET_CALLS);
    struct trace_loop quiet = trace_loop_of(guest, "call_quiet", QUIET_CALLS);
    enum { EMPTY, QUIET, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [EMPTY] = {.once = trace_loop_once, .context = &empty},
        [QUIET] = {.once = trace_loop_once, .context = &quiet},
    };
    double values[ROUNDS];

    bench_run(subjects, SUBJECTS, ROUNDS, QUIET_BATCH);
    for (size_t i = 0; i < ROUNDS; i++)
        values[i] = (subjects[QUIET].wall[i] - subjects[EMPTY].wall[i]) / QUIET_CALLS;
    bench_report_number(report, &(struct bench_number){
                                    .key = "trace.disabled_ns_over_empty",
                                    .unit = "ns",
                                    .values = values,
                                    .count = ROUNDS,
                                    .reach = 1.0,
                                });
    report_each(report, "call of an empty function", &subjects[EMPTY], QUIET_CALLS);
    report_each(report, "the same with a span that is off", &subjects[QUIET], QUIET_CALLS);
    bench_free(subjects, SUBJECTS);
}

/* ---- calls that trace ------------------------------------------------------------------------------------
 */

static uint64_t exits_of(ph_sandbox *sandbox) {
    ph_stats stats;
    ph_sandbox_stats(sandbox, &stats);
    return stats.exits;
}

/* Exits of one call with a hundred spans. */
static double call_exits(const struct trace_guest *guest) {
    uint64_t before = exits_of(guest->sandbox);

    bench_check(ph_call(guest->sandbox, bench_export(guest->image, "hundred_spans"), NULL, 0, NULL),
                "hundred_spans", ph_sandbox_error(guest->sandbox));
    return (double)(exits_of(guest->sandbox) - before);
}

static void count_exits(const struct trace_guest *traced, const struct trace_guest *untraced,
                        struct bench_report *report) {
    double values[COUNTED_CALLS];

    for (size_t i = 0; i < COUNTED_CALLS; i++)
        values[i] = call_exits(traced) - call_exits(untraced);
    bench_report_number(report, &(struct bench_number){
                                    .key = "trace.extra_exits_per_call",
                                    .unit = "exits",
                                    .values = values,
                                    .count = COUNTED_CALLS,
                                    .reach = 0,
                                });
}

/* A call of `talk`, timed from outside. */
static uint64_t talk_once(void *context) {
    const struct trace_loop *call = context;
    const ph_value number = {.type = PH_U64, .u64 = 7};
    uint64_t start = bench_now_ns();
    ph_status status = ph_call(call->sandbox, call->function, &number, 1, NULL);
    uint64_t end = bench_now_ns();

    bench_check(status, "talk", ph_sandbox_error(call->sandbox));
    return end - start;
}

/* (round)'s share of (values), of which there is one for each part of each round: its median. */
static double median_of_round(const double *values, size_t round) {
    double parts[CALL_PARTS];

    memcpy(parts, values + round * CALL_PARTS, sizeof parts);
    return bench_median(parts, CALL_PARTS);
}

static void measure_calls(const struct trace_guest *traced, const struct trace_guest *untraced,
                          struct bench_report *report) {
    struct trace_loop least = trace_loop_of(untraced, "floor_records", TRACE_RECORDS);
    struct trace_loop with = trace_loop_of(traced, "talk", 0);
    struct trace_loop without = trace_loop_of(untraced, "talk", 0);
    enum { FLOOR, WITHOUT, WITH, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [FLOOR] = {.once = trace_loop_once, .context = &least},
        [WITHOUT] = {.once = talk_once, .context = &without},
        [WITH] = {.once = talk_once, .context = &with},
    };
    double added[CALL_ROUNDS], added_ns[CALL_ROUNDS], ratio[CALL_ROUNDS];

    bench_run(subjects, SUBJECTS, 1, WARM_UP);
    bench_free(subjects, SUBJECTS);
    bench_run(subjects, SUBJECTS, CALL_ROUNDS * CALL_PARTS, CALL_BATCH);
    /* What is looked for is a twentieth of the call, and less than one batch differs from the next. */
    double *ratios = bench_numbers(CALL_ROUNDS * CALL_PARTS);
    double *differences = bench_numbers(CALL_ROUNDS * CALL_PARTS);
    for (size_t i = 0; i < (size_t)CALL_ROUNDS * CALL_PARTS; i++) {
        ratios[i] = subjects[WITH].wall[i] / subjects[WITHOUT].wall[i];
        differences[i] = subjects[WITH].wall[i] - subjects[WITHOUT].wall[i];
    }
    for (size_t i = 0; i < CALL_ROUNDS; i++) {
        ratio[i] = median_of_round(ratios, i);
        added_ns[i] = median_of_round(differences, i);
        added[i] = added_ns[i] / CALL_RECORDS / (median_of_round(subjects[FLOOR].wall, i) / TRACE_RECORDS);
    }
    report_each(report, "call with 10 spans and 10 events, untraced", &subjects[WITHOUT], 1);
    report_each(report, "the same, traced", &subjects[WITH], 1);
    bench_report_row(report, "trace_record", "what tracing adds to it", "ns", added_ns, CALL_ROUNDS);
    double floor_ns = bench_median(subjects[FLOOR].wall, subjects[FLOOR].rounds) / TRACE_RECORDS;
    double call_ns = bench_median(subjects[WITHOUT].wall, subjects[WITHOUT].rounds);
    bench_report_number(report, &(struct bench_number){
                                    .key = "trace.added_ratio",
                                    .unit = "ratio",
                                    .values = added,
                                    .count = CALL_ROUNDS,
                                    .floor_us = floor_ns * CALL_RECORDS / 1000,
                                    .reach = 1.8,
                                });
    bench_report_number(report, &(struct bench_number){
                                    .key = "trace.call_ratio",
                                    .unit = "ratio",
                                    .values = ratio,
                                    .count = CALL_ROUNDS,
                                    .floor_us = call_ns / 1000,
                                    .reach = 1.08,
                                    .goal = call_ns < EXIT_NS ? BENCH_NO_GOAL : BENCH_AT_MOST,
                                });
    free(ratios);
    free(differences);
    bench_free(subjects, SUBJECTS);
}

void bench_trace(const struct bench_paths *paths, struct bench_report *report) {
    struct trace_guest alone =
        trace_guest_open(paths, &(struct trace_way){.traced = true, .synchronous = true});

    measure_records(&alone, report);
    measure_quiet(&alone, report);
    trace_guest_close(&alone);

    struct trace_guest traced = trace_guest_open(paths, &(struct trace_way){.traced = true});
    struct trace_guest untraced = trace_guest_open(paths, &(struct trace_way){.traced = false});
    count_exits(&traced, &untraced, report);
    measure_calls(&traced, &untraced, report);
    trace_guest_close(&traced);
    trace_guest_close(&untraced);
}
