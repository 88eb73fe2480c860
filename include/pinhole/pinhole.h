/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * The host API of pinhole: open an image, make a sandbox of it, call its functions or run it as a program.
 *
 * An image is one static Linux ELF file, opened once and shared by any number of sandboxes. A sandbox is one
 * micro-VM with the image in it. The usual order is ph_image_open, ph_sandbox_create, ph_sandbox_register
 * for each host function, ph_sandbox_start, then ph_call as often as needed, and ph_sandbox_destroy.
 * For a program without exports, ph_sandbox_run takes the place of start and call.
 *
 * Every function that can fail returns a ph_status: PH_OK or a negative code. The detail of a failure is in
 * the sandbox's error (ph_sandbox_error), or in the caller's ph_error for functions that can fail before
 * there is a sandbox. The library never prints, never exits, and keeps no global state beyond constants that
 * are initialised once, the handler of the interrupt signal, a page that notices fork(), and the timer
 * thread, which starts at the first call with a time-out or a limit of processor time.
 *
 * Threads: an image may be used from any number of threads at once. A sandbox may be used from any thread, by
 * one at a time; a second one at the same time gets PH_E_BUSY and changes nothing. ph_interrupt may be called
 * from any thread and from a signal handler. After fork() the child may only destroy what it inherited; all
 * else returns PH_E_FORKED.
 */
#ifndef PINHOLE_PINHOLE_H
#define PINHOLE_PINHOLE_H

#include <pinhole/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PH_API __attribute__((visibility("default")))
#define PH_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define PH_API
#define PH_PRINTF(string, first)
#endif

/**
 * Every status: its name, its number, the kind (one word that programs may match) and the message.
 * Use it as PH_STATUS_MAP(X) with a macro X(name, number, kind, message).
 */
