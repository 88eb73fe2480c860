/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random calls of guests that trace, on both backends, from a seed that a failure names (differential.h): the
 * trees of spans and events are the same, with names, nesting, fields, statuses and messages, and so are the
 * counts of what was recorded and dropped. Times and ids are not looked at.
 */
#include "system/differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/traced.h"

/* What a trace comes to, as text. */
struct text {
    char *bytes;
    size_t size;
    FILE *file;
};

static void write_fields(FILE *file, const ph_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const ph_field *field = &fields[i];
        fprintf(file, " %s=", field->name);
        if (field->value.type == PH_STR)
            fprintf(file, "%s(%zu)", field->value.str, field->full_size);
        else if (field->value.type == PH_BYTES)
            for (size_t j = 0; j < field->size; j++)
                fprintf(file, "%02x", ((const uint8_t *)field->value.bytes.data)[j]);
        else if (field->value.type == PH_BOOL)
            fprintf(file, "%d", field->value.boolean);
        else
            fprintf(file, "%d:%llx", field->value.type, (unsigned long long)field->value.u64);
    }
    fprintf(file, "\n");
}

/* How deep (id) is, and what is above it. */
static void write_path(FILE *file, const struct trace_collect *collect, uint64_t id) {
    const ph_trace_span *span = id ? trace_span_by_id(collect, id) : NULL;

    if (!span)
        return;
    write_path(file, collect, span->parent);
    fprintf(file, "%s > ", span->name);
}

static void write_trace(struct text *text, const struct traced *traced) {
    const struct trace_collect *collect = &traced->collect;
    const ph_trace_stats stats = traced_stats(traced);

    text->file = open_memstream(&text->bytes, &text->size);
    assert_non_null(text->file);
    for (size_t i = 0; i < collect->span_count; i++) {
        const ph_trace_span *span = &collect->spans[i].span;
        write_path(text->file, collect, span->parent);
        fprintf(text->file, "span %s kind %d level %d status %d%s %s", span->name, span->kind, span->level,
                span->status, span->unfinished ? " unfinished" : "", span->message ? span->message : "");
        write_fields(text->file, span->fields, span->field_count);
    }
    for (size_t i = 0; i < collect->event_count; i++) {
        const ph_trace_event *event = &collect->events[i].event;
        write_path(text->file, collect, event->span);
        fprintf(text->file, "event %s level %d %s", event->name, event->level,
                event->message ? event->message : "");
        write_fields(text->file, event->fields, event->field_count);
    }
    for (size_t i = 0; i < collect->counter_count; i++) {
        const ph_trace_counter *counter = &collect->counters[i].counter;
        write_path(text->file, collect, counter->span);
        fprintf(text->file, "counter %s %llx\n", counter->name, (unsigned long long)counter->value.u64);
    }
    fprintf(text->file,
            "records %llu spans %llu events %llu dropped %llu %llu %llu malformed %llu ends %llu deep %llu "
            "gaps %llu\n",
            (unsigned long long)stats.records, (unsigned long long)stats.spans,
            (unsigned long long)stats.events, (unsigned long long)stats.dropped_ring,
            (unsigned long long)stats.dropped_queue, (unsigned long long)stats.dropped_budget,
            (unsigned long long)stats.malformed, (unsigned long long)stats.unknown_ends,
            (unsigned long long)stats.too_deep, (unsigned long long)stats.gaps);
    fclose(text->file);
}

