/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does each way of delivery cost a guest, and what does it lose? One call writes 40,000 records, two and
 * a half rings full, with a little work between them, and each way takes its turn. Two ways are not the
 * library's own: the guest rings the doorbell itself, once 4 KiB are there or for each record, which is what
 * a port for delivery would cost.
 */
#include <stdlib.h>

#include "trace.h"

#define ROUNDS 9u
#define TURNS 5u /* of each way in a round */
#define SPANS 20000u
#define RECORDS (2.0 * SPANS)
#define WORK_TURNS 1000u
#define WAKING_SPANS 10u

/* What one way comes to, one a round. */
enum { GUEST_MS, ADDED_NS, EXITS, LOST, RESULTS };

struct delivery {
    struct trace_way way;
    uint64_t per_exit;
    const char *names[RESULTS]; /* of its lines */
    struct trace_guest guest;
    double results[RESULTS][ROUNDS];
};

#define NAMES(way)                                                                                           \
    { way ": guest time", way ": added per record", way ": exits", way ": records lost" }

static struct delivery deliveries[] = {
    {.names = NAMES("off")},
    {.way = {true, true, PH_TRACE_COMPLETE}, .names = NAMES("complete, no worker")},
    {.way = {true, true, PH_TRACE_DROP}, .names = NAMES("drop, no worker")},
    {.way = {true, true, PH_TRACE_FLIGHT}, .names = NAMES("flight")},
    {.way = {true, false, PH_TRACE_COMPLETE}, .names = NAMES("complete, live drain")},
    {.way = {true, false, PH_TRACE_DROP}, .names = NAMES("drop, live drain")},
    {.way = {true, true, PH_TRACE_COMPLETE}, .per_exit = 256, .names = NAMES("an exit for 4 KiB")},
    {.way = {true, true, PH_TRACE_COMPLETE}, .per_exit = 1, .names = NAMES("an exit for a record")},
};

#define DELIVERIES (sizeof deliveries / sizeof deliveries[0])

static const char *const units[RESULTS] = {"ms", "ns", "exits", ""};

/* Calls the export (name) for (spans) spans, and has what they bring decoded. */
static void deliver(struct delivery *delivery, const char *name, uint64_t spans, ph_status expected) {
    const struct trace_guest *guest = &delivery->guest;
    const ph_value args[] = {
        {.type = PH_U64, .u64 = spans},
        {.type = PH_U64, .u64 = WORK_TURNS},
        {.type = PH_U64, .u64 = delivery->per_exit},
    };

    ph_status status = ph_call(guest->sandbox, bench_export(guest->image, name), args, 3, NULL);
    if (status != expected)
        bench_fail("%s: %s", name, ph_sandbox_error(guest->sandbox)->message);
    if (guest->tracer)
        bench_check(ph_tracer_flush(guest->tracer, 0), "flushing", NULL);
}

static uint64_t records_of(const struct trace_guest *guest) {
    ph_trace_stats stats;
    ph_sandbox_trace_stats(guest->sandbox, &stats);
    return stats.records;
}

/* Nanoseconds of guest time that (delivery)'s call takes, and in (*exits) how often it leaves the guest. */
static double run(struct delivery *delivery, double *exits) {
    ph_stats before, after;

    ph_sandbox_stats(delivery->guest.sandbox, &before);
    deliver(delivery, "deliver", SPANS, PH_OK);
    ph_sandbox_stats(delivery->guest.sandbox, &after);
    *exits = (double)(after.exits - before.exits);
    return (double)(after.guest_ns - before.guest_ns);
}

static void measure(struct delivery *delivery, size_t round) {
    const struct trace_guest *guest = &delivery->guest;
    /* A call with an exit for each record takes a second, and one with no other a hundredth. */
    const size_t turns = delivery->per_exit == 1 ? 1 : TURNS;
    double times[TURNS], added[TURNS], exits[TURNS], lost[TURNS];

    for (size_t i = 0; i < turns; i++) {
        double off_ns = run(&deliveries[0], &exits[i]);
        /* A worker that has had nothing to do for a while looks less often. */
        deliver(delivery, "deliver", WAKING_SPANS, PH_OK);
        uint64_t records = records_of(guest);
        double guest_ns = run(delivery, &exits[i]);
        times[i] = guest_ns / 1e6;
        added[i] = (guest_ns - off_ns) / RECORDS;
        /* Beside the spans there are the two records of the call itself. */
        lost[i] = guest->tracer ? RECORDS + 2 - (double)(records_of(guest) - records) : 0;
    }
    delivery->results[GUEST_MS][round] = bench_median(times, turns);
    delivery->results[ADDED_NS][round] = bench_median(added, turns);
    delivery->results[EXITS][round] = bench_median(exits, turns);
    delivery->results[LOST][round] = bench_median(lost, turns);
}

/* Policy `flight` delivers at a bad end only: what it loses up to there, the end of the call aside. */
static void measure_crash(struct delivery *delivery) {
    uint64_t records = records_of(&delivery->guest);

    deliver(delivery, "deliver_and_crash", SPANS, PH_E_UNDEFINED_INSTRUCTION);
    for (size_t round = 0; round < ROUNDS; round++)
        delivery->results[LOST][round] = RECORDS + 1 - (double)(records_of(&delivery->guest) - records);
}

void bench_trace_policy(const struct bench_paths *paths, struct bench_report *report) {
    for (size_t i = 0; i < DELIVERIES; i++)
        deliveries[i].guest = trace_guest_open(paths, &deliveries[i].way);
    for (size_t i = 0; i < DELIVERIES; i++)
        measure(&deliveries[i], 0);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < DELIVERIES; i++)
            measure(&deliveries[i], round);
    for (size_t i = 0; i < DELIVERIES; i++) {
        if (deliveries[i].way.policy == PH_TRACE_FLIGHT)
            measure_crash(&deliveries[i]);
        for (size_t j = 0; j < RESULTS; j++)
            bench_report_row(report, "trace_policy", deliveries[i].names[j], units[j],
                             deliveries[i].results[j], ROUNDS);
        trace_guest_close(&deliveries[i].guest);
    }
}