#define PH_STATUS_MAP(X)                                                                                     \
    X(OK, 0, "ok", "success")                                                                                \
    /* The caller's side: nothing has happened to the sandbox. */                                            \
    X(E_ARGUMENT, -1, "argument", "an argument is not valid")                                                \
    X(E_MEMORY, -2, "memory", "the host is out of memory")                                                   \
    X(E_SYSTEM, -3, "system", "a system call of the host failed")                                            \
    X(E_BACKEND, -4, "backend", "no usable backend: see `pinhole doctor`")                                   \
    X(E_FILE, -5, "file", "the file cannot be read")                                                         \
    X(E_IMAGE, -6, "image", "the file is not an image that pinhole can load")                                \
    X(E_NOT_FOUND, -7, "not-found", "there is no function of that name")                                     \
    X(E_SIGNATURE, -8, "signature", "number or types of the values do not match the signature")              \
    X(E_TOO_LARGE, -9, "too-large", "the message is larger than the limit of this sandbox")                  \
    X(E_STATE, -10, "state", "the sandbox is not in the right state for this")                               \
    X(E_POISONED, -11, "poisoned", "the sandbox failed before and serves no more calls")                     \
    X(E_BROKEN, -12, "broken", "the host side of the sandbox failed; only destroying it is left")            \
    X(E_BUSY, -13, "busy", "another thread, or a host function of this call, is using the sandbox")          \
    X(E_FORKED, -14, "forked", "the sandbox was made before fork(); the child may only destroy it")          \
    X(E_SIGNAL_TAKEN, -15, "signal-taken", "the interrupt signal already has a handler of somebody else")    \
    X(E_SIGNAL_BLOCKED, -16, "signal-blocked", "the calling thread blocks the interrupt signal")             \
    X(E_UNREGISTERED, -17, "unregistered", "the image imports a host function that is not registered")       \
    X(E_SNAPSHOT, -20, "snapshot", "the snapshot does not fit this sandbox")                                 \
    /* The guest says no: the sandbox stays ready. */                                                        \
    X(E_GUEST, -30, "guest-error", "the guest reported an error")                                            \
    X(E_HOST_FUNCTION, -31, "host-function", "a host function failed and the guest did not handle it")       \
    /* The guest came to an end: the sandbox is poisoned. */                                                 \
    X(E_ABORTED, -50, "abort", "the guest aborted")                                                          \
    X(E_EXITED, -51, "exit", "the guest ended its program")                                                  \
    X(E_SIGNALLED, -52, "signal", "a signal ended the guest")                                                \
    X(E_PROTOCOL, -53, "protocol", "the guest broke the protocol between guest and host")                    \
    X(E_INTERRUPTED, -54, "interrupted", "the call was interrupted")                                         \
    X(E_TIMED_OUT, -55, "time-out", "the call took longer than its time-out")                                \
    X(E_CPU_TIME, -56, "cpu-time", "the call used more processor time than its limit")                       \
    X(E_OUTPUT_LIMIT, -57, "output-limit", "the call wrote more output than its limit")                      \
    X(E_HOST_CALL_LIMIT, -58, "host-call-limit", "the call made more host calls than its limit")             \
    X(E_MEMORY_LIMIT, -59, "memory-limit", "the guest came to an end after it had used up its memory")       \
    X(E_PAGE_FAULT, -60, "page-fault", "the guest used an address that it may not use so")                   \
    X(E_STACK_OVERFLOW, -61, "stack-overflow", "the guest's stack ran into its guard page")                  \
    X(E_UNDEFINED_INSTRUCTION, -62, "undefined-instruction", "the guest ran an undefined instruction")       \
    X(E_DIVIDE, -63, "divide-error", "the guest divided by zero, or the quotient did not fit")               \
    X(E_GENERAL_PROTECTION, -64, "general-protection", "the processor refused what the guest did")           \
    X(E_PRIVILEGED_INSTRUCTION, -65, "privileged-instruction", "the guest ran a privileged instruction")     \
    X(E_BREAKPOINT, -66, "breakpoint", "the guest ran into a breakpoint or a single step")                   \
    X(E_FLOATING_POINT, -67, "floating-point", "the guest caused an unmasked floating-point exception")      \
    X(E_ALIGNMENT, -68, "alignment", "the guest made an unaligned access and had asked for a fault")         \
    X(E_EXCEPTION, -69, "exception", "the guest caused a processor exception")                               \
    X(E_DOUBLE_FAULT, -70, "double-fault", "an exception could not be delivered inside the guest")           \
    X(E_TRIPLE_FAULT, -71, "triple-fault", "the guest's processor was reset by a third fault")

/**
 * The result of a function that can fail: PH_OK (0) or a negative PH_E_ code of PH_STATUS_MAP.
 */
typedef enum ph_status {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot be in parentheses */
#define PH__STATUS_ENUM(name, number, kind, message) PH_##name = number,
    PH_STATUS_MAP(PH__STATUS_ENUM)
#undef PH__STATUS_ENUM
} ph_status;

/**
 * The version of the library, "MAJOR.MINOR.PATCH". A constant string.
 */
PH_API const char *ph_version(void);

/**
 * The message of (status), a constant string without detail. Never NULL.
 */
PH_API const char *ph_status_message(ph_status status);

/**
 * The kind of (status): one constant word such as "page-fault" that programs and people may match.
 * Never NULL.
 */
PH_API const char *ph_status_kind(ph_status status);

/** Bytes in ph_error's message and function, each with its NUL. */
#define PH_ERROR_MESSAGE_MAX 512
#define PH_ERROR_FUNCTION_MAX 256

/**
 * The detail of a failure. The caller owns it; functions that take a ph_error pointer accept NULL.
 *
 * (message) is one line for a person, never empty after a failure. Text that came from the guest is cut and
 * made printable. Fields that do not apply are 0 or "".
 */
