/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A guest whose start-up never ends. */
#include <pinhole/guest.h>

static void wait_for_nothing(void) {
    for (;;)
        __asm__ volatile("");
}
PH_INIT(wait_for_nothing);
