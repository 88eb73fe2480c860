/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Does anything at random: doorbells, system calls and faults with rubbish in registers, boxes and the
 * monitor's memory; and code that the test has written. What it does follows from its seed alone.
 */
#include "hostile.h"

/* NOLINTBEGIN(clang-analyzer-core.*): the analyzer does not know that a host call fills its result */
PH_IMPORT(take_text, PH_I32, PH_STR);
PH_IMPORT(give_bytes, PH_BYTES, PH_U64, PH_BOOL);
/* NOLINTEND(clang-analyzer-core.*) */

/* The rows of the imports exist because something could use them. */
__attribute__((noipa)) void ph__host_call(const void *entry, ph_value *values) {
    (void)entry;
    values[0] = (ph_value){.type = PH_VOID};
}

__attribute__((noipa)) int32_t ph__host_call_try(const void *entry, ph_value *values) {
    ph__host_call(entry, values);
    return 0;
}

static void imports_use(void) {
    take_text("");
    give_bytes(0, false);
}
PH_EXPORT(imports_use, PH_VOID);

static uint64_t pick(uint64_t *state, uint64_t count) {
    return random_next(state) % count;
}

/* A number that somebody might not have thought of. */
static uint64_t word(uint64_t *state) {
    const uint64_t words[] = {
        0,
        1,
        2,
        3,
        8,
        4095,
        4096,
        65535,
        65536,
        65537,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        0x100000000,
        0x7fffffffffff,
        0x800000000000,
        1ull << 63,
        ~0ull,
        ~0ull - 4095,
        control->inbox_gva,
        control->outbox_gva,
        control->outbox_gva + control->box_size - 8,
        control->image_gva,
        control->arena_gva,
        control->arena_gva + control->arena_size - 4096,
        control->stack_gva,
        control->bookkeeping_gva,
        PH__GVA(PH__CONTROL_GPA),
        PH__GVA(PH__TABLES_GPA),
        PH__GVA(PH__MONITOR_GPA),
        PH__GVA(PH__MONITOR_STACK_GPA),
        PH__GVA(PH__IO_GPA),
        PH__WINDOW_GVA,
    };

    switch (pick(state, 4)) {
    case 0:
        return random_next(state);
    case 1:
        return pick(state, 64);
    default:
        return words[pick(state, sizeof words / sizeof words[0])];
    }
}

/* ---- rubbish in memory --------------------------------------------------------------------------------- */

/* A frame of a plausible shape in the outbox. */
static void frame_write(uint64_t *state) {
    struct ph__frame *frame = outbox();
    struct ph__slot *slots = (struct ph__slot *)(frame + 1);

    *frame = (struct ph__frame){
        .size = pick(state, 4) ? (uint32_t)(32 + pick(state, 512)) : (uint32_t)word(state),
        .kind = (uint16_t)pick(state, 5),
        .count = (uint8_t)(pick(state, 8) ? pick(state, 3) : pick(state, 256)),
        .level = pick(state, 8) ? 0 : 1,
        .index = (uint32_t)pick(state, 4),
        .code = (int32_t)word(state),
    };
    for (unsigned i = 0; i < 3; i++)
        slots[i] = (struct ph__slot){
            .type = (uint32_t)pick(state, 11),
            .length = pick(state, 2) ? (uint32_t)pick(state, 64) : (uint32_t)word(state),
            .word = pick(state, 2) ? 80 + pick(state, 64) : word(state),
        };
}

/* Single words of the monitor's data and stack, which is enough to lead it astray. */
static void monitor_bend(uint64_t *state) {
    const struct ph__monitor_header *header = monitor_header();
    uint64_t *words = (uint64_t *)(PH__GVA(PH__MONITOR_GPA) + header->data);
    uint64_t count = (header->bss_end - header->data) / 8;

    for (uint64_t i = pick(state, 64); i > 0; i--)
        words[pick(state, count)] = word(state);
    monitor_state()->handled_signals = word(state);
    words = (uint64_t *)PH__GVA(PH__MONITOR_STACK_GPA);
    for (uint64_t i = pick(state, 32); i > 0; i--)
        words[pick(state, PH__MONITOR_STACK_SIZE / 8)] = word(state);
}

/* ---- what to do ---------------------------------------------------------------------------------------- */

/* Mostly what goes on afterwards; an end would come too soon too often. */
static void doorbell(uint64_t *state) {
    static const uint32_t that_go_on[] = {PH__DOORBELL_HOST_CALL, PH__DOORBELL_WRITE,   PH__DOORBELL_READ,
                                          PH__DOORBELL_SLEEP,     PH__DOORBELL_PROTECT, PH__DOORBELL_ZERO};
    uint32_t operation = that_go_on[pick(state, 6)];
    uint64_t rdi = word(state);
    uint64_t rsi = word(state);

    if (pick(state, 16) == 0)
        operation = pick(state, 4) ? (uint32_t)pick(state, 16) : (uint32_t)random_next(state);
    switch (operation) {
    case PH__DOORBELL_HOST_CALL:
        frame_write(state);
        if (pick(state, 8)) {
            const struct ph__frame head = {.kind = PH__FRAME_CALL, .index = (uint32_t)pick(state, 2)};
            const ph_value text = {.type = PH_STR, .str = "hello"};
            const ph_value pair[] = {{.type = PH_U64, .u64 = rdi}, {.type = PH_BOOL, .boolean = rdi & 1}};
            ph__frame_encode(outbox(), control->box_size, control->max_message, &head,
                             head.index ? pair : &text, head.index ? 2 : 1);
        }
        break;
    case PH__DOORBELL_SLEEP:
        rdi = pick(state, 32) ? rdi % 1000 : rdi;
        break;
    case PH__DOORBELL_WRITE:
    case PH__DOORBELL_READ:
        rdi = pick(state, 4) ? pick(state, 3) : rdi;
        rsi = pick(state, 16) ? rsi % (PH__IO_SIZE + 1) : rsi;
        break;
    case PH__DOORBELL_PROTECT:
    case PH__DOORBELL_ZERO:
        /* Not the page of this code or its data: that would be the end as well. */
        rdi = pick(state, 4) ? control->arena_gva + pick(state, 1024) * 4096 : rdi & ~0xffffffull;
        rsi = pick(state, 4) ? pick(state, 600) * 4096 : rsi;
        break;
    default:
        break;
    }
    ph__doorbell_ring(operation, rdi, rsi, pick(state, 8) ? pick(state, 8) : word(state));
}

