/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A sandbox that is traced into a collection: what most tests of tracing begin with.
 */
#ifndef PH_TESTS_TRACED_H
#define PH_TESTS_TRACED_H

#include "support/trace_collect.h"

struct traced {
    struct trace_collect collect;
    ph_tracer *tracer;
    ph_image *image;
    ph_sandbox *sandbox;
};

/* Makes and starts a sandbox of (guest), with its host function `visit` if it has one: u64 to u64, one more.
 * (config) and (tracer_config) may be NULL. */
void traced_begin(struct traced *traced, const char *guest, const ph_config *config,
                  const ph_tracer_config *tracer_config);

/* The same without the start. */
void traced_create(struct traced *traced, const char *guest, const ph_config *config,
                   const ph_tracer_config *tracer_config);

/* Calls an export; fails the test when the status is not (wanted). */
void traced_call(struct traced *traced, const char *name, const ph_value *args, size_t count,
                 ph_status wanted, ph_value *result);

/* Has everything delivered. */
void traced_flush(struct traced *traced);

ph_trace_stats traced_stats(const struct traced *traced);

/* Destroys the sandbox and the tracer, and checks the collection, which stays. */
void traced_finish(struct traced *traced);

void traced_free(struct traced *traced);

static inline void traced_end(struct traced *traced) {
    traced_finish(traced);
    traced_free(traced);
}

/* Values. */
#define BOOL(x) ((ph_value){.type = PH_BOOL, .boolean = (x)})
#define I32(x) ((ph_value){.type = PH_I32, .i32 = (x)})
#define U32(x) ((ph_value){.type = PH_U32, .u32 = (x)})
#define U64(x) ((ph_value){.type = PH_U64, .u64 = (x)})
#define STR(x) ((ph_value){.type = PH_STR, .str = (x)})
#define BYTES(d, n) ((ph_value){.type = PH_BYTES, .bytes = {(d), (n)}})
#define ARGS(...) (const ph_value[]){__VA_ARGS__}, sizeof((const ph_value[]){__VA_ARGS__}) / sizeof(ph_value)
#define NO_ARGS NULL, 0

#endif
