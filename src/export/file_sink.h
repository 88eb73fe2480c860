/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the sinks that write to a file share.
 */
#ifndef PH_EXPORT_FILE_SINK_H
#define PH_EXPORT_FILE_SINK_H

#include <pinhole/trace.h>

/* Checks (options), which may be NULL, and copies them with their defaults to (taken). Empties (sink).
 * PH_E_ARGUMENT when they, or (sink), are wrong. */
ph_status ph__file_sink_take(const ph_file_sink *options, ph_sink *sink, ph_file_sink *taken,
                             ph_error *error);

/* Flushes (file), and closes it where (close_file) says so. */
void ph__file_sink_close(FILE *file, bool close_file);

#endif
