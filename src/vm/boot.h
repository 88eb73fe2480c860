/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What is in memory when a vCPU starts: the monitor blob and the descriptor tables. The same for every
 * sandbox.
 */
#ifndef PH_VM_BOOT_H
#define PH_VM_BOOT_H

#include "abi/monitor.h"
#include "base/sha256.h"
#include "vm/memory.h"

/* Positions on the page at PH__TABLES_GPA. */
#define PH__GDT_OFFSET 0x000u
#define PH__GDT_SIZE 56u /* null, four segments, and two slots for the TSS descriptor */
#define PH__IDT_OFFSET 0x100u
#define PH__IDT_SIZE (32u * 16u)
#define PH__TSS_OFFSET 0x400u
#define PH__TSS_SIZE (104u + PH__TSS_BITMAP_SIZE)
#define PH__TSS_BITMAP_SIZE 16u /* ports below 120, and the byte of ones that must follow */

/* The monitor's header, in the blob that is linked in: ours, and trusted. */
const struct ph__monitor_header *ph__monitor(void);

/* Copies monitor and descriptor tables into (memory). */
void ph__boot_write(struct ph__memory *memory);

/* Whether the page at (gpa) is one that ph__boot_write fills and ring 3 cannot write: the descriptor tables,
 * and the monitor up to its data. It is the same in every sandbox. */
bool ph__boot_is_constant(uint64_t gpa);

/* The bytes from guest-physical address 0 on that ph__boot_write may touch. */
#define PH__BOOT_SIZE (PH__MONITOR_GPA + PH__MONITOR_SIZE)

/* The SHA-256 of the monitor. A guest's memory fits the very monitor that it ran on. */
void ph__boot_digest(uint8_t digest[PH__SHA256_SIZE]);

/* The monitor's state where it lies, in memory that ring 3 can write: read each word once. */
struct ph__monitor_state *ph__monitor_state(const struct ph__memory *memory);

#endif
