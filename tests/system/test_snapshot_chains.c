/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Snapshots of snapshots: taken and put back at random, in sandboxes that were started, made of one of them,
 * or neither, whatever their guests did in between. The guest's own sum over its memory, the host's view of
 * each page and the protections must be those of the snapshot each time. What does not fit is refused by
 * name, and harms nothing.
 */
#include <pinhole/snapshot.h>
#include <pinhole/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory_image.h"
#include "support/traced.h"

#define GUEST "hostile_tenant"
#define SNAPSHOTS 5u
#define SANDBOXES 4u

static const ph_config least = {
    .size = sizeof least, .memory = 6ull << 20, .stack = 2ull << 20, .timeout_ns = TEST_TIMEOUT_NS};

static uint64_t random_state = 0x9e3779b97f4a7c15ull;

static uint64_t random_next(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static uint32_t random_below(uint32_t limit) {
    return (uint32_t)((random_next() >> 32) % limit);
}

/* A snapshot, and what a guest that is put back to it must find. */
struct point {
    ph_snapshot *snapshot;
    uint8_t *image;
    uint64_t sum;
    uint64_t read_only;
};

static ph_value called(ph_sandbox *sandbox, const char *name, const ph_value *args, size_t count) {
    ph_value result = {.type = PH_VOID};

    test_status(sandbox, test_call(sandbox, sandbox->image, name, args, count, &result), PH_OK);
    return result;
}

/* Something that an honest guest leaves behind. Returns the pages that can only be read. */
static uint64_t leave(ph_sandbox *sandbox) {
    const uint64_t pages = random_next();
    const uint64_t read_only = random_below(2) ? pages : 0;

    called(sandbox, "leave", ARGS(U64(random_next()), U32(random_below(400)), U64(read_only)));
    return read_only;
}

static void restore(ph_sandbox *sandbox, const struct point *point) {
    test_status(sandbox, ph_sandbox_restore(sandbox, point->snapshot), PH_OK);
    memory_image_check(sandbox, point->image);
}

static void check(ph_sandbox *sandbox, const struct point *point) {
    restore(sandbox, point);
    assert_int_equal(called(sandbox, "memory_sum", NO_ARGS).u64, point->sum);
    restore(sandbox, point);
    assert_int_equal(called(sandbox, "read_only_pages", NO_ARGS).u64, point->read_only);
}

static void point_free(struct point *point) {
    ph_snapshot_close(point->snapshot);
    free(point->image);
    *point = (struct point){0};
}

/* Takes a snapshot of (sandbox) as it is after a guest that left something. */
static void point_take(struct point *point, ph_sandbox *sandbox) {
    const uint64_t read_only = leave(sandbox);

    point_free(point);
    point->read_only = read_only;
    test_status(sandbox, ph_snapshot_take(sandbox, &point->snapshot), PH_OK);
    point->image = memory_image_take(sandbox);
    restore(sandbox, point);
    point->sum = called(sandbox, "memory_sum", NO_ARGS).u64;
}

static ph_sandbox *made_of(const struct point *point) {
    ph_sandbox *sandbox = NULL;
    ph_error error;

    if (ph_sandbox_create_from(point->snapshot, NULL, &sandbox, &error) != PH_OK)
        fail_msg("making a sandbox of a snapshot: %s", error.message);
    return sandbox;
}

/* A guest goes on from wherever its sandbox is: honest, greedy, or to one of its ends. */
static void go_on(ph_sandbox *sandbox) {
    switch (random_below(4)) {
    case 0:
        break;
    case 1:
        leave(sandbox);
        break;
    default:
        test_call(sandbox, sandbox->image, "spoil",
                  ARGS(U64(random_next()), U32(random_below(15)), U32(2 * random_below(2)), U32(0), U64(0)),
                  NULL);
        break;
    }
}

/* A thousandth of PH_TEST_CALLS, which is 1000000 in `soak`. */
static unsigned turns_wanted(void) {
    const char *wanted = getenv("PH_TEST_CALLS");

    return wanted ? (unsigned)strtoul(wanted, NULL, 10) / 1000 : test_scaled(120);
}

static void snapshots_of_snapshots_are_put_back_in_any_order(void **state) {
    struct point points[SNAPSHOTS] = {0};
    ph_sandbox *sandboxes[SANDBOXES];
    const unsigned turns = turns_wanted();

    (void)state;
    test_needs_kvm();
    sandboxes[0] = test_started(GUEST, &least);
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        point_take(&points[i], sandboxes[0]);
        if (i == 2) /* a branch */
            restore(sandboxes[0], &points[0]);
    }
    sandboxes[1] = made_of(&points[1]);
    sandboxes[2] = made_of(&points[4]);
    sandboxes[3] = test_sandbox(sandboxes[0]->image, &least); /* never started */
    for (unsigned turn = 0; turn < turns; turn++) {
        const unsigned which = random_below(SANDBOXES);
        ph_sandbox *sandbox = sandboxes[which];
        const struct point *point = &points[random_below(SNAPSHOTS)];
        check(sandbox, point);
        restore(sandbox, point);
        go_on(sandbox);
        if (turn % 16 == 7) { /* often enough in a row that it is laid on the snapshot */
            for (unsigned again = 0; again < 5; again++) {
                check(sandbox, point);
                go_on(sandbox);
            }
        } else if (turn % 16 == 15) {
            ph_sandbox_destroy(sandbox);
            sandboxes[which] = made_of(&points[random_below(SNAPSHOTS)]);
        } else if (turn % 8 == 3) {
            struct point *other = &points[random_below(SNAPSHOTS)];
            restore(sandbox, point);
            point_take(other, sandbox);
        }
    }
    for (unsigned i = 0; i < SANDBOXES; i++)
        ph_sandbox_destroy(sandboxes[i]);
    for (unsigned i = 0; i < SNAPSHOTS; i++)
        point_free(&points[i]);
}

