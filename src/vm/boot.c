/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Writes the monitor and the processor's descriptor tables into a new VM's memory (boot.h). Formats are those
 * of the Intel SDM, volume 3, chapters 3.4.5 (segments), 6.14.1 (64-bit gates) and 7.7 (64-bit TSS).
 */
#include "vm/boot.h"

#include <pthread.h>
#include <string.h>

#include "abi/doorbell.h"

/* The blob, from src/monitor/embed.S. */
extern const uint8_t ph__monitor_blob[] __attribute__((visibility("hidden")));
extern const uint8_t ph__monitor_blob_end[] __attribute__((visibility("hidden")));

const struct ph__monitor_header *ph__monitor(void) {
    return (const struct ph__monitor_header *)ph__monitor_blob;
}

struct ph__monitor_state *ph__monitor_state(const struct ph__memory *memory) {
    return (struct ph__monitor_state *)(memory->base + PH__MONITOR_GPA + ph__monitor()->state);
}

/* Flat 64-bit segments, with the accessed bit set so that the processor never writes to the table. */
#define SEGMENT_KERNEL_CODE 0x00af9b000000ffffull
#define SEGMENT_KERNEL_DATA 0x00cf93000000ffffull
#define SEGMENT_USER_DATA 0x00cff3000000ffffull
#define SEGMENT_USER_CODE 0x00affb000000ffffull
#define DESCRIPTOR_TSS_BUSY 0x8bull

static void write_gdt(uint8_t *table) {
    const uint64_t tss = PH__GVA(PH__TABLES_GPA) + PH__TSS_OFFSET;
    const uint64_t limit = PH__TSS_SIZE - 1;
    uint64_t gdt[PH__GDT_SIZE / 8] = {
        [PH__SELECTOR_KERNEL_CODE / 8] = SEGMENT_KERNEL_CODE,
        [PH__SELECTOR_KERNEL_DATA / 8] = SEGMENT_KERNEL_DATA,
        [PH__SELECTOR_USER_DATA / 8] = SEGMENT_USER_DATA,
        [PH__SELECTOR_USER_CODE / 8] = SEGMENT_USER_CODE,
        [PH__SELECTOR_TSS / 8] =
            limit | (tss & 0xffffff) << 16 | DESCRIPTOR_TSS_BUSY << 40 | (tss >> 24 & 0xff) << 56,
        [PH__SELECTOR_TSS / 8 + 1] = tss >> 32,
    };
    memcpy(table, gdt, sizeof gdt);
}

/* Gates have DPL 0, so that `int N` in the guest is a general-protection fault, but for breakpoint and
 * overflow, which are instructions that programs use. A double fault gets a stack of its own. */
static void write_idt(uint8_t *table) {
    const uint64_t stubs = PH__GVA(PH__MONITOR_GPA) + ph__monitor()->stubs;
    uint64_t idt[PH__IDT_SIZE / 8] = {0};

    for (uint64_t vector = 0; vector < PH__STUB_COUNT; vector++) {
        uint64_t handler = stubs + vector * PH__STUB_SIZE;
        uint64_t dpl = vector == 3 || vector == 4 ? 3 : 0;
        uint64_t ist = vector == 8 ? 1 : 0;
        idt[2 * vector] = (handler & 0xffff) | (uint64_t)PH__SELECTOR_KERNEL_CODE << 16 | ist << 32 |
                          (0x8eull | dpl << 5) << 40 | (handler >> 16 & 0xffff) << 48;
        idt[2 * vector + 1] = handler >> 32;
    }
    memcpy(table, idt, sizeof idt);
}

static void write_tss(uint8_t *table) {
    const uint64_t rsp0 = PH__GVA(PH__RING0_STACK_GPA) + PH__PAGE_SIZE;
    const uint64_t ist1 = PH__GVA(PH__IST_STACK_GPA) + PH__PAGE_SIZE;
    const uint16_t bitmap = 104;
    uint8_t tss[PH__TSS_SIZE];

    memset(tss, 0, 104);
    memset(tss + 104, 0xff, PH__TSS_BITMAP_SIZE);
    memcpy(tss + 4, &rsp0, sizeof rsp0);
    memcpy(tss + 36, &ist1, sizeof ist1);
    memcpy(tss + 102, &bitmap, sizeof bitmap);
    /* A clear bit admits the port. A 32-bit access asks for four. */
    for (unsigned port = PH__DOORBELL_PORT; port < PH__DOORBELL_PORT + 4; port++)
        tss[104 + port / 8] &= (uint8_t) ~(1u << port % 8);
    memcpy(table, tss, sizeof tss);
}

void ph__boot_write(struct ph__memory *memory) {
    const struct ph__monitor_header *monitor = ph__monitor();
    uint8_t *tables = memory->base + PH__TABLES_GPA;

    ph__memory_touch(memory, PH__MONITOR_GPA, monitor->data_end);
    memcpy(memory->base + PH__MONITOR_GPA, ph__monitor_blob, monitor->data_end);
    write_gdt(tables + PH__GDT_OFFSET);
    write_idt(tables + PH__IDT_OFFSET);
    write_tss(tables + PH__TSS_OFFSET);
}

bool ph__boot_is_constant(uint64_t gpa) {
    return gpa == PH__TABLES_GPA || gpa - PH__MONITOR_GPA < ph__monitor()->data;
}

static uint8_t monitor_digest[PH__SHA256_SIZE];

static void make_digest(void) {
    struct ph__sha256 hash;

    ph__sha256_begin(&hash);
    ph__sha256_add(&hash, ph__monitor_blob, ph__monitor()->data_end);
    ph__sha256_end(&hash, monitor_digest);
}

/* The monitor is a constant: it is read once. */
void ph__boot_digest(uint8_t digest[PH__SHA256_SIZE]) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_digest);
    memcpy(digest, monitor_digest, sizeof monitor_digest);
}
