/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Drives a guest that traces, in a real VM, by any sequence of calls: recursion, exits of every kind, errors,
 * other filters. What comes must be a forest as trace.h promises, and under policy `complete` each event
 * comes once. The input is how the tracer is made, and then operations of a few bytes each. By hand, in the
 * build folder, with the environment of the tests (meson test prints it with --verbose):
 *
 *   tests/fuzz/fuzz_trace_vm -max_len=256 CORPUS
 *
 * Without KVM it says so and ends with 77, which meson takes for a test that was skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/traced.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLS_MAX 24
#define TEXT_MAX 1024u

struct input {
    const uint8_t *at;
    size_t left;
};

static uint32_t take(struct input *input) {
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* Whether this machine has KVM is asked once. */
static void need_kvm(ph_image *image) {
    static bool known;
    ph_sandbox *sandbox;
    ph_error error;

    if (known)
        return;
    if (ph_sandbox_create(image, NULL, &sandbox, &error) != PH_OK) {
        fprintf(stderr, "SKIPPED, this needs KVM: %s\n", error.message);
        _Exit(getenv("PH_TEST_REQUIRE_KVM") ? 1 : 77);
    }
    ph_sandbox_destroy(sandbox);
    known = true;
}

struct fuzz {
    struct traced traced;
    struct input input;
    uint64_t seed;
    bool complete; /* nothing was switched off, and nothing may be lost */
};

static void call(struct fuzz *fuzz, const char *name, const ph_value *args, size_t count, ph_status wanted) {
    const ph_function *function = ph_image_find_export(fuzz->traced.image, name);

    expect(ph_call(fuzz->traced.sandbox, function, args, count, NULL) == wanted, name);
}

static void recurse(struct fuzz *fuzz) {
    char text[TEXT_MAX + 1], data[TEXT_MAX];
    size_t length = take(&fuzz->input) * 4 + take(&fuzz->input) % 5;
    size_t size = take(&fuzz->input) * 4;

    for (size_t i = 0; i < sizeof data; i++) {
        fuzz->seed = fuzz->seed * 6364136223846793005ull + 1442695040888963407ull;
        data[i] = (char)(fuzz->seed >> 56);
        text[i] = data[i] ? data[i] : 'x';
    }
    text[length < TEXT_MAX ? length : TEXT_MAX] = 0;
    call(fuzz, "recurse", ARGS(U32(take(&fuzz->input)), STR(text), BYTES(data, size)), PH_OK);
}

static void step(struct fuzz *fuzz) {
    static const char *const filters[] = {"info", "off", "trace", "warn", "info,level=off", "off,at=info"};
    struct input *input = &fuzz->input;
    uint32_t operation = take(input);

    switch (operation % 10) {
    case 0:
    case 1:
        recurse(fuzz);
        return;
    case 2:
        call(fuzz, "events", ARGS(U64(take(input) * 16ull)), PH_OK);
        return;
    case 3:
        call(fuzz, "spans", ARGS(U64(take(input) * 8ull)), PH_OK);
        return;
    case 4:
        call(fuzz, "exits",
             ARGS(U32(take(input) % 9), U32(take(input) * 4), U32(take(input) % 8), U32(take(input))), PH_OK);
        return;
    case 5:
        call(fuzz, "spans_in_spans", ARGS(U64(take(input) % 4), U32(take(input) % 7)), PH_OK);
        return;
    case 6:
        call(fuzz, "visit_late", ARGS(U32(take(input) % 4)), PH_OK);
        return;
    case 7:
        call(fuzz, "fails", ARGS(I32(1 + (int32_t)take(input))), PH_E_GUEST);
        return;
    case 8:
        call(fuzz, operation & 64 ? "async_begin" : "async_end", ARGS(U64(take(input) % 4)), PH_OK);
        return;
    default:
        expect(ph_tracer_set_filter(fuzz->traced.tracer, filters[take(input) % 6], NULL) == PH_OK, "filter");
        fuzz->complete = false;
    }
}

/* The events `at` count up, and are (count) when none may be missing. */
static void sequence_check(const struct fuzz *fuzz, uint64_t count) {
    const struct trace_collect *collect = &fuzz->traced.collect;
    uint64_t next = 0, came = 0;
    size_t at = 0;

    for (const ph_trace_event *event; (event = trace_event_find(collect, "at", at, &at)); at++, came++) {
        uint64_t n = trace_number(event->fields, event->field_count, "n");
        expect(n >= next, "events come once and in order");
        next = n + 1;
    }
    expect(came <= count, "no event comes that was not there");
    if (fuzz->complete)
        expect(came == count, "no event is lost");
}

static void begin(struct fuzz *fuzz) {
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    ph_config config = PH_CONFIG_INIT;
    uint32_t make = take(&fuzz->input);

    tracer_config.synchronous = make & 1;
    config.trace_ring = 16ull << 10 << (make >> 1 & 3);
    config.trace_policy = (ph_trace_policy)((make >> 3 & 3) % 3);
    config.keep_output = 4096;
    fuzz->complete = config.trace_policy == PH_TRACE_COMPLETE;
    traced_begin(&fuzz->traced, "trace-work", &config, &tracer_config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz fuzz = {.input = {data, size}, .seed = size};
    ph_image *image = test_image("trace-work");
    ph_value count = {.type = PH_U64};

    need_kvm(image);
    ph_image_close(image);
    begin(&fuzz);
    for (int i = 0; i < CALLS_MAX && fuzz.input.left > 0; i++)
        step(&fuzz);
    const ph_function *function = ph_image_find_export(fuzz.traced.image, "next_number");
    expect(ph_call(fuzz.traced.sandbox, function, NULL, 0, &count) == PH_OK, "the guest still answers");
    traced_flush(&fuzz.traced);
    const ph_trace_stats stats = traced_stats(&fuzz.traced);
    expect(stats.malformed == 0, "an honest guest writes no nonsense");
    expect(stats.dropped_queue == 0 || !fuzz.complete, "complete is complete");
    traced_finish(&fuzz.traced); /* checks the forest; a check that fails ends the process */
    sequence_check(&fuzz, count.u64);
    traced_free(&fuzz.traced);
    return 0;
}
