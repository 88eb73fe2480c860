/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * brk, mmap, munmap, mremap, mprotect and madvise: memory comes zeroed, also when it was used before,
 * protections have effect, and wrong arguments have Linux's errors.
 */
#include "sys_check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul
#define RW (PROT_READ | PROT_WRITE)

static sigjmp_buf fault_return;

static void on_fault(int number) {
    (void)number;
    siglongjmp(fault_return, 1);
}

/* True if a write, or a read, of the byte faults. */
static bool faults(volatile char *byte, bool write) {
    if (sigsetjmp(fault_return, 1))
        return true;
    if (write)
        *byte = 1;
    else
        (void)*byte;
    return false;
}

static bool all_zero(const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static char *map(size_t size) {
    return mmap(NULL, size, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static char *raw_brk(char *address) {
    return (char *)syscall(SYS_brk, address);
}

static void brk_grows_zeroed_and_shrinks(void) {
    char *start = raw_brk(NULL);
    char *aligned = (char *)(((uintptr_t)start + PAGE - 1) & ~(PAGE - 1));
    CHECK(raw_brk(aligned + 10 * PAGE) == aligned + 10 * PAGE);
    CHECK(all_zero(aligned, 10 * PAGE));
    memset(aligned, 0x55, 10 * PAGE);
    CHECK(raw_brk(aligned + 2 * PAGE) == aligned + 2 * PAGE);
    CHECK(aligned[PAGE] == 0x55);
    CHECK(raw_brk(aligned + 10 * PAGE + 5) == aligned + 10 * PAGE + 5);
    CHECK(aligned[2 * PAGE - 1] == 0x55);
    CHECK(all_zero(aligned + 2 * PAGE, 8 * PAGE));
    /* What cannot be had leaves it where it is. */
    CHECK(raw_brk((char *)(1ul << 46)) == aligned + 10 * PAGE + 5);
    CHECK(raw_brk((char *)1) == aligned + 10 * PAGE + 5);
    CHECK(raw_brk(start) == start);
}

static void mmap_gives_zeroes_again_after_munmap(void) {
    for (int round = 0; round < 3; round++) {
        char *block = map(100 * PAGE);
        CHECK(block != MAP_FAILED && (uintptr_t)block % PAGE == 0);
        CHECK(all_zero(block, 100 * PAGE));
        memset(block, 0xaa, 100 * PAGE);
        /* A hole in the middle, and into the hole something larger. */
        CHECK(munmap(block + 10 * PAGE, 20 * PAGE) == 0);
        char *other = map(15 * PAGE);
        CHECK(other != MAP_FAILED && all_zero(other, 15 * PAGE));
        memset(other, 0xbb, 15 * PAGE);
        CHECK((unsigned char)block[0] == 0xaa && (unsigned char)block[30 * PAGE] == 0xaa);
        CHECK(munmap(other, 15 * PAGE) == 0);
        CHECK(munmap(block, 100 * PAGE) == 0);
    }
}

static void blocks_do_not_overlap(void) {
    enum { COUNT = 200 };
    static unsigned char *blocks[COUNT];
    static size_t sizes[COUNT];
    uint32_t state = 12345;
    for (int step = 0; step < 4000; step++) {
        state = state * 1664525 + 1013904223;
        int i = (int)((state >> 8) % COUNT);
        if (blocks[i]) {
            CHECK(blocks[i][0] == (unsigned char)(i + 1) &&
                  blocks[i][sizes[i] - 1] == (unsigned char)(i + 1));
            CHECK(munmap(blocks[i], sizes[i]) == 0);
            blocks[i] = NULL;
            continue;
        }
        sizes[i] = (1 + (state >> 20) % 40) * PAGE - state % 100;
        blocks[i] = (unsigned char *)map(sizes[i]);
        CHECK(blocks[i] != MAP_FAILED);
        CHECK(all_zero((char *)blocks[i], sizes[i]));
        memset(blocks[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++)
        if (blocks[i])
            CHECK(munmap(blocks[i], sizes[i]) == 0);
}

static void mmap_takes_hints_and_fixed_addresses(void) {
    char *block = map(16 * PAGE);
    memset(block, 1, 16 * PAGE);
    char *fixed = mmap(block + 4 * PAGE, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(fixed == block + 4 * PAGE && all_zero(fixed, 2 * PAGE));
    CHECK(block[4 * PAGE - 1] == 1 && block[6 * PAGE] == 1);
    CHECK_ERROR(mmap(block + 1, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
    CHECK_ERROR(mmap(block, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    CHECK(munmap(block + 8 * PAGE, 4 * PAGE) == 0);
    char *hinted = mmap(block + 9 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hinted == block + 9 * PAGE);
    char *elsewhere = mmap(block, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(elsewhere != MAP_FAILED && elsewhere != block);
    CHECK(mmap(block + 8 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          block + 8 * PAGE);
    CHECK(munmap(elsewhere, PAGE) == 0 && munmap(block, 16 * PAGE) == 0);
}

static void mmap_refuses_nonsense(void) {
    /* cppcheck-suppress invalidFunctionArg */
    CHECK_ERROR(mmap(NULL, 0, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
    CHECK_ERROR(mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
    CHECK_ERROR(mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0), EBADF);
    CHECK_ERROR(mmap(NULL, 1ul << 47, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), ENOMEM);
    CHECK_ERROR(mmap(NULL, ~0ul - 10, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
    CHECK_ERROR(munmap((void *)1, PAGE), EINVAL);
    /* cppcheck-suppress invalidFunctionArg */
    CHECK_ERROR(munmap((void *)PAGE, 0), EINVAL);
    /* Nothing there is no error. */
    CHECK(munmap((void *)(4 * PAGE), PAGE) == 0);
    char *shared = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && shared[0] == 0);
    CHECK(munmap(shared, PAGE) == 0);
}

static void mremap_grows_shrinks_and_moves(void) {
    char *block = map(4 * PAGE);
    memset(block, 7, 4 * PAGE);
    /* Something right above, so that it cannot grow where it is. */
    char *wall = mmap(block + 4 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_ERROR(mremap(block, 4 * PAGE, 8 * PAGE, 0), ENOMEM);
    char *moved = mremap(block, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved != block);
    CHECK(moved[0] == 7 && moved[4 * PAGE - 1] == 7 && all_zero(moved + 4 * PAGE, 4 * PAGE));
    CHECK(mremap(moved, 8 * PAGE, PAGE, 0) == moved);
    CHECK(mremap(moved, PAGE, 3 * PAGE, 0) == moved);
    CHECK(moved[PAGE - 1] == 7 && all_zero(moved + PAGE, 2 * PAGE));
    char *target = map(10 * PAGE);
    memset(target, 9, 10 * PAGE);
    char *placed = mremap(moved, 3 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + PAGE);
    CHECK(placed == target + PAGE && placed[0] == 7 && all_zero(placed + PAGE, 4 * PAGE));
    CHECK(target[0] == 9 && target[6 * PAGE] == 9);
    CHECK_ERROR(mremap(placed, 5 * PAGE, 0, MREMAP_MAYMOVE), EINVAL);
    CHECK_ERROR(mremap(placed + 1, PAGE, PAGE, MREMAP_MAYMOVE), EINVAL);
    CHECK_ERROR(mremap(placed, PAGE, PAGE, MREMAP_FIXED, target), EINVAL);
    CHECK_ERROR(mremap(placed, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, placed + PAGE), EINVAL);
    CHECK_ERROR(mremap((void *)(4 * PAGE), PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
    CHECK(munmap(target, 10 * PAGE) == 0);
    CHECK(munmap(wall, PAGE) == 0);
}

/* realloc of a block this large is mremap. */
static void a_block_that_grows_in_small_steps_keeps_its_contents(void) {
    char *wall_below = map(PAGE);
    size_t size = 1 << 20;
    char *block = map(size);
    for (int step = 0; step < 500; step++) {
        memset(block + size - PAGE, step % 100 + 1, PAGE);
        block = mremap(block, size, size + PAGE, MREMAP_MAYMOVE);
        CHECK(block != MAP_FAILED);
        size += PAGE;
    }
    for (int step = 0; step < 500; step++)
        CHECK(block[(1 << 20) + step * (long)PAGE - 1] == step % 100 + 1);
    CHECK(munmap(block, size) == 0 && munmap(wall_below, PAGE) == 0);
}

static void mprotect_has_effect(void) {
    char *block = map(8 * PAGE);
    memset(block, 3, 8 * PAGE);
    CHECK(mprotect(block + 2 * PAGE, 2 * PAGE, PROT_READ) == 0);
    CHECK(!faults(block + 2 * PAGE, false) && faults(block + 2 * PAGE, true));
    CHECK(faults(block + 4 * PAGE - 1, true) && !faults(block + 4 * PAGE, true) &&
          !faults(block + 2 * PAGE - 1, true));
    CHECK(mprotect(block + 2 * PAGE, 2 * PAGE, PROT_NONE) == 0);
    CHECK(faults(block + 2 * PAGE, false));
    CHECK(mprotect(block, 8 * PAGE, RW) == 0);
    CHECK(!faults(block + 2 * PAGE, true) && block[3 * PAGE] == 3);
    CHECK_ERROR(syscall(SYS_mprotect, block + 1, PAGE, RW), EINVAL); /* musl would round it */
    CHECK_ERROR(mprotect(block, PAGE, 0x1000), EINVAL);
    CHECK_ERROR(mprotect((void *)(4 * PAGE), PAGE, RW), ENOMEM);
    CHECK(mprotect(block, 0, RW) == 0);

    /* Protected pages that go back are usable and zero for the next owner. */
    CHECK(mprotect(block, 8 * PAGE, PROT_READ) == 0);
    CHECK(munmap(block, 8 * PAGE) == 0);
    char *again = mmap(block, 8 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(again == block && all_zero(again, 8 * PAGE) && !faults(again + 5 * PAGE, true));
    CHECK(munmap(again, 8 * PAGE) == 0);

    char *guard = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guard != MAP_FAILED && faults(guard, false));
    CHECK(mprotect(guard + PAGE, 2 * PAGE, RW) == 0);
    CHECK(!faults(guard + PAGE, true) && !faults(guard + 3 * PAGE - 1, true));
    CHECK(faults(guard, true) && faults(guard + 3 * PAGE, true));
    CHECK(munmap(guard, 4 * PAGE) == 0);
}

static void code_can_be_written_and_then_run(void) {
    static const unsigned char return_42[] = {0xb8, 42, 0, 0, 0, 0xc3};
    char *code = map(PAGE);
    memcpy(code, return_42, sizeof return_42);
    CHECK(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
    int (*function)(void) = (int (*)(void))(uintptr_t)code;
    CHECK(function() == 42);
    CHECK(faults(code, true));
    CHECK(munmap(code, PAGE) == 0);
}

static int constant_data[2048] __attribute__((aligned(4096)));
static void mprotect_works_on_the_image_and_the_stack(void) {
    constant_data[0] = 1;
    CHECK(mprotect(constant_data, PAGE, PROT_READ) == 0);
    CHECK(constant_data[0] == 1 && faults((char *)constant_data, true));
    CHECK(mprotect(constant_data, PAGE, RW) == 0);
    CHECK(!faults((char *)constant_data, true));
    char space[4 * PAGE];
    char *page = (char *)(((uintptr_t)space + PAGE) & ~(PAGE - 1));
    page[0] = 5;
    CHECK(mprotect(page, PAGE, RW) == 0);
    CHECK(page[0] == 5);
}

static void madvise_dontneed_gives_zeroes(void) {
    char *block = map(6 * PAGE);
    memset(block, 4, 6 * PAGE);
    CHECK(madvise(block + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(block[PAGE - 1] == 4 && all_zero(block + PAGE, 2 * PAGE) && block[3 * PAGE] == 4);
    CHECK(madvise(block, 6 * PAGE, MADV_FREE) == 0);
    CHECK_ERROR(madvise(block + 1, PAGE, MADV_NORMAL), EINVAL);
    CHECK_ERROR(madvise(block, PAGE, 12345), EINVAL);
    CHECK_ERROR(madvise((void *)(4 * PAGE), PAGE, MADV_NORMAL), ENOMEM);
    CHECK(munmap(block, 6 * PAGE) == 0);
}

/* Natively there may be more memory than is worth taking. */
static void exhaustion_is_an_error_that_can_be_survived(void) {
    enum { COUNT = 4096 };
    static void *blocks[COUNT];
    int count = 0;
    if (!in_pinhole())
        return;
    while (count < COUNT && (blocks[count] = malloc(1 << 20)) != NULL)
        count++;
    CHECK(count > 0 && count < COUNT);
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    void *again = malloc(8 << 20);
    CHECK(again != NULL);
    free(again);
}

int main(void) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    brk_grows_zeroed_and_shrinks();
    mmap_gives_zeroes_again_after_munmap();
    blocks_do_not_overlap();
    mmap_takes_hints_and_fixed_addresses();
    mmap_refuses_nonsense();
    mremap_grows_shrinks_and_moves();
    a_block_that_grows_in_small_steps_keeps_its_contents();
    mprotect_has_effect();
    code_can_be_written_and_then_run();
    mprotect_works_on_the_image_and_the_stack();
    madvise_dontneed_gives_zeroes();
    exhaustion_is_an_error_that_can_be_survived();
    return check_end();
}
