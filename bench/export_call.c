/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does a call wait for when its spans are sent to a collector meanwhile? Calls with ten spans in a
 * sandbox whose tracer has a sink of ph_otlp, beside the same in one whose sink throws all away; either has a
 * worker. The collector is a process on this machine (collector.h), which shares its processors.
 *
 * The two take turns of 500 calls, so that requests are under way during most of them; what is left
 * is sent between turns.
 */
#include <stdlib.h>
#include <time.h>

#include <pinhole/otlp.h>

#include "collector.h"
#include "trace.h"

#define ROUNDS 60u
#define BATCH 5u
#define CALLS 500u
#define WARM_UP 5u
#define TURNS (ROUNDS * BATCH + WARM_UP)
#define WAIT_NS 10000000000u

/* A sandbox of guests/trace.c whose tracer has a sink. */
struct sending {
    ph_image *image;
    ph_tracer *tracer;
    ph_sandbox *sandbox;
    const ph_function *function;
    ph_otlp *otlp;     /* NULL: nothing is sent */
    double *others_us; /* processor time that other threads have had, of each turn, for each call */
    size_t turns;
};

static void no_span(void *context, const ph_trace_span *span) {
    *(uint64_t *)context += span->id;
}

static void sending_open(struct sending *sending, const struct bench_paths *paths, ph_sink sink) {
    ph_config config = PH_CONFIG_INIT;
    ph_error error;

    sending->others_us = bench_numbers(TURNS);
    sending->image = bench_open(paths->bench_guests, "trace");
    sending->function = bench_export(sending->image, "ten_spans");
    bench_check(ph_tracer_create(NULL, &sending->tracer, &error), "a tracer", &error);
    bench_check(ph_tracer_add_sink(sending->tracer, &sink, &error), "a sink", &error);
    config.tracer = sending->tracer;
    bench_check(ph_sandbox_create(sending->image, &config, &sending->sandbox, &error), "a sandbox", &error);
    bench_check(ph_sandbox_start(sending->sandbox), "starting", ph_sandbox_error(sending->sandbox));
}

static void sending_close(struct sending *sending) {
    ph_sandbox_destroy(sending->sandbox);
    ph_tracer_destroy(sending->tracer);
    ph_image_close(sending->image);
    free(sending->others_us);
}

/* Processor time of all threads but this one. */
static uint64_t others_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - bench_processor_ns(NULL);
}

static uint64_t call_once(void *context) {
    struct sending *sending = context;
    uint64_t others = others_ns();
    uint64_t start = bench_now_ns();

    for (unsigned i = 0; i < CALLS; i++)
        if (ph_call(sending->sandbox, sending->function, NULL, 0, NULL) != PH_OK)
            bench_check(PH_E_STATE, "ten_spans", ph_sandbox_error(sending->sandbox));
    uint64_t end = bench_now_ns();
    bench_check(ph_tracer_flush(sending->tracer, WAIT_NS), "delivering spans", NULL);
    if (sending->otlp)
        bench_check(ph_otlp_flush(sending->otlp, WAIT_NS), "sending spans", NULL);
    sending->others_us[sending->turns++] = (double)(others_ns() - others) / 1000 / CALLS;
    return end - start;
}

static void report_stats(ph_otlp *otlp, struct bench_report *report) {
    ph_otlp_stats stats = PH_OTLP_STATS_INIT;

    bench_check(ph_otlp_get_stats(otlp, &stats), "counts", NULL);
    if (stats.sent_spans == 0)
        bench_fail("no span was sent");
    const double calls = (double)TURNS * CALLS;
    double sent = (double)stats.sent_spans / calls;
    double lost = (double)stats.lost_spans / calls;
    double requests = (double)stats.requests * 1000 / calls;
    bench_report_row(report, "export_call", "spans that were sent, of a call", "spans", &sent, 1);
    bench_report_row(report, "export_call", "spans that found no room, of a call", "spans", &lost, 1);
    bench_report_row(report, "export_call", "requests, of a thousand calls", "", &requests, 1);
}

static void measure(struct sending *quiet, struct sending *sent, struct bench_report *report) {
    enum { QUIET, SENT, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [QUIET] = {.once = call_once, .processor_ns = bench_processor_ns, .context = quiet},
        [SENT] = {.once = call_once, .processor_ns = bench_processor_ns, .context = sent},
    };

    bench_run(subjects, SUBJECTS, 1, WARM_UP);
    bench_free(subjects, SUBJECTS);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "export.call_ratio", &subjects[SENT],
                       (struct bench_floor){&subjects[QUIET], 1}, 1.05);
    bench_report_row(report, "export_call", "processor time of other threads for a call, nothing sent", "us",
                     quiet->others_us, quiet->turns);
    bench_report_row(report, "export_call", "the same, while it is sent", "us", sent->others_us, sent->turns);
    bench_free(subjects, SUBJECTS);
}

void bench_export_call(const struct bench_paths *paths, struct bench_report *report) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    struct collector collector = {0};
    struct sending quiet = {0}, sent = {0};
    ph_sink sink = PH_SINK_INIT;
    uint64_t sum = 0;
    ph_error error;

    collector_start(&collector);
    sink.context = &sum;
    sink.span = no_span;
    sending_open(&quiet, paths, sink);
    config.endpoint = collector.endpoint;
    bench_check(ph_otlp_create(&config, &sent.otlp, &error), "an exporter", &error);
    ph_otlp_sink(sent.otlp, &sink);
    sending_open(&sent, paths, sink);
    measure(&quiet, &sent, report);
    report_stats(sent.otlp, report);
    sending_close(&quiet);
    sending_close(&sent);
    ph_otlp_shutdown(sent.otlp, WAIT_NS);
    ph_otlp_destroy(sent.otlp);
    collector_stop(&collector);
}
