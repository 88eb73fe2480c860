/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Clocks and sleep. Clocks are read from the time-stamp counter and the control page's anchors, without an
 * exit. A sleep is one exit, and its time is not processor time.
 */
#include <linux/resource.h>
#include <linux/time.h>
#include <linux/times.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

/* sysconf(_SC_CLK_TCK) of every Linux. */
#define NS_PER_TICK (PH__NS_PER_SECOND / 100)
#define COARSE_RESOLUTION_NS 4000000

/* The latest answers, since a clock must not go back when the host sets new anchors. */
static uint64_t last_monotonic_ns;
static uint64_t idle_ns;

/* Nanoseconds of both clocks. The host may set new anchors at any instruction in here, if the vCPU happens
 * to leave there; `tsc` changes with the others, so reading it twice tells. */
static void clocks_read(uint64_t *monotonic_ns, uint64_t *realtime_ns) {
    const volatile struct ph__clock *clock = &ph__control()->clock;
    uint64_t anchor;
    do {
        anchor = clock->tsc;
        uint64_t now = ph__tsc_read();
        uint64_t ticks = now > anchor ? now - anchor : 0;
        uint64_t passed = (uint64_t)(((unsigned __int128)ticks * clock->mult) >> 32);
        *monotonic_ns = clock->monotonic_ns + passed;
        *realtime_ns = clock->realtime_ns + passed;
    } while (clock->tsc != anchor);
}

uint64_t ph__monotonic_ns(void) {
    uint64_t monotonic, realtime;
    clocks_read(&monotonic, &realtime);
    if (monotonic > last_monotonic_ns)
        last_monotonic_ns = monotonic;
    return last_monotonic_ns;
}

uint64_t ph__realtime_ns(void) {
    uint64_t monotonic, realtime;
    clocks_read(&monotonic, &realtime);
    return realtime; /* may go back: somebody has set the host's clock */
}

uint64_t ph__processor_ns(void) {
    uint64_t since_start = ph__monotonic_ns() - ph__control()->start_monotonic_ns;
    return since_start > idle_ns ? since_start - idle_ns : 0;
}

void ph__account_idle(uint64_t since_ns) {
    idle_ns += ph__monotonic_ns() - since_ns;
}

void ph__sleep(uint64_t duration_ns) {
    if (duration_ns == 0)
        return;
    uint64_t since = ph__monotonic_ns();
    ph__doorbell_ring(PH__DOORBELL_SLEEP, duration_ns, 0, 0);
    if (duration_ns == PH__FOREVER) {
        for (;;)
            ph__doorbell_ring(PH__DOORBELL_SLEEP, PH__FOREVER, 0, 0);
    }
    ph__account_idle(since);
}

/* ----------------------------------------------------------------- clocks -- */

/* The clock's nanoseconds. False if there is no such clock. */
static bool clock_read(int32_t clock, uint64_t *ns) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
        *ns = ph__realtime_ns();
        return true;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        *ns = ph__monotonic_ns();
        return true;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        *ns = ph__processor_ns();
        return true;
    default: {
        /* clock_getcpuclockid: the inverted process id, three bits for the kind. Kind 3 is a device. */
        uint32_t process = ~(uint32_t)clock >> 3;
        if (clock >= 0 || (clock & 3) == 3 || (process != 0 && process != PH__PROCESS_ID))
            return false;
        *ns = ph__processor_ns();
        return true;
    }
    }
}

static int64_t timespec_to_user(uint64_t address, uint64_t ns) {
    struct __kernel_timespec time = {
        .tv_sec = (int64_t)(ns / PH__NS_PER_SECOND),
        .tv_nsec = (int64_t)(ns % PH__NS_PER_SECOND),
    };
    return ph__copy_to_user(address, &time, sizeof time);
}

static struct __kernel_old_timeval timeval_from(uint64_t ns) {
    return (struct __kernel_old_timeval){
        .tv_sec = (int64_t)(ns / PH__NS_PER_SECOND),
        .tv_usec = (int64_t)(ns % PH__NS_PER_SECOND / 1000),
    };
}

