/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the fuzzer's first page tables (fuzz_walk.c): `make_walks FILE...` puts the first sample into the
 * first FILE and so on: small pages, a large one, and a table that is its own next level.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX 6

struct entry {
    uint8_t page;
    uint8_t place; /* which level's index; 4 for the one behind it */
    uint64_t value;
};

static const struct {
    uint64_t gva;
    size_t count;
    struct entry entries[ENTRIES_MAX];
} samples[] = {
    {0x7e0000401234, 5, {{0, 3, 0x1007}, {1, 2, 0x2007}, {2, 1, 0x3007}, {3, 0, 0xb007}, {3, 4, 0x5003}}},
    {0x400000, 3, {{0, 3, 0x1007}, {1, 2, 0x2007}, {2, 1, 0x87}}},
    {0, 1, {{0, 3, 0x7}}},
};

static int write_sample(const char *path, size_t index) {
    FILE *file = fopen(path, "wb");
    int result = 0;

    if (!file)
        return -1;
    if (fwrite(&samples[index].gva, 8, 1, file) != 1)
        result = -1;
    for (size_t i = 0; i < samples[index].count; i++) {
        const struct entry *entry = &samples[index].entries[i];
        uint8_t bytes[10] = {entry->page, entry->place};
        memcpy(bytes + 2, &entry->value, 8);
        if (fwrite(bytes, sizeof bytes, 1, file) != 1)
            result = -1;
    }
    return fclose(file) == 0 ? result : -1;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if ((size_t)i > sizeof samples / sizeof samples[0] || write_sample(argv[i], (size_t)i - 1) != 0) {
            fprintf(stderr, "make_walks: %s could not be written\n", argv[i]);
            return 1;
        }
    return 0;
}