typedef struct ph_error {
    ph_status status;
    /** errno of the host system call that failed. */
    int system_error;
    /** Code given to ph_fail, ph_abort or ph_host_fail, or the exit status of PH_E_EXITED. */
    int32_t code;
    /** Number of the signal behind PH_E_SIGNALLED and PH_E_ABORTED by abort(). */
    int32_t signal;
    /** Processor exception: vector and error code (Intel SDM volume 3, chapter 6). */
    uint32_t vector;
    uint32_t error_code;
    /** Page faults: the address that was used. */
    uint64_t address;
    /** Where the guest was: 0 where it is not known. */
    uint64_t rip;
    /** The function around rip by the image's symbol table, and the distance from its start; "" if unknown.
     */
    uint64_t function_offset;
    char function[PH_ERROR_FUNCTION_MAX];
    char message[PH_ERROR_MESSAGE_MAX];
} ph_error;

/**
 * An opened image. Reference-counted: sandboxes hold it, so it may be closed while they live.
 */
typedef struct ph_image ph_image;

/**
 * One micro-VM with an image in it.
 */
typedef struct ph_sandbox ph_sandbox;

/**
 * An export or an import of an image. Owned by the image, valid as long as it is. (name) is NUL-terminated;
 * (index) is its position among the image's exports or imports.
 */
typedef struct ph_function {
    const char *name;
    uint32_t index;
    ph_signature signature;
} ph_function;

/** Image flags: PH_IMAGE_ALLOW_WX accepts segments, and later mappings, that are writable and executable. */
#define PH_IMAGE_ALLOW_WX 1u

/**
 * Opens the static ELF file at (path) and checks all of it. (flags) is 0 or PH_IMAGE_ flags. On success
 * (*image) is the caller's, to be closed with ph_image_close. The file is read once and may change
 * or go away afterwards. Returns PH_E_ARGUMENT, PH_E_FILE, PH_E_IMAGE (the message says what is wrong and
 * what to do), PH_E_MEMORY or PH_E_SYSTEM.
 */
PH_API ph_status ph_image_open(const char *path, uint32_t flags, ph_image **image, ph_error *error);

/**
 * As ph_image_open, from the (size) bytes at (data), which are copied. (name) is for messages and becomes
 * the program's argv[0].
 */
PH_API ph_status ph_image_open_bytes(const void *data, size_t size, const char *name, uint32_t flags,
                                     ph_image **image, ph_error *error);

/**
 * Gives up the caller's reference to (image), which may be NULL. Pointers to its functions are then invalid.
 */
PH_API void ph_image_close(ph_image *image);

/**
 * The number of functions that (image) exports.
 */
PH_API size_t ph_image_export_count(const ph_image *image);

/**
 * The export with (index), or NULL when there are not so many.
 */
PH_API const ph_function *ph_image_export(const ph_image *image, size_t index);

/**
 * The export with (name), or NULL. Ask once and keep the answer: calls go by it.
 */
PH_API const ph_function *ph_image_find_export(const ph_image *image, const char *name);

/**
 * The number of host functions that (image) imports, each name counted once.
 */
PH_API size_t ph_image_import_count(const ph_image *image);

/**
 * The import with (index), or NULL when there are not so many.
 */
PH_API const ph_function *ph_image_import(const ph_image *image, size_t index);

/**
 * What runs a sandbox. PH_BACKEND_KVM is the default. PH_BACKEND_SOFT is an emulated processor, for machines
 * without KVM: slower, and without a promise of isolation, since the emulator is a part of the host's
 * process. It is a plug-in, opened when it is asked for; PH_E_BACKEND without it, and always in libpinhole.a.
 * PH_BACKEND_AUTO is KVM where that runs a virtual machine, and otherwise the soft one, with a line for
 * `diagnostics` that says so. docs/security.md says what each promises.
 */
typedef enum ph_backend {
    PH_BACKEND_KVM = 0,
    PH_BACKEND_AUTO = 1,
    PH_BACKEND_SOFT = 2,
} ph_backend;

/**
 * Takes (size) bytes at (data) that the guest wrote to (stream), 1 for standard output and 2 for standard
 * error. Called on the calling thread, in the order of the writes, at every exit, also before a fault is
 * reported. Returns the number of bytes taken, or -errno, which the guest's write() then returns. The bytes
 * are only valid during the call.
 */
typedef int64_t (*ph_output_fn)(void *context, int stream, const void *data, size_t size);

