/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Metrics as text, one series after another.
 */
#ifndef PH_METRICS_TEXT_H
#define PH_METRICS_TEXT_H

#include <pinhole/metrics.h>

#include "export/out.h"

/* The name of (metric) as Prometheus has it, up to where samples and types differ: dots become underscores,
 * and the unit goes behind it
 * (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
 */
void ph__metrics_text_name(struct ph__out *out, const ph_metric *metric);

/* Adds the samples of (metric), and with (first) what is said of all series of its name before them. */
void ph__metrics_text_series(struct ph__out *out, ph_metrics_format format, const ph_metric *metric,
                             bool first);

#endif
