/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Functions that do next to nothing, so that what a call costs is the call (bench/call.c).
 */
#include <pinhole/guest.h>

PH_IMPORT(next, PH_I64, PH_I64);

static int64_t add(int64_t a, int64_t b) {
    return a + b;
}
PH_EXPORT(add, PH_I64, PH_I64, PH_I64);

static const char *echo(const char *text) {
    return text;
}
PH_EXPORT(echo, PH_STR, PH_STR);

static int64_t ask(int64_t number) {
    return next(number);
}
PH_EXPORT(ask, PH_I64, PH_I64);
