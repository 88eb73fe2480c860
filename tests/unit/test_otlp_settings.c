/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the exporter to OpenTelemetry makes of its config and of the environment: what holds over what, what
 * makes no sense and is told, and what is refused.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/otlp_environment.h"
#include "otlp_fixture.h"
#include "support/failing.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define MS 1000000ull

static char told[4096];

static void tell(void *context, const char *message) {
    (void)context;
    strncat(told, message, sizeof told - strlen(told) - 1);
    strncat(told, "\n", sizeof told - strlen(told) - 1);
}

static int clear(void **state) {
    (void)state;
    fixture_environment_clear();
    told[0] = 0;
    return 0;
}

/* The settings for (config), which may be NULL, with a diagnostics function. */
static struct ph__otlp_settings settings_of(const ph_otlp_config *config) {
    ph_otlp_config with = PH_OTLP_CONFIG_INIT;
    struct ph__otlp_settings settings;
    ph_error error;

    if (config)
        with = *config;
    with.diagnostics = tell;
    if (ph__otlp_settings_read(&with, &settings, &error) != PH_OK)
        fail_msg("%s", error.message);
    return settings;
}

/* ---- defaults and numbers ------------------------------------------------------------------------------ */

static void without_anything_there_are_the_specifications_defaults(void **state) {
    struct ph__otlp_settings settings;
    char service[300];

    (void)state;
    assert_int_equal(ph__otlp_settings_read(NULL, &settings, NULL), PH_OK);
    assert_false(settings.disabled);
    assert_string_equal(settings.routes[PH_EXPORT_TRACES].url, "http://localhost:4318/v1/traces");
    assert_string_equal(settings.routes[PH_EXPORT_LOGS].url, "http://localhost:4318/v1/logs");
    assert_string_equal(settings.routes[PH_EXPORT_METRICS].url, "http://localhost:4318/v1/metrics");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(settings.routes[i].headers.count, 0);
        assert_int_equal(settings.routes[i].timeout_ns, 10000 * MS);
        assert_false(settings.routes[i].gzip);
        assert_null(settings.routes[i].certificate);
    }
    snprintf(service, sizeof service, "unknown_service:%s", program_invocation_short_name);
    assert_int_equal(settings.resource.count, 1);
    assert_string_equal(settings.resource.list[0].name, "service.name");
    assert_string_equal(settings.resource.list[0].value, service);
    assert_int_equal(settings.span_attributes_max, 128);
    assert_int_equal(settings.span_value_bytes_max, UINT32_MAX);
    assert_int_equal(settings.span_events_max, 128);
    assert_int_equal(settings.event_attributes_max, 128);
    assert_int_equal(settings.log_attributes_max, 128);
    assert_int_equal(settings.log_value_bytes_max, UINT32_MAX);
    assert_int_equal(settings.span_queue_max, 65536);
    assert_int_equal(settings.span_batch_max, 512);
    assert_int_equal(settings.span_delay_ns, 5000 * MS);
    assert_int_equal(settings.log_queue_max, 65536);
    assert_int_equal(settings.log_batch_max, 512);
    assert_int_equal(settings.log_delay_ns, 1000 * MS);
    assert_int_equal(settings.metric_interval_ns, 60000 * MS);
    ph__otlp_settings_free(&settings);
    assert_string_equal(told, "");
}

/* One number of the settings, by name. */
static uint64_t number_of(const struct ph__otlp_settings *settings, const char *what) {
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {
        {"span attributes", settings->span_attributes_max},
        {"span bytes", settings->span_value_bytes_max},
        {"span events", settings->span_events_max},
        {"event attributes", settings->event_attributes_max},
        {"log attributes", settings->log_attributes_max},
        {"log bytes", settings->log_value_bytes_max},
        {"span queue", settings->span_queue_max},
        {"span batch", settings->span_batch_max},
        {"span delay", settings->span_delay_ns},
        {"log queue", settings->log_queue_max},
        {"log batch", settings->log_batch_max},
        {"log delay", settings->log_delay_ns},
        {"interval", settings->metric_interval_ns},
        {"traces time-out", settings->routes[PH_EXPORT_TRACES].timeout_ns},
        {"logs time-out", settings->routes[PH_EXPORT_LOGS].timeout_ns},
        {"metrics time-out", settings->routes[PH_EXPORT_METRICS].timeout_ns},
        {"disabled", settings->disabled},
        {"traces gzip", settings->routes[PH_EXPORT_TRACES].gzip},
        {"logs gzip", settings->routes[PH_EXPORT_LOGS].gzip},
    };

    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i].name, what) == 0)
            return all[i].value;
    fail_msg("no setting is called %s", what);
    return 0;
}

