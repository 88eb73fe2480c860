/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A restore and the call behind it, and its floor, as bench/restore.c and bench/soft.c compare them.
 */
#ifndef BENCH_RESTORED_H
#define BENCH_RESTORED_H

#include "floor.h"
#include "guest.h"

/* One kind of call, with a sandbox that is put back before it and one that is not. */
struct restored {
    const struct bench_guest *guest;
    ph_value arg;
    ph_sandbox *put_back, *left;
    struct floor_copying copying; /* what a call writes, from a snapshot's place to a guest's */
};

/* A call of (guest)'s function with (arg), which writes (pages) pages. (guest) has its snapshot already. */
void restored_open(struct restored *restored, const struct bench_guest *guest, ph_value arg, size_t pages);
void restored_close(struct restored *restored);

/* Puts the guest back and calls it. For bench_subject, as below; (context) is a struct restored. */
uint64_t restored_once(void *context);

/* The floor: the same call, behind copies that bring back nothing. */
uint64_t restored_floor_once(void *context);

#endif
