/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Making, feeding and ending an exporter under test (otlp_fixture.h).
 */
#include "otlp_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fixture_environment_clear(void) {
    /* From the front again after each, since the list moves. */
    for (char **variable = environ; *variable;) {
        if (strncmp(*variable, "OTEL_", 5) != 0) {
            variable++;
            continue;
        }
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*variable, "="), *variable);
        unsetenv(name);
        variable = environ;
    }
    setenv("no_proxy", "*", 1);
}

static void tell(void *context, const char *message) {
    struct fixture *fixture = context;

    pthread_mutex_lock(&fixture->lock);
    if (fixture->line_count < FIXTURE_LINES)
        snprintf(fixture->lines[fixture->line_count++], sizeof fixture->lines[0], "%s", message);
    pthread_mutex_unlock(&fixture->lock);
}

void fixture_begin(struct fixture *fixture) {
    const ph_otlp_config config = PH_OTLP_CONFIG_INIT;

    memset(fixture, 0, sizeof *fixture);
    fixture_environment_clear();
    pthread_mutex_init(&fixture->lock, NULL);
    fixture->server = http_server_start(0);
    fixture->config = config;
    fixture->config.endpoint = http_server_url(fixture->server);
    fixture->config.diagnostics = tell;
    fixture->config.diagnostics_context = fixture;
}

void fixture_create(struct fixture *fixture) {
    struct ph__otlp_settings settings;
    ph_error error;

    if (ph__process_init(&error) != PH_OK ||
        ph__otlp_settings_read(&fixture->config, &settings, &error) != PH_OK)
        fail_msg("%s", error.message);
    settings.backoff_ns = 10000000;
    if (fixture->change)
        fixture->change(&settings);
    if (ph__otlp_create(&fixture->config, &settings, &fixture->otlp, &error) != PH_OK)
        fail_msg("%s", error.message);
    ph_otlp_sink(fixture->otlp, &fixture->sink);
}

void fixture_destroy_otlp(struct fixture *fixture, uint64_t timeout_ns) {
    const uint64_t before = test_now_ns();

    ph_otlp_shutdown(fixture->otlp, timeout_ns);
    ph_otlp_destroy(fixture->otlp);
    /* Nothing here needs all of it: who takes it waits for nothing. */
    assert_true(test_now_ns() - before < LONG_NS);
    fixture->otlp = NULL;
}

void fixture_end(struct fixture *fixture) {
    fixture_destroy_otlp(fixture, LONG_NS);
    http_server_stop(fixture->server);
}

void fixture_span(struct fixture *fixture, const char *name) {
    const ph_trace_span span = {
        .size = sizeof span,
        .sandbox = 1,
        .id = 7,
        .kind = PH_SPAN_USER,
        .level = PH_LEVEL_INFO,
        .name = name,
        .start_ns = 1000,
        .end_ns = 2000,
        .trace_id = {1},
    };
    fixture->sink.span(fixture->sink.context, &span);
}

void fixture_event(struct fixture *fixture, const char *name) {
    const ph_trace_event event = {
        .size = sizeof event, .sandbox = 1, .level = PH_LEVEL_INFO, .name = name, .time_ns = 1000};
    fixture->sink.event(fixture->sink.context, &event);
}

void fixture_counter(struct fixture *fixture, const char *name) {
    const ph_trace_counter counter = {
        .size = sizeof counter,
        .sandbox = 1,
        .name = name,
        .time_ns = 1000,
        .value = {.type = PH_I64, .i64 = 5},
    };
    fixture->sink.counter(fixture->sink.context, &counter);
}

void fixture_flush(struct fixture *fixture) {
    assert_int_equal(ph_otlp_flush(fixture->otlp, LONG_NS), PH_OK);
}

ph_otlp_stats fixture_stats(struct fixture *fixture) {
    ph_otlp_stats stats = PH_OTLP_STATS_INIT;

    assert_int_equal(ph_otlp_get_stats(fixture->otlp, &stats), PH_OK);
    return stats;
}

size_t fixture_told(struct fixture *fixture, const char *text) {
    size_t count = 0;

    pthread_mutex_lock(&fixture->lock);
    for (size_t i = 0; i < fixture->line_count; i++)
        count += strstr(fixture->lines[i], text) != NULL;
    pthread_mutex_unlock(&fixture->lock);
    return count;
}

uint16_t fixture_dead_port(void) {
    struct http_server *server = http_server_start(0);
    const uint16_t port = http_server_port(server);

    http_server_stop(server);
    return port;
}