static void variables_set_what_they_name(void **state) {
    static const struct {
        const char *environment; /* NAME=VALUE, with blanks between them */
        const char *what;
        uint64_t value;
        bool told;
    } cases[] = {
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=7", "span attributes", 7, false},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=0", "span attributes", 0, false},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=", "span attributes", 128, false},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=-1", "span attributes", 128, true},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=1.5", "span attributes", 128, true},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=many", "span attributes", 128, true},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=2147483647", "span attributes", 2147483647, false},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=2147483648", "span attributes", 128, true},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=99999999999999999999", "span attributes", 128, true},
        {"OTEL_ATTRIBUTE_COUNT_LIMIT=9", "span attributes", 9, false},
        {"OTEL_ATTRIBUTE_COUNT_LIMIT=9", "event attributes", 9, false},
        {"OTEL_ATTRIBUTE_COUNT_LIMIT=9", "log attributes", 9, false},
        {"OTEL_ATTRIBUTE_COUNT_LIMIT=9 OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=8", "span attributes", 8, false},
        {"OTEL_ATTRIBUTE_COUNT_LIMIT=9 OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=x", "span attributes", 9, true},
        {"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT=3", "event attributes", 3, false},
        {"OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT=3", "log attributes", 3, false},
        {"OTEL_SPAN_EVENT_COUNT_LIMIT=3", "span events", 3, false},
        {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=64", "span bytes", 64, false},
        {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=64", "log bytes", 64, false},
        {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT=0", "span bytes", 0, false},
        {"OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT=5", "log bytes", 5, false},
        {"OTEL_BSP_MAX_QUEUE_SIZE=9000", "span queue", 9000, false},
        {"OTEL_BSP_MAX_QUEUE_SIZE=0", "span queue", 65536, true},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10", "span batch", 10, false},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=90000", "span batch", 65536, true},
        {"OTEL_BSP_MAX_QUEUE_SIZE=100", "span batch", 100, false},
        {"OTEL_BSP_SCHEDULE_DELAY=250", "span delay", 250 * MS, false},
        {"OTEL_BSP_SCHEDULE_DELAY=0", "span delay", 0, false},
        {"OTEL_BLRP_MAX_QUEUE_SIZE=9000", "log queue", 9000, false},
        {"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=10", "log batch", 10, false},
        {"OTEL_BLRP_SCHEDULE_DELAY=250", "log delay", 250 * MS, false},
        {"OTEL_METRIC_EXPORT_INTERVAL=1000", "interval", 1000 * MS, false},
        {"OTEL_METRIC_EXPORT_INTERVAL=0", "interval", 60000 * MS, true},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=1500", "traces time-out", 1500 * MS, false},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=1500", "metrics time-out", 1500 * MS, false},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=0", "logs time-out", 2147483647 * MS, false},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=1500 OTEL_EXPORTER_OTLP_LOGS_TIMEOUT=9", "logs time-out", 9 * MS, false},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=1500 OTEL_EXPORTER_OTLP_LOGS_TIMEOUT=x", "logs time-out", 1500 * MS,
         true},
        {"OTEL_BSP_EXPORT_TIMEOUT=700", "traces time-out", 700 * MS, false},
        {"OTEL_BSP_EXPORT_TIMEOUT=30000", "traces time-out", 10000 * MS, false},
        {"OTEL_BLRP_EXPORT_TIMEOUT=700", "logs time-out", 700 * MS, false},
        {"OTEL_METRIC_EXPORT_TIMEOUT=700", "metrics time-out", 700 * MS, false},
        {"OTEL_SDK_DISABLED=true", "disabled", 1, false},
        {"OTEL_SDK_DISABLED=False", "disabled", 0, false},
        {"OTEL_SDK_DISABLED=1", "disabled", 0, true},
        {"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "logs gzip", 1, false},
        {"OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_LOGS_COMPRESSION=none", "logs gzip", 0,
         false},
        {"OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_LOGS_COMPRESSION=none", "traces gzip", 1,
         false},
        {"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "disabled", 0, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char environment[256];
        char *rest = NULL;
        clear(state);
        snprintf(environment, sizeof environment, "%s", cases[i].environment);
        for (char *pair = strtok_r(environment, " ", &rest); pair; pair = strtok_r(NULL, " ", &rest)) {
            char *equals = strchr(pair, '=');
            *equals = 0;
            setenv(pair, equals + 1, 1);
        }
        struct ph__otlp_settings settings = settings_of(NULL);
        if (number_of(&settings, cases[i].what) != cases[i].value || (*told != 0) != cases[i].told)
            fail_msg("%s: %s is %llu; told: %s", cases[i].environment, cases[i].what,
                     (unsigned long long)number_of(&settings, cases[i].what), told);
        ph__otlp_settings_free(&settings);
    }
}

