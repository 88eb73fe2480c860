/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the tree hands out besides spans: events, counters, and the word of what was lost.
 */
#include <string.h>

#include "trace/tree_parts.h"

/* The most that a guest's count of losses may grow at once: what is more is no count. */
#define LOSS_MAX (1ull << 48)

void ph__tree_event_emit(struct ph__tree *tree, const struct ph__site *site, const char *name, ph_level level,
                         const char *message, uint32_t count) {
    ph_trace_event event = {
        .size = sizeof event,
        .sandbox = tree->options.sandbox,
        .span = ph__tree_innermost(tree),
        .level = level,
        .name = site ? site->name : name,
        .message = message,
        .time_ns = ph__tree_now_ns(tree),
        .fields = count > 0 ? tree->fields : NULL,
        .field_count = count,
    };

    if (tree->has_trace)
        memcpy(event.trace_id, tree->trace.id, sizeof event.trace_id);
    if (site)
        event.source = (ph_source){site->file, site->function, site->line};
    ph__trace_count(&tree->options.stats->events, 1);
    if (tree->options.output.event)
        tree->options.output.event(tree->options.output.context, &event);
}

void ph__tree_counter_emit(struct ph__tree *tree, const struct ph__site *site, const ph_value *value) {
    const ph_trace_counter counter = {
        .size = sizeof counter,
        .sandbox = tree->options.sandbox,
        .span = ph__tree_innermost(tree),
        .name = site->name,
        .source = {site->file, site->function, site->line},
        .time_ns = ph__tree_now_ns(tree),
        .value = *value,
    };

    ph__trace_count(&tree->options.stats->counters, 1);
    if (tree->options.output.counter)
        tree->options.output.counter(tree->options.output.context, &counter);
}

void ph__tree_gap_tell(struct ph__tree *tree, const char *cause, uint64_t records, uint64_t bytes) {
    static const struct ph__name name = {.text = "trace.gap", .naming = PH__NAME_TEXT};

    ph__trace_count(&tree->options.stats->gaps, 1);
    if (!ph__tree_name_wanted(tree, &name, PH_LEVEL_WARN))
        return;
    uint32_t count = 0;
    tree->fields[count++] = ph__tree_field_text("cause", cause);
    if (records > 0) /* it is known how many */
        tree->fields[count++] = ph__tree_field_number("records", PH_U64, records);
    tree->fields[count++] = ph__tree_field_number("bytes", PH_U64, bytes);
    ph__tree_event_emit(tree, NULL, name.text, PH_LEVEL_WARN, NULL, count);
}

void ph__tree_budget_tell(struct ph__tree *tree) {
    if (tree->budget_records > 0)
        ph__tree_gap_tell(tree, "budget", tree->budget_records, tree->budget_bytes);
    tree->budget_records = 0;
    tree->budget_bytes = 0;
}

bool ph__tree_ring_loss_take(struct ph__tree *tree, uint64_t records, uint64_t bytes) {
    struct ph__tree_options *options = &tree->options;
    uint64_t more_records = records - tree->ring_records;
    uint64_t more_bytes = bytes - tree->ring_bytes;
    bool backwards = records < tree->ring_records || bytes < tree->ring_bytes;

    if (!backwards && (more_records > LOSS_MAX || more_bytes > LOSS_MAX))
        return false;
    /* Counts that have gone backwards are a lie about the past; what follows is counted from them on. */
    tree->ring_records = records;
    tree->ring_bytes = bytes;
    if (backwards)
        return false;
    if (more_records == 0 && more_bytes == 0)
        return true;
    ph__trace_count(&options->stats->dropped_ring, more_records);
    ph__trace_count(&options->stats->lost_bytes, more_bytes);
    ph__tree_gap_tell(tree, "ring", more_records, more_bytes);
    return true;
}
