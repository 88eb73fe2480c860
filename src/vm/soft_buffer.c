/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Bounds the code that an engine translates (soft_parts.h). Unicorn puts it into a buffer of a gigabyte, one
 * block behind the other, and reuses nothing, not even of blocks that it has dropped. When that is full 2.0.1
 * ends in SIGSEGV. So an engine is replaced long before (soft.c), when it has come to a certain page: as long
 * as that has never been written it reads as zeroes, and takes no memory.
 *
 * Nothing in Unicorn's interface says where the buffer is. It is the one piece of memory that Unicorn asks
 * for to execute, so the plug-in's own mmap64, which libunicorn finds first (soft_guard.c), hands it out. It
 * is set aside before the engine is opened, since Unicorn ends the process when there is none.
 *
 * Where libunicorn does not find it first (AddressSanitizer, or a program that links libunicorn itself),
 * there is no bound.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "vm/soft_parts.h"

#define OVERRIDE __attribute__((visibility("default")))

#define MIB (1ull << 20)

/* What Unicorn asks for is a little less. */
#define BUFFER_SIZE (1024 * MIB)

/* What an engine may fill: programs of some hundred thousand blocks fit, at about half a KiB each. */
#define BOUND (128 * MIB)

/* How many blocks run between two looks at the mark, which takes some 100 ns. A block is at most 64 KiB of
 * code and a little more, so that an engine passes the bound by no more than this, and in one that is made
 * for the purpose. What was translated and did not run comes from a block that did, and can double it. */
#define BLOCKS 1024u
#define BLOCK_SIZE (80ull << 10)
_Static_assert(BOUND + 2 * BLOCKS * BLOCK_SIZE < BUFFER_SIZE / 2, "the bound is seen in time");

/* Of the engine that this thread is opening. */
static _Thread_local struct {
    uint8_t *start; /* NULL outside */
    size_t taken;   /* of it, by Unicorn */
} reserved;

static void *map(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    return (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved names */
OVERRIDE void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (!reserved.start || reserved.taken || !(protection & PROT_EXEC) || size == 0 || size > BUFFER_SIZE)
        return map(address, size, protection, flags, file, offset);
    reserved.taken = (size + PH__PAGE_SIZE - 1) & ~(PH__PAGE_SIZE - 1);
    return reserved.start;
}

ph_status ph__soft_buffer_reserve(ph_error *error) {
    void *start =
        map(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED)
        return ph__error_set(error, PH_E_MEMORY, "no memory for the code that the emulator translates");
    reserved.start = start;
    reserved.taken = 0;
    return PH_OK;
}

void ph__soft_buffer_find(struct ph__soft_vcpu *vcpu) {
    uint8_t *start = reserved.start;

    reserved.start = NULL;
    if (reserved.taken < BUFFER_SIZE)
        munmap(start + reserved.taken, BUFFER_SIZE - reserved.taken);
    /* A smaller one is of a Unicorn that can use it anew (soft_tlb.c). */
    if (reserved.taken > BUFFER_SIZE / 2)
        vcpu->buffer = (struct ph__soft_buffer){.mark = start + BOUND, .blocks = BLOCKS};
}

bool ph__soft_buffer_full(struct ph__soft_vcpu *vcpu) {
    const uint64_t *mark = (const uint64_t *)vcpu->buffer.mark;
    uint64_t any = 0;

    vcpu->buffer.blocks = BLOCKS;
    /* All of the page: no code leaves out as much as that, while a word may well be zero. */
    for (size_t i = 0; mark && i < PH__PAGE_SIZE / sizeof *mark; i++)
        any |= mark[i];
    return any != 0;
}
