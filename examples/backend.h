/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where the examples run their guests: PINHOLE_BACKEND says it, as it does to the command. The library itself
 * never asks the environment, and its default is KVM, also here; the command's is auto.
 */
#ifndef EXAMPLES_BACKEND_H
#define EXAMPLES_BACKEND_H

#include <pinhole/pinhole.h>
#include <stdlib.h>
#include <string.h>

static inline ph_backend example_backend(void) {
    const char *name = getenv("PINHOLE_BACKEND");

    if (name && strcmp(name, "soft") == 0)
        return PH_BACKEND_SOFT; /* needs no KVM, isolates less */
    if (name && strcmp(name, "auto") == 0)
        return PH_BACKEND_AUTO; /* KVM where it works, else that */
    return PH_BACKEND_KVM;
}

#endif
