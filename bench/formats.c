/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The formats that a trace can be written in (formats.h).
 */
#include "formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinhole/otlp.h>

const struct format formats[] = {
    {"perfetto", ph_perfetto_sink_open},
    {"chrome", ph_chrome_sink_open},
    {"ctf", NULL},
    {"folded", ph_folded_sink_open},
    {"jsonl", ph_jsonl_sink_open},
    {"text", ph_text_sink_open},
    {"speedscope", ph_speedscope_sink_open},
    {"otlp-json", ph_otlp_json_sink_open},
};

const size_t format_count = sizeof formats / sizeof formats[0];

ph_sink format_open(const struct format *format, const char *path) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_sink sink = PH_SINK_INIT;
    ph_error error;

    if (!format->open) {
        bench_check(ph_ctf_sink_open(path, &sink, &error), path, &error);
        return sink;
    }
    options.file = fopen(path, "we");
    options.close_file = true;
    if (!options.file)
        bench_fail("%s: %s", path, strerror(errno));
    bench_check(format->open(&options, &sink, &error), path, &error);
    return sink;
}

void format_file(const struct format *format, const char *path, char *file) {
    snprintf(file, PATH_SIZE, "%s%s", path, format->open ? "" : "/stream");
}

void format_remove(const struct format *format, const char *path) {
    char file[PATH_SIZE];

    format_file(format, path, file);
    unlink(file);
    if (!format->open) {
        snprintf(file, sizeof file, "%s/metadata", path);
        unlink(file);
        rmdir(path);
    }
}

void folder_make(char *folder) {
    static const char pattern[] = "/dev/shm/pinhole-bench-XXXXXX";

    memcpy(folder, pattern, sizeof pattern);
    if (!mkdtemp(folder))
        bench_fail("%s: %s", folder, strerror(errno));
}

void folder_remove(const char *folder) {
    rmdir(folder);
}
