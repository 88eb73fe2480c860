/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A program that spins, or writes as many bytes as its argument says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2)
        return 2;
    if (strcmp(words[1], "spin") == 0)
        for (;;)
            __asm__ volatile("");
    for (long left = strtol(words[1], NULL, 10); left > 0; left--)
        if (write(1, "x", 1) != 1)
            return 1;
    return 7;
}
