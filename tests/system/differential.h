/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the differential tests share: the same guest on both backends, a round of which does the same on both
 * from one seed, and the comparison of what came of it. A failure names the seed.
 *
 * PH_TEST_SEED=N begins with seed N, PH_TEST_ROUNDS=N makes so many rounds, PH_TEST_SECONDS=N goes on for so
 * long.
 */
#ifndef PH_TESTS_DIFFERENTIAL_H
#define PH_TESTS_DIFFERENTIAL_H

#include "support/support.h"

#include <pinhole/snapshot.h>

/* Which of a pair. */
enum { ON_KVM, ON_SOFT, BACKENDS };

/* Skips the running test, saying why, where one of the backends is missing. */
void differential_needs_both(void);

/* The rounds of a test. */
struct rounds {
    const char *test;
    uint64_t seed;   /* of the round under way */
    uint64_t random; /* the state of random_next for what both backends have in common */
    uint64_t done, wanted, end_ns;
};

/* (usual) rounds, unless the environment says otherwise; divided by PH_TEST_SCALE. */
struct rounds rounds_begin(const char *test, unsigned usual);

/* Goes to the next round. False, with a line that tells how many there were, when there is none. */
bool rounds_next(struct rounds *rounds);

/* Fails the test with a message that says how to repeat this round. */
void rounds_fail(const struct rounds *rounds, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* xorshift64*. (state) is never 0. */
uint64_t random_next(uint64_t *state);

/* A number below (count). */
uint64_t random_below(uint64_t *state, uint64_t count);

/* True once in (times). */
bool random_once_in(uint64_t *state, uint64_t times);

/* Fails the test unless the statuses, and after a failure the errors of both sandboxes, are the same. */
void differential_compare(const struct rounds *rounds, ph_sandbox *const sandboxes[BACKENDS],
                          const ph_status statuses[BACKENDS]);

/* The bits of both values are the same. Strings and bytes by content. */
bool differential_same_value(const ph_value *one, const ph_value *other);

#endif
