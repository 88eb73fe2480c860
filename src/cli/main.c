/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The `pinhole` command: picks the subcommand and hands it the rest of the command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/signals.h"

static const struct ph__command *const commands[] = {
    &ph__command_run,
    &ph__command_call,
    &ph__command_functions,
    &ph__command_snapshot,
    &ph__command_doctor,
    &ph__command_help,
    NULL,
};

static int print_help(void) {
    puts("usage: pinhole COMMAND [OPTION]... [ARG...]\n"
         "\n"
         "Runs untrusted native code in a micro-VM.\n");
    ph__parts_print(&ph__command_top);
    puts("\n"
         "  --backend NAME  auto, kvm or soft (PINHOLE_BACKEND, or auto)\n"
         "  --help, -h      print this; after COMMAND, its own options\n"
         "  --version       print the version");
    return ph__finish_output(PH__COMMAND_OK);
}

static int print_version(void) {
    printf("pinhole %s\n", ph_version());
    return ph__finish_output(PH__COMMAND_OK);
}

static bool take_environment(void) {
    const char *name = getenv("PINHOLE_BACKEND");

    if (!name || !*name || ph__backend_parse(name))
        return true;
    ph__complain("PINHOLE_BACKEND is '%s'; it may be auto, kvm or soft", name);
    return false;
}

/* Has something at each of 0, 1 and 2, or a file that we open would take the place and be written to. What
 * was closed fails as before: it is open for the other direction only. */
static bool fill_standard_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return false;
    return true;
}

/* Runs (command). A signal that came, whatever it ended, is in the status. */
static int run(const struct ph__command *command, struct ph__line *line) {
    if (!ph__signals_init()) {
        ph__complain("signal handlers could not be set up");
        return PH__COMMAND_BROKEN;
    }
    int status = command->run(command, line);
    return ph__signals_received() ? 128 + ph__signals_received() : status;
}

/* All of the command line. */
static int run_top(const struct ph__command *top, struct ph__line *line) {
    bool version = false;
    const struct ph__option options[] = {{"--version", PH__OPTION_FLAG, &version}, {0}};

    if (line->count > 0 && ph__option_is_help(line->words[0]))
        return print_help();
    if (!take_environment())
        return PH__COMMAND_USAGE;
    int status = ph__options_parse(top, options, line);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (version)
        return print_version();
    const struct ph__command *command = ph__part_take(top, line);
    return command ? run(command, line) : PH__COMMAND_USAGE;
}

const struct ph__command ph__command_top = {
    .name = "",
    .parts = commands,
    .usage_status = PH__COMMAND_USAGE,
    .run = run_top,
};

int main(int count, char **words) {
    struct ph__line line = {words + 1, count - 1};

    if (!fill_standard_streams())
        return PH__COMMAND_BROKEN;
    if (count < 1)
        line = (struct ph__line){words, 0};
    return run_top(&ph__command_top, &line);
}
