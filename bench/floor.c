/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every floor. No libpinhole here: raw ioctls, and the least of them.
 *
 * Round trip, the floor of call.*: a vCPU in 64-bit mode at CPL 3, which a 32-bit `out` leaves through the
 * I/O bitmap of its TSS. Page tables have four levels of 4 KiB pages, as libpinhole's have for an image.
 *   1. KVM_RUN, with the general registers handed over through struct kvm_run (KVM_CAP_SYNC_REGS)
 *   2. the guest goes on behind its last `out`: `jmp` back to it, `out`
 *   3. KVM_RUN returns with KVM_EXIT_IO
 * The floor of call.host_call_ratio is two of these: a call that calls the host once cannot do with fewer.
 *
 * Interruption, the floor of interrupt.ratio: the same VM, whose guest is a `jmp` to itself at CPL 3.
 *   1. tgkill of a signal whose handler does nothing, to the thread that is in KVM_RUN
 *   2. KVM_RUN returns with EINTR
 *
 * Creation, the floor of create.*, with /dev/kvm open and its questions asked before:
 *   1. KVM_CREATE_VM
 *   2. mmap of 64 MiB, private, of a file that holds tables and code already; KVM_SET_USER_MEMORY_REGION
 *   3. KVM_CREATE_VCPU, mmap of struct kvm_run
 *   4. KVM_RUN with general and special registers handed over through struct kvm_run, so that no further
 * ioctl is needed, until the `out` of a single instruction. No CPUID, no MSRs, no XCR0, no TSC: this guest
 * has no use for them, though no real program could do without
 *   5. munmap of struct kvm_run, close of vCPU and VM, munmap of the memory
 *
 * Native, the floor of compute.*: the very file that is the guest's image, started as a process of Linux
 * before the measurement begins. It is a static program without needs of its own, and so it runs in both
 * places: same code, same libraries, same flags, same addresses.
 *   1. a byte into its standard input
 *   2. its work
 *   3. eight bytes out of its standard output: what the work came to
 *
 * A record, the floor of trace.*: it has to be in the guest, so guests/trace.c has it (floor_records).
 *   1. a check that 16 more bytes fit below a limit in memory
 *   2. `rdtsc`
 *   3. a store of a number and the time
 *
 * Copying, the floor of trace.drain_ratio: `memcpy` of as many bytes, from the same addresses, to memory as
 * large as where the library puts them.
 */
#include "floor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define MEMORY_SIZE (64u << 20)

/* Guest-physical addresses, which are the virtual ones too. */
#define GDT 0x1000u
#define TSS 0x2000u
#define TSS_SIZE (104u + 16u) /* with a bitmap for ports below 120, and the byte of ones behind it */
#define PML4 0x3000u
#define PDPT 0x4000u
#define DIRECTORY 0x5000u
#define TABLE 0x6000u
#define CODE 0x7000u
#define SPIN (CODE + 4)

#define PORT 0x50u

#define SELECTOR_USER_DATA 0x1b
#define SELECTOR_USER_CODE 0x23
#define SELECTOR_TSS 0x28

/* Bits of page-table entries (Intel SDM, volume 3, chapter 4.5); accessed and dirty are preset, as libpinhole
 * does. */
#define PRESENT 0x1u
#define WRITABLE 0x2u
#define USER 0x4u
#define ACCESSED 0x20u
#define DIRTY 0x40u

static int check(int result, const char *what) {
    if (result < 0)
        bench_fail("%s: %s", what, strerror(errno));
    return result;
}

static void *check_map(void *mapping, const char *what) {
    if (mapping == MAP_FAILED)
        bench_fail("%s: %s", what, strerror(errno));
    return mapping;
}

/* ---- a guest of three instructions --------------------------------------------------------------------- */

