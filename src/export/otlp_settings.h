/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What is asked of the export to OpenTelemetry: a ph_otlp_config, and OpenTelemetry's environment variables
 * for what that leaves open.
 */
#ifndef PH_EXPORT_OTLP_SETTINGS_H
#define PH_EXPORT_OTLP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pinhole/otlp.h>

struct ph__otlp_pair {
    char *name;
    char *value;
};

struct ph__otlp_pairs {
    struct ph__otlp_pair *list;
    size_t count;
};

/* How one signal is sent. */
struct ph__otlp_route {
    bool off; /* OTEL_*_EXPORTER is `none`, or nothing is sent at all: all else is left out then */
    char *url;
    struct ph__otlp_pairs headers;
    uint64_t timeout_ns; /* for one request and its repetitions */
    bool gzip;
    /* Paths of PEM files, or NULL: whom to trust, and who we are. */
    char *certificate;
    char *client_certificate;
    char *client_key;
};

struct ph__otlp_settings {
    bool disabled; /* OTEL_SDK_DISABLED: take everything, send nothing */
    /* By ph_export_signal. */
    struct ph__otlp_route routes[3];

    /* What the user says of the resource, service.name first; the rest is added by the batch. */
    struct ph__otlp_pairs resource;

    /* OTEL_SPAN_*_LIMIT and OTEL_LOGRECORD_*_LIMIT, with the general OTEL_ATTRIBUTE_*_LIMIT below them. */
    uint32_t span_attributes_max;  /* 128 */
    uint32_t span_value_bytes_max; /* UINT32_MAX: no limit; in bytes, cut between characters */
    uint32_t span_events_max;      /* 128 */
    uint32_t event_attributes_max; /* 128 */
    uint32_t log_attributes_max;   /* 128 */
    uint32_t log_value_bytes_max;  /* UINT32_MAX */

    /* OTEL_BSP_* and OTEL_BLRP_*: how many items wait at most, and in one request; how long they wait. */
    uint32_t span_queue_max; /* 65536, or what the environment says */
    uint32_t span_batch_max; /* 512 */
    uint64_t span_delay_ns;  /* 5 s */
    uint32_t log_queue_max;
    uint32_t log_batch_max;
    uint64_t log_delay_ns;       /* 1 s */
    uint64_t metric_interval_ns; /* 60 s */

    /* The most bytes of one request before compression, and of all requests that wait. Ours. */
    size_t batch_bytes; /* 4 MiB */
    size_t queue_bytes; /* 64 MiB */

    /* The first pause before a request is repeated, half as long again each time. Ours. */
    uint64_t backoff_ns; /* 1 s */
};

/* Fills (settings) from (config), which may be NULL, and the environment. Statuses as ph_otlp_create;
 * ph__otlp_settings_free is due with PH_OK alone. Numbers that make no sense are told to the config's
 * diagnostics. */
ph_status ph__otlp_settings_read(const ph_otlp_config *config, struct ph__otlp_settings *settings,
                                 ph_error *error);
/* The same for a file: nothing is asked of what is about a collector. PH_E_MEMORY. */
ph_status ph__otlp_settings_read_for_file(struct ph__otlp_settings *settings, ph_error *error);
void ph__otlp_settings_free(struct ph__otlp_settings *settings);

#endif
