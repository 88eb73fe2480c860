/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Serves a request with a guest, and has a collector of OpenTelemetry see it: the guest's spans stand in the
 * request's own trace, whose traceparent a server takes from a header. Where the collector is, the
 * environment says (OTEL_EXPORTER_OTLP_ENDPOINT); without that it is http://localhost:4318. The environment
 * also says which requests are traced (OTEL_TRACES_SAMPLER).
 *
 *     otlp_host build/guests/hello 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 */
#include <pinhole/otlp.h>
#include <stdio.h>

#include "backend.h"

#define SECOND_NS 1000000000ull

struct service {
    ph_metrics *metrics;
    ph_otlp *otlp;
    ph_tracer *tracer;
    ph_image *image;
    ph_sandbox *sandbox;
};

/* A host function that asks somebody else passes the trace on, in a header of its own. */
static ph_status weekday(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    char traceparent[PH_TRACEPARENT_SIZE];

    (void)context;
    (void)args;
    if (ph_host_traceparent(call, traceparent))
        printf("traceparent: %s\n", traceparent);
    result->str = "Friday";
    return PH_OK;
}

/* One line when something was lost. Called by the exporter's thread. */
static void tell(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "%s\n", message);
}

/* What watches: counts, an exporter that sends them too, and a tracer whose only sink is the exporter. */
static ph_status watch(struct service *service, ph_error *error) {
    ph_otlp_config config = PH_OTLP_CONFIG_INIT;
    ph_tracer_config tracing = PH_TRACER_CONFIG_INIT;
    ph_sink sink;
    ph_status status = ph_metrics_create(&service->metrics, error);

    config.metrics = service->metrics;
    config.diagnostics = tell;
    if (status == PH_OK)
        status = ph_otlp_create(&config, &service->otlp, error);
    ph_otlp_sampler_from_environment(&tracing.sampler, &tracing.sampler_ratio, tell, NULL);
    if (status == PH_OK)
        status = ph_tracer_create(&tracing, &service->tracer, error);
    if (status != PH_OK)
        return status;
    ph_otlp_sink(service->otlp, &sink);
    status = ph_tracer_add_sink(service->tracer, &sink, error);
    if (status == PH_OK)
        status = ph_metrics_watch_tracer(service->metrics, service->tracer);
    return status;
}

static ph_status open_guest(struct service *service, const char *path, ph_error *error) {
    const ph_signature types = {.result = PH_STR, .count = 1, .args = {PH_I32}};
    ph_config config = PH_CONFIG_INIT;
    ph_status status = ph_image_open(path, 0, &service->image, error);

    config.backend = example_backend();
    config.tracer = service->tracer;
    config.metrics = service->metrics;
    if (status == PH_OK)
        status = ph_sandbox_create(service->image, &config, &service->sandbox, error);
    if (status != PH_OK)
        return status;
    status = ph_sandbox_register(service->sandbox, "weekday", &types, weekday, NULL);
    if (status == PH_OK)
        status = ph_sandbox_start(service->sandbox);
    if (status != PH_OK)
        *error = *ph_sandbox_error(service->sandbox);
    return status;
}

static ph_status serve(struct service *service, const char *traceparent, ph_error *error) {
    const ph_value name = {.type = PH_STR, .str = "World"};
    ph_value result;
    ph_status status = ph_sandbox_set_traceparent(service->sandbox, traceparent, NULL);

    if (status == PH_OK)
        status = ph_call(service->sandbox, ph_image_find_export(service->image, "greet"), &name, 1, &result);
    if (status == PH_OK)
        puts(result.str);
    else
        *error = *ph_sandbox_error(service->sandbox);
    return status;
}

int main(int argc, char **argv) {
    struct service service = {0};
    ph_error error = {.message = "two arguments are needed: the guest and a traceparent"};
    ph_status status = argc == 3 ? watch(&service, &error) : PH_E_ARGUMENT;

    if (status == PH_OK)
        status = open_guest(&service, argv[1], &error);
    if (status == PH_OK)
        status = serve(&service, argv[2], &error);
    if (status != PH_OK)
        fprintf(stderr, "%s\n", error.message);
    ph_sandbox_destroy(service.sandbox);
    ph_image_close(service.image);
    ph_tracer_destroy(service.tracer); /* behind its sandboxes */
    if (service.otlp)
        ph_otlp_shutdown(service.otlp, 5 * SECOND_NS); /* behind the tracer, whose last spans it gets */
    ph_otlp_destroy(service.otlp);
    ph_metrics_destroy(service.metrics);
    return status == PH_OK ? 0 : 1;
}
