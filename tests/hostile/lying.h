/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The guest hostile_trace, traced: what the tests of its lies share. Each lie ends with a good record, the
 * event `mark` with a number, by which is seen that reading goes on.
 */
#ifndef PH_TESTS_LYING_H
#define PH_TESTS_LYING_H

#include "hostile/hostile.h"

#include "support/trace_collect.h"

#define GUEST "hostile_trace"
#define STARTED 1u /* the monitor's record of the start */

struct lying {
    struct hostile hostile;
    struct trace_collect collect;
    ph_tracer *tracer;
    atomic_uint complaints;
    uint64_t n; /* of the last good record */
};

/* Makes and starts a sandbox of the guest. (counters): keep them, too; floods are made of them. */
void lying_begin(struct lying *lying, ph_config *config, bool synchronous, bool counters);

/* The sandbox's end, with all checks. */
void lying_end(struct lying *lying, const char *what);

ph_trace_stats lying_stats(const struct lying *lying);

bool lying_has_mark(const struct lying *lying, uint64_t n);

/* Calls a lie, whose last argument is the number of the good record behind it, and expects that record. */
void lie(struct lying *lying, const char *name, const ph_value *args, size_t count);

#define I64(x) ((ph_value){.type = PH_I64, .i64 = (x)})
#define BOOL(x) ((ph_value){.type = PH_BOOL, .boolean = (x)})

#endif
