/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A whole program that prints to which trace it belongs. */
#include <stdio.h>

#include <pinhole/guest.h>

int main(void) {
    puts(ph_traceparent());
    return 0;
}
