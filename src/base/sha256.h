/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * SHA-256 (FIPS 180-4), for what is in a snapshot's file and for images that have no build-id. Our own, since
 * libpinhole needs libc alone. It finds damage and tells files apart; it keeps no secret, so nothing here
 * takes care of timing.
 */
#ifndef PH_BASE_SHA256_H
#define PH_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PH__SHA256_SIZE 32u
#define PH__SHA256_BLOCK 64u

/* Without the processor's instructions for it; for tests. */
extern bool ph__sha256_plain;

/* A digest under way. */
struct ph__sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    uint8_t block[PH__SHA256_BLOCK];
};

void ph__sha256_begin(struct ph__sha256 *hash);

/* Goes on with the (size) bytes at (data), which may be NULL when there are none. */
void ph__sha256_add(struct ph__sha256 *hash, const void *data, size_t size);

/* Writes the digest; (hash) is used up. */
void ph__sha256_end(struct ph__sha256 *hash, uint8_t digest[PH__SHA256_SIZE]);

#endif