static void a_value_that_makes_no_sense_is_told_with_its_name(void **state) {
    (void)state;
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "a\x1b[2Jlot", 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_string_equal(
        told, "OTEL_BSP_MAX_QUEUE_SIZE=a?[2Jlot is no number from 1 to 2147483647, and is ignored\n");
    ph__otlp_settings_free(&settings);
}

/* ---- endpoints, headers and what is refused ------------------------------------------------------------ */

static void endpoints_get_the_signals_path(void **state) {
    static const struct {
        const char *endpoint;
        const char *url;
    } cases[] = {
        {"http://collector:4318", "http://collector:4318/v1/traces"},
        {"http://collector:4318/", "http://collector:4318/v1/traces"},
        {"https://collector/otlp", "https://collector/otlp/v1/traces"},
        {"https://collector/otlp//", "https://collector/otlp/v1/traces"},
        {"http://[::1]:4318", "http://[::1]:4318/v1/traces"},
        {"http://collector/x?key=a", "http://collector/x/v1/traces?key=a"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        setenv("OTEL_EXPORTER_OTLP_ENDPOINT", cases[i].endpoint, 1);
        struct ph__otlp_settings settings = settings_of(NULL);
        assert_string_equal(settings.routes[PH_EXPORT_TRACES].url, cases[i].url);
        ph__otlp_settings_free(&settings);
    }
}

static void the_config_holds_over_every_variable(void **state) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;

    (void)state;
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://environment", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://environment/traces", 1);
    setenv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "a=environment", 1);
    setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1", 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "1", 1);
    setenv("OTEL_SERVICE_NAME", "environment", 1);
    setenv("OTEL_RESOURCE_ATTRIBUTES", "from=environment,b=environment,service.name=resource", 1);
    config.endpoint = "http://config";
    config.headers = "a=config";
    config.compression = "none";
    config.timeout_ns = 77;
    config.service_name = "config";
    config.resource_attributes = "b=config,c=x%2Cy";
    struct ph__otlp_settings settings = settings_of(&config);
    assert_string_equal(settings.routes[PH_EXPORT_TRACES].url, "http://config/v1/traces");
    assert_string_equal(ph__otlp_pairs_get(&settings.routes[PH_EXPORT_LOGS].headers, "a"), "config");
    assert_false(settings.routes[PH_EXPORT_TRACES].gzip);
    assert_int_equal(settings.routes[PH_EXPORT_TRACES].timeout_ns, 77);
    assert_string_equal(settings.resource.list[0].name, "service.name");
    assert_string_equal(settings.resource.list[0].value, "config");
    assert_string_equal(ph__otlp_pairs_get(&settings.resource, "from"), "environment");
    assert_string_equal(ph__otlp_pairs_get(&settings.resource, "b"), "config");
    assert_string_equal(ph__otlp_pairs_get(&settings.resource, "c"), "x,y");
    assert_int_equal(settings.resource.count, 4);
    ph__otlp_settings_free(&settings);
}

