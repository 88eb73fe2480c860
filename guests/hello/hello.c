/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The smallest guest that is called and calls back: one function of the host, one function for it. Built with
 * glibc (hello) and with musl (hello-musl).
 */
#include <pinhole/guest.h>

PH_IMPORT(weekday, PH_STR, PH_I32); /* a host function: the name of today plus (days) */

static const char *greet(const char *name) {
    PH_SPAN("compose", ph_str("name", name)); /* what --trace shows */
    const char *day = weekday(0);

    PH_EVENT("day.known", ph_str("day", day));
    return ph_strf("Hello, %s! Today is %s.", name, day);
}
PH_EXPORT(greet, PH_STR, PH_STR);
