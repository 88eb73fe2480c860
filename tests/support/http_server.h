/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A server of HTTP on the loopback interface that answers as a test wants it to, well or badly, and keeps
 * what it was asked. Each connection has a thread, so that one that stalls holds up no other.
 */
#ifndef PH_TESTS_HTTP_SERVER_H
#define PH_TESTS_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_answer_kind {
    HTTP_ANSWER = 0, /* (status), (headers) and (body) */
    HTTP_STALL,      /* nothing, until http_server_release; then as HTTP_ANSWER */
    HTTP_CLOSE,      /* the connection ends without a byte */
    HTTP_CUT,        /* the connection ends in the middle of the body, which is announced as longer */
    HTTP_GARBAGE,    /* (body) and nothing around it, then the end */
    HTTP_ENDLESS,    /* a body that does not end before the reader goes away */
};

struct http_answer {
    enum http_answer_kind kind;
    int status;          /* 0: 200 */
    const char *headers; /* whole lines, or NULL */
    const void *body;
    size_t size;
};

struct http_request {
    char method[16];
    char path[256];
    char *head; /* the lines, NUL-terminated */
    uint8_t *body;
    size_t size; /* unpacked */
    bool gzip;
};

struct http_server;

/* (port) 0: a free one. Fails the test when that cannot be done. */
struct http_server *http_server_start(uint16_t port);
/* Ends all connections and frees what was kept; the pointers of http_server_request end with it. */
void http_server_stop(struct http_server *server);

/* "http://127.0.0.1:PORT" */
const char *http_server_url(const struct http_server *server);
uint16_t http_server_port(const struct http_server *server);

/* What requests to (path) are answered with, in turn; the last one goes on for ever. The answers are the
 * caller's, and stay. Without this, it is a plain 200. */
void http_server_script(struct http_server *server, const char *path, const struct http_answer *answers,
                        size_t count);

/* Has all that stalls answered, now and later. */
void http_server_release(struct http_server *server);

/* Requests to (path) that have arrived whole; NULL for all. */
size_t http_server_count(struct http_server *server, const char *path);
size_t http_server_connections(struct http_server *server);

/* Waits until there are (count); fails the test when that takes half a minute. */
void http_server_wait(struct http_server *server, const char *path, size_t count);

/* The (index)th request to (path), from 0; fails the test when there is none. */
const struct http_request *http_server_request(struct http_server *server, const char *path, size_t index);

/* The value of a header of a request, in static storage, or NULL. */
const char *http_request_header(const struct http_request *request, const char *name);

/* How often (text) is in the request's body. */
size_t http_request_holds(const struct http_request *request, const char *text);

#endif
