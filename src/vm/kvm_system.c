/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Asks KVM what it can do and decides what a guest's processor shows (kvm_system.h). Facts of the KVM
 * interface are from the kernel's Documentation/virt/kvm/api.rst, CPUID leaves from the Intel SDM, volume 2,
 * CPUID.
 */
#include "vm/kvm_system.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system.h"

/* State components (SDM volume 1, chapter 13.1): x87, SSE, AVX, and the three of AVX-512. No AMX: its 8 KiB
 * must be asked for by the host process. */
#define XCR0_BASIC 0x3ull
#define XCR0_AVX 0x4ull
#define XCR0_AVX512 0xe0ull

#define CPUID_1_ECX_SSE3 1u

ph_status ph__kvm_open(int *file, ph_error *error) {
    *file = ph__system.open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (*file >= 0)
        return PH_OK;
    int number = errno;
    const char *advice = "see `pinhole doctor`";
    if (number == ENOENT)
        advice = "it is not there; on bare metal load kvm_intel or kvm_amd, in a container pass "
                 "--device /dev/kvm";
    else if (number == EACCES || number == EPERM)
        advice = "this user may not use it; join the group that owns it (often `kvm`) and log in again";
    return ph__error_set_system(error, PH_E_BACKEND, number, "cannot open /dev/kvm (%s)", advice);
}

/* What every VM needs. */
static const struct {
    unsigned long capability;
    int least;
    const char *name;
} needed[] = {
    {KVM_CAP_USER_MEMORY, 1, "KVM_CAP_USER_MEMORY"},
    {KVM_CAP_IMMEDIATE_EXIT, 1, "KVM_CAP_IMMEDIATE_EXIT"},
    {KVM_CAP_XCRS, 1, "KVM_CAP_XCRS"},
    {KVM_CAP_XSAVE, 1, "KVM_CAP_XSAVE"},
    {KVM_CAP_SYNC_REGS, KVM_SYNC_X86_REGS, "KVM_CAP_SYNC_REGS"},
};

static ph_status check_capabilities(int file, ph_error *error) {
    if (ph__system.ioctl(file, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
        return ph__error_set(error, PH_E_BACKEND, "/dev/kvm does not speak version %d of its interface",
                             KVM_API_VERSION);
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (ph__system.ioctl(file, KVM_CHECK_EXTENSION, needed[i].capability) < needed[i].least)
            return ph__error_set(error, PH_E_BACKEND, "KVM here lacks %s: Linux 4.17 or newer is needed",
                                 needed[i].name);
    }
    return PH_OK;
}

static bool is_leaf(const struct kvm_cpuid_entry2 *entry, uint32_t function, uint32_t index) {
    return entry->function == function && entry->index == index;
}

/* Leaves about what guests do not get, and those of state components that are not in (xcr0). */
static bool is_withheld(const struct kvm_cpuid_entry2 *entry, uint64_t xcr0) {
    switch (entry->function) {
    case 0x12: /* enclaves */
    case 0x14: /* processor trace */
    case 0x1d: /* AMX */
    case 0x1e:
    case 0x8000000a: /* SVM */
        return true;
    case 0xd:
        return entry->index > 1 && entry->index < 64 && !(xcr0 >> entry->index & 1);
    default:
        return false;
    }
}

/* Clears what a guest has no use for, so that it neither tries nor depends on it: nested virtualization,
 * enclaves, processor trace, protection keys, AMX, and a local APIC's timer. PVM does not enforce this, other
 * KVMs do. */
static void filter_entry(struct kvm_cpuid_entry2 *entry, uint64_t xcr0) {
    if (is_withheld(entry, xcr0))
        entry->eax = entry->ebx = entry->ecx = entry->edx = 0;
    else if (is_leaf(entry, 1, 0))
        entry->ecx &= ~(1u << 5 | 1u << 21 | 1u << 24); /* VMX, x2APIC, TSC deadline */
    else if (is_leaf(entry, 7, 0)) {
        entry->ebx &= ~(1u << 2 | 1u << 25);             /* SGX, processor trace */
        entry->ecx &= ~(1u << 3 | 1u << 4);              /* PKU, OSPKE */
        entry->edx &= ~(1u << 22 | 1u << 24 | 1u << 25); /* AMX */
    } else if (is_leaf(entry, 0xd, 0)) {
        entry->eax &= (uint32_t)xcr0;
        entry->edx = 0;
    } else if (is_leaf(entry, 0xd, 1))
        entry->ecx = entry->edx = 0; /* no supervisor state */
    else if (is_leaf(entry, 0x80000001, 0))
        entry->ecx &= ~(1u << 2); /* SVM */
}

/* KVM's paravirtual leaves: a guest that sees them may use MSRs and hypercalls that are not there. */
static bool is_paravirtual(const struct kvm_cpuid_entry2 *entry) {
    return entry->function >= 0x40000000 && entry->function < 0x50000000;
}

static uint64_t choose_xcr0(const struct kvm_cpuid2 *cpuid) {
    uint64_t offered = 0;

    for (uint32_t i = 0; i < cpuid->nent; i++)
        if (is_leaf(&cpuid->entries[i], 0xd, 0))
            offered = cpuid->entries[i].eax;
    uint64_t xcr0 = XCR0_BASIC | (offered & XCR0_AVX);
    if ((xcr0 & XCR0_AVX) && (offered & XCR0_AVX512) == XCR0_AVX512)
        xcr0 |= XCR0_AVX512;
    return xcr0;
}

/* QEMU's emulated SVM looks for the I/O bitmap only in a TSS of type 9, "available", where hardware holds 11,
 * "busy". KVM on SVM takes 9 and reads it back as 11; VMX refuses 9. So ask who is below. */
static bool runs_in_qemu_emulation(void) {
    uint32_t eax, ebx, ecx, edx;
    __cpuid(0x40000000, eax, ebx, ecx, edx);
    return ebx == 0x54474354 && ecx == 0x43544743 && edx == 0x47435447; /* "TCGTCGTCGTCG" */
}

/* The first byte of the file at (path), 0 when there is none. */
static char first_byte(const char *path) {
    char byte = 0;
    int file = ph__system.open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return 0;
    if (ph__system.read(file, &byte, 1) != 1)
        byte = 0;
    ph__system.close(file);
    return byte;
}

static bool is_pvm(void) {
    return ph__system.access("/sys/module/kvm_pvm", F_OK) == 0;
}

/* Whether KVM does without the processor's second level of page tables. No ioctl says so. Where these files
 * cannot be read the answer is no: it only decides about speed. */
static bool shadows_page_tables(void) {
    return is_pvm() || first_byte("/sys/module/kvm_intel/parameters/ept") == 'N' ||
           first_byte("/sys/module/kvm_amd/parameters/npt") == 'N';
}

static ph_status ask_cpuid(int file, struct ph__kvm_system *system, ph_error *error) {
    struct kvm_cpuid2 *cpuid = &system->cpuid.head;

    cpuid->nent = PH__CPUID_MAX;
    if (ph__system.ioctl(file, KVM_GET_SUPPORTED_CPUID, cpuid) < 0)
        return ph__error_set_system(error, PH_E_SYSTEM, errno, "KVM_GET_SUPPORTED_CPUID failed");
    system->xcr0 = choose_xcr0(cpuid);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cpuid->nent; i++) {
        if (is_paravirtual(&cpuid->entries[i]))
            continue;
        cpuid->entries[kept] = cpuid->entries[i];
        filter_entry(&cpuid->entries[kept++], system->xcr0);
    }
    cpuid->nent = kept;
    return PH_OK;
}

