/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tracing for `run` and `call` (trace.h). A trace that goes to stderr is kept in an unnamed file until the
 * command has said there what went wrong, so that its own line stays the first.
 */
#include "cli/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pinhole/export.h>

#include "abi/trace.h"
#include "base/level.h"
#include "cli/paths.h"
#include "cli/signals.h"
#include "export/ctf.h"
#include "export/text.h"
#include "trace/filter.h"

/* What --trace can be, and its sink: one for a file, or one that makes a folder of files itself. */
static const struct {
    const char *name;
    ph_status (*open)(const ph_file_sink *options, ph_sink *sink, ph_error *error);
    ph_status (*open_folder)(const char *folder, int *system_error, ph_sink *sink, ph_error *error);
    bool needs_path;
} formats[] = {
    /* clang-format off: a line each */
    {"text", ph_text_sink_open, NULL, false},
    {"jsonl", ph_jsonl_sink_open, NULL, false},
    {"chrome", ph_chrome_sink_open, NULL, true},
    {"perfetto", ph_perfetto_sink_open, NULL, true},
    {"ctf", NULL, ph__ctf_sink_open, true},
    {"folded", ph_folded_sink_open, NULL, true},
    {"speedscope", ph_speedscope_sink_open, NULL, true},
    /* clang-format on */
};
#define FORMATS "text, jsonl, chrome, perfetto, ctf, folded or speedscope"
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

/* The index of a --trace in (formats); their number when it is none of them. */
static size_t format_of(const char *output) {
    const size_t length = strcspn(output, ":");
    size_t i = 0;

    while (i < COUNT(formats) &&
           (strlen(formats[i].name) != length || strncmp(output, formats[i].name, length) != 0))
        i++;
    return i;
}

static int refuse_same(const struct ph__command *command, const char *path, const char *other_path) {
    if (strcmp(path, other_path) == 0)
        return ph__usage_error(command, "two traces cannot go to one file, %s", path);
    return ph__usage_error(command, "two traces cannot go to one file, which %s and %s are", path,
                           other_path);
}

/* Two that would write over each other. */
static int check_pair(const struct ph__command *command, const char *one, const char *other) {
    const char *path = path_of(one);
    const char *other_path = path_of(other);

    if (!path && !other_path)
        return ph__usage_error(command, "only one trace can go to standard error: give %s a path",
                               format_of(one) == format_of(other) ? "one of the two" : other);
    if (path && other_path && ph__path_is_same(path, other_path))
        return refuse_same(command, path, other_path);
    return PH__OPTIONS_GO_ON;
}

static int check_outputs(const struct ph__command *command, const struct ph__words *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        const char *path = path_of(outputs->list[i]);
        if (format_of(outputs->list[i]) == COUNT(formats))
            return ph__usage_error(command, "--trace takes " FORMATS ", and :PATH behind it, not '%s'",
                                   outputs->list[i]);
        if (!path && formats[format_of(outputs->list[i])].needs_path)
            return ph__usage_error(command, "--trace %s wants a %s: %s:PATH", outputs->list[i],
                                   formats[format_of(outputs->list[i])].open_folder ? "folder" : "file",
                                   outputs->list[i]);
        if (path && !*path)
            return ph__usage_error(command, "--trace %s wants a path behind the colon", outputs->list[i]);
        if (path && strcmp(path, "-") == 0)
            return ph__usage_error(
                command, "--trace %s would make a file of that name: standard output is /dev/stdout",
                outputs->list[i]);
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

/* Sets (*size), to 0 without the option. */
static int check_ring(const struct ph__command *command, const char *text, uint64_t *size) {
    *size = 0;
    if (!text || (ph__size_parse(text, size) && *size >= PH__RING_SIZE_MIN && *size <= PH__RING_SIZE_MAX &&
                  !(*size & (*size - 1))))
        return PH__OPTIONS_GO_ON;
    return ph__usage_error(command, "--trace-ring wants a power of two from 16K to 64M, not '%s'", text);
}

int ph__tracing_check(const struct ph__command *command, const struct ph__tracing *trace, ph_config *config) {
    int status = check_outputs(command, &trace->outputs);

    if (status != PH__OPTIONS_GO_ON)
        return status;
    if (!trace->outputs.count && useless(trace))
        return ph__usage_error(command, "%s does nothing without --trace", useless(trace));
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
    return PH__OPTIONS_GO_ON;
}

int ph__tracing_spare(const struct ph__command *command, const struct ph__tracing *trace, const char *path) {
    struct stat information, other;

    if (stat(path, &information) != 0)
        return PH__OPTIONS_GO_ON;
    for (size_t i = 0; i < trace->outputs.count; i++) {
        const char *output = path_of(trace->outputs.list[i]);
        if (output && stat(output, &other) == 0 && ph__file_is_same(&information, &other))
            return ph__usage_error(command, "--trace %s would overwrite %s", trace->outputs.list[i], path);
    }
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
static int open_unnamed(void) {
    FILE *file = tmpfile();

    if (!file)
        return memfd_create("trace", MFD_CLOEXEC);
    int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    fclose(file);
    return fd;
}

/* For a stream, as fopencookie(3) has it: what is less than (size) is an error. */
static ssize_t write_output(void *context, const char *bytes, size_t size) {
    struct ph__tracing_output *output = context;
    size_t done = 0;

    while (done < size) {
        ssize_t written = write(output->fd, bytes + done, size - done);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR)
            break;
    }
    if (done < size && !output->error)
        output->error = errno;
    return (ssize_t)done;
}

/* False with errno. */
static bool open_output(struct ph__tracing_output *output, const char *path) {
    static const cookie_io_functions_t functions = {.write = write_output};

    *output = (struct ph__tracing_output){.path = path};
    output->fd =
        path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666) : open_unnamed();
    if (output->fd < 0)
        return false;
    output->file = fopencookie(output, "w", functions);
    if (output->file)
        return true;
    close(output->fd);
    errno = ENOMEM;
    return false;
}