/* Fails with the first line that differs. */
static void compare_texts(const struct rounds *rounds, const char *what, const char *kvm, const char *soft) {
    while (*kvm && *soft) {
        const size_t kvm_size = strcspn(kvm, "\n"), soft_size = strcspn(soft, "\n");
        if (kvm_size != soft_size || memcmp(kvm, soft, kvm_size) != 0)
            rounds_fail(rounds, "%s\n  kvm:  %.*s\n  soft: %.*s", what, (int)kvm_size, kvm, (int)soft_size,
                        soft);
        kvm += kvm_size + (kvm[kvm_size] != 0);
        soft += soft_size + (soft[soft_size] != 0);
    }
    if (*kvm || *soft)
        rounds_fail(rounds, "%s: one trace is longer than the other", what);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* A call of a guest that traces. */
struct call {
    const char *guest, *name;
    ph_value args[4];
    size_t count;
};

static struct call random_call(uint64_t *random) {
    static const char *const ends[] = {
        "page_fault_read",
        "page_fault_write",
        "page_fault_exec",
        "null",
        "undefined",
        "divide",
        "general_protection",
        "breakpoint",
        "privileged",
        "stack_overflow",
        "foreign_port",
        "double_fault",
        "ph_abort",
        "ph_fail",
        "abort",
        "exit",
        "_exit",
        "kill",
        "none",
    };
    static const char *const texts[] = {"", "text", "\xc3\xa4\xff",
                                        "a longer text, of some fifty bytes or so, no more"};
    const char *text = texts[random_below(random, 4)];
    const uint64_t few = random_below(random, 20);

    switch (random_below(random, 10)) {
    case 0:
        return (struct call){
            "trace-work", "recurse", {U32((uint32_t)few), STR(text), BYTES(text, strlen(text))}, 3};
    case 1:
        return (struct call){"trace-work", "events", {U64(random_below(random, 30000))}, 1};
    case 2:
        return (struct call){"trace-work", "spans", {U64(random_below(random, 3000))}, 1};
    case 3:
        return (struct call){"trace-work", "spans_in_spans", {U64(few), U32((uint32_t)few % 4)}, 2};
    case 4:
        return (struct call){"trace-work",
                             "exits",
                             {U32((uint32_t)random_below(random, 9)), U32((uint32_t)few),
                              U32((uint32_t)few % 5), U32((uint32_t)few % 7)},
                             4};
    case 5:
        return (struct call){"trace-work", "visit_late", {U32((uint32_t)few)}, 1};
    case 6:
        return (struct call){"trace-work", "everything", {STR(text)}, 1};
    case 7:
        return (struct call){"trace-work", "levels", {U32(0)}, 0};
    case 8:
        return (struct call){"trace-work", "fails", {I32((int32_t)few)}, 1};
    default:
        return (struct call){"trace-ends",
                             "end_by",
                             {STR(ends[random_below(random, sizeof ends / sizeof ends[0])]), U64(few)},
                             2};
    }
}

/* How a sandbox is traced: a budget now and then, and levels. */
static void random_config(uint64_t *random, ph_config *config, ph_tracer_config *tracer_config) {
    static const char *const filters[] = {"info", "trace", "warn", "debug,at=off", "inner=off"};

    /* What a worker takes in time is chance. */
    tracer_config->synchronous = true;
    tracer_config->filter = filters[random_below(random, 5)];
    if (random_once_in(random, 4))
        config->trace_call_records = 1 + random_below(random, 200);
    if (random_once_in(random, 4))
        config->trace_call_bytes = 64 + random_below(random, 4000);
    if (random_once_in(random, 4))
        config->trace_policy = random_once_in(random, 2) ? PH_TRACE_DROP : PH_TRACE_FLIGHT;
}

static void run_traced(uint64_t random, ph_backend backend, const struct call *calls, size_t count,
                       struct text *text, ph_status *statuses) {
    ph_config config = PH_CONFIG_INIT;
    ph_tracer_config tracer_config = PH_TRACER_CONFIG_INIT;
    struct traced traced;

    random_config(&random, &config, &tracer_config);
    config.backend = backend;
    traced_begin(&traced, calls[0].guest, &config, &tracer_config);
    for (size_t i = 0; i < count; i++)
        statuses[i] =
            test_call(traced.sandbox, traced.image, calls[i].name, calls[i].args, calls[i].count, NULL);
    traced_flush(&traced);
    write_trace(text, &traced);
    traced_end(&traced);
}

#define CALLS_MAX 3u

static void random_traces_are_the_same(void **state) {
    struct rounds rounds = rounds_begin("random traces", 60);

    (void)state;
    differential_needs_both();
    while (rounds_next(&rounds)) {
        static const ph_backend backends[BACKENDS] = {PH_BACKEND_KVM, PH_BACKEND_SOFT};
        struct call calls[CALLS_MAX] = {0};
        struct text texts[BACKENDS];
        ph_status statuses[BACKENDS][CALLS_MAX];
        const size_t wanted = 1 + random_below(&rounds.random, CALLS_MAX);
        size_t count = 0;
        while (count < wanted) {
            calls[count] = random_call(&rounds.random);
            if (strcmp(calls[count].guest, calls[0].guest) == 0)
                count++;
        }
        for (int i = 0; i < BACKENDS; i++)
            run_traced(rounds.random, backends[i], calls, count, &texts[i], statuses[i]);
        compare_texts(&rounds, calls[0].name, texts[ON_KVM].bytes, texts[ON_SOFT].bytes);
        for (size_t i = 0; i < count; i++)
            if (statuses[ON_KVM][i] != statuses[ON_SOFT][i])
                rounds_fail(&rounds, "%s: %s on kvm, %s on soft", calls[i].name,
                            ph_status_kind(statuses[ON_KVM][i]), ph_status_kind(statuses[ON_SOFT][i]));
        for (int i = 0; i < BACKENDS; i++)
            free(texts[i].bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_traces_are_the_same),
    };

    return cmocka_run_group_tests_name("differential: traces", tests, NULL, NULL);
}
