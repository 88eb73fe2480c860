/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Shared parts of the differential tests (differential.h).
 */
#include "system/differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/backend.h"

void differential_needs_both(void) {
    const struct ph__backend *backend;
    ph_error error;

    if (test_is_soft()) {
        fprintf(stderr, "SKIPPED, this test compares both backends: it runs where the others run on KVM\n");
        skip();
    }
    test_needs_kvm();
    if (ph__backend_find(PH_BACKEND_SOFT, NULL, NULL, &backend, &error) == PH_OK)
        return;
    fprintf(stderr, "SKIPPED, this test needs the soft backend too: %s\n", error.message);
    skip();
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

struct rounds rounds_begin(const char *test, unsigned usual) {
    const uint64_t seconds = from_environment("PH_TEST_SECONDS", 0);

    return (struct rounds){
        .test = test,
        .seed = from_environment("PH_TEST_SEED", 1) - 1,
        .wanted = from_environment("PH_TEST_ROUNDS", seconds ? 0 : test_scaled(usual)),
        .end_ns = seconds ? test_now_ns() + seconds * 1000000000u : 0,
    };
}

bool rounds_next(struct rounds *rounds) {
    if (rounds->done >= rounds->wanted && test_now_ns() >= rounds->end_ns) {
        if (rounds->end_ns)
            fprintf(stderr, "%s: %llu rounds\n", rounds->test, (unsigned long long)rounds->done);
        return false;
    }
    rounds->done++;
    rounds->seed++;
    rounds->random = (rounds->seed * 0x9e3779b97f4a7c15ull) | 1;
    /* The first numbers of neighbours are alike. */
    for (int i = 0; i < 4; i++)
        random_next(&rounds->random);
    return true;
}

void rounds_fail(const struct rounds *rounds, const char *format, ...) {
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s, PH_TEST_SEED=%llu: %s", rounds->test, (unsigned long long)rounds->seed, text);
    abort();
}

uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

uint64_t random_below(uint64_t *state, uint64_t count) {
    return (random_next(state) >> 16) % count;
}

bool random_once_in(uint64_t *state, uint64_t times) {
    return random_below(state, times) == 0;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

void differential_compare(const struct rounds *rounds, ph_sandbox *const sandboxes[BACKENDS],
                          const ph_status statuses[BACKENDS]) {
    const ph_error *kvm = ph_sandbox_error(sandboxes[ON_KVM]);
    const ph_error *soft = ph_sandbox_error(sandboxes[ON_SOFT]);

    if (statuses[ON_KVM] == PH_OK && statuses[ON_SOFT] == PH_OK)
        return;
    if (statuses[ON_KVM] == PH_E_TIMED_OUT && statuses[ON_SOFT] == PH_E_TIMED_OUT)
        return; /* where it was then is chance */
    if (statuses[ON_KVM] != statuses[ON_SOFT] || strcmp(kvm->message, soft->message) != 0)
        rounds_fail(rounds, "\n  kvm:  %s: %s\n  soft: %s: %s", ph_status_kind(statuses[ON_KVM]),
                    statuses[ON_KVM] == PH_OK ? "" : kvm->message, ph_status_kind(statuses[ON_SOFT]),
                    statuses[ON_SOFT] == PH_OK ? "" : soft->message);
    if (kvm->vector != soft->vector || kvm->error_code != soft->error_code || kvm->address != soft->address ||
        kvm->rip != soft->rip || kvm->function_offset != soft->function_offset || kvm->code != soft->code ||
        kvm->signal != soft->signal || strcmp(kvm->function, soft->function) != 0)
        rounds_fail(rounds,
                    "the same message, %s, but not the same error\n"
                    "  kvm:  vector %u, error code 0x%x, address 0x%llx, rip 0x%llx, code %d, signal %d\n"
                    "  soft: vector %u, error code 0x%x, address 0x%llx, rip 0x%llx, code %d, signal %d",
                    kvm->message, kvm->vector, kvm->error_code, (unsigned long long)kvm->address,
                    (unsigned long long)kvm->rip, kvm->code, kvm->signal, soft->vector, soft->error_code,
                    (unsigned long long)soft->address, (unsigned long long)soft->rip, soft->code,
                    soft->signal);
}

bool differential_same_value(const ph_value *one, const ph_value *other) {
    if (one->type != other->type)
        return false;
    switch (one->type) {
    case PH_VOID:
        return true;
    case PH_I32:
    case PH_U32:
    case PH_F32:
        return one->u32 == other->u32;
    case PH_BOOL:
        return one->boolean == other->boolean;
    case PH_STR:
        return strcmp(one->str, other->str) == 0;
    case PH_BYTES:
        return one->bytes.size == other->bytes.size &&
               (one->bytes.size == 0 || memcmp(one->bytes.data, other->bytes.data, one->bytes.size) == 0);
    default:
        return one->u64 == other->u64;
    }
}
