/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random calls on both backends, from a seed that a failure names (differential.h): every export of a guest
 * that has all types, with random values, and host functions that answer with random values or fail. Results,
 * what the host functions were given, statuses and errors are the same, bit for bit.
 */
#include "system/differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 20000u

/* One of a pair, and what its host functions go by: all of it is the same on both. */
struct caller {
    ph_sandbox *sandbox;
    uint64_t random; /* for the answers of host functions */
    uint64_t heard;  /* a digest of what they were given */
    char text[TEXT_MAX + 1];
};

struct callers {
    ph_image *image;
    struct caller callers[BACKENDS];
    ph_snapshot *snapshots[BACKENDS];
};

/* ---- values -------------------------------------------------------------------------------------------- */

static uint64_t random_bits(uint64_t *random) {
    static const uint64_t words[] = {
        0,
        1,
        0x7fffffff,
        0x80000000, /* -0.0f */
        0xffffffff,
        0x7f800000, /* infinity */
        0x7fc00001, /* NaNs, quiet and signalling, with payloads */
        0x7f800001,
        0xffabcdef,
        0x00000001,         /* denormal */
        0x8000000000000000, /* -0.0 */
        0x7ff0000000000000,
        0x7ff8000000000001,
        0x7ff0000000000001,
        0xfff123456789abcd,
        0x3ff0000000000000,
        0x7fffffffffffffff,
        ~0ull,
    };

    return random_once_in(random, 2) ? random_next(random)
                                     : words[random_below(random, sizeof words / sizeof words[0])];
}

/* Empty, short, long. */
static size_t random_size(uint64_t *random) {
    switch (random_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return random_below(random, TEXT_MAX);
    default:
        return random_below(random, 40);
    }
}

/* Fills (value), whose type is set. (room) of TEXT_MAX + 1 bytes is for its text. */
static void random_value(uint64_t *random, ph_value *value, char *room) {
    const uint64_t bits = random_bits(random);
    const size_t size = random_size(random);

    switch (value->type) {
    case PH_VOID:
        return;
    case PH_BOOL:
        value->boolean = bits & 1;
        return;
    case PH_STR:
        for (size_t i = 0; i < size; i++)
            room[i] = (char)(1 + random_below(random, 255));
        room[size] = 0;
        value->str = room;
        return;
    case PH_BYTES:
        for (size_t i = 0; i < size; i++)
            room[i] = (char)random_next(random);
        value->bytes = (ph_bytes){room, size};
        return;
    default:
        value->u64 = 0;
        memcpy(&value->u64, &bits,
               value->type == PH_I64 || value->type == PH_U64 || value->type == PH_F64 ? 8 : 4);
        return;
    }
}

