/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What levels are called, in filters, options and traces.
 */
#ifndef PH_BASE_LEVEL_H
#define PH_BASE_LEVEL_H

#include <string.h>

#include <pinhole/types.h>

#define PH__LEVELS "off, error, warn, info, debug or trace"

static inline const char *ph__level_name(ph_level level) {
    static const char *const names[] = {"off", "error", "warn", "info", "debug", "trace"};

    return (unsigned)level < sizeof names / sizeof names[0] ? names[level] : "unknown";
}

/* The level that the (length) bytes at (name) are called. False for none. */
static inline bool ph__level_find(const char *name, size_t length, ph_level *level) {
    for (ph_level each = PH_LEVEL_OFF; each <= PH_LEVEL_TRACE; each++) {
        const char *known = ph__level_name(each);
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            *level = each;
            return true;
        }
    }
    return false;
}

#endif
