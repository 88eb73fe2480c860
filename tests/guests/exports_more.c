/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The second file of the guest exports.c: its exports and imports join those of the first.
 */
#include "imports.h"

static int32_t more(int32_t x) {
    note("more was called");
    host_log("in exports_more.c");
    tick();
    return add_three(x, 1, 1);
}
PH_EXPORT(more, PH_I32, PH_I32);

static ph_bytes mirror(ph_bytes data) {
    ph_bytes mirrored = reverse(data);
    return mirrored;
}
PH_EXPORT(mirror, PH_BYTES, PH_BYTES);

static int32_t apply(int32_t (*function)(int32_t, int32_t), int32_t x) {
    return function(x, x);
}

/* An import is a function like any other: its address can be taken. */
static int32_t doubled(int32_t x) {
    return apply(add, x);
}
PH_EXPORT(doubled, PH_I32, PH_I32);
