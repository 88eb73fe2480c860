/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The doorbell: the one way in which a guest may ask the host for something. On x86 it is
 * `out %eax, $PH__DOORBELL_PORT`, 32 bits wide, with the operation in EAX, arguments in RDI, RSI and RDX,
 * and the answer in RAX. Any other I/O instruction, width or port is a breach of the protocol.
 * The names are not Linux's: the host serves about ten operations, whatever system calls the monitor serves.
 */
#ifndef PH_ABI_DOORBELL_H
#define PH_ABI_DOORBELL_H

#include <stdint.h>

/* Four consecutive ports, since the I/O permission bitmap is asked for each byte of a 32-bit access. */
#define PH__DOORBELL_PORT 0x50

enum ph__doorbell {
    PH__DOORBELL_READY = 1,      /* start-up is done; the dispatch loop waits for the first call */
    PH__DOORBELL_RETURN = 2,     /* the outbox holds the RESULT or ERROR frame of the call */
    PH__DOORBELL_HOST_CALL = 3,  /* the outbox holds a CALL frame; the answer comes into the host inbox */
    PH__DOORBELL_ABORT = 4,      /* the outbox holds an ERROR frame; the sandbox is done for */
    PH__DOORBELL_WRITE = 5,      /* RDI descriptor (1, 2), RSI bytes in the I/O page; RAX = bytes or -errno */
    PH__DOORBELL_READ = 6,       /* RDI descriptor (0), RSI most bytes wanted; RAX = bytes or -errno */
    PH__DOORBELL_SLEEP = 7,      /* RDI nanoseconds, UINT64_MAX for ever; RAX = 0 */
    PH__DOORBELL_EXIT = 8,       /* RDI status 0..255 */
    PH__DOORBELL_PROTECT = 9,    /* RDI page-aligned GVA, RSI bytes, RDX PROT_*; RAX = 0 or -errno */
    PH__DOORBELL_KILL = 10,      /* RDI signal number: its default action ends the program */
    PH__DOORBELL_UNHANDLED = 11, /* the exception that the host delivered last could not be handled */
    PH__DOORBELL_TRACE_BATCH = 12, /* the ring is full: the host takes what is in it */
    PH__DOORBELL_ZERO = 13, /* RDI page-aligned GVA in the arena, RSI bytes: to be zero; RAX = 0 or -errno */
};

/* Rings the doorbell from guest code. (operation) one of the above; unused arguments are 0. Returns RAX.
 * "memory" on both sides: boxes are read and written by the host while the vCPU stands still. */
#if defined(__x86_64__)
static inline uint64_t ph__doorbell_ring(uint32_t operation, uint64_t rdi, uint64_t rsi, uint64_t rdx) {
    uint64_t rax = operation;
    __asm__ volatile("outl %%eax, %1"
                     : "+a"(rax)
                     : "i"(PH__DOORBELL_PORT), "D"(rdi), "S"(rsi), "d"(rdx)
                     : "memory");
    return rax;
}
#endif

#endif
