/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the guests hostile_*.c have in place of a libc and of the guest library's dispatch loop (hostile.h).
 */
#include "hostile.h"

#include "abi/table.h"

extern const struct ph__function_entry exports[] __asm__("__start_ph_exports");

const struct ph__control *control;
bool answered;

/* clang-format off */
__asm__(
    ".globl _start\n"
    "_start:\n"
    "xor %ebp, %ebp\n"
    "mov %rsp, %rdi\n"
    "and $-16, %rsp\n"
    "call hostile_main\n"
    "ud2\n");
/* clang-format on */

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    void *start = to;

    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return start;
}

void *memset(void *to, int byte, size_t size) {
    void *start = to;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
    return start;
}

void *memchr(const void *bytes, int byte, size_t size) {
    const unsigned char *at = bytes;

    for (; size > 0; size--, at++)
        if (*at == (unsigned char)byte)
            return (void *)at;
    return NULL;
}

size_t strlen(const char *text) {
    size_t length = 0;

    while (text[length])
        length++;
    return length;
}

uint64_t number_parse(const char *text) {
    unsigned base = text[0] == '0' && text[1] == 'x' ? 16 : 10;
    uint64_t number = 0;

    for (text += base == 16 ? 2 : 0; *text; text++)
        number = number * base + (unsigned)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
    return number;
}

__attribute__((weak)) void start_lie(int count, char **arguments) {
    (void)count;
    (void)arguments;
}

static bool honest(void) {
    return true;
}
PH_EXPORT(honest, PH_BOOL);

__attribute__((weak)) void call_wait(void) {
    ph__doorbell_ring(PH__DOORBELL_RETURN, 0, 0, 0);
}

/* Serves the call in the inbox as libpinhole-guest does. */
static void serve(void) {
    static const struct ph__frame head = {.kind = PH__FRAME_RESULT};
    const struct ph__frame *frame = (const struct ph__frame *)control->inbox_gva;
    const struct ph__function_entry *entry = &exports[frame->index];
    ph_type types[PH_MAX_ARGS];
    ph_value args[PH_MAX_ARGS];
    ph_value result;

    for (unsigned i = 0; i < entry->count; i++)
        types[i] = (ph_type)entry->args[i];
    if (ph__frame_decode(frame, control->box_size, types, entry->count, args) != PH__FRAME_OK)
        __builtin_trap();
    ph__thunk *thunk = (ph__thunk *)((uintptr_t)&entry->thunk + (uintptr_t)(intptr_t)entry->thunk);
    answered = false;
    thunk(args, &result);
    if (answered)
        return;
    result.type = (ph_type)entry->result;
    if (ph__frame_encode(outbox(), control->box_size, control->max_message, &head, &result,
                         entry->result != PH_VOID) != PH__FRAME_OK)
        __builtin_trap();
}

__attribute__((noreturn, used)) void hostile_main(uint64_t *stack);

void hostile_main(uint64_t *stack) {
    int count = (int)stack[0];
    char **arguments = (char **)(stack + 1);
    uint64_t *word = stack + 1 + count + 1;

    while (*word)
        word++;
    for (word++; word[0]; word += 2)
        if (word[0] == PH__AT_PINHOLE)
            control = (const struct ph__control *)word[1];
    if (count > 1)
        start_lie(count - 1, arguments + 1);
    ph__doorbell_ring(PH__DOORBELL_READY, 0, 0, 0);
    for (;;) {
        serve();
        call_wait();
    }
}
