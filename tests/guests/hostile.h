/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * For the guests hostile_*.c: programs without a libc that speak the protocol by hand, so that they can break
 * it. Each lie is one small export; the test calls one in a fresh sandbox and looks at what the host makes of
 * it. An honest export beside them, `honest`, shows that the rest of the guest is sound.
 *
 * hostile_start.c is linked with each: it starts, waits for calls, answers them. A program argument asks for
 * a lie before the first call; start_lie then gets it.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <pinhole/guest.h>

#include "abi/control.h"
#include "abi/doorbell.h"
#include "abi/frame.h"
#include "abi/layout.h"
#include "abi/monitor.h"

/* The control page. */
extern const struct ph__control *control;

/* Set by an export whose own frame is in the outbox: the loop then sends that. */
extern bool answered;

/* Sends the frame in the outbox and waits for the next call. A guest that has one of its own sees what each
 * call finds in the registers. */
void call_wait(void);

/* Called before READY with the program's arguments behind argv[0], if there are any. */
void start_lie(int count, char **arguments);

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int byte, size_t size);
void *memchr(const void *bytes, int byte, size_t size);
size_t strlen(const char *text);

/* A decimal or 0x number. */
uint64_t number_parse(const char *text);

static inline void *outbox(void) {
    return (void *)control->outbox_gva;
}

/* An export void(void) whose body is (code), inline assembly. What it leaves in the registers is thrown away.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): code cannot be in parentheses */
#define LIE_ASM(name, code)                                                                                  \
    static void name(void) {                                                                                 \
        __asm__ volatile(code                                                                                \
                         :                                                                                   \
                         :                                                                                   \
                         : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", \
                           "r14", "r15", "memory", "cc");                                                    \
    }                                                                                                        \
    PH_EXPORT(name, PH_VOID)

/* A Linux system call. */
static inline int64_t system_call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                  uint64_t f) {
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;
    int64_t answer;

    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
/* NOLINTEND(bugprone-macro-parentheses) */

/* Where the monitor's parts are, by the header that everybody may read. */
static inline const struct ph__monitor_header *monitor_header(void) {
    return (const struct ph__monitor_header *)PH__GVA(PH__MONITOR_GPA);
}

static inline struct ph__monitor_state *monitor_state(void) {
    return (struct ph__monitor_state *)(PH__GVA(PH__MONITOR_GPA) + monitor_header()->state);
}

/* xorshift64*: small, and the same on host and guest for the same seed, which is never 0. */
static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

#endif
