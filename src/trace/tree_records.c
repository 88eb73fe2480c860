/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest's records, one after the other: each is checked against its site, moved into time, and put into
 * the tree. A record is taken, malformed or beyond the budget; none of the three ends the others.
 */
#include "trace/tree_parts.h"

enum outcome { TAKEN, MALFORMED, DROPPED };

static const struct ph__ending well = {false, PH_OK, NULL};
static const struct ph__ending left_open = {true, PH_OK, "left open"};
static const struct ph__ending begun_again = {true, PH_OK, "begun again"};

static void count_filtered(struct ph__tree *tree) {
    ph__trace_count(&tree->options.stats->filtered, 1);
}

/* The site of (record), when there is one of (kind). */
static const struct ph__site *site_find(const struct ph__tree *tree, const struct ph__record *record,
                                        enum ph__site_kind kind) {
    if (record->site >= tree->options.site_count)
        return NULL;
    const struct ph__site *site = &tree->options.sites[record->site];
    return site->kind == kind ? site : NULL;
}

/* Opens a span of the guest with (count) of the tree's fields. */
static void begin(struct ph__tree *tree, const struct ph__open *span, bool wanted, uint32_t count) {
    struct ph__open *open = ph__tree_span_open(tree, span, wanted, false);

    if (!open) {
        tree->too_deep++;
        ph__trace_count(&tree->options.stats->too_deep, 1);
    } else if (wanted && count > 0) {
        ph__tree_fields_add(tree, &open->fields, tree->fields, count);
    }
    if (!wanted)
        count_filtered(tree);
}

static enum outcome span_begin(struct ph__tree *tree, const struct ph__record *record, uint64_t position) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_SPAN);

    if (!site || !ph__tree_fields_read(tree, site, record->words, record->count))
        return MALFORMED;
    const struct ph__open span = {
        .position = position,
        .site = site,
        .name = {.text = site->name, .naming = PH__NAME_TEXT},
        .stack = (uint32_t)record->stack,
        .kind = PH_SPAN_USER,
        .level = (ph_level)site->level,
    };
    ph__tree_spans_leave(tree, span.stack);
    begin(tree, &span, ph__tree_site_wanted(tree, record->site), site->count);
    return TAKEN;
}

/* The kind of the host's span that the guest is in, or -1. */
static int host_span(const struct ph__tree *tree) {
    return tree->host ? (int)tree->spans[tree->host - 1].name.value : -1;
}

static enum outcome call_begin(struct ph__tree *tree, const struct ph__record *record, uint64_t position) {
    struct ph__open span = {.position = position, .kind = PH_SPAN_GUEST, .level = PH_LEVEL_INFO};
    bool wanted;

    if (record->count != 0)
        return MALFORMED;
    if (record->site == PH__SITE_START) {
        if (host_span(tree) == PH__HOST_RUN)
            span.name = (struct ph__name){.text = tree->program, .naming = PH__NAME_EXPORT};
        else
            span.name = (struct ph__name){.text = "guest.init", .naming = PH__NAME_TEXT};
        wanted = ph__tree_name_wanted(tree, &span.name, PH_LEVEL_INFO);
    } else if (record->site < tree->options.export_count) {
        const struct ph__known_name *known = ph__tree_name_find(tree, PH__NAME_EXPORT, record->site);
        span.name = known->name;
        wanted = known->wanted;
    } else {
        return MALFORMED;
    }
    begin(tree, &span, wanted, 0);
    return TAKEN;
}

static enum outcome system_call_begin(struct ph__tree *tree, const struct ph__record *record,
                                      uint64_t position) {
    if (record->count > 6)
        return MALFORMED;
    const struct ph__known_name *known = ph__tree_name_find(tree, PH__NAME_SYSTEM_CALL, record->site);
    const struct ph__open span = {
        .position = position, .name = known->name, .kind = PH_SPAN_SYSTEM_CALL, .level = PH_LEVEL_INFO};
    for (uint32_t i = 0; i < record->count; i++)
        tree->fields[i] = ph__tree_field_number(NULL, PH_U64, record->words[i]);
    ph__tree_arguments_name(tree, record->count);
    begin(tree, &span, known->wanted, record->count);
    return TAKEN;
}

