/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What does a pool cost whoever serves requests with it? Taking a sandbox, one call that writes hardly a
 * page, and giving it back, which puts it back to the snapshot: on the thread that had it before, and on two
 * threads in turns, so that the vCPU changes its thread each time; and how many of that one and two threads
 * come to in a second. Only printed: restore.c has the goals of what it is made of.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>

#include <pinhole/pool.h>

#include "bench.h"

#define ROUNDS 15u
#define TURNS 200u /* in a round */
#define SECOND_NS 1000000000u
#define RATES 4u /* in a second */
#define THREADS 2u

struct pooled {
    ph_pool *pool;
    const ph_function *dirty;
};

/* Nanoseconds of one turn. */
static double turn(const struct pooled *pooled) {
    const ph_value pages = {.type = PH_U32};
    ph_sandbox *sandbox;
    ph_error error;
    uint64_t start = bench_now_ns();

    bench_check(ph_pool_take(pooled->pool, PH_POOL_WAIT_FOREVER, &sandbox, &error), "taking", &error);
    bench_check(ph_call(sandbox, pooled->dirty, &pages, 1, NULL), "dirty", ph_sandbox_error(sandbox));
    ph_pool_give(pooled->pool, sandbox);
    return (double)(bench_now_ns() - start);
}

static struct pooled pooled_open(ph_snapshot *snapshot, const ph_function *dirty, uint32_t capacity) {
    struct pooled pooled = {.dirty = dirty};
    ph_pool_config config = PH_POOL_CONFIG_INIT;
    ph_error error;

    config.capacity = capacity;
    bench_check(ph_pool_create(snapshot, &config, &pooled.pool, &error), "a pool", &error);
    return pooled;
}

/* The second of two threads that take turns. */
struct other {
    struct pooled pooled;
    sem_t go, done;
    double ns;
    bool end;
};

static void *other_main(void *argument) {
    struct other *other = argument;

    for (;;) {
        while (sem_wait(&other->go) != 0)
            ;
        if (other->end)
            return NULL;
        other->ns = turn(&other->pooled);
        sem_post(&other->done);
    }
}

static double other_turn(struct other *other) {
    sem_post(&other->go);
    while (sem_wait(&other->done) != 0)
        ;
    return other->ns;
}

/* Half and 99 of 100 turns take no longer, one of each a round, in microseconds. */
struct shares {
    double half[ROUNDS], most[ROUNDS];
};

/* One round: on this thread alone, or with (other) in turns. */
static void measure_round(const struct pooled *pooled, struct other *other, struct shares *shares,
                          size_t round) {
    double turns[TURNS];

    for (size_t i = 0; i < TURNS; i++)
        turns[i] = other && i % 2 ? other_turn(other) : turn(pooled);
    shares->half[round] = bench_median(turns, TURNS) / 1000;
    shares->most[round] = turns[TURNS * 99 / 100] / 1000; /* they are sorted now */
}

static void measure_turns(const struct pooled *pooled, struct bench_report *report) {
    struct other other = {.pooled = *pooled};
    struct shares same, across;
    pthread_t thread;

    sem_init(&other.go, 0, 0);
    sem_init(&other.done, 0, 0);
    if (pthread_create(&thread, NULL, other_main, &other) != 0)
        bench_fail("no thread");
    for (size_t round = 0; round < ROUNDS; round++) {
        measure_round(pooled, NULL, &same, round);
        measure_round(pooled, &other, &across, round);
    }
    other.end = true;
    sem_post(&other.go);
    pthread_join(thread, NULL);
    sem_destroy(&other.go);
    sem_destroy(&other.done);
    bench_report_row(report, "pool", "take, call, give: half of them", "us", same.half, ROUNDS);
    bench_report_row(report, "pool", "take, call, give: 99%", "us", same.most, ROUNDS);
    bench_report_row(report, "pool", "two threads in turns: half of them", "us", across.half, ROUNDS);
    bench_report_row(report, "pool", "two threads in turns: 99%", "us", across.most, ROUNDS);
}

/* A thread that serves as fast as it can. */
struct server {
    struct pooled pooled;
    pthread_t thread;
    uint64_t end_ns, turns;
};

static void *server_main(void *argument) {
    struct server *server = argument;

    while (bench_now_ns() < server->end_ns) {
        turn(&server->pooled);
        server->turns++;
    }
    return NULL;
}

static double rate(const struct pooled *pooled, size_t threads) {
    struct server servers[THREADS];
    uint64_t turns = 0;

    for (size_t i = 0; i < threads; i++) {
        servers[i] = (struct server){.pooled = *pooled, .end_ns = bench_now_ns() + SECOND_NS / RATES};
        if (pthread_create(&servers[i].thread, NULL, server_main, &servers[i]) != 0)
            bench_fail("no thread");
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(servers[i].thread, NULL);
        turns += servers[i].turns;
    }
    return (double)turns * RATES;
}

static void measure_rates(const struct pooled *pooled, struct bench_report *report) {
    double one[ROUNDS], two[ROUNDS];

    for (size_t round = 0; round < ROUNDS; round++) {
        one[round] = rate(pooled, 1);
        two[round] = rate(pooled, 2);
    }
    bench_report_row(report, "pool", "one thread", "calls/s", one, ROUNDS);
    bench_report_row(report, "pool", "two threads", "calls/s", two, ROUNDS);
}

void bench_pool(const struct bench_paths *paths, struct bench_report *report) {
    ph_image *image = bench_open(paths->bench_guests, "dirty");
    const ph_function *dirty = bench_export(image, "dirty");
    ph_sandbox *first;
    ph_snapshot *snapshot;
    ph_error error;

    bench_check(ph_sandbox_create(image, NULL, &first, &error), "a sandbox", &error);
    bench_check(ph_sandbox_start(first), "starting", ph_sandbox_error(first));
    bench_check(ph_snapshot_take(first, &snapshot), "a snapshot", ph_sandbox_error(first));
    ph_sandbox_destroy(first);
    struct pooled pooled = pooled_open(snapshot, dirty, 1);
    measure_turns(&pooled, report);
    ph_pool_destroy(pooled.pool);
    pooled = pooled_open(snapshot, dirty, THREADS);
    measure_rates(&pooled, report);
    ph_pool_destroy(pooled.pool);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
}