/**
 * Gives up to (size) bytes of standard input at (data). Returns how many, 0 at the end, or -errno.
 * Called on the calling thread; an interrupt does not end it, so it should not block for long.
 */
typedef int64_t (*ph_input_fn)(void *context, void *data, size_t size);

/**
 * Takes one line about something that is worth knowing and not an error (a processor feature that is missing,
 * a limit that was lowered). Called on the thread that caused it. The text is only valid during the call.
 */
typedef void (*ph_diagnostics_fn)(void *context, const char *message);

/**
 * What happens to a guest's trace records (trace.h) when its ring is full. PH_TRACE_COMPLETE: one exit, and
 * nothing is lost. PH_TRACE_DROP: never an exit; the newest records are dropped and counted.
 * PH_TRACE_FLIGHT: never an exit; the oldest are overwritten, and those of a call are delivered when it comes
 * to a bad end.
 */
typedef enum ph_trace_policy {
    PH_TRACE_COMPLETE = 0,
    PH_TRACE_DROP = 1,
    PH_TRACE_FLIGHT = 2,
} ph_trace_policy;

/** The most files in one sandbox, and the most bytes of a path in the guest, without its NUL. */
#define PH_FILES_MAX 32
#define PH_FILE_PATH_MAX 255

/**
 * A file that a guest can read and map, and cannot change. (guest_path) is where the guest finds it:
 * absolute, at most PH_FILE_PATH_MAX bytes, without "." or ".." and with single slashes. Its content is the
 * host's file at (host_path), or without one the (bytes).
 *
 * The host's file is opened by ph_sandbox_create and mapped, not copied: all sandboxes share its pages with
 * the host's page cache. The guest sees the size of that moment, and changes of the content as they happen. A
 * guest that touches a part that the file has lost since gets PH_E_PAGE_FAULT; nothing happens to the host.
 * Bytes are copied by ph_sandbox_create; for bytes that sandboxes share, give the path of a memfd
 * (/proc/self/fd/N).
 */
typedef struct ph_file {
    const char *guest_path;
    const char *host_path;
    ph_bytes bytes;
} ph_file;

/**
 * How a sandbox is made. Initialise with PH_CONFIG_INIT, then change what matters; 0 or NULL takes the
 * default.
 */
typedef struct ph_config {
    /** sizeof(ph_config), set by PH_CONFIG_INIT: the struct may grow. */
    size_t size;
    ph_backend backend;
    /** The signal that interrupts a running vCPU; 0 is SIGRTMIN+3. Its handler belongs to pinhole. */
    int interrupt_signal;
    /** Bytes of guest memory: image, heap, mmap space and stack. Default 64 MiB; touched lazily. */
    uint64_t memory;
    /** Bytes of the main stack within (memory). Default 8 MiB, or an eighth of (memory) if that is less. */
    uint64_t stack;
    /** The most bytes of arguments, and of results, in one call. Default 64 KiB, at most 256 MiB. */
    uint64_t max_message;
    /** Nanoseconds that start and each call may take; 0 is no limit. */
    uint64_t timeout_ns;
    /** Arguments behind argv[0], and the environment, each NULL-terminated; NULL is none. Copied. */
    const char *const *argv;
    const char *const *envp;
    /** Where output goes. Without it, output is kept (see keep_output) or discarded. */
    ph_output_fn output;
    void *output_context;
    /** Where input comes from. Without it, input is (input_bytes), and then end of file. */
    ph_input_fn input;
    void *input_context;
    ph_diagnostics_fn diagnostics;
    void *diagnostics_context;
    /** Standard input as bytes; the caller keeps them until the sandbox is destroyed. */
    ph_bytes input_bytes;
    /** Bytes of output that are kept of each stream for ph_sandbox_output, when there is no (output). What is
        more fails in the guest with ENOSPC. 0 discards everything. */
    uint64_t keep_output;
    /** Traces the sandbox (trace.h); it must live longer than the sandbox. NULL: no tracing. */
    struct ph_tracer *tracer;
    ph_trace_policy trace_policy;
    /** Bytes of the guest's ring, a power of two from 16 KiB to 64 MiB. Default 256 KiB. */
    uint64_t trace_ring;
    /** The most records, and bytes of records, that one call (or start, or run) may bring; what is more is
        dropped and counted. Default 1,000,000 and 64 MiB; UINT64_MAX is no limit. */
    uint64_t trace_call_records;
    uint64_t trace_call_bytes;
    /** The most bytes of records in the sandbox's life. Default: no limit. */
    uint64_t trace_sandbox_bytes;
    /** Files that the guest can read: (file_count) of them, at most PH_FILES_MAX. Copied. */
    const ph_file *files;
    size_t file_count;
    /** Limits of start, run and each call, each on its own; 0 is no limit. A guest that goes beyond one is
       ended with PH_E_CPU_TIME, PH_E_OUTPUT_LIMIT or PH_E_HOST_CALL_LIMIT (docs/limits.md). Nanoseconds of
       processor time: with the vCPU running, and changing the protection of pages for the guest. Host
       functions, output, input and sleep do not count. */
    uint64_t cpu_time_ns;
    /** Bytes of standard output and standard error together, as they were taken. */
    uint64_t output_bytes_max;
    /** Host calls, those that fail included. */
    uint64_t host_calls_max;
    /** As ph_sandbox_set_traceparent (trace.h), from the beginning. Copied. */
    const char *traceparent;
    const char *tracestate;
    /** Counts what the sandbox does (metrics.h); it must live longer than the sandbox. NULL: nothing is
        counted. */
    struct ph_metrics *metrics;
} ph_config;

