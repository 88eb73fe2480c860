/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Compares files by device and number (paths.h). Nothing is opened.
 */
#include "cli/paths.h"

#include <string.h>

bool ph__file_is_same(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino && !S_ISCHR(one->st_mode);
}

bool ph__path_is_same(const char *one, const char *other) {
    struct stat information, other_information;

    if (stat(one, &information) != 0)
        return strcmp(one, other) == 0;
    return stat(other, &other_information) == 0 && ph__file_is_same(&information, &other_information);
}
