/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Options of a subcommand: `--name VALUE` or `--name=VALUE`, up to the first word that is none or to `--`.
 * getopt_long would also take abbreviations, which a later option makes ambiguous. One letter is for what
 * hands expect, -h and -o.
 */
#ifndef PH_CLI_OPTIONS_H
#define PH_CLI_OPTIONS_H

#include "cli/command.h"

enum ph__option_kind {
    PH__OPTION_FLAG,     /* bool */
    PH__OPTION_SIZE,     /* uint64_t, bytes */
    PH__OPTION_DURATION, /* uint64_t, nanoseconds */
    PH__OPTION_COUNT,    /* uint64_t, at least 1 */
    PH__OPTION_WORD,     /* const char *: of several, the last counts */
    PH__OPTION_WORDS,    /* struct ph__words: may be given several times */
    PH__OPTION_REST,     /* struct ph__line: all that follows, at least one word, whatever it looks like */
};

struct ph__option {
    const char *name; /* with its dashes; NULL ends a list of options */
    enum ph__option_kind kind;
    void *value;
};

/* Words of the command line, and NULL behind them. (list) is allocated, the words are not. */
struct ph__words {
    const char **list;
    size_t count;
};

void ph__words_free(struct ph__words *words);

/* Returned by ph__options_parse to go on; everything else is the exit status to end with. */
#define PH__OPTIONS_GO_ON (-1)

/* Takes the options off the front of (line). --help, -h and --backend are added to (options). */
int ph__options_parse(const struct ph__command *command, const struct ph__option *options,
                      struct ph__line *line);

/* Whether (word) asks how a command is used. */
bool ph__option_is_help(const char *word);

/* Sets the backend of ph__command_backend by name; false when there is no such backend. */
bool ph__backend_parse(const char *name);

/* SIZE: an integer and K, M, G or nothing. DURATION: a number and ns, us, ms, s or m. Both more than 0. False
 * when (text) is not one, or does not fit. */
bool ph__size_parse(const char *text, uint64_t *bytes);
bool ph__duration_parse(const char *text, uint64_t *ns);
/* A decimal integer of at least 1. */
bool ph__count_parse(const char *text, uint64_t *count);

#endif