static enum outcome function_begin(struct ph__tree *tree, const struct ph__record *record,
                                   uint64_t position) {
    if (record->count < 1 || record->count > 2 || !site_find(tree, record, PH__SITE_FUNCTION))
        return MALFORMED;
    uint64_t call_site = record->count == 2 ? record->words[1] & ~PH__RECORD_CALLED_AGAIN : 0;
    bool is_again = record->count == 2 && (record->words[1] & PH__RECORD_CALLED_AGAIN);
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    ph__tree_call_enter(tree, record->words[0], call_site, is_again);
    const struct ph__known_name *known = ph__tree_name_find(tree, PH__NAME_FUNCTION, record->words[0]);
    const struct ph__open span = {
        .position = position,
        .name = known->name,
        .call_site = call_site,
        .stack = (uint32_t)record->stack,
        .kind = PH_SPAN_FUNCTION,
        .level = PH_LEVEL_INFO,
    };
    begin(tree, &span, known->wanted, 0);
    return TAKEN;
}

/* Adds what a system call has returned to its span. */
static void result_add(struct ph__tree *tree, struct ph__open *span, int64_t result) {
    uint32_t count = 1;

    if (!span->id)
        return;
    tree->fields[0] = ph__tree_field_number("result", PH_I64, (uint64_t)result);
    if (result < 0 && result >= -4095) {
        const char *name = ph__errno_name((int)-result);
        if (name)
            tree->fields[count++] = ph__tree_field_text("error", name);
    }
    ph__tree_fields_add(tree, &span->fields, tree->fields, count);
}

/* Whether an end that names (position) is of a span that was left out as too deep. */
static bool ends_too_deep(const struct ph__tree *tree, uint64_t position) {
    return tree->too_deep > 0 && tree->depth > 0 && position > tree->spans[tree->depth - 1].position;
}

static enum outcome span_end(struct ph__tree *tree, const struct ph__record *record, bool over_budget) {
    if (record->count > 1)
        return MALFORMED;
    uint32_t index = ph__tree_span_find(tree, record->begin_position);
    if (index == PH__NO_SPAN) {
        if (ends_too_deep(tree, record->begin_position))
            tree->too_deep--;
        else if (over_budget)
            return DROPPED;
        else
            ph__trace_count(&tree->options.stats->unknown_ends, 1);
        return TAKEN;
    }
    if (record->count == 1 && tree->spans[index].kind != PH_SPAN_SYSTEM_CALL)
        return MALFORMED;
    ph__tree_spans_close(tree, index + 1, &left_open);
    if (record->count == 1)
        result_add(tree, &tree->spans[index], (int64_t)record->words[0]);
    ph__tree_spans_close(tree, index, &well);
    return TAKEN;
}

static enum outcome event(struct ph__tree *tree, const struct ph__record *record) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_EVENT);

    if (!site || !ph__tree_fields_read(tree, site, record->words, record->count))
        return MALFORMED;
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    if (ph__tree_site_wanted(tree, record->site))
        ph__tree_event_emit(tree, site, NULL, (ph_level)site->level, NULL, site->count);
    else
        count_filtered(tree);
    return TAKEN;
}

static enum outcome log_line(struct ph__tree *tree, const struct ph__record *record) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_LOG);
    uint32_t count;

    if (!site || !ph__record_log_values(record->words, record->count, tree->fields, &count, tree->text))
        return MALFORMED;
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    if (!ph__tree_site_wanted(tree, record->site)) {
        count_filtered(tree);
        return TAKEN;
    }
    ph__trace_format(tree->message, sizeof tree->message, site->name, tree->fields, count);
    ph__tree_event_emit(tree, site, NULL, (ph_level)site->level, tree->message, 0);
    return TAKEN;
}

