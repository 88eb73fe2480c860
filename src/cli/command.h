/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The `pinhole` command: its subcommands, its exit statuses, and what they share that is too small for a
 * header of its own. Only the command includes this; the library never prints and never exits, here both are
 * done.
 */
#ifndef PH_CLI_COMMAND_H
#define PH_CLI_COMMAND_H

#include <pinhole/pinhole.h>

/* Exit statuses. `run` gives its guest's status, so of these it uses the last two alone, as timeout(1) does.
 */
enum ph__command_status {
    PH__COMMAND_OK = 0,
    PH__COMMAND_FAILED = 1,      /* the guest failed, or a limit was met */
    PH__COMMAND_USAGE = 2,       /* the command line, or a file, is not as it has to be */
    PH__COMMAND_NO_BACKEND = 3,  /* nothing here can run a micro-VM */
    PH__COMMAND_TIMED_OUT = 124, /* `run`: also another limit of the command line */
    PH__COMMAND_BROKEN = 125,    /* `run`: pinhole failed, not the guest */
};

/* What is left of the command line: (count) words, and NULL behind them. */
struct ph__line {
    char **words;
    int count;
};

/* A subcommand. (run) gets what follows its name on the command line and returns the exit status. */
struct ph__command {
    const char *name;    /* all that is typed behind "pinhole", such as "snapshot save" */
    const char *summary; /* one line for `pinhole --help` */
    const char *help;
    const struct ph__command *const *parts; /* those that it is made of, and NULL behind them; or NULL */
    enum ph__command_status usage_status;
    int (*run)(const struct ph__command *command, struct ph__line *line);
};

extern const struct ph__command ph__command_run;
extern const struct ph__command ph__command_call;
extern const struct ph__command ph__command_functions;
extern const struct ph__command ph__command_snapshot;
extern const struct ph__command ph__command_snapshot_save;
extern const struct ph__command ph__command_snapshot_info;
extern const struct ph__command ph__command_snapshot_verify;
extern const struct ph__command ph__command_doctor;
extern const struct ph__command ph__command_help;

/* `pinhole` itself: what stands in front of a subcommand. */
extern const struct ph__command ph__command_top;

/* The backend: what PINHOLE_BACKEND says, until an option says otherwise. Where it is left to us, this finds
 * one, and prints a line when that is not KVM. */
ph_backend ph__command_backend(void);

/* ---- group.c: commands that are made of others --------------------------------------------------------- */

/* The part of (group) that the first word of (line) names, which is taken off. NULL after a usage error. */
const struct ph__command *ph__part_take(const struct ph__command *group, struct ph__line *line);

/* Prints a line for each part of (group). */
void ph__parts_print(const struct ph__command *group);

/* ---- report.c: what goes to stderr, and the status that follows from it -------------------------------- */

/* Prints "pinhole: MESSAGE; see 'pinhole NAME --help'" and returns (command)'s status for it. */
int ph__usage_error(const struct ph__command *command, const char *format, ...) PH_PRINTF(2, 3);

/* (command)'s status for what is nobody's fault but ours. */
int ph__status_broken(const struct ph__command *command);

/* Prints "pinhole: MESSAGE". */
void ph__complain(const char *format, ...) PH_PRINTF(1, 2);

/* Prints "pinhole: warning: MESSAGE": the result stands, and so does the exit status. */
void ph__warn(const char *format, ...) PH_PRINTF(1, 2);

/* Prints "pinhole: SUBJECT: KIND: MESSAGE" for (error), the same line on every backend. (subject) is made
 * printable. */
void ph__report_failure(const char *subject, const ph_error *error);

/* The exit status of `call` and `functions` for (status). */
int ph__status_of_call(ph_status status);

/* The exit status of `run` for a run that ended with (error). */
int ph__status_of_run(const ph_error *error);

/* Right after stdout was written to: remembers why that failed, for ph__finish_output. */
void ph__check_output(void);

/* Writes out and closes stdout. Complains and returns PH__COMMAND_FAILED when that fails, or has failed
 * before; otherwise returns (status). */
int ph__finish_output(int status);

/* Prints the signature as people write it: greet(string, i32) -> string. */
void ph__signature_print(const ph_function *function);

/* The name of (type) as it is printed: "i32", "string". */
const char *ph__signature_type(ph_type type);

#endif
