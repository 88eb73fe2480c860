/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * `pinhole run`: an ordinary static program in a micro-VM, with our standard streams and its own exit status.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/metrics.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/streams.h"
#include "cli/trace.h"

static const char help[] =
    "usage: pinhole run [OPTION]... FILE [ARG...]\n"
    "\n"
    "Runs FILE, an ordinary static Linux program, in a micro-VM. Its output is passed on as it comes.\n"
    "\n"
    "  --memory SIZE       memory of the program (64M)\n"
    "  --timeout DURATION  end it after this long\n"
    "  --cpu-time DURATION end it after this much processor time\n"
    "  --max-output SIZE   end it when it prints more than this\n"
    "  --max-host-calls N  end it at more host calls than this\n"
    "  --env NAME=VALUE    add to its environment, which is empty otherwise; may be given "
    "again\n" PH__FILES_HELP
    "  --stdin             pass standard input on; without it the program reads end of "
    "file\n" PH__TRACING_HELP PH__METERING_HELP
    "  --backend NAME      auto, kvm or soft (PINHOLE_BACKEND, or auto)\n"
    "  --help              print this\n"
    "\n"
    "SIZE is an integer and K, M, G or nothing. DURATION is a number and ns, us, ms, s or m.\n"
    "\n"
    "Exit status: the program's own; 128 + signal after a fault or abort; 124 after the time-out or a limit; "
    "125 when "
    "pinhole\n"
    "failed, or was not used as above; 130 or 143 after Ctrl-C or SIGTERM.\n";

struct request {
    ph_config config;
    struct ph__words environment;
    struct ph__streams streams;
    struct ph__tracing trace;
    struct ph__metering metering;
    struct ph__given_files files;
    const char *snapshot; /* refused */
    bool use_stdin;
};

static bool environment_is_valid(const struct ph__words *environment, const char **wrong) {
    for (size_t i = 0; i < environment->count; i++) {
        *wrong = environment->list[i];
        const char *sign = strchr(*wrong, '=');
        if (!sign || sign == *wrong)
            return false;
    }
    return true;
}

/* A program that waits for calls, run as if it were an ordinary one. */
static void advise(const ph_image *image, const ph_error *error) {
    if ((error->status == PH_E_UNREGISTERED || error->status == PH_E_STATE) &&
        ph_image_export_count(image) > 0)
        ph__complain("it exports functions: try `pinhole call` or `pinhole functions`");
}

static int run_image(ph_image *image, const char *path, struct request *request) {
    ph_sandbox *sandbox = NULL;
    ph_error error = {.status = PH_OK};
    int exit_status = PH__COMMAND_BROKEN;

    if (ph_sandbox_create(image, &request->config, &sandbox, &error) == PH_OK) {
        ph__signals_target(sandbox);
        ph__streams_init(&request->streams, request->config.timeout_ns);
        if (!ph__signals_received() && ph_sandbox_run(sandbox, &exit_status) != PH_OK)
            error = *ph_sandbox_error(sandbox);
        ph__signals_target(NULL);
        ph_sandbox_destroy(sandbox);
    }
    if (ph__signals_received())
        error.status = PH_E_INTERRUPTED;
    if (error.status != PH_OK) {
        exit_status = ph__status_of_run(&error);
        ph__report_failure(path, &error);
        advise(image, &error);
    }
    ph__metering_stop(&request->metering);
    ph__tracing_finish(&request->trace);
    return exit_status;
}

/* The program, and the files that it is given: a trace would empty them. */
static int spare_files(const struct ph__command *command, const char *path, const struct request *request) {
    int status = ph__tracing_spare(command, &request->trace, path);

    for (size_t i = 0; i < request->config.file_count && status == PH__OPTIONS_GO_ON; i++)
        status = ph__tracing_spare(command, &request->trace, request->config.files[i].host_path);
    return status;
}

static int run_file(const struct ph__command *command, const char *path, struct request *request) {
    ph_image *image;
    ph_error error;

    if (ph_image_open(path, 0, &image, &error) != PH_OK) {
        ph__complain("%s", error.message);
        return PH__COMMAND_BROKEN;
    }
    int exit_status = spare_files(command, path, request);
    if (exit_status == PH__OPTIONS_GO_ON)
        exit_status = ph__metering_open(command, &request->metering, &request->config);
    if (exit_status == PH__OPTIONS_GO_ON)
        exit_status = ph__tracing_open(command, &request->trace, &request->config);
    if (exit_status == PH__OPTIONS_GO_ON)
        exit_status = run_image(image, path, request);
    ph_image_close(image);
    return exit_status;
}

static int run(const struct ph__command *command, struct ph__line *line) {
    struct request request = {.config = PH_CONFIG_INIT};
    const struct ph__option options[] = {
        {"--memory", PH__OPTION_SIZE, &request.config.memory},
        {"--timeout", PH__OPTION_DURATION, &request.config.timeout_ns},
        {"--cpu-time", PH__OPTION_DURATION, &request.config.cpu_time_ns},
        {"--max-output", PH__OPTION_SIZE, &request.config.output_bytes_max},
        {"--max-host-calls", PH__OPTION_COUNT, &request.config.host_calls_max},
        {"--env", PH__OPTION_WORDS, &request.environment},
        {"--stdin", PH__OPTION_FLAG, &request.use_stdin},
        {"--file", PH__OPTION_WORDS, &request.files.words},
        {"--snapshot", PH__OPTION_WORD, &request.snapshot},
        PH__TRACING_OPTIONS(request.trace),
        PH__METERING_OPTIONS(request.metering),
        {0},
    };
    const char *wrong = NULL;
    int status = ph__options_parse(command, options, line);

    if (status == PH__OPTIONS_GO_ON)
        status = ph__tracing_check(command, &request.trace, &request.config);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__metering_check(command, &request.metering);
    if (status == PH__OPTIONS_GO_ON)
        status = ph__given_files_check(command, &request.files, &request.config);
    if (status != PH__OPTIONS_GO_ON)
        goto clean_up;
    if (request.snapshot) {
        status = ph__usage_error(command, "--snapshot is for `pinhole call`: a program that runs from its "
                                          "start has no snapshot");
        goto clean_up;
    }
    if (line->count == 0) {
        status = ph__usage_error(command, "which file?");
        goto clean_up;
    }
    if (!environment_is_valid(&request.environment, &wrong)) {
        status = ph__usage_error(command, "--env wants NAME=VALUE, not '%s'", wrong);
        goto clean_up;
    }
    request.config.backend = ph__command_backend();
    request.config.argv = (const char *const *)line->words + 1;
    request.config.envp = request.environment.list;
    request.config.output = ph__streams_write;
    request.config.output_context = &request.streams;
    if (request.use_stdin) {
        request.config.input = ph__streams_read;
        request.config.input_context = &request.streams;
    }
    status = run_file(command, line->words[0], &request);

clean_up:
    ph__words_free(&request.environment);
    ph__given_files_free(&request.files);
    ph__tracing_free(&request.trace);
    ph__metering_free(&request.metering);
    return status;
}

const struct ph__command ph__command_run = {
    .name = "run",
    .summary = "run an ordinary static program",
    .help = help,
    .usage_status = PH__COMMAND_BROKEN,
    .run = run,
};
