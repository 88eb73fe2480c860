/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A collector that takes everything (collector.h), with a process for each connection. It knows as much of
 * HTTP/1.1 as a client needs that sends a body with its length.
 */
#include "collector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define BACKLOG 16

/* Without a body: a response of OTLP in which every field has its default, as in a success. */
static const char taken[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static void die_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Reads the head of a request: the length of its body is in (*length). False at the end of the connection. */
static bool read_head(FILE *in, int connection, size_t *length) {
    char *line = NULL;
    size_t size = 0;
    bool is_whole = false;

    *length = 0;
    while (!is_whole && getline(&line, &size, in) > 0) {
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            *length = strtoul(line + 15, NULL, 10);
        if (strncasecmp(line, "Expect:", 7) == 0 && write(connection, go_on, sizeof go_on - 1) < 0)
            break;
        is_whole = strcmp(line, "\r\n") == 0;
    }
    free(line);
    return is_whole;
}

static bool skip_body(FILE *in, size_t length) {
    char bytes[65536];

    while (length > 0) {
        size_t got = fread(bytes, 1, length < sizeof bytes ? length : sizeof bytes, in);
        if (got == 0)
            return false;
        length -= got;
    }
    return true;
}

static void serve(int connection) {
    FILE *in = fdopen(connection, "r");
    size_t length;

    while (in && read_head(in, connection, &length) && skip_body(in, length))
        if (write(connection, taken, sizeof taken - 1) < 0)
            break;
}

static _Noreturn void collect(int listener) {
    die_with_parent();
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection < 0)
            _exit(1);
        if (fork() == 0) {
            die_with_parent();
            close(listener);
            serve(connection);
            _exit(0);
        }
        close(connection);
    }
}

void collector_start(struct collector *collector) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, BACKLOG) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        bench_fail("a socket: %s", strerror(errno));
    snprintf(collector->endpoint, sizeof collector->endpoint, "http://127.0.0.1:%u", ntohs(address.sin_port));
    fflush(NULL);
    collector->process = fork();
    if (collector->process == 0)
        collect(listener);
    if (collector->process < 0)
        bench_fail("a collector: %s", strerror(errno));
    close(listener);
}

void collector_stop(const struct collector *collector) {
    kill(collector->process, SIGKILL);
    waitpid(collector->process, NULL, 0);
}