/* ---- what guests see ----------------------------------------------------------------------------------- */

/* The processor itself: ph__cpuid_fn. */
static void ask_processor(const void *context, uint32_t leaf, uint32_t index, uint32_t words[4]) {
    uint32_t eax, ebx, ecx, edx;

    (void)context;
    __cpuid_count(leaf, index, eax, ebx, ecx, edx);
    words[0] = eax;
    words[1] = ebx;
    words[2] = ecx;
    words[3] = edx;
}

/* What the table in (context) says. Where a component of XSAVE's area lies is always the processor's own
 * business, also of PKRU, which images have and guests do not see. */
static void ask_table(const void *context, uint32_t leaf, uint32_t index, uint32_t words[4]) {
    const struct ph__kvm_system *system = context;

    words[0] = words[1] = words[2] = words[3] = 0;
    for (uint32_t i = 0; i < system->cpuid.head.nent; i++) {
        const struct kvm_cpuid_entry2 *entry = &system->cpuid.entries[i];
        if (is_leaf(entry, leaf, index)) {
            words[0] = entry->eax;
            words[1] = entry->ebx;
            words[2] = entry->ecx;
            words[3] = entry->edx;
        }
    }
    if (leaf == 0xd && index > 1)
        ask_processor(NULL, leaf, index, words);
}

/* KVM on PVM runs ring 3 right on the processor, where CPUID and XGETBV answer as they do for the host,
 * whatever the guest was given. Its table is known by what it leaves out: any other KVM offers SSE3 wherever
 * there is some. */
static bool shows_processor(const struct ph__kvm_system *system) {
    uint32_t table[4], processor[4];

    ask_table(system, 1, 0, table);
    ask_processor(NULL, 1, 0, processor);
    return is_pvm() || (processor[2] & ~table[2] & CPUID_1_ECX_SSE3);
}

/* There is one where there is KVM_CAP_XCRS. */
static uint64_t read_xcr0(void) {
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static void read_features(struct ph__kvm_system *system) {
    if (shows_processor(system))
        ph__features_read(ask_processor, NULL, read_xcr0(), &system->features);
    else
        ph__features_read(ask_table, system, system->xcr0, &system->features);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

ph_status ph__kvm_system(int file, const struct ph__kvm_system **system, ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct ph__kvm_system facts;
    static bool known;
    ph_status status = PH_OK;

    pthread_mutex_lock(&lock);
    if (!known) {
        status = check_capabilities(file, error);
        if (status == PH_OK)
            status = ask_cpuid(file, &facts, error);
        if (status == PH_OK) {
            facts.vcpu_mapping_size = ph__system.ioctl(file, KVM_GET_VCPU_MMAP_SIZE, 0);
            if (facts.vcpu_mapping_size < (int)sizeof(struct kvm_run))
                status = ph__error_set_system(error, PH_E_SYSTEM, errno, "KVM_GET_VCPU_MMAP_SIZE failed");
            read_features(&facts);
            facts.shadow_paging = shadows_page_tables();
            facts.tss_type_available = runs_in_qemu_emulation();
        }
        known = status == PH_OK;
    }
    pthread_mutex_unlock(&lock);
    *system = &facts;
    return status;
}
