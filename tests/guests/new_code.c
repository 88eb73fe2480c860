/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Makes code without end, each piece once, and runs it: an emulator that keeps what it has translated fills
 * up. The code computes, and so shows whether any of it was left out or run twice.
 */
#include <pinhole/guest.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

PH_IMPORT(visit, PH_U64, PH_U64); /* one more */

#define CODE_SIZE ((size_t)4 << 20)
#define LOOP_EVERY 500u
#define LOOP_TURNS 2000u

static volatile uint32_t signals;

static void on_signal(int number) {
    (void)number;
    signals = signals + 1;
}

static size_t put(unsigned char *code, size_t at, const void *bytes, size_t size) {
    memcpy(code + at, bytes, size);
    return at + size;
}

/* word * 5 + number, in %rax, and a jump to what follows. */
static size_t put_step(unsigned char *code, size_t at, uint32_t number) {
    static const unsigned char times[] = {0x48, 0x6b, 0xc0, 5}; /* imul $5, %rax, %rax */
    static const unsigned char plus[] = {0x48, 0x05};           /* add $..., %rax */
    static const unsigned char jump[] = {0xeb, 0x00};           /* jmp to what follows */

    at = put(code, at, times, sizeof times);
    at = put(code, at, plus, sizeof plus);
    at = put(code, at, &number, sizeof number);
    return put(code, at, jump, sizeof jump);
}

/* uint64_t code(uint64_t word): blocks that lead to each other, and each of which changes the word so that
 * none may be missing or come twice. Most of the time goes by in loops between them, whose blocks are not
 * new. (salt) makes the code another one. Returns how many blocks there are. */
static uint32_t write_code(unsigned char *code, uint32_t salt) {
    static const unsigned char begin[] = {0x48, 0x89, 0xf8}; /* mov %rdi, %rax */
    static const unsigned char turns[] = {0xb9};             /* mov $..., %ecx */
    static const unsigned char again[] = {0xff, 0xc9, 0x75}; /* dec %ecx; jnz ... */
    static const unsigned char end[] = {0xc3};               /* ret */
    const uint32_t turn_count = LOOP_TURNS;
    uint32_t count = 0;
    size_t at = put(code, 0, begin, sizeof begin);

    while (at + 64 < CODE_SIZE) {
        if (++count % LOOP_EVERY) {
            at = put_step(code, at, salt + count);
            continue;
        }
        at = put(code, at, turns, sizeof turns);
        at = put(code, at, &turn_count, sizeof turn_count);
        const size_t top = at;
        at = put(code, put_step(code, at, salt + count), again, sizeof again);
        const signed char back = (signed char)((int)top - (int)at - 1);
        at = put(code, at, &back, sizeof back);
    }
    put(code, at, end, sizeof end);
    return count;
}

/* The same, computed. */
static uint64_t expected(uint64_t word, uint32_t salt, uint32_t count) {
    for (uint32_t i = 1; i <= count; i++)
        for (uint32_t turn = 0; turn < (i % LOOP_EVERY ? 1 : LOOP_TURNS); turn++)
            word = word * 5 + salt + i;
    return word;
}

/* Runs (code) on (word), with (*vector) in the register of a vector unit, where it must stay. */
static uint64_t run(const unsigned char *code, uint64_t word, uint64_t *vector) {
    uint64_t kept = *vector;

    __asm__ volatile("sub $128, %%rsp\n\t" /* not into the red zone */
                     "movq %1, %%xmm7\n\t"
                     "call *%2\n\t"
                     "movq %%xmm7, %1\n\t"
                     "add $128, %%rsp"
                     : "=&a"(word), "+r"(kept)
                     : "r"(code), "D"(word)
                     : "xmm7", "memory", "cc");
    *vector = kept;
    return word;
}

/* (rounds) times new code, and after each a signal, a call of the host and a span. Returns how many blocks
 * have run. */
static uint64_t new_code(uint32_t rounds) {
    unsigned char *code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t word = 1, wanted = 1, total = 0;

    if (code == MAP_FAILED || signal(SIGUSR1, on_signal) == SIG_ERR)
        ph_fail(1, "no memory or no signals");
    for (uint32_t round = 0; round < rounds; round++) {
        PH_SPAN("round", ph_u64("number", round));
        const uint64_t mark = 0x1234567890abcdefull + round;
        uint64_t vector = mark;
        uint32_t count = write_code(code, round);
        wanted = expected(wanted, round, count);
        mprotect(code, CODE_SIZE, PROT_READ | PROT_EXEC);
        word = run(code, word, &vector);
        mprotect(code, CODE_SIZE, PROT_READ | PROT_WRITE);
        total += count;
        raise(SIGUSR1);
        if (word != wanted || vector != mark || signals != round + 1 || visit(total) != total + 1)
            ph_fail(2, "round %u has gone wrong", round);
    }
    return total;
}
PH_EXPORT(new_code, PH_U64, PH_U32);
