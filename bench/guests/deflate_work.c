/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A second's work for zlib: 32 MiB of made-up text at level 6. The text is made once, from a few hundred
 * words of which some are common, and shrinks about as much as real text does.
 */
#include "work.h"

#include <stdlib.h>
#include <zlib.h>

#define SIZE (32u << 20)
#define WORDS 512u
#define WORD_MAX 11u

static char text[SIZE];
static char words[WORDS][WORD_MAX + 1];

static uint32_t random_next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void make_words(uint64_t *state) {
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t length = 2 + random_next(state) % (WORD_MAX - 2);
        for (uint32_t j = 0; j < length; j++)
            words[i][j] = (char)('a' + random_next(state) % 26);
    }
}

static void make_text(void) {
    uint64_t state = 42;

    make_words(&state);
    for (uint32_t position = 0; position < SIZE;) {
        /* The smaller of two: low numbers come more often. */
        uint32_t first = random_next(&state) % WORDS;
        uint32_t second = random_next(&state) % WORDS;
        for (const char *from = words[first < second ? first : second]; *from && position < SIZE; from++)
            text[position++] = *from;
        if (position < SIZE)
            text[position++] = random_next(&state) % 16 ? ' ' : '\n';
    }
}

static uint64_t work(void) {
    static Bytef *output;
    uLongf size = compressBound(SIZE);

    if (!output) {
        make_text();
        output = malloc(size);
        if (!output)
            abort();
    }
    if (compress2(output, &size, (const Bytef *)text, SIZE, 6) != Z_OK)
        abort();
    return (uint64_t)size << 32 | crc32(0, output, (uInt)size);
}
