/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads a whole file (file.h). It is never mapped: one that shrinks meanwhile would end us with a SIGBUS.
 */
#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/memory.h"

/* One more than a message holds: the call then says that it is too large. */
#define BYTES_MAX ((size_t)PH__MESSAGE_MAX + 1)
#define FIRST_CAPACITY 65536u

static char *failed(struct ph__refusal *why, const char *path) {
    snprintf(why->text, sizeof why->text, "%.300s: %s", path, strerror(errno));
    return NULL;
}

/* Room for the whole file where its size is known, and to see that it ends there. */
static size_t first_capacity(int fd) {
    struct stat information;

    if (fstat(fd, &information) != 0 || !S_ISREG(information.st_mode) || information.st_size < 0)
        return FIRST_CAPACITY;
    return (uint64_t)information.st_size < BYTES_MAX ? (size_t)information.st_size + 1 : BYTES_MAX;
}

/* Reads to the end, or to BYTES_MAX. NULL with errno. */
static char *read_all(int fd, size_t *size) {
    size_t capacity = first_capacity(fd);
    char *bytes = malloc(capacity + 1);

    *size = 0;
    while (bytes) {
        ssize_t got = read(fd, bytes + *size, capacity - *size);
        if (got < 0) {
            free(bytes);
            return NULL;
        }
        *size += (size_t)got;
        if (got == 0 || *size == BYTES_MAX)
            break;
        if (*size < capacity)
            continue;
        capacity = capacity < BYTES_MAX / 2 ? 2 * capacity : BYTES_MAX;
        char *larger = realloc(bytes, capacity + 1);
        if (!larger)
            free(bytes);
        bytes = larger;
    }
    if (bytes)
        bytes[*size] = 0;
    return bytes;
}

char *ph__file_read(const char *path, size_t *size, struct ph__refusal *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return failed(why, path);
    char *bytes = read_all(fd, size);
    if (!bytes)
        failed(why, path);
    close(fd);
    return bytes;
}