/* Refused with (word) in the message by a sandbox that is ready, and by one that is poisoned, which both go
 * on as if nothing had been asked for. */
static void refused(ph_sandbox *sandbox, const struct point *own, ph_snapshot *foreign, const char *word) {
    restore(sandbox, own);
    assert_int_equal(ph_sandbox_restore(sandbox, foreign), PH_E_SNAPSHOT);
    if (!strstr(ph_sandbox_error(sandbox)->message, word))
        fail_msg("\"%s\" does not name the %s", ph_sandbox_error(sandbox)->message, word);
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_READY);
    memory_image_check(sandbox, own->image);
    assert_int_equal(called(sandbox, "memory_sum", NO_ARGS).u64, own->sum);
    test_call(sandbox, sandbox->image, "spoil", ARGS(U64(7), U32(1), U32(0), U32(0), U64(0)), NULL);
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
    assert_int_equal(ph_sandbox_restore(sandbox, foreign), PH_E_SNAPSHOT);
    assert_int_equal(ph_sandbox_state(sandbox), PH_STATE_POISONED);
    check(sandbox, own);
}

static void what_does_not_fit_is_refused_and_harms_nothing(void **state) {
    struct point own = {0};
    ph_tracer *tracer = NULL;
    ph_error error;
    ph_snapshot *foreign = NULL;
    ph_config configs[4] = {least, least, least, least};

    (void)state;
    test_needs_kvm();
    ph_sandbox *sandbox = test_started(GUEST, &least);
    point_take(&own, sandbox);
    assert_int_equal(ph_tracer_create(NULL, &tracer, &error), PH_OK);
    configs[0].memory += 2ull << 20;
    configs[1].memory += 2ull << 20;
    configs[1].stack += 2ull << 20;
    configs[2].max_message = 1ull << 20;
    configs[3].tracer = tracer;
    for (int i = 0; i < 4; i++) {
        ph_sandbox *other = test_sandbox(sandbox->image, &configs[i]);
        test_status(other, ph_sandbox_start(other), PH_OK);
        test_status(other, ph_snapshot_take(other, &foreign), PH_OK);
        refused(sandbox, &own, foreign, "layout");
        ph_snapshot_close(foreign);
        ph_sandbox_destroy(other);
    }
    ph_sandbox *other = test_started("hostile_io", &least);
    test_status(other, ph_snapshot_take(other, &foreign), PH_OK);
    refused(sandbox, &own, foreign, "image");
    ph_snapshot_close(foreign);
    ph_sandbox_destroy(other);
    /* A processor that can do something else, as a snapshot of another machine would have it. */
    const struct ph__features *had = sandbox->vcpu->features;
    struct ph__features more = *had;
    more.words[PH__FEATURES_80000001_ECX] |= 1u << 31;
    sandbox->vcpu->features = &more;
    test_status(sandbox, ph_snapshot_take(sandbox, &foreign), PH_OK);
    sandbox->vcpu->features = had;
    refused(sandbox, &own, foreign, "the snapshot needs CPUID.80000001.0:ECX[31]");
    ph_snapshot_close(foreign);
    ph_sandbox_destroy(sandbox);
    point_free(&own);
    ph_tracer_destroy(tracer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_of_snapshots_are_put_back_in_any_order),
        cmocka_unit_test(what_does_not_fit_is_refused_and_harms_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
