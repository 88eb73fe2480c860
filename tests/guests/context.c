/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Asks to which trace it belongs: as it starts, in calls, and by way of the host; and records a little of
 * every kind. Its main function is that of the guest library.
 */
#include <pinhole/guest.h>

#include <unistd.h>

PH_IMPORT(visit, PH_U64, PH_U64);

static char at_start[64];
static char at_restore[64];

static void copy(char *to) {
    const char *from = ph_traceparent();

    for (int i = 0; i < 63 && (*to = *from); i++, to++, from++)
        ;
}

__attribute__((constructor)) static void construct(void) {
    copy(at_start);
}

static void restored(void) {
    copy(at_restore);
}
PH_ON_RESTORE(restored);

static const char *traceparent(void) {
    return ph_traceparent();
}
PH_EXPORT(traceparent, PH_STR);

static const char *first_traceparent(void) {
    return at_start;
}
PH_EXPORT(first_traceparent, PH_STR);

static const char *restored_traceparent(void) {
    return at_restore;
}
PH_EXPORT(restored_traceparent, PH_STR);

/* A span, an event, a log, a counter, a system call and a host call, and behind that some more. True when
 * the span was on. */
static bool work(uint64_t n) {
    PH_SPAN_AS(span, PH_LEVEL_INFO, "work", ph_u64("n", n));
    PH_EVENT("step", ph_u64("n", n));
    PH_LOG_INFO("step %llu", (unsigned long long)n);
    PH_COUNTER("steps", (int64_t)n);
    (void)getppid();
    visit(n);
    (void)getppid();
    PH_EVENT("late", ph_u64("n", n));
    return span.position != 0;
}
PH_EXPORT(work, PH_BOOL, PH_U64);

static void begin_job(uint64_t id) {
    PH_ASYNC_BEGIN("job", id);
}
PH_EXPORT(begin_job, PH_VOID, PH_U64);

static void end_job(uint64_t id) {
    PH_ASYNC_END("job", id);
}
PH_EXPORT(end_job, PH_VOID, PH_U64);

static void crash(void) {
    PH_SPAN("crash");
    PH_EVENT("step");
    __builtin_trap();
}
PH_EXPORT(crash, PH_VOID);

static void spin(void) {
    PH_SPAN("spin");
    for (;;)
        PH_EVENT("step");
}
PH_EXPORT(spin, PH_VOID);
