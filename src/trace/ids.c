/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Ids of spans and traces (ids.h). A span's 8 bytes are its number, encrypted with a key of the process: no
 * two are the same, nobody has to keep them, and who knows some, as a guest does, cannot tell others.
 */
#include "trace/ids.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "abi/hot.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system.h"

#define IDS_AT_ONCE 64u

PH__HOT uint64_t ph__id_next(struct ph__ids *ids) {
    static uint64_t next_id = 1;

    if (ids->next == ids->end) {
        ids->next = __atomic_fetch_add(&next_id, IDS_AT_ONCE, __ATOMIC_RELAXED);
        ids->end = ids->next + IDS_AT_ONCE;
    }
    return ids->next++;
}

/* ---- the cipher ---------------------------------------------------------------------------------------- */

static inline uint32_t rotate_right(uint32_t word, unsigned bits) {
    return word >> bits | word << (32 - bits);
}

static inline uint32_t rotate_left(uint32_t word, unsigned bits) {
    return word << bits | word >> (32 - bits);
}

void ph__cipher_init(struct ph__cipher *cipher, const uint32_t key[4]) {
    uint32_t more[3] = {key[1], key[2], key[3]};
    uint32_t word = key[0];

    for (uint32_t i = 0; i < PH__CIPHER_ROUNDS; i++) {
        cipher->round[i] = word;
        uint32_t next = (word + rotate_right(more[i % 3], 8)) ^ i;
        more[i % 3] = next;
        word = rotate_left(word, 3) ^ next;
    }
}

PH__HOT uint64_t ph__cipher_apply(const struct ph__cipher *cipher, uint64_t block) {
    uint32_t x = (uint32_t)(block >> 32);
    uint32_t y = (uint32_t)block;

    for (uint32_t i = 0; i < PH__CIPHER_ROUNDS; i++) {
        x = (rotate_right(x, 8) + y) ^ cipher->round[i];
        y = rotate_left(y, 3) ^ x;
    }
    return (uint64_t)x << 32 | y;
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static struct ph__cipher cipher;
/* ph__process_id of the process that (cipher) is of; stored behind it. */
static _Atomic uint64_t cipher_owner;

static bool is_ready(void) {
    uint64_t owner = atomic_load_explicit(&cipher_owner, memory_order_acquire);

    return owner != 0 && owner == ph__process_id();
}

ph_status ph__span_ids_init(ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint32_t key[4];
    ph_status status = ph__process_init(error);

    if (status != PH_OK || is_ready())
        return status;
    pthread_mutex_lock(&lock);
    if (!is_ready()) {
        if (ph__system.getrandom(key, sizeof key, 0) == (ssize_t)sizeof key) {
            ph__cipher_init(&cipher, key);
            atomic_store_explicit(&cipher_owner, ph__process_id(), memory_order_release);
        } else {
            status = ph__error_set_system(error, PH_E_SYSTEM, errno, "no random bytes from the kernel");
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

PH__HOT void ph__span_id_write(uint64_t id, uint8_t bytes[PH__SPAN_ID_SIZE]) {
    memset(bytes, 0, PH__SPAN_ID_SIZE);
    /* A tracer has seen to the key: only who has none can be left without. */
    if (id == 0 || (!is_ready() && ph__span_ids_init(NULL) != PH_OK))
        return;
    uint64_t block = ph__cipher_apply(&cipher, id);
    if (block == 0) /* what 0 becomes is free, and not 0 then */
        block = ph__cipher_apply(&cipher, 0);
    for (unsigned i = 0; i < PH__SPAN_ID_SIZE; i++)
        bytes[i] = (uint8_t)(block >> (56 - 8 * i));
}

/* ---- traces -------------------------------------------------------------------------------------------- */

static bool trace_ids_draw(struct ph__trace_ids *ids) {
    const ssize_t got = ph__system.getrandom(ids->bytes, sizeof ids->bytes, 0);
    const uint32_t halves = got > 0 ? (uint32_t)got / sizeof ids->bytes[0] : 0;

    /* A signal may have made it fewer than were asked for. */
    ids->left = halves > 0 ? halves - 1 : 0;
    return ids->left > 0;
}

ph_status ph__trace_ids_init(struct ph__trace_ids *ids, ph_error *error) {
    return trace_ids_draw(ids)
               ? PH_OK
               : ph__error_set_system(error, PH_E_SYSTEM, errno, "no random bytes from the kernel");
}

/* Ids of spans that there will never be. */
PH__COLD static void trace_ids_make(struct ph__trace_ids *ids) {
    struct ph__ids numbers = {0, 0};
    uint8_t *bytes = ids->bytes[0];

    for (size_t done = 0; done < sizeof ids->bytes; done += PH__SPAN_ID_SIZE)
        ph__span_id_write(ph__id_next(&numbers), bytes + done);
    ids->left = PH__TRACE_IDS_AT_ONCE;
}

PH__HOT void ph__trace_id_next(struct ph__trace_ids *ids, uint8_t id[PH__TRACE_ID_SIZE]) {
    const size_t half = sizeof ids->bytes[0];

    if (ids->left == 0 && !trace_ids_draw(ids))
        trace_ids_make(ids);
    const uint8_t *own = ids->bytes[ids->left--];
    memcpy(id, ids->bytes[0], half);
    memcpy(id + half, own, half);
    if (!ph__id_is_set(own, half))
        id[PH__TRACE_ID_SIZE - 1] = 1;
}
