/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Rings the doorbell with any operation and any registers, during a call or before the first one, once or for
 * ever. It imports nothing.
 */
#include "hostile.h"

static uint64_t ring(uint32_t operation, uint64_t rdi, uint64_t rsi, uint64_t rdx) {
    return ph__doorbell_ring(operation, rdi, rsi, rdx);
}
PH_EXPORT(ring, PH_U64, PH_U32, PH_U64, PH_U64, PH_U64);

/* As ring, with the rest of RAX set as well: the operation is EAX alone. */
static uint64_t ring_with_high_bits(uint64_t rax, uint64_t rdi, uint64_t rsi) {
    __asm__ volatile("outl %%eax, %1" : "+a"(rax) : "i"(PH__DOORBELL_PORT), "D"(rdi), "S"(rsi) : "memory");
    return rax;
}
PH_EXPORT(ring_with_high_bits, PH_U64, PH_U64, PH_U64, PH_U64);

/* Rings (operation) until the host has had enough. */
static void ring_for_ever(uint32_t operation, uint64_t rdi, uint64_t rsi, uint64_t rdx) {
    for (;;)
        ph__doorbell_ring(operation, rdi, rsi, rdx);
}
PH_EXPORT(ring_for_ever, PH_VOID, PH_U32, PH_U64, PH_U64, PH_U64);

/* Writes (total) bytes of output in pieces of (piece), the bytes counting up. Returns what the host took. */
static uint64_t write_output(uint64_t stream, uint64_t total, uint64_t piece) {
    uint8_t *bytes = (uint8_t *)PH__GVA(PH__IO_GPA);
    uint64_t taken = 0;

    for (uint64_t done = 0; done < total;) {
        uint64_t size = piece < total - done ? piece : total - done;
        for (uint64_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(done + i);
        int64_t answer = (int64_t)ph__doorbell_ring(PH__DOORBELL_WRITE, stream, size, 0);
        taken += answer > 0 ? (uint64_t)answer : 0;
        done += size;
    }
    return taken;
}
PH_EXPORT(write_output, PH_U64, PH_U64, PH_U64, PH_U64);

/* The first bytes of the I/O page, after a READ. */
static ph_bytes io_page(uint64_t size) {
    return (ph_bytes){(const void *)PH__GVA(PH__IO_GPA), size};
}
PH_EXPORT(io_page, PH_BYTES, PH_U64);

/* Changes the protection of a page and then uses it. */
static uint64_t protect_and_write(uint64_t gva, uint64_t size, uint64_t protection) {
    uint64_t answer = ph__doorbell_ring(PH__DOORBELL_PROTECT, gva, size, protection);
    *(volatile uint8_t *)gva = 1;
    return answer;
}
PH_EXPORT(protect_and_write, PH_U64, PH_U64, PH_U64, PH_U64);

/* As ring, under single step. */
static uint64_t ring_stepping(uint32_t operation, uint64_t rdi, uint64_t rsi, uint64_t rdx) {
    uint64_t rax = operation;

    __asm__ volatile("pushfq\n"
                     "orq $0x100, (%%rsp)\n"
                     "popfq\n"
                     "outl %%eax, %1\n"
                     "nop"
                     : "+a"(rax)
                     : "i"(PH__DOORBELL_PORT), "D"(rdi), "S"(rsi), "d"(rdx)
                     : "memory", "cc");
    return rax;
}
PH_EXPORT(ring_stepping, PH_U64, PH_U32, PH_U64, PH_U64, PH_U64);

/* Arguments: operation, RDI, RSI, RDX. */
void start_lie(int count, char **arguments) {
    uint64_t numbers[4] = {0};

    for (int i = 0; i < count && i < 4; i++)
        numbers[i] = number_parse(arguments[i]);
    ph__doorbell_ring((uint32_t)numbers[0], numbers[1], numbers[2], numbers[3]);
}
