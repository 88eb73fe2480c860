/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How fast do records leave the ring? ph__ring_take, from inside, over a ring of the default size into a
 * queue of the default size, whose other end gives the room back at once. The floor is memcpy.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "floor.h"
#include "trace/tracer.h"

#define ROUNDS 40u
#define BATCH 20u
#define TURN_BYTES (4u << 20) /* copied in each turn */

struct drain {
    struct ph__stream stream;
    struct ph__ring ring;
    struct ph__control_trace control;
    ph_config config;
    size_t size;
};

static uint64_t drain_once(void *context) {
    struct drain *drain = context;
    struct ph__queue *queue = &drain->stream.queue;
    uint64_t start = bench_now_ns();

    for (size_t done = 0; done < TURN_BYTES; done += drain->size) {
        drain->ring.head += drain->size;
        if (!ph__ring_take(&drain->stream, false))
            bench_fail("an empty queue had no room");
        ph__queue_drop(queue, ph__queue_front(queue));
    }
    return bench_now_ns() - start;
}

static uint8_t *map(size_t size) {
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (bytes == MAP_FAILED)
        bench_fail("out of memory");
    return bytes;
}

/* Reports what copying (size) bytes at a time comes to beside memcpy: as (key), or as a line (what). */
static void measure(struct drain *drain, size_t size, const char *key, const char *what,
                    struct bench_report *report) {
    struct floor_copying copying = {
        .to = map(PH__QUEUE_DEFAULT),
        .from = drain->stream.view.bytes,
        .to_size = PH__QUEUE_DEFAULT,
        .from_size = PH__RING_SIZE_DEFAULT,
        .size = size,
        .times = TURN_BYTES / size,
    };
    enum { COPY, DRAIN, SUBJECTS };
    struct bench_subject subjects[SUBJECTS] = {
        [COPY] = {.once = floor_copy, .context = &copying},
        [DRAIN] = {.once = drain_once, .context = drain},
    };
    double values[ROUNDS];

    drain->size = size;
    bench_run(subjects, SUBJECTS, 2, BATCH);
    bench_free(subjects, SUBJECTS);
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    for (size_t i = 0; i < ROUNDS; i++)
        values[i] = subjects[COPY].wall[i] / subjects[DRAIN].wall[i];
    bench_report_row(report, "trace_drain", what, "ratio", values, ROUNDS);
    if (key)
        bench_report_number(report, &(struct bench_number){
                                        .key = key,
                                        .unit = "ratio",
                                        .values = values,
                                        .count = ROUNDS,
                                        .floor_us = bench_median(subjects[COPY].wall, ROUNDS) / 1000,
                                        .reach = 0.7,
                                        .goal = BENCH_AT_LEAST,
                                    });
    bench_free(subjects, SUBJECTS);
    munmap(copying.to, PH__QUEUE_DEFAULT);
}

void bench_trace_drain(const struct bench_paths *paths, struct bench_report *report) {
    static struct drain drain;

    (void)paths;
    drain.stream.options.config = &drain.config;
    drain.stream.call_bytes_max = UINT64_MAX;
    drain.stream.sandbox_bytes_max = UINT64_MAX;
    drain.stream.view = (struct ph__ring_view){
        .ring = &drain.ring,
        .bytes = map(PH__RING_SIZE_DEFAULT),
        .size = PH__RING_SIZE_DEFAULT,
        .control = &drain.control,
    };
    drain.stream.queue = (struct ph__queue){.bytes = map(PH__QUEUE_DEFAULT), .size = PH__QUEUE_DEFAULT};
    measure(&drain, 512, NULL, "512 bytes at a time, beside memcpy", report);
    measure(&drain, 4096, NULL, "4 KiB at a time", report);
    measure(&drain, 16384, "trace.drain_ratio", "16 KiB at a time: the key", report);
    measure(&drain, 131072, NULL, "128 KiB at a time", report);
    munmap(drain.stream.queue.bytes, PH__QUEUE_DEFAULT);
    munmap((void *)drain.stream.view.bytes, PH__RING_SIZE_DEFAULT);
}
