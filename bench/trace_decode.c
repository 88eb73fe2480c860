/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How many records a second become spans and events, on one core? The worker's half of tracing alone: bytes
 * as they come out of a ring, through the tree, to an output that only counts. A third of the records each
 * are begins of spans, events with two numbers, and ends.
 */
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "bench.h"
#include "trace/tree.h"

#define ROUNDS 15u
#define BATCH 3u          /* turns in a round */
#define SPANS 4096u       /* in a batch of records, which is then as large as a ring */
#define WORDS (2 + 4 + 2) /* of a span: its begin, an event, its end */
#define RECORDS (3 * SPANS)
#define TIMES 32u /* batches of records in a turn */

static const struct ph__site sites[] = {
    {.name = "work",
     .file = "a.c",
     .function = "f",
     .line = 1,
     .kind = PH__SITE_SPAN,
     .level = PH_LEVEL_INFO},
    {.name = "step",
     .file = "a.c",
     .function = "f",
     .line = 2,
     .kind = PH__SITE_EVENT,
     .level = PH_LEVEL_INFO,
     .count = 2,
     .types = {PH_I64, PH_U64},
     .fields = {"number", "size"}},
};

struct decode {
    struct ph__tree *tree;
    struct ph__filter filter;
    struct ph__trace_clock clock;
    ph_trace_stats stats;
    struct ph__batch_records *records;
    uint64_t spans, events;
};

static void count_span(void *context, const ph_trace_span *span) {
    struct decode *decode = context;
    decode->spans += span->id != 0;
}

static void count_event(void *context, const ph_trace_event *event) {
    struct decode *decode = context;
    decode->events += event->span != 0;
}

/* Writes the records of SPANS spans, as a guest does. They may be read again and again: none is left open. */
static void write_records(struct ph__batch_records *batch) {
    uint64_t *word = (uint64_t *)batch->bytes;
    uint64_t tsc = __rdtsc();

    for (uint64_t i = 0; i < SPANS; i++) {
        const uint64_t stack = 0x7ff0ull << PH__RECORD_STACK_SHIFT;
        uint64_t position = i * WORDS * 8;
        *word++ = PH__RECORD_WORD(PH__RECORD_SPAN_BEGIN, 0, 2) | stack;
        *word++ = tsc + i * 100;
        *word++ = PH__RECORD_WORD(PH__RECORD_EVENT, 1, 4) | stack;
        *word++ = tsc + i * 100 + 30;
        *word++ = i;
        *word++ = i * i;
        *word++ = PH__RECORD_WORD(PH__RECORD_SPAN_END, 0, 2) | position / 8 << PH__RECORD_SITE_SHIFT;
        *word++ = tsc + i * 100 + 60;
    }
}

static uint64_t decode_once(void *context) {
    struct decode *decode = context;
    struct ph__batch_begin begin = {
        .batch = {sizeof begin, PH__BATCH_BEGIN, __rdtsc()}, .span = PH__HOST_START, .id = 1ull << 40};
    struct ph__batch_end end = {.batch = {sizeof end, PH__BATCH_END, 0}};
    uint64_t start = bench_now_ns();

    ph__tree_take(decode->tree, &begin.batch, &decode->filter, 1);
    for (uint64_t i = 0; i < TIMES; i++) {
        decode->records->batch.tsc = __rdtsc();
        ph__tree_take(decode->tree, &decode->records->batch, &decode->filter, 1);
    }
    end.batch.tsc = __rdtsc();
    ph__tree_take(decode->tree, &end.batch, &decode->filter, 1);
    return bench_now_ns() - start;
}

void bench_trace_decode(const struct bench_paths *paths, struct bench_report *report) {
    struct decode decode = {0};
    const struct ph__tree_options options = {
        .sandbox = 1,
        .sites = sites,
        .site_count = sizeof sites / sizeof sites[0],
        .call_records = UINT64_MAX,
        .clock = &decode.clock,
        .stats = &decode.stats,
        .output = {&decode, count_span, count_event, NULL},
    };
    size_t size = sizeof *decode.records + (size_t)SPANS * WORDS * 8;
    struct bench_subject subject = {.once = decode_once, .context = &decode};

    (void)paths;
    bench_check(ph__filter_parse("info", &decode.filter, NULL), "a filter", NULL);
    decode.tree = ph__tree_create(&options);
    decode.records = malloc(size);
    if (!decode.tree || !decode.records)
        bench_fail("out of memory");
    *decode.records = (struct ph__batch_records){.batch = {(uint32_t)size, PH__BATCH_RECORDS, 0}};
    write_records(decode.records);

    bench_run(&subject, 1, ROUNDS, BATCH);
    if (decode.stats.records != (uint64_t)RECORDS * TIMES * ROUNDS * BATCH ||
        decode.spans * 3 < decode.stats.records || decode.events * 3 != decode.stats.records)
        bench_fail("not every record came out of the tree");
    double *values = bench_numbers(subject.rounds);
    for (size_t i = 0; i < subject.rounds; i++)
        values[i] = (double)RECORDS * TIMES * 1000 / subject.wall[i];
    bench_report_number(report, &(struct bench_number){.key = "trace.decode_mrec_s",
                                                       .unit = "M/s",
                                                       .values = values,
                                                       .count = subject.rounds,
                                                       .reach = 10,
                                                       .goal = BENCH_AT_LEAST});
    free(values);
    bench_free(&subject, 1);
    ph__tree_destroy(decode.tree, &decode.filter);
    ph__filter_free(&decode.filter);
    free(decode.records);
}
