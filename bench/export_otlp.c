/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How many spans a second become requests of OTLP in protocol buffers, on one core? From inside: batches of
 * as many spans as an exporter sends at a time by default. Nothing is compressed or sent. (OTLP's JSON is one
 * of the formats in export_speed.c.)
 */
#include <stdlib.h>
#include <string.h>

#include "encoding.h"
#include "export/otlp_batch.h"
#include "formats.h"

struct otlp {
    struct ph__otlp_batch *batch;
    size_t batch_max;
    /* Where a turn's bytes are kept: NULL, they are not. */
    uint8_t *bytes;
    size_t size;
};

static void take_batch(struct otlp *otlp) {
    size_t size;
    uint8_t *request = ph__otlp_batch_take(otlp->batch, &size);

    if (!request)
        bench_fail("out of memory");
    if (otlp->bytes) {
        otlp->bytes = realloc(otlp->bytes, otlp->size + size);
        if (!otlp->bytes)
            bench_fail("out of memory");
        memcpy(otlp->bytes + otlp->size, request, size);
    }
    otlp->size += size;
    free(request);
}

static void add_span(void *context, const ph_trace_span *span) {
    struct otlp *otlp = context;

    if (!ph__otlp_batch_span(otlp->batch, span)) {
        take_batch(otlp);
        if (!ph__otlp_batch_span(otlp->batch, span))
            bench_fail("a span had no room in an empty batch");
    }
    if (ph__otlp_batch_items(otlp->batch) == otlp->batch_max)
        take_batch(otlp);
}

static uint64_t encode_once(void *context) {
    struct otlp *otlp = context;
    struct spans spans = {0};
    uint64_t start = bench_processor_ns(NULL);

    spans_give(&spans, ENCODING_TREES, add_span, otlp);
    if (ph__otlp_batch_items(otlp->batch) > 0)
        take_batch(otlp);
    return bench_processor_ns(NULL) - start;
}

static void measure(const struct ph__otlp_settings *settings, const char *folder,
                    struct bench_report *report) {
    struct otlp otlp = {.batch = ph__otlp_batch_create(PH_EXPORT_TRACES, PH__OTLP_PROTOBUF, settings),
                        .batch_max = settings->span_batch_max,
                        .bytes = malloc(1)};

    if (!otlp.batch || !otlp.bytes)
        bench_fail("out of memory");
    encode_once(&otlp);
    struct otlp measured = {.batch = otlp.batch, .batch_max = otlp.batch_max};
    const struct encoding encoding = {.name = "otlp",
                                      .key = "export.otlp_kspan_s",
                                      .reach = 1000,
                                      .once = encode_once,
                                      .context = &measured,
                                      .bytes = otlp.bytes,
                                      .size = otlp.size};
    encoding_measure(&encoding, folder, report);
    ph__otlp_batch_destroy(otlp.batch);
    free(otlp.bytes);
}

void bench_export_otlp(const struct bench_paths *paths, struct bench_report *report) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    struct ph__otlp_settings settings;
    char folder[PATH_SIZE];
    ph_error error;

    (void)paths;
    config.service_name = "bench";
    bench_check(ph__otlp_settings_read(&config, &settings, &error), "settings", &error);
    folder_make(folder);
    measure(&settings, folder, report);
    folder_remove(folder);
    ph__otlp_settings_free(&settings);
}
