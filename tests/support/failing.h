/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * System calls and allocations of the library that fail when a test wants them to. A test program that is
 * linked with failing.c and failing_link_args (tests/meson.build) fails the 1st call, then the 2nd, and so on
 * until none fails, and looks for what was left behind each time.
 */
#ifndef PH_TESTS_FAILING_H
#define PH_TESTS_FAILING_H

#include <stdbool.h>
#include <stddef.h>

struct failing {
    /* Calls that may fail are counted from 1; the one with this number does, with (error). 0: none. */
    unsigned at;
    int error; /* 0: what is usual for the call */
    /* Calls so far. */
    unsigned count;
    /* The call that failed: its name in struct ph__system, that of the allocator's function, or "KVM_RUN",
     * which stands out among ioctls. NULL while none has. */
    const char *failed;

    bool short_transfers;       /* read, pread and pwrite do a part of what they are asked for */
    bool interrupted_transfers; /* every second one of them fails with EINTR */
    bool closes_fail;           /* every close closes and reports an error, as the kernel's may */
    bool no_exec_seal;          /* memfd_create does not know MFD_NOEXEC_SEAL, as before Linux 6.3 */
    bool no_page_scan;          /* the ioctl PAGEMAP_SCAN is unknown, as before Linux 6.7 */
    size_t file_grows_by;       /* fstat says that files are longer by so much */
};

/* All zero: every call goes through. Only calls of the thread that runs main are counted and fail: what
 * others do when would make the numbers depend on time. */
extern struct failing failing;

/* Whether a call of this name has ever failed in this process. */
bool failing_has_failed(const char *name);

/* The numbers of open descriptors and of mappings. */
unsigned failing_descriptors(void);
unsigned failing_mappings(void);

#endif
