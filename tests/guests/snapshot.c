/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Keeps state of every kind, for tests of snapshots: globals, heap, mapped pages, protections, the C
 * library's own.
 */
#include <pinhole/guest.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static uint32_t counter;
static uint32_t hook_runs; /* and in which order */
static uint32_t hook_order;
static char filled_data[3 * 4096] = "as in the file";
static char *heap[64];
static char *mapped;

static void first_hook(void) {
    hook_runs++;
    hook_order = 1;
    (void)ph_strf("for the arena");
}
PH_ON_RESTORE(first_hook);

static void second_hook(void) {
    if (hook_order == 1)
        hook_order = 2;
}
PH_ON_RESTORE(second_hook);

static uint32_t count(void) {
    return ++counter;
}
PH_EXPORT(count, PH_U32);

static uint32_t hooks(void) {
    return hook_runs * 10 + hook_order;
}
PH_EXPORT(hooks, PH_U32);

/* Changes something everywhere. */
static void change(uint32_t salt) {
    char path[64];

    counter += salt;
    memset(filled_data, (int)salt, sizeof filled_data);
    for (size_t i = 0; i < 64; i++) {
        free(heap[i]);
        heap[i] = malloc(1000 + 100 * i);
        if (heap[i])
            memset(heap[i], (int)(salt + i), 1000 + 100 * i);
    }
    char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        ph_fail(1, "no pages");
    memset(pages, (int)salt, 64 * 4096);
    if (mprotect(pages + 5 * 4096, 4096, PROT_NONE) != 0 ||
        mprotect(pages + 9 * 4096, 3 * 4096, PROT_READ) != 0)
        ph_fail(2, "no protection");
    mapped = pages;
    memset(path, (int)salt, sizeof path);
    signal(SIGUSR1, SIG_IGN);
    printf("salt %u\n", salt);
}
PH_EXPORT(change, PH_VOID, PH_U32);

/* Maps a page with a protection of its own, so that a large page is split. */
static uint64_t keep_read_only(void) {
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        ph_fail(1, "no page");
    page[0] = 'r';
    if (mprotect(page, 4096, PROT_READ) != 0)
        ph_fail(2, "no protection");
    return (uint64_t)page;
}
PH_EXPORT(keep_read_only, PH_U64);

static void protect(uint64_t address, uint64_t size, uint32_t protection) {
    if (mprotect((void *)address, size, (int)protection) != 0)
        ph_fail(2, "no protection");
}
PH_EXPORT(protect, PH_VOID, PH_U64, PH_U64, PH_U32);

/* A function that returns (value), always in the same place: written anew, and executable afterwards. */
static uint8_t *code;

static void write_code(uint32_t value) {
    const uint8_t bytes[] = {0xb8, (uint8_t)value, 0, 0, 0, 0xc3}; /* mov $value, %eax; ret */

    if (!code)
        code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (mprotect(code, 4096, PROT_READ | PROT_WRITE) != 0)
        ph_fail(2, "no protection");
    memcpy(code, bytes, sizeof bytes);
    if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
        ph_fail(2, "no protection");
}
PH_EXPORT(write_code, PH_VOID, PH_U32);

static uint32_t run_code(void) {
    return ((uint32_t(*)(void))(uintptr_t)code)();
}
PH_EXPORT(run_code, PH_U32);

static void store(uint64_t address) {
    *(volatile char *)address = 'w';
}
PH_EXPORT(store, PH_VOID, PH_U64);

static uint32_t load(uint64_t address) {
    return *(volatile unsigned char *)address;
}
PH_EXPORT(load, PH_U32, PH_U64);

/* Writes (pages) fresh pages and gives them back to the C library. */
static void greedy(uint32_t pages) {
    char *bytes = mmap(NULL, pages * 4096ull, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (bytes == MAP_FAILED)
        ph_fail(1, "no pages");
    for (uint32_t i = 0; i < pages; i++)
        bytes[i * 4096ull] = 'g';
}
PH_EXPORT(greedy, PH_VOID, PH_U32);

/* Writes pages, unmaps them, maps as many: they must be zero, also where a snapshot lies below. */
static bool recycle(uint32_t pages) {
    const size_t size = pages * 4096ull;

    for (int turn = 0; turn < 3; turn++) {
        char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
            return false;
        for (size_t i = 0; i < size; i++)
            if (bytes[i])
                return false;
        memset(bytes, 'x', size);
        if (munmap(bytes, size) != 0)
            return false;
    }
    return true;
}
PH_EXPORT(recycle, PH_BOOL, PH_U32);

/* Leaves pages full of a pattern behind, mapped and in use. */
static uint64_t hold(uint32_t pages) {
    char *bytes = mmap(NULL, pages * 4096ull, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        ph_fail(1, "no pages");
    memset(bytes, 'h', pages * 4096ull);
    mapped = bytes;
    return (uint64_t)bytes;
}
PH_EXPORT(hold, PH_U64, PH_U32);

static void let_go(uint32_t pages) {
    munmap(mapped, pages * 4096ull);
}
PH_EXPORT(let_go, PH_VOID, PH_U32);

static ph_bytes random_bytes(void) {
    char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        ph_fail(1, "no random bytes");
    return ph_bytes_copy(bytes, sizeof bytes);
}
PH_EXPORT(random_bytes, PH_BYTES);

static uint64_t realtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}
PH_EXPORT(realtime, PH_U64);

static uint32_t read_byte(void) {
    unsigned char byte;
    return read(0, &byte, 1) == 1 ? byte : 1000;
}
PH_EXPORT(read_byte, PH_U32);

static void spin(void) {
    for (;;)
        __asm__ volatile("");
}
PH_EXPORT(spin, PH_VOID);

static void undefined(void) {
    __asm__ volatile("ud2");
}
PH_EXPORT(undefined, PH_VOID);

static void null_write(void) {
    __asm__ volatile("movl $1, 0" : : : "memory");
}
PH_EXPORT(null_write, PH_VOID);

static void give_up(void) {
    ph_abort(7, "enough");
}
PH_EXPORT(give_up, PH_VOID);

static void leave(void) {
    exit(3);
}
PH_EXPORT(leave, PH_VOID);

static void kill_self(void) {
    raise(SIGTERM);
}
PH_EXPORT(kill_self, PH_VOID);

static void abort_libc(void) {
    abort();
}
PH_EXPORT(abort_libc, PH_VOID);

static void overflow_stack(const volatile char *above) {
    volatile char bytes[4096];
    bytes[0] = above ? *above : 0;
    if (bytes[0] != 1)
        overflow_stack(bytes);
    bytes[1] = 1;
}
static void stack_overflow(void) {
    overflow_stack(NULL);
}
PH_EXPORT(stack_overflow, PH_VOID);

/* Handles its own fault, and stays in the handler until it is stopped. */
static void on_fault(int number) {
    (void)number;
    spin();
}
static void spin_in_handler(void) {
    signal(SIGSEGV, on_fault);
    null_write();
}
PH_EXPORT(spin_in_handler, PH_VOID);

static uint32_t traced(uint32_t number) {
    PH_SPAN("work", ph_u64("number", number));
    PH_EVENT("counted", ph_u64("number", number));
    return ++counter;
}
PH_EXPORT(traced, PH_U32, PH_U32);
