/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * How fast does an interrupt end a call? From right before ph_interrupt on one thread until ph_call has
 * returned on another, whose guest is in a tight loop; against the signal that brings a raw vCPU back
 * (floor.c). Putting the guest back afterwards is not in it: restore.c measures that.
 *
 * The two threads stay on processors of their own where there are two: on the same one it would be measured
 * when the scheduler thinks of the other.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "floor.h"
#include "guest.h"

#define ROUNDS 40u
#define BATCH 20u
#define TURNS (ROUNDS * BATCH)

/* How long the caller waits after the other thread was about to enter its guest. An entry takes a tenth of
 * it.
 */
#define INSIDE_NS 200000u

/* After so long an interrupt has met no guest: the other thread was kept from entering it. */
#define MISSED_NS 100000000u
#define MISSES_MAX 100u

/* A thread that enters a guest which never ends, once for each turn. */
struct spinner {
    void (*enter)(struct spinner *spinner); /* returns when it was stopped */
    void (*stop)(struct spinner *spinner);  /* on the caller's thread */
    void (*again)(struct spinner *spinner); /* makes it ready for the next turn; may be NULL */
    const struct bench_guest *guest;
    ph_sandbox *sandbox;
    struct floor_vm *raw;
    pthread_t thread;
    int processor; /* that it stays on, or -1 */
    _Atomic pid_t id;
    sem_t go, done;
    _Atomic bool entering; /* about to enter, as far as the host can say it */
    bool over;             /* no turn follows */
    uint64_t returned_ns;  /* of the last turn */
    size_t turns;
    double times[TURNS]; /* microseconds */
};

static void call_enter(struct spinner *spinner) {
    ph_value result;
    ph_status status = ph_call(spinner->sandbox, spinner->guest->function, NULL, 0, &result);

    spinner->returned_ns = bench_now_ns();
    if (status != PH_E_INTERRUPTED)
        bench_fail("a call that was to be interrupted ended otherwise: %s", ph_status_message(status));
}

static void call_stop(struct spinner *spinner) {
    ph_interrupt(spinner->sandbox);
}

static void call_again(struct spinner *spinner) {
    bench_guest_restore(spinner->guest, spinner->sandbox);
}

static void raw_enter(struct spinner *spinner) {
    floor_spin(spinner->raw);
    spinner->returned_ns = bench_now_ns();
}

static void raw_stop(struct spinner *spinner) {
    floor_spin_stop(spinner->id);
}

/* ---- two threads --------------------------------------------------------------------------------------- */

static void stay_on(int processor) {
    cpu_set_t set;

    if (processor < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_fail("sched_setaffinity: %s", strerror(errno));
}

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        if (errno != EINTR)
            bench_fail("sem_wait: %s", strerror(errno));
}

/* Whether it came within MISSED_NS. */
static bool came(sem_t *semaphore) {
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MISSED_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (sem_timedwait(semaphore, &until) != 0) {
        if (errno == ETIMEDOUT)
            return false;
        if (errno != EINTR)
            bench_fail("sem_timedwait: %s", strerror(errno));
    }
    return true;
}

static void *spin(void *context) {
    struct spinner *spinner = context;

    stay_on(spinner->processor);
    spinner->id = gettid();
    sem_post(&spinner->done);
    for (;;) {
        wait_for(&spinner->go);
        if (spinner->over)
            return NULL;
        if (spinner->again)
            spinner->again(spinner);
        atomic_store(&spinner->entering, true);
        spinner->enter(spinner);
        sem_post(&spinner->done);
    }
}

/* Gives the other thread the time to get into its guest. */
static void let_in(const struct spinner *spinner) {
    const struct timespec while_away = {.tv_nsec = INSIDE_NS};
    uint64_t start = bench_now_ns();

    /* On the only processor it has to be let in. Else this one stays awake: that waking up takes as long as
     * the machine likes is no part of the question. */
    if (spinner->processor < 0)
        nanosleep(&while_away, NULL);
    while (bench_now_ns() - start < INSIDE_NS)
        ;
}

