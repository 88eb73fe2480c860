/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole call`: calls one function of a guest with JSON values and prints its result.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/metrics.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/signals.h"

static const char help[] =
    "usage: pinhole call [OPTION]... FILE FUNCTION [ARG...]\n"
    "\n"
    "Calls FUNCTION of the guest FILE in a micro-VM and prints its result as JSON. Each ARG is a JSON value "
    "of the type\n"
    "that the function takes (see `pinhole functions`): a number, true, '\"text\"', bytes as a string in "
    "base64. @PATH\n"
    "is the content of a file, for a string or bytes. What the guest itself prints goes to standard error.\n"
    "\n" PH__SESSION_HELP "  --snapshot SNAP     begin where `pinhole snapshot save` was, with no start\n"
    "  --raw               print a string or bytes as they are, and nothing else\n"
    "  --repeat N          call N times and print the last result\n"
    "  --restore           with --repeat: put the guest back before each further call\n"
    "  --stats             print counts and times of all calls as JSON on standard error\n" PH__TRACING_HELP
        PH__METERING_HELP "  --backend NAME      auto, kvm or soft (PINHOLE_BACKEND, or auto)\n"
    "  --help              print this\n"
    "\n" PH__SESSION_UNITS "\n"
    "Exit status: 0; 1 after an error of the guest, a fault, an abort, the time-out or a limit; 2 when used "
    "in another\n"
    "way, or when a file is missing, malformed or refused, or SNAP does not fit; 3 without a usable backend; "
    "130 or 143\n"
    "after Ctrl-C or SIGTERM.\n";

struct request {
    struct ph__session session;
    struct ph__metering metering;
    uint64_t repeat;
    bool raw, stats, restore;

    ph_snapshot *first; /* where the first call begins, with (restore) */
    ph_stats before;
    ph_call_stats used; /* the sum of all calls */
    ph_trace_stats trace_before;
};

/* ---- the calls ----------------------------------------------------------------------------------------- */

/* What start-up took is not the calls'. */
static void note_start(struct request *request) {
    if (!request->stats || !request->session.sandbox)
        return;
    ph_sandbox_stats(request->session.sandbox, &request->before);
    ph__tracing_stats(&request->session.trace, request->session.sandbox, &request->trace_before);
}

/* Adds what the last call used. */
static void add_used(struct request *request) {
    ph_call_stats last = PH_CALL_STATS_INIT;
    uint64_t *sum = (uint64_t *)&request->used;
    const uint64_t *more = (const uint64_t *)&last;

    /* Without the trace's counts, which would have to be waited for. */
    last.size = offsetof(ph_call_stats, trace_records);
    if (!request->stats || ph_sandbox_call_stats(request->session.sandbox, &last) != PH_OK)
        return;
    /* Behind the size all of it is counts of 8 bytes. */
    for (size_t i = 1; i < last.size / sizeof *sum; i++)
        sum[i] += more[i];
}

/* Remembers where the guest is before the first call: a snapshot that it began with is that already. */
static ph_status remember(struct request *request) {
    if (!request->restore)
        return PH_OK;
    if (!request->session.snapshot)
        return ph_snapshot_take(request->session.sandbox, &request->first);
    ph_snapshot_retain(request->session.snapshot);
    request->first = request->session.snapshot;
    return PH_OK;
}

/* Makes the call with (index), and all is ready for it then. */
static ph_status call_next(struct request *request, uint64_t index, ph_value *result, ph_error *error) {
    ph_status status = PH_OK;

    if (index > 0 && request->restore)
        status = ph_sandbox_restore(request->session.sandbox, request->first);
    if (status != PH_OK) {
        *error = *ph_sandbox_error(request->session.sandbox);
        return status;
    }
    status = ph__session_call(&request->session, result, error);
    add_used(request);
    return status;
}

/* Calls as often as asked for, until a signal comes. */
static ph_status call(struct request *request, ph_value *result, ph_error *error) {
    ph_status status = remember(request);

    if (status != PH_OK)
        *error = *ph_sandbox_error(request->session.sandbox);
    for (uint64_t i = 0; i < request->repeat && status == PH_OK && !ph__signals_received(); i++)
        status = call_next(request, i, result, error);
    return status;
}

static void print_result(const struct request *request, const ph_value *result) {
    if (request->raw && result->type == PH_STR) {
        fputs(result->str, stdout);
    } else if (request->raw && result->type == PH_BYTES) {
        fwrite(result->bytes.data, 1, result->bytes.size, stdout);
    } else {
        ph__value_print(stdout, result);
        putchar('\n');
    }
    /* Not only once the trace is out, which may take a while. */
    fflush(stdout);
    ph__check_output();
}

/* Counts of the calls alone: what start-up took is not theirs. */
struct counts {
    ph_stats calls;
    ph_trace_stats trace;
    uint64_t pages;
};

/* Taken while there is a sandbox, printed when the trace is out. */
static void take_stats(const struct request *request, struct counts *now) {
    *now = (struct counts){0};
    if (!request->stats || !request->session.sandbox)
        return;
    ph_sandbox_stats(request->session.sandbox, &now->calls);
    ph_sandbox_pages(request->session.sandbox, &now->pages);
    ph__tracing_stats(&request->session.trace, request->session.sandbox, &now->trace);
}

static void print_used(const ph_call_stats *used) {
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"exits_host_call", used->exits_host_call},
        {"exits_write", used->exits_write},
        {"exits_read", used->exits_read},
        {"exits_sleep", used->exits_sleep},
        {"exits_protect", used->exits_protect},
        {"exits_zero", used->exits_zero},
        {"exits_trace", used->exits_trace},
        {"exits_end", used->exits_end},
        {"exits_exception", used->exits_exception},
        {"exits_kick", used->exits_kick},
        {"exits_other", used->exits_other},
        {"cpu_ns", used->guest_ns},
        {"sleep_ns", used->sleep_ns},
        {"output_bytes", used->output_bytes},
        {"pages_copied", used->pages_copied},
    };

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        fprintf(stderr, ", \"%s\": %" PRIu64, counts[i].name, counts[i].count);
}

static void print_stats(const struct request *request, const struct counts *counts, bool traced) {
    const ph_stats *before = &request->before;
    const ph_stats *now = &counts->calls;

    fprintf(stderr,
            "{\"calls\": %" PRIu64 ", \"exits\": %" PRIu64 ", \"host_calls\": %" PRIu64
            ", \"guest_ns\": %" PRIu64 ", \"host_ns\": %" PRIu64 ", \"pages_touched\": %" PRIu64,
            now->calls - before->calls, now->exits - before->exits, now->host_calls - before->host_calls,
            now->guest_ns - before->guest_ns, now->host_ns - before->host_ns, counts->pages);
    print_used(&request->used);
    if (traced)
        ph__tracing_stats_print(stderr, &request->trace_before, &counts->trace);
    fputs("}\n", stderr);
}

static int execute(struct request *request) {
    struct ph__session *session = &request->session;
    ph_value result = {.type = PH_VOID};
    ph_error error = {.status = PH_OK};
    struct counts counts;
    int exit_status = PH__COMMAND_OK;
    bool traced = session->trace.tracer;
    ph_status status = ph__session_start(session, &error);

    note_start(request);
    if (status == PH_OK)
        status = call(request, &result, &error);
    if (status != PH_OK || ph__signals_received())
        exit_status = ph__session_fail(session, &error);
    else
        print_result(request, &result);
    ph__held_flush(&session->output);
    take_stats(request, &counts);
    bool has_stats = request->stats && session->sandbox;
    ph__metering_stop(&request->metering);
    ph__session_end(session);
    if (has_stats)
        print_stats(request, &counts, traced);
    return exit_status;
}

static int run(const struct ph__command *command, struct ph__line *line) {
    struct request request = {.session = PH__SESSION_INIT};
    struct ph__session *session = &request.session;
    const struct ph__option options[] = {
        PH__SESSION_OPTIONS(request.session),
        {"--snapshot", PH__OPTION_WORD, &session->snapshot_path},
        {"--raw", PH__OPTION_FLAG, &request.raw},
        {"--repeat", PH__OPTION_COUNT, &request.repeat},
        {"--restore", PH__OPTION_FLAG, &request.restore},
        {"--stats", PH__OPTION_FLAG, &request.stats},
        PH__METERING_OPTIONS(request.metering),
        {0},
    };
    int status = ph__options_parse(command, options, line);

    if (status == PH__OPTIONS_GO_ON)
        status = ph__session_check(command, session);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__metering_check(command, &request.metering);
    if (status != PH__OPTIONS_GO_ON)
        goto clean_up;
    if (request.restore && !request.repeat) {
        status = ph__usage_error(command, "--restore does nothing without --repeat");
        goto clean_up;
    }
    if (line->count < 2) {
        status =
            ph__usage_error(command, line->count ? "which function?" : "which file, and which function?");
        goto clean_up;
    }
    request.repeat += !request.repeat;
    session->path = line->words[0];
    session->name = line->words[1];
    session->words = (struct ph__line){line->words + 2, line->count - 2};
    status = ph__session_open(command, session);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__metering_open(command, &request.metering, &session->config);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__session_trace(command, session);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__finish_output(execute(&request));

clean_up:
    ph_snapshot_close(request.first);
    ph__session_free(session);
    ph__metering_free(&request.metering);
    return status;
}

const struct ph__command ph__command_call = {
    .name = "call",
    .summary = "call one function of a guest",
    .help = help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run,
};
