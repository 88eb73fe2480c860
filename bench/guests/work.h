/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A program that does the same work in a sandbox and as a native process (bench/compute.c): in the one as an
 * export, in the other once for each byte of its input, answered with the eight bytes of what it came to.
 * Each file that includes this defines work().
 */
#ifndef BENCH_GUESTS_WORK_H
#define BENCH_GUESTS_WORK_H

#include <unistd.h>

#include <pinhole/guest.h>

/* Does the work and returns a number that tells wrong work from right. */
static uint64_t work(void);
PH_EXPORT(work, PH_U64);

int main(void) {
    char byte;

    if (ph_running_in_pinhole())
        return ph_serve();
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        uint64_t result = work();
        if (write(STDOUT_FILENO, &result, sizeof result) != sizeof result)
            return 1;
    }
    return 0;
}

#endif
