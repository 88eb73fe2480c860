/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Guests of benchmarks (guest.h): opening, starting once, calling, putting back. It is called between two
 * looks at the clock, so it adds nothing to what the library does but the check of its status.
 */
#include "guest.h"

static ph_status weekday(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    (void)args;
    result->str = "Monday";
    return PH_OK;
}

void bench_register_weekday(ph_sandbox *sandbox) {
    const ph_signature signature = {.result = PH_STR, .count = 1, .args = {PH_I32}};

    bench_check(ph_sandbox_register(sandbox, "weekday", &signature, weekday, NULL), "registering `weekday`",
                ph_sandbox_error(sandbox));
}

static ph_status next(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    (void)context;
    (void)call;
    result->i64 = args[0].i64 + 1;
    return PH_OK;
}

void bench_register_next(ph_sandbox *sandbox) {
    const ph_signature signature = {.result = PH_I64, .count = 1, .args = {PH_I64}};

    bench_check(ph_sandbox_register(sandbox, "next", &signature, next, NULL), "registering `next`",
                ph_sandbox_error(sandbox));
}

struct bench_guest bench_guest_open(const char *folder, const char *name, const char *function,
                                    void (*prepare)(ph_sandbox *sandbox)) {
    struct bench_guest guest = {.image = bench_open(folder, name), .prepare = prepare};

    guest.function = bench_export(guest.image, function);
    return guest;
}

static ph_config config_of(const struct bench_guest *guest) {
    ph_config config = PH_CONFIG_INIT;

    config.backend = guest->backend;
    return config;
}

void bench_guest_warm(struct bench_guest *guest) {
    const ph_config config = config_of(guest);
    ph_sandbox *sandbox;
    ph_error error;

    bench_check(ph_sandbox_create(guest->image, &config, &sandbox, &error), "a sandbox", &error);
    if (guest->prepare)
        guest->prepare(sandbox);
    bench_check(ph_sandbox_start(sandbox), "starting", ph_sandbox_error(sandbox));
    bench_check(ph_snapshot_take(sandbox, &guest->snapshot), "a snapshot", ph_sandbox_error(sandbox));
    ph_sandbox_destroy(sandbox);
}

void bench_guest_close(struct bench_guest *guest) {
    ph_snapshot_close(guest->snapshot);
    ph_image_close(guest->image);
}

ph_sandbox *bench_guest_sandbox(const struct bench_guest *guest) {
    const ph_config config = config_of(guest);
    ph_sandbox *sandbox;
    ph_error error;

    bench_check(ph_sandbox_create_from(guest->snapshot, &config, &sandbox, &error), "a sandbox of a snapshot",
                &error);
    if (guest->prepare)
        guest->prepare(sandbox);
    return sandbox;
}

void bench_guest_call(const struct bench_guest *guest, ph_sandbox *sandbox, const ph_value *arg) {
    ph_value result;

    bench_check(ph_call(sandbox, guest->function, arg, arg ? 1 : 0, &result), guest->function->name,
                ph_sandbox_error(sandbox));
}

void bench_guest_restore(const struct bench_guest *guest, ph_sandbox *sandbox) {
    bench_check(ph_sandbox_restore(sandbox, guest->snapshot), "restoring", ph_sandbox_error(sandbox));
}
