/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A tenant that leaves a pattern in every register and every page that ring 3 can write, and comes to any of
 * many ends; and the next one, which notes all registers with its first instructions and looks for the
 * pattern in all memory that it can read.
 */
#include "hostile.h"

extern char __executable_start[], _end[]; /* NOLINT: the linker's names */

/* ---- the careful tenant -------------------------------------------------------------------------------- */

#define VECTORS_SIZE 12288

/* What a call finds, as the test reads it. The places are in the assembly below too. */
static struct {
    uint64_t general[16];
    uint64_t flags;
    uint64_t selectors[6];
    uint64_t fs_base, gs_base;
    uint64_t xcr0;
    uint64_t padding[6];
    uint8_t vectors[VECTORS_SIZE]; /* of XSAVE */
} seen __attribute__((aligned(64), used));
_Static_assert(offsetof(__typeof__(seen), flags) == 128, "as in the assembly");
_Static_assert(offsetof(__typeof__(seen), selectors) == 136, "as in the assembly");
_Static_assert(offsetof(__typeof__(seen), fs_base) == 184, "as in the assembly");
_Static_assert(offsetof(__typeof__(seen), xcr0) == 200, "as in the assembly");
_Static_assert(offsetof(__typeof__(seen), vectors) == 256, "as in the assembly");

void call_wait_seeing(void);

/* clang-format off */
__asm__(
    ".pushsection .text\n"
    "call_wait_seeing:\n"
    "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov $2, %eax\n"
    "out %eax, $0x50\n"
    /* A call begins here. Nothing is needed to store a register but its place. */
    "mov %rax, seen(%rip)\n mov %rbx, seen+8(%rip)\n mov %rcx, seen+16(%rip)\n mov %rdx, seen+24(%rip)\n"
    "mov %rsi, seen+32(%rip)\n mov %rdi, seen+40(%rip)\n mov %rsp, seen+48(%rip)\n mov %rbp, seen+56(%rip)\n"
    "mov %r8, seen+64(%rip)\n mov %r9, seen+72(%rip)\n mov %r10, seen+80(%rip)\n mov %r11, seen+88(%rip)\n"
    "mov %r12, seen+96(%rip)\n mov %r13, seen+104(%rip)\n mov %r14, seen+112(%rip)\n mov %r15, seen+120(%rip)\n"
    "pushfq\n popq seen+128(%rip)\n"
    "mov %ds, seen+136(%rip)\n mov %es, seen+144(%rip)\n mov %fs, seen+152(%rip)\n mov %gs, seen+160(%rip)\n"
    "mov %ss, seen+168(%rip)\n mov %cs, seen+176(%rip)\n"
    "rdfsbase %rax\n mov %rax, seen+184(%rip)\n rdgsbase %rax\n mov %rax, seen+192(%rip)\n"
    "cmpl $0, kept+12288+64(%rip)\n je 1f\n"
    "xor %ecx, %ecx\n xgetbv\n mov %eax, seen+200(%rip)\n mov %edx, seen+204(%rip)\n"
    "xsave64 seen+256(%rip)\n jmp 2f\n"
    "1: fxsave64 seen+256(%rip)\n 2:\n"
    "pushq $2\n popfq\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "ret\n"
    ".popsection\n");
/* clang-format on */

static void xsave_look_for(void);

void call_wait(void) {
    memset(&seen, 0, sizeof seen);
    xsave_look_for();
    call_wait_seeing();
}

static ph_bytes registers_seen(void) {
    return (ph_bytes){&seen, sizeof seen};
}
PH_EXPORT(registers_seen, PH_BYTES);

#define RANGES_RESTORED 6u

/* Everything that ring 3 can read, one range at a time. False behind the last. */
static bool range_readable(unsigned index, uint64_t *start, uint64_t *size) {
    const struct ph__monitor_header *header = monitor_header();
    const uint64_t blob = PH__GVA(PH__MONITOR_GPA);
    const uint64_t ring = control->trace.ring_size;
    const struct {
        uint64_t start, size;
    } ranges[] = {
        {control->arena_gva, control->arena_size},
        {control->bookkeeping_gva, control->bookkeeping_size},
        {(uint64_t)__executable_start, (uint64_t)_end - (uint64_t)__executable_start},
        {blob, header->stubs},
        {blob + header->data, header->bss_end - header->data},
        {PH__GVA(PH__MONITOR_STACK_GPA), PH__MONITOR_STACK_SIZE},
        {control->stack_gva, control->stack_size}, /* from here on: not the same in every call */
        {control->inbox_gva, (3 * control->box_size + PH__LARGE_PAGE_SIZE - 1) & ~(PH__LARGE_PAGE_SIZE - 1)},
        {PH__GVA(PH__IO_GPA), PH__IO_SIZE},
        {PH__GVA(PH__CONTROL_GPA), PH__CONTROL_SIZE},
        {PH__TRACE_GVA, ring ? PH__PAGE_SIZE + 2 * ring : 0},
    };

    if (index >= sizeof ranges / sizeof ranges[0])
        return false;
    *start = ranges[index].start;
    *size = ranges[index].size & ~7ull;
    return true;
}

