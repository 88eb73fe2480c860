/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tracing for `run` and `call` (trace.h): the options, and the tracer that they make. Where it writes to is
 * in trace_output.c.
 */
#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
#include "base/level.h"
#include "base/time.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "trace/filter.h"

/* How long a collector may take for what is left at the end. */
#define FLUSH_DEFAULT_NS 5000000000ull

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

/* The file that (output) writes to, NULL when it is none of its own. */
static const char *file_of(const char *output) {
    return ph__trace_format_of(output)->target == PH__TRACE_COLLECTOR ? NULL : ph__trace_path_of(output);
}

static int refuse_same(const struct ph__command *command, const char *path, const char *other_path) {
    if (strcmp(path, other_path) == 0)
        return ph__usage_error(command, "two traces cannot go to one file, %s", path);
    return ph__usage_error(command, "two traces cannot go to one file, which %s and %s are", path,
                           other_path);
}

/* Whether (output) writes below the folder of (other), as far as the words tell. */
static bool is_inside(const char *output, const char *other) {
    const char *path = ph__trace_path_of(output), *folder = ph__trace_path_of(other);

    if (!path || !folder || ph__trace_format_of(other)->target != PH__TRACE_FOLDER)
        return false;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Two that would write over each other. */
static int check_pair(const struct ph__command *command, const char *one, const char *other) {
    const bool is_collector = ph__trace_format_of(one)->target == PH__TRACE_COLLECTOR;
    const char *path = ph__trace_path_of(one);
    const char *other_path = ph__trace_path_of(other);

    if (is_collector || ph__trace_format_of(other)->target == PH__TRACE_COLLECTOR)
        return strcmp(one, other) == 0 ? ph__usage_error(command, "--trace %s is there twice", one)
                                       : PH__OPTIONS_GO_ON;
    if (!path && !other_path)
        return ph__usage_error(command, "only one trace can go to standard error: give %s a path",
                               ph__trace_format_of(one) == ph__trace_format_of(other) ? "one of the two"
                                                                                      : other);
    if (path && other_path && ph__path_is_same(path, other_path))
        return refuse_same(command, path, other_path);
    if (is_inside(other, one) || is_inside(one, other))
        return ph__usage_error(command, "--trace %s would be in the folder of --trace %s",
                               is_inside(other, one) ? other : one, is_inside(other, one) ? one : other);
    return PH__OPTIONS_GO_ON;
}

static int check_output(const struct ph__command *command, const char *output) {
    const struct ph__trace_format *format = ph__trace_format_of(output);
    const char *path = ph__trace_path_of(output);

    if (!format)
        return ph__usage_error(
            command, "--trace takes " PH__TRACE_FORMATS ", and :PATH (of otlp, :URL) behind it, not '%s'",
            output);
    if (!path && format->needs_path)
        return ph__usage_error(command, "--trace %s wants a %s: %s:PATH", output,
                               format->target == PH__TRACE_FOLDER ? "folder" : "file", output);
    if (path && !*path)
        return ph__usage_error(command, "--trace %s wants a %s behind the colon", output,
                               format->target == PH__TRACE_COLLECTOR ? "URL" : "path");
    if (path && format->target == PH__TRACE_COLLECTOR && strncmp(path, "http://", 7) != 0 &&
        strncmp(path, "https://", 8) != 0)
        return ph__usage_error(
            command, "--trace %s: that is no URL of http or https, as http://localhost:4318", output);
    if (path && strcmp(path, "-") == 0)
        return ph__usage_error(
            command, "--trace %s would make a file of that name: standard output is /dev/stdout", output);
    return PH__OPTIONS_GO_ON;
}

static int check_outputs(const struct ph__command *command, const struct ph__words *outputs) {
    int status = PH__OPTIONS_GO_ON;

    for (size_t i = 0; i < outputs->count && status == PH__OPTIONS_GO_ON; i++) {
        status = check_output(command, outputs->list[i]);
        for (size_t j = 0; j < i && status == PH__OPTIONS_GO_ON; j++)
            status = check_pair(command, outputs->list[j], outputs->list[i]);
    }
    return status;
}

static bool has_collector(const struct ph__tracing *trace) {
    bool has = false;

    for (size_t i = 0; i < trace->outputs.count; i++)
        has |= ph__trace_format_of(trace->outputs.list[i])->target == PH__TRACE_COLLECTOR;
    return has;
}

/* An option that does nothing without --trace; NULL when there is none. */
static const char *useless(const struct ph__tracing *trace) {
    return trace->level      ? "--trace-level"
           : trace->filter   ? "--trace-filter"
           : trace->policy   ? "--trace-policy"
           : trace->ring     ? "--trace-ring"
           : trace->flush_ns ? "--flush-timeout"
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

/* Sets (*size), to 0 without the option. */
static int check_ring(const struct ph__command *command, const char *text, uint64_t *size) {
    *size = 0;
    if (!text || (ph__size_parse(text, size) && *size >= PH__RING_SIZE_MIN && *size <= PH__RING_SIZE_MAX &&
                  !(*size & (*size - 1))))
        return PH__OPTIONS_GO_ON;
    return ph__usage_error(command, "--trace-ring wants a power of two from 16K to 64M, not '%s'", text);
}

/* One that is not valid is ignored, as W3C Trace Context asks, but not in silence. */
static void check_traceparent(struct ph__tracing *trace, ph_config *config) {
    const char *text = trace->traceparent;

    if (text && !ph_traceparent_is_valid(text)) {
        ph__warn("--traceparent '%s' is not valid, and is ignored", text);
        return;
    }
    config->traceparent = text;
    /* The flags, two digits of which the lowest bit is this, stand at a fixed place. */
    trace->unsampled = text && strchr("02468ace", text[PH_TRACEPARENT_SIZE - 2]);
}

int ph__tracing_check(const struct ph__command *command, struct ph__tracing *trace, ph_config *config) {
    int status = check_outputs(command, &trace->outputs);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (!trace->outputs.count && useless(trace))
        return ph__usage_error(command, "%s does nothing without --trace", useless(trace));
    if (trace->flush_ns && !has_collector(trace))
        return ph__usage_error(command, "--flush-timeout does nothing without --trace otlp");
    ph_level level;
    if (trace->level && !ph__level_find(trace->level, strlen(trace->level), &level))
        return ph__usage_error(command, "--trace-level takes " PH__LEVELS ", not '%s'", trace->level);
    size_t policy = trace->policy ? find(trace->policy, strlen(trace->policy), policies, COUNT(policies)) : 0;
    if (policy == COUNT(policies))
        return ph__usage_error(command, "--trace-policy takes complete, drop or flight, not '%s'",
                               trace->policy);
    status = check_ring(command, trace->ring, &config->trace_ring);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (trace->filter) {
        status = check_filter(command, trace->filter);
        if (status != PH__OPTIONS_GO_ON)
            return status;
    }
    config->trace_policy = (ph_trace_policy)policy;
    check_traceparent(trace, config);
    return PH__OPTIONS_GO_ON;
}

int ph__tracing_spare(const struct ph__command *command, const struct ph__tracing *trace, const char *path) {
    struct stat information, other;

    if (stat(path, &information) != 0)
        return PH__OPTIONS_GO_ON;
    for (size_t i = 0; i < trace->outputs.count; i++) {
        const char *output = file_of(trace->outputs.list[i]);
        if (output && stat(output, &other) == 0 && ph__file_is_same(&information, &other))
            return ph__usage_error(command, "--trace %s would overwrite %s", trace->outputs.list[i], path);
    }
    return PH__OPTIONS_GO_ON;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static int no_memory(const struct ph__command *command) {
    ph__complain("no memory for the trace");
    return ph__status_broken(command);
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

/* A ph_diagnostics_fn. */
static void warn(void *context, const char *message) {
    (void)context;
    ph__warn("%s", message);
}

/* The environment of OpenTelemetry is for what goes there: by itself it does not thin out a trace for a
 * person. */
static bool asks_environment(const struct ph__tracing *trace) {
    bool asks = false;

    for (size_t i = 0; i < trace->outputs.count; i++)
        asks |= ph__trace_format_of(trace->outputs.list[i])->is_opentelemetry;
    return asks;
}

static int make_tracer(const struct ph__command *command, struct ph__tracing *trace) {
    ph_tracer_config config = PH_TRACER_CONFIG_INIT;
    ph_error error;
    char *filter = filter_of(trace);

    if (!filter)
        return no_memory(command);
    config.filter = filter;
    if (asks_environment(trace))
        ph_otlp_sampler_from_environment(&config.sampler, &config.sampler_ratio, warn, NULL);
    if (trace->unsampled && config.sampler <= PH_SAMPLER_PARENT_RATIO)
        ph__warn("--traceparent says that this is not sampled (it ends with -00): nothing is traced");
    ph_status status = ph_tracer_create(&config, &trace->tracer, &error);
    free(filter);
    if (status == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return ph__status_broken(command);
}

/* A collector gets the metrics too. Those of the command, where it has some already (config). */
static int make_metrics(const struct ph__command *command, struct ph__tracing *trace, ph_config *config) {
    ph_error error;

    if (!has_collector(trace) || config->metrics)
        return PH__OPTIONS_GO_ON;
    if (ph_metrics_create(&trace->metrics, &error) == PH_OK) {
        config->metrics = trace->metrics;
        return PH__OPTIONS_GO_ON;
    }
    ph__complain("%s", error.message);
    return ph__status_broken(command);
}

/* Two paths to a file that was not there before. */
static int check_opened(const struct ph__command *command, const struct ph__tracing *trace) {
    const struct ph__tracing_output *last = &trace->files[trace->file_count - 1];
    struct stat information, other;

    for (const struct ph__tracing_output *output = trace->files; output < last; output++)
        if (output->path && last->path && output->file && last->file && fstat(output->fd, &other) == 0 &&
            fstat(last->fd, &information) == 0 && ph__file_is_same(&information, &other))
            return refuse_same(command, output->path, last->path);
    return PH__OPTIONS_GO_ON;
}

static int add_sink(const struct ph__command *command, struct ph__tracing *trace, const char *given,
                    ph_metrics *metrics) {
    struct ph__tracing_output *output = &trace->files[trace->file_count++];
    ph_sink sink = PH_SINK_INIT;
    ph_error error;

    int status = ph__trace_output_open(command, given, metrics, output, &sink);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (ph_tracer_add_sink(trace->tracer, &sink, &error) == PH_OK)
        return check_opened(command, trace);
    ph__complain("%s", error.message);
    return ph__status_broken(command);
}

/* A file that a shell has opened for us: what comes from there, or goes there, would be lost. */
static int check_standard_streams(const struct ph__command *command, const struct ph__tracing *trace) {
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    struct stat information, other;

    for (size_t i = 0; i < trace->outputs.count; i++) {
        const char *path = file_of(trace->outputs.list[i]);
        if (!path || stat(path, &information) != 0 || !S_ISREG(information.st_mode))
            continue;
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
            if (fstat(fd, &other) == 0 && ph__file_is_same(&information, &other))
                return ph__usage_error(command, "--trace %s would overwrite the file that is %s",
                                       trace->outputs.list[i], names[fd]);
    }
    return PH__OPTIONS_GO_ON;
}

int ph__tracing_open(const struct ph__command *command, struct ph__tracing *trace, ph_config *config) {
    if (!trace->outputs.count)
        return PH__OPTIONS_GO_ON;
    int status = check_standard_streams(command, trace);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    trace->files = calloc(trace->outputs.count, sizeof *trace->files);
    if (!trace->files)
        return no_memory(command);
    status = make_metrics(command, trace, config);
    if (status == PH__OPTIONS_GO_ON)
        status = make_tracer(command, trace);
    for (size_t i = 0; i < trace->outputs.count && status == PH__OPTIONS_GO_ON; i++)
        status = add_sink(command, trace, trace->outputs.list[i], config->metrics);
    if (status != PH__OPTIONS_GO_ON)
        return status;
    config->tracer = trace->tracer;
    if (config->metrics)
        ph_metrics_watch_tracer(config->metrics, trace->tracer);
    trace->watched_by = config->metrics;
    return PH__OPTIONS_GO_ON;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* What a person who waits is told. */
static void tell_progress(void *context, char *line, size_t size) {
    const struct ph__tracing *trace = context;
    unsigned long long written = 0;
    uint64_t sent = 0;

    for (size_t i = 0; i < trace->file_count; i++) {
        written += atomic_load(&trace->files[i].written);
        sent += trace->files[i].collector ? ph__collector_sent(trace->files[i].collector) : 0;
    }
    snprintf(line, size, "writing the trace: %llu KiB in files, %" PRIu64 " items sent", written >> 10, sent);
}

static void destroy_tracer(struct ph__tracing *trace) {
    if (trace->watched_by)
        ph_metrics_watch_tracer(trace->watched_by, NULL);
    trace->watched_by = NULL;
    ph_tracer_destroy(trace->tracer);
    trace->tracer = NULL;
}

void ph__tracing_finish(struct ph__tracing *trace) {
    const bool signalled = ph__signals_received();
    struct ph__progress progress;

    ph__progress_begin(&progress, tell_progress, trace);
    /* While it is still counted. */
    if (trace->tracer)
        ph_tracer_flush(trace->tracer, 0);
    destroy_tracer(trace);
    uint64_t deadline_ns =
        ph__time_ns(CLOCK_MONOTONIC) + (trace->flush_ns ? trace->flush_ns : FLUSH_DEFAULT_NS);
    for (size_t i = 0; i < trace->file_count; i++)
        if (trace->files[i].path)
            ph__trace_output_finish(&trace->files[i]);
    ph__trace_collectors_finish(trace->files, trace->file_count, deadline_ns, signalled);
    ph__progress_end(&progress);
    /* Standard error last: the line of progress was there. */
    for (size_t i = 0; i < trace->file_count; i++)
        if (!trace->files[i].path)
            ph__trace_output_finish(&trace->files[i]);
    for (size_t i = 0; i < trace->file_count; i++)
        ph__trace_output_warn(&trace->files[i]);
}

void ph__tracing_free(struct ph__tracing *trace) {
    destroy_tracer(trace);
    for (size_t i = 0; i < trace->file_count; i++)
        ph__trace_output_free(&trace->files[i]);
    ph_metrics_destroy(trace->metrics);
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
