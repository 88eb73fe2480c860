/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measurements for `pinhole doctor` on a VM of its own, made with KVM directly (vm/kvm_probe.h). Whether ring
 * 0 is native shows in what its instructions cost: an interpreter takes hundreds of nanoseconds for one.
 * Ioctls are described in the kernel's Documentation/virt/kvm/api.rst.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

#include "cli/doctor.h"
#include "vm/kvm_probe.h"

#define LONG_LOOP 200
#define SAMPLES 9
/* A native instruction takes less than this even under an emulator of whole processors; an interpreted one
 * more. */
#define NATIVE_MAX_NS 50.0

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- measuring ----------------------------------------------------------------------------------------- */

/* Runs to the next exit, with (count) rounds of the loop. UINT64_MAX when that went wrong. */
static uint64_t run_ns(struct ph__probe *probe, uint32_t count) {
    uint64_t start = now_ns();
    bool done = ph__probe_run(probe, count);
    uint64_t taken = now_ns() - start;

    return done ? taken : UINT64_MAX;
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* UINT64_MAX when one sample is, since what went wrong once is not worth a number. */
static uint64_t median(uint64_t *samples) {
    qsort(samples, SAMPLES, sizeof samples[0], compare);
    return samples[SAMPLES - 1] == UINT64_MAX ? UINT64_MAX : samples[SAMPLES / 2];
}

static uint64_t median_run(struct ph__probe *probe, uint32_t count) {
    uint64_t samples[SAMPLES];

    run_ns(probe, count); /* the first one touches pages */
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = run_ns(probe, count);
    return median(samples);
}

/* A run on another thread than the last one. */
struct visit {
    struct ph__probe *probe;
    uint64_t ns;
};

static void *visit_main(void *argument) {
    struct visit *visit = argument;

    visit->ns = run_ns(visit->probe, 1);
    return NULL;
}

static uint64_t median_moved_run(struct ph__probe *probe) {
    uint64_t samples[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        struct visit visit = {probe, UINT64_MAX};
        pthread_t thread;
        if (pthread_create(&thread, NULL, visit_main, &visit) == 0)
            pthread_join(thread, NULL);
        samples[i] = visit.ns;
    }
    return median(samples);
}

static void ask_tsc(struct ph__doctor *doctor, const struct ph__probe *probe) {
    const struct kvm_device_attr offset = {.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET};
    int khz = ioctl(probe->vcpu, KVM_GET_TSC_KHZ, 0);

    doctor->tsc_khz = khz > 0 ? (uint64_t)khz : 0;
    doctor->tsc_offset_settable = ioctl(probe->vcpu, KVM_HAS_DEVICE_ATTR, &offset) == 0;
}

static void measure(struct ph__doctor *doctor, struct ph__probe *probe) {
    uint64_t brief = median_run(probe, 1);
    uint64_t full = median_run(probe, 1 + LONG_LOOP);
    uint64_t moved = median_moved_run(probe);

    if (brief == UINT64_MAX || full == UINT64_MAX || moved == UINT64_MAX)
        return;
    double loop = full > brief ? (double)(full - brief) : 0;
    doctor->ring0_instruction_ns = loop / (LONG_LOOP * PH__PROBE_INSTRUCTIONS_PER_ROUND);
    doctor->ring0_native = doctor->ring0_instruction_ns < NATIVE_MAX_NS;
    doctor->run_ns = brief;
    doctor->moved_run_ns = moved;
    doctor->measured = true;
}

void ph__doctor_vcpu(struct ph__doctor *doctor) {
    struct ph__probe probe;

    if (ph__probe_make(&probe, NULL) == PH_OK) {
        ask_tsc(doctor, &probe);
        measure(doctor, &probe);
    }
    ph__probe_free(&probe);
}
