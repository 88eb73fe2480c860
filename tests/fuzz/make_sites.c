/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the fuzzer's first tables of sites, well-formed ones for it to change: `make_sites FILE...` puts the
 * first sample into the first FILE and so on. Their form is that of fuzz_sites.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "abi/trace.h"

/* Positions in the texts below. */
#define QUERY 0
#define QUERY_FIELDS 6
#define FORMAT 19
#define WEIGHT_FIELDS 34
#define FILE_NAME 41
#define FUNCTION 52

static const char texts[] =
    "query\0\3rows\0\10table\0%d rows of %s\n\0\6value\0src/main.c\0main\0na\xc3\xa9\x1b\xff";

#define SITE(site_kind, site_level, text, field_text, fields_count, index)                                   \
    {                                                                                                        \
        .name = (text), .file = FILE_NAME, .function = FUNCTION, .fields = (field_text),                     \
        .word = 2 * (index), .line = 10 + (index), .kind = PH__SITE_##site_kind,                             \
        .level = PH_LEVEL_##site_level, .count = (fields_count)                                              \
    }

static const struct {
    uint8_t count;
    struct ph__site_entry entries[8];
} samples[] = {
    {0, {{0}}},
    {3,
     {SITE(SPAN, INFO, QUERY, QUERY_FIELDS, 2, 1), SITE(LOG, DEBUG, FORMAT, 0, 0, 0),
      SITE(COUNTER, TRACE, QUERY, WEIGHT_FIELDS, 1, 2)}},
    {6,
     {SITE(EVENT, ERROR, QUERY, QUERY_FIELDS, 1, 5), SITE(FIELDS, WARN, QUERY, WEIGHT_FIELDS, 1, 4),
      SITE(ASYNC_BEGIN, INFO, QUERY, QUERY_FIELDS, 2, 3), SITE(ASYNC_END, INFO, QUERY, 0, 0, 2),
      SITE(FUNCTION, DEBUG, FUNCTION, 0, 0, 1), SITE(SPAN, INFO, FUNCTION + 5, 0, 0, 0)}},
};

static int write_sample(const char *path, size_t index) {
    const uint8_t head[] = {0, 0, 0, 0, samples[index].count};
    FILE *file = fopen(path, "wb");
    int result = -1;

    if (!file)
        return -1;
    if (fwrite(head, sizeof head, 1, file) == 1)
        result = 0;
    for (uint8_t i = 0; i < samples[index].count; i++)
        if (fputc(1, file) == EOF ||
            fwrite(&samples[index].entries[i], sizeof samples[index].entries[i], 1, file) != 1)
            result = -1;
    if (fwrite(texts, sizeof texts, 1, file) != 1)
        result = -1;
    if (fclose(file) != 0)
        result = -1;
    return result;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        size_t index = (size_t)i - 1;
        if (index >= sizeof samples / sizeof samples[0] || write_sample(argv[i], index) != 0) {
            fprintf(stderr, "no sample could be written to %s\n", argv[i]);
            return 1;
        }
    }
    return 0;
}
