/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest of which a function is called: what `call` and `snapshot save` share. Their options, the image, the
 * function with its arguments, the answers to what the image imports, and the sandbox that all this ends up
 * in.
 */
#ifndef PH_CLI_SESSION_H
#define PH_CLI_SESSION_H

#include <pinhole/snapshot.h>

#include "cli/constants.h"
#include "cli/files.h"
#include "cli/streams.h"
#include "cli/trace.h"

/* Begin with PH__SESSION_INIT. The first part is filled in by PH__SESSION_OPTIONS and the caller, the rest by
 * the functions below. */
struct ph__session {
    ph_config config;
    struct ph__words hosts;
    struct ph__given_files files;
    struct ph__tracing trace;
    const char *snapshot_path; /* where the sandbox begins; NULL: it is started */

    const char *path;      /* of the image */
    const char *name;      /* of the function; NULL: none is called */
    struct ph__line words; /* its arguments, as they were given */

    ph_image *image;
    const ph_function *function;
    ph_value args[PH_MAX_ARGS];
    uint32_t arg_count;
    struct ph__constants constants;
    struct ph__held output;
    ph_snapshot *snapshot; /* that of (snapshot_path) */
    ph_sandbox *sandbox;
};

#define PH__SESSION_INIT                                                                                     \
    { .config = PH_CONFIG_INIT }

/* Entries for a list of options, for (session), a struct ph__session. */
#define PH__SESSION_OPTIONS(session)                                                                         \
    {"--memory", PH__OPTION_SIZE, &(session).config.memory},                                                 \
        {"--timeout", PH__OPTION_DURATION, &(session).config.timeout_ns},                                    \
        {"--cpu-time", PH__OPTION_DURATION, &(session).config.cpu_time_ns},                                  \
        {"--max-output", PH__OPTION_SIZE, &(session).config.output_bytes_max},                               \
        {"--max-host-calls", PH__OPTION_COUNT, &(session).config.host_calls_max},                            \
        {"--max-message", PH__OPTION_SIZE, &(session).config.max_message},                                   \
        {"--host", PH__OPTION_WORDS, &(session).hosts},                                                      \
        {"--file", PH__OPTION_WORDS, &(session).files.words}, PH__TRACING_OPTIONS((session).trace)

/* The options as --help shows them. */
#define PH__SESSION_HELP                                                                                     \
    "  --memory SIZE       memory of the guest (64M)\n"                                                      \
    "  --timeout DURATION  end the start, and each call, after this long\n"                                  \
    "  --cpu-time DURATION end them after this much processor time\n"                                        \
    "  --max-output SIZE   end them when they print more than this\n"                                        \
    "  --max-host-calls N  end them at more host calls than this\n"                                          \
    "  --max-message SIZE  the most bytes of arguments, and of results (16M, or what the arguments need)\n"  \
    "  --host NAME=JSON    answer the import NAME with a constant; may be given again\n" PH__FILES_HELP

/* What the units in PH__SESSION_HELP are. */
#define PH__SESSION_UNITS                                                                                    \
    "SIZE is an integer and K, M, G or nothing. DURATION is a number and ns, us, ms, s or m.\n"

/* Checks the options that were given. Returns PH__OPTIONS_GO_ON or an exit status. Nothing has been opened
 * then. ph__session_free is due in any case. */
int ph__session_check(const struct ph__command *command, struct ph__session *session);

/* Opens the image, finds the function and reads its arguments and the answers to imports. Returns as
 * ph__session_check. */
int ph__session_open(const struct ph__command *command, struct ph__session *session);

/* What, of all that (session) reads, is the file at (path): the word of the command line. NULL when there is
 * none. */
const char *ph__session_reads(const struct ph__session *session, const char *path);

/* Opens the files of the trace, which are none that (session) reads. Returns as ph__session_check. What is
 * opened is delivered by ph__session_end. */
int ph__session_trace(const struct ph__command *command, struct ph__session *session);

/* Makes the sandbox and has it wait for calls: it is started, or made of its snapshot. */
ph_status ph__session_start(struct ph__session *session, ph_error *error);

/* Calls the function. (result) is as for ph_call. */
ph_status ph__session_call(struct ph__session *session, ph_value *result, ph_error *error);

/* The exit status of a session that failed with (error), or by a signal, after its line. */
int ph__session_fail(const struct ph__session *session, ph_error *error);

/* Destroys the sandbox, once what went wrong with it has been said, and delivers its trace. */
void ph__session_end(struct ph__session *session);

void ph__session_free(struct ph__session *session);

#endif
