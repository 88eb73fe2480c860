/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Where things are inside every VM: what host, monitor and guest library agree on at build time. What
 * depends on the image or on the configuration is said in the control page (control.h) instead.
 *
 * Guest-virtual addresses (GVA) of the image are the ELF file's own. Everything that belongs to pinhole
 * lives in one window far above it, so virtual is never physical. The window is a straight line:
 * GVA = PH__WINDOW_GVA + GPA, for the regions named here and for page tables, messages and bookkeeping.
 */
#ifndef PH_ABI_LAYOUT_H
#define PH_ABI_LAYOUT_H

#define PH__PAGE_SIZE 4096ull
#define PH__LARGE_PAGE_SIZE (2ull << 20)

/* An image may use [PH__IMAGE_GVA_MIN, PH__WINDOW_GVA): the first 64 KiB stay unmapped, so that a null
 * pointer with an offset faults (Linux keeps the same with mmap_min_addr). */
#define PH__IMAGE_GVA_MIN 0x10000ull
#define PH__WINDOW_GVA 0x7e0000000000ull

/* Guest-physical addresses (GPA) within the first 2 MiB, the system region. "user" is what ring 3 may do,
 * "supervisor" what only ring 0 may. GPA 0 is never mapped. */
#define PH__CONTROL_GPA 0x1000ull /* user read: struct ph__control; the host writes, nobody else can */
#define PH__CONTROL_SIZE 0x1000ull
#define PH__POKES_GPA 0x2000ull /* supervisor read: struct ph__poke[PH__POKES_MAX]; the host writes */
#define PH__POKES_SIZE 0x1000ull
#define PH__HOST_WRITTEN_SIZE (PH__CONTROL_SIZE + PH__POKES_SIZE) /* one mapping, read-only for KVM */

#define PH__TABLES_GPA 0x8000ull      /* supervisor read: GDT, IDT and TSS on one page (vm/boot.c) */
#define PH__RING0_STACK_GPA 0x9000ull /* supervisor read-write, one page: exceptions from ring 3 */
#define PH__IST_STACK_GPA 0xa000ull   /* supervisor read-write, one page: double faults */
#define PH__MONITOR_GPA 0x10000ull    /* the monitor blob, at most PH__MONITOR_SIZE (monitor.h) */
#define PH__MONITOR_SIZE 0x40000ull
#define PH__MONITOR_STACK_GPA 0x60000ull /* user read-write; the page below it stays unmapped */
#define PH__MONITOR_STACK_SIZE 0x8000ull
#define PH__IO_GPA 0x80000ull /* user read-write: the bytes of READ and WRITE doorbells */
#define PH__IO_SIZE 0x10000ull
#define PH__SYSTEM_SIZE PH__LARGE_PAGE_SIZE

#define PH__GVA(gpa) (PH__WINDOW_GVA + (gpa))

/* Physical space keeps [PH__HOLE_GPA, PH__HIGH_GPA) free for KVM's own pages (task-state and identity map
 * of VMX, APIC page); memory that does not fit below it goes on at 4 GiB. */
#define PH__HOLE_GPA 0xfea00000ull
#define PH__HIGH_GPA 0x100000000ull

/* Selectors, in the order that syscall and sysretq want (STAR): kernel code, kernel data, user data, user
 * code. The numbers are the GDT index times eight, plus the ring. */
#define PH__SELECTOR_KERNEL_CODE 0x08
#define PH__SELECTOR_KERNEL_DATA 0x10
#define PH__SELECTOR_USER_DATA 0x1b
#define PH__SELECTOR_USER_CODE 0x23
#define PH__SELECTOR_TSS 0x28

/* The user and group that a guest sees itself as. */
#define PH__USER_ID 1000u

#endif
