/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the host knows of the monitor blob: the header at its first byte, and the state that it keeps in its
 * writable part. The header is ours and trusted. The state is in pages that ring 3 can write, so the host
 * treats all of it as hostile: it reads a word once and can be hurt by no value of it.
 */
#ifndef PH_ABI_MONITOR_H
#define PH_ABI_MONITOR_H

#include <stdint.h>

#define PH__MONITOR_MAGIC 0x6e6f6d70u /* "pmon" */
#define PH__STUB_COUNT 32u
#define PH__STUB_SIZE 16u

/* All positions are bytes from the blob's start; the blob is loaded at PH__MONITOR_GPA and linked for
 * PH__GVA(PH__MONITOR_GPA). Each part starts on a page. Parts, in this order: header and constants (user
 * read), stubs (supervisor execute), text (user execute), data and zeroes (user read-write). */
struct ph__monitor_header {
    uint32_t magic;
    uint32_t abi_version;
    uint32_t stubs; /* PH__STUB_COUNT stubs of PH__STUB_SIZE bytes, one for each exception vector */
    uint32_t exception_return; /* in the stubs page: drops the error code, then iretq */
    uint32_t poke; /* in the stubs page: ring 0 stores RCX entries of the list at RDI, then a doorbell */
    uint32_t text;
    uint32_t data;
    uint32_t data_end;    /* the end of what the blob's file holds */
    uint32_t bss_end;     /* the end in memory */
    uint32_t start;       /* ring 3: RDI = the image's entry, RSI = its stack pointer */
    uint32_t system_call; /* LSTAR: may be reached at CPL 0 or 3 */
    uint32_t exception;   /* ring 3, on the monitor's stack: deliver state.exception to a signal handler */
    uint32_t fixup_start; /* a fault at [fixup_start, fixup_end) is a bad pointer in a system call: */
    uint32_t fixup_end;   /* the host lets the vCPU go on at fixup_landing */
    uint32_t fixup_landing;
    uint32_t user_rip; /* in the data part: 8 bytes, where the system call under way returns to */
    uint32_t state;    /* struct ph__monitor_state, in the data part */
};

/* General registers in the order of struct kvm_regs (linux/kvm.h), so that a backend can share the memory. */
struct ph__regs {
    uint64_t rax, rbx, rcx, rdx;
    uint64_t rsi, rdi, rsp, rbp;
    uint64_t r8, r9, r10, r11;
    uint64_t r12, r13, r14, r15;
    uint64_t rip, rflags;
};

/* An exception as the host hands it to the monitor. */
struct ph__exception {
    uint64_t vector;
    uint64_t error_code;
    uint64_t address; /* CR2, for a page fault */
    struct ph__regs regs;
};

#define PH__SYSTEM_CALLS_MAX 512u

struct ph__monitor_state {
    uint64_t handled_signals; /* bit (signal - 1): a handler is installed and the signal is not blocked */
    struct ph__exception exception; /* written by the host before it enters (exception) */
    uint64_t memory_refused; /* time-stamp counter when heap or mmap space last was used up; 0: never */
    uint32_t
        unserved[PH__SYSTEM_CALLS_MAX];    /* ENOSYS answers by system-call number, the last for all above */
    uint32_t served[PH__SYSTEM_CALLS_MAX]; /* system calls that were known, by number */
};

/* The signal that Linux sends for an exception (arch/x86/kernel/traps.c), 0 if there is none. */
static inline int ph__exception_signal(uint64_t vector) {
    switch (vector) {
    case 0:        /* divide error */
    case 16:       /* x87 */
    case 19:       /* SIMD */
        return 8;  /* SIGFPE */
    case 1:        /* debug */
    case 3:        /* breakpoint */
        return 5;  /* SIGTRAP */
    case 6:        /* undefined instruction */
        return 4;  /* SIGILL */
    case 11:       /* segment not present */
    case 12:       /* stack segment: also a non-canonical address by way of RSP or RBP */
    case 17:       /* alignment check */
        return 7;  /* SIGBUS */
    case 4:        /* overflow */
    case 5:        /* bound range */
    case 10:       /* invalid TSS */
    case 13:       /* general protection */
    case 14:       /* page fault */
        return 11; /* SIGSEGV */
    default:
        return 0;
    }
}

#endif
