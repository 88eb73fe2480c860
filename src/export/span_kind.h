/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What kinds of spans are called in traces, and whose they are.
 */
#ifndef PH_EXPORT_SPAN_KIND_H
#define PH_EXPORT_SPAN_KIND_H

#include <pinhole/trace.h>

static inline const char *ph__span_kind_name(ph_span_kind kind) {
    static const char *const names[] = {"host", "call",     "host-function", "guest",
                                        "user", "function", "system-call",   "async"};

    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

/* Whether the host has made such a span, of what it does itself. */
static inline bool ph__span_is_of_host(ph_span_kind kind) {
    return kind == PH_SPAN_HOST || kind == PH_SPAN_CALL || kind == PH_SPAN_HOST_FUNCTION;
}

#endif
