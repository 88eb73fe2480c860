/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What is asked of the export to OpenTelemetry (otlp_settings.h), put together from a ph_otlp_config, the
 * environment and the defaults, in this order. Called once for each exporter, before its thread is there.
 */
#include "export/otlp_settings.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "export/otlp_environment.h"

#define ENDPOINT_DEFAULT "http://localhost:4318"
#define MILLISECOND_NS 1000000ull
#define TIMEOUT_DEFAULT_MS 10000u
#define TIMEOUT_LONGEST_MS 2147483647u /* for a time-out of 0, which the specification wants to be none */
#define ATTRIBUTES_DEFAULT 128u
#define VARIABLE_MAX 64

static const struct {
    const char *variable; /* the part of the variables' names */
    const char *path;
    const char *export_timeout;
} signals[3] = {
    [PH_EXPORT_TRACES] = {"TRACES", "/v1/traces", "OTEL_BSP_EXPORT_TIMEOUT"},
    [PH_EXPORT_LOGS] = {"LOGS", "/v1/logs", "OTEL_BLRP_EXPORT_TIMEOUT"},
    [PH_EXPORT_METRICS] = {"METRICS", "/v1/metrics", "OTEL_METRIC_EXPORT_TIMEOUT"},
};

/* A setting that somebody has made: its value, or NULL, and how a message calls it. */
struct setting {
    const char *value;
    char name[VARIABLE_MAX];
    bool of_signal; /* it is the variable of one signal */
};

/* OTEL_EXPORTER_OTLP_(signal)_(what), or else OTEL_EXPORTER_OTLP_(what). */
static struct setting from_environment(ph_export_signal signal, const char *what) {
    struct setting setting = {.of_signal = true};

    snprintf(setting.name, sizeof setting.name, "OTEL_EXPORTER_OTLP_%s_%s", signals[signal].variable, what);
    setting.value = ph__environment_text(setting.name);
    if (setting.value)
        return setting;
    setting.of_signal = false;
    snprintf(setting.name, sizeof setting.name, "OTEL_EXPORTER_OTLP_%s", what);
    setting.value = ph__environment_text(setting.name);
    return setting;
}

/* What the config says (given), or else the environment. */
static struct setting find(const char *given, const char *given_name, ph_export_signal signal,
                           const char *what) {
    struct setting setting = {.value = given};

    if (!given)
        return from_environment(signal, what);
    snprintf(setting.name, sizeof setting.name, "the config's %s", given_name);
    return setting;
}

/* ---- one signal's route -------------------------------------------------------------------------------- */

/* Puts the signal's path behind the URL's own, without doubling the slash between them. */
static CURLUcode path_append(CURLU *url, const char *more) {
    char *path = NULL;
    char *whole = NULL;

    CURLUcode code = curl_url_get(url, CURLUPART_PATH, &path, 0);
    if (code != CURLUE_OK)
        return code;
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    code = CURLUE_OUT_OF_MEMORY;
    if (asprintf(&whole, "%.*s%s", (int)length, path, more) >= 0) {
        code = curl_url_set(url, CURLUPART_PATH, whole, 0);
        free(whole);
    }
    curl_free(path);
    return code;
}

