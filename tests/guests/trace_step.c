/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Steps through the recorder: an exception at each of its instructions, whose handler traces as well, and
 * returns or leaves by siglongjmp. One pass for each instruction: in pass i the handler acts at the i-th
 * step, and leaves the others alone.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <pinhole/guest.h>

#define TRAP_FLAG 0x100

/* What is stepped through, and what the handler does. */
enum { EVENT, TEXT, SPAN, LOG, COUNTER, DEEP, KINDS };

/* The first words of the ring's page (src/abi/trace.h): this test wants to know when it is full. */
static volatile uint64_t *const ring = (volatile uint64_t *)0x7f8000000000;

static uint32_t pass;
static uint32_t wanted;
static volatile uint32_t steps;
static uint32_t handler_does;
static bool handler_jumps;
static sigjmp_buf place;

/* Runs (function), which may be left by a jump. In a frame of its own: compilers warn of what setjmp could do
 * to the variables of a function, those of PH_SPAN among them. */
static __attribute__((noinline)) void run_guarded(void (*function)(uint32_t), uint32_t argument) {
    if (sigsetjmp(place, 1) == 0)
        function(argument);
}

/* The red zone below the stack pointer is somebody's. */
static inline __attribute__((always_inline)) void steps_begin(void) {
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
                     "pushfq\n\t"
                     "orq %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "leaq 128(%%rsp), %%rsp"
                     :
                     : "i"(TRAP_FLAG)
                     : "memory", "cc");
}

static inline __attribute__((always_inline)) void steps_end(void) {
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
                     "pushfq\n\t"
                     "andq %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "leaq 128(%%rsp), %%rsp"
                     :
                     : "i"(~TRAP_FLAG)
                     : "memory", "cc");
}

static void handler_act(void) {
    switch (handler_does) {
    case EVENT:
        PH_EVENT("step", ph_u64("n", pass));
        break;
    case TEXT:
        PH_EVENT("step", ph_u64("n", pass), ph_str("text", "out of the handler"));
        break;
    case SPAN: {
        PH_SPAN("handler");
        PH_EVENT("step", ph_u64("n", pass));
        if (handler_jumps)
            siglongjmp(place, 1);
        break;
    }
    case LOG:
        PH_EVENT("step", ph_u64("n", pass));
        PH_LOG_INFO("pass %u of %s", pass, "some");
        break;
    default:
        PH_EVENT("step", ph_u64("n", pass));
        PH_COUNTER("step.count", pass);
    }
}

static void on_step(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    if (++steps != wanted)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    handler_act();
    if (handler_jumps)
        siglongjmp(place, 1);
}

/* Each in a frame of its own, so that a jump leaves it. */
static __attribute__((noinline)) void record_event(void) {
    steps_begin();
    PH_EVENT("at", ph_u64("n", pass));
    steps_end();
}

static __attribute__((noinline)) void record_text(void) {
    steps_begin();
    PH_EVENT("at", ph_u64("n", pass), ph_str("text", "nine words and a bit, as long as it takes"));
    steps_end();
}

static __attribute__((noinline)) void record_span(void) {
    steps_begin();
    {
        PH_SPAN("stepped", ph_u64("n", pass));
        PH_EVENT("at", ph_u64("n", pass));
    }
    steps_end();
}

static __attribute__((noinline)) void record_log(void) {
    steps_begin();
    PH_LOG_INFO("%d and %s", (int)pass, "text");
    steps_end();
    PH_EVENT("at", ph_u64("n", pass));
}

static __attribute__((noinline)) void record_counter(void) {
    steps_begin();
    PH_COUNTER("count", pass);
    steps_end();
    PH_EVENT("at", ph_u64("n", pass));
}

/* One site, open at several levels; the jump leads to the second of them. */
static __attribute__((noinline)) void record_deep(uint32_t depth) {
    if (depth == 3)
        steps_begin();
    PH_SPAN("deep", ph_u64("depth", depth), ph_u64("n", pass));
    if (depth == 3) {
        steps_end();
        PH_EVENT("at", ph_u64("n", pass));
        return;
    }
    if (depth != 1) {
        record_deep(depth + 1);
        return;
    }
    run_guarded(record_deep, depth + 1);
    PH_EVENT("landed", ph_u64("n", pass));
}

static __attribute__((noinline)) void record(uint32_t kind) {
    switch (kind) {
    case EVENT:
        record_event();
        break;
    case TEXT:
        record_text();
        break;
    case SPAN:
        record_span();
        break;
    case LOG:
        record_log();
        break;
    default:
        record_counter();
    }
}

/* Fills the ring until fewer than (left) bytes are free: the next record has to ask for room. */
static void fill(uint64_t left) {
    while (ring[1] > ring[0] && ring[1] - ring[0] >= left)
        PH_EVENT("fill");
}

static __attribute__((noinline)) void pass_run(uint32_t kind) {
    PH_SPAN("around", ph_u64("n", pass));
    if (kind == DEEP)
        record_deep(0);
    else
        run_guarded(record, kind);
    PH_EVENT("after", ph_u64("n", pass));
}

/* Passes from (first) on, every (stride)-th, until one is over before the handler acts, and at most (most).
 * Gives how many there were. (left), unless 0, has the ring filled before each. (dies): comes to a bad end
 * behind the last. */
static uint32_t step(uint32_t kind, uint32_t does, bool jumps, uint32_t first, uint32_t stride, uint32_t most,
                     uint64_t left, bool dies) {
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    sigaction(SIGTRAP, &action, NULL);
    handler_does = does;
    handler_jumps = jumps;
    for (pass = 0; pass < most; pass++) {
        wanted = first + pass * stride;
        steps = 0;
        if (left)
            fill(left);
        pass_run(kind);
        if (steps < wanted)
            break;
    }
    if (dies)
        __builtin_trap();
    return pass;
}
PH_EXPORT(step, PH_U32, PH_U32, PH_U32, PH_BOOL, PH_U32, PH_U32, PH_U32, PH_U64, PH_BOOL);

static void on_fault(int number) {
    (void)number;
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): tracing is made for handlers */
    PH_EVENT("faulted");
    siglongjmp(place, 1);
}

static const char *const nowhere = (const char *)0x10;

static __attribute__((noinline)) void record_bad_event(uint32_t number) {
    PH_SPAN("stepped");
    PH_EVENT("bad", ph_u64("n", number), ph_str("text", nowhere));
}

static __attribute__((noinline)) void record_bad_log(uint32_t number) {
    PH_SPAN("stepped");
    PH_LOG_INFO("%u %s", number, nowhere);
}

/* Strings that are not there: the recorder itself faults. */
static void bad_strings(void) {
    signal(SIGSEGV, on_fault);
    PH_SPAN("around");
    run_guarded(record_bad_event, 1);
    run_guarded(record_bad_log, 2);
    PH_EVENT("after");
}
PH_EXPORT(bad_strings, PH_VOID);