/* Where a handler of ours goes on. */
static volatile uint64_t resume;

void restorer(void);

/* clang-format off */
__asm__(
    ".globl restorer\n"
    "restorer:\n"
    "mov $15, %eax\n" /* rt_sigreturn */
    "syscall\n"
    "ud2\n");
/* clang-format on */

#define CONTEXT_RIP 168 /* in ucontext_t */

static void handler(int signal, void *info, char *context) {
    (void)signal;
    (void)info;
    *(uint64_t *)(context + CONTEXT_RIP) = resume;
}

/* Handles the signal (signal), on the alternate stack or off it. */
static void handler_set(uint64_t *state, uint64_t signal) {
    const struct {
        uint64_t handler, flags, restorer, mask;
    } action = {(uint64_t)handler, 0x04000004 | (pick(state, 2) << 27) | (pick(state, 2) << 30),
                (uint64_t)restorer, pick(state, 4) ? 0 : random_next(state)};

    system_call(13, signal, (uint64_t)&action, 0, 8, 0, 0);
}

#define FAULT(instruction, ...)                                                                              \
    __asm__ volatile("lea 1f(%%rip), %%rbx\n mov %%rbx, %0\n" instruction "\n 1:"                            \
                     : "=m"(resume)                                                                          \
                     : __VA_ARGS__                                                                           \
                     : "rbx", "memory", "cc")

static void fault(uint64_t *state) {
    static const uint8_t signals[] = {4, 5, 8, 11};

    if (pick(state, 8))
        for (unsigned i = 0; i < sizeof signals; i++)
            handler_set(state, signals[i]);
    switch (pick(state, 6)) {
    case 0:
        FAULT("int3", "a"(0));
        break;
    case 1:
        FAULT("ud2", "a"(0));
        break;
    case 2:
        FAULT("div %1", "r"(0), "a"(1), "d"(0));
        break;
    case 3:
        FAULT("hlt", "a"(0));
        break;
    case 4:
        FAULT("movb $1, (%1)", "r"(word(state)));
        break;
    default:
        FAULT("mov (%1), %%rcx", "r"(word(state)), "c"(0));
        break;
    }
}

static void anything(uint64_t seed, uint32_t count) {
    uint64_t state = seed;

    while (count-- > 0)
        switch (pick(&state, 16)) {
        case 0:
            monitor_bend(&state);
            break;
        case 1:
        case 2:
            fault(&state);
            break;
        case 3:
        case 4:
        case 5:
        case 6:
        case 7:
            system_call(pick(&state, 8) ? pick(&state, 340) : word(&state), word(&state), word(&state),
                        word(&state), word(&state), word(&state), word(&state));
            break;
        case 8:
            frame_write(&state);
            break;
        default:
            doorbell(&state);
            break;
        }
}
PH_EXPORT(anything, PH_VOID, PH_U64, PH_U32);

/* ---- code ---------------------------------------------------------------------------------------------- */

/* A page of code that the test overwrites before it calls run_code. */
/* clang-format off */
__asm__(
    ".pushsection .text\n"
    ".balign 4096\n"
    "code:\n"
    ".fill 4096, 1, 0xcc\n"
    ".popsection");
/* clang-format on */
extern const uint8_t code[] __asm__("code");

static uint64_t code_address(void) {
    return (uint64_t)code;
}
PH_EXPORT(code_address, PH_U64);

/* Runs it with registers from (seed). The stack is sound, most of the time. */
static void run_code(uint64_t seed) {
    static uint64_t registers[16];
    uint64_t state = seed;

    for (unsigned i = 0; i < 16; i++)
        registers[i] = word(&state);
    if (pick(&state, 4))
        registers[15] = (uint64_t)__builtin_frame_address(0) - 4096;
    __asm__ volatile("mov 120(%0), %%rsp\n"
                     "mov 112(%0), %%rbp\n"
                     "mov 104(%0), %%r15\n"
                     "mov 96(%0), %%r14\n"
                     "mov 88(%0), %%r13\n"
                     "mov 80(%0), %%r12\n"
                     "mov 72(%0), %%r11\n"
                     "mov 64(%0), %%r10\n"
                     "mov 56(%0), %%r9\n"
                     "mov 48(%0), %%r8\n"
                     "mov 40(%0), %%rdi\n"
                     "mov 32(%0), %%rsi\n"
                     "mov 24(%0), %%rdx\n"
                     "mov 16(%0), %%rcx\n"
                     "mov 8(%0), %%rbx\n"
                     "mov 0(%0), %%rax\n"
                     "jmp code"
                     :
                     : "a"(registers)
                     : "memory");
    __builtin_unreachable();
}
PH_EXPORT(run_code, PH_VOID, PH_U64);
