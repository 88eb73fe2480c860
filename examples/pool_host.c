/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Four threads ask a database in a sandbox, each request in one that is as if it had just been started: what
 * one request creates, the next does not find. Three sandboxes serve them all.
 *
 *     pool_host build/guests/sqlite
 */
#include <pinhole/pool.h>
#include <pthread.h>
#include <stdio.h>

#include "backend.h"

#define THREADS 4
#define REQUESTS 25

/* What the threads share. */
struct service {
    ph_pool *pool;
    const ph_function *query;
};

/* Serves one request. The table exists already when a request before has left it behind. */
static ph_status serve(const struct service *service, ph_error *error) {
    const ph_value text = {.type = PH_STR, .str = "CREATE TABLE t (n); INSERT INTO t VALUES (1)"};
    ph_sandbox *sandbox;
    ph_status status = ph_pool_take(service->pool, PH_POOL_WAIT_FOREVER, &sandbox, error);

    if (status != PH_OK)
        return status;
    status = ph_call(sandbox, service->query, &text, 1, NULL);
    if (status != PH_OK)
        *error = *ph_sandbox_error(sandbox); /* before it is somebody else's */
    ph_pool_give(service->pool, sandbox);    /* in whatever state */
    return status;
}

static void *serve_all(void *argument) {
    ph_error error;

    for (int i = 0; i < REQUESTS; i++)
        if (serve(argument, &error) != PH_OK)
            fprintf(stderr, "%s\n", error.message);
    return NULL;
}

/* A snapshot of the started guest, which is all that the pool needs. */
static ph_status take_snapshot(ph_image *image, const ph_config *config, ph_snapshot **snapshot,
                               ph_error *error) {
    ph_sandbox *sandbox;
    ph_status status = ph_sandbox_create(image, config, &sandbox, error);

    if (status != PH_OK)
        return status;
    status = ph_sandbox_start(sandbox);
    if (status == PH_OK)
        status = ph_snapshot_take(sandbox, snapshot);
    if (status != PH_OK)
        *error = *ph_sandbox_error(sandbox);
    ph_sandbox_destroy(sandbox);
    return status;
}

int main(int argc, char **argv) {
    struct service service = {0};
    ph_pool_config config = PH_POOL_CONFIG_INIT;
    ph_config limits = PH_CONFIG_INIT;
    ph_pool_stats stats = PH_POOL_STATS_INIT;
    ph_image *image = NULL;
    ph_snapshot *snapshot = NULL;
    ph_error error = {.message = "one argument is needed: the guest"};
    pthread_t threads[THREADS];
    int started = 0;
    bool failed = true;

    limits.backend = example_backend();
    limits.timeout_ns = 10000000000;
    config.capacity = 3;
    config.sandbox = &limits;
    if (argc != 2 || ph_image_open(argv[1], 0, &image, &error) ||
        take_snapshot(image, &limits, &snapshot, &error) ||
        ph_pool_create(snapshot, &config, &service.pool, &error))
        goto clean_up;
    service.query = ph_image_find_export(image, "query");
    while (started < THREADS && pthread_create(&threads[started], NULL, serve_all, &service) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    ph_pool_stats_get(service.pool, &stats);
    printf("%d requests, %d sandboxes\n", (int)stats.takes, (int)stats.made);
    failed = false;

clean_up:
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    ph_pool_destroy(service.pool);
    ph_snapshot_close(snapshot);
    ph_image_close(image);
    return failed;
}
