/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tracing for `run` and `call` (trace.h). A trace that goes to stderr is kept in an unnamed file until the
 * command has said there what went wrong, so that its own line stays the first.
 */
#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/trace.h"
#include "cli/signals.h"
#include "export/text.h"
#include "trace/filter.h"

static const char *const formats[] = {"text", "jsonl"};
static const char *const levels[] = {"off", "error", "warn", "info", "debug", "trace"};
static const char *const policies[] = {"complete", "drop", "flight"}; /* by ph_trace_policy */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* The index of the first (length) bytes of (word) in (list); (count) when they are not in it. */
static size_t find(const char *word, size_t length, const char *const *list, size_t count) {
    size_t i = 0;

    while (i < count && (strlen(list[i]) != length || strncmp(list[i], word, length) != 0))
        i++;
    return i;
}

/* ---- the options --------------------------------------------------------------------------------------- */

/* The path in a --trace, NULL when there is none. */
static const char *path_of(const char *output) {
    const char *colon = strchr(output, ':');

    return colon ? colon + 1 : NULL;
}

static size_t format_of(const char *output) {
    return find(output, strcspn(output, ":"), formats, COUNT(formats));
}

/* Two that would write over each other. */
static int check_pair(const struct ph__command *command, const char *one, const char *other) {
    const char *path = path_of(one);
    const char *other_path = path_of(other);

    if (!path && !other_path)
        return ph__usage_error(command, "only one trace can go to standard error: give %s a path",
                               format_of(one) == format_of(other) ? "one of the two" : other);
    if (path && other_path && strcmp(path, other_path) == 0)
        return ph__usage_error(command, "two traces cannot go to one file, %s", path);
    return PH__OPTIONS_GO_ON;
}

static int check_outputs(const struct ph__command *command, const struct ph__words *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        const char *path = path_of(outputs->list[i]);
        if (format_of(outputs->list[i]) == COUNT(formats))
            return ph__usage_error(command, "--trace takes text or jsonl, and :PATH behind it, not '%s'",
                                   outputs->list[i]);
        if (path && !*path)
            return ph__usage_error(command, "--trace %s wants a path behind the colon", outputs->list[i]);
        for (size_t j = 0; j < i; j++) {
            int status = check_pair(command, outputs->list[j], outputs->list[i]);
            if (status != PH__OPTIONS_GO_ON)
                return status;
        }
    }
    return PH__OPTIONS_GO_ON;
}

/* An option that does nothing without --trace; NULL when there is none. */
static const char *useless(const struct ph__tracing *trace) {
    return trace->level    ? "--trace-level"
           : trace->filter ? "--trace-filter"
           : trace->policy ? "--trace-policy"
           : trace->ring   ? "--trace-ring"
                           : NULL;
}

/* By itself, so that the message counts its parts as the user does. */
static int check_filter(const struct ph__command *command, const char *list) {
    struct ph__filter filter;
    ph_error error;

    ph_status status = ph__filter_parse(list, &filter, &error);
    if (status == PH_OK) {
        ph__filter_free(&filter);
        return PH__OPTIONS_GO_ON;
    }
    return ph__usage_error(command, "--trace-filter: %s", error.message);
}

