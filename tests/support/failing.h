/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Calls into the C library that fail when a test wants them to. A test program that is linked with failing.c
 * and failing_link_args (tests/meson.build) fails the 1st call of a function, then the 2nd, and so on until
 * none fails, and looks for what was left behind each time.
 */
#ifndef PH_TESTS_FAILING_H
#define PH_TESTS_FAILING_H

#include <stdbool.h>
#include <stddef.h>

struct failing {
    /* Calls that may fail are counted from 1; the one with this number does, with (error). 0: none. */
    unsigned at;
    int error; /* 0: what is usual for the function */
    /* Calls so far. */
    unsigned count;
    /* The function that failed, NULL while none has. */
    const char *failed;

    bool short_transfers;       /* read and pwrite do a part of what they are asked for */
    bool interrupted_transfers; /* every second read and pwrite fails with EINTR */
    bool no_exec_seal;          /* memfd_create does not know MFD_NOEXEC_SEAL, as before Linux 6.3 */
    size_t file_grows_by;       /* fstat says that files are longer by so much */
};

/* All zero: every call goes through. */
extern struct failing failing;

/* The number of open descriptors. */
unsigned failing_descriptors(void);

#endif
