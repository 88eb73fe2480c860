/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the files of the tree share. tree.c takes batches, tree_records.c a guest's records; tree_spans.c
 * keeps the open spans, tree_async.c those that do not nest; tree_fields.c keeps fields until their span
 * ends; tree_names.c says what everything is called, and whether it is wanted; tree_trace.c keeps the trace
 * that they all belong to; tree_events.c hands out all but spans.
 */
#ifndef PH_TRACE_TREE_PARTS_H
#define PH_TRACE_TREE_PARTS_H

#include "trace/context.h"
#include "trace/format.h"
#include "trace/record.h"
#include "trace/tree.h"

#define PH__TREE_FIELDS_MAX 32u                /* of one span */
#define PH__TREE_FIELD_BYTES_MAX (16ull << 20) /* kept for all open spans */
#define PH__TREE_HOST_SPARE 64u                /* spans of the host beyond PH__TREE_DEPTH_MAX */
#define PH__TREE_KNOWN_NAMES 512u              /* a power of two */

/* ---- names -------------------------------------------------------------------------------------------- */

enum ph__naming {
    PH__NAME_TEXT = 1,    /* (text) */
    PH__NAME_HOST,        /* (value), an enum ph__host_span, and (text), NULL or of what */
    PH__NAME_EXPORT,      /* "guest " and (text) */
    PH__NAME_SYSTEM_CALL, /* (text), or NULL and (value) is the number */
    PH__NAME_FUNCTION,    /* (text), or NULL and (value) is the address */
};

struct ph__name {
    const char *text; /* outlives the tree */
    uint64_t value;
    enum ph__naming naming;
};

/* A name that was looked up, and whether the filter wants it. */
struct ph__known_name {
    struct ph__name name;
    bool used;
    bool wanted;
};

enum ph__wanted { PH__WANTED_UNKNOWN = 0, PH__WANTED_YES = 1, PH__WANTED_NO = 2 };

/* ---- spans -------------------------------------------------------------------------------------------- */

/* Fields of an open span, copied, in one piece of memory with their texts behind them. */
struct ph__field_node {
    struct ph__field_node *next;
    uint32_t size;
    uint32_t count;
    ph_field fields[];
};

struct ph__fields {
    struct ph__field_node *first, *last;
    uint32_t count;
    uint32_t dropped;
};

#define PH__NO_SPAN UINT32_MAX

/* An open span. */
struct ph__open {
    uint64_t id;       /* 0: it is not wanted, and only here so that its end is known */
    uint64_t parent;   /* id of the nearest span around it that is wanted */
    uint64_t position; /* of its begin record; of a host's span: that of the span below */
    uint64_t start;    /* TSC of the host; of an asynchronous span: nanoseconds since 1970 */
    const struct ph__site *site;
    struct ph__name name;
    struct ph__fields fields;
    uint64_t call_site;  /* of a function: where it was called from, 0 when that is not known */
    uint32_t stack;      /* 0: not to be judged by it */
    uint32_t judged;     /* the nearest span from this one down that has a stack pointer, or PH__NO_SPAN */
    uint32_t outer_host; /* of a host's span: what (host) and (too_deep) of the tree were around it */
    uint32_t outer_too_deep;
    ph_span_kind kind;
    ph_level level;
};

struct ph__ending {
    bool unfinished;
    ph_status status;
    const char *message;
};

/* The trace that spans belong to. */
struct ph__trace {
    uint8_t id[PH__TRACE_ID_SIZE];
    uint8_t remote_parent[PH__SPAN_ID_SIZE]; /* all 0 for none */
    const char *state;                       /* the caller's tracestate, NULL for none */
};

struct ph__async {
    struct ph__open span;
    struct ph__trace trace; /* its own copy: the span may outlive the root that it was begun under */
    uint64_t id;            /* the guest's */
    uint32_t hash;
    uint32_t next; /* in its chain, or among the free ones */
};

struct ph__tree {
    struct ph__tree_options options;
    const char *program; /* its last part */
    const struct ph__filter *filter;
    uint64_t version;
    bool version_known;

