/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Moves bytes between a guest and our descriptors (streams.h). A guest that is interrupted or out of time
 * must not hold us up in a read or a write, so nothing is read or written that would wait: we wait in poll,
 * which ends for those too.
 */
#include "cli/streams.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/signals.h"

/* A wait that no signal ended goes on this long after the deadline: the library has then surely marked the
 * run as out of time, and the guest never sees that its read failed. */
#define SLACK_NS 100000000u

/* What is held back at most. */
#define HELD_MAX ((size_t)1 << 20)

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void ph__streams_init(struct ph__streams *streams, uint64_t timeout_ns) {
    streams->deadline_ns = 0;
    if (timeout_ns && __builtin_add_overflow(now_ns(), timeout_ns, &streams->deadline_ns))
        streams->deadline_ns = 0;
}

static bool is_late(const struct ph__streams *streams, uint64_t slack_ns) {
    return streams->deadline_ns && now_ns() >= streams->deadline_ns + slack_ns;
}

/* Milliseconds that poll may take, -1 for ever. */
static int time_left(const struct ph__streams *streams) {
    if (!streams->deadline_ns)
        return -1;
    uint64_t now = now_ns();
    uint64_t end = streams->deadline_ns + SLACK_NS;
    uint64_t left = end > now ? (end - now) / 1000000u + 1 : 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* Waits until (fd) is ready for (events). False when a signal came or the time is up. */
static bool wait_for(const struct ph__streams *streams, int fd, short events) {
    struct pollfd descriptors[] = {{.fd = fd, .events = events},
                                   {.fd = ph__signals_descriptor(), .events = POLLIN}};

    while (!ph__signals_received() && !is_late(streams, SLACK_NS)) {
        int ready = poll(descriptors, 2, time_left(streams));
        if (ready > 0 && descriptors[0].revents)
            return true;
        /* The library's own signal: late, it means that the time is up. */
        if (ready < 0 && errno == EINTR && is_late(streams, 0))
            return false;
        if (ready < 0 && errno != EINTR)
            return true; /* let read or write say what is wrong */
    }
    return false;
}

/* A pipe that poll calls writable takes this much without waiting (pipe(7)); a file takes everything. */
static size_t step_of(int fd) {
    struct stat information;

    if (fstat(fd, &information) == 0 && S_ISREG(information.st_mode))
        return SIZE_MAX;
    return PIPE_BUF;
}

int64_t ph__streams_write(void *context, int stream, const void *data, size_t size) {
    const struct ph__streams *streams = context;
    size_t step = step_of(stream);
    size_t done = 0;

    while (done < size) {
        if (!wait_for(streams, stream, POLLOUT))
            return done ? (int64_t)done : -EINTR;
        size_t want = size - done < step ? size - done : step;
        ssize_t written = write(stream, (const char *)data + done, want);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR && errno != EAGAIN)
            return done ? (int64_t)done : -errno;
    }
    return (int64_t)done;
}

int64_t ph__streams_read(void *context, void *data, size_t size) {
    const struct ph__streams *streams = context;

    while (wait_for(streams, STDIN_FILENO, POLLIN)) {
        ssize_t got = read(STDIN_FILENO, data, size);
        if (got >= 0)
            return got;
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return -EINTR;
}

/* ---- held back ----------------------------------------------------------------------------------------- */

static void write_all(const char *bytes, size_t size) {
    size_t done = 0;

    while (done < size) {
        ssize_t written = write(STDERR_FILENO, bytes + done, size - done);
        if (written > 0)
            done += (size_t)written;
        else if (errno != EINTR || ph__signals_received())
            return; /* nowhere to say so */
    }
}

static bool reserve(struct ph__held *held, size_t size) {
    if (size <= held->capacity)
        return true;
    size_t capacity = size < 4096 ? 4096 : 2 * size;
    char *bytes = realloc(held->bytes, capacity);
    if (!bytes)
        return false;
    held->bytes = bytes;
    held->capacity = capacity;
    return true;
}

int64_t ph__held_write(void *context, int stream, const void *data, size_t size) {
    struct ph__held *held = context;

    (void)stream;
    if (!held->streaming && held->size + size <= HELD_MAX && reserve(held, held->size + size)) {
        memcpy(held->bytes + held->size, data, size);
        held->size += size;
        return (int64_t)size;
    }
    ph__held_flush(held);
    held->streaming = true;
    write_all(data, size);
    return (int64_t)size;
}

void ph__held_flush(struct ph__held *held) {
    write_all(held->bytes, held->size);
    free(held->bytes);
    *held = (struct ph__held){.streaming = held->streaming};
}
