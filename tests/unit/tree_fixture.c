/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A span tree under test (tree_fixture.h).
 */
#include "tree_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#define SITE(site_name, site_kind, site_level, ...)                                                          \
    {                                                                                                        \
        .name = (site_name), .file = "src/a.c", .function = "f", .line = 7, .kind = (site_kind),             \
        .level = (site_level), __VA_ARGS__                                                                   \
    }

/* Begin and end are two sites with the same text, which need not be one string. */
static const char job_end[] = "job";

static const struct ph__site sites[SITE_COUNT] = {
    [SITE_WORK] = SITE("work", PH__SITE_SPAN, PH_LEVEL_INFO, .count = 0),
    [SITE_QUERY] = SITE("query", PH__SITE_SPAN, PH_LEVEL_INFO, .count = 2, .types = {PH_I64, PH_STR},
                        .fields = {"rows", "sql"}),
    [SITE_DETAIL] = SITE("detail", PH__SITE_SPAN, PH_LEVEL_DEBUG, .count = 0),
    [SITE_TICK] = SITE("tick", PH__SITE_EVENT, PH_LEVEL_INFO, .count = 2, .types = {PH_I64, PH_U64},
                       .fields = {"a", "b"}),
    [SITE_LINE] = SITE("%d of %s", PH__SITE_LOG, PH_LEVEL_WARN, .count = 0),
    [SITE_MORE] = SITE("", PH__SITE_FIELDS, PH_LEVEL_INFO, .count = 1, .types = {PH_I64}, .fields = {"more"}),
    [SITE_HITS] =
        SITE("hits", PH__SITE_COUNTER, PH_LEVEL_INFO, .count = 1, .types = {PH_I64}, .fields = {"value"}),
    [SITE_JOB] =
        SITE("job", PH__SITE_ASYNC_BEGIN, PH_LEVEL_INFO, .count = 1, .types = {PH_U64}, .fields = {"size"}),
    [SITE_JOB_END] =
        SITE(job_end, PH__SITE_ASYNC_END, PH_LEVEL_INFO, .count = 1, .types = {PH_BOOL}, .fields = {"done"}),
    [SITE_FUNCTIONS] = SITE("", PH__SITE_FUNCTION, PH_LEVEL_INFO, .count = 0),
    [SITE_MORE_TEXT] =
        SITE("", PH__SITE_FIELDS, PH_LEVEL_INFO, .count = 1, .types = {PH_STR}, .fields = {"text"}),
    [SITE_PAIR] = SITE("", PH__SITE_FIELDS, PH_LEVEL_INFO, .count = 2, .types = {PH_I64, PH_I64},
                       .fields = {"left", "right"}),
};

const ph_function tree_exports[2] = {{.name = "greet", .index = 0}, {.name = "add", .index = 1}};
const ph_function tree_import = {.name = "ask", .index = 0};
uint64_t tree_call_records = UINT64_MAX;

static const char *symbol(const void *context, uint64_t address) {
    (void)context;
    return address >= 0x401000 && address < 0x401100 ? "compute" : NULL;
}

/* ---- what comes out ----------------------------------------------------------------------------------- */

static void write_fields(char *text, size_t size, const ph_field *fields, size_t count) {
    size_t length = 0;

    *text = 0;
    for (size_t i = 0; i < count; i++) {
        const ph_field *field = &fields[i];
        char value[64];
        if (field->value.type == PH_STR) {
            assert_int_equal(strlen(field->value.str), field->size);
            snprintf(value, sizeof value, "%.40s", field->value.str);
        } else if (field->value.type == PH_BOOL) {
            snprintf(value, sizeof value, "%s", field->value.boolean ? "true" : "false");
        } else {
            snprintf(value, sizeof value, "%" PRId64, field->value.i64);
        }
        if (length < size)
            length +=
                (size_t)snprintf(text + length, size - length, "%s%s=%s", i ? " " : "", field->name, value);
    }
}

static void *room_for(void *items, size_t count, size_t *room, size_t size) {
    if (count < *room)
        return items;
    *room = *room ? *room * 2 : 64;
    items = realloc(items, *room * size);
    assert_non_null(items);
    return items;
}

static void take_span(void *context, const ph_trace_span *span) {
    struct tree_test *test = context;

    assert_int_not_equal(span->id, 0);
    assert_true(span->end_ns >= span->start_ns);
    assert_int_equal(span->sandbox, 3);
    if (test->count_only)
        return;
    test->spans = room_for(test->spans, test->span_count, &test->span_room, sizeof *test->spans);
    struct got_span *got = &test->spans[test->span_count++];
    *got = (struct got_span){.id = span->id,
                             .parent = span->parent,
                             .start = span->start_ns,
                             .end = span->end_ns,
                             .kind = span->kind,
                             .unfinished = span->unfinished,
                             .status = span->status,
                             .dropped_fields = span->dropped_fields};
    memcpy(got->trace_id, span->trace_id, sizeof got->trace_id);
    memcpy(got->remote_parent, span->remote_parent, sizeof got->remote_parent);
    snprintf(got->trace_state, sizeof got->trace_state, "%s", span->trace_state ? span->trace_state : "");
    snprintf(got->name, sizeof got->name, "%s", span->name);
    snprintf(got->message, sizeof got->message, "%s", span->message ? span->message : "");
    write_fields(got->fields, sizeof got->fields, span->fields, span->field_count);
}