    /* Spans from 0, the root, to (depth) - 1, the innermost. The innermost of the host's is at (host) - 1:
     * what the guest says reaches from there up. */
    struct ph__open *spans;
    uint32_t depth;
    uint32_t capacity;
    uint32_t host;
    uint32_t too_deep;   /* spans of the guest that were begun above the innermost one, and left out */
    bool exited;         /* the program has said that it ends by itself */
    uint32_t host_extra; /* spans of the host that were left out: no memory */

    uint64_t now;   /* TSC of the host: of the last batch or record that was taken */
    uint64_t limit; /* no record of this batch is later */
    struct ph__trace_anchor anchor;
    struct ph__ids ids;

    struct ph__trace trace; /* of the open root */
    bool has_trace;
    char trace_state[PH__TRACESTATE_MAX + 1];
    struct ph__trace_ids trace_ids; /* for roots that the host has not begun */

    uint64_t call_seen;      /* records of this call */
    uint64_t call_records;   /* what stats->records was at its beginning */
    uint64_t call_dropped;   /* the same for all drops */
    uint64_t budget_records; /* of those, the ones that were dropped, */
    uint64_t budget_bytes;   /* and their bytes */
    uint64_t ring_records;   /* the guest's count of dropped records, as it was told last */
    uint64_t ring_bytes;

    struct ph__async *async; /* PH__TREE_ASYNC_MAX of them from the first one on, else NULL */
    uint32_t *async_heads;
    uint32_t async_free;
    uint32_t async_too_many; /* left out, and not ended yet */

    uint64_t field_bytes;
    struct ph__field_node *free_nodes; /* all of one size */
    uint32_t free_count;

    uint8_t *site_wanted;  /* enum ph__wanted, one a site */
    uint32_t *site_hashes; /* of its name; 0 is not known yet */
    struct ph__known_name known_names[PH__TREE_KNOWN_NAMES];

    /* What one record or one span needs for a moment. */
    ph_field fields[PH__TREE_FIELDS_MAX];
    ph_field all_fields[PH__TREE_FIELDS_MAX + 1];
    char text[PH__RECORD_TEXT_MAX];
    char message[PH__TRACE_MESSAGE_MAX];
    char name[1024];
};

/* ---- tree_names.c ------------------------------------------------------------------------------------- */

/* NULL for a number without a name. */
const char *ph__system_call_name(uint32_t number);

/* NULL for a number that Linux has no name for. */
const char *ph__errno_name(int number);

/* (name) in letters, in memory that lives until the next call of this. */
const char *ph__tree_name_text(struct ph__tree *tree, const struct ph__name *name);

/* Whether the filter wants (name) at (level). */
bool ph__tree_name_wanted(struct ph__tree *tree, const struct ph__name *name, ph_level level);

/* The name of an export, a system call, or a function with (value), looked up; level info. */
const struct ph__known_name *ph__tree_name_find(struct ph__tree *tree, enum ph__naming naming,
                                                uint64_t value);

bool ph__tree_site_wanted(struct ph__tree *tree, uint32_t number);

/* Takes on (filter) and forgets what an older one wanted. */
void ph__tree_filter_renew(struct ph__tree *tree, const struct ph__filter *filter, uint64_t version);

/* ---- tree_fields.c ------------------------------------------------------------------------------------ */

/* Copies the (count) fields at (fields) to the end of (list); what is too much is counted there. */
void ph__tree_fields_add(struct ph__tree *tree, struct ph__fields *list, const ph_field *fields,
                         uint32_t count);

/* All of (list) in a row, valid until the next call of this or a change of (list). */
const ph_field *ph__tree_fields_join(struct ph__tree *tree, const struct ph__fields *list, size_t *count);

void ph__tree_fields_free(struct ph__tree *tree, struct ph__fields *list);

/* Frees what is kept for fields to come. */
void ph__tree_fields_end(struct ph__tree *tree);

/* Reads (words) as (site) says into the tree's (fields), with their names. False when they do not fit. */
bool ph__tree_fields_read(struct ph__tree *tree, const struct ph__site *site, const uint64_t *words,
                          uint32_t count);

ph_field ph__tree_field_number(const char *name, ph_type type, uint64_t number);
ph_field ph__tree_field_text(const char *name, const char *text);

/* Names the first (count) of the tree's (fields) as arguments. */
void ph__tree_arguments_name(struct ph__tree *tree, uint32_t count);

