/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole snapshot save`: starts a guest, lets it do one call to warm up, and keeps it in a file for `call
 * --snapshot`. The file is written by the library, at once or not at all.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/signals.h"

static const char help[] =
    "usage: pinhole snapshot save [OPTION]... FILE -o SNAP [--call FUNCTION [ARG...]]\n"
    "\n"
    "Starts the guest FILE in a micro-VM and keeps it, as it then waits for calls, in the file SNAP, which "
    "is "
    "replaced at\n"
    "once or not at all. `pinhole call --snapshot SNAP` goes on from there.\n"
    "\n"
    "  -o SNAP             where to\n"
    "  --call FUNCTION [ARG...]\n"
    "                      call this first, as `pinhole call` does; the result is not printed. The last "
    "option: all\n"
    "                      that follows belongs to it\n" PH__SESSION_HELP PH__TRACING_HELP
    "  --backend NAME      auto, kvm or soft (PINHOLE_BACKEND, or auto)\n"
    "  --help              print this\n"
    "\n" PH__SESSION_UNITS "\n"
    "A snapshot keeps the sizes of memory, messages and the trace's ring, and whether the guest is traced: "
    "`call` must\n"
    "not ask for others. Limits, files and answers to imports are not in it.\n"
    "\n"
    "Exit status: 0; 1 after an error of the guest, a fault, an abort, the time-out or a limit, or when SNAP "
    "cannot be\n"
    "written; 2 when used in another way, or when a file is missing, malformed or refused; 3 without a "
    "usable "
    "backend;\n"
    "130 or 143 after Ctrl-C or SIGTERM.\n";

struct request {
    struct ph__session session;
    const char *output;
    struct ph__line call;
};

/* ---- the command line ---------------------------------------------------------------------------------- */

/* Options stand on both sides of FILE: its own first, -o and --call where a reader looks for them. */
static int parse(const struct ph__command *command, struct request *request, struct ph__line *line) {
    const struct ph__option options[] = {
        PH__SESSION_OPTIONS(request->session),
        {"-o", PH__OPTION_WORD, &request->output},
        {"--call", PH__OPTION_REST, &request->call},
        {0},
    };
    int status = ph__options_parse(command, options, line);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (line->count == 0)
        return ph__usage_error(command,
                               request->call.count ? "which file? It goes before --call" : "which file?");
    request->session.path = line->words[0];
    *line = (struct ph__line){line->words + 1, line->count - 1};
    status = ph__options_parse(command, options, line);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (line->count > 0)
        return ph__usage_error(command, "one file only, not '%s' too; a function goes behind --call",
                               line->words[0]);
    if (request->call.count == 0)
        return PH__OPTIONS_GO_ON;
    request->session.name = request->call.words[0];
    request->session.words = (struct ph__line){request->call.words + 1, request->call.count - 1};
    return PH__OPTIONS_GO_ON;
}

/* The library renames a new file to the path: what is there would be gone, a device or a link as well. */
static int check_output(const struct ph__command *command, const struct request *request) {
    struct stat information;

    if (!request->output || !*request->output)
        return ph__usage_error(command, "where to? It wants -o SNAP, in front of --call");
    if (strcmp(request->output, "-") == 0)
        return ph__usage_error(command, "-o - would make a file of that name: a snapshot needs a file");
    if (lstat(request->output, &information) == 0 && !S_ISREG(information.st_mode))
        return ph__usage_error(command, "-o %s is no regular file", request->output);
    const char *read = ph__session_reads(&request->session, request->output);
    if (read)
        return ph__usage_error(command, "-o %s would overwrite %s", request->output, read);
    return PH__OPTIONS_GO_ON;
}

/* ---- saving -------------------------------------------------------------------------------------------- */

static int save(const struct request *request) {
    ph_snapshot *snapshot = NULL;
    ph_error error = {.status = PH_OK};
    int exit_status = PH__COMMAND_OK;

    if (ph_snapshot_take(request->session.sandbox, &snapshot) != PH_OK) {
        error = *ph_sandbox_error(request->session.sandbox);
        exit_status = ph__session_fail(&request->session, &error);
    } else if (ph_snapshot_save(snapshot, request->output, &error) != PH_OK) {
        ph__complain("%s", error.message);
        exit_status = PH__COMMAND_FAILED;
    }
    ph_snapshot_close(snapshot);
    return exit_status;
}

static int execute(struct request *request) {
    struct ph__session *session = &request->session;
    ph_error error = {.status = PH_OK};
    ph_status status = ph__session_start(session, &error);
    int exit_status;

    if (status == PH_OK && session->function && !ph__signals_received())
        status = ph__session_call(session, NULL, &error);
    if (status != PH_OK || ph__signals_received())
        exit_status = ph__session_fail(session, &error);
    else
        exit_status = save(request);
    ph__held_flush(&session->output);
    ph__session_end(session);
    return exit_status;
}

static int run(const struct ph__command *command, struct ph__line *line) {
    struct request request = {.session = PH__SESSION_INIT};
    struct ph__session *session = &request.session;
    int status = parse(command, &request, line);

    if (status == PH__OPTIONS_GO_ON)
        status = ph__session_check(command, session);
    if (status == PH__OPTIONS_GO_ON)
        status = check_output(command, &request);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__session_open(command, session);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__session_trace(command, session);
    /* A trace to the same path has made a file there by now. */
    if (status == PH__OPTIONS_GO_ON)
        status = ph__tracing_spare(command, &session->trace, request.output);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__finish_output(execute(&request));
    ph__session_free(session);
    return status;
}

const struct ph__command ph__command_snapshot_save = {
    .name = "snapshot save",
    .summary = "start a guest and keep it in a file",
    .help = help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run,
};