int64_t ph__sys_clock_gettime(struct ph__regs *regs) {
    uint64_t ns;
    if (!clock_read((int32_t)regs->rdi, &ns))
        return -EINVAL;
    return timespec_to_user(regs->rsi, ns);
}

int64_t ph__sys_clock_getres(struct ph__regs *regs) {
    int32_t clock = (int32_t)regs->rdi;
    uint64_t ns;
    if (!clock_read(clock, &ns))
        return -EINVAL;
    if (regs->rsi == 0)
        return 0;
    bool coarse = clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE;
    return timespec_to_user(regs->rsi, coarse ? COARSE_RESOLUTION_NS : 1);
}

int64_t ph__sys_gettimeofday(struct ph__regs *regs) {
    if (regs->rdi != 0) {
        struct __kernel_old_timeval time = timeval_from(ph__realtime_ns());
        if (ph__copy_to_user(regs->rdi, &time, sizeof time) != 0)
            return -EFAULT;
    }
    if (regs->rsi != 0 && ph__zero_user(regs->rsi, sizeof(struct timezone)) != 0)
        return -EFAULT;
    return 0;
}

int64_t ph__sys_time(struct ph__regs *regs) {
    int64_t seconds = (int64_t)(ph__realtime_ns() / PH__NS_PER_SECOND);
    if (regs->rdi != 0 && ph__copy_to_user(regs->rdi, &seconds, sizeof seconds) != 0)
        return -EFAULT;
    return seconds;
}

int64_t ph__sys_times(struct ph__regs *regs) {
    struct tms times = {.tms_utime = (int64_t)(ph__processor_ns() / NS_PER_TICK)};
    if (regs->rdi != 0 && ph__copy_to_user(regs->rdi, &times, sizeof times) != 0)
        return -EFAULT;
    return (int64_t)(ph__monotonic_ns() / NS_PER_TICK);
}

int64_t ph__sys_getrusage(struct ph__regs *regs) {
    int32_t who = (int32_t)regs->rdi;
    if (who != RUSAGE_SELF && who != RUSAGE_THREAD && who != RUSAGE_CHILDREN)
        return -EINVAL;
    struct rusage usage = {0};
    if (who != RUSAGE_CHILDREN)
        usage.ru_utime = timeval_from(ph__processor_ns());
    return ph__copy_to_user(regs->rsi, &usage, sizeof usage);
}

/* ------------------------------------------------------------------ sleep -- */

int64_t ph__duration_from_user(uint64_t address, uint64_t *duration_ns) {
    struct __kernel_timespec time;
    if (ph__copy_from_user(&time, address, sizeof time) != 0)
        return -EFAULT;
    if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= (int64_t)PH__NS_PER_SECOND)
        return -EINVAL;
    uint64_t most = (PH__FOREVER - 1) / PH__NS_PER_SECOND;
    *duration_ns = (uint64_t)time.tv_sec >= most
                       ? PH__FOREVER - 1
                       : (uint64_t)time.tv_sec * PH__NS_PER_SECOND + (uint64_t)time.tv_nsec;
    return 0;
}

int64_t ph__sys_nanosleep(struct ph__regs *regs) {
    uint64_t duration;
    int64_t answer = ph__duration_from_user(regs->rdi, &duration);
    if (answer == 0)
        ph__sleep(duration);
    return answer;
}

int64_t ph__sys_clock_nanosleep(struct ph__regs *regs) {
    int32_t clock = (int32_t)regs->rdi;
    uint64_t now, duration;
    /* A processor clock stands still while its only thread sleeps. */
    if (!clock_read(clock, &now) || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID ||
        clock < 0)
        return -EINVAL;
    int64_t answer = ph__duration_from_user(regs->rdx, &duration);
    if (answer != 0)
        return answer;
    if (regs->rsi & TIMER_ABSTIME)
        duration = duration > now ? duration - now : 0;
    ph__sleep(duration);
    return 0;
}
