/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the fuzzer's first records, well-formed ones for it to change: `make_records FILE...` puts the first
 * sample into the first FILE and so on. Each is a format with its NUL, and records (fuzz_record.c).
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "abi/trace.h"

#define HEAD(type, site, words) PH__RECORD_WORD(PH__RECORD_##type, site, words)
#define SIZES(size) ((uint64_t)(size) << 32 | (size))
#define TEXT8(a, b, c, d, e, f, g, h)                                                                        \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 | (uint64_t)(e) << 32 |  \
     (uint64_t)(f) << 40 | (uint64_t)(g) << 48 | (uint64_t)(h) << 56)
#define HELLO TEXT8('h', 'e', 'l', 'l', 'o', 0xc3, 0xa9, 0)

static const struct {
    const char *format;
    uint64_t words[32];
    size_t count;
} samples[] = {
    /* A span with an event in it. */
    {"",
     {HEAD(SPAN_BEGIN, 1, 3) | 0x7fffull << 32, 1, 5, HEAD(EVENT, 2, 6), 2, SIZES(7), HELLO, SIZES(3),
      0xffff00, 2 | PH__RECORD_SPAN_END << 8, 3},
     11},
    /* A log with a value of every type. */
    {"%5d %-8.3s %% %#lx %p %.2f %c %s\n",
     {HEAD(EVENT, 3, 12), 1,
      PH_I64 | PH_STR << 4 | PH_U64 << 8 | PH_POINTER << 12 | PH_F64 << 16 | PH_I64 << 20 | PH_STR << 24, 42,
      SIZES(7), HELLO, 0xbeef, 0x7f0000001000, 0x4004000000000000, 'x', SIZES(8), HELLO, HEAD(GAP, 0, 4)},
     13},
    {"%*.*f %hhd%jx|%5$n%lc",
     {HEAD(EVENT, 3, 9), 1,
      PH_I64 | PH_I64 << 4 | PH_F64 << 8 | PH_I64 << 12 | PH_U64 << 16 | (uint64_t)PH_I64 << 20, 8, 3,
      0x400921fb54442d18, (uint64_t)-1, UINT64_MAX, 0x20ac},
     9},
    /* What is cut off, and records of every other kind. */
    {"%s",
     {HEAD(FIELDS, 4, 4),
      1,
      0,
      1,
      HEAD(COUNTER, 5, 3),
      2,
      7,
      HEAD(ASYNC_BEGIN, 6, 3),
      3,
      9,
      HEAD(ASYNC_END, 6, 3),
      4,
      9,
      HEAD(EXIT, 0, 3),
      5,
      0,
      HEAD(EVENT, 3, 6),
      6,
      PH_STR,
      2000ull << 32 | 16,
      HELLO,
      TEXT8('a', 'b', 'c', 'd', 'e', 'f', 'g', 0xe2)},
     22},
};

static int write_sample(const char *path, size_t index) {
    FILE *file = fopen(path, "wb");
    int result = -1;

    if (!file)
        return -1;
    if (fwrite(samples[index].format, strlen(samples[index].format) + 1, 1, file) == 1 &&
        fwrite(samples[index].words, 8, samples[index].count, file) == samples[index].count)
        result = 0;
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