/** The initial value of a ph_config: every default. */
#define PH_CONFIG_INIT                                                                                       \
    {                                                                                                        \
        sizeof(ph_config), PH_BACKEND_KVM, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,    \
            {NULL, 0}, 0, NULL, PH_TRACE_COMPLETE, 0, 0, 0, 0, NULL, 0, 0, 0, 0, NULL, NULL, NULL            \
    }

/**
 * Makes a sandbox of (image). (config) may be NULL for every default. On success (*sandbox) is the
 * caller's, to be destroyed with ph_sandbox_destroy; nothing of the guest has run yet. Returns PH_E_ARGUMENT,
 * PH_E_FILE (one of the config's files), PH_E_BACKEND, PH_E_MEMORY, PH_E_SYSTEM or PH_E_SIGNAL_TAKEN.
 */
PH_API ph_status ph_sandbox_create(ph_image *image, const ph_config *config, ph_sandbox **sandbox,
                                   ph_error *error);

/**
 * Destroys (sandbox), which may be NULL, in any state, and frees all that belongs to it. It must not be
 * in use by another thread. In a child after fork() this frees the child's share and touches nothing of
 * the parent's.
 */
PH_API void ph_sandbox_destroy(ph_sandbox *sandbox);

/**
 * One call of a host function, alive until the function returns.
 */
typedef struct ph_host_call ph_host_call;

/**
 * A host function. (context) is what it was registered with, (args) match its signature and are only valid
 * until it returns; strings and bytes in them come from the guest and deserve no trust. It sets (result),
 * whose type is set already; strings and bytes must stay valid until it has returned (see ph_host_alloc).
 * Returns PH_OK, or what ph_host_fail returned. It runs on the thread that called ph_call, and must not use
 * the sandbox.
 */
typedef ph_status (*ph_host_fn)(void *context, ph_host_call *call, const ph_value *args, ph_value *result);

/**
 * Registers (function) under (name) for the imports of (sandbox), before it is started. (signature) is copied
 * and must be the import's; (context) is passed on. A name that the image does not import is accepted and
 * never called. Returns PH_E_ARGUMENT, PH_E_SIGNATURE (the image imports the name with other types), or a
 * status of the sandbox's state, as ph_call.
 */
PH_API ph_status ph_sandbox_register(ph_sandbox *sandbox, const char *name, const ph_signature *signature,
                                     ph_host_fn function, void *context);