static bool is_http(const CURLU *url) {
    char *scheme = NULL;

    if (curl_url_get((CURLU *)url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
        return false;
    const bool http = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
    curl_free(scheme);
    return http;
}

static ph_status endpoint_read(const ph_otlp_config *config, ph_export_signal signal,
                               struct ph__otlp_route *route, ph_error *error) {
    struct setting setting = find(config->endpoint, "endpoint", signal, "ENDPOINT");
    char *whole = NULL;

    if (!setting.value)
        setting.value = ENDPOINT_DEFAULT;
    CURLU *url = curl_url();
    if (!url)
        return ph__error_set(error, PH_E_MEMORY, "no memory for an endpoint");
    CURLUcode code = curl_url_set(url, CURLUPART_URL, setting.value, 0);
    if (code == CURLUE_OK && !is_http(url))
        code = CURLUE_UNSUPPORTED_SCHEME;
    /* A signal's own endpoint is used as it is. */
    if (code == CURLUE_OK && !setting.of_signal)
        code = path_append(url, signals[signal].path);
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_URL, &whole, 0);
    curl_url_cleanup(url);
    if (code == CURLUE_OK) {
        route->url = strdup(whole);
        curl_free(whole);
        if (!route->url)
            code = CURLUE_OUT_OF_MEMORY;
    }
    if (code == CURLUE_OUT_OF_MEMORY)
        return ph__error_set(error, PH_E_MEMORY, "no memory for an endpoint");
    /* Without the value: it may hold a password. */
    if (code != CURLUE_OK)
        return ph__error_set(error, PH_E_ARGUMENT, "%s is no URL of http or https", setting.name);
    return PH_OK;
}

/* A token of RFC 9110, 5.6.2. */
/* How much of (name) may be one: what is behind may be a secret that stands in the wrong place. */
static size_t header_name_length(const char *name) {
    size_t length = 0;

    while ((name[length] >= '0' && name[length] <= '9') || (name[length] >= 'a' && name[length] <= 'z') ||
           (name[length] >= 'A' && name[length] <= 'Z') ||
           (name[length] && strchr("!#$%&'*+-.^_`|~", name[length])))
        length++;
    return length;
}

static bool is_header_name(const char *name) {
    return !name[header_name_length(name)];
}

static bool is_header_value(const char *value) {
    for (; *value; value++)
        if (((unsigned char)*value < 0x20 && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

/* What says how a request is to be read, which only who writes it knows. */
static bool is_ours(const char *name) {
    static const char *const ours[] = {"content-type", "content-encoding", "content-length",
                                       "transfer-encoding", "expect"};

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcasecmp(ours[i], name) == 0)
            return true;
    return false;
}

static ph_status headers_read(const ph_otlp_config *config, ph_export_signal signal,
                              struct ph__otlp_route *route, ph_error *error) {
    const struct setting setting = find(config->headers, "headers", signal, "HEADERS");
    const char *problem = NULL;

    if (!setting.value)
        return PH_OK;
    ph_status status = ph__otlp_pairs_parse(setting.value, &route->headers, &problem);
    if (status == PH_E_MEMORY)
        return ph__error_set(error, status, "no memory for headers");
    if (status != PH_OK)
        return ph__error_set(error, status, "%s: %s", setting.name, problem);
    /* Without the value, which is a secret as a rule. */
    for (size_t i = 0; i < route->headers.count; i++) {
        const struct ph__otlp_pair *pair = &route->headers.list[i];
        if (!is_header_name(pair->name) || !is_header_value(pair->value))
            return ph__error_set(error, PH_E_ARGUMENT,
                                 "%s: '%.*s' is no header of HTTP; it wants NAME=VALUE, with commas between",
                                 setting.name, (int)header_name_length(pair->name), pair->name);
        if (is_ours(pair->name))
            return ph__error_set(error, PH_E_ARGUMENT, "%s: the header '%s' cannot be set", setting.name,
                                 pair->name);
    }
    return PH_OK;
}

static ph_status compression_read(const ph_otlp_config *config, ph_export_signal signal,
                                  struct ph__otlp_route *route, ph_error *error) {
    const struct setting setting = find(config->compression, "compression", signal, "COMPRESSION");

    if (!setting.value || strcmp(setting.value, "none") == 0)
        return PH_OK;
    if (strcmp(setting.value, "gzip") != 0)
        return ph__error_set(error, PH_E_ARGUMENT, "%s: '%s' is neither gzip nor none", setting.name,
                             setting.value);
    route->gzip = true;
    return PH_OK;
}

static ph_status protocol_check(ph_export_signal signal, ph_error *error) {
    const struct setting setting = from_environment(signal, "PROTOCOL");

    if (setting.value && strcmp(setting.value, "http/protobuf") != 0)
        return ph__error_set(error, PH_E_ARGUMENT, "%s: pinhole sends by http/protobuf, and not by '%s'",
                             setting.name, setting.value);
    return PH_OK;
}

static bool file_read(ph_export_signal signal, const char *what, char **path) {
    const struct setting setting = from_environment(signal, what);

    if (!setting.value)
        return true;
    *path = strdup(setting.value);
    return *path != NULL;
}

static uint64_t timeout_of(uint32_t ms) {
    return (ms ? ms : TIMEOUT_LONGEST_MS) * MILLISECOND_NS;
}

/* (ms) is what holds for all signals. */
static void timeout_read(const ph_otlp_config *config, ph_export_signal signal, uint32_t ms,
                         struct ph__otlp_route *route, const struct ph__otlp_notes *notes) {
    char name[VARIABLE_MAX];

    route->timeout_ns = config->timeout_ns;
    if (route->timeout_ns)
        return;
    snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s_TIMEOUT", signals[signal].variable);
    ph__environment_number(name, 0, &ms, notes);
    route->timeout_ns = timeout_of(ms);
    /* The time that the export as a whole may take, which is one request here. */
    if (ph__environment_number(signals[signal].export_timeout, 0, &ms, notes) &&
        timeout_of(ms) < route->timeout_ns)
        route->timeout_ns = timeout_of(ms);
}

static void timeouts_read(const ph_otlp_config *config, struct ph__otlp_settings *settings,
                          const struct ph__otlp_notes *notes) {
    uint32_t ms = TIMEOUT_DEFAULT_MS;

    ph__environment_number("OTEL_EXPORTER_OTLP_TIMEOUT", 0, &ms, notes);
    for (unsigned signal = 0; signal < 3; signal++)
        timeout_read(config, (ph_export_signal)signal, ms, &settings->routes[signal], notes);
}

/* What OTEL_TRACES_EXPORTER and its siblings say: `none`, or what this is anyway. */
static bool is_off(ph_export_signal signal, const struct ph__otlp_notes *notes) {
    static const char *const names[] = {"OTEL_TRACES_EXPORTER", "OTEL_LOGS_EXPORTER",
                                        "OTEL_METRICS_EXPORTER"}; /* by ph_export_signal */
    const char *text = ph__environment_text(names[signal]);

    if (!text || strcmp(text, "otlp") == 0)
        return false;
    if (strcmp(text, "none") == 0)
        return true;
    ph__otlp_note(notes, "%s=%.64s is neither otlp nor none, and is ignored", names[signal], text);
    return false;
}

static ph_status route_read(const ph_otlp_config *config, ph_export_signal signal,
                            struct ph__otlp_route *route, ph_error *error) {
    ph_status status = protocol_check(signal, error);

    if (status == PH_OK)
        status = endpoint_read(config, signal, route, error);
    if (status == PH_OK)
        status = headers_read(config, signal, route, error);
    if (status == PH_OK)
        status = compression_read(config, signal, route, error);
    if (status != PH_OK)
        return status;
    if (!file_read(signal, "CERTIFICATE", &route->certificate) ||
        !file_read(signal, "CLIENT_CERTIFICATE", &route->client_certificate) ||
        !file_read(signal, "CLIENT_KEY", &route->client_key))
        return ph__error_set(error, PH_E_MEMORY, "no memory for a path");
    return PH_OK;
}

/* ---- the resource -------------------------------------------------------------------------------------- */

/* "unknown_service:" and the program's name, as the specification has it. */
static bool service_name_default(struct ph__otlp_pairs *resource) {
    char name[256];

    snprintf(name, sizeof name, "unknown_service%s%s", *program_invocation_short_name ? ":" : "",
             program_invocation_short_name);
    return ph__otlp_pairs_set(resource, "service.name", name);
}

/* Moves service.name, which is there, to the front. */
static void service_name_first(struct ph__otlp_pairs *resource) {
    size_t at = 0;

    while (strcmp(resource->list[at].name, "service.name") != 0)
        at++;
    const struct ph__otlp_pair name = resource->list[at];
    memmove(&resource->list[1], &resource->list[0], at * sizeof name);
    resource->list[0] = name;
}

static bool pairs_merge(struct ph__otlp_pairs *into, const struct ph__otlp_pairs *more) {
    for (size_t i = 0; i < more->count; i++)
        if (!ph__otlp_pairs_set(into, more->list[i].name, more->list[i].value))
            return false;
    return true;
}

static ph_status resource_read(const ph_otlp_config *config, struct ph__otlp_pairs *resource,
                               const struct ph__otlp_notes *notes, ph_error *error) {
    struct ph__otlp_pairs given = {0};
    const char *problem = NULL;
    const char *text = ph__environment_text("OTEL_RESOURCE_ATTRIBUTES");
    ph_status status = text ? ph__otlp_pairs_parse(text, resource, &problem) : PH_OK;

    /* One mistake, and all of the variable is ignored: the specification asks for that. */
    if (status == PH_E_ARGUMENT) {
        ph__otlp_note(notes, "OTEL_RESOURCE_ATTRIBUTES is ignored: %s", problem);
        status = PH_OK;
    }
    if (status == PH_OK && config->resource_attributes)
        status = ph__otlp_pairs_parse(config->resource_attributes, &given, &problem);
    if (status == PH_E_ARGUMENT)
        return ph__error_set(error, status, "the config's resource_attributes: %s", problem);
    if (status == PH_OK && !pairs_merge(resource, &given))
        status = PH_E_MEMORY;
    ph__otlp_pairs_free(&given);

    const char *service = config->service_name;
    if (!service)
        service = ph__environment_text("OTEL_SERVICE_NAME");
    if (status == PH_OK && service && !ph__otlp_pairs_set(resource, "service.name", service))
        status = PH_E_MEMORY;
    if (status == PH_OK && !ph__otlp_pairs_get(resource, "service.name") && !service_name_default(resource))
        status = PH_E_MEMORY;
    if (status != PH_OK)
        return ph__error_set(error, status, "no memory for the resource");
    service_name_first(resource);
    return PH_OK;
}

/* ---- limits and batches -------------------------------------------------------------------------------- */

static void limits_read(struct ph__otlp_settings *settings, const struct ph__otlp_notes *notes) {
    uint32_t count = ATTRIBUTES_DEFAULT;
    uint32_t length = UINT32_MAX;

    /* What holds for all kinds of attributes, where nothing is said of one. */
    ph__environment_number("OTEL_ATTRIBUTE_COUNT_LIMIT", 0, &count, notes);
    ph__environment_number("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", 0, &length, notes);
    settings->span_attributes_max = settings->event_attributes_max = settings->log_attributes_max = count;
    settings->span_value_bytes_max = settings->log_value_bytes_max = length;

    const struct {
        const char *name;
        uint32_t *limit;
    } limits[] = {
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", &settings->span_attributes_max},
        {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", &settings->span_value_bytes_max},
        {"OTEL_SPAN_EVENT_COUNT_LIMIT", &settings->span_events_max},
        {"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", &settings->event_attributes_max},
        {"OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", &settings->log_attributes_max},
        {"OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", &settings->log_value_bytes_max},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        ph__environment_number(limits[i].name, 0, limits[i].limit, notes);
}

/* OTEL_(kind)_MAX_QUEUE_SIZE, _MAX_EXPORT_BATCH_SIZE and _SCHEDULE_DELAY. */
static void batching_read(const char *kind, uint32_t *queue, uint32_t *batch, uint64_t *delay_ns,
                          const struct ph__otlp_notes *notes) {
    char name[VARIABLE_MAX];
    uint32_t ms = 0;

    snprintf(name, sizeof name, "OTEL_%s_MAX_QUEUE_SIZE", kind);
    ph__environment_number(name, 1, queue, notes);
    snprintf(name, sizeof name, "OTEL_%s_SCHEDULE_DELAY", kind);
    if (ph__environment_number(name, 0, &ms, notes))
        *delay_ns = ms * MILLISECOND_NS;
    snprintf(name, sizeof name, "OTEL_%s_MAX_EXPORT_BATCH_SIZE", kind);
    const bool said = ph__environment_number(name, 1, batch, notes);
    if (*batch <= *queue)
        return;
    if (said)
        ph__otlp_note(notes, "%s=%u is more than the queue's %u, which it is then", name, *batch, *queue);
    *batch = *queue;
}

/* More than OpenTelemetry's default of 2,048: a guest records in bursts, since it does not wait for its trace
 * as a server waits for requests. What bounds memory are the bytes. */
#define QUEUE_DEFAULT 65536u

static void defaults_set(struct ph__otlp_settings *settings) {
    *settings = (struct ph__otlp_settings){
        .span_events_max = 128,
        .span_queue_max = QUEUE_DEFAULT,
        .span_batch_max = 512,
        .span_delay_ns = 5 * PH__SECOND_NS,
        .log_queue_max = QUEUE_DEFAULT,
        .log_batch_max = 512,
        .log_delay_ns = 1 * PH__SECOND_NS,
        .metric_interval_ns = 60 * PH__SECOND_NS,
        .batch_bytes = (size_t)4 << 20,
        .queue_bytes = (size_t)64 << 20,
        .backoff_ns = 1 * PH__SECOND_NS,
    };
}

static ph_status take_config(const ph_otlp_config *config, ph_otlp_config *taken, ph_error *error) {
    if (!config)
        return PH_OK;
    if (config->size < offsetof(ph_otlp_config, endpoint) + sizeof config->endpoint ||
        config->size > sizeof *config)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the config's size is not one of this library: use PH_OTLP_CONFIG_INIT");
    memcpy(taken, config, config->size);
    return PH_OK;
}

/* How much of an item is kept, and how many are in a batch. */
static void items_read(struct ph__otlp_settings *settings, const struct ph__otlp_notes *notes) {
    limits_read(settings, notes);
    batching_read("BSP", &settings->span_queue_max, &settings->span_batch_max, &settings->span_delay_ns,
                  notes);
    batching_read("BLRP", &settings->log_queue_max, &settings->log_batch_max, &settings->log_delay_ns, notes);
}

ph_status ph__otlp_settings_read_for_file(struct ph__otlp_settings *settings, ph_error *error) {
    const ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    const struct ph__otlp_notes nobody = {0};

    defaults_set(settings);
    ph_status status = resource_read(&config, &settings->resource, &nobody, error);
    if (status != PH_OK) {
        ph__otlp_settings_free(settings);
        return status;
    }
    items_read(settings, &nobody);
    return PH_OK;
}

ph_status ph__otlp_settings_read(const ph_otlp_config *config, struct ph__otlp_settings *settings,
                                 ph_error *error) {
    ph_otlp_config taken = PH_OTLP_CONFIG_INIT;
    uint32_t ms = 0;

    defaults_set(settings);
    ph_status status = take_config(config, &taken, error);
    if (status != PH_OK)
        return status;
    const struct ph__otlp_notes notes = {taken.diagnostics, taken.diagnostics_context};
    settings->disabled = ph__environment_flag("OTEL_SDK_DISABLED", &notes);
    for (unsigned signal = 0; signal < 3 && status == PH_OK; signal++) {
        settings->routes[signal].off = settings->disabled || is_off((ph_export_signal)signal, &notes);
        if (settings->routes[signal].off)
            continue;
        status = route_read(&taken, (ph_export_signal)signal, &settings->routes[signal], error);
    }
    if (status == PH_OK)
        status = resource_read(&taken, &settings->resource, &notes, error);
    if (status != PH_OK) {
        ph__otlp_settings_free(settings);
        return status;
    }
    timeouts_read(&taken, settings, &notes);
    items_read(settings, &notes);
    if (ph__environment_number("OTEL_METRIC_EXPORT_INTERVAL", 1, &ms, &notes))
        settings->metric_interval_ns = ms * MILLISECOND_NS;
    return PH_OK;
}

void ph__otlp_settings_free(struct ph__otlp_settings *settings) {
    for (size_t i = 0; i < sizeof settings->routes / sizeof settings->routes[0]; i++) {
        struct ph__otlp_route *route = &settings->routes[i];
        free(route->url);
        ph__otlp_pairs_free(&route->headers);
        free(route->certificate);
        free(route->client_certificate);
        free(route->client_key);
    }
    ph__otlp_pairs_free(&settings->resource);
    *settings = (struct ph__otlp_settings){0};
}