static void hear(struct caller *caller, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        caller->heard = (caller->heard ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull;
}

/* Every host function: hears what it is given, and answers at random, or fails. */
static ph_status visit(void *context, ph_host_call *call, const ph_value *args, ph_value *result) {
    struct caller *caller = context;

    switch (args->type) {
    case PH_STR:
        hear(caller, args->str, strlen(args->str));
        break;
    case PH_BYTES:
        hear(caller, args->bytes.data, args->bytes.size);
        break;
    case PH_BOOL:
        hear(caller, &args->boolean, 1);
        break;
    default:
        hear(caller, &args->u64,
             args->type == PH_I64 || args->type == PH_U64 || args->type == PH_F64 ? 8 : 4);
        break;
    }
    if (random_once_in(&caller->random, 20))
        return ph_host_fail(call, (int32_t)random_next(&caller->random), "refused with %u",
                            (unsigned)random_below(&caller->random, 1000));
    random_value(&caller->random, result, caller->text);
    return PH_OK;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void callers_begin(struct callers *callers) {
    static const ph_backend backends[BACKENDS] = {PH_BACKEND_KVM, PH_BACKEND_SOFT};

    callers->image = test_image("differential-calls");
    for (int i = 0; i < BACKENDS; i++) {
        struct caller *caller = &callers->callers[i];
        ph_config config = PH_CONFIG_INIT;
        config.backend = backends[i];
        caller->sandbox = test_sandbox(callers->image, &config);
        for (size_t j = 0; j < ph_image_import_count(callers->image); j++) {
            const ph_function *import = ph_image_import(callers->image, j);
            test_status(caller->sandbox,
                        ph_sandbox_register(caller->sandbox, import->name, &import->signature, visit, caller),
                        PH_OK);
        }
        test_status(caller->sandbox, ph_sandbox_start(caller->sandbox), PH_OK);
        test_status(caller->sandbox, ph_snapshot_take(caller->sandbox, &callers->snapshots[i]), PH_OK);
    }
}

static void callers_end(struct callers *callers) {
    for (int i = 0; i < BACKENDS; i++) {
        ph_snapshot_close(callers->snapshots[i]);
        ph_sandbox_destroy(callers->callers[i].sandbox);
    }
    ph_image_close(callers->image);
}

static void call_both(const struct rounds *rounds, struct callers *callers, const ph_function *function,
                      const ph_value *args) {
    ph_sandbox *const sandboxes[BACKENDS] = {callers->callers[ON_KVM].sandbox,
                                             callers->callers[ON_SOFT].sandbox};
    const uint64_t answers = rounds->random;
    ph_status statuses[BACKENDS];
    ph_value results[BACKENDS];

    for (int i = 0; i < BACKENDS; i++) {
        struct caller *caller = &callers->callers[i];
        caller->random = answers;
        caller->heard = 0;
        results[i].type = function->signature.result;
        statuses[i] = ph_call(caller->sandbox, function, args, function->signature.count, &results[i]);
    }
    differential_compare(rounds, sandboxes, statuses);
    if (callers->callers[ON_KVM].heard != callers->callers[ON_SOFT].heard)
        rounds_fail(rounds, "%s: the host functions were given other values", function->name);
    if (statuses[ON_KVM] == PH_OK && !differential_same_value(&results[ON_KVM], &results[ON_SOFT]))
        rounds_fail(rounds, "%s: 0x%llx on kvm, 0x%llx on soft%s%s%s%s", function->name,
                    (unsigned long long)results[ON_KVM].u64, (unsigned long long)results[ON_SOFT].u64,
                    results[ON_KVM].type == PH_STR ? "\n  " : "",
                    results[ON_KVM].type == PH_STR ? results[ON_KVM].str : "",
                    results[ON_KVM].type == PH_STR ? "\n  " : "",
                    results[ON_KVM].type == PH_STR ? results[ON_SOFT].str : "");
    if (ph_sandbox_state(sandboxes[ON_KVM]) != ph_sandbox_state(sandboxes[ON_SOFT]))
        rounds_fail(rounds, "%s: another state of the sandbox", function->name);
    for (int i = 0; i < BACKENDS; i++)
        if (ph_sandbox_state(sandboxes[i]) == PH_STATE_POISONED)
            test_status(sandboxes[i], ph_sandbox_restore(sandboxes[i], callers->snapshots[i]), PH_OK);
}

static void random_calls_give_the_same(void **state) {
    static char rooms[PH_MAX_ARGS][TEXT_MAX + 1];
    struct rounds rounds = rounds_begin("random calls", 4000);
    static struct callers callers;

    (void)state;
    differential_needs_both();
    callers_begin(&callers);
    while (rounds_next(&rounds)) {
        const size_t index = random_below(&rounds.random, ph_image_export_count(callers.image));
        const ph_function *function = ph_image_export(callers.image, index);
        ph_value args[PH_MAX_ARGS];
        for (uint32_t i = 0; i < function->signature.count; i++) {
            args[i].type = function->signature.args[i];
            random_value(&rounds.random, &args[i], rooms[i]);
        }
        call_both(&rounds, &callers, function, args);
    }
    callers_end(&callers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_give_the_same),
    };

    return cmocka_run_group_tests_name("differential: calls", tests, NULL, NULL);
}
