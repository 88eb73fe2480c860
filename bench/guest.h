/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest as several benchmarks want it: one function of it that they call, a snapshot of it right after its
 * start, and sandboxes that begin there. What fails ends the program (bench.h).
 */
#ifndef BENCH_GUEST_H
#define BENCH_GUEST_H

#include <pinhole/snapshot.h>

#include "bench.h"

struct bench_guest {
    ph_image *image;
    const ph_function *function;
    ph_snapshot *snapshot;
    ph_backend backend; /* of its sandboxes; KVM unless it is changed */
    /* Registers the host functions that it imports; NULL when it imports none. */
    void (*prepare)(ph_sandbox *sandbox);
};

/* The host function of the example guest hello; a `prepare`. */
void bench_register_weekday(ph_sandbox *sandbox);

/* The host function of guests/calls.c; a `prepare`. */
void bench_register_next(ph_sandbox *sandbox);

/* Opens (folder)/(name), of which (function) is called. (prepare) may be NULL. No snapshot yet. */
struct bench_guest bench_guest_open(const char *folder, const char *name, const char *function,
                                    void (*prepare)(ph_sandbox *sandbox));

/* Starts it once, takes (guest)'s snapshot, and destroys the sandbox. */
void bench_guest_warm(struct bench_guest *guest);

/* Gives up image and snapshot. */
void bench_guest_close(struct bench_guest *guest);

/* A sandbox made of (guest)'s snapshot, ready to be called. */
ph_sandbox *bench_guest_sandbox(const struct bench_guest *guest);

/* Calls (guest)'s function with (arg), which is its only one, or NULL where it has none. */
void bench_guest_call(const struct bench_guest *guest, ph_sandbox *sandbox, const ph_value *arg);

/* Puts (sandbox) back to (guest)'s snapshot. */
void bench_guest_restore(const struct bench_guest *guest, ph_sandbox *sandbox);

#endif