static void fill_memory(uint8_t *memory) {
    static const uint8_t code[] = {
        0xe7, PORT, 0xeb, 0xfc, /* out %eax, $PORT; jmp back to it */
        0xeb, 0xfe,             /* jmp to itself */
    };
    const uint64_t table = PRESENT | WRITABLE | USER | ACCESSED;
    const uint64_t page = PRESENT | ACCESSED | DIRTY;
    const uint64_t gdt[] = {
        0,
        0x00af9b000000ffff, /* kernel code, kernel data, user data, user code: flat, accessed */
        0x00cf93000000ffff,
        0x00cff3000000ffff,
        0x00affb000000ffff,
        (TSS_SIZE - 1) | (uint64_t)TSS << 16 | 0x8bull << 40, /* the TSS, busy */
        0,
    };
    const uint16_t bitmap = 104;

    memcpy(memory + GDT, gdt, sizeof gdt);
    memcpy(memory + TSS + 102, &bitmap, sizeof bitmap);
    memset(memory + TSS + bitmap, 0xff, TSS_SIZE - bitmap);
    memory[TSS + bitmap + PORT / 8] &= (uint8_t) ~(0xfu << PORT % 8);
    *(uint64_t *)(memory + PML4) = PDPT | table;
    *(uint64_t *)(memory + PDPT) = DIRECTORY | table;
    *(uint64_t *)(memory + DIRECTORY) = TABLE | table;
    uint64_t *entries = (uint64_t *)(memory + TABLE);
    entries[GDT / PAGE] = GDT | page;
    entries[TSS / PAGE] = TSS | page;
    entries[CODE / PAGE] = CODE | page | USER;
    memcpy(memory + CODE, code, sizeof code);
}

static struct kvm_segment segment(uint16_t selector, uint8_t type, bool code) {
    return (struct kvm_segment){
        .limit = 0xffffffff,
        .selector = selector,
        .type = type,
        .present = 1,
        .dpl = 3,
        .db = !code,
        .s = 1,
        .l = code,
        .g = 1,
    };
}

static void fill_registers(struct kvm_run *run) {
    struct kvm_sregs *sregs = &run->s.regs.sregs;

    *sregs = (struct kvm_sregs){
        .cs = segment(SELECTOR_USER_CODE, 11, true),
        .ss = segment(SELECTOR_USER_DATA, 3, false),
        .tr = {.base = TSS, .limit = TSS_SIZE - 1, .selector = SELECTOR_TSS, .type = 11, .present = 1},
        .ldt = {.limit = 0xffff, .type = 2, .present = 1},
        .gdt = {.base = GDT, .limit = 7 * 8 - 1},
        .cr0 = 0x80050033, /* PG AM WP NE ET MP PE */
        .cr3 = PML4,
        .cr4 = 0x620,            /* OSXMMEXCPT OSFXSR PAE */
        .efer = 0xd01,           /* NXE LMA LME SCE */
        .apic_base = 0xfee00900, /* as after a reset */
    };
    sregs->ds = sregs->es = sregs->fs = sregs->gs = sregs->ss;
    run->s.regs.regs = (struct kvm_regs){.rip = CODE, .rflags = 2};
    run->kvm_valid_regs = KVM_SYNC_X86_REGS;
    run->kvm_dirty_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
}

/* ---- a raw VM ------------------------------------------------------------------------------------------ */

struct floor_vm {
    int kvm;
    int content;     /* a file with what fill_memory writes */
    size_t run_size; /* bytes of struct kvm_run's mapping */
    int vm;
    int vcpu;
    struct kvm_run *run;
    uint8_t *memory;
};

