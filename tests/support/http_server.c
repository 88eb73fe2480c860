/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The scripted server (http_server.h). No more of HTTP/1.1 than an exporter's requests need: a head, a
 * Content-Length, a body.
 */
#include "support/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "support/support.h"

#define MOST_CONNECTIONS 256
#define MOST_SCRIPTS 8
#define HEAD_MAX 16384
#define BODY_MAX ((size_t)64 << 20)
#define WAIT_S 30

struct script {
    const char *path;
    const struct http_answer *answers;
    size_t count;
    size_t next;
};

struct connection {
    struct http_server *server;
    pthread_t thread;
    int socket;
};

struct http_server {
    int listener;
    uint16_t port;
    char url[64];
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    struct connection connections[MOST_CONNECTIONS];
    size_t connection_count;
    struct script scripts[MOST_SCRIPTS];
    size_t script_count;
    struct http_request **requests;
    size_t request_count;
    bool released;
    bool stopped;
};

/* ---- requests ------------------------------------------------------------------------------------------ */

static bool read_all(int socket, uint8_t *bytes, size_t size) {
    while (size > 0) {
        ssize_t got = recv(socket, bytes, size, 0);
        if (got <= 0)
            return false;
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static void write_all(int socket, const void *bytes, size_t size) {
    const char *from = bytes;

    while (size > 0) {
        ssize_t put = send(socket, from, size, MSG_NOSIGNAL);
        if (put <= 0)
            return;
        from += put;
        size -= (size_t)put;
    }
}

const char *http_request_header(const struct http_request *request, const char *name) {
    static _Thread_local char value[4096];
    const size_t length = strlen(name);

    for (const char *line = request->head; line; line = strstr(line, "\r\n")) {
        line += strncmp(line, "\r\n", 2) == 0 ? 2 : 0;
        if (strncasecmp(line, name, length) != 0 || line[length] != ':')
            continue;
        line += length + 1;
        line += strspn(line, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(line, "\r\n"), line);
        return value;
    }
    return NULL;
}

size_t http_request_holds(const struct http_request *request, const char *text) {
    const uint8_t *at = request->body;
    const uint8_t *end = at + request->size;
    size_t count = 0;

    while (at && (at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
        count++;
        at += strlen(text);
    }
    return count;
}

/* Puts what is in gzip's format in place of the body. */
static bool unpack(struct http_request *request) {
    z_stream stream = {.next_in = request->body, .avail_in = (uInt)request->size};
    uint8_t *out = malloc(BODY_MAX);
    bool done = false;

    if (out && inflateInit2(&stream, 15 + 16) == Z_OK) {
        stream.next_out = out;
        stream.avail_out = (uInt)BODY_MAX;
        done = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
        inflateEnd(&stream);
    }
    if (!done) {
        free(out);
        return false;
    }
    free(request->body);
    request->body = realloc(out, stream.total_out + 1);
    request->size = stream.total_out;
    return true;
}

static void request_free(struct http_request *request) {
    free(request->head);
    free(request->body);
    free(request);
}

/* NULL at a connection's end, and for what is no request. */
static struct http_request *request_read(int socket) {
    struct http_request *request = calloc(1, sizeof *request);
    size_t used = 0;

    request->head = calloc(1, HEAD_MAX);
    while (used < HEAD_MAX - 1 && !strstr(request->head, "\r\n\r\n"))
        if (!read_all(socket, (uint8_t *)request->head + used++, 1))
            goto fail;
    if (sscanf(request->head, "%15s %255s HTTP/1.1\r\n", request->method, request->path) != 2)
        goto fail;
    const char *length = http_request_header(request, "Content-Length");
    request->size = length ? strtoul(length, NULL, 10) : 0;
    if (request->size > BODY_MAX)
        goto fail;
    request->body = malloc(request->size + 1);
    if (!read_all(socket, request->body, request->size))
        goto fail;
    const char *encoding = http_request_header(request, "Content-Encoding");
    request->gzip = encoding && strcmp(encoding, "gzip") == 0;
    if (request->gzip && !unpack(request))
        goto fail;
    return request;
fail:
    request_free(request);
    return NULL;
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static struct http_answer answer_next(struct http_server *server, const char *path) {
    for (size_t i = 0; i < server->script_count; i++) {
        struct script *script = &server->scripts[i];
        if (strcmp(script->path, path) != 0)
            continue;
        size_t at = script->next < script->count ? script->next++ : script->count - 1;
        return script->answers[at];
    }
    return (struct http_answer){.status = 200};
}

static void head_write(int socket, const struct http_answer *answer, size_t length) {
    char head[4096];

    int size =
        snprintf(head, sizeof head, "HTTP/1.1 %d Whatever\r\n%sContent-Length: %zu\r\n\r\n",
                 answer->status ? answer->status : 200, answer->headers ? answer->headers : "", length);
    write_all(socket, head, (size_t)size);
}

static void endless_write(int socket) {
    static const char bytes[65536];
    static const char head[] = "HTTP/1.1 200 Whatever\r\n\r\n";

    write_all(socket, head, sizeof head - 1);
    while (send(socket, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        continue;
}

/* Whether the connection goes on. */
static bool answer_write(struct http_server *server, int socket, const struct http_answer *answer) {
    switch (answer->kind) {
    case HTTP_STALL:
        pthread_mutex_lock(&server->lock);
        while (!server->released && !server->stopped)
            pthread_cond_wait(&server->changed, &server->lock);
        pthread_mutex_unlock(&server->lock);
        head_write(socket, answer, answer->size);
        write_all(socket, answer->body, answer->size);
        return true;
    case HTTP_ANSWER:
        head_write(socket, answer, answer->size);
        write_all(socket, answer->body, answer->size);
        return true;
    case HTTP_CLOSE:
        return false;
    case HTTP_CUT:
        head_write(socket, answer, answer->size + 1000);
        write_all(socket, answer->body, answer->size);
        return false;
    case HTTP_GARBAGE:
        write_all(socket, answer->body, answer->size);
        return false;
    case HTTP_ENDLESS:
        endless_write(socket);
        return false;
    }
    return false;
}

static void *serve(void *context) {
    struct connection *connection = context;
    struct http_server *server = connection->server;
    struct http_request *request;

    while ((request = request_read(connection->socket)) != NULL) {
        pthread_mutex_lock(&server->lock);
        server->requests =
            realloc(server->requests, (server->request_count + 1) * sizeof(struct http_request *));
        server->requests[server->request_count++] = request;
        const struct http_answer answer = answer_next(server, request->path);
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->lock);
        if (!answer_write(server, connection->socket, &answer))
            break;
    }
    shutdown(connection->socket, SHUT_RDWR);
    return NULL;
}

static void *listen_on(void *context) {
    struct http_server *server = context;
    int socket;

    while ((socket = accept(server->listener, NULL, NULL)) >= 0) {
        pthread_mutex_lock(&server->lock);
        if (server->stopped || server->connection_count == MOST_CONNECTIONS) {
            close(socket);
        } else {
            struct connection *connection = &server->connections[server->connection_count];
            *connection = (struct connection){.server = server, .socket = socket};
            if (pthread_create(&connection->thread, NULL, serve, connection) == 0)
                server->connection_count++;
            else
                close(socket);
        }
        pthread_mutex_unlock(&server->lock);
    }
    return NULL;
}

/* ---- the test's side ----------------------------------------------------------------------------------- */

struct http_server *http_server_start(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof address;
    const int yes = 1;
    struct http_server *server = calloc(1, sizeof *server);

    assert_non_null(server);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, 64), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u", server->port);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    assert_int_equal(pthread_create(&server->thread, NULL, listen_on, server), 0);
    return server;
}

void http_server_stop(struct http_server *server) {
    pthread_mutex_lock(&server->lock);
    server->stopped = true;
    for (size_t i = 0; i < server->connection_count; i++)
        shutdown(server->connections[i].socket, SHUT_RDWR);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->connection_count; i++) {
        pthread_join(server->connections[i].thread, NULL);
        close(server->connections[i].socket);
    }
    close(server->listener);
    for (size_t i = 0; i < server->request_count; i++)
        request_free(server->requests[i]);
    free(server->requests);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

const char *http_server_url(const struct http_server *server) {
    return server->url;
}

uint16_t http_server_port(const struct http_server *server) {
    return server->port;
}

void http_server_script(struct http_server *server, const char *path, const struct http_answer *answers,
                        size_t count) {
    pthread_mutex_lock(&server->lock);
    assert_true(server->script_count < MOST_SCRIPTS && count > 0);
    server->scripts[server->script_count++] = (struct script){path, answers, count, 0};
    pthread_mutex_unlock(&server->lock);
}

void http_server_release(struct http_server *server) {
    pthread_mutex_lock(&server->lock);
    server->released = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static bool is_to(const struct http_request *request, const char *path) {
    return !path || strcmp(request->path, path) == 0;
}

static size_t count_locked(const struct http_server *server, const char *path) {
    size_t count = 0;

    for (size_t i = 0; i < server->request_count; i++)
        count += is_to(server->requests[i], path);
    return count;
}

size_t http_server_count(struct http_server *server, const char *path) {
    pthread_mutex_lock(&server->lock);
    const size_t count = count_locked(server, path);
    pthread_mutex_unlock(&server->lock);
    return count;
}

size_t http_server_connections(struct http_server *server) {
    pthread_mutex_lock(&server->lock);
    const size_t count = server->connection_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

void http_server_wait(struct http_server *server, const char *path, size_t count) {
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&server->lock);
    while (error == 0 && count_locked(server, path) < count)
        error = pthread_cond_timedwait(&server->changed, &server->lock, &until);
    const size_t there = count_locked(server, path);
    pthread_mutex_unlock(&server->lock);
    if (there < count)
        fail_msg("%zu requests to %s, and not %zu", there, path ? path : "anywhere", count);
}

const struct http_request *http_server_request(struct http_server *server, const char *path, size_t index) {
    const struct http_request *found = NULL;

    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < server->request_count && !found; i++)
        if (is_to(server->requests[i], path) && index-- == 0)
            found = server->requests[i];
    pthread_mutex_unlock(&server->lock);
    assert_non_null(found);
    return found;
}
