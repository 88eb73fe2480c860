/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A VM of one page of code (kvm_probe.h). Ioctls are described in the kernel's
 * Documentation/virt/kvm/api.rst.
 */
#include "vm/kvm_probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/system.h"
#include "vm/kvm_system.h"

#define CODE_GPA 0x1000u
#define COUNT_GPA 0x2000u
#define MEMORY_SIZE 0x3000ul
#define PORT 0x10

/* Runs an empty loop as often as the word at COUNT_GPA says, exits, and does it again when it is entered
 * again. */
static const uint8_t code[] = {
    0x8b, 0x0d, 0x00, 0x20, 0x00, 0x00, /* 1: mov COUNT_GPA, %ecx */
    0x49,                               /* 2: dec %ecx */
    0x75, 0xfd,                         /* jnz 2b */
    0xe7, PORT,                         /* out %eax, $PORT */
    0xeb, 0xf3,                         /* jmp 1b */
};
_Static_assert(COUNT_GPA == 0x2000, "as in the code");

static bool add_memory(struct ph__probe *probe) {
    void *memory =
        ph__system.mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    probe->memory = memory;
    memcpy(probe->memory + CODE_GPA, code, sizeof code);
    struct kvm_userspace_memory_region region = {
        .memory_size = MEMORY_SIZE,
        .userspace_addr = (uint64_t)(uintptr_t)memory,
    };
    return ph__system.ioctl(probe->vm, KVM_SET_USER_MEMORY_REGION, &region) == 0;
}

static bool add_vcpu(struct ph__probe *probe) {
    int size = ph__system.ioctl(probe->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

    probe->vcpu = ph__system.ioctl(probe->vm, KVM_CREATE_VCPU, 0);
    if (probe->vcpu < 0 || size < (int)sizeof(struct kvm_run))
        return false;
    void *run = ph__system.mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, probe->vcpu, 0);
    if (run == MAP_FAILED)
        return false;
    probe->run = run;
    probe->run_size = (size_t)size;
    return true;
}

/* Flat segments, protection on, paging off. */
static bool set_state(struct ph__probe *probe) {
    const struct kvm_segment data = {
        .limit = 0xffffffff, .selector = 16, .type = 3, .present = 1, .db = 1, .s = 1, .g = 1};
    const struct kvm_regs regs = {.rip = CODE_GPA, .rflags = 2};
    struct kvm_sregs sregs;

    if (ph__system.ioctl(probe->vcpu, KVM_GET_SREGS, &sregs) != 0)
        return false;
    sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = data;
    sregs.cs = data;
    sregs.cs.selector = 8;
    sregs.cs.type = 11;
    sregs.cr0 |= 1;
    return ph__system.ioctl(probe->vcpu, KVM_SET_SREGS, &sregs) == 0 &&
           ph__system.ioctl(probe->vcpu, KVM_SET_REGS, &regs) == 0;
}

ph_status ph__probe_make(struct ph__probe *probe, ph_error *error) {
    *probe = (struct ph__probe){.kvm = -1, .vm = -1, .vcpu = -1};
    ph_status status = ph__kvm_open(&probe->kvm, error);

    if (status != PH_OK)
        return status;
    probe->vm = ph__system.ioctl(probe->kvm, KVM_CREATE_VM, 0);
    if (probe->vm < 0)
        return ph__error_set_system(error, PH_E_BACKEND, errno, "KVM_CREATE_VM failed");
    ph__system.ioctl(probe->vm, KVM_SET_TSS_ADDR, 0xfffbd000ul); /* as in kvm.c, and as there for VMX alone */
    if (add_memory(probe) && add_vcpu(probe) && set_state(probe))
        return PH_OK;
    return ph__error_set_system(error, PH_E_BACKEND, errno, "KVM makes no vCPU");
}

void ph__probe_free(struct ph__probe *probe) {
    if (probe->run)
        ph__system.munmap(probe->run, probe->run_size);
    if (probe->vcpu >= 0)
        ph__system.close(probe->vcpu);
    if (probe->vm >= 0)
        ph__system.close(probe->vm);
    if (probe->kvm >= 0)
        ph__system.close(probe->kvm);
    if (probe->memory)
        ph__system.munmap(probe->memory, MEMORY_SIZE);
}

bool ph__probe_run(struct ph__probe *probe, uint32_t count) {
    const struct kvm_run *run = probe->run;
    int result;

    memcpy(probe->memory + COUNT_GPA, &count, sizeof count);
    do
        result = ph__system.ioctl(probe->vcpu, KVM_RUN, 0);
    while (result < 0 && errno == EINTR);
    return result == 0 && run->exit_reason == KVM_EXIT_IO && run->io.direction == KVM_EXIT_IO_OUT &&
           run->io.port == PORT;
}

ph_status ph__kvm_probe(ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool works;
    struct ph__probe probe;
    ph_status status = PH_OK;

    pthread_mutex_lock(&lock);
    if (!works) {
        status = ph__probe_make(&probe, error);
        if (status == PH_OK && !ph__probe_run(&probe, 1))
            status = ph__error_set(error, PH_E_BACKEND, "KVM makes a virtual machine and does not run it");
        ph__probe_free(&probe);
        works = status == PH_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}
