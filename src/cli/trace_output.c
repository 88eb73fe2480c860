/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The outputs of a trace (trace_output.h). One that goes to stderr is kept in an unnamed file until the
 * command has said there what went wrong, so that its own line stays the first. A write that fails, to a full
 * disk or a pipe without a reader, ends nothing: what it was is warned of at the end.
 */
#include "cli/trace_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <pinhole/export.h>

#include "cli/options.h"
#include "cli/signals.h"
#include "export/ctf.h"
#include "export/text.h"

static const struct ph__trace_format formats[] = {
    /* clang-format off: a line each */
    {"text", PH__TRACE_FILE, false, false, ph_text_sink_open},
    {"jsonl", PH__TRACE_FILE, false, false, ph_jsonl_sink_open},
    {"otlp", PH__TRACE_COLLECTOR, false, true, NULL},
    {"otlp-json", PH__TRACE_FILE, true, true, ph_otlp_json_sink_open},
    {"html", PH__TRACE_FILE, true, false, ph_html_sink_open},
    {"perfetto", PH__TRACE_FILE, true, false, ph_perfetto_sink_open},
    {"chrome", PH__TRACE_FILE, true, false, ph_chrome_sink_open},
    {"ctf", PH__TRACE_FOLDER, true, false, NULL},
    {"folded", PH__TRACE_FILE, true, false, ph_folded_sink_open},
    {"speedscope", PH__TRACE_FILE, true, false, ph_speedscope_sink_open},
    /* clang-format on */
};

const struct ph__trace_format *ph__trace_format_of(const char *output) {
    const size_t length = strcspn(output, ":");

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strlen(formats[i].name) == length && strncmp(output, formats[i].name, length) == 0)
            return &formats[i];
    return NULL;
}

