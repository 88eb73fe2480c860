/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * Sinks in the formats of other people's tools, for a tracer (trace.h): link with -lpinhole-export.
 *
 * Each streams: memory does not grow with the trace. What the file holds when the process was killed is said
 * with each format, and in docs/exporting.md. As the sinks of trace.h, they tell nobody of a failed write:
 * ferror(file) does.
 */
#ifndef PINHOLE_EXPORT_H
#define PINHOLE_EXPORT_H

#include <pinhole/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Fills (sink) with one that writes Chrome's trace events, which Perfetto's and Chrome's viewers open: an
 * array of JSON objects, one a line. Times are microseconds with three decimals since the sink was opened, so
 * that nanoseconds survive in a reader's doubles; the first object says when that was. A process killed
 * leaves an array without its end, which those viewers read. (options) may be NULL. PH_E_ARGUMENT or
 * PH_E_MEMORY.
 */
PH_API ph_status ph_chrome_sink_open(const ph_file_sink *options, ph_sink *sink, ph_error *error);

#ifdef __cplusplus
}
#endif

#endif
