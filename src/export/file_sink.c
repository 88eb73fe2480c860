/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The options of sinks that write to a file (file_sink.h).
 */
#include "export/file_sink.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

ph_status ph__file_sink_take(const ph_file_sink *options, ph_sink *sink, ph_file_sink *taken,
                             ph_error *error) {
    const ph_file_sink defaults = PH_FILE_SINK_INIT;
    const ph_sink nothing = PH_SINK_INIT;

    if (!sink)
        return ph__error_set(error, PH_E_ARGUMENT, "a sink to fill in is needed");
    *sink = nothing;
    *taken = defaults;
    if (options && (options->size < offsetof(ph_file_sink, close_file) || options->size > sizeof *options))
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the options' size is not one of this library: use PH_FILE_SINK_INIT");
    if (options)
        memcpy(taken, options, options->size);
    if (taken->colour < PH_COLOUR_AUTO || taken->colour > PH_COLOUR_ALWAYS)
        return ph__error_set(error, PH_E_ARGUMENT, "there is no colour option %d", (int)taken->colour);
    if (!taken->file) {
        taken->file = stderr;
        taken->close_file = false;
    }
    return PH_OK;
}

void ph__file_sink_close(FILE *file, bool close_file) {
    if (close_file)
        fclose(file);
    else
        fflush(file);
}

void *ph__file_sink_new(const ph_file_sink *options, size_t size, const char *what, ph_sink *sink,
                        ph_status *status, ph_error *error) {
    ph_file_sink taken = PH_FILE_SINK_INIT;

    *status = ph__file_sink_take(options, sink, &taken, error);
    if (*status != PH_OK)
        return NULL;
    struct ph__file_sink *made = calloc(1, size);
    if (!made) {
        *status = ph__error_set(error, PH_E_MEMORY, "no memory for %s", what);
        return NULL;
    }
    made->close_file = taken.close_file;
    made->out = (struct ph__out){.file = taken.file, .bytes = made->bytes, .capacity = sizeof made->bytes};
    return made;
}

void ph__file_sink_flush(void *context) {
    fflush(((struct ph__file_sink *)context)->out.file);
}

void ph__file_sink_end(void *context) {
    struct ph__file_sink *sink = context;

    ph__out_flush(&sink->out);
    ph__file_sink_close(sink->out.file, sink->close_file);
    free(sink);
}
