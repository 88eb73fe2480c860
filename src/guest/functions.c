/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The functions that -finstrument-functions calls: every function is a span. There is one site for all of
 * them; its records have the function's address, and the host knows the names. In an object of its own, which
 * only programs compiled so link.
 *
 * The exit has to find the position of the entry, so open functions are kept on a stack of our own. longjmp
 * leaves entries on it, and handlers come in between, so it is never taken for exact: an entry is found by
 * function and stack pointer. These run before anything else in a program does, in IFUNC resolvers too.
 */
#include "internal.h"

#include "abi/recorder.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define DEPTH_MAX 4096u

/* clang-format off */
__asm__(".pushsection ph_site_words, \"aR\", @progbits\n"
        ".balign 8\n"
        ".globl ph__function_word\n"
        ".hidden ph__function_word\n"
        "ph__function_word: .quad 0\n"
        ".popsection\n"
        ".pushsection .rodata.ph_fields, \"a\", @progbits\n"
        "1: .asciz \"function\"\n"
        "2: .asciz \"\"\n"
        ".long ph__note - .\n"
        ".popsection\n"
        ".pushsection ph_sites, \"aR\", @progbits\n"
        ".balign 8\n"
        ".long 1b - .\n"
        ".long 2b - .\n"
        ".long 2b - .\n"
        ".long 2b - .\n"
        ".long ph__function_word - .\n"
        ".long 0\n"
        ".byte 8, 3, 0\n"
        ".zero 5\n"
        ".popsection");
/* clang-format on */
_Static_assert(PH__SITE_FUNCTION == 8 && PH_LEVEL_INFO == 3, "the row above");

extern const volatile uint64_t ph__function_word __attribute__((visibility("hidden")));

/* A function that was entered and, as far as is known, not left. */
struct open {
    const void *function;
    const void *place; /* where its entry hook returned to */
    uint64_t stack;    /* the stack pointer in there */
    uint64_t position;
};

static struct open open[DEPTH_MAX];
static volatile uint32_t depth;
static volatile uint32_t beyond; /* functions deeper than that */

/* NOLINTBEGIN(cert-dcl37-c): the compiler wants these names */
void __cyg_profile_func_enter(void *function, void *call_site) __attribute__((no_instrument_function));
void __cyg_profile_func_exit(void *function, void *call_site) __attribute__((no_instrument_function));
/* NOLINTEND(cert-dcl37-c) */

/* The hook's frame, and how much higher the stack pointer of the function that calls it is: its own records
 * must not look as if they came from above its span. */
#define STACK() ((uint64_t)__builtin_frame_address(0))
#define STACK_OF_CALL 16

/* Returns how many are open when one is entered at (stack) and (place). Those in frames below are gone. So is
 * one in the same frame that was entered at the same place, and what it called: inlined functions share a
 * frame, but each has its own code. */
static uint32_t open_prune(uint64_t stack, const void *place, bool *is_again) {
    uint32_t count = depth;

    *is_again = false;
    for (uint32_t index = count; index > 0 && open[index - 1].stack <= stack; index--) {
        if (open[index - 1].stack < stack || open[index - 1].place == place) {
            count = index - 1;
            beyond = 0;
            *is_again = open[index - 1].stack == stack;
        }
    }
    return count;
}

void __cyg_profile_func_enter(void *function, void *call_site) {
    uint64_t word = ph__function_word;
    uint64_t stack = STACK();

    if (__builtin_expect(word == 0, 1))
        return;
    bool is_again;
    uint32_t index = open_prune(stack, __builtin_return_address(0), &is_again);
    if (index == DEPTH_MAX) {
        beyond++;
        return;
    }
    /* Ours before it is filled in: a handler takes the one above. */
    depth = index + 1;
    struct open *entry = &open[index];
    entry->position = 0;
    entry->function = function;
    entry->place = __builtin_return_address(0);
    entry->stack = stack;
    const uint64_t words[] = {
        (word & ~PH__RECORD_LENGTH_MASK) | 4 | (stack + STACK_OF_CALL) >> 4 << PH__RECORD_STACK_SHIFT,
        0,
        (uintptr_t)function,
        (uintptr_t)call_site | (is_again ? PH__RECORD_CALLED_AGAIN : 0),
    };
    entry->position = ph__ring_write(words, 4, false);
}

/* The index of the entry that (function) leaves now, DEPTH_MAX if there is none. When the exit is the last
 * thing in a function, the compiler jumps to it with the frame already gone (is_jump): then the function's
 * own frame is the highest one below. Else the stack pointer is as at the entry, or lower after alloca. */
static uint32_t entry_find(const void *function, uint64_t stack, bool is_jump) {
    uint32_t index = depth;

    while (index > 0 && open[index - 1].stack < stack)
        index--;
    if (is_jump)
        return index < depth && open[index].function == function ? index : DEPTH_MAX;
    for (uint32_t same = index; same > 0 && open[same - 1].stack == stack; same--)
        if (open[same - 1].function == function)
            return same - 1;
    return index > 0 && open[index - 1].function == function && !beyond ? index - 1 : DEPTH_MAX;
}

void __cyg_profile_func_exit(void *function, void *call_site) {
    if (__builtin_expect(depth == 0, 1))
        return;
    uint32_t index = entry_find(function, STACK(), __builtin_return_address(0) == call_site);
    if (index == DEPTH_MAX) {
        if (beyond)
            beyond--;
        return;
    }
    uint64_t position = open[index].position;
    depth = index;
    beyond = 0;
    ph__trace_span_end(position);
}