/* ---- tree_spans.c ------------------------------------------------------------------------------------- */

/* Nanoseconds since 1970 now. */
uint64_t ph__tree_now_ns(const struct ph__tree *tree);

/* The id of the innermost span that is wanted, or 0. */
uint64_t ph__tree_innermost(const struct ph__tree *tree);

/* Opens (span) as the innermost one, with its parent and start filled in, and an id if it is (wanted). (host)
 * says whose it is; one of the host's has its id already. NULL when that would be too deep, or there is no
 * memory. */
struct ph__open *ph__tree_span_open(struct ph__tree *tree, const struct ph__open *span, bool wanted,
                                    bool host);

/* Closes spans until (depth) are left. */
void ph__tree_spans_close(struct ph__tree *tree, uint32_t depth, const struct ph__ending *ending);

/* Closes the guest's spans in frames that are gone when its stack pointer is (stack). */
void ph__tree_spans_leave(struct ph__tree *tree, uint32_t stack);

/* Closes the spans of functions that are gone when (function) is entered, and returns to (call_site): the
 * stack pointer alone does not tell what its caller has called before, and a longjmp has left, from the
 * caller itself. (is_again): it is entered where it was before, in the same frame. Nothing when (call_site)
 * is 0. */
void ph__tree_call_enter(struct ph__tree *tree, uint64_t function, uint64_t call_site, bool is_again);

/* The index of the guest's open span that begun at (position), or PH__NO_SPAN. */
uint32_t ph__tree_span_find(const struct ph__tree *tree, uint64_t position);

/* Hands out (span) of (trace), which is wanted and lasted from (start_ns) to (end_ns). */
void ph__tree_span_emit(struct ph__tree *tree, const struct ph__open *span, const struct ph__trace *trace,
                        uint64_t start_ns, uint64_t end_ns, const struct ph__ending *ending);

/* ---- tree_trace.c ------------------------------------------------------------------------------------- */

/* The root (begin) brings its trace. */
void ph__tree_trace_begin(struct ph__tree *tree, const struct ph__batch_begin *begin);

/* The trace of what is begun now: where the host has begun no root, because its queue was full, one of its
 * own. */
const struct ph__trace *ph__tree_trace(struct ph__tree *tree);

/* A copy of (trace), to be given back with ph__trace_free. */
struct ph__trace ph__trace_copy(const struct ph__trace *trace);
void ph__trace_free(struct ph__trace *trace);

/* ---- tree_async.c ------------------------------------------------------------------------------------- */

/* Opens the asynchronous span of (site), number (number), that the guest calls (id). NULL when there are too
 * many. */
struct ph__open *ph__tree_async_open(struct ph__tree *tree, uint32_t number, uint64_t id);

/* The one that is open with the name of site (number) and (id), or PH__NO_SPAN. */
uint32_t ph__tree_async_find(struct ph__tree *tree, uint32_t number, uint64_t id);

void ph__tree_async_close(struct ph__tree *tree, uint32_t index, const struct ph__ending *ending);

/* Closes all and frees what is theirs. */
void ph__tree_async_end(struct ph__tree *tree);

/* ---- tree_records.c, tree_events.c -------------------------------------------------------------------- */

void ph__tree_records_take(struct ph__tree *tree, const struct ph__batch_records *batch, size_t size);

/* Hands out an event of (site), or one that (name) names where that is NULL, with (count) of the tree's
 * fields. */
void ph__tree_event_emit(struct ph__tree *tree, const struct ph__site *site, const char *name, ph_level level,
                         const char *message, uint32_t count);
void ph__tree_counter_emit(struct ph__tree *tree, const struct ph__site *site, const ph_value *value);

/* Counts a loss of (records) and (bytes) and says so in an event. */
void ph__tree_gap_tell(struct ph__tree *tree, const char *cause, uint64_t records, uint64_t bytes);

/* Tells what the budget of this call has cost since it was told last. */
void ph__tree_budget_tell(struct ph__tree *tree);

/* Takes the guest's count of all (records) and (bytes) that its ring had no room for. False when it cannot
 * be. */
bool ph__tree_ring_loss_take(struct ph__tree *tree, uint64_t records, uint64_t bytes);

#endif
