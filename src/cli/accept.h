/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a client of the metrics wants to have.
 */
#ifndef PH_CLI_ACCEPT_H
#define PH_CLI_ACCEPT_H

#include <pinhole/metrics.h>

/* OpenMetrics for a client that asks for it by name in (accept), a header Accept or NULL, and likes nothing
 * better; Prometheus' own format for all others. */
ph_metrics_format ph__accept_format(const char *accept);

#endif
