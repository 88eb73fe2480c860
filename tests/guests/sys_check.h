/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * For the guests sys_*.c: plain static programs that check what system calls do, and that hold on Linux as
 * well as in pinhole. Run natively they check themselves; run in pinhole they check the monitor. Each prints
 * what failed and exits 1, or exits 0. To be included before any system header.
 */
#ifndef SYS_CHECK_H
#define SYS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static int sys_failures;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            printf("%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                         \
            sys_failures++;                                                                                  \
        }                                                                                                    \
    } while (0)

/* (call) returns -1 and sets errno to (number). */
#define CHECK_ERROR(call, number)                                                                            \
    do {                                                                                                     \
        errno = 0;                                                                                           \
        long long result_ = (long long)(call);                                                               \
        if (result_ != -1 || errno != (number)) {                                                            \
            printf("%s:%d: %s: %lld, errno %d instead of %s\n", __FILE__, __LINE__, #call, result_, errno,   \
                   #number);                                                                                 \
            sys_failures++;                                                                                  \
        }                                                                                                    \
    } while (0)

/* For what pinhole refuses and Linux does not. */
static inline bool in_pinhole(void) {
    struct utsname name;
    return uname(&name) == 0 && strstr(name.release, "pinhole") != NULL;
}

static inline int check_end(void) {
    fflush(stdout);
    return sys_failures != 0;
}

#endif
