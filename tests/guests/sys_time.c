/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Clocks agree with each other and never go back; sleeps last as long as asked and cost no processor time.
 */
#include "sys_check.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL

/* linux/futex.h, which a musl installation need not have. */
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE 1
#define FUTEX_WAKE_PRIVATE 129
#define FUTEX_WAIT_BITSET_PRIVATE 137

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    CHECK(syscall(SYS_clock_gettime, clock, &time) == 0);
    CHECK(time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void clocks_never_go_back(void) {
    static const clockid_t clocks[] = {
        CLOCK_REALTIME,           CLOCK_MONOTONIC,         CLOCK_MONOTONIC_RAW,
        CLOCK_REALTIME_COARSE,    CLOCK_MONOTONIC_COARSE,  CLOCK_BOOTTIME,
        CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_TAI,
    };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        int64_t last = now_ns(clocks[i]);
        for (int round = 0; round < 2000; round++) {
            int64_t now = now_ns(clocks[i]);
            if (now < last) {
                CHECK(now >= last);
                break;
            }
            last = now;
        }
        struct timespec resolution;
        CHECK(syscall(SYS_clock_getres, clocks[i], &resolution) == 0);
        CHECK(resolution.tv_sec == 0 && resolution.tv_nsec >= 1 && resolution.tv_nsec <= 10 * MS);
    }
    CHECK(syscall(SYS_clock_getres, CLOCK_MONOTONIC, NULL) == 0);
    CHECK_ERROR(syscall(SYS_clock_gettime, 77, NULL), EINVAL);
    CHECK_ERROR(syscall(SYS_clock_gettime, CLOCK_REALTIME, (void *)8), EFAULT);
    CHECK_ERROR(syscall(SYS_clock_settime, CLOCK_MONOTONIC, NULL), in_pinhole() ? EPERM : EINVAL);
    clockid_t own;
    CHECK(clock_getcpuclockid(0, &own) == 0 && now_ns(own) > 0);
}

static void clocks_agree(void) {
    struct timeval day;
    int64_t before = now_ns(CLOCK_REALTIME);
    CHECK(syscall(SYS_gettimeofday, &day, NULL) == 0);
    int64_t after = now_ns(CLOCK_REALTIME);
    int64_t middle = day.tv_sec * 1000000000LL + day.tv_usec * 1000LL;
    CHECK(before / 1000 <= middle / 1000 && middle <= after);
    time_t seconds, stored = 0;
    seconds = (time_t)syscall(SYS_time, &stored);
    CHECK(seconds == stored && seconds >= before / 1000000000 - 1 && seconds <= after / 1000000000 + 1);
    CHECK(seconds > 1700000000); /* it is later than November 2023 */
    CHECK_ERROR(syscall(SYS_gettimeofday, (void *)8, NULL), EFAULT);
}

/* Runs (sleep), which should take (expected_ns), and checks it against all clocks. */
static void check_sleep(const char *name, int64_t start, int64_t processor_start, int64_t expected_ns) {
    int64_t slept = now_ns(CLOCK_MONOTONIC) - start;
    int64_t busy = now_ns(CLOCK_PROCESS_CPUTIME_ID) - processor_start;
    if (slept < expected_ns || slept > expected_ns + 500 * MS || busy > expected_ns / 2 + 5 * MS) {
        printf("%s: slept %lld ns for %lld, busy %lld\n", name, (long long)slept, (long long)expected_ns,
               (long long)busy);
        sys_failures++;
    }
}