/* One turn; false when its guest was not there yet to be stopped. */
static bool turn(struct spinner *spinner, uint64_t *took) {
    atomic_store(&spinner->entering, false);
    sem_post(&spinner->go);
    while (!atomic_load(&spinner->entering))
        sched_yield();
    let_in(spinner);
    uint64_t start = bench_now_ns();
    spinner->stop(spinner);
    bool first = came(&spinner->done);
    bool ended = first;
    while (!ended) {
        spinner->stop(spinner);
        ended = came(&spinner->done);
    }
    *took = spinner->returned_ns - start;
    return first;
}

static uint64_t stopped_once(void *context) {
    struct spinner *spinner = context;
    unsigned misses = 0;
    uint64_t took;

    while (!turn(spinner, &took))
        if (++misses == MISSES_MAX)
            bench_fail("an interrupt meets no guest, however often it is tried");
    if (spinner->turns < TURNS)
        spinner->times[spinner->turns++] = (double)took / 1000;
    return took;
}

static void spinner_start(struct spinner *spinner) {
    sem_init(&spinner->go, 0, 0);
    sem_init(&spinner->done, 0, 0);
    int number = pthread_create(&spinner->thread, NULL, spin, spinner);
    if (number != 0)
        bench_fail("pthread_create: %s", strerror(number));
    wait_for(&spinner->done);
}

static void spinner_end(struct spinner *spinner) {
    spinner->over = true;
    sem_post(&spinner->go);
    pthread_join(spinner->thread, NULL);
    sem_destroy(&spinner->go);
    sem_destroy(&spinner->done);
}

/* ---- the question -------------------------------------------------------------------------------------- */

/* The first two processors that this thread may use; -1 and -1 where there is one. */
static void choose_processors(const cpu_set_t *allowed, int processors[2]) {
    int found = 0;

    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, allowed))
            processors[found++] = i;
    if (found < 2)
        processors[0] = processors[1] = -1;
}

static void report_turns(struct spinner *spinner, struct bench_report *report, const char *half,
                         const char *last) {
    bench_report_row(report, "interrupt", half, "us", spinner->times, spinner->turns);
    /* They are sorted now. */
    bench_report_row(report, "interrupt", last, "us", &spinner->times[spinner->turns * 99 / 100], 1);
}

enum { RAW, CALL, SUBJECTS };

void bench_interrupt(const struct bench_paths *paths, struct bench_report *report) {
    static struct spinner spinners[SUBJECTS];
    struct bench_guest guest = bench_guest_open(paths->guests, "faults", "spin", NULL);
    struct bench_subject subjects[SUBJECTS];
    int processors[2];
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        bench_fail("sched_getaffinity: %s", strerror(errno));
    choose_processors(&allowed, processors);
    stay_on(processors[0]);
    bench_guest_warm(&guest);
    spinners[RAW] = (struct spinner){.enter = raw_enter, .stop = raw_stop, .raw = floor_spin_new()};
    spinners[CALL] = (struct spinner){.enter = call_enter, .stop = call_stop, .again = call_again};
    spinners[CALL].guest = &guest;
    spinners[CALL].sandbox = bench_guest_sandbox(&guest);
    for (size_t i = 0; i < SUBJECTS; i++) {
        spinners[i].processor = processors[1];
        spinner_start(&spinners[i]);
        subjects[i] = (struct bench_subject){.once = stopped_once, .context = &spinners[i]};
    }
    bench_run(subjects, SUBJECTS, ROUNDS, BATCH);
    bench_report_ratio(report, "interrupt.ratio", &subjects[CALL], (struct bench_floor){&subjects[RAW], 1},
                       1.5);
    report_turns(&spinners[RAW], report, "floor: a signal, p50", "floor: a signal, p99");
    report_turns(&spinners[CALL], report, "ph_interrupt, p50", "ph_interrupt, p99");
    bench_free(subjects, SUBJECTS);
    for (size_t i = 0; i < SUBJECTS; i++)
        spinner_end(&spinners[i]);
    if (sched_setaffinity(0, sizeof allowed, &allowed) != 0)
        bench_fail("sched_setaffinity: %s", strerror(errno));
    ph_sandbox_destroy(spinners[CALL].sandbox);
    floor_vm_free(spinners[RAW].raw);
    bench_guest_close(&guest);
}
