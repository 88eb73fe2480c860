/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * SHA-256 (sha256.h), as FIPS 180-4 has it: the section numbers below are of that document, and so are the
 * names of one letter. Called by what reads and writes snapshots; it allocates nothing and cannot fail.
 */
#include "base/sha256.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned bits) {
    return x >> bits | x << (32 - bits);
}

/* The message schedule (6.2.2, step 1), sixteen words of which are ever needed. */
static uint32_t schedule(uint32_t w[16], unsigned t) {
    uint32_t before2 = w[(t - 2) % 16], before15 = w[(t - 15) % 16];
    uint32_t sigma1 = rotate(before2, 17) ^ rotate(before2, 19) ^ before2 >> 10;
    uint32_t sigma0 = rotate(before15, 7) ^ rotate(before15, 18) ^ before15 >> 3;

    return w[t % 16] += sigma1 + w[(t - 7) % 16] + sigma0;
}

/* One block (6.2.2). */
static void compress_plain(uint32_t state[8], const uint8_t *block) {
    uint32_t w[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

    for (unsigned t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (unsigned t = 0; t < 64; t++) {
        uint32_t word = t < 16 ? w[t] : schedule(w, t);
        uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + k[t] + word;
        uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

/* The same with the processor's instructions for it, several times as fast (Intel SDM, volume 2,
 * SHA256RNDS2): the state is kept as ABEF and CDGH, and four words of the schedule in each vector. */
__attribute__((target("sha,sse4.1"))) static void compress_fast(uint32_t state[8], const uint8_t *block) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i dcba = _mm_loadu_si128((const __m128i *)state);
    const __m128i hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    const __m128i badc = _mm_shuffle_epi32(dcba, 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, badc, 0xf0);
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];

    for (unsigned i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)block + i), big_endian);
    for (unsigned i = 0; i < 16; i++) {
        const __m128i words = w[i % 4];
        const __m128i sum = _mm_add_epi32(words, _mm_loadu_si128((const __m128i *)(k + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        /* The four words that come sixteen behind these. */
        const __m128i before7 = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
        const __m128i half = _mm_add_epi32(_mm_sha256msg1_epu32(words, w[(i + 1) % 4]), before7);
        w[i % 4] = _mm_sha256msg2_epu32(half, w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool ph__sha256_plain;

/* CPUID leaf 7, EBX bit 29, and for the rest of what is used leaf 1, ECX bits 9 and 19. */
static bool is_fast(void) {
    static _Atomic int known; /* 1: it is; 2: it is not */
    int value = atomic_load_explicit(&known, memory_order_relaxed);

    if (value == 0) {
        const unsigned needed = 1u << 9 | 1u << 19;
        unsigned a, b, c, d, features = 0;
        if (__get_cpuid(1, &a, &b, &features, &d) && (features & needed) == needed &&
            __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1))
            value = 1;
        else
            value = 2;
        atomic_store_explicit(&known, value, memory_order_relaxed);
    }
    return value == 1 && !ph__sha256_plain;
}

static void compress(uint32_t state[8], const uint8_t *block) {
    if (is_fast())
        compress_fast(state, block);
    else
        compress_plain(state, block);
}

void ph__sha256_begin(struct ph__sha256 *hash) {
    /* 5.3.3: as k, of the square roots of the first eight. */
    *hash = (struct ph__sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                  0x5be0cd19},
    };
}

void ph__sha256_add(struct ph__sha256 *hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    size_t used = hash->size % PH__SHA256_BLOCK;

    hash->size += size;
    if (used && size) {
        size_t step = PH__SHA256_BLOCK - used < size ? PH__SHA256_BLOCK - used : size;
        memcpy(hash->block + used, bytes, step);
        if (used + step < PH__SHA256_BLOCK)
            return;
        compress(hash->state, hash->block);
        bytes += step;
        size -= step;
    }
    for (; size >= PH__SHA256_BLOCK; bytes += PH__SHA256_BLOCK, size -= PH__SHA256_BLOCK)
        compress(hash->state, bytes);
    if (size)
        memcpy(hash->block, bytes, size);
}

void ph__sha256_end(struct ph__sha256 *hash, uint8_t digest[PH__SHA256_SIZE]) {
    /* A one bit, zeroes, and the length in bits at the end of a block (5.1.1). */
    static const uint8_t padding[PH__SHA256_BLOCK] = {0x80};
    const uint64_t bits = hash->size * 8;
    size_t used = hash->size % PH__SHA256_BLOCK;
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    ph__sha256_add(hash, padding, (used < 56 ? 56 : 56 + PH__SHA256_BLOCK) - used);
    ph__sha256_add(hash, length, sizeof length);
    for (unsigned i = 0; i < PH__SHA256_SIZE; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
