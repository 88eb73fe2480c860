/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Measurements for `pinhole doctor` on a VM of its own, made with KVM directly: ring 0 in flat 32-bit mode,
 * one page of code. Whether ring 0 is native shows in what its instructions cost: an interpreter takes
 * hundreds of nanoseconds for one. Ioctls are described in the kernel's Documentation/virt/kvm/api.rst.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "vm/kvm_system.h"

#define CODE_GPA 0x1000u
#define COUNT_GPA 0x2000u
#define MEMORY_SIZE 0x3000ul

/* Runs an empty loop as often as the word at COUNT_GPA says, exits, and does it again when it is entered
 * again. */
static const uint8_t code[] = {
    0x8b, 0x0d, 0x00, 0x20, 0x00, 0x00, /* 1: mov COUNT_GPA, %ecx */
    0x49,                               /* 2: dec %ecx */
    0x75, 0xfd,                         /* jnz 2b */
    0xe7, 0x10,                         /* out %eax, $0x10 */
    0xeb, 0xf3,                         /* jmp 1b */
};
_Static_assert(COUNT_GPA == 0x2000, "as in the code");

#define INSTRUCTIONS_PER_ROUND 2
#define LONG_LOOP 200
#define SAMPLES 9
/* A native instruction takes less than this even under an emulator of whole processors; an interpreted one
 * more. */
#define NATIVE_MAX_NS 50.0

struct machine {
    int kvm, vm, vcpu;
    uint8_t *memory;
    struct kvm_run *run;
    size_t run_size;
};

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- making the VM ------------------------------------------------------------------------------------- */

static bool add_memory(struct machine *machine) {
    void *memory = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    machine->memory = memory;
    memcpy(machine->memory + CODE_GPA, code, sizeof code);
    struct kvm_userspace_memory_region region = {
        .memory_size = MEMORY_SIZE,
        .userspace_addr = (uint64_t)(uintptr_t)memory,
    };
    return ioctl(machine->vm, KVM_SET_USER_MEMORY_REGION, &region) == 0;
}

static bool add_vcpu(struct machine *machine) {
    int size = ioctl(machine->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

    machine->vcpu = ioctl(machine->vm, KVM_CREATE_VCPU, 0);
    if (machine->vcpu < 0 || size < (int)sizeof(struct kvm_run))
        return false;
    void *run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, machine->vcpu, 0);
    if (run == MAP_FAILED)
        return false;
    machine->run = run;
    machine->run_size = (size_t)size;
    return true;
}

/* Flat segments, protection on, paging off. */
static bool set_state(struct machine *machine) {
    const struct kvm_segment data = {
        .limit = 0xffffffff, .selector = 16, .type = 3, .present = 1, .db = 1, .s = 1, .g = 1};
    const struct kvm_regs regs = {.rip = CODE_GPA, .rflags = 2};
    struct kvm_sregs sregs;

    if (ioctl(machine->vcpu, KVM_GET_SREGS, &sregs) != 0)
        return false;
    sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = data;
    sregs.cs = data;
    sregs.cs.selector = 8;
    sregs.cs.type = 11;
    sregs.cr0 |= 1;
    return ioctl(machine->vcpu, KVM_SET_SREGS, &sregs) == 0 && ioctl(machine->vcpu, KVM_SET_REGS, &regs) == 0;
}

static bool machine_make(struct machine *machine) {
    *machine = (struct machine){.kvm = -1, .vm = -1, .vcpu = -1};
    if (ph__kvm_open(&machine->kvm, NULL) != PH_OK)
        return false;
    machine->vm = ioctl(machine->kvm, KVM_CREATE_VM, 0);
    return machine->vm >= 0 && ioctl(machine->vm, KVM_SET_TSS_ADDR, 0xfffbd000ul) == 0 &&
           add_memory(machine) && add_vcpu(machine) && set_state(machine);
}

static void machine_free(struct machine *machine) {
    if (machine->run)
        munmap(machine->run, machine->run_size);
    if (machine->vcpu >= 0)
        close(machine->vcpu);
    if (machine->vm >= 0)
        close(machine->vm);
    if (machine->kvm >= 0)
        close(machine->kvm);
    if (machine->memory)
        munmap(machine->memory, MEMORY_SIZE);
}

/* ---- measuring ----------------------------------------------------------------------------------------- */

/* Runs to the next exit, with (count) rounds of the loop. UINT64_MAX when that went wrong. */
static uint64_t run_ns(struct machine *machine, uint32_t count) {
    int result;

    memcpy(machine->memory + COUNT_GPA, &count, sizeof count);
    uint64_t start = now_ns();
    do
        result = ioctl(machine->vcpu, KVM_RUN, 0);
    while (result < 0 && errno == EINTR);
    uint64_t taken = now_ns() - start;
    return result == 0 && machine->run->exit_reason == KVM_EXIT_IO ? taken : UINT64_MAX;
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

static uint64_t median_run(struct machine *machine, uint32_t count) {
    uint64_t samples[SAMPLES];

    run_ns(machine, count); /* the first one touches pages */
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = run_ns(machine, count);
    return median(samples);
}

/* A run on another thread than the last one. */
struct visit {
    struct machine *machine;
    uint64_t ns;
};

static void *visit_main(void *argument) {
    struct visit *visit = argument;

    visit->ns = run_ns(visit->machine, 1);
    return NULL;
}

static uint64_t median_moved_run(struct machine *machine) {
    uint64_t samples[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++) {
        struct visit visit = {machine, UINT64_MAX};
        pthread_t thread;
        if (pthread_create(&thread, NULL, visit_main, &visit) == 0)
            pthread_join(thread, NULL);
        samples[i] = visit.ns;
    }
    return median(samples);
}

static void ask_tsc(struct ph__doctor *doctor, const struct machine *machine) {
    const struct kvm_device_attr offset = {.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET};
    int khz = ioctl(machine->vcpu, KVM_GET_TSC_KHZ, 0);

    doctor->tsc_khz = khz > 0 ? (uint64_t)khz : 0;
    doctor->tsc_offset_settable = ioctl(machine->vcpu, KVM_HAS_DEVICE_ATTR, &offset) == 0;
}

static void measure(struct ph__doctor *doctor, struct machine *machine) {
    uint64_t brief = median_run(machine, 1);
    uint64_t full = median_run(machine, 1 + LONG_LOOP);
    uint64_t moved = median_moved_run(machine);

    if (brief == UINT64_MAX || full == UINT64_MAX || moved == UINT64_MAX)
        return;
    double loop = full > brief ? (double)(full - brief) : 0;
    doctor->ring0_instruction_ns = loop / (LONG_LOOP * INSTRUCTIONS_PER_ROUND);
    doctor->ring0_native = doctor->ring0_instruction_ns < NATIVE_MAX_NS;
    doctor->run_ns = brief;
    doctor->moved_run_ns = moved;
    doctor->measured = true;
}

void ph__doctor_vcpu(struct ph__doctor *doctor) {
    struct machine machine;

    if (machine_make(&machine)) {
        ask_tsc(doctor, &machine);
        measure(doctor, &machine);
    }
    machine_free(&machine);
}
