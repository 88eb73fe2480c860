/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Whether two paths lead to one file, which the command must not write over while it reads it.
 */
#ifndef PH_CLI_PATHS_H
#define PH_CLI_PATHS_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether what is written to (one) goes over what is in (other). Devices keep nothing. */
bool ph__file_is_same(const struct stat *one, const struct stat *other);

/* As above, of two paths. There need not be a file yet: then they are compared as they are written. */
bool ph__path_is_same(const char *one, const char *other);

#endif