/**
 * Fails the host call (call) with (code), which the guest sees, and a message in printf's form. For
 * `return ph_host_fail(...)` in a host function. Always returns PH_E_HOST_FUNCTION.
 */
PH_API ph_status ph_host_fail(ph_host_call *call, int32_t code, const char *format, ...) PH_PRINTF(3, 4);

/**
 * Memory of (size) bytes that lives until the host call's result has been handed to the guest. NULL when
 * there is none.
 */
PH_API void *ph_host_alloc(ph_host_call *call, size_t size);

/**
 * Runs the guest's start-up: the C library, constructors, main, until it waits for calls. Returns
 * PH_E_UNREGISTERED (the error names the import) or PH_E_TOO_LARGE (arguments and environment), after which
 * nothing has happened; PH_E_EXITED when the program ended instead of serving; or what ph_call returns for a
 * guest that comes to an end. PH_E_BACKEND, PH_E_MEMORY and PH_E_SYSTEM leave the sandbox broken.
 */
PH_API ph_status ph_sandbox_start(ph_sandbox *sandbox);

/**
 * Calls (function), an export of the sandbox's image, with the (count) values at (args), and waits for
 * its result. (result) may be NULL; strings and bytes in it belong to the sandbox and live until its next
 * call, start or destruction. Types and count are checked before the guest is entered.
 *
 * Returns PH_OK; PH_E_GUEST or PH_E_HOST_FUNCTION, after which the sandbox is ready as before; a status of
 * the guest coming to an end, after which it is poisoned; or a status of the caller's side, after which
 * nothing has happened.
 */
PH_API ph_status ph_call(ph_sandbox *sandbox, const ph_function *function, const ph_value *args, size_t count,
                         ph_value *result);

/**
 * As ph_call, with a time-out of its own: (timeout_ns) nanoseconds, 0 for none.
 */
PH_API ph_status ph_call_timeout(ph_sandbox *sandbox, const ph_function *function, const ph_value *args,
                                 size_t count, ph_value *result, uint64_t timeout_ns);

/**
 * Runs the image as a whole program, from its start to its exit, instead of ph_sandbox_start and ph_call.
 * (*exit_status) gets its exit status, 0 to 255. Returns PH_OK when the program ended by itself, PH_E_STATE
 * when it waits for calls instead, otherwise as ph_sandbox_start. The sandbox has then ended and serves
 * nothing more.
 */
PH_API ph_status ph_sandbox_run(ph_sandbox *sandbox, int *exit_status);

/**
 * What the guest of (sandbox) has written to (stream), 1 or 2, since it was made, as far as the config's
 * keep_output allowed. The bytes belong to the sandbox and are valid until it is used again.
 */
PH_API ph_bytes ph_sandbox_output(const ph_sandbox *sandbox, int stream);

/**
 * Ends the call, start or run that (sandbox) is in, with PH_E_INTERRUPTED. A call runs from the entry of
 * ph_call to its return: also before the guest is entered, and in a host function, at whose return it ends.
 * Outside a call this does nothing and is not remembered. May be called from any thread and from a signal
 * handler; the sandbox must not be destroyed meanwhile.
 */
PH_API void ph_interrupt(ph_sandbox *sandbox);

/**
 * The error of the last function that failed on (sandbox). Belongs to the sandbox, changes with its next
 * failure. Never NULL; its status is PH_OK when nothing has failed. PH_E_BUSY and PH_E_FORKED are not
 * recorded, since the sandbox is somebody else's then, and neither is PH_E_ARGUMENT for a NULL pointer.
 */
PH_API const ph_error *ph_sandbox_error(const ph_sandbox *sandbox);

/**
 * What a sandbox can do now: PH_STATE_NEW until it is started, PH_STATE_READY for calls, PH_STATE_POISONED
 * after the guest came to an end, PH_STATE_BROKEN after the host side failed.
 */
typedef enum ph_state {
    PH_STATE_NEW = 0,
    PH_STATE_READY = 1,
    PH_STATE_POISONED = 2,
    PH_STATE_BROKEN = 3,
} ph_state;