/* How many words are the one whose complement is (inverted): the word itself must be nowhere else. */
static uint64_t pattern_count(uint64_t inverted) {
    uint64_t start, size, count = 0;

    for (unsigned i = 0; range_readable(i, &start, &size); i++) {
        const volatile uint64_t *words = (const volatile uint64_t *)start;
        for (uint64_t j = 0; j < size / 8; j++) {
            uint64_t word = words[j];
            __asm__("not %0" : "+r"(word));
            count += word == inverted;
        }
    }
    return count;
}
PH_EXPORT(pattern_count, PH_U64, PH_U64);

/* Reads all memory and does nothing with it. */
static void read_all(void) {
    pattern_count(0x0123456789abcdefull);
}
PH_EXPORT(read_all, PH_VOID);

/* A sum over what a restore must put back, as the guest sees it: not over messages, the control page, trace
 * and system calls' bytes, nor the stack on which the sum is made, nor (seen). The same whenever it is the
 * first call behind a restore. */
static uint64_t memory_sum(void) {
    const uint64_t left_out = (uint64_t)&seen;
    uint64_t start, size, sum = 1;

    for (unsigned i = 0; range_readable(i, &start, &size) && i < RANGES_RESTORED; i++)
        for (uint64_t at = start; at < start + size; at += 8)
            if (at - left_out >= sizeof seen)
                sum = sum * 0x9e3779b97f4a7c15ull + *(const uint64_t *)at;
    return sum;
}
PH_EXPORT(memory_sum, PH_U64);

/* System calls of each kind: 0, or the number of the first that does not do what it should. */
static uint32_t system_calls_work(void) {
    uint64_t time[2] = {0, 0}, random[2] = {0, 0};
    static const char text[] = "alive\n";

    int64_t pages = system_call(9, 0, 4 * PH__PAGE_SIZE, 3, 0x22, ~0ull, 0); /* mmap, private, anonymous */
    if (pages <= 0)
        return 9;
    for (unsigned i = 0; i < 4 * PH__PAGE_SIZE / 8; i++)
        if (((const volatile uint64_t *)pages)[i])
            return 100;
    *(volatile uint64_t *)pages = 1;
    if (system_call(10, (uint64_t)pages, PH__PAGE_SIZE, 1, 0, 0, 0) != 0 || /* mprotect */
        *(const volatile uint64_t *)pages != 1 ||
        system_call(10, (uint64_t)pages, PH__PAGE_SIZE, 3, 0, 0, 0) != 0)
        return 10;
    *(volatile uint64_t *)pages = 2;
    if (system_call(11, (uint64_t)pages, 4 * PH__PAGE_SIZE, 0, 0, 0, 0) != 0) /* munmap */
        return 11;
    int64_t heap = system_call(12, 0, 0, 0, 0, 0, 0); /* brk */
    if (heap <= 0 || system_call(12, (uint64_t)heap + 8192, 0, 0, 0, 0, 0) != heap + 8192)
        return 12;
    *(volatile uint64_t *)heap = 1;
    if (system_call(318, (uint64_t)random, sizeof random, 0, 0, 0, 0) != sizeof random || !random[0])
        return 318;                                                       /* getrandom */
    if (system_call(228, 1, (uint64_t)time, 0, 0, 0, 0) != 0 || !time[0]) /* clock_gettime, monotonic */
        return 228;
    if (system_call(1, 1, (uint64_t)text, sizeof text - 1, 0, 0, 0) != sizeof text - 1) /* write */
        return 1;
    if (system_call(39, 0, 0, 0, 0, 0, 0) <= 0) /* getpid */
        return 39;
    return 0;
}
PH_EXPORT(system_calls_work, PH_U32);

/* ---- the other one ------------------------------------------------------------------------------------- */

