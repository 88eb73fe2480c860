/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Uses what a call may be limited in, in known amounts: for tests of the limits and of the counts. At
 * start-up it does what the variable START says.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <pinhole/guest.h>

PH_IMPORT(visit, PH_I32, PH_I32);

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t nothing(int32_t value) {
    return value;
}
PH_EXPORT(nothing, PH_I32, PH_I32);

/* Keeps the processor busy for (ms). */
static void burn(uint32_t ms) {
    uint64_t end = now_ns() + (uint64_t)ms * 1000000u;

    while (now_ns() < end)
        ;
}
PH_EXPORT(burn, PH_VOID, PH_U32);

static __attribute__((noinline)) void tight_loop(void) {
    for (;;)
        __asm__ volatile("");
}

static void spin(void) {
    tight_loop();
}
PH_EXPORT(spin, PH_VOID);

/* Each turn is an exit at which the host has next to nothing to do. */
static void ring_for_ever(void) {
    char byte;

    for (;;)
        if (read(0, &byte, 1) > 0)
            abort();
}
PH_EXPORT(ring_for_ever, PH_VOID);

static void *page(void) {
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (made == MAP_FAILED)
        abort();
    return made;
}

static void protect_for_ever(void) {
    void *changed = page();

    for (;;)
        if (mprotect(changed, 4096, PROT_READ) != 0 || mprotect(changed, 4096, PROT_READ | PROT_WRITE) != 0)
            abort();
}
PH_EXPORT(protect_for_ever, PH_VOID);

/* (count) times (ms), each in one piece. */
static void sleep_often(uint32_t count, uint32_t ms) {
    for (uint32_t i = 0; i < count; i++) {
        struct timespec wanted = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
        nanosleep(&wanted, NULL);
    }
}
PH_EXPORT(sleep_often, PH_VOID, PH_U32, PH_U32);

/* Writes (count) times (size) bytes, at most 4096. Returns how many were taken. */
static uint64_t write_often(uint32_t count, uint32_t size) {
    static const char text[4096];
    uint64_t taken = 0;

    for (uint32_t i = 0; i < count; i++) {
        ssize_t got = write(1 + (int)(i & 1), text, size);
        if (got > 0)
            taken += (uint64_t)got;
    }
    return taken;
}
PH_EXPORT(write_often, PH_U64, PH_U32, PH_U32);

static int32_t visit_often(uint32_t count) {
    int32_t value = 0;

    for (uint32_t i = 0; i < count; i++)
        value = visit(value);
    return value;
}
PH_EXPORT(visit_often, PH_I32, PH_U32);

static void visit_and_spin(void) {
    visit(0);
    tight_loop();
}
PH_EXPORT(visit_and_spin, PH_VOID);

static sigjmp_buf landing;

static void land(int number) {
    (void)number;
    siglongjmp(landing, 1);
}

static volatile char *volatile nowhere = (volatile char *)0x10;

static void null_store(void) {
    *nowhere = 1;
}
PH_EXPORT(null_store, PH_VOID);

/* 3 host calls, 2 writes of 5 bytes, 1 read, 1 sleep, 2 changes of protection, 1 exception. */
static void known(void) {
    void *changed = page();
    char byte;

    visit_often(3);
    write_often(2, 5);
    if (read(0, &byte, 1) > 0)
        abort();
    sleep_often(1, 20);
    if (mprotect(changed, 4096, PROT_READ) != 0 || mprotect(changed, 4096, PROT_READ | PROT_WRITE) != 0)
        abort();
    signal(SIGSEGV, land);
    if (sigsetjmp(landing, 1) == 0)
        (void)*nowhere;
}
PH_EXPORT(known, PH_VOID);

/* Allocates until there is nothing left, gives that back, and then comes to the end (how): 0 is none. */
static void use_up_memory(uint32_t how) {
    enum { ABORT = 1, NULL_STORE, EXIT, TRAP, RAISE, LONG_REASON };
    static char reason[1024] = "-";
    struct block {
        struct block *next;
    } *blocks = NULL, *block;

    while ((block = malloc(1 << 20)) != NULL) {
        block->next = blocks;
        blocks = block;
    }
    while (blocks) {
        block = blocks->next;
        free(blocks);
        blocks = block;
    }
    if (how == ABORT)
        abort();
    if (how == NULL_STORE)
        *nowhere = 1;
    if (how == EXIT)
        _exit(3);
    if (how == TRAP)
        __builtin_trap();
    if (how == RAISE)
        raise(SIGTERM);
    if (how == LONG_REASON) {
        /* U+00E4, two bytes. */
        for (size_t i = 1; i < sizeof reason - 2; i += 2) {
            reason[i] = (char)0xc3;
            reason[i + 1] = (char)0xa4;
        }
        ph_abort(7, reason);
    }
}
PH_EXPORT(use_up_memory, PH_VOID, PH_U32);

static void event_often(uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        PH_EVENT("often", ph_u64("n", i));
}
PH_EXPORT(event_often, PH_VOID, PH_U32);

static void start(void) {
    const char *what = getenv("START");

    if (!what)
        return;
    if (strcmp(what, "spin") == 0)
        tight_loop();
    if (strcmp(what, "write") == 0)
        write_often(2, 50);
    if (strcmp(what, "visit") == 0)
        visit_often(10);
}
PH_INIT(start);
