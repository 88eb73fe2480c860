/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Runs a fuzz target over the files named on the command line, each once: what libFuzzer's own main does when
 * it is given files, for compilers that have no libFuzzer, and for debuggers and valgrind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        uint8_t *bytes = NULL;
        long size = -1;

        if (file && fseek(file, 0, SEEK_END) == 0)
            size = ftell(file);
        /* Of just this size, so that a sanitizer sees any step outside. */
        if (size >= 0)
            bytes = malloc(size > 0 ? (size_t)size : 1);
        if (!bytes) {
            fprintf(stderr, "%s cannot be read\n", argv[i]);
            return 1;
        }
        rewind(file);
        size_t got = fread(bytes, 1, (size_t)size, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, got);
        free(bytes);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
