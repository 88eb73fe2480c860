/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The four functions that the compiler calls of its own accord. String instructions, so that it cannot
 * turn a loop in here into a call of itself; the monitor moves little.
 */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    void *result = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

void *memmove(void *to, const void *from, size_t size) {
    if ((char *)to - (const char *)from >= (ptrdiff_t)size || to <= from)
        return memcpy(to, from, size);
    char *last_to = (char *)to + size - 1;
    const char *last_from = (const char *)from + size - 1;
    __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(last_to), "+S"(last_from), "+c"(size) : : "memory");
    return to;
}

void *memset(void *to, int value, size_t size) {
    void *result = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
    return result;
}

int memcmp(const void *left, const void *right, size_t size) {
    const unsigned char *a = left;
    const unsigned char *b = right;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i])
            return a[i] - b[i];
        __asm__ volatile(""); /* or the loop becomes a call of memcmp */
    }
    return 0;
}
