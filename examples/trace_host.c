/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Traces a database in a sandbox: as a tree of text on stderr, and in a sink of its own that counts. What is
 * traced changes in between.
 *
 *     trace_host build/guests/sqlite
 */
#include <inttypes.h>
#include <pinhole/trace.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

/* What our sink keeps. Its functions are called by the tracer's thread: read this after ph_tracer_flush. */
struct summary {
    unsigned spans, rows;
};

struct database {
    ph_sandbox *sandbox;
    const ph_function *query;
    ph_tracer *tracer;
    struct summary summary;
};

/* The spans that the guest's own source has, not those of calls and system calls. */
static void take_span(void *context, const ph_trace_span *span) {
    struct summary *summary = context;

    if (span->kind == PH_SPAN_USER)
        summary->spans++;
}

/* What is in (event) is gone when this returns. */
static void take_event(void *context, const ph_trace_event *event) {
    struct summary *summary = context;

    if (strcmp(event->name, "row") == 0)
        summary->rows++;
}

/* A tracer with two sinks, which are its own from then on. */
static ph_status make_tracer(struct summary *summary, ph_tracer **tracer, ph_error *error) {
    ph_sink text;
    ph_sink own = PH_SINK_INIT;
    ph_status status = ph_tracer_create(NULL, tracer, error);

    own.context = summary;
    own.span = take_span;
    own.event = take_event;
    if (status == PH_OK)
        status = ph_text_sink_open(NULL, &text, error);
    if (status == PH_OK)
        status = ph_tracer_add_sink(*tracer, &text, error);
    if (status == PH_OK)
        status = ph_tracer_add_sink(*tracer, &own, error);
    return status;
}

/* Runs one statement, and says what it has added to the summary. */
static ph_status query(struct database *database, const char *text) {
    const ph_value statement = {.type = PH_STR, .str = text};
    ph_value rows;
    ph_status status = ph_call(database->sandbox, database->query, &statement, 1, &rows);

    if (status != PH_OK)
        return status;
    ph_tracer_flush(database->tracer, 0); /* all that the call has recorded is in the sinks */
    printf("%s\n  %u spans, %u rows traced\n", rows.str, database->summary.spans, database->summary.rows);
    database->summary = (struct summary){0};
    return PH_OK;
}

static ph_status run(struct database *database) {
    ph_status status = ph_sandbox_start(database->sandbox);

    if (status == PH_OK)
        status = query(database, "CREATE TABLE t (n); INSERT INTO t VALUES (3), (1), (2)");
    if (status == PH_OK)
        status = query(database, "SELECT n FROM t ORDER BY n");
    /* Rows are events at level debug. Guests that run see it from here on. */
    if (status == PH_OK)
        status = ph_tracer_set_filter(database->tracer, "info,row=debug", NULL);
    if (status == PH_OK)
        status = query(database, "SELECT n FROM t ORDER BY n");
    return status;
}

int main(int argc, char **argv) {
    struct database database = {0};
    ph_config config = PH_CONFIG_INIT;
    ph_image *image = NULL;
    ph_trace_stats stats;
    ph_error error = {.message = "one argument is needed: the guest"};
    bool failed = true;

    if (argc != 2 || make_tracer(&database.summary, &database.tracer, &error) ||
        ph_image_open(argv[1], 0, &image, &error))
        goto clean_up;
    config.backend = example_backend();
    config.tracer = database.tracer; /* nothing else is needed, here or in the guest */
    if (ph_sandbox_create(image, &config, &database.sandbox, &error))
        goto clean_up;
    database.query = ph_image_find_export(image, "query");
    if (run(&database)) {
        error = *ph_sandbox_error(database.sandbox);
        goto clean_up;
    }
    ph_tracer_stats(database.tracer, &stats);
    printf("%" PRIu64 " records lost\n", stats.dropped_ring + stats.dropped_queue + stats.dropped_budget);
    failed = false;

clean_up:
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    ph_sandbox_destroy(database.sandbox);
    ph_image_close(image);
    ph_tracer_destroy(database.tracer); /* behind its sandboxes; it closes the sinks */
    return failed;
}
