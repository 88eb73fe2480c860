/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * getrandom: ChaCha20 (RFC 8439) under a key that the host's seed gives. After each request the key is
 * replaced by output that nobody else gets, so what was handed out cannot be computed from a later memory
 * image. A new seed, as after a restored snapshot, starts anew: two copies of a VM must not agree.
 */
#include <linux/random.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define KEY_WORDS 8u
#define BLOCK_WORDS 16u

static uint32_t key[KEY_WORDS];
static uint64_t key_generation;
static bool key_is_set;

static uint32_t rotate(uint32_t value, unsigned count) {
    return value << count | value >> (32 - count);
}

static void quarter_round(uint32_t *s, unsigned a, unsigned b, unsigned c, unsigned d) {
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 7);
}

static void block_make(uint64_t counter, uint32_t out[BLOCK_WORDS]) {
    uint32_t in[BLOCK_WORDS] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (unsigned i = 0; i < KEY_WORDS; i++)
        in[4 + i] = key[i];
    in[12] = (uint32_t)counter;
    in[13] = (uint32_t)(counter >> 32);
    for (unsigned i = 0; i < BLOCK_WORDS; i++)
        out[i] = in[i];
    for (unsigned round = 0; round < 10; round++) {
        quarter_round(out, 0, 4, 8, 12);
        quarter_round(out, 1, 5, 9, 13);
        quarter_round(out, 2, 6, 10, 14);
        quarter_round(out, 3, 7, 11, 15);
        quarter_round(out, 0, 5, 10, 15);
        quarter_round(out, 1, 6, 11, 12);
        quarter_round(out, 2, 7, 8, 13);
        quarter_round(out, 3, 4, 9, 14);
    }
    for (unsigned i = 0; i < BLOCK_WORDS; i++)
        out[i] += in[i];
}

static void key_refresh(void) {
    const volatile struct ph__control *control = ph__control();
    if (key_is_set && key_generation == control->seed_generation)
        return;
    for (unsigned i = 0; i < KEY_WORDS; i++) {
        key[i] = 0;
        for (unsigned byte = 0; byte < 4; byte++)
            key[i] |= (uint32_t)control->seed[4 * i + byte] << (8 * byte);
    }
    key_generation = control->seed_generation;
    key_is_set = true;
}

int64_t ph__sys_getrandom(struct ph__regs *regs) {
    uint64_t size = regs->rsi;
    if (regs->rdx & ~(uint64_t)(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE))
        return -EINVAL;
    if (size > INT32_MAX)
        size = INT32_MAX;
    if (!ph__user_range(regs->rdi, size))
        return -EFAULT;
    key_refresh();
    int64_t answer = 0;
    uint32_t block[BLOCK_WORDS];
    for (uint64_t done = 0; done < size && answer == 0; done += sizeof block) {
        /* Block 0 becomes the next key. */
        block_make(done / sizeof block + 1, block);
        uint64_t rest = size - done;
        answer = ph__copy_to_user(regs->rdi + done, block, rest < sizeof block ? rest : sizeof block);
    }
    block_make(0, block);
    for (unsigned i = 0; i < KEY_WORDS; i++)
        key[i] = block[i];
    return answer == 0 ? (int64_t)size : answer;
}
