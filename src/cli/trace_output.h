/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where a trace of the command goes: one --trace, from its word to what is left to be said of it at the end.
 */
#ifndef PH_CLI_TRACE_OUTPUT_H
#define PH_CLI_TRACE_OUTPUT_H

#include <stdatomic.h>
#include <stdio.h>

#include <pinhole/otlp.h>

#include "cli/command.h"

enum ph__trace_target {
    PH__TRACE_FILE,
    PH__TRACE_FOLDER,    /* of files, which the sink makes itself */
    PH__TRACE_COLLECTOR, /* of OpenTelemetry, behind a URL */
};

/* What --trace can be. */
struct ph__trace_format {
    const char *name;
    enum ph__trace_target target;
    bool needs_path;
    bool is_opentelemetry; /* its environment variables are asked */
    ph_status (*open)(const ph_file_sink *options, ph_sink *sink, ph_error *error); /* of a file */
};

#define PH__TRACE_FORMATS "text, jsonl, otlp, otlp-json, html, perfetto, chrome, ctf, folded or speedscope"

/* The format of (output), what was given to --trace; NULL when there is none of that name. */
const struct ph__trace_format *ph__trace_format_of(const char *output);

/* What stands behind its colon, NULL when there is none. */
const char *ph__trace_path_of(const char *output);

/* One --trace. (path) is NULL for stderr. (file) writes to (fd), and (error) is the errno of the first write
 * that failed: the stream itself only knows that one did. */
struct ph__tracing_output {
    const struct ph__trace_format *format;
    const char *path;
    FILE *file; /* NULL when it is no file */
    int fd;
    int error;
    atomic_ullong written;           /* bytes of (file) */
    struct ph__collector *collector; /* NULL when it is none */
};

/* Opens (output), made of the word (given), and (*sink) on it. (metrics) are sent to a collector, or NULL.
 * Returns PH__OPTIONS_GO_ON or an exit status. */
int ph__trace_output_open(const struct ph__command *command, const char *given, ph_metrics *metrics,
                          struct ph__tracing_output *output, ph_sink *sink);

/* Closes the file of (output), once its sink is closed; what is for stderr is poured out there. Of a
 * collector there is nothing to close. */
void ph__trace_output_finish(struct ph__tracing_output *output);

/* Has all collectors among the (count) (outputs) sent what is left, at the same time, until (deadline_ns) of
 * CLOCK_MONOTONIC, or until a signal asks for the end: none that had come already, where that is (signalled).
 */
void ph__trace_collectors_finish(struct ph__tracing_output *outputs, size_t count, uint64_t deadline_ns,
                                 bool signalled);

/* Warns of what did not get to where it should have. */
void ph__trace_output_warn(const struct ph__tracing_output *output);

/* Frees what is left, also without the two above. */
void ph__trace_output_free(struct ph__tracing_output *output);

/* ---- trace_collector.c --------------------------------------------------------------------------------- */

/* An exporter to (url), NULL for what the environment says. NULL after a complaint. */
struct ph__collector *ph__collector_open(const char *url, ph_metrics *metrics, ph_sink *sink);

/* Begins to send what is left until (deadline_ns), on a thread of its own that adds 1 to the eventfd (done)
 * at its end. False when that has been done already. */
bool ph__collector_finish_begin(struct ph__collector *collector, uint64_t deadline_ns, int done);

/* Has it give up now. */
void ph__collector_finish_hurry(struct ph__collector *collector);

/* Waits for its end. */
void ph__collector_finish_end(struct ph__collector *collector);

void ph__collector_warn(const struct ph__collector *collector);
void ph__collector_free(struct ph__collector *collector);

/* Items sent so far. */
uint64_t ph__collector_sent(const struct ph__collector *collector);

#endif
