/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole call`: calls one function of a guest with JSON values and prints its result.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/frame.h"
#include "cli/command.h"
#include "cli/constants.h"
#include "cli/files.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/streams.h"
#include "cli/trace.h"
#include "vm/memory.h"

static const char help[] =
    "usage: pinhole call [OPTION]... FILE FUNCTION [ARG...]\n"
    "\n"
    "Calls FUNCTION of the guest FILE in a micro-VM and prints its result as JSON. Each ARG is a JSON value "
    "of the type\n"
    "that the function takes (see `pinhole functions`): a number, true, '\"text\"', bytes as a string in "
    "base64. @PATH\n"
    "is the content of a file, for a string or bytes. What the guest itself prints goes to standard error.\n"
    "\n"
    "  --memory SIZE       memory of the guest (64M)\n"
    "  --timeout DURATION  end the start, and each call, after this long\n"
    "  --cpu-time DURATION end them after this much processor time\n"
    "  --max-output SIZE   end them when they print more than this\n"
    "  --max-host-calls N  end them at more host calls than this\n"
    "  --max-message SIZE  the most bytes of arguments, and of results (16M, or what the arguments need)\n"
    "  --host NAME=JSON    answer the import NAME with a constant; may be given again\n" PH__FILES_HELP
    "  --raw               print a string or bytes as they are, and nothing else\n"
    "  --repeat N          call N times and print the last result\n"
    "  --stats             print counts and times of all calls as JSON on standard error\n" PH__TRACING_HELP
    "  --backend NAME      auto or kvm (PINHOLE_BACKEND, or kvm)\n"
    "  --help              print this\n"
    "\n"
    "SIZE is an integer and K, M, G or nothing. DURATION is a number and ns, us, ms, s or m.\n"
    "\n"
    "Exit status: 0; 1 after an error of the guest, a fault, an abort, the time-out or a limit; 2 when used "
    "in another\n"
    "way, or when the file is missing, malformed or refused; 3 without a usable backend; 130 or 143 after "
    "Ctrl-C or\n"
    "SIGTERM.\n";

struct request {
    ph_config config;
    struct ph__words hosts;
    struct ph__tracing trace;
    struct ph__given_files files;
    uint64_t repeat;
    bool raw, stats;

    const char *path, *name;
    ph_image *image;
    const ph_function *function;
    ph_value args[PH_MAX_ARGS];
    uint32_t arg_count;
    struct ph__constants constants;
    struct ph__held output;

    ph_sandbox *sandbox;
    ph_stats before;
    ph_call_stats used; /* the sum of all calls */
    ph_trace_stats trace_before;
};

/* ---- the command line ---------------------------------------------------------------------------------- */

static int find_function(const struct ph__command *command, struct request *request) {
    ph_error error;
    ph_status status = ph_image_open(request->path, 0, &request->image, &error);

    if (status != PH_OK) {
        ph__complain("%s", error.message);
        return ph__status_of_call(status);
    }
    request->function = ph_image_find_export(request->image, request->name);
    if (request->function)
        return PH__COMMAND_OK;
    if (ph_image_export_count(request->image) == 0)
        return ph__usage_error(command, "%s exports no functions; a whole program runs with `pinhole run`",
                               request->path);
    ph__complain("%s has no function '%s'; `pinhole functions` lists those that it has", request->path,
                 request->name);
    return PH__COMMAND_USAGE;
}

static int parse_arguments(const struct ph__command *command, struct request *request, int count,
                           char **words) {
    const ph_signature *signature = &request->function->signature;
    struct ph__refusal why;

    if ((uint32_t)count != signature->count)
        return ph__usage_error(command, "%s takes %u argument%s, %d %s given", request->name,
                               signature->count, signature->count == 1 ? "" : "s", count,
                               count == 1 ? "was" : "were");
    for (uint32_t i = 0; i < signature->count; i++) {
        if (!ph__value_parse(words[i], signature->args[i], &request->args[i], &why))
            return ph__usage_error(command, "argument %u of %s, a value of type %s: %s", i + 1, request->name,
                                   ph__signature_type(signature->args[i]), why.text);
        request->arg_count = i + 1;
    }
    return PH__COMMAND_OK;
}

/* Boxes cost memory where they are touched alone, so the command's default is roomier than the library's. */
#define MESSAGE_DEFAULT (16ull << 20)

/* Without a limit of the user's own, it is large enough for what we send, and for an answer that is a little
 * larger, such as data that cannot be compressed. */
static void grow_message_limit(struct request *request) {
    size_t arguments = 0;
    size_t constant = ph__constants_payload(&request->constants);

    if (request->config.max_message)
        return;
    for (uint32_t i = 0; i < request->arg_count; i++)
        arguments += ph__value_payload(&request->args[i]);
    size_t most = arguments > constant ? arguments : constant;
    most += most / 8;
    if (most > PH__MESSAGE_MAX)
        most = PH__MESSAGE_MAX;
    request->config.max_message = most > MESSAGE_DEFAULT ? most : MESSAGE_DEFAULT;
}

/* ---- the calls ----------------------------------------------------------------------------------------- */

static void advise(const ph_config *config, const ph_error *error) {
    bool too_large =
        error->status == PH_E_TOO_LARGE || (error->status == PH_E_GUEST && error->code == PH__CODE_TOO_LARGE);

    if (too_large && config->max_message < PH__MESSAGE_MAX)
        ph__complain("--max-message raises the limit, up to 256M");
}

/* The exit status of a request that failed with (error), after its line. */
static int fail(const struct request *request, ph_error *error) {
    if (ph__signals_received())
        error->status = PH_E_INTERRUPTED;
    ph__report_failure(request->name, error);
    advise(&request->config, error);
    return ph__status_of_call(error->status);
}

/* Makes the sandbox and has it wait for calls. */
static ph_status start(struct request *request, ph_error *error) {
    ph_status status = ph_sandbox_create(request->image, &request->config, &request->sandbox, error);

    if (status != PH_OK)
        return status;
    ph__signals_target(request->sandbox);
    status = ph__constants_register(&request->constants, request->image, request->sandbox);
    if (status == PH_OK && !ph__signals_received())
        status = ph_sandbox_start(request->sandbox);
    if (status != PH_OK)
        *error = *ph_sandbox_error(request->sandbox);
    ph_sandbox_stats(request->sandbox, &request->before);
    if (request->stats)
        ph__tracing_stats(&request->trace, request->sandbox, &request->trace_before);
    return status;
}

/* Adds what the last call used. */
static void add_used(struct request *request) {
    ph_call_stats last = PH_CALL_STATS_INIT;
    uint64_t *sum = (uint64_t *)&request->used;
    const uint64_t *more = (const uint64_t *)&last;

    /* Without the trace's counts, which would have to be waited for. */
    last.size = offsetof(ph_call_stats, trace_records);
    if (!request->stats || ph_sandbox_call_stats(request->sandbox, &last) != PH_OK)
        return;
    /* Behind the size all of it is counts of 8 bytes. */
    for (size_t i = 1; i < last.size / sizeof *sum; i++)
        sum[i] += more[i];
}

/* Calls as often as asked for, until a signal comes. */
static ph_status call(struct request *request, ph_value *result, ph_error *error) {
    for (uint64_t i = 0; i < request->repeat && !ph__signals_received(); i++) {
        ph_status status =
            ph_call(request->sandbox, request->function, request->args, request->arg_count, result);
        add_used(request);
        if (status != PH_OK) {
            *error = *ph_sandbox_error(request->sandbox);
            return status;
        }
    }
    return PH_OK;
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
    if (!request->stats || !request->sandbox)
        return;
    ph_sandbox_stats(request->sandbox, &now->calls);
    ph_sandbox_pages(request->sandbox, &now->pages);
    ph__tracing_stats(&request->trace, request->sandbox, &now->trace);
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
    ph_value result = {.type = PH_VOID};
    ph_error error = {.status = PH_OK};
    struct counts counts;
    int exit_status = PH__COMMAND_OK;
    bool traced = request->trace.tracer;
    ph_status status = start(request, &error);

    if (status == PH_OK)
        status = call(request, &result, &error);
    if (status != PH_OK || ph__signals_received())
        exit_status = fail(request, &error);
    else
        print_result(request, &result);
    ph__held_flush(&request->output);
    take_stats(request, &counts);
    bool has_stats = request->stats && request->sandbox;
    ph__signals_target(NULL);
    ph_sandbox_destroy(request->sandbox);
    exit_status = ph__tracing_finish(&request->trace, exit_status, PH__COMMAND_FAILED);
    if (has_stats)
        print_stats(request, &counts, traced);
    return exit_status;
}

static int prepare(const struct ph__command *command, struct request *request, int count, char **words) {
    int status = find_function(command, request);

    if (status == PH__COMMAND_OK)
        status = parse_arguments(command, request, count, words);
    if (status == PH__COMMAND_OK)
        status = ph__constants_parse(command, &request->constants, request->image, &request->hosts);
    if (status == PH__COMMAND_OK)
        status = ph__constants_check(&request->constants, request->image, request->name);
    return status;
}

/* The guest, and what its values came from: all has been read, but it is the user's. */
static int spare_files(const struct ph__command *command, const struct request *request, char **words) {
    int status = ph__tracing_spare(command, &request->trace, request->path);

    for (uint32_t i = 0; i < request->arg_count && status == PH__OPTIONS_GO_ON; i++)
        if (words[i][0] == '@')
            status = ph__tracing_spare(command, &request->trace, words[i] + 1);
    for (size_t i = 0; i < request->hosts.count && status == PH__OPTIONS_GO_ON; i++) {
        const char *value = strchr(request->hosts.list[i], '=');
        if (value && value[1] == '@')
            status = ph__tracing_spare(command, &request->trace, value + 2);
    }
    return status;
}

static void clean_up(struct request *request) {
    for (uint32_t i = 0; i < request->arg_count; i++)
        ph__value_free(&request->args[i]);
    ph__constants_free(&request->constants);
    ph_image_close(request->image);
    ph__words_free(&request->hosts);
    ph__given_files_free(&request->files);
    ph__tracing_free(&request->trace);
}

static int run(const struct ph__command *command, struct ph__line *line) {
    struct request request = {.config = PH_CONFIG_INIT, .repeat = 1};
    const struct ph__option options[] = {
        {"--memory", PH__OPTION_SIZE, &request.config.memory},
        {"--timeout", PH__OPTION_DURATION, &request.config.timeout_ns},
        {"--max-message", PH__OPTION_SIZE, &request.config.max_message},
        {"--cpu-time", PH__OPTION_DURATION, &request.config.cpu_time_ns},
        {"--max-output", PH__OPTION_SIZE, &request.config.output_bytes_max},
        {"--max-host-calls", PH__OPTION_COUNT, &request.config.host_calls_max},
        {"--host", PH__OPTION_WORDS, &request.hosts},
        {"--raw", PH__OPTION_FLAG, &request.raw},
        {"--repeat", PH__OPTION_COUNT, &request.repeat},
        {"--stats", PH__OPTION_FLAG, &request.stats},
        {"--file", PH__OPTION_WORDS, &request.files.words},
        PH__TRACING_OPTIONS(request.trace),
        {0},
    };
    int status = ph__options_parse(command, options, line);

    if (status == PH__OPTIONS_GO_ON)
        status = ph__tracing_check(command, &request.trace, &request.config);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__given_files_check(command, &request.files, &request.config);
    if (status != PH__OPTIONS_GO_ON)
        goto clean_up;
    if (line->count < 2) {
        status =
            ph__usage_error(command, line->count ? "which function?" : "which file, and which function?");
        goto clean_up;
    }
    request.path = line->words[0];
    request.name = line->words[1];
    status = prepare(command, &request, line->count - 2, line->words + 2);
    if (status != PH__COMMAND_OK)
        goto clean_up;
    status = spare_files(command, &request, line->words + 2);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__tracing_open(command, &request.trace, &request.config);
    if (status != PH__OPTIONS_GO_ON)
        goto clean_up;
    grow_message_limit(&request);
    request.config.backend = ph__command_backend;
    request.config.output = ph__held_write;
    request.config.output_context = &request.output;
    status = ph__finish_output(execute(&request));

clean_up:
    clean_up(&request);
    return status;
}

const struct ph__command ph__command_call = {
    .name = "call",
    .summary = "call one function of a guest",
    .help = help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run,
};