int ph__tracing_check(const struct ph__command *command, const struct ph__tracing *trace, ph_config *config) {
    int status = check_outputs(command, &trace->outputs);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (!trace->outputs.count && useless(trace))
        return ph__usage_error(command, "%s does nothing without --trace", useless(trace));
    if (trace->level && find(trace->level, strlen(trace->level), levels, COUNT(levels)) == COUNT(levels))
        return ph__usage_error(
            command, "--trace-level takes off, error, warn, info, debug or trace, not '%s'", trace->level);
    size_t policy = trace->policy ? find(trace->policy, strlen(trace->policy), policies, COUNT(policies)) : 0;
    if (policy == COUNT(policies))
        return ph__usage_error(command, "--trace-policy takes complete, drop or flight, not '%s'",
                               trace->policy);
    if (trace->ring && (trace->ring < PH__RING_SIZE_MIN || trace->ring > PH__RING_SIZE_MAX ||
                        (trace->ring & (trace->ring - 1))))
        return ph__usage_error(command, "--trace-ring wants a power of two from 16K to 64M");
    if (trace->filter) {
        status = check_filter(command, trace->filter);
        if (status != PH__OPTIONS_GO_ON)
            return status;
    }
    config->trace_policy = (ph_trace_policy)policy;
    config->trace_ring = trace->ring;
    return PH__OPTIONS_GO_ON;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* The status for what is nobody's fault but ours. */
static int broken(const struct ph__command *command) {
    return command->usage_status == PH__COMMAND_BROKEN ? PH__COMMAND_BROKEN : PH__COMMAND_FAILED;
}

static int no_memory(const struct ph__command *command) {
    ph__complain("no memory for the trace");
    return broken(command);
}

/* The level comes first: where the list has one without a target, that counts. Allocated; NULL without
 * memory. */
static char *filter_of(const struct ph__tracing *trace) {
    const char *level = trace->level ? trace->level : "info";
    char *text = NULL;

    if (asprintf(&text, "%s%s%s", level, trace->filter ? "," : "", trace->filter ? trace->filter : "") < 0)
        return NULL;
    return text;
}

static int make_tracer(const struct ph__command *command, struct ph__tracing *trace) {
    ph_tracer_config config = PH_TRACER_CONFIG_INIT;
    ph_error error;
    char *filter = filter_of(trace);

    if (!filter)
        return no_memory(command);
    config.filter = filter;
    ph_status status = ph_tracer_create(&config, &trace->tracer, &error);
    free(filter);
    if (status == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return broken(command);
}

/* Where a trace for stderr is kept: on disk, since it may be large, or else in memory. */
static FILE *open_unnamed(void) {
    FILE *file = tmpfile();

    if (file)
        return file;
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0)
        return NULL;
    file = fdopen(fd, "w+");
    if (!file)
        close(fd);
    return file;
}

static int add_sink(const struct ph__command *command, struct ph__tracing *trace, const char *output) {
    struct ph__tracing_output *opened = &trace->files[trace->file_count];
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_sink sink = PH_SINK_INIT;
    ph_error error;

    opened->path = path_of(output);
    opened->file = opened->path ? fopen(opened->path, "we") : open_unnamed();
    if (!opened->file) {
        ph__complain("%s: %s", opened->path ? opened->path : "a temporary file for the trace",
                     strerror(errno));
        return opened->path ? (int)command->usage_status : broken(command);
    }
    trace->file_count++;
    options.file = opened->file;
    if (!opened->path)
        options.colour =
            ph__text_wants_colour(PH_COLOUR_AUTO, STDERR_FILENO) ? PH_COLOUR_ALWAYS : PH_COLOUR_NEVER;
    ph_status status = format_of(output) == 0 ? ph_text_sink_open(&options, &sink, &error)
                                              : ph_jsonl_sink_open(&options, &sink, &error);
    if (status == PH_OK)
        status = ph_tracer_add_sink(trace->tracer, &sink, &error);
    if (status == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return broken(command);
}

int ph__tracing_open(const struct ph__command *command, struct ph__tracing *trace, ph_config *config) {
    if (!trace->outputs.count)
        return PH__OPTIONS_GO_ON;
    trace->files = calloc(trace->outputs.count, sizeof *trace->files);
    if (!trace->files)
        return no_memory(command);
    int status = make_tracer(command, trace);
    for (size_t i = 0; i < trace->outputs.count && status == PH__OPTIONS_GO_ON; i++)
        status = add_sink(command, trace, trace->outputs.list[i]);
    if (status == PH__OPTIONS_GO_ON)
        config->tracer = trace->tracer;
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Copies what is in (file) to stderr. There is nowhere to say that this failed. */
static bool pour_out(FILE *file) {
    char bytes[65536];
    size_t got;

    rewind(file);
    while ((got = fread(bytes, 1, sizeof bytes, file)) > 0)
        for (size_t done = 0; done < got;) {
            ssize_t written = write(STDERR_FILENO, bytes + done, got - done);
            if (written > 0)
                done += (size_t)written;
            else if (errno != EINTR)
                return false;
        }
    return !ferror(file);
}

/* Whether all of (output) was written. */
static bool finish_output(struct ph__tracing_output *output) {
    errno = 0;
    bool written = fflush(output->file) == 0 && !ferror(output->file);
    int why = errno;

    /* Also when some of it was lost: the rest may say why the guest failed. */
    if (!output->path && !pour_out(output->file))
        written = false;
    errno = 0;
    if (fclose(output->file) != 0 && output->path) {
        written = false;
        why = errno ? errno : why;
    }
    output->file = NULL;
    if (!written)
        ph__complain("writing the trace to %s failed: %s", output->path ? output->path : "standard error",
                     why ? strerror(why) : "an earlier write failed");
    return written;
}

int ph__tracing_finish(struct ph__tracing *trace, int status, int failed) {
    bool written = true;

    ph_tracer_destroy(trace->tracer);
    trace->tracer = NULL;
    for (size_t i = 0; i < trace->file_count; i++)
        written = finish_output(&trace->files[i]) && written;
    trace->file_count = 0;
    return written || status ? status : failed;
}

void ph__tracing_free(struct ph__tracing *trace) {
    ph_tracer_destroy(trace->tracer);
    for (size_t i = 0; i < trace->file_count; i++)
        fclose(trace->files[i].file);
    free(trace->files);
    ph__words_free(&trace->outputs);
    *trace = (struct ph__tracing){0};
}

void ph__tracing_stats(const struct ph__tracing *trace, const ph_sandbox *sandbox, ph_trace_stats *stats) {
    *stats = (ph_trace_stats){0};
    if (!trace->tracer || !sandbox)
        return;
    ph_tracer_flush(trace->tracer, 0);
    ph_sandbox_trace_stats(sandbox, stats);
}

void ph__tracing_stats_print(FILE *file, const ph_trace_stats *before, const ph_trace_stats *now) {
#define PRINT(name) fprintf(file, ", \"trace_" #name "\": %" PRIu64, now->name - before->name)
    PRINT(records);
    PRINT(bytes);
    PRINT(spans);
    PRINT(events);
    PRINT(counters);
    PRINT(dropped_ring);
    PRINT(dropped_queue);
    PRINT(dropped_budget);
    PRINT(lost_bytes);
    PRINT(filtered);
    PRINT(malformed);
    PRINT(unknown_ends);
    PRINT(too_deep);
    PRINT(gaps);
    PRINT(exits);
#undef PRINT
}
