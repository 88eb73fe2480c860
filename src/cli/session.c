/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * From the words of a command line to a sandbox that waits for calls, and back (session.h). A failure is said
 * in one line, by whoever notices it; nothing here writes to standard output.
 */
#include "cli/session.h"

#include <string.h>

#include "abi/frame.h"
#include "cli/paths.h"
#include "cli/signals.h"
#include "vm/memory.h"

/* ---- the command line ---------------------------------------------------------------------------------- */

int ph__session_check(const struct ph__command *command, struct ph__session *session) {
    int status = ph__tracing_check(command, &session->trace, &session->config);

    return status == PH__OPTIONS_GO_ON ? ph__given_files_check(command, &session->files, &session->config)
                                       : status;
}

static int open_image(struct ph__session *session) {
    ph_error error;
    ph_status status = ph_image_open(session->path, 0, &session->image, &error);

    if (status == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return ph__status_of_call(status);
}

static int find_function(const struct ph__command *command, struct ph__session *session) {
    session->function = ph_image_find_export(session->image, session->name);
    if (session->function)
        return PH__OPTIONS_GO_ON;
    if (ph_image_export_count(session->image) == 0)
        return ph__usage_error(command, "%s exports no functions; a whole program runs with `pinhole run`",
                               session->path);
    ph__complain("%s has no function '%s'; `pinhole functions` lists those that it has", session->path,
                 session->name);
    return PH__COMMAND_USAGE;
}

static int parse_arguments(const struct ph__command *command, struct ph__session *session) {
    const ph_signature *signature = &session->function->signature;
    const int count = session->words.count;
    struct ph__refusal why;

    if ((uint32_t)count != signature->count)
        return ph__usage_error(command, "%s takes %u argument%s, %d %s given", session->name,
                               signature->count, signature->count == 1 ? "" : "s", count,
                               count == 1 ? "was" : "were");
    for (uint32_t i = 0; i < signature->count; i++) {
        if (!ph__value_parse(session->words.words[i], signature->args[i], &session->args[i], &why))
            return ph__usage_error(command, "argument %u of %s, a value of type %s: %s", i + 1, session->name,
                                   ph__signature_type(signature->args[i]), why.text);
        session->arg_count = i + 1;
    }
    return PH__OPTIONS_GO_ON;
}

/* What a failure is the failure of. */
static const char *subject(const struct ph__session *session) {
    return session->name ? session->name : session->path;
}

int ph__session_open(const struct ph__command *command, struct ph__session *session) {
    int status = open_image(session);

    if (status == PH__OPTIONS_GO_ON && session->name)
        status = find_function(command, session);
    if (status == PH__OPTIONS_GO_ON && session->name)
        status = parse_arguments(command, session);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    status = ph__constants_parse(command, &session->constants, session->image, &session->hosts);
    if (status == PH__COMMAND_OK)
        status = ph__constants_check(&session->constants, session->image, subject(session));
    return status == PH__COMMAND_OK ? PH__OPTIONS_GO_ON : status;
}

/* ---- the files of others ------------------------------------------------------------------------------- */

/* The path of which (value), a word of the command line, stands for the content; NULL when it is none. */
static const char *path_in(const char *value) {
    return value && value[0] == '@' ? value + 1 : NULL;
}

static const char *path_in_host(const char *word) {
    const char *sign = strchr(word, '=');

    return sign ? path_in(sign + 1) : NULL;
}

/* How many words of the command line may name a file that is read. */
static size_t read_count(const struct ph__session *session) {
    return 2 + session->config.file_count + (size_t)session->words.count + session->hosts.count;
}

/* The file that the one with (index) names, or NULL. */
static const char *read_path(const struct ph__session *session, size_t index) {
    if (index < 2)
        return index ? session->snapshot_path : session->path;
    index -= 2;
    if (index < session->config.file_count)
        return session->config.files[index].host_path;
    index -= session->config.file_count;
    if (index < (size_t)session->words.count)
        return path_in(session->words.words[index]);
    return path_in_host(session->hosts.list[index - (size_t)session->words.count]);
}

const char *ph__session_reads(const struct ph__session *session, const char *path) {
    for (size_t i = 0; i < read_count(session); i++) {
        const char *read = read_path(session, i);
        if (read && ph__path_is_same(read, path))
            return read;
    }
    return NULL;
}

/* The guest, and what its values came from: all has been read, or is about to be, but it is the user's. */
static int spare_files(const struct ph__command *command, const struct ph__session *session) {
    int status = PH__OPTIONS_GO_ON;

    for (size_t i = 0; i < read_count(session) && status == PH__OPTIONS_GO_ON; i++)
        if (read_path(session, i))
            status = ph__tracing_spare(command, &session->trace, read_path(session, i));
    return status;
}

int ph__session_trace(const struct ph__command *command, struct ph__session *session) {
    int status = spare_files(command, session);

    return status == PH__OPTIONS_GO_ON ? ph__tracing_open(command, &session->trace, &session->config)
                                       : status;
}

/* ---- the sandbox --------------------------------------------------------------------------------------- */

/* Boxes cost memory where they are touched alone, so the command's default is roomier than the library's. */
#define MESSAGE_DEFAULT (16ull << 20)

/* Without a limit of the user's own, it is large enough for what we send, and for an answer that is a little
 * larger, such as data that cannot be compressed. A snapshot brings its own. */
static void grow_message_limit(struct ph__session *session) {
    size_t arguments = 0;
    size_t constant = ph__constants_payload(&session->constants);

    if (session->config.max_message || session->snapshot_path)
        return;
    for (uint32_t i = 0; i < session->arg_count; i++)
        arguments += ph__value_payload(&session->args[i]);
    size_t most = arguments > constant ? arguments : constant;
    most += most / 8;
    if (most > PH__MESSAGE_MAX)
        most = PH__MESSAGE_MAX;
    session->config.max_message = most > MESSAGE_DEFAULT ? most : MESSAGE_DEFAULT;
}

static ph_status make_sandbox(struct ph__session *session, ph_error *error) {
    if (!session->snapshot_path)
        return ph_sandbox_create(session->image, &session->config, &session->sandbox, error);
    /* Mapped: a call touches a small part of it, and what is in there harms the guest alone. */
    ph_status status =
        ph_snapshot_load(session->image, session->snapshot_path, PH_SNAPSHOT_MAP, &session->snapshot, error);
    return status == PH_OK
               ? ph_sandbox_create_from(session->snapshot, &session->config, &session->sandbox, error)
               : status;
}

ph_status ph__session_start(struct ph__session *session, ph_error *error) {
    grow_message_limit(session);
    session->config.backend = ph__command_backend();
    session->config.output = ph__held_write;
    session->config.output_context = &session->output;
    ph_status status = make_sandbox(session, error);
    if (status != PH_OK)
        return status;
    ph__signals_target(session->sandbox);
    status = ph__constants_register(&session->constants, session->image, session->sandbox);
    if (status == PH_OK && !session->snapshot && !ph__signals_received())
        status = ph_sandbox_start(session->sandbox);
    if (status != PH_OK)
        *error = *ph_sandbox_error(session->sandbox);
    return status;
}

ph_status ph__session_call(struct ph__session *session, ph_value *result, ph_error *error) {
    ph_status status =
        ph_call(session->sandbox, session->function, session->args, session->arg_count, result);

    if (status != PH_OK)
        *error = *ph_sandbox_error(session->sandbox);
    return status;
}

static void advise(const struct ph__session *session, const ph_error *error) {
    bool too_large =
        error->status == PH_E_TOO_LARGE || (error->status == PH_E_GUEST && error->code == PH__CODE_TOO_LARGE);

    if (!too_large)
        return;
    if (session->snapshot_path)
        ph__complain("the limit is the snapshot's: --max-message of `pinhole snapshot save` sets it");
    else if (session->config.max_message < PH__MESSAGE_MAX)
        ph__complain("--max-message raises the limit, up to 256M");
}

int ph__session_fail(const struct ph__session *session, ph_error *error) {
    if (ph__signals_received())
        error->status = PH_E_INTERRUPTED;
    ph__report_failure(subject(session), error);
    advise(session, error);
    return ph__status_of_call(error->status);
}

void ph__session_end(struct ph__session *session) {
    ph__signals_target(NULL);
    ph_sandbox_destroy(session->sandbox);
    session->sandbox = NULL;
    ph__tracing_finish(&session->trace);
}

void ph__session_free(struct ph__session *session) {
    for (uint32_t i = 0; i < session->arg_count; i++)
        ph__value_free(&session->args[i]);
    ph__constants_free(&session->constants);
    ph_snapshot_close(session->snapshot);
    ph_image_close(session->image);
    ph__words_free(&session->hosts);
    ph__given_files_free(&session->files);
    ph__tracing_free(&session->trace);
}
