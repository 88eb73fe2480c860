/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Memory that lives until the call ends. Small calls are served from a fixed block and never reach malloc;
 * others get chunks, of which one of modest size is kept for the next call, so that a sandbox that returns
 * strings all day neither grows nor pays for malloc each time.
 */
#include "internal.h"

#define ALIGNMENT 16u
#define FIRST_SIZE (16u << 10)
#define CHUNK_SIZE (64u << 10)

/* A larger chunk goes back to malloc: one greedy call is not paid for by all later ones. */
#define KEPT_SIZE (1u << 20)

struct chunk {
    struct chunk *next;
    size_t size; /* of the memory behind this head */
};
_Static_assert(sizeof(struct chunk) % ALIGNMENT == 0, "memory behind the head is aligned");

static _Alignas(ALIGNMENT) char first[FIRST_SIZE];
static char *position = first; /* free memory of the block in use: [position, end) */
static char *end = first + FIRST_SIZE;
static struct chunk *chunks; /* in use, newest first */
static struct chunk *kept;   /* not in use, or NULL */

static _Noreturn void throw_no_memory(size_t size) {
    struct ph__error error;

    ph__error_set(&error, PH_GUEST_E_NO_MEMORY, "out of memory: a call asked for %zu bytes", size);
    ph__error_throw(&error);
}

/* A chunk of at least (size) bytes: the kept one if it will do. */
static struct chunk *chunk_take(size_t size) {
    struct chunk *chunk = kept;
    size_t chunk_size = size > CHUNK_SIZE ? size : CHUNK_SIZE;

    kept = NULL;
    if (chunk && chunk->size >= size)
        return chunk;
    free(chunk);
    chunk = malloc(sizeof *chunk + chunk_size);
    if (chunk)
        chunk->size = chunk_size;
    return chunk;
}

/* Makes [position, end) hold (size) bytes; false when there are none. */
static bool block_add(size_t size) {
    struct chunk *chunk = chunk_take(size);

    if (!chunk)
        return false;
    chunk->next = chunks;
    chunks = chunk;
    position = (char *)(chunk + 1);
    end = position + chunk->size;
    return true;
}

/* ph_alloc, but that what is there may already have been written to. */
static void *take(size_t size) {
    /* No program has half of the address space; it also keeps the sums below from wrapping. */
    if (size > SIZE_MAX / 2)
        throw_no_memory(size);
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size > (size_t)(end - position) && !block_add(size))
        throw_no_memory(size);
    void *memory = position;
    position += size;
    return memory;
}

void *ph_alloc(size_t size) {
    return take(size);
}

void ph__arena_reset(void) {
    while (chunks) {
        struct chunk *chunk = chunks;
        chunks = chunk->next;
        if (!kept && chunk->size <= KEPT_SIZE)
            kept = chunk;
        else
            free(chunk);
    }
    position = first;
    end = first + FIRST_SIZE;
}

char *ph_strf(const char *format, ...) {
    va_list args;

    /* Most texts fit into what is left of the block; then they are made where they stay. */
    size_t room = (size_t)(end - position);
    va_start(args, format);
    int length = vsnprintf(position, room, format, args);
    va_end(args);
    if (length < 0) {
        struct ph__error error;
        ph__error_set(&error, PH_GUEST_E_FORMAT, "ph_strf cannot format \"%s\"", format);
        ph__error_throw(&error);
    }
    char *text = take((size_t)length + 1);
    if ((size_t)length >= room) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}

char *ph_str_copy(const char *text) {
    size_t size = strlen(text) + 1;

    return memcpy(ph_alloc(size), text, size);
}

ph_bytes ph_bytes_copy(const void *data, size_t size) {
    void *copy = ph_alloc(size);

    if (size)
        memcpy(copy, data, size);
    return (ph_bytes){copy, size};
}
