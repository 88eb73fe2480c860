/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Touches any address in any way, and fills the monitor's own memory with rubbish before it asks for things.
 */
#include "hostile.h"

/* In assembly: the compiler believes that it knows what is near address 0. */
static void store(uint64_t address) {
    __asm__ volatile("movb $0, (%0)" : : "r"(address) : "memory");
}

static uint64_t read_64(uint64_t address) {
    return *(volatile uint64_t *)address;
}
PH_EXPORT(read_64, PH_U64, PH_U64);

static void write_64(uint64_t address, uint64_t value) {
    *(volatile uint64_t *)address = value;
}
PH_EXPORT(write_64, PH_VOID, PH_U64, PH_U64);

/* A locked read-modify-write that leaves the value as it is. */
static void add_nothing(uint64_t address) {
    __asm__ volatile("lock addq $0, (%0)" : : "r"(address) : "memory", "cc");
}
PH_EXPORT(add_nothing, PH_VOID, PH_U64);

/* Jumps to (address) with a sound stack and the arguments in the registers that the monitor looks at. */
static uint64_t jump(uint64_t address, uint64_t rdi, uint64_t rcx) {
    uint64_t rax = 0;

    __asm__ volatile("call *%3"
                     : "+a"(rax), "+D"(rdi), "+c"(rcx)
                     : "r"(address)
                     : "rbx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
                       "cc");
    return rax;
}
PH_EXPORT(jump, PH_U64, PH_U64, PH_U64, PH_U64);

/* ---- the monitor's memory ------------------------------------------------------------------------------ */

static void fill(uint64_t address, uint64_t size, uint64_t *seed) {
    uint64_t *words = (uint64_t *)address;

    for (uint64_t i = 0; i < size / 8; i++)
        words[i] = *seed ? random_next(seed) : ~0ull;
}

/* Everything of the monitor that ring 3 can write: data, stack, I/O pages, bookkeeping, and the boxes. A
 * (seed) of 0 fills with ones. */
static void ruin(uint64_t seed) {
    const struct ph__monitor_header *header = monitor_header();
    uint64_t blob = PH__GVA(PH__MONITOR_GPA);
    uint64_t state = seed;

    fill(blob + header->data, (header->bss_end - header->data) & ~7ull, &state);
    fill(PH__GVA(PH__MONITOR_STACK_GPA), PH__MONITOR_STACK_SIZE, &state);
    fill(PH__GVA(PH__IO_GPA), PH__IO_SIZE, &state);
    fill(control->bookkeeping_gva, 4 * PH__PAGE_SIZE, &state);
    fill(control->inbox_gva, 3 * control->box_size, &state);
}

/* What to do in the ruins. */
enum { THEN_RETURN, THEN_SYSTEM_CALL, THEN_FAULT, THEN_BREAKPOINT, THEN_DIVIDE, THEN_ALL_SYSTEM_CALLS };

static int64_t ruin_then(uint64_t seed, uint32_t what, uint64_t number) {
    uint64_t state = seed | 1;

    ruin(seed);
    switch (what) {
    case THEN_SYSTEM_CALL:
        return system_call(number, random_next(&state), random_next(&state), random_next(&state),
                           random_next(&state), random_next(&state), random_next(&state));
    case THEN_FAULT:
        store(8);
        break;
    case THEN_BREAKPOINT:
        __asm__ volatile("int3");
        break;
    case THEN_DIVIDE:
        __asm__ volatile("div %%ecx" : : "a"(1), "d"(0), "c"(0) : "cc");
        break;
    case THEN_ALL_SYSTEM_CALLS:
        for (uint64_t i = 0; i < 512; i++) {
            ruin(seed ? random_next(&state) : 0);
            system_call(i, random_next(&state), PH__GVA(PH__IO_GPA), random_next(&state), 1, ~0ull, 0);
        }
        break;
    default:
        break;
    }
    return 0;
}
PH_EXPORT(ruin_then, PH_I64, PH_U64, PH_U32, PH_U64);

/* Claims handlers for the signals in (mask), then raises the exception (vector). The monitor has none. */
static void forge_handlers(uint64_t mask, uint32_t vector) {
    monitor_state()->handled_signals = mask;
    switch (vector) {
    case 0:
        __asm__ volatile("div %%ecx" : : "a"(1), "d"(0), "c"(0) : "cc");
        break;
    case 3:
        __asm__ volatile("int3");
        break;
    case 6:
        __asm__ volatile("ud2");
        break;
    case 13:
        __asm__ volatile("hlt");
        break;
    default:
        store(0x1008);
        break;
    }
}
PH_EXPORT(forge_handlers, PH_VOID, PH_U64, PH_U32);

/* The same, with a handler table full of rubbish as well. */
static void forge_handlers_and_ruin(uint64_t seed) {
    ruin(seed);
    forge_handlers(~0ull, 14);
}
PH_EXPORT(forge_handlers_and_ruin, PH_VOID, PH_U64);

