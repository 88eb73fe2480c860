/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Ids. Spans have small numbers, unique in the process, which sinks show. Other systems know a span by 8
 * bytes that look random, one for each number, and a trace by 16 bytes that are.
 */
#ifndef PH_TRACE_IDS_H
#define PH_TRACE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pinhole/pinhole.h>

/* Numbers of spans, taken from the process in runs, so that those who give them do not share a cache line
 * for each span. Empty when zeroed; one thread at a time. */
struct ph__ids {
    uint64_t next, end;
};

/* Never 0, and no other span's. */
uint64_t ph__id_next(struct ph__ids *ids);

#define PH__TRACE_ID_SIZE 16u
#define PH__SPAN_ID_SIZE 8u

/* Whether any of the (size) bytes at (id) is not 0: with none, it is no id. */
static inline bool ph__id_is_set(const uint8_t *id, size_t size) {
    uint8_t all = 0;

    for (size_t i = 0; i < size; i++)
        all |= id[i];
    return all != 0;
}

/* Drawn by one system call of 1 KiB, whose bytes cost more than the call: 3 ns each. */
#define PH__TRACE_IDS_AT_ONCE 127u

/* Trace ids that nobody has yet. Empty when zeroed; one thread at a time. (bytes) is the first half of all
 * that were drawn together, and then the second half of each. So each has 8 random bytes of its own, where
 * W3C Trace Context's random flag and samplers ask for 7. */
struct ph__trace_ids {
    uint32_t left;
    uint8_t bytes[1 + PH__TRACE_IDS_AT_ONCE][PH__TRACE_ID_SIZE / 2];
};

/* Draws the first ones. PH_E_SYSTEM when the kernel has no random bytes. */
ph_status ph__trace_ids_init(struct ph__trace_ids *ids, ph_error *error);

/* Puts a random one into (id), never all 0. Should the kernel have no more random bytes, it is made with the
 * key of this process. */
void ph__trace_id_next(struct ph__trace_ids *ids, uint8_t id[PH__TRACE_ID_SIZE]);

/* Draws the key that this process makes ids of spans with, once; a child of fork() has another one.
 * PH_E_SYSTEM. */
ph_status ph__span_ids_init(ph_error *error);

/* What ph_trace_span_id does. */
void ph__span_id_write(uint64_t id, uint8_t bytes[PH__SPAN_ID_SIZE]);

/* Speck64/128 (https://eprint.iacr.org/2013/404): a block cipher that takes some nanoseconds and no tables.
 */
#define PH__CIPHER_ROUNDS 27u

struct ph__cipher {
    uint32_t round[PH__CIPHER_ROUNDS];
};

/* (key) is four words, the last of them the one that the paper prints first. */
void ph__cipher_init(struct ph__cipher *cipher, const uint32_t key[4]);
uint64_t ph__cipher_apply(const struct ph__cipher *cipher, uint64_t block);

#endif