static void open_kvm(struct floor_vm *vm) {
    vm->kvm = check(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
    vm->run_size = (size_t)check(ioctl(vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
    vm->content = check(memfd_create("floor", MFD_CLOEXEC), "memfd_create");
    check(ftruncate(vm->content, MEMORY_SIZE), "ftruncate");
    void *memory =
        check_map(mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, vm->content, 0), "mmap");
    fill_memory(memory);
    munmap(memory, MEMORY_SIZE);
}

static void close_kvm(struct floor_vm *vm) {
    close(vm->content);
    close(vm->kvm);
}

static void make_vm(struct floor_vm *vm) {
    vm->vm = check(ioctl(vm->kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
}

static void make_memory(struct floor_vm *vm) {
    vm->memory = check_map(
        mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, vm->content, 0),
        "mmap of guest memory");
    struct kvm_userspace_memory_region region = {
        .memory_size = MEMORY_SIZE,
        .userspace_addr = (uint64_t)vm->memory,
    };
    check(ioctl(vm->vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
}

static void make_vcpu(struct floor_vm *vm) {
    vm->vcpu = check(ioctl(vm->vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
    vm->run = check_map(mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vm->vcpu, 0),
                        "mmap of the vCPU");
}

static void run(struct floor_vm *vm) {
    check(ioctl(vm->vcpu, KVM_RUN, 0), "KVM_RUN");
    if (vm->run->exit_reason != KVM_EXIT_IO || vm->run->io.port != PORT)
        bench_fail("the raw VM left for another reason (%u) than its `out`", vm->run->exit_reason);
}

static void run_first(struct floor_vm *vm) {
    fill_registers(vm->run);
    run(vm);
}

static void close_vm(struct floor_vm *vm) {
    munmap(vm->run, vm->run_size);
    close(vm->vcpu);
    close(vm->vm);
    munmap(vm->memory, MEMORY_SIZE);
}

/* ---- round trips --------------------------------------------------------------------------------------- */

static struct floor_vm *vm_new(void) {
    struct floor_vm *vm = calloc(1, sizeof *vm);

    if (!vm)
        bench_fail("out of memory");
    open_kvm(vm);
    make_vm(vm);
    make_memory(vm);
    make_vcpu(vm);
    fill_registers(vm->run);
    return vm;
}

struct floor_vm *floor_vm_new(void) {
    struct floor_vm *vm = vm_new();

    run(vm);
    return vm;
}

void floor_vm_free(struct floor_vm *vm) {
    close_vm(vm);
    close_kvm(vm);
    free(vm);
}

uint64_t floor_round_trip(void *context) {
    struct floor_vm *vm = context;
    uint64_t start = bench_now_ns();

    run(vm);
    return bench_now_ns() - start;
}

/* ---- interruption -------------------------------------------------------------------------------------- */

#define SPIN_SIGNAL (SIGRTMIN + 5)

static void on_signal(int number) {
    (void)number;
}

struct floor_vm *floor_spin_new(void) {
    struct sigaction action = {.sa_handler = on_signal};
    struct floor_vm *vm = vm_new();

    check(sigaction(SPIN_SIGNAL, &action, NULL), "sigaction");
    vm->run->s.regs.regs.rip = SPIN;
    return vm;
}

void floor_spin(struct floor_vm *vm) {
    if (ioctl(vm->vcpu, KVM_RUN, 0) == 0 || errno != EINTR)
        bench_fail("the raw VM left for another reason (%u) than a signal", vm->run->exit_reason);
}

void floor_spin_stop(pid_t thread) {
    check((int)syscall(SYS_tgkill, getpid(), thread, SPIN_SIGNAL), "tgkill");
}

/* ---- creation ------------------------------------------------------------------------------------------ */

struct floor_create {
    struct floor_vm vm;
    size_t turns, turns_max;
    double *steps[FLOOR_STEPS]; /* microseconds of each turn */
};

struct floor_create *floor_create_new(size_t turns_max) {
    struct floor_create *create = calloc(1, sizeof *create);

    if (!create)
        bench_fail("out of memory");
    open_kvm(&create->vm);
    create->turns_max = turns_max;
    for (size_t i = 0; i < FLOOR_STEPS; i++) {
        create->steps[i] = calloc(turns_max, sizeof *create->steps[i]);
        if (!create->steps[i])
            bench_fail("out of memory");
    }
    return create;
}

void floor_create_free(struct floor_create *create) {
    close_kvm(&create->vm);
    for (size_t i = 0; i < FLOOR_STEPS; i++)
        free(create->steps[i]);
    free(create);
}

uint64_t floor_create_once(void *context) {
    static void (*const steps[FLOOR_STEPS])(struct floor_vm * vm) = {
        [FLOOR_VM] = make_vm,      [FLOOR_MEMORY] = make_memory, [FLOOR_VCPU] = make_vcpu,
        [FLOOR_FIRST] = run_first, [FLOOR_CLOSE] = close_vm,
    };
    struct floor_create *create = context;
    uint64_t start = bench_now_ns();
    uint64_t before = start;

    for (size_t i = 0; i < FLOOR_STEPS; i++) {
        steps[i](&create->vm);
        uint64_t now = bench_now_ns();
        if (create->turns < create->turns_max)
            create->steps[i][create->turns] = (double)(now - before) / 1000;
        before = now;
    }
    create->turns++;
    return before - start;
}

void floor_create_report(struct floor_create *create, struct bench_report *report, const char *table) {
    static const char *const names[FLOOR_STEPS] = {
        [FLOOR_VM] = "floor: KVM_CREATE_VM",     [FLOOR_MEMORY] = "floor: memory and its slot",
        [FLOOR_VCPU] = "floor: KVM_CREATE_VCPU", [FLOOR_FIRST] = "floor: first KVM_RUN",
        [FLOOR_CLOSE] = "floor: closing",
    };
    size_t turns = create->turns < create->turns_max ? create->turns : create->turns_max;

    for (size_t i = 0; i < FLOOR_STEPS; i++)
        bench_report_row(report, table, names[i], "us", create->steps[i], turns);
}

/* ---- native -------------------------------------------------------------------------------------------- */

struct floor_native {
    pid_t process;
    int input, output; /* its standard input, and its standard output */
    uint64_t result;
};

struct floor_native *floor_native_new(const char *path, char **environment) {
    struct floor_native *native = calloc(1, sizeof *native);
    char *arguments[] = {(char *)path, NULL};
    char *none[] = {NULL};
    posix_spawn_file_actions_t actions;
    int input[2], output[2];

    if (!native)
        bench_fail("out of memory");
    check(pipe2(input, O_CLOEXEC), "pipe");
    check(pipe2(output, O_CLOEXEC), "pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    int number =
        posix_spawn(&native->process, path, &actions, NULL, arguments, environment ? environment : none);
    if (number != 0)
        bench_fail("%s: %s", path, strerror(number));
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    native->input = input[1];
    native->output = output[0];
    return native;
}

void floor_native_free(struct floor_native *native) {
    close(native->input); /* the end of its input is the end of it */
    close(native->output);
    waitpid(native->process, NULL, 0);
    free(native);
}

uint64_t floor_native_once(void *context) {
    struct floor_native *native = context;
    uint64_t start = bench_now_ns();

    if (write(native->input, "", 1) != 1 ||
        read(native->output, &native->result, sizeof native->result) != sizeof native->result)
        bench_fail("the native program has ended");
    return bench_now_ns() - start;
}

uint64_t floor_native_processor_ns(void *context) {
    const struct floor_native *native = context;
    clockid_t clock;
    struct timespec now;

    if (clock_getcpuclockid(native->process, &clock) != 0 || clock_gettime(clock, &now) != 0)
        bench_fail("the native program has no clock");
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t floor_native_result(const struct floor_native *native) {
    return native->result;
}

/* ---- copying ------------------------------------------------------------------------------------------- */

uint64_t floor_copy(void *context) {
    struct floor_copying *copying = context;
    uint64_t start = bench_now_ns();

    for (size_t i = 0; i < copying->times; i++) {
        memcpy(copying->to + copying->position % copying->to_size,
               copying->from + copying->position % copying->from_size, copying->size);
        copying->position += copying->size;
        __asm__ volatile("" ::: "memory");
    }
    return bench_now_ns() - start;
}