/* Two paths to a file that was not there before. */
static int check_opened(const struct ph__command *command, const struct ph__tracing *trace) {
    const struct ph__tracing_output *last = &trace->files[trace->file_count - 1];
    struct stat information, other;

    for (const struct ph__tracing_output *output = trace->files; output < last; output++)
        if (output->path && last->path && output->file && fstat(output->fd, &other) == 0 &&
            fstat(last->fd, &information) == 0 && ph__file_is_same(&information, &other))
            return refuse_same(command, output->path, last->path);
    return PH__OPTIONS_GO_ON;
}

/* Opens the file of (output), or the unnamed one, and (*sink) on it. Returns PH__OPTIONS_GO_ON or an exit
 * status. */
static int open_file(const struct ph__command *command, struct ph__tracing *trace, const char *output,
                     ph_sink *sink) {
    struct ph__tracing_output *opened = &trace->files[trace->file_count];
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;

    if (!open_output(opened, path_of(output))) {
        ph__complain("%s: %s", opened->path ? opened->path : "a temporary file for the trace",
                     strerror(errno));
        return opened->path ? (int)command->usage_status : broken(command);
    }
    trace->file_count++;
    int same = check_opened(command, trace);
    if (same != PH__OPTIONS_GO_ON)
        return same;
    options.file = opened->file;
    options.colour = ph__text_wants_colour(PH_COLOUR_AUTO, opened->path ? opened->fd : STDERR_FILENO)
                         ? PH_COLOUR_ALWAYS
                         : PH_COLOUR_NEVER;
    if (formats[format_of(output)].open(&options, sink, &error) == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return broken(command);
}

/* Makes the folder of (output), and (*sink) in it. Returns as open_file. */
static int open_folder(const struct ph__command *command, struct ph__tracing *trace, const char *output,
                       ph_sink *sink) {
    struct ph__tracing_output *opened = &trace->files[trace->file_count];
    ph_error error;

    *opened = (struct ph__tracing_output){.path = path_of(output), .fd = -1};
    ph_status status = formats[format_of(output)].open_folder(opened->path, &opened->error, sink, &error);
    if (status != PH_OK) {
        ph__complain("%s", error.message);
        return status == PH_E_FILE ? (int)command->usage_status : broken(command);
    }
    trace->file_count++;
    return PH__OPTIONS_GO_ON;
}

static int add_sink(const struct ph__command *command, struct ph__tracing *trace, const char *output) {
    ph_sink sink = PH_SINK_INIT;
    ph_error error;

    int status = formats[format_of(output)].open_folder ? open_folder(command, trace, output, &sink)
                                                        : open_file(command, trace, output, &sink);
    if (status != PH__OPTIONS_GO_ON || ph_tracer_add_sink(trace->tracer, &sink, &error) == PH_OK)
        return status;
    ph__complain("%s", error.message);
    return broken(command);
}

/* A file that a shell has opened for us: what comes from there, or goes there, would be lost. */
static int check_standard_streams(const struct ph__command *command, const struct ph__tracing *trace) {
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    struct stat information, other;

    for (size_t i = 0; i < trace->outputs.count; i++) {
        const char *path = path_of(trace->outputs.list[i]);
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
    status = make_tracer(command, trace);
    for (size_t i = 0; i < trace->outputs.count && status == PH__OPTIONS_GO_ON; i++)
        status = add_sink(command, trace, trace->outputs.list[i]);
    if (status == PH__OPTIONS_GO_ON)
        config->tracer = trace->tracer;
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Copies what is in (fd) to stderr. There is nowhere to say that this failed. */
static bool pour_out(int fd) {
    char bytes[65536];
    off_t from = 0;
    ssize_t got;

    while ((got = pread(fd, bytes, sizeof bytes, from)) > 0) {
        from += got;
        for (ssize_t done = 0; done < got;) {
            ssize_t written = write(STDERR_FILENO, bytes + done, (size_t)(got - done));
            if (written > 0)
                done += written;
            else if (errno != EINTR)
                return false;
        }
    }
    return got == 0;
}

static void finish_file(struct ph__tracing_output *output) {
    fclose(output->file);
    output->file = NULL;
    /* Also when some of it was lost: the rest may say why the guest failed. */
    errno = 0;
    if (!output->path && !pour_out(output->fd) && !output->error)
        output->error = errno ? errno : EIO;
    /* Some file systems report a full disk no earlier than here. */
    if (close(output->fd) != 0 && output->path && !output->error)
        output->error = errno;
}

/* Whether all of (output) was written. The sink of a folder has closed that itself. */
static bool finish_output(struct ph__tracing_output *output) {
    if (output->file)
        finish_file(output);
    if (output->error)
        ph__complain("writing the trace to %s failed: %s", output->path ? output->path : "standard error",
                     strerror(output->error));
    return !output->error;
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
    for (size_t i = 0; i < trace->file_count; i++) {
        if (!trace->files[i].file)
            continue;
        fclose(trace->files[i].file);
        close(trace->files[i].fd);
    }
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
