/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the sinks that write to a file share.
 */
#ifndef PH_EXPORT_FILE_SINK_H
#define PH_EXPORT_FILE_SINK_H

#include "export/out.h"

/* Checks (options), which may be NULL, and copies them with their defaults to (taken). Empties (sink).
 * PH_E_ARGUMENT when they, or (sink), are wrong. */
ph_status ph__file_sink_take(const ph_file_sink *options, ph_sink *sink, ph_file_sink *taken,
                             ph_error *error);

/* What the context of a sink begins with that writes text to a file. */
struct ph__file_sink {
    struct ph__out out;
    bool close_file;
    char bytes[8192];
};

/* Makes such a context, (size) bytes that are 0 but for this, after ph__file_sink_take: NULL when that fails,
 * and without memory, which the words (what) are for. */
void *ph__file_sink_new(const ph_file_sink *options, size_t size, const char *what, ph_sink *sink,
                        ph_status *status, ph_error *error);

/* Of a context of ph__file_sink_new: a sink's (flush); and its end, which frees it. */
void ph__file_sink_flush(void *context);
void ph__file_sink_end(void *context);

/* Flushes (file), and closes it where (close_file) says so. */
void ph__file_sink_close(FILE *file, bool close_file);

#endif