/* ---- code and stacks ----------------------------------------------------------------------------------- */

static uint8_t data[64] = {0xc3};

/* Runs what it may only read and write. */
static void execute_data(void) {
    ((void (*)(void))(uintptr_t)data)();
}
PH_EXPORT(execute_data, PH_VOID);

static void execute_stack(void) {
    uint8_t code[16];
    void (*volatile entry)(void) = (void (*)(void))(uintptr_t)code;

    for (unsigned i = 0; i < sizeof code; i++)
        ((volatile uint8_t *)code)[i] = 0xc3;
    entry();
}
PH_EXPORT(execute_stack, PH_VOID);

#define CALL_MMAP 9
#define CALL_MPROTECT 10
#define PROTECTION_READ 1
#define PROTECTION_WRITE 2
#define PROTECTION_EXECUTE 4
#define MAP_PRIVATE_ANONYMOUS 0x22

static bool protect(const uint8_t *page, uint64_t size, uint64_t protection) {
    return system_call(CALL_MPROTECT, (uint64_t)(uintptr_t)page, size, protection, 0, 0, 0) == 0;
}

/* Gives every second one of 2 * (count) pages a protection of its own, with a function in it that returns its
 * number. Calls them all if they can be run, and reads the others. */
static bool stripe(uint32_t count, uint32_t protection) {
    const uint64_t size = 2 * PH__PAGE_SIZE * count;
    int64_t start =
        system_call(CALL_MMAP, 0, size, PROTECTION_READ | PROTECTION_WRITE, MAP_PRIVATE_ANONYMOUS, ~0ull, 0);
    uint8_t *pages = (uint8_t *)(uintptr_t)start;
    bool right = true;

    if (start < 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *page = pages + 2 * PH__PAGE_SIZE * i;
        page[0] = 0xb8; /* mov $i, %eax */
        *(uint32_t *)(uintptr_t)(page + 1) = i;
        page[5] = 0xc3; /* ret */
        page[PH__PAGE_SIZE] = (uint8_t)i;
        right = right && protect(page, PH__PAGE_SIZE, protection);
    }
    for (uint32_t i = 0; i < count && right; i++) {
        const uint8_t *page = pages + 2 * PH__PAGE_SIZE * i;
        right = !(protection & PROTECTION_EXECUTE) || ((uint32_t(*)(void))(uintptr_t)page)() == i;
        right = right && page[PH__PAGE_SIZE] == (uint8_t)i;
    }
    return right && protect(pages, size, PROTECTION_READ);
}
PH_EXPORT(stripe, PH_BOOL, PH_U32, PH_U32);

static void execute_arena(void) {
    uint8_t *code = (uint8_t *)control->arena_gva;

    code[0] = 0xc3;
    ((void (*)(void))(uintptr_t)code)();
}
PH_EXPORT(execute_arena, PH_VOID);

static void execute_outbox(void) {
    uint8_t *code = outbox();

    code[0] = 0xc3;
    ((void (*)(void))(uintptr_t)code)();
}
PH_EXPORT(execute_outbox, PH_VOID);

/* Changes its own code. */
static void patch_code(void) {
    *(volatile uint8_t *)(uintptr_t)patch_code = 0xc3;
}
PH_EXPORT(patch_code, PH_VOID);

/* Eats the stack in steps of (step) bytes, from (offset) bytes below where it is. */
static void overflow_stack(uint64_t step, uint64_t offset) {
    __asm__ volatile("sub %1, %%rsp\n"
                     "1: sub %0, %%rsp\n"
                     "movb $1, (%%rsp)\n"
                     "jmp 1b"
                     :
                     : "r"(step), "r"(offset)
                     : "memory", "cc");
}
PH_EXPORT(overflow_stack, PH_VOID, PH_U64, PH_U64);

/* With RSP = (rsp): an exception, a system call, a doorbell, a push. */
#define ON_STACK(name, code)                                                                                 \
    static void name(uint64_t rsp) {                                                                         \
        __asm__ volatile("mov %0, %%rsp\n" code : : "r"(rsp) : "rax", "rcx", "r11", "rdi", "memory", "cc");  \
        __builtin_trap();                                                                                    \
    }                                                                                                        \
    PH_EXPORT(name, PH_VOID, PH_U64)

ON_STACK(undefined_on_stack, "ud2");
ON_STACK(breakpoint_on_stack, "int3");
ON_STACK(push_on_stack, "push %%rax\n ud2");
ON_STACK(system_call_on_stack, "movl $39, %%eax\n syscall\n ud2"); /* getpid */
ON_STACK(doorbell_on_stack, "movl $7, %%eax\n xorl %%edi, %%edi\n outl %%eax, $0x50\n ud2");
ON_STACK(return_on_stack, "ret");
