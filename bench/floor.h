/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every floor: the least that the machine lets anybody do, without libpinhole. floor.c lists each step by
 * step.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <sys/types.h>

#include "bench.h"

/* A raw VM that stands ready to leave its guest again and again. */
struct floor_vm;

struct floor_vm *floor_vm_new(void);
void floor_vm_free(struct floor_vm *vm);

/* One round trip: into the guest and out at its next `out`. For bench_subject; (context) is a struct
 * floor_vm. */
uint64_t floor_round_trip(void *context);

/* A raw VM whose guest goes round and round; floor_vm_free gives it up. */
struct floor_vm *floor_spin_new(void);

/* Enters the guest of a VM of floor_spin_new. Returns when a signal has come. */
void floor_spin(struct floor_vm *vm);

/* Has the floor_spin of the thread (thread) return. Nothing remembers it where there is none yet. */
void floor_spin_stop(pid_t thread);

/* What a raw VM takes from creation to the end of its first run, and then to be gone, in the order of time.
 */
enum floor_step {
    FLOOR_VM,     /* KVM_CREATE_VM */
    FLOOR_MEMORY, /* mapping 64 MiB and giving it to the VM */
    FLOOR_VCPU,   /* KVM_CREATE_VCPU and mapping struct kvm_run */
    FLOOR_FIRST,  /* the first KVM_RUN, with the registers */
    FLOOR_CLOSE,  /* unmapping and closing all of it */
    FLOOR_STEPS,
};

/* The floors of creation: keeps a template and the times of each step. */
struct floor_create;

struct floor_create *floor_create_new(size_t turns_max);
void floor_create_free(struct floor_create *create);

/* Makes a VM, runs it until its first `out`, and closes it. For bench_subject; (context) is a struct
 * floor_create. */
uint64_t floor_create_once(void *context);

/* Adds a line for each step to the table (table). */
void floor_create_report(struct floor_create *create, struct bench_report *report, const char *table);

/* The same program that a guest runs, as a native process: it does its work each time that it is asked. */
struct floor_native;

/* Starts the program at (path) with (environment), NULL for an empty one. */
struct floor_native *floor_native_new(const char *path, char **environment);
void floor_native_free(struct floor_native *native);

/* Has it do its work once. For bench_subject; (context) is a struct floor_native. */
uint64_t floor_native_once(void *context);

/* The processor time that it has had. For bench_subject. */
uint64_t floor_native_processor_ns(void *context);

/* What the work came to. */
uint64_t floor_native_result(const struct floor_native *native);

/* Copies of (size) bytes, a divisor of both other sizes, (times) in a row, each behind the last. */
struct floor_copying {
    uint8_t *to;
    const uint8_t *from;
    size_t to_size, from_size;
    size_t size;
    size_t times;
    size_t position;
};

/* Copies. For bench_subject; (context) is a struct floor_copying. */
uint64_t floor_copy(void *context);

#endif
