/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The tree's life, and what the host itself says in it (tree.h). Batches are the host's own and are believed;
 * the records in them are not (tree_records.c).
 */
#include "trace/tree.h"

#include <stdlib.h>
#include <string.h>

#include "trace/tree_parts.h"

static const struct ph__ending left_open = {true, PH_OK, "left open"};

static const char *last_part(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (slash && slash[1])
        return slash + 1;
    return path ? path : "";
}

struct ph__tree *ph__tree_create(const struct ph__tree_options *options) {
    struct ph__tree *tree = calloc(1, sizeof *tree);

    if (!tree)
        return NULL;
    tree->options = *options;
    tree->program = last_part(options->program);
    if (options->site_count > 0) {
        tree->site_wanted = calloc(options->site_count, sizeof *tree->site_wanted);
        tree->site_hashes = calloc(options->site_count, sizeof *tree->site_hashes);
        if (!tree->site_wanted || !tree->site_hashes) {
            free(tree->site_wanted);
            free(tree->site_hashes);
            free(tree);
            return NULL;
        }
    }
    return tree;
}

void ph__tree_destroy(struct ph__tree *tree, const struct ph__filter *filter) {
    if (!tree)
        return;
    tree->filter = filter;
    ph__tree_budget_tell(tree);
    ph__tree_spans_close(tree, 0, &left_open);
    ph__tree_async_end(tree);
    ph__tree_fields_end(tree);
    free(tree->spans);
    free(tree->site_wanted);
    free(tree->site_hashes);
    free(tree);
}

/* What begins a tree of spans brings the anchor that all its times come from. */
static void renew_anchor(struct ph__tree *tree) {
    ph__trace_clock_renew(tree->options.clock, tree->options.tsc_khz);
    tree->anchor = tree->options.clock->anchor;
}

/* Adds the arguments of (begin), whose values take (words) words, to (open). */
static void arguments_add(struct ph__tree *tree, struct ph__open *open, const struct ph__batch_begin *begin,
                          size_t words) {
    uint32_t count;

    if (!ph__record_log_values(begin->words + begin->root_words, (uint32_t)words, tree->fields, &count,
                               tree->text))
        return;
    ph__tree_arguments_name(tree, count);
    ph__tree_fields_add(tree, &open->fields, tree->fields, count);
}

static ph_span_kind span_kind(uint32_t span) {
    if (span == PH__HOST_FUNCTION)
        return PH_SPAN_HOST_FUNCTION;
    return span == PH__HOST_CALL || span == PH__HOST_RUN ? PH_SPAN_CALL : PH_SPAN_HOST;
}

/* Whether (span) is one in which the guest runs by the host's will, with a budget. */
static bool has_budget(uint64_t span) {
    return span == PH__HOST_CALL || span == PH__HOST_START || span == PH__HOST_RUN;
}

/* Says, once, that the times of this sandbox may be wrong. */
static void clock_warn(struct ph__tree *tree) {
    static const struct ph__name name = {.text = "trace.clock", .naming = PH__NAME_TEXT};

    if (ph__tree_name_wanted(tree, &name, PH_LEVEL_WARN))
        ph__tree_event_emit(tree, NULL, name.text, PH_LEVEL_WARN,
                            "the time-stamp counter is not invariant: times here may be wrong", 0);
}

/* All that was dropped so far. */
static uint64_t dropped_of(const struct ph__tree *tree) {
    const ph_trace_stats *stats = tree->options.stats;
    return stats->dropped_ring + stats->dropped_queue + stats->dropped_budget;
}

void ph__tree_call_counts(const struct ph__tree *tree, uint64_t *records, uint64_t *dropped) {
    *records = tree->options.stats->records - tree->call_records;
    *dropped = dropped_of(tree) - tree->call_dropped;
}

static void take_begin(struct ph__tree *tree, const struct ph__batch_begin *begin) {
    struct ph__open span = {
        .id = begin->id,
        .name = {.value = begin->span, .naming = PH__NAME_HOST},
        .kind = span_kind(begin->span),
        .level = PH_LEVEL_INFO,
    };

    if (begin->span > PH__HOST_LAST)
        return;
    if (begin->span == PH__HOST_RUN)
        span.name.text = tree->program;
    else if (begin->function)
        span.name.text = begin->function->name;
    if (begin->span != PH__HOST_FUNCTION) {
        /* Nothing but a host function begins inside what the guest has begun. */
        ph__tree_spans_close(tree, tree->host, &left_open);
    }
    tree->exited = false;
    if (has_budget(begin->span)) {
        ph__tree_budget_tell(tree);
        tree->call_seen = 0;
        tree->call_records = tree->options.stats->records;
        tree->call_dropped = dropped_of(tree);
    }
    if (tree->depth == 0)
        renew_anchor(tree);
    if (begin->root_words)
        ph__tree_trace_begin(tree, begin);
    bool wanted = ph__tree_name_wanted(tree, &span.name, PH_LEVEL_INFO);
    struct ph__open *open = ph__tree_span_open(tree, &span, wanted, true);
    if (!open) {
        tree->host_extra++;
        ph__trace_count(&tree->options.stats->too_deep, 1);
        return;
    }
    if (tree->options.tsc_varies) {
        tree->options.tsc_varies = false;
        clock_warn(tree);
    }
    if (begin->arguments && open->id && ph__tree_name_wanted(tree, &span.name, PH_LEVEL_DEBUG)) {
        arguments_add(tree, open, begin,
                      (begin->batch.size - sizeof *begin) / sizeof(uint64_t) - begin->root_words);
    }
}