static enum outcome fields(struct ph__tree *tree, const struct ph__record *record) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_FIELDS);

    if (!site || record->count < 1 || !ph__tree_fields_read(tree, site, record->words + 1, record->count - 1))
        return MALFORMED;
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    uint32_t index = ph__tree_span_find(tree, record->words[0]);
    if (index == PH__NO_SPAN) {
        if (!ends_too_deep(tree, record->words[0]))
            ph__trace_count(&tree->options.stats->unknown_ends, 1);
    } else if (tree->spans[index].id) {
        ph__tree_fields_add(tree, &tree->spans[index].fields, tree->fields, site->count);
    } else {
        count_filtered(tree);
    }
    return TAKEN;
}

static enum outcome counter(struct ph__tree *tree, const struct ph__record *record) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_COUNTER);

    if (!site || site->count != 1 || (site->types[0] != PH_I64 && site->types[0] != PH_F64) ||
        !ph__tree_fields_read(tree, site, record->words, record->count))
        return MALFORMED;
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    if (ph__tree_site_wanted(tree, record->site))
        ph__tree_counter_emit(tree, site, &tree->fields[0].value);
    else
        count_filtered(tree);
    return TAKEN;
}

static enum outcome async_begin(struct ph__tree *tree, const struct ph__record *record) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_ASYNC_BEGIN);

    if (!site || record->count < 1 || !ph__tree_fields_read(tree, site, record->words + 1, record->count - 1))
        return MALFORMED;
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    if (!ph__tree_site_wanted(tree, record->site)) {
        count_filtered(tree);
        return TAKEN;
    }
    uint32_t older = ph__tree_async_find(tree, record->site, record->words[0]);
    if (older != PH__NO_SPAN)
        ph__tree_async_close(tree, older, &begun_again);
    struct ph__open *open = ph__tree_async_open(tree, record->site, record->words[0]);
    if (open) {
        ph__tree_fields_add(tree, &open->fields, tree->fields, site->count);
    } else {
        tree->async_too_many++;
        ph__trace_count(&tree->options.stats->too_deep, 1);
    }
    return TAKEN;
}

/* Whether the end's own site is wanted decides nothing: the span was begun, and is handed out. */
static enum outcome async_end(struct ph__tree *tree, const struct ph__record *record, bool over_budget) {
    const struct ph__site *site = site_find(tree, record, PH__SITE_ASYNC_END);

    if (!site || record->count < 1 || !ph__tree_fields_read(tree, site, record->words + 1, record->count - 1))
        return MALFORMED;
    ph__tree_spans_leave(tree, (uint32_t)record->stack);
    uint32_t index = ph__tree_async_find(tree, record->site, record->words[0]);
    if (index != PH__NO_SPAN) {
        ph__tree_fields_add(tree, &tree->async[index].span.fields, tree->fields, site->count);
        ph__tree_async_close(tree, index, &well);
    } else if (over_budget) {
        return DROPPED;
    } else if (!ph__tree_site_wanted(tree, record->site)) {
        count_filtered(tree);
    } else if (tree->async_too_many > 0) {
        tree->async_too_many--;
    } else {
        ph__trace_count(&tree->options.stats->unknown_ends, 1);
    }
    return TAKEN;
}

static enum outcome gap(struct ph__tree *tree, const struct ph__record *record) {
    if (record->count != 2 || !ph__tree_ring_loss_take(tree, record->words[0], record->words[1]))
        return MALFORMED;
    return TAKEN;
}

static enum outcome program_exit(struct ph__tree *tree, const struct ph__record *record) {
    static const struct ph__name name = {.text = "exit", .naming = PH__NAME_TEXT};

