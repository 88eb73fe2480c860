/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Leaves as much behind as it can, in memory and in registers, for a restore to undo.
 */
#include "hostile.h"

extern char __data_start[] __attribute__((weak)), __bss_start[], _end[]; /* NOLINT: the linker's names */

static void fill(uint64_t address, uint64_t size, uint64_t pattern) {
    uint64_t *words = (uint64_t *)address;

    for (uint64_t i = 0; i < size / 8; i++)
        words[i] = pattern;
}

/* Overwrites every byte that ring 3 can, and comes to its end. */
static void scribble(uint64_t pattern) {
    const struct ph__control *page = control;
    const uint64_t blob = PH__GVA(PH__MONITOR_GPA);
    const struct ph__monitor_header *header = monitor_header();

    fill(page->arena_gva, page->arena_size, pattern);
    fill(page->bookkeeping_gva, page->bookkeeping_size, pattern);
    fill(PH__GVA(PH__MONITOR_STACK_GPA), PH__MONITOR_STACK_SIZE, pattern);
    fill(PH__GVA(PH__IO_GPA), PH__IO_SIZE, pattern);
    fill(page->inbox_gva, 3 * page->box_size, pattern);
    fill(blob + header->data, (header->bss_end - header->data) & ~7ull, pattern);
    fill(((uint64_t)__bss_start + 7) & ~7ull, ((uint64_t)_end & ~7ull) - (uint64_t)__bss_start, pattern);
    __asm__ volatile("cld\n rep stosq\n ud2"
                     :
                     : "D"(page->stack_gva), "c"(page->stack_size / 8), "a"(pattern)
                     : "memory");
}
PH_EXPORT(scribble, PH_VOID, PH_U64);

/* The same with one byte and for boxes alone, returning. */
static void fill_boxes(uint64_t pattern) {
    fill(control->inbox_gva + control->box_size / 2, control->box_size / 2, pattern);
    fill(control->outbox_gva + control->box_size / 2, control->box_size / 2, pattern);
    if (control->trace.ring_size)
        fill(PH__TRACE_RING_GVA + control->trace.ring_size / 2, control->trace.ring_size / 2, pattern);
}
PH_EXPORT(fill_boxes, PH_VOID, PH_U64);

/* The sum of what is in the second halves of the boxes and of the ring. */
static uint64_t boxes_sum(void) {
    const uint64_t starts[] = {control->inbox_gva + control->box_size / 2,
                               control->outbox_gva + control->box_size / 2,
                               PH__TRACE_RING_GVA + control->trace.ring_size / 2};
    const uint64_t sizes[] = {control->box_size / 2, control->box_size / 2, control->trace.ring_size / 2};
    uint64_t sum = 0;

    for (int i = 0; i < 3; i++)
        for (uint64_t at = 0; at < sizes[i]; at += 8)
            sum += *(const uint64_t *)(starts[i] + at);
    return sum;
}
PH_EXPORT(boxes_sum, PH_U64);

/* What a guest can see of its registers beside the general ones. */
struct registers {
    uint8_t fx[512];
    uint8_t high[256]; /* upper halves of ymm, where there are any */
    uint64_t fs_base, gs_base;
    uint64_t flags;
    uint32_t selectors[4];
    uint32_t pkru;
} __attribute__((aligned(64)));

static bool has_avx(void) {
    uint32_t eax = 1, ebx, ecx = 0, edx;

    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (ecx & (3u << 27)) == 3u << 27;
}

static void store_high(uint8_t to[64]) { /* NOLINT(readability-non-const-parameter): by the assembly */
    __asm__ volatile("vextractf128 $1, %%ymm0, (%0)\n vextractf128 $1, %%ymm1, 16(%0)\n"
                     "vextractf128 $1, %%ymm7, 32(%0)\n vextractf128 $1, %%ymm15, 48(%0)\n"
                     :
                     : "r"(to)
                     : "memory");
}

static ph_bytes registers_get(void) {
    static struct registers all;

    __asm__ volatile("fxsave64 %0" : "=m"(all.fx));
    if (has_avx())
        store_high(all.high);
    __asm__ volatile("rdfsbase %0" : "=r"(all.fs_base));
    __asm__ volatile("rdgsbase %0" : "=r"(all.gs_base));
    __asm__ volatile("mov %%ds, %0" : "=r"(all.selectors[0]));
    __asm__ volatile("mov %%es, %0" : "=r"(all.selectors[1]));
    __asm__ volatile("mov %%fs, %0" : "=r"(all.selectors[2]));
    __asm__ volatile("mov %%gs, %0" : "=r"(all.selectors[3]));
    return (ph_bytes){&all, sizeof all};
}
PH_EXPORT(registers_get, PH_BYTES);

static void pattern_load(void) {
    static const uint8_t pattern[64] __attribute__((aligned(64))) = {0x5a, 0xa5, 0x77, 0x11, 0x99};
    static const uint16_t x87_control = 0x0f7f;
    static const uint32_t mxcsr = 0x1f80 | 0x6000 | 0x8040;

    __asm__ volatile("fninit\n fldpi\n fldl2e\n fldcw %0\n ldmxcsr %1" : : "m"(x87_control), "m"(mxcsr));
    __asm__ volatile("movdqa %0, %%xmm0\n movdqa %%xmm0, %%xmm1\n movdqa %%xmm0, %%xmm7\n"
                     "movdqa %%xmm0, %%xmm15\n"
                     :
                     : "m"(pattern)
                     : "memory");
    if (has_avx())
        __asm__ volatile("vinsertf128 $1, %%xmm0, %%ymm0, %%ymm0\n vinsertf128 $1, %%xmm0, %%ymm1, %%ymm1\n"
                         "vinsertf128 $1, %%xmm0, %%ymm7, %%ymm7\n vinsertf128 $1, %%xmm0, %%ymm15, %%ymm15\n"
                         :
                         :
                         : "memory");
}

/* Fills them all with something, and returns, or comes to its end. */
static void registers_fill(uint32_t and_end) {
    const uint64_t base = 0x123456789000ull;
    const uint32_t null_selector = 0;

    pattern_load();
    __asm__ volatile("mov %0, %%ds\n mov %0, %%es\n mov %0, %%fs\n mov %0, %%gs" : : "r"(null_selector));
    __asm__ volatile("wrfsbase %0\n wrgsbase %0" : : "r"(base));
    if (and_end)
        __asm__ volatile("std\n ud2");
}
PH_EXPORT(registers_fill, PH_VOID, PH_U32);
