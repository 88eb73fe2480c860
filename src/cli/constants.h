/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Imports that are answered with a constant: --host NAME=JSON.
 */
#ifndef PH_CLI_CONSTANTS_H
#define PH_CLI_CONSTANTS_H

#include "cli/options.h"
#include "cli/value.h"

/* The answers, one for each import of the image in the image's order. Zeroed to begin with. */
struct ph__constants {
    ph_value *values;
    bool *given;
    size_t count;
};

/* Reads the (words) NAME=JSON by the imports of (image). Returns an exit status. The last word for a name
 * counts. */
int ph__constants_parse(const struct ph__command *command, struct ph__constants *constants,
                        const ph_image *image, const struct ph__words *words);

/* Whether every import has its answer: PH__COMMAND_OK, or PH__COMMAND_USAGE after the line of the failed call
 * of (function) that names the first without. */
int ph__constants_check(const struct ph__constants *constants, const ph_image *image, const char *function);

/* Registers them; they must outlive the sandbox. */
ph_status ph__constants_register(const struct ph__constants *constants, const ph_image *image,
                                 ph_sandbox *sandbox);

/* The payload of the largest. */
size_t ph__constants_payload(const struct ph__constants *constants);

void ph__constants_free(struct ph__constants *constants);

#endif