const char *ph__trace_path_of(const char *output) {
    const char *colon = strchr(output, ':');

    return colon ? colon + 1 : NULL;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* As write(2), with EPIPE alone for a pipe without a reader: without the signal, of which none must be left
 * to come later. One that was pending before is not taken away. */
static ssize_t write_without_signal(int fd, const char *bytes, size_t size) {
    static const struct timespec at_once = {0};
    sigset_t broken_pipe, before, pending;

    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    ssize_t written = write(fd, bytes, size);
    int error = errno;
    if (written < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&broken_pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* Writes all of it, or returns how much could be, with errno. */
static size_t write_all(int fd, const char *bytes, size_t size) {
    size_t done = 0;

    while (done < size) {
        ssize_t written = write_without_signal(fd, bytes + done, size - done);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR)
            break;
    }
    return done;
}

/* For a stream, as fopencookie(3) has it: what is less than (size) is an error. */
static ssize_t write_output(void *context, const char *bytes, size_t size) {
    struct ph__tracing_output *output = context;
    size_t done = write_all(output->fd, bytes, size);

    atomic_fetch_add(&output->written, done);
    if (done < size && !output->error)
        output->error = errno;
    return (ssize_t)done;
}

/* Copies what is in (fd) to stderr. False with errno. */
static bool pour_out(int fd) {
    char bytes[65536];
    off_t from = 0;
    ssize_t got;

    while ((got = pread(fd, bytes, sizeof bytes, from)) > 0) {
        from += got;
        if (write_all(STDERR_FILENO, bytes, (size_t)got) < (size_t)got)
            return false;
    }
    return got == 0;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* Where a trace for stderr is kept: on disk, since it may be large, or else in memory. */
static int open_unnamed(void) {
    FILE *file = tmpfile();

    if (!file)
        return memfd_create("trace", MFD_CLOEXEC);
    int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    fclose(file);
    return fd;
}

/* False with errno. */
static bool open_stream(struct ph__tracing_output *output) {
    static const cookie_io_functions_t functions = {.write = write_output};

    output->fd = output->path ? open(output->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666)
                              : open_unnamed();
    if (output->fd < 0)
        return false;
    output->file = fopencookie(output, "w", functions);
    if (output->file)
        return true;
    close(output->fd);
    errno = ENOMEM;
    return false;
}

/* Opens the file of (output), or the unnamed one, and (*sink) on it. */
static int open_file(const struct ph__command *command, struct ph__tracing_output *output, ph_sink *sink) {
    ph_file_sink options = PH_FILE_SINK_INIT;
    ph_error error;

    if (!open_stream(output)) {
        ph__complain("%s: %s", output->path ? output->path : "a temporary file for the trace",
                     strerror(errno));
        return output->path ? (int)command->usage_status : ph__status_broken(command);
    }
    options.file = output->file;
    options.colour = ph__text_wants_colour(PH_COLOUR_AUTO, output->path ? output->fd : STDERR_FILENO)
                         ? PH_COLOUR_ALWAYS
                         : PH_COLOUR_NEVER;
    if (output->format->open(&options, sink, &error) == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return ph__status_broken(command);
}

/* Makes the folder of (output), and (*sink) in it. */
static int open_folder(const struct ph__command *command, struct ph__tracing_output *output, ph_sink *sink) {
    ph_error error;

    ph_status status = ph__ctf_sink_open(output->path, &output->error, sink, &error);
    if (status == PH_OK)
        return PH__OPTIONS_GO_ON;
    ph__complain("%s", error.message);
    return status == PH_E_FILE ? (int)command->usage_status : ph__status_broken(command);
}

int ph__trace_output_open(const struct ph__command *command, const char *given, ph_metrics *metrics,
                          struct ph__tracing_output *output, ph_sink *sink) {
    *output = (struct ph__tracing_output){
        .format = ph__trace_format_of(given), .path = ph__trace_path_of(given), .fd = -1};
    switch (output->format->target) {
    case PH__TRACE_FOLDER:
        return open_folder(command, output, sink);
    case PH__TRACE_COLLECTOR:
        output->collector = ph__collector_open(output->path, metrics, sink);
        return output->collector ? PH__OPTIONS_GO_ON : (int)command->usage_status;
    default:
        return open_file(command, output, sink);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

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

void ph__trace_output_finish(struct ph__tracing_output *output) {
    if (output->file)
        finish_file(output);
}

/* Waits until (left) collectors have added themselves to (done). A signal is for them, unless it was for the
 * guest (signalled). */
static void wait_for_collectors(struct ph__tracing_output *outputs, size_t count, int done, size_t left,
                                bool signalled) {
    struct pollfd waited[] = {
        {.fd = done, .events = POLLIN},
        {.fd = signalled ? -1 : ph__signals_descriptor(), .events = POLLIN},
    };
    uint64_t number;

    while (left > 0) {
        if (poll(waited, 2, -1) < 0 && errno != EINTR)
            return;
        if (waited[1].revents) {
            waited[1].fd = -1;
            for (size_t i = 0; i < count; i++)
                if (outputs[i].collector)
                    ph__collector_finish_hurry(outputs[i].collector);
        }
        if (read(done, &number, sizeof number) == sizeof number)
            left -= number < left ? (size_t)number : left;
    }
}

void ph__trace_collectors_finish(struct ph__tracing_output *outputs, size_t count, uint64_t deadline_ns,
                                 bool signalled) {
    const int done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        if (outputs[i].collector)
            left += ph__collector_finish_begin(outputs[i].collector, deadline_ns, done);
    /* Without one, they end in time all the same. */
    if (done >= 0)
        wait_for_collectors(outputs, count, done, left, signalled);
    for (size_t i = 0; i < count; i++)
        if (outputs[i].collector)
            ph__collector_finish_end(outputs[i].collector);
    if (done >= 0)
        close(done);
}

void ph__trace_output_warn(const struct ph__tracing_output *output) {
    if (output->error)
        ph__warn("writing the trace to %s failed: %s", output->path ? output->path : "standard error",
                 strerror(output->error));
    if (output->collector)
        ph__collector_warn(output->collector);
}

void ph__trace_output_free(struct ph__tracing_output *output) {
    if (output->file) {
        fclose(output->file);
        close(output->fd);
    }
    ph__collector_free(output->collector);
}