    if (record->count != 1)
        return MALFORMED;
    if (ph__tree_name_wanted(tree, &name, PH_LEVEL_INFO)) {
        uint32_t count = 0;
        tree->fields[count++] = ph__tree_field_number("status", PH_I64, record->words[0]);
        if (record->site)
            tree->fields[count++] = ph__tree_field_number("signal", PH_I64, record->site);
        ph__tree_event_emit(tree, NULL, name.text, PH_LEVEL_INFO, NULL, count);
    } else {
        count_filtered(tree);
    }
    if (!record->site) {
        /* It leaves its last system call by this, and whatever else is open when the host says so. */
        if (tree->depth > tree->host && tree->spans[tree->depth - 1].kind == PH_SPAN_SYSTEM_CALL)
            ph__tree_spans_close(tree, tree->depth - 1, &well);
        tree->exited = true;
    }
    return TAKEN;
}

/* Puts (record), which begins at (position), into the tree. Beyond the budget only ends of open spans are. */
static enum outcome take(struct ph__tree *tree, const struct ph__record *record, uint64_t position,
                         bool over_budget) {
    if (record->type == PH__RECORD_SPAN_END)
        return span_end(tree, record, over_budget);
    if (record->type == PH__RECORD_ASYNC_END)
        return async_end(tree, record, over_budget);
    if (over_budget)
        return DROPPED;
    switch (record->type) {
    case PH__RECORD_SPAN_BEGIN:
        return span_begin(tree, record, position);
    case PH__RECORD_EVENT:
        return site_find(tree, record, PH__SITE_LOG) ? log_line(tree, record) : event(tree, record);
    case PH__RECORD_FIELDS:
        return fields(tree, record);
    case PH__RECORD_COUNTER:
        return counter(tree, record);
    case PH__RECORD_ASYNC_BEGIN:
        return async_begin(tree, record);
    case PH__RECORD_CALL_BEGIN:
        return call_begin(tree, record, position);
    case PH__RECORD_SYSTEM_CALL_BEGIN:
        return system_call_begin(tree, record, position);
    case PH__RECORD_FUNCTION_BEGIN:
        return function_begin(tree, record, position);
    case PH__RECORD_GAP:
        return gap(tree, record);
    case PH__RECORD_EXIT:
        return program_exit(tree, record);
    default:
        return MALFORMED;
    }
}

/* Moves the time of a record, by the guest's counter, to where it can be. */
static uint64_t time_clamp(const struct ph__tree *tree, uint64_t untrusted_tsc) {
    uint64_t tsc = untrusted_tsc - (uint64_t)tree->options.tsc_offset;

    if (tsc < tree->now)
        return tree->now;
    return tsc < tree->limit ? tsc : tree->limit;
}

void ph__tree_records_take(struct ph__tree *tree, const struct ph__batch_records *batch, size_t size) {
    ph_trace_stats *stats = tree->options.stats;
    struct ph__record record;
    size_t length;

    for (size_t offset = 0; offset < size; offset += length) {
        length = ph__record_take(batch->bytes + offset, size - offset, &record);
        bool over_budget = tree->call_seen >= tree->options.call_records;
        if (length == 0) {
            ph__trace_count(&stats->malformed, 1);
            ph__trace_count(&stats->lost_bytes, size - offset);
            /* Where the next record begins is not known, but by the next batch. */
            if (!over_budget)
                ph__tree_gap_tell(tree, "malformed", 0, size - offset);
            tree->call_seen++;
            return;
        }
        uint64_t before = tree->now;
        tree->call_seen++;
        tree->now = time_clamp(tree, record.tsc);
        switch (take(tree, &record, batch->position + offset, over_budget)) {
        case TAKEN:
            ph__trace_count(&stats->records, 1);
            break;
        case MALFORMED:
            tree->now = before;
            ph__trace_count(&stats->malformed, 1);
            break;
        case DROPPED:
            tree->now = before;
            tree->budget_records++;
            tree->budget_bytes += length;
            ph__trace_count(&stats->dropped_budget, 1);
            break;
        }
    }
}
