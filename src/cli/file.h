/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads a whole file into memory: what @PATH stands for.
 */
#ifndef PH_CLI_FILE_H
#define PH_CLI_FILE_H

#include "cli/value.h"

/* The bytes of the file at (path), which may also be a pipe, with a NUL behind them that (*size) leaves out.
 * From malloc. NULL with the reason in (why). A file larger than any message is cut, but not to a size that
 * fits one. */
char *ph__file_read(const char *path, size_t *size, struct ph__refusal *why);

#endif
