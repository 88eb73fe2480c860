/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * An exporter to OpenTelemetry, with a server that it sends to and a list of what it says.
 */
#ifndef OTLP_FIXTURE_H
#define OTLP_FIXTURE_H

#include "support/http_server.h"
#include "support/support.h"

#include <pinhole/otlp.h>

#include "base/process.h"
#include "export/otlp_exporter.h"

#define TRACES "/v1/traces"
#define LOGS "/v1/logs"
#define METRICS "/v1/metrics"

/* Longer than anything here takes that goes well. */
#define LONG_NS 30000000000ull

#define FIXTURE_LINES 64

struct fixture {
    struct http_server *server;
    ph_otlp_config config;
    /* NULL, or what changes the settings before the exporter is made. */
    void (*change)(struct ph__otlp_settings *settings);
    ph_otlp *otlp;
    ph_sink sink;
    pthread_mutex_t lock;
    char lines[FIXTURE_LINES][640];
    size_t line_count;
};

/* A server, and a config for it, in an environment without a variable of OpenTelemetry's. */
void fixture_begin(struct fixture *fixture);
/* Makes the exporter, with pauses of 10 ms before repetitions. */
void fixture_create(struct fixture *fixture);
/* Destroys the exporter, in as much time as it takes, and then ends all. */
void fixture_end(struct fixture *fixture);
void fixture_destroy_otlp(struct fixture *fixture, uint64_t timeout_ns);

/* Gives the sink a span, an event or a counter of this name. */
void fixture_span(struct fixture *fixture, const char *name);
void fixture_event(struct fixture *fixture, const char *name);
void fixture_counter(struct fixture *fixture, const char *name);

/* Flushes, and asserts that it took no longer than it may. */
void fixture_flush(struct fixture *fixture);

ph_otlp_stats fixture_stats(struct fixture *fixture);

/* How many lines were told that hold (text). */
size_t fixture_told(struct fixture *fixture, const char *text);

/* A port at which nobody listens. */
uint16_t fixture_dead_port(void);

/* Unsets all of OpenTelemetry's variables. */
void fixture_environment_clear(void);

#endif