static void certificates_are_of_the_signal_or_of_all(void **state) {
    (void)state;
    setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/all.pem", 1);
    setenv("OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", "/logs.pem", 1);
    setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key.pem", 1);
    setenv("OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE", "/client.pem", 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_string_equal(settings.routes[PH_EXPORT_TRACES].certificate, "/all.pem");
    assert_string_equal(settings.routes[PH_EXPORT_LOGS].certificate, "/logs.pem");
    assert_string_equal(settings.routes[PH_EXPORT_LOGS].client_key, "/key.pem");
    assert_null(settings.routes[PH_EXPORT_LOGS].client_certificate);
    assert_string_equal(settings.routes[PH_EXPORT_METRICS].client_certificate, "/client.pem");
    ph__otlp_settings_free(&settings);
}

static void what_would_send_otherwise_than_asked_is_refused(void **state) {
    static const struct {
        const char *name;
        const char *value;
        const char *message;
    } cases[] = {
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector", "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "file:///etc/passwd", "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://", "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a b", "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a\r\nb", "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "x", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT is no URL"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a", "OTEL_EXPORTER_OTLP_HEADERS: a pair without '='"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "=b", "OTEL_EXPORTER_OTLP_HEADERS: a pair without a name"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a=%4", "OTEL_EXPORTER_OTLP_HEADERS: a '%'"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a=%zz", "OTEL_EXPORTER_OTLP_HEADERS: a '%'"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a=b%00c", "OTEL_EXPORTER_OTLP_HEADERS: a '%'"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0aX: y", "'a' is no header of HTTP"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a b=c", "'a' is no header of HTTP"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "a:=c", "'a' is no header of HTTP"},
        {"OTEL_EXPORTER_OTLP_HEADERS", "Content-Length=5", "the header 'Content-Length' cannot be set"},
        {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x", "OTEL_EXPORTER_OTLP_METRICS_HEADERS: a pair"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "'zstd' is neither gzip nor none"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "sends by http/protobuf, and not by 'grpc'"},
        {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: pinhole"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        ph_otlp *otlp = NULL;
        ph_error error;
        clear(state);
        setenv(cases[i].name, cases[i].value, 1);
        assert_int_equal(ph_otlp_create(NULL, &otlp, &error), PH_E_ARGUMENT);
        assert_null(otlp);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s=%s: %s", cases[i].name, cases[i].value, error.message);
    }
}

static void messages_hold_no_secrets(void **state) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    ph_otlp *otlp = NULL;
    ph_error error;

    (void)state;
    config.endpoint = "htp://user:secret@collector";
    assert_int_equal(ph_otlp_create(&config, &otlp, &error), PH_E_ARGUMENT);
    assert_string_equal(error.message, "the config's endpoint is no URL of http or https");
    config.endpoint = NULL;
    config.headers = "authorization=secret%0a";
    assert_int_equal(ph_otlp_create(&config, &otlp, &error), PH_E_ARGUMENT);
    assert_null(strstr(error.message, "secret"));
    /* With a colon for the sign, and a sign of base64's own. */
    config.headers = "authorization: Bearer c2VjcmV0==";
    assert_int_equal(ph_otlp_create(&config, &otlp, &error), PH_E_ARGUMENT);
    assert_string_equal(error.message, "the config's headers: 'authorization' is no header of HTTP; it wants "
                                       "NAME=VALUE, with commas between");
}

static void a_signal_can_be_turned_off(void **state) {
    clear(state);
    setenv("OTEL_TRACES_EXPORTER", "otlp", 1);
    setenv("OTEL_LOGS_EXPORTER", "none", 1);
    setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "nonsense", 1);
    setenv("OTEL_METRICS_EXPORTER", "prometheus", 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_false(settings.routes[PH_EXPORT_TRACES].off);
    assert_true(settings.routes[PH_EXPORT_LOGS].off);
    assert_false(settings.routes[PH_EXPORT_METRICS].off);
    assert_string_equal(told, "OTEL_METRICS_EXPORTER=prometheus is neither otlp nor none, and is ignored\n");
    ph__otlp_settings_free(&settings);
}

static void nothing_is_refused_that_would_not_be_used(void **state) {
    clear(state);
    setenv("OTEL_SDK_DISABLED", "true", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_true(settings.disabled);
    ph__otlp_settings_free(&settings);
}

/* Each name is looked for among those before it, and each value is repeated in what is said. */
static void what_is_far_too_long_is_bounded(void **state) {
    static char text[100000];

    clear(state);
    for (size_t i = 0; i + 8 < sizeof text; i += 8)
        snprintf(text + i, 9, "k%05zu=,", i / 8);
    setenv("OTEL_RESOURCE_ATTRIBUTES", text, 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_int_equal(settings.resource.count, 1);
    assert_string_equal(told, "OTEL_RESOURCE_ATTRIBUTES is ignored: more than 1024 pairs\n");
    ph__otlp_settings_free(&settings);
    clear(state);
    memset(text, '9', sizeof text - 1);
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", text, 1);
    settings = settings_of(NULL);
    assert_non_null(strstr(told, " is no number from 1 to "));
    ph__otlp_settings_free(&settings);
}

/* ---- the resource -------------------------------------------------------------------------------------- */

static void the_resource_is_whole_or_ignored(void **state) {
    static const struct {
        const char *value;
        size_t count; /* with service.name */
        bool told;
    } cases[] = {
        {"a=b,c=d", 3, false},
        {" a = b , c = d ", 3, false},
        {"a=b,,c=d,", 3, false},
        {"a=1,a=2", 2, false},
        {"a=", 2, false},
        {"a=%", 1, true},
        {"a=b,c", 1, true},
        {"a=b,=d", 1, true},
        {"a=b,c=%e", 1, true},
        {"a=b,c=%ff%00", 1, true},
        {"", 1, false},
        {" , ", 1, false},
        {"%41b=%c3%a9", 2, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        clear(state);
        setenv("OTEL_RESOURCE_ATTRIBUTES", cases[i].value, 1);
        struct ph__otlp_settings settings = settings_of(NULL);
        if (settings.resource.count != cases[i].count || (*told != 0) != cases[i].told)
            fail_msg("%s: %zu attributes; told: %s", cases[i].value, settings.resource.count, told);
        ph__otlp_settings_free(&settings);
    }
}

static void pairs_are_trimmed_and_decoded(void **state) {
    (void)state;
    setenv("OTEL_RESOURCE_ATTRIBUTES", " a = b c ,%41b=%c3%a9%2c%3D,x==y", 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_string_equal(ph__otlp_pairs_get(&settings.resource, "a"), "b c");
    assert_string_equal(ph__otlp_pairs_get(&settings.resource, "Ab"), "\xc3\xa9,=");
    assert_string_equal(ph__otlp_pairs_get(&settings.resource, "x"), "=y");
    ph__otlp_settings_free(&settings);
}

static void the_services_name_comes_from_the_nearest(void **state) {
    (void)state;
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=resource", 1);
    struct ph__otlp_settings settings = settings_of(NULL);
    assert_string_equal(settings.resource.list[0].value, "resource");
    assert_string_equal(settings.resource.list[1].name, "a");
    ph__otlp_settings_free(&settings);
    setenv("OTEL_SERVICE_NAME", "service", 1);
    settings = settings_of(NULL);
    assert_string_equal(settings.resource.list[0].value, "service");
    assert_int_equal(settings.resource.count, 2);
    ph__otlp_settings_free(&settings);
}

/* ---- the sampler --------------------------------------------------------------------------------------- */

static void the_sampler_is_what_the_environment_names(void **state) {
    static const struct {
        const char *name;
        const char *argument;
        long sampler; /* -1: unchanged */
        double ratio;
        bool told;
    } cases[] = {
        {NULL, NULL, -1, -1, false},
        {NULL, "0.5", -1, -1, false},
        {"", "0.5", -1, -1, false},
        {"always_on", NULL, PH_SAMPLER_ALWAYS_ON, -1, false},
        {"always_off", "0.5", PH_SAMPLER_ALWAYS_OFF, -1, false},
        {"traceidratio", "0.25", PH_SAMPLER_RATIO, 0.25, false},
        {"traceidratio", NULL, PH_SAMPLER_RATIO, 1, false},
        {"traceidratio", "0", PH_SAMPLER_RATIO, 0, false},
        {"traceidratio", "1e-3", PH_SAMPLER_RATIO, 0.001, false},
        {"traceidratio", "1.5", PH_SAMPLER_RATIO, 1, true},
        {"traceidratio", "-0.5", PH_SAMPLER_RATIO, 1, true},
        {"traceidratio", "0,5", PH_SAMPLER_RATIO, 1, true},
        {"traceidratio", "nan", PH_SAMPLER_RATIO, 1, true},
        {"traceidratio", "half", PH_SAMPLER_RATIO, 1, true},
        {"traceidratio", ".", PH_SAMPLER_RATIO, 1, true},
        {"parentbased_always_on", NULL, PH_SAMPLER_PARENT_ALWAYS_ON, -1, false},
        {"parentbased_always_off", NULL, PH_SAMPLER_PARENT_ALWAYS_OFF, -1, false},
        {"parentbased_traceidratio", "0.5", PH_SAMPLER_PARENT_RATIO, 0.5, false},
        {"jaeger_remote", NULL, -1, -1, true},
        {"Always_On", NULL, -1, -1, true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        ph_sampler sampler = (ph_sampler)99;
        double ratio = -1;
        clear(state);
        if (cases[i].name)
            setenv("OTEL_TRACES_SAMPLER", cases[i].name, 1);
        if (cases[i].argument)
            setenv("OTEL_TRACES_SAMPLER_ARG", cases[i].argument, 1);
        ph_otlp_sampler_from_environment(&sampler, &ratio, tell, NULL);
        assert_int_equal(sampler, cases[i].sampler < 0 ? 99 : cases[i].sampler);
        assert_true(ratio == cases[i].ratio);
        assert_int_equal(*told != 0, cases[i].told);
        ph_otlp_sampler_from_environment(&sampler, &ratio, NULL, NULL);
    }
}

/* ---- without memory ------------------------------------------------------------------------------------ */

/* What the exporter can be without: attributes of the resource. Of the call that has the signals back, nobody
 * learns here: base/thread.c says why. */
static bool may_fail(const char *call) {
    static const char *const calls[] = {"getrandom", "pthread_sigmask", "readlink", "uname"};

    for (size_t i = 0; i < COUNT(calls); i++)
        if (strcmp(calls[i], call) == 0)
            return true;
    return false;
}

static void every_call_that_fails_is_reported_and_leaves_nothing(void **state) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    unsigned refused = 0;

    (void)state;
    config.headers = "a=b,c=d";
    config.resource_attributes = "e=f";
    setenv("OTEL_RESOURCE_ATTRIBUTES", "g=h,service.name=i", 1);
    setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", 1);
    for (unsigned at = 1;; at++) {
        ph_otlp *otlp = NULL;
        ph_error error;
        failing = (struct failing){.at = at};
        const ph_status status = ph_otlp_create(&config, &otlp, &error);
        const char *failed = failing.failed;
        failing = (struct failing){0};
        if (status == PH_OK) {
            ph_otlp_shutdown(otlp, 0);
            ph_otlp_destroy(otlp);
            if (failed && !may_fail(failed))
                fail_msg("%s failed, and nobody was told", failed);
            if (!failed)
                break;
            continue;
        }
        refused++;
        assert_null(otlp);
        assert_true(status == PH_E_MEMORY || status == PH_E_SYSTEM);
        assert_true(*error.message != 0);
    }
    assert_true(refused > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_anything_there_are_the_specifications_defaults, clear),
        cmocka_unit_test_setup(variables_set_what_they_name, clear),
        cmocka_unit_test_setup(a_value_that_makes_no_sense_is_told_with_its_name, clear),
        cmocka_unit_test_setup(endpoints_get_the_signals_path, clear),
        cmocka_unit_test_setup(the_config_holds_over_every_variable, clear),
        cmocka_unit_test_setup(certificates_are_of_the_signal_or_of_all, clear),
        cmocka_unit_test_setup(what_would_send_otherwise_than_asked_is_refused, clear),
        cmocka_unit_test_setup(messages_hold_no_secrets, clear),
        cmocka_unit_test_setup(a_signal_can_be_turned_off, clear),
        cmocka_unit_test_setup(nothing_is_refused_that_would_not_be_used, clear),
        cmocka_unit_test_setup(what_is_far_too_long_is_bounded, clear),
        cmocka_unit_test_setup(the_resource_is_whole_or_ignored, clear),
        cmocka_unit_test_setup(pairs_are_trimmed_and_decoded, clear),
        cmocka_unit_test_setup(the_services_name_comes_from_the_nearest, clear),
        cmocka_unit_test_setup(the_sampler_is_what_the_environment_names, clear),
        cmocka_unit_test_setup(every_call_that_fails_is_reported_and_leaves_nothing, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
