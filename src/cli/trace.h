/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The options of `run` and `call` that trace the guest, and what follows from them.
 */
#ifndef PH_CLI_TRACE_H
#define PH_CLI_TRACE_H

#include <stdio.h>

#include <pinhole/trace.h>

#include "cli/options.h"
#include "cli/trace_output.h"

/* Zeroed to begin with. The first part is filled in by PH__TRACING_OPTIONS, the rest by ph__tracing_open. */
struct ph__tracing {
    struct ph__words outputs;
    const char *level;
    const char *filter;
    const char *policy;
    const char *ring;
    const char *traceparent;
    uint64_t flush_ns;

    bool unsampled; /* by (traceparent) */
    ph_tracer *tracer;
    ph_metrics *metrics;    /* NULL: none of its own */
    ph_metrics *watched_by; /* which counts what the tracer does */
    struct ph__tracing_output *files;
    size_t file_count;
};

/* Entries for a list of options, for (trace), a struct ph__tracing. */
#define PH__TRACING_OPTIONS(trace)                                                                           \
    {"--trace", PH__OPTION_WORDS, &(trace).outputs}, {"--trace-level", PH__OPTION_WORD, &(trace).level},     \
        {"--trace-filter", PH__OPTION_WORD, &(trace).filter},                                                \
        {"--trace-policy", PH__OPTION_WORD, &(trace).policy},                                                \
        {"--trace-ring", PH__OPTION_WORD, &(trace).ring},                                                    \
        {"--traceparent", PH__OPTION_WORD, &(trace).traceparent}, {                                          \
        "--flush-timeout", PH__OPTION_DURATION, &(trace).flush_ns                                            \
    }

/* The options as --help shows them. */
#define PH__TRACING_HELP                                                                                     \
    "  --trace FORMAT[:PATH]\n"                                                                              \
    "                      show what the guest does: text or jsonl (on standard error without a path), "     \
    "otlp[:URL]\n"                                                                                           \
    "                      (to a collector), otlp-json, html, perfetto, chrome, ctf (a folder), folded or\n" \
    "                      speedscope; may be given again\n"                                                 \
    "  --trace-level LEVEL off, error, warn, info, debug or trace (info)\n"                                  \
    "  --trace-filter LIST LEVEL or TARGET=LEVEL, with commas between; TARGET is a glob for a source\n"      \
    "                      file, function or name; e.g. info,brk=off\n"                                      \
    "  --trace-policy POLICY\n"                                                                              \
    "                      when the guest's ring is full: complete (wait), drop (the newest), flight (the "  \
    "oldest)\n"                                                                                              \
    "  --trace-ring SIZE   bytes of that ring, a power of two (256K)\n"                                      \
    "  --traceparent TEXT  the caller's trace and span, as in the W3C header of that name; when it says "    \
    "that\n"                                                                                                 \
    "                      it is not sampled, nothing is traced\n"                                           \
    "  --flush-timeout DURATION\n"                                                                           \
    "                      wait this long for a collector at the end (5s)\n"

/* Checks the options and puts those of the sandbox into (config). Returns PH__OPTIONS_GO_ON or an exit
 * status. Nothing has been opened then. */
int ph__tracing_check(const struct ph__command *command, struct ph__tracing *trace, ph_config *config);

/* Refuses to go on when a trace would overwrite the file at (path), which the command reads. Returns
 * PH__OPTIONS_GO_ON or an exit status. */
int ph__tracing_spare(const struct ph__command *command, const struct ph__tracing *trace, const char *path);

/* Makes the tracer, for (config), when there is something to trace to, and opens its files. Returns
 * PH__OPTIONS_GO_ON or an exit status; ph__tracing_free is due in any case. */
int ph__tracing_open(const struct ph__command *command, struct ph__tracing *trace, ph_config *config);

/* Delivers all of the trace, once the sandbox is destroyed and what went wrong with it has been said: what is
 * for stderr is written there now. Warns of what could not be written or sent; the command's result stands.
 */
void ph__tracing_finish(struct ph__tracing *trace);

/* Frees what is left, also without ph__tracing_finish. */
void ph__tracing_free(struct ph__tracing *trace);

/* The counts of (sandbox) up to now: all 0 without a tracer. */
void ph__tracing_stats(const struct ph__tracing *trace, const ph_sandbox *sandbox, ph_trace_stats *stats);

/* Prints the members of a JSON object, each with a comma before it, that count what (now) has more than
 * (before). */
void ph__tracing_stats_print(FILE *file, const ph_trace_stats *before, const ph_trace_stats *now);

#endif