#define SLEEP_CHECK(call, expected_ns)                                                                       \
    do {                                                                                                     \
        int64_t start_ = now_ns(CLOCK_MONOTONIC), busy_ = now_ns(CLOCK_PROCESS_CPUTIME_ID);                  \
        CHECK(call);                                                                                         \
        check_sleep(#call, start_, busy_, expected_ns);                                                      \
    } while (0)

static void sleeps_last_as_long_as_asked(void) {
    struct timespec short_time = {0, 30 * MS};
    struct timespec nothing = {0, 0};
    struct timespec wrong = {0, 1000000000}, negative = {-1, 0};
    struct timeval thirty = {0, 30000};
    SLEEP_CHECK(nanosleep(&short_time, NULL) == 0, 30 * MS);
    SLEEP_CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL) == 0, 30 * MS);
    SLEEP_CHECK(poll(NULL, 0, 30) == 0, 30 * MS);
    SLEEP_CHECK(select(0, NULL, NULL, NULL, &thirty) == 0, 30 * MS);
    SLEEP_CHECK(ppoll(NULL, 0, &short_time, NULL) == 0, 30 * MS);
    SLEEP_CHECK(pselect(0, NULL, NULL, NULL, &short_time, NULL) == 0, 30 * MS);
    sigset_t set;
    sigfillset(&set);
    SLEEP_CHECK(ppoll(NULL, 0, &short_time, &set) == 0, 30 * MS);
    SLEEP_CHECK(pselect(0, NULL, NULL, NULL, &short_time, &set) == 0, 30 * MS);
    SLEEP_CHECK(nanosleep(&nothing, NULL) == 0, 0);
    int64_t target = now_ns(CLOCK_REALTIME) + 40 * MS;
    struct timespec absolute = {target / 1000000000, target % 1000000000};
    SLEEP_CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &absolute, NULL) == 0, 39 * MS);
    CHECK(now_ns(CLOCK_REALTIME) >= target);
    CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &absolute, NULL) == 0); /* already past */
    CHECK_ERROR(nanosleep(&wrong, NULL), EINVAL);
    CHECK_ERROR(nanosleep(&negative, NULL), EINVAL);
    CHECK_ERROR(syscall(SYS_nanosleep, (void *)8, NULL), EFAULT);
    CHECK(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &short_time, NULL) == EINVAL);
    CHECK(sched_yield() == 0);
}

static void busy_time_is_processor_time(void) {
    struct rusage usage;
    struct tms ticks;
    int64_t start = now_ns(CLOCK_MONOTONIC), busy = -now_ns(CLOCK_PROCESS_CPUTIME_ID);
    /* On a busy machine that takes longer than 50 ms. */
    while (busy + now_ns(CLOCK_PROCESS_CPUTIME_ID) < 50 * MS &&
           now_ns(CLOCK_MONOTONIC) < start + 10000 * MS) {
    }
    busy += now_ns(CLOCK_PROCESS_CPUTIME_ID);
    CHECK(busy > 10 * MS && busy <= now_ns(CLOCK_MONOTONIC) - start + MS);
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    int64_t used = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec +
                   usage.ru_stime.tv_usec;
    CHECK(used >= 10000);
    CHECK_ERROR(getrusage(77, &usage), EINVAL);
    clock_t first = times(&ticks);
    CHECK(first != (clock_t)-1 && ticks.tms_utime + ticks.tms_stime >= 1);
    CHECK(clock() > 0);
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout,
                  uint32_t mask) {
    return syscall(SYS_futex, word, operation, value, timeout, NULL, mask);
}

static void futex_serves_a_single_thread(void) {
    static uint32_t word = 5;
    struct timespec soon = {0, 20 * MS};
    CHECK(futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, 0) == 0);
    CHECK(futex(&word, FUTEX_WAKE, 1, NULL, 0) == 0);
    CHECK_ERROR(futex(&word, FUTEX_WAIT_PRIVATE, 4, NULL, 0), EAGAIN);
    CHECK_ERROR(futex((uint32_t *)8, FUTEX_WAIT_PRIVATE, 4, NULL, 0), EFAULT);
    CHECK_ERROR(futex((uint32_t *)((char *)&word + 1), FUTEX_WAKE, 1, NULL, 0), EINVAL);
    SLEEP_CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 5, &soon, 0) == -1 && errno == ETIMEDOUT, 20 * MS);
    int64_t target = now_ns(CLOCK_MONOTONIC) + 20 * MS;
    struct timespec absolute = {target / 1000000000, target % 1000000000};
    SLEEP_CHECK(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 5, &absolute, ~0u) == -1 && errno == ETIMEDOUT,
                19 * MS);
    CHECK_ERROR(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 5, &absolute, 0), EINVAL);
}

int main(void) {
    clocks_never_go_back();
    clocks_agree();
    sleeps_last_as_long_as_asked();
    busy_time_is_processor_time();
    futex_serves_a_single_thread();
    return check_end();
}
