/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The version of the library that is linked, which may be newer than the header a program was compiled with.
 */
#include <pinhole/pinhole.h>

const char *ph_version(void) {
    return PH__PROJECT_VERSION;
}