/* What it needs to the last, on a page that is not filled. */
static struct {
    uint8_t vectors[VECTORS_SIZE]; /* for XRSTOR */
    uint64_t xcr0;
    uint64_t pattern;
    uint64_t base; /* the pattern as an address that may be a base */
    uint64_t flags;
    uint64_t end;
    uint64_t port, count, at; /* of an I/O instruction */
    uint64_t has_xsave;       /* or else the vectors are those of FXSAVE */
    uint64_t string[1024];
} kept __attribute__((aligned(4096), used));
_Static_assert(offsetof(__typeof__(kept), xcr0) == VECTORS_SIZE, "as in the assembly");
_Static_assert(offsetof(__typeof__(kept), has_xsave) == VECTORS_SIZE + 64, "as in the assembly");

#define CPUID_1_ECX_OSXSAVE (1u << 27)

static void xsave_look_for(void) {
    uint32_t eax, ebx, ecx, edx;

    __asm__ volatile("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(1), "c"(0));
    kept.has_xsave = (ecx & CPUID_1_ECX_OSXSAVE) != 0;
}

/* The ends. Each is entered with all registers full, and needs no stack. */
/* clang-format off */
#define IO_END(name, instruction)                                                                           \
    ".quad 1f\n .pushsection .text\n 1: mov kept+12288+40(%rip), %rdx\n mov kept+12288+48(%rip), %rcx\n"     \
    "mov kept+12288+56(%rip), %rdi\n mov kept+12288+56(%rip), %rsi\n 2: " instruction "\n jmp 2b\n"          \
    ".popsection\n"
#define END(code) ".quad 1f\n .pushsection .text\n 1: " code "\n ud2\n .popsection\n"
__asm__(
    ".pushsection .rodata\n"
    ".balign 8\n"
    "ends:\n"
    END("mov $2, %eax\n out %eax, $0x50")                                         /* 0: returns */
    END("ud2")
    END("mov %rax, 8")
    END("hlt")
    END("int3")
    END("mov $8, %eax\n mov $5, %edi\n out %eax, $0x50")                          /* 5: exits */
    END("mov $4, %eax\n out %eax, $0x50")                                         /* aborts */
    END("mov $10, %eax\n mov $15, %edi\n out %eax, $0x50")                        /* is killed */
    END("mov $3, %eax\n out %eax, $0x50")                                         /* a host call that is none */
    END("mov $11, %eax\n out %eax, $0x50")                                        /* no exception is open */
    END("mov $231, %eax\n mov $1, %edi\n syscall")                                /* 10: in the monitor's ruins */
    END("push %rax")                                                              /* no stack */
    END("mov kept+12288+24(%rip), %rax\n jmp *%rax")                              /* to nowhere */
    END("fwait\n fld1\n fwait")                                                   /* x87, all unmasked */
    END("xor %eax, %eax\n div %eax")
    END("1: jmp 1b")                                                              /* 15: time-out, until: */
    END("1: mov $7, %eax\n xor %edi, %edi\n out %eax, $0x50\n jmp 1b")
    END("1: xor %ecx, %ecx\n mov $0x50, %edx\n rep outsl\n jmp 1b")
    END("1: xor %ecx, %ecx\n mov $0x50, %edx\n rep insl\n jmp 1b")
    END("mov $7, %eax\n mov $-1, %rdi\n out %eax, $0x50")                         /* sleeps */
    IO_END(out_8, "out %al, %dx")                                                 /* 20 */
    IO_END(out_16, "out %ax, %dx")
    IO_END(out_32, "out %eax, %dx")
    IO_END(in_8, "in %dx, %al")
    IO_END(in_16, "in %dx, %ax")
    IO_END(in_32, "in %dx, %eax")
    IO_END(outs_8, "outsb")
    IO_END(outs_16, "outsw")
    IO_END(outs_32, "outsl")
    IO_END(ins_8, "insb")
    IO_END(ins_16, "insw")                                                        /* 30 */
    IO_END(ins_32, "insl")
    IO_END(rep_outs_8, "rep outsb")
    IO_END(rep_outs_16, "rep outsw")
    IO_END(rep_outs_32, "rep outsl")
    IO_END(rep_ins_8, "rep insb")
    IO_END(rep_ins_16, "rep insw")
    IO_END(rep_ins_32, "rep insl")                                                /* 37 */
    /* 38: return, with a step that is due behind the doorbell, and that a load of SS holds back */
    END("lea kept+4096(%rip), %rsp\n mov $2, %eax\n push kept+12288+24(%rip)\n orq $0x100, (%rsp)\n popfq\n"
        "out %eax, $0x50")
    END("lea kept+4096(%rip), %rsp\n mov $2, %eax\n mov %ss, %ecx\n push kept+12288+24(%rip)\n"
        "orq $0x100, (%rsp)\n popfq\n mov %ecx, %ss\n out %eax, $0x50")
    END("mov $2, %eax\n mov %ss, %ecx\n mov %ecx, %ss\n out %eax, $0x50")
    ".quad 0\n"
    ".popsection\n");
/* clang-format on */
extern const uint64_t ends[] __asm__("ends");

static uint32_t end_count(void) {
    uint32_t count = 0;

    while (ends[count])
        count++;
    return count;
}
PH_EXPORT(end_count, PH_U32);

static void fill(uint64_t address, uint64_t size, uint64_t pattern) {
    uint64_t *words = (uint64_t *)address;

    for (uint64_t i = 0; i < size / 8; i++)
        words[i] = pattern;
}

/* An XSAVE image that is all pattern, but where the processor wants something else. AMX is left alone. Its
 * beginning is one of FXSAVE. */
static void vectors_prepare(uint64_t pattern, bool keys) {
    uint32_t low = 3, high;

    if (kept.has_xsave)
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    fill((uint64_t)kept.vectors, sizeof kept.vectors, pattern);
    kept.xcr0 = low & 0xe7; /* x87 SSE AVX AVX-512 */
    if (keys && low & 0x200)
        kept.xcr0 |= 0x200;
    *(uint16_t *)&kept.vectors[0] = 0x0f40;  /* control: all exceptions unmasked */
    *(uint16_t *)&kept.vectors[2] = 0xbcbf;  /* status: all of them pending */
    kept.vectors[4] = 0xff;                  /* no register is empty */
    *(uint32_t *)&kept.vectors[24] = 0xffbf; /* MXCSR */
    memset(&kept.vectors[512], 0, 64);
    *(uint64_t *)&kept.vectors[512] = kept.xcr0;
    if (keys) {
        uint32_t size, place, ecx = 9, edx;
        __asm__ volatile("cpuid" : "=a"(size), "=b"(place), "+c"(ecx), "=d"(edx) : "a"(13));
        if (size >= 4 && place < VECTORS_SIZE - 8)
            *(uint64_t *)&kept.vectors[place] = 0x55555554; /* all but key 0, which this runs with */
    }
}

/* Every word that ring 3 can write is (pattern), but for (kept), the outbox's honest answer, and the stack
 * that is in use. */
static void memory_fill(uint64_t pattern) {
    const struct ph__control page = *control;
    const struct ph__monitor_header *header = monitor_header();
    const uint64_t blob = PH__GVA(PH__MONITOR_GPA);
    const uint64_t messages = (3 * page.box_size + PH__LARGE_PAGE_SIZE - 1) & ~(PH__LARGE_PAGE_SIZE - 1);
    static const struct ph__frame head = {.kind = PH__FRAME_RESULT};
    extern char bss_start[] __asm__("__bss_start");

    fill(page.arena_gva, page.arena_size, pattern);
    fill(page.bookkeeping_gva, page.bookkeeping_size, pattern);
    fill(PH__GVA(PH__MONITOR_STACK_GPA), PH__MONITOR_STACK_SIZE, pattern);
    fill(PH__GVA(PH__IO_GPA), PH__IO_SIZE, pattern);
    fill(page.inbox_gva, messages, pattern);
    if (page.trace.ring_size)
        fill(PH__TRACE_GVA, PH__PAGE_SIZE + page.trace.ring_size, pattern);
    fill(blob + header->data, (header->bss_end - header->data) & ~7ull, pattern);
    ph__frame_encode((void *)page.outbox_gva, page.box_size, page.max_message, &head, NULL, 0);
    uint64_t first = ((uint64_t)bss_start + 7) & ~7ull;
    fill(first, (uint64_t)&kept - first, pattern);
    fill((uint64_t)(&kept + 1), ((uint64_t)_end & ~7ull) - (uint64_t)(&kept + 1), pattern);
    fill((uint64_t)kept.string, sizeof kept.string, pattern);
}

/* Asks for protections of all kinds, also of pages that are not the guest's to change. What is refused is as
 * good. */
static void protections_forge(const struct ph__control *page) {
    const uint64_t arena = page->arena_gva;
    const uint64_t targets[] = {PH__GVA(0),
                                PH__GVA(PH__CONTROL_GPA),
                                PH__GVA(PH__TABLES_GPA),
                                PH__GVA(PH__MONITOR_GPA),
                                PH__GVA(PH__SYSTEM_SIZE),
                                page->inbox_gva,
                                page->bookkeeping_gva,
                                PH__TRACE_GVA,
                                0x8000000000000000ull};

    for (uint64_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        for (uint64_t protection = 0; protection < 8; protection++)
            ph__doorbell_ring(PH__DOORBELL_PROTECT, targets[i], PH__PAGE_SIZE, protection);
    for (uint64_t i = 0; i < 24; i++)
        ph__doorbell_ring(PH__DOORBELL_PROTECT, arena + 2 * i * PH__PAGE_SIZE, PH__PAGE_SIZE, i % 8);
}

/* How much to spoil. */
enum { SPOIL_KEYS = 1, SPOIL_PROTECTIONS = 2, SPOIL_NO_MEMORY = 4, SPOIL_RING = 8 };

/* Fills everything, and comes to its end number (end). */
static void spoil(uint64_t pattern, uint32_t end, uint32_t how, uint32_t port, uint64_t count) {
    vectors_prepare(pattern, how & SPOIL_KEYS);
    kept.pattern = pattern;
    kept.base = pattern >> 17;
    kept.flags = 0x244cd7; /* ID AC NT DF and those of arithmetic */
    kept.end = ends[end];
    kept.port = port;
    kept.count = count;
    kept.at =
        how & SPOIL_RING ? PH__TRACE_RING_GVA + control->trace.ring_size / 2 : (uint64_t)&kept.string[512];
    const struct ph__control *page = control; /* which will be no more */
    uint64_t stack = control->stack_gva, stack_words = control->stack_size / 8;
    if (how & SPOIL_NO_MEMORY)
        stack_words = 0;
    else
        memory_fill(pattern);
    if (how & SPOIL_PROTECTIONS)
        protections_forge(page);
    /* clang-format off */
    __asm__ volatile(
        "cld\n rep stosq\n"
        "cmpl $0, kept+12288+64(%%rip)\n je 1f\n"
        "mov kept+12288(%%rip), %%eax\n xor %%edx, %%edx\n xrstor64 kept(%%rip)\n jmp 2f\n"
        "1: fxrstor64 kept(%%rip)\n 2:\n"
        "mov $3, %%eax\n mov %%eax, %%ds\n mov %%eax, %%es\n mov %%eax, %%fs\n mov %%eax, %%gs\n"
        "mov kept+12288+16(%%rip), %%rax\n wrfsbase %%rax\n wrgsbase %%rax\n"
        "lea kept+4096(%%rip), %%rsp\n push kept+12288+24(%%rip)\n popfq\n"
        "mov kept+12288+8(%%rip), %%rax\n"
        "mov %%rax, %%rbx\n mov %%rax, %%rcx\n mov %%rax, %%rdx\n mov %%rax, %%rsi\n mov %%rax, %%rdi\n"
        "mov %%rax, %%rbp\n mov %%rax, %%rsp\n mov %%rax, %%r8\n mov %%rax, %%r9\n mov %%rax, %%r10\n"
        "mov %%rax, %%r11\n mov %%rax, %%r12\n mov %%rax, %%r13\n mov %%rax, %%r14\n mov %%rax, %%r15\n"
        "jmp *kept+12288+32(%%rip)"
        : : "D"(stack), "c"(stack_words), "a"(pattern) : "memory");
    /* clang-format on */
    __builtin_unreachable();
}
PH_EXPORT(spoil, PH_VOID, PH_U64, PH_U32, PH_U32, PH_U32, PH_U64);

/* Faults where there are no protection keys. */
static uint32_t keys_try(void) {
    uint32_t low, high;

    __asm__ volatile("rdpkru" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
PH_EXPORT(keys_try, PH_U32);

/* Leaves its pattern in (pages) pages of the arena, of which the first 64 can only be read where (read_only)
 * has a bit, and returns as an honest guest. */
static void leave(uint64_t pattern, uint32_t pages, uint64_t read_only) {
    for (uint64_t i = 0; i < 64; i++)
        ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva + i * PH__PAGE_SIZE, PH__PAGE_SIZE, 3);
    for (uint64_t i = 0; i < pages; i++)
        fill(control->arena_gva + i * PH__PAGE_SIZE, PH__PAGE_SIZE, pattern + i);
    for (uint64_t i = 0; i < 64; i++)
        if (read_only >> i & 1)
            ph__doorbell_ring(PH__DOORBELL_PROTECT, control->arena_gva + i * PH__PAGE_SIZE, PH__PAGE_SIZE, 1);
}
PH_EXPORT(leave, PH_VOID, PH_U64, PH_U32, PH_U64);

/* Which of the first 64 pages of the arena a system call may not write to. */
static uint64_t read_only_pages(void) {
    uint64_t pages = 0;

    for (uint64_t i = 0; i < 64; i++)
        if (system_call(318, control->arena_gva + i * PH__PAGE_SIZE, 1, 0, 0, 0, 0) != 1) /* getrandom */
            pages |= 1ull << i;
    return pages;
}
PH_EXPORT(read_only_pages, PH_U64);
