/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Which process and thread this is, without a system call.
 */
#ifndef PH_BASE_PROCESS_H
#define PH_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <pinhole/pinhole.h>

/* A number for this process that a child after fork() does not share. */
uint64_t ph__process_id(void);
/* The same for a process that makes its first sandbox or tracer: never 0 afterwards. PH_E_SYSTEM. */
ph_status ph__process_init(ph_error *error);
/* The kernel's id of the calling thread, asked once for each thread. */
pid_t ph__process_thread(void);

/* A number for the calling thread that no other of the process ever gets, also not after its end. Never 0. */
uint64_t ph__process_thread_number(void);

/* (*faults) is how many page faults the kernel has seen to for the calling thread, those among them that it
 * met while it worked on the thread's behalf, as KVM does. False where it does not count these. */
bool ph__process_faults(uint64_t *faults);

#endif