static void take_event(void *context, const ph_trace_event *event) {
    struct tree_test *test = context;

    if (test->count_only)
        return;
    test->events = room_for(test->events, test->event_count, &test->event_room, sizeof *test->events);
    struct got_event *got = &test->events[test->event_count++];
    *got = (struct got_event){.span = event->span, .time = event->time_ns, .level = event->level};
    memcpy(got->trace_id, event->trace_id, sizeof got->trace_id);
    snprintf(got->name, sizeof got->name, "%s", event->name);
    snprintf(got->message, sizeof got->message, "%s", event->message ? event->message : "");
    write_fields(got->fields, sizeof got->fields, event->fields, event->field_count);
}

static void take_counter(void *context, const ph_trace_counter *counter) {
    struct tree_test *test = context;

    test->counter_count++;
    test->counter_value = counter->value.i64;
}

/* ---- what must always be so --------------------------------------------------------------------------- */

struct place {
    uint64_t id;
    size_t index;
};

static int compare_places(const void *left, const void *right) {
    const struct place *a = left;
    const struct place *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static void check(const struct tree_test *test) {
    size_t count = test->span_count;
    struct place *places = calloc(count + 1, sizeof *places);

    assert_non_null(places);
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){test->spans[i].id, i};
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 1; i < count; i++)
        assert_int_not_equal(places[i - 1].id, places[i].id);
    for (size_t i = 0; i < count; i++) {
        const struct got_span *span = &test->spans[i];
        struct place wanted = {span->parent, 0};
        if (span->parent == 0)
            continue;
        const struct place *found = bsearch(&wanted, places, count, sizeof *places, compare_places);
        assert_non_null(found);
        const struct got_span *parent = &test->spans[found->index];
        assert_true(span->start >= parent->start);
        /* What does not nest may outlive what was around its begin. */
        if (span->kind == PH_SPAN_ASYNC)
            continue;
        assert_true(found->index > i);
        assert_true(span->end <= parent->end);
    }
    free(places);
}

/* ---- life --------------------------------------------------------------------------------------------- */

int tree_setup(void **state) {
    struct tree_test *test = calloc(1, sizeof *test);

    assert_non_null(test);
    test->base = test->now = __rdtsc();
    test->clock.first_tsc = test->base;
    /* So slow a clock is not renewed during a test. */
    test->clock.anchor = (struct ph__trace_anchor){test->base, 1000000000000000000ull, (1ull << 32) / TICKS};
    tree_filter(test, "info");
    const struct ph__tree_options options = {
        .sandbox = 3,
        .sites = sites,
        .site_count = SITE_COUNT,
        .exports = tree_exports,
        .export_count = 2,
        .program = "/some/where/program",
        .symbol = symbol,
        .tsc_offset = -12345678,
        .call_records = tree_call_records,
        .clock = &test->clock,
        .stats = &test->stats,
        .output = {test, take_span, take_event, take_counter},
    };
    test->tree = ph__tree_create(&options);
    assert_non_null(test->tree);
    *state = test;
    return 0;
}

void tree_end(struct tree_test *test) {
    if (test->count > 0)
        deliver(test);
    ph__tree_destroy(test->tree, &test->filter);
    test->tree = NULL;
}

int tree_teardown(void **state) {
    struct tree_test *test = *state;

    if (test->tree)
        tree_end(test);
    check(test);
    ph__filter_free(&test->filter);
    free(test->spans);
    free(test->events);
    free(test);
    return 0;
}

void tree_filter(struct tree_test *test, const char *text) {
    if (test->tree)
        deliver(test);
    ph__filter_free(&test->filter);
    assert_int_equal(ph__filter_parse(text, &test->filter, NULL), PH_OK);
    test->version++;
}

/* ---- what goes in ------------------------------------------------------------------------------------- */

uint64_t put(struct tree_test *test, enum ph__record_type type, uint32_t site, uint32_t stack,
             const uint64_t *words, size_t count) {
    if (test->count + 2 + count > sizeof test->words / sizeof test->words[0])
        deliver(test);
    uint64_t position = test->position + 8 * test->count;
    uint64_t *record = &test->words[test->count];
    test->now += TICKS;
    record[0] = PH__RECORD_WORD(type, site, 2 + count) | (uint64_t)stack << PH__RECORD_STACK_SHIFT;
    record[1] = test->now - 12345678;
    if (count > 0)
        memcpy(record + 2, words, 8 * count);
    test->count += 2 + count;
    return position;
}

