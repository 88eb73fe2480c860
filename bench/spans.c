/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Trees of spans for the benchmarks of sinks (spans.h). What is the same in every tree is made once, so that
 * making a span costs a few stores beside what a sink does with it.
 */
#include "spans.h"

#include <stdio.h>
#include <string.h>

#define STAGES 14u
#define STEPS 6u
#define STEP_NS 300u
#define TREE_NS 1000000u /* from the begin of one to that of the next */
#define ZERO_NS 1750000000000000000u
#define KEY_DIGITS 6u

_Static_assert(2 + STAGES * (1 + STEPS) == SPANS_IN_TREE, "so many spans are in a tree");

/* In the order in which they end; (begun) is the place of each in the order in which they begin. */
struct template {
    char name[24];
    ph_span_kind kind;
    uint32_t begun;
    uint32_t parent; /* its place, as (begun); SPANS_IN_TREE: none */
    uint32_t line;
    uint64_t start_ns, end_ns;
};

static struct template templates[SPANS_IN_TREE];

static void add_stage(size_t stage, struct template *at) {
    uint32_t begun = (uint32_t)(2 + stage * (1 + STEPS));
    uint64_t start_ns = 2000 + stage * (STEPS + 1) * STEP_NS;

    for (uint32_t step = 0; step < STEPS; step++, at++) {
        *at = (struct template){.kind = PH_SPAN_USER,
                                .begun = begun + 1 + step,
                                .parent = begun,
                                .line = 100 + step,
                                .start_ns = start_ns + 20 + step * STEP_NS,
                                .end_ns = start_ns + 20 + step * STEP_NS + STEP_NS / 2};
        snprintf(at->name, sizeof at->name, "step.%u", step);
    }
    *at = (struct template){.kind = PH_SPAN_USER,
                            .begun = begun,
                            .parent = 1,
                            .line = 40 + (uint32_t)stage,
                            .start_ns = start_ns,
                            .end_ns = start_ns + STEPS * STEP_NS + 40};
    snprintf(at->name, sizeof at->name, "stage.%zu", stage);
}

static void make_templates(void) {
    struct template *guest = &templates[SPANS_IN_TREE - 2];
    struct template *call = &templates[SPANS_IN_TREE - 1];

    for (size_t stage = 0; stage < STAGES; stage++)
        add_stage(stage, &templates[stage * (1 + STEPS)]);
    *guest = (struct template){"guest query", PH_SPAN_GUEST, 1, 0, 0, 1000, TREE_NS - 2000};
    *call = (struct template){"call query", PH_SPAN_CALL, 0, SPANS_IN_TREE, 0, 0, TREE_NS - 1000};
}

static void set_key(char *digits, uint64_t number) {
    for (size_t i = KEY_DIGITS; i-- > 0; number /= 10)
        digits[i] = (char)('0' + number % 10);
}

void spans_give(struct spans *spans, uint64_t count, spans_take *take, void *context) {
    char key[] = "customer-000000";
    ph_field fields[] = {
        {.name = "rows", .value = {.type = PH_I64}},
        {.name = "key", .value = {.type = PH_STR, .str = key}, .size = 15, .full_size = 15},
    };
    ph_trace_span span = {.size = sizeof span,
                          .sandbox = 1,
                          .level = PH_LEVEL_INFO,
                          .source = {.file = "src/query.c", .function = "run_stage"},
                          .fields = fields,
                          .field_count = 2,
                          .trace_id = {1}};

    if (!templates[0].kind)
        make_templates();
    for (uint64_t end = spans->trees + count; spans->trees < end; spans->trees++) {
        uint64_t first = spans->trees * SPANS_IN_TREE + 1;
        uint64_t zero_ns = ZERO_NS + spans->trees * TREE_NS;
        memcpy(span.trace_id + 8, &first, sizeof first);
        for (size_t i = 0; i < SPANS_IN_TREE; i++) {
            const struct template *from = &templates[i];
            span.id = first + from->begun;
            span.parent = from->parent < SPANS_IN_TREE ? first + from->parent : 0;
            span.kind = from->kind;
            span.name = from->name;
            span.source.line = from->line;
            span.start_ns = zero_ns + from->start_ns;
            span.end_ns = zero_ns + from->end_ns;
            fields[0].value.i64 = (int64_t)(span.id * 7);
            set_key(key + sizeof key - 1 - KEY_DIGITS, span.id);
            take(context, &span);
        }
    }
}
