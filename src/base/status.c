/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The words for each status, from the one list in pinhole.h. A number that is not on it, from a newer library
 * or from a mistake, has words too.
 */
#include <pinhole/pinhole.h>

const char *ph_status_message(ph_status status) {
    switch (status) {
#define STATUS_MESSAGE(name, number, kind, message)                                                          \
    case PH_##name:                                                                                          \
        return message;
        PH_STATUS_MAP(STATUS_MESSAGE)
#undef STATUS_MESSAGE
    }
    return "an unknown status";
}

const char *ph_status_kind(ph_status status) {
    switch (status) {
#define STATUS_KIND(name, number, kind, message)                                                             \
    case PH_##name:                                                                                          \
        return kind;
        PH_STATUS_MAP(STATUS_KIND)
#undef STATUS_KIND
    }
    return "unknown";
}
