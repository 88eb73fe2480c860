/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads what the control page has of a trace, as no program is to, and refers to ph_traceparent only where it
 * is built with ASKS: so a test sees whether the host has written anything.
 */
#include <pinhole/guest.h>

#include <sys/auxv.h>

#include "abi/control.h"

PH_IMPORT(visit, PH_U64, PH_U64);

static const char *page(void) {
    const struct ph__control *control = (const struct ph__control *)getauxval(PH__AT_PINHOLE);

    visit(1);
    return control->traceparent;
}
PH_EXPORT(page, PH_STR);

#ifdef ASKS
static const char *traceparent(void) {
    return ph_traceparent();
}
PH_EXPORT(traceparent, PH_STR);
#endif
