/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The option --file of `run` and `call`: files of the host that the guest can read.
 */
#ifndef PH_CLI_FILES_H
#define PH_CLI_FILES_H

#include "cli/options.h"

#define PH__FILES_HELP                                                                                       \
    "  --file HOST[:GUEST] let the guest read the file HOST as GUEST, or as /NAME, its last part; may be "   \
    "given again\n"

/* Zeroed to begin with. (words) is filled in by the option. */
struct ph__given_files {
    struct ph__words words;
    ph_file *list;
    char *text; /* what (list) points into */
};

/* Puts the files of the command line into (config), which is valid until ph__given_files_free. Returns
 * PH__OPTIONS_GO_ON or an exit status. The files are not opened. */
int ph__given_files_check(const struct ph__command *command, struct ph__given_files *files,
                          ph_config *config);

void ph__given_files_free(struct ph__given_files *files);

#endif
