/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the command says when something went wrong, and the exit status that stands for it. The line of a
 * failed call is matched by programs: it holds the kind, and nothing that differs between two runs or two
 * backends.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/signals.h"

/* Names from the command line may be long, and a line break in one would forge a line. */
#define SHOWN_MAX 256

int ph__usage_error(const struct ph__command *command, const char *format, ...) {
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ph__text_copy_printable(text, sizeof text, text, strlen(text));
    fprintf(stderr, "pinhole: %s; see 'pinhole %s%s--help'\n", text, command->name,
            command->name[0] ? " " : "");
    return command->usage_status;
}

int ph__status_broken(const struct ph__command *command) {
    return command->usage_status == PH__COMMAND_BROKEN ? PH__COMMAND_BROKEN : PH__COMMAND_FAILED;
}

static void print_line(const char *before, const char *format, va_list arguments) {
    char text[1024];

    vsnprintf(text, sizeof text, format, arguments);
    ph__text_copy_printable(text, sizeof text, text, strlen(text));
    fprintf(stderr, "pinhole: %s%s\n", before, text);
}

void ph__complain(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}

void ph__warn(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    print_line("warning: ", format, arguments);
    va_end(arguments);
}

/* Whether (error) carries a code that the guest, or a host function, chose. */
static bool has_code(const ph_error *error) {
    return error->status == PH_E_GUEST || error->status == PH_E_HOST_FUNCTION ||
           (error->status == PH_E_ABORTED && !error->signal);
}

void ph__report_failure(const char *subject, const ph_error *error) {
    char shown[SHOWN_MAX];
    char code[32] = "";
    const char *kind = ph_status_kind(error->status);

    ph__text_copy_printable(shown, sizeof shown, subject, strlen(subject));
    if (has_code(error))
        snprintf(code, sizeof code, "code %s0x%x: ", error->code < 0 ? "-" : "",
                 error->code < 0 ? 0u - (unsigned)error->code : (unsigned)error->code);
    /* Where a guest is when it is stopped is chance, but for the function. */
    if (error->status == PH_E_TIMED_OUT || error->status == PH_E_INTERRUPTED)
        fprintf(stderr, "pinhole: %s: %s: %s ended the guest%s%s\n", shown, kind,
                error->status == PH_E_TIMED_OUT ? "the time-out" : "an interrupt",
                error->function[0] ? " in " : "", error->function);
    else
        fprintf(stderr, "pinhole: %s: %s: %s%s\n", shown, kind, code, error->message);
}

int ph__status_of_call(ph_status status) {
    switch (status) {
    case PH_OK:
        return PH__COMMAND_OK;
    case PH_E_ARGUMENT:
    case PH_E_FILE:
    case PH_E_IMAGE:
    case PH_E_NOT_FOUND:
    case PH_E_SIGNATURE:
    case PH_E_UNREGISTERED:
    case PH_E_SNAPSHOT: /* of something else, or no snapshot at all */
        return PH__COMMAND_USAGE;
    case PH_E_BACKEND:
        return PH__COMMAND_NO_BACKEND;
    default:
        return PH__COMMAND_FAILED;
    }
}

/* The number of the signal that Linux sends a program for what ended this guest; 0 when the guest is not to
 * blame. Numbers are those of x86 Linux (signal(7)). */
static int signal_of(const ph_error *error) {
    enum { ILL = 4, TRAP = 5, ABRT = 6, BUS = 7, FPE = 8, SEGV = 11 };

    switch (error->status) {
    case PH_E_SIGNALLED:
        return error->signal;
    case PH_E_ABORTED:
        return ABRT;
    case PH_E_UNDEFINED_INSTRUCTION:
        return ILL;
    case PH_E_DIVIDE:
    case PH_E_FLOATING_POINT:
        return FPE;
    case PH_E_BREAKPOINT:
        return TRAP;
    case PH_E_ALIGNMENT:
        return BUS;
    case PH_E_PROTOCOL: /* an I/O instruction, for one, is SIGSEGV natively too */
    case PH_E_PAGE_FAULT:
    case PH_E_STACK_OVERFLOW:
    case PH_E_GENERAL_PROTECTION:
    case PH_E_PRIVILEGED_INSTRUCTION:
    case PH_E_EXCEPTION:
    case PH_E_DOUBLE_FAULT:
    case PH_E_TRIPLE_FAULT:
        return SEGV;
    default:
        return 0;
    }
}

int ph__status_of_run(const ph_error *error) {
    int number = signal_of(error);

    if (number)
        return 128 + number;
    switch (error->status) {
    case PH_E_TIMED_OUT:
    case PH_E_CPU_TIME:
    case PH_E_OUTPUT_LIMIT:
    case PH_E_HOST_CALL_LIMIT:
    case PH_E_MEMORY_LIMIT:
        return PH__COMMAND_TIMED_OUT;
    default:
        return PH__COMMAND_BROKEN;
    }
}

/* Of the first write to stdout that failed. */
static int output_error;

void ph__check_output(void) {
    if (ferror(stdout) && !output_error)
        output_error = errno;
}

int ph__finish_output(int status) {
    bool failed = ferror(stdout);

    errno = output_error;
    /* The last bytes are written here, and some file systems report a full disk no earlier than at the close.
     */
    if (fclose(stdout) != 0)
        failed = true;
    if (!failed || ph__signals_received())
        return status;
    ph__complain("writing to standard output failed: %s",
                 errno ? strerror(errno) : "an earlier write failed");
    return PH__COMMAND_FAILED;
}

const char *ph__signature_type(ph_type type) {
    static const char *const names[] = {"void", "i32", "u32",  "i64",    "u64",
                                        "f32",  "f64", "bool", "string", "bytes"};

    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

void ph__signature_print(const ph_function *function) {
    const ph_signature *signature = &function->signature;

    printf("%s(", function->name);
    for (uint32_t i = 0; i < signature->count; i++)
        printf("%s%s", i ? ", " : "", ph__signature_type(signature->args[i]));
    printf(") -> %s\n", ph__signature_type(signature->result));
}
