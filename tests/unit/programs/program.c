/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * An ordinary program, for the loader's tests to be linked in every way there is. It is never run. It has a
 * bit of everything a linker puts somewhere: constants, data, bss, thread-local variables and functions.
 */
#include <stdio.h>

int program_function(int argument);

static int counter = 1;
static char buffer[65536];
static _Thread_local int own = 2;

__attribute__((noinline)) int program_function(int argument) {
    buffer[argument & 0xffff] = (char)argument;
    own += buffer[(argument + 1) & 0xffff];
    return counter++ + own;
}

int main(int argc, char **argv) {
    printf("%s %d\n", argv[0], program_function(argc));
    return 0;
}
