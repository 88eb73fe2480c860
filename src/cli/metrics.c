/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics over HTTP (metrics.h), by libmicrohttpd on a thread of its own. Who asks is not trusted: there are
 * bounds on the connections, their memory and the time in which nothing comes, and nothing that is done for
 * them waits for the guest, or makes it wait.
 */
#include "cli/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/accept.h"

#define CONNECTIONS_MAX 16u
#define IDLE_MAX_S 10u                       /* without a byte of a request, or taken of an answer */
#define CONNECTION_MEMORY ((size_t)16 << 10) /* a longer request is refused */
#define BACKLOG 16

/* An address to listen at. */
struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t size;
};

/* ---- the option ---------------------------------------------------------------------------------------- */

/* A port: digits alone, up to 65535. */
static bool parse_port(const char *text, in_port_t *port) {
    unsigned number = 0;

    if (!*text || strlen(text) > 5)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (unsigned)(*text - '0');
    }
    *port = htons((in_port_t)number);
    return number <= UINT16_MAX;
}

/* ADDR:PORT with an address in digits, in brackets when it is one of IPv6; `localhost`, and none at all, is
 * 127.0.0.1. Names are not looked up. */
static bool parse(const char *text, struct address *address) {
    char host[INET6_ADDRSTRLEN + 2];
    const char *colon = strrchr(text, ':');
    in_port_t port;

    if (!colon || (size_t)(colon - text) >= sizeof host || !parse_port(colon + 1, &port))
        return false;
    size_t length = (size_t)(colon - text);
    memcpy(host, text, length);
    host[length] = 0;
    *address = (struct address){0};
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = 0;
        address->at.v6.sin6_family = AF_INET6;
        address->at.v6.sin6_port = port;
        address->size = sizeof address->at.v6;
        return inet_pton(AF_INET6, host + 1, &address->at.v6.sin6_addr) == 1;
    }
    address->at.v4.sin_family = AF_INET;
    address->at.v4.sin_port = port;
    address->size = sizeof address->at.v4;
    const bool local = !length || strcmp(host, "localhost") == 0;
    return inet_pton(AF_INET, local ? "127.0.0.1" : host, &address->at.v4.sin_addr) == 1;
}

int ph__metering_check(const struct ph__command *command, const struct ph__metering *metering) {
    struct address address;

    if (!metering->listen || parse(metering->listen, &address))
        return PH__OPTIONS_GO_ON;
    return ph__usage_error(command,
                           "--metrics-listen wants ADDR:PORT, such as 127.0.0.1:9464 or [::1]:9464, not '%s'",
                           metering->listen);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *header,
                              const char *value, struct MHD_Response *response) {
    enum MHD_Result result = MHD_NO;

    if (!response)
        return MHD_NO;
    if (MHD_add_response_header(response, header, value) == MHD_YES)
        result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* An answer that is one constant line. */
static struct MHD_Response *line(const char *text) {
    return MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_metrics(struct MHD_Connection *connection, ph_metrics *metrics) {
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    const ph_metrics_format format = ph__accept_format(accept);
    size_t size;
    char *text = ph_metrics_text(metrics, format, &size);

    if (!text)
        return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    return answer(connection, MHD_HTTP_OK, MHD_HTTP_HEADER_CONTENT_TYPE,
                  format == PH_METRICS_OPENMETRICS ? PH_METRICS_OPENMETRICS_TYPE : PH_METRICS_PROMETHEUS_TYPE,
                  response);
}

/* Called by libmicrohttpd when a request's head is there. Its body, if it has one, is not waited for. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, /* NOLINT(readability-non-const-parameter): as it is */
                                  void **request) {
    (void)version;
    (void)body;
    (void)body_size;
    (void)request;
    if (strcmp(url, "/metrics") != 0)
        return answer(connection, MHD_HTTP_NOT_FOUND, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain",
                      line("metrics are at /metrics\n"));
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, MHD_HTTP_HEADER_ALLOW, "GET, HEAD",
                      line("only GET and HEAD\n"));
    return answer_metrics(connection, context);
}

/* ---- serving ------------------------------------------------------------------------------------------- */

/* A socket that listens at (*address), which becomes the one that it got. -1 with errno. */
static int listen_at(struct address *address) {
    const int yes = 1;
    int file = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (file < 0)
        return -1;
    if (address->at.any.sa_family == AF_INET6)
        setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    /* Connections of an earlier command may still be closing. */
    if (setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(file, &address->at.any, address->size) == 0 && listen(file, BACKLOG) == 0 &&
        getsockname(file, &address->at.any, &address->size) == 0)
        return file;
    int error = errno;
    close(file);
    errno = error;
    return -1;
}

/* The library prints nothing by itself. */
static void say_nothing(void *context, const char *format, va_list arguments) {
    (void)context;
    (void)format;
    (void)arguments;
}

/* Takes (file), whatever comes of it. The server's thread takes no signal: those are for the thread that runs
 * the guest, whose reads and writes they end. MHD_USE_ITC: with all connections taken it does not look at the
 * socket, and would not see either that it is to end. */
static struct MHD_Daemon *start(int file, ph_metrics *metrics) {
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_Daemon *server = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, metrics,
        MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL, MHD_OPTION_LISTEN_SOCKET, file,
        MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_MAX_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!server)
        close(file);
    return server;
}

/* Where others find it: port 0 has become a real one. */
static void say_where(const struct address *address) {
    char host[INET6_ADDRSTRLEN] = "";
    const bool v6 = address->at.any.sa_family == AF_INET6;

    if (v6)
        inet_ntop(AF_INET6, &address->at.v6.sin6_addr, host, sizeof host);
    else
        inet_ntop(AF_INET, &address->at.v4.sin_addr, host, sizeof host);
    ph__complain("metrics on http://%s%s%s:%u/metrics", v6 ? "[" : "", host, v6 ? "]" : "",
                 ntohs(v6 ? address->at.v6.sin6_port : address->at.v4.sin_port));
}

int ph__metering_open(const struct ph__command *command, struct ph__metering *metering, ph_config *config) {
    struct address address;
    ph_error error;

    if (!metering->listen || !parse(metering->listen, &address))
        return PH__OPTIONS_GO_ON;
    if (ph_metrics_create(&metering->metrics, &error) != PH_OK) {
        ph__complain("%s", error.message);
        return ph__status_broken(command);
    }
    int file = listen_at(&address);
    if (file < 0) {
        ph__complain("--metrics-listen %s: %s", metering->listen, strerror(errno));
        return (int)command->usage_status;
    }
    metering->server = start(file, metering->metrics);
    if (!metering->server) {
        ph__complain("--metrics-listen %s: the server could not be started", metering->listen);
        return ph__status_broken(command);
    }
    config->metrics = metering->metrics;
    say_where(&address);
    return PH__OPTIONS_GO_ON;
}

void ph__metering_stop(struct ph__metering *metering) {
    if (metering->server)
        MHD_stop_daemon(metering->server);
    metering->server = NULL;
}

void ph__metering_free(struct ph__metering *metering) {
    ph__metering_stop(metering);
    ph_metrics_destroy(metering->metrics);
    metering->metrics = NULL;
}
