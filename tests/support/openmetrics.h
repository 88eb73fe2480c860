/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Reads metrics as text: whether OpenMetrics is what its specification says, and what a sample's value is.
 */
#ifndef PH_TESTS_OPENMETRICS_H
#define PH_TESTS_OPENMETRICS_H

/* NULL when (text) is a valid exposition of OpenMetrics 1.0, by its ABNF and its rules for counters, gauges
 * and histograms; otherwise what is wrong, and in which line. Other types, timestamps and exemplars are
 * refused: nobody here writes them. Static storage. */
const char *openmetrics_check(const char *text);

/* The value of the sample that begins with (key), its name and its labels as they are written. -1 when there
 * is none. */
double openmetrics_value(const char *text, const char *key);

#endif