/* Closes what a guest has left open, all being well: a program that has exited has ended its own span. */
static void guest_close(struct ph__tree *tree) {
    static const struct ph__ending finished = {false, PH_OK, NULL};

    while (tree->depth > tree->host) {
        bool ended = tree->exited && tree->spans[tree->depth - 1].kind == PH_SPAN_GUEST;
        ph__tree_spans_close(tree, tree->depth - 1, ended ? &finished : &left_open);
    }
}

static void take_end(struct ph__tree *tree, const struct ph__batch_end *end) {
    size_t room = end->batch.size - sizeof *end;
    const char *message = memchr(end->message, 0, room) ? end->message : "";
    struct ph__ending ending = {false, (ph_status)end->status, *message ? message : NULL};

    if (tree->host_extra > 0) {
        tree->host_extra--;
        return;
    }
    if (tree->host == 0)
        return;
    if (ending.status != PH_OK) {
        struct ph__ending unfinished = {true, ending.status, ending.message};
        if (!unfinished.message)
            unfinished.message = ending.message = ph_status_message(ending.status);
        ph__tree_spans_close(tree, tree->host, &unfinished);
    } else {
        guest_close(tree);
    }
    if (has_budget(tree->spans[tree->host - 1].name.value))
        ph__tree_budget_tell(tree);
    ph__tree_spans_close(tree, tree->host - 1, &ending);
}

static void take_loss(struct ph__tree *tree, const struct ph__batch_loss *loss) {
    ph_trace_stats *stats = tree->options.stats;
    const char *cause = "overwritten";

    switch ((enum ph__loss)loss->cause) {
    case PH__LOSS_RING:
        if (loss->restarted)
            tree->ring_records = tree->ring_bytes = 0;
        if (!ph__tree_ring_loss_take(tree, loss->records, loss->bytes))
            ph__trace_count(&stats->malformed, 1);
        return;
    case PH__LOSS_QUEUE:
        cause = "queue";
        ph__trace_count(&stats->dropped_queue, loss->records);
        break;
    case PH__LOSS_BUDGET:
        cause = "budget";
        ph__trace_count(&stats->dropped_budget, loss->records);
        break;
    case PH__LOSS_NONSENSE:
        cause = "nonsense";
        ph__trace_count(&stats->malformed, loss->records > 0 ? loss->records : 1);
        break;
    case PH__LOSS_OVERWRITTEN:
        break;
    }
    ph__trace_count(&stats->lost_bytes, loss->bytes);
    ph__tree_gap_tell(tree, cause, loss->records, loss->bytes);
}

void ph__tree_take(struct ph__tree *tree, const struct ph__batch *batch, const struct ph__filter *filter,
                   uint64_t version) {
    uint64_t tsc = batch->tsc > tree->now ? batch->tsc : tree->now;

    ph__tree_filter_renew(tree, filter, version);
    if (tree->depth == 0 && batch->kind != PH__BATCH_BEGIN)
        renew_anchor(tree);
    if (batch->kind == PH__BATCH_RECORDS) {
        /* Time moves to the batch's with its last record, or the host's next word. */
        tree->limit = tsc;
        ph__tree_records_take(tree, (const struct ph__batch_records *)batch,
                              batch->size - sizeof(struct ph__batch_records));
        return;
    }
    /* A loss is told when the queue has room again, maybe later than the records that come next were written:
     * it has no time of its own. */
    if (batch->kind != PH__BATCH_LOSS)
        tree->now = tsc;
    switch ((enum ph__batch_kind)batch->kind) {
    case PH__BATCH_BEGIN:
        take_begin(tree, (const struct ph__batch_begin *)batch);
        break;
    case PH__BATCH_END:
        take_end(tree, (const struct ph__batch_end *)batch);
        break;
    case PH__BATCH_LOSS:
        take_loss(tree, (const struct ph__batch_loss *)batch);
        break;
    case PH__BATCH_RECORDS:
        break;
    }
}