/**
 * The state of (sandbox).
 */
PH_API ph_state ph_sandbox_state(const ph_sandbox *sandbox);

/**
 * The name of what runs (sandbox), "kvm" or "soft": which one PH_BACKEND_AUTO has come to. Constant, and not
 * to be freed. Any thread.
 */
PH_API const char *ph_sandbox_backend(const ph_sandbox *sandbox);

/**
 * Counts over the life of a sandbox. Times are nanoseconds of the host's clock: (guest_ns) with the vCPU
 * running, (host_ns) in host functions.
 */
typedef struct ph_stats {
    uint64_t calls;
    uint64_t exits;
    uint64_t host_calls;
    uint64_t guest_ns;
    uint64_t host_ns;
} ph_stats;

/**
 * Fills (stats) with the counts of (sandbox). Cheap; from the thread that uses the sandbox, or when it is
 * idle.
 */
PH_API void ph_sandbox_stats(const ph_sandbox *sandbox, ph_stats *stats);

/**
 * What the last call, start or run of a sandbox used, or the one under way has used so far. Initialise with
 * PH_CALL_STATS_INIT. (exits) is the sum of all kinds of exit behind it. Times are nanoseconds of the host's
 * clock.
 */
typedef struct ph_call_stats {
    /** sizeof(ph_call_stats), set by PH_CALL_STATS_INIT: the struct may grow. */
    size_t size;
    uint64_t exits;
    /** By what the guest asked for: a host call, output, input, sleep (or waiting), a change of protection,
        fresh zero pages, room for trace records. */
    uint64_t exits_host_call;
    uint64_t exits_write;
    uint64_t exits_read;
    uint64_t exits_sleep;
    uint64_t exits_protect;
    uint64_t exits_zero;
    uint64_t exits_trace;
    /** The guest has ended what was asked of it, or its program. */
    uint64_t exits_end;
    /** Processor exceptions, those that the guest handles itself included. */
    uint64_t exits_exception;
    /** Signals to the thread, and kicks of interrupts and limits. */
    uint64_t exits_kick;
    uint64_t exits_other;
    /** What cpu_time_ns limits. */
    uint64_t guest_ns;
    /** In host functions, and asleep. */
    uint64_t host_ns;
    uint64_t sleep_ns;
    /** Host calls that reached their function, and bytes of output that were taken. */
    uint64_t host_calls;
    uint64_t output_bytes;
    /** Pages that a restore has copied back for this call. */
    uint64_t pages_copied;
    /** Trace records that were delivered, and that were dropped for whatever reason; 0 without a tracer. To
       know them, the tracer's worker is waited for, and only by a caller whose (size) holds them. */
    uint64_t trace_records;
    uint64_t trace_dropped;
} ph_call_stats;

/** The initial value of a ph_call_stats. */
#define PH_CALL_STATS_INIT                                                                                   \
    { sizeof(ph_call_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Fills (stats), whose size is set, with what the last call, start or run of (sandbox) used; all 0 before the
 * first. From the thread that uses the sandbox, or when it is idle, and not from a sink. PH_E_ARGUMENT for a
 * NULL or a size that is not one of this library, PH_E_FORKED.
 */
PH_API ph_status ph_sandbox_call_stats(const ph_sandbox *sandbox, ph_call_stats *stats);

/**
 * The pages of guest memory that hold content of their own, of 4 KiB each, at this moment. Asks the kernel
 * for each page of the sandbox: milliseconds for a large one. PH_E_SYSTEM where the kernel does not say.
 */
PH_API ph_status ph_sandbox_pages(ph_sandbox *sandbox, uint64_t *pages);

/**
 * How often the guest made system call (number) and was told ENOSYS. Numbers of 511 and above share one
 * count. The counts are kept inside the guest and are as honest as it is.
 */
PH_API uint32_t ph_sandbox_unserved(const ph_sandbox *sandbox, uint32_t number);

#ifdef __cplusplus
}
#endif

#endif
