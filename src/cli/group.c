/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Commands that are made of others, `pinhole` and `pinhole snapshot`, and `pinhole help`, which looks into
 * them. None of them does anything itself.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"

/* The name of (part) within (group): what its own name has more. */
static const char *short_name(const struct ph__command *group, const struct ph__command *part) {
    size_t length = strlen(group->name);

    return length ? part->name + length + 1 : part->name;
}

const struct ph__command *ph__part_take(const struct ph__command *group, struct ph__line *line) {
    const char *space = group->name[0] ? " " : "";

    if (line->count == 0) {
        ph__usage_error(group, "which command%s%s?", group->name[0] ? " of " : "", group->name);
        return NULL;
    }
    const char *name = line->words[0];
    for (const struct ph__command *const *part = group->parts; *part; part++) {
        if (strcmp(short_name(group, *part), name) != 0)
            continue;
        *line = (struct ph__line){line->words + 1, line->count - 1};
        return *part;
    }
    ph__usage_error(group, "there is no command '%s%s%s'", group->name, space, name);
    return NULL;
}

void ph__parts_print(const struct ph__command *group) {
    for (const struct ph__command *const *part = group->parts; *part; part++)
        printf("  %-11s%s\n", short_name(group, *part), (*part)->summary);
}

/* ---- help ---------------------------------------------------------------------------------------------- */

static const char help[] = "usage: pinhole help [COMMAND]...\n"
                           "\n"
                           "Prints how COMMAND is used, as `pinhole COMMAND --help` does.\n"
                           "\n"
                           "  --help  print this\n";

static int run_help(const struct ph__command *command, struct ph__line *line) {
    static char option[] = "--help";
    static char *words[] = {option, NULL};
    struct ph__line asked = {words, 1};
    const struct ph__option options[] = {{0}};
    const struct ph__command *about = &ph__command_top;
    int status = ph__options_parse(command, options, line);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    while (line->count > 0 && about->parts) {
        about = ph__part_take(about, line);
        if (!about)
            return PH__COMMAND_USAGE;
    }
    if (line->count > 0)
        return ph__usage_error(command, "%s has no commands of its own", about->name);
    return about->run(about, &asked);
}

const struct ph__command ph__command_help = {
    .name = "help",
    .summary = "print how a command is used",
    .help = help,
    .usage_status = PH__COMMAND_USAGE,
    .run = run_help,
};
