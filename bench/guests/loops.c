/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Loops that an emulated processor runs (bench/soft.c). The benchmark runs the very same machine code in
 * Unicorn alone, with no C library set up, so each is one function that calls nobody outside of this file and
 * needs nothing but its own memory.
 */
#include <stdint.h>
#include <string.h>

#include <pinhole/guest.h>

#define SIZE (1u << 16)
#define MATCH_MAX 258u

static uint8_t text[SIZE];
static uint32_t heads[4096];
static uint32_t table[256];

static uint32_t word_at(uint32_t position) {
    uint32_t word;
    memcpy(&word, text + position, sizeof word);
    return word;
}

/* Text of sixteen letters, so that there is something to find. */
static void make_text(void) {
    uint64_t state = 42;

    for (uint32_t i = 0; i < SIZE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text[i] = (uint8_t)('a' + (state >> 60));
    }
}

/* The inner loop of a compressor: looks each four bytes up, remembers where they are, and sees how far what
 * was there before goes on alike. */
uint64_t matches(uint64_t rounds) {
    uint64_t result = 0;

    if (!text[0])
        make_text();
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < SIZE - MATCH_MAX; i++) {
            uint32_t word = word_at(i);
            uint32_t *head = &heads[(word * 2654435761u) >> 20];
            uint32_t before = *head;
            *head = i;
            result = (result << 5 | result >> 59) ^ word;
            if (before >= i || word_at(before) != word)
                continue;
            uint32_t length = sizeof word;
            while (length < MATCH_MAX && text[before + length] == text[i + length])
                length++;
            result += length;
        }
    }
    return result;
}
PH_EXPORT(matches, PH_U64, PH_U64);

static void make_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        table[i] = value;
    }
}

/* A CRC by a table: loads, and no store. */
uint64_t checksum(uint64_t rounds) {
    uint32_t sum = 0;

    if (!text[0])
        make_text();
    if (!table[1])
        make_table();
    for (uint64_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < SIZE; i++)
            sum = sum >> 8 ^ table[(sum ^ text[i]) & 255];
    return sum;
}
PH_EXPORT(checksum, PH_U64, PH_U64);

/* Stores, and little beside. */
uint64_t stores(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds * SIZE; i++)
        *(volatile uint32_t *)&heads[i % 4096] = (uint32_t)i;
    return rounds;
}
PH_EXPORT(stores, PH_U64, PH_U64);

/* The smallest loop that there is. */
uint64_t spin(uint64_t rounds) {
    uint64_t left = rounds * SIZE;

    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
    return left;
}
PH_EXPORT(spin, PH_U64, PH_U64);
