/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The formats that a trace can be written in, for the benchmarks of all of them, and a folder in memory for
 * what they write.
 */
#ifndef BENCH_FORMATS_H
#define BENCH_FORMATS_H

#include <pinhole/export.h>

#include "bench.h"

struct format {
    const char *name;
    /* NULL: it makes a folder, by ph_ctf_sink_open. */
    ph_status (*open)(const ph_file_sink *options, ph_sink *sink, ph_error *error);
};

extern const struct format formats[];
extern const size_t format_count;

/* Opens a sink of (format) that writes to (path), which is made, or emptied where it is a file. */
ph_sink format_open(const struct format *format, const char *path);

/* The file with the spans of what format_open wrote to (path): (file) has room for PATH_SIZE bytes. */
#define PATH_SIZE 128u
void format_file(const struct format *format, const char *path, char *file);

/* Removes what format_open made at (path). */
void format_remove(const struct format *format, const char *path);

/* Makes a folder in a file system in memory, and removes one that is empty. (folder) has room for PATH_SIZE
 * bytes. */
void folder_make(char *folder);
void folder_remove(const char *folder);

#endif
