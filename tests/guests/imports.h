/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Imports and inline functions that call them, in a header that every file of a guest includes, in C and in
 * C++.
 */
#ifndef TESTS_GUESTS_IMPORTS_H
#define TESTS_GUESTS_IMPORTS_H

#include <pinhole/guest.h>

#ifdef __cplusplus
namespace host {
#endif

PH_IMPORT(add, PH_I32, PH_I32, PH_I32);
PH_IMPORT(note, PH_VOID, PH_STR);
PH_IMPORT(join, PH_STR, PH_STR, PH_STR);
PH_IMPORT(reverse, PH_BYTES, PH_BYTES);
PH_IMPORT(tick, PH_VOID);
PH_IMPORT_AS(log, host_log, PH_VOID, PH_STR); /* the C name is that of a function of libm */
PH_IMPORT(never_called, PH_F64, PH_F32, PH_BOOL, PH_U64);

static inline int32_t add_three(int32_t a, int32_t b, int32_t c) {
    return add(add(a, b), c);
}

#ifdef __cplusplus
}
#endif

#endif
