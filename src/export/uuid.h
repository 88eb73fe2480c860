/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random identifiers in the form of RFC 9562, section 5.4. They tell things apart and need not be secrets.
 */
#ifndef PH_EXPORT_UUID_H
#define PH_EXPORT_UUID_H

#include <stdbool.h>
#include <string.h>

#include "base/system.h"

/* False without random bytes: these are all 0 then. */
static inline bool ph__uuid_make(uint8_t uuid[16]) {
    const bool is_random = ph__system.getrandom(uuid, 16, 0) == 16;

    if (!is_random)
        memset(uuid, 0, 16);
    uuid[6] = (uint8_t)(0x40 | (uuid[6] & 0x0f));
    uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f));
    return is_random;
}

#endif
