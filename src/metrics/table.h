/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every metric there is: what is visited, written as text and documented (docs/metrics.md) follows from this
 * one table.
 */
#ifndef PH_METRICS_TABLE_H
#define PH_METRICS_TABLE_H

#include <stddef.h>

#include "metrics/counts.h"

/* One metric. (values) are those of its attribute: one series, and one cell, each. A metric without an
 * attribute has one series, and a histogram never has one. */
struct ph__metric_family {
    const char *name;
    const char *unit; /* as UCUM writes it, or a word in braces for what is counted */
    ph_metric_kind kind;
    enum ph__cell cell;
    size_t skipped; /* cells between (cell) and the first that is meant */
    const char *attribute;
    const char *const *values;
    size_t count; /* of series */
    const char *description;
};

#define PH__METRIC_FAMILIES 26u
extern const struct ph__metric_family ph__metric_families[PH__METRIC_FAMILIES];

/* The bounds of all histograms' buckets, in three forms: nanoseconds, seconds, and what OpenMetrics calls
 * canonical (OpenMetrics 1.0, "Considerations: Canonical Numbers"). */
extern const uint64_t ph__metric_bounds_ns[PH_METRIC_BUCKETS - 1];
extern const double ph__metric_bounds[PH_METRIC_BUCKETS - 1];
extern const char *const ph__metric_bound_texts[PH_METRIC_BUCKETS - 1];

#endif