uint64_t put_work(struct tree_test *test, uint32_t stack) {
    return put(test, PH__RECORD_SPAN_BEGIN, SITE_WORK, stack, NULL, 0);
}

void put_end(struct tree_test *test, uint64_t position) {
    size_t at;

    put(test, PH__RECORD_SPAN_END, 0, 0, NULL, 0);
    at = test->count - 2;
    test->words[at] |= position / 8 << PH__RECORD_SITE_SHIFT;
}

void put_tick(struct tree_test *test, uint32_t stack) {
    put(test, PH__RECORD_EVENT, SITE_TICK, stack, (uint64_t[]){(uint64_t)-1, 2}, 2);
}

static void take(struct tree_test *test, struct ph__batch *batch, size_t size, uint32_t kind) {
    batch->size = (uint32_t)((size + 7) & ~(size_t)7);
    batch->kind = kind;
    batch->tsc = test->now;
    ph__tree_take(test->tree, batch, &test->filter, test->version);
}

void deliver(struct tree_test *test) {
    struct ph__batch_records *batch;

    if (test->count == 0)
        return;
    batch = malloc(sizeof *batch + 8 * test->count);
    assert_non_null(batch);
    memcpy(batch->bytes, test->words, 8 * test->count);
    batch->position = test->position;
    take(test, &batch->batch, sizeof *batch + 8 * test->count, PH__BATCH_RECORDS);
    free(batch);
    test->position += 8 * test->count;
    test->count = 0;
}

/* Far from what the tree gives to the guest's. */
static uint64_t last_id = 1ull << 40;

void host_begin(struct tree_test *test, enum ph__host_span span, const ph_function *function) {
    struct ph__batch_begin batch = {.span = span, .function = function, .id = ++last_id};

    deliver(test);
    test->now += TICKS;
    take(test, &batch.batch, sizeof batch, PH__BATCH_BEGIN);
}

void host_root(struct tree_test *test, enum ph__host_span span, const ph_function *function,
               const char trace[PH__TRACE_ID_SIZE + 1], const char *parent, const char *trace_state) {
    _Alignas(8) char memory[sizeof(struct ph__batch_begin) + sizeof(struct ph__batch_root) + 64] = {0};
    struct ph__batch_begin *batch = (struct ph__batch_begin *)memory;
    struct ph__batch_root *root = (struct ph__batch_root *)batch->words;
    size_t size = sizeof *root;

    deliver(test);
    test->now += TICKS;
    batch->span = span;
    batch->function = function;
    batch->id = ++last_id;
    memcpy(root->trace_id, trace, sizeof root->trace_id);
    if (parent)
        memcpy(root->remote_parent, parent, sizeof root->remote_parent);
    if (trace_state)
        size += (size_t)snprintf(root->trace_state, 64, "%s", trace_state) + 1;
    batch->root_words = (uint16_t)((size + 7) / 8);
    take(test, &batch->batch, sizeof *batch + 8 * (size_t)batch->root_words, PH__BATCH_BEGIN);
}

void host_end(struct tree_test *test, ph_status status, const char *message) {
    _Alignas(8) char memory[sizeof(struct ph__batch_end) + 256] = {0};
    struct ph__batch_end *batch = (struct ph__batch_end *)memory;

    deliver(test);
    test->now += TICKS;
    batch->status = status;
    snprintf(batch->message, 256, "%s", message);
    take(test, &batch->batch, sizeof *batch + strlen(message) + 1, PH__BATCH_END);
}

void host_loss(struct tree_test *test, enum ph__loss cause, uint64_t records, uint64_t bytes) {
    struct ph__batch_loss batch = {.cause = cause, .records = records, .bytes = bytes};

    deliver(test);
    test->now += TICKS;
    take(test, &batch.batch, sizeof batch, PH__BATCH_LOSS);
}

/* ---- asking ------------------------------------------------------------------------------------------- */

const struct got_span *span_of(const struct tree_test *test, const char *name) {
    const struct got_span *found = NULL;

    for (size_t i = 0; i < test->span_count; i++) {
        if (strcmp(test->spans[i].name, name) != 0)
            continue;
        if (found)
            fail_msg("two spans `%s`", name);
        found = &test->spans[i];
    }
    if (!found)
        fail_msg("no span `%s`", name);
    return found;
}

const struct got_event *event_of(const struct tree_test *test, const char *name) {
    const struct got_event *found = NULL;

    for (size_t i = 0; i < test->event_count; i++) {
        if (strcmp(test->events[i].name, name) != 0)
            continue;
        if (found)
            fail_msg("two events `%s`", name);
        found = &test->events[i];
    }
    if (!found)
        fail_msg("no event `%s`", name);
    return found;
}

void assert_under(const struct tree_test *test, const char *name, const char *parent) {
    assert_int_equal(span_of(test, name)->parent, parent ? span_of(test, parent)->id : 0);
}
